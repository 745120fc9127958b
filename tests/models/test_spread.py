"""Deviations, intervals and probabilities of models without a posterior: errors on hidden ratings."""

import copy
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from model_cases import fails

from air_recsys import AIR, DMF, Interactions
from air_recsys.exceptions import DataError
from air_recsys.models.state import lock_of

RNG = np.random.default_rng(0)
TRUE = RNG.standard_normal((60, 3)) @ RNG.standard_normal((3, 40))
SHOWN = RNG.random(TRUE.shape) < 0.5
HIDDEN = np.nonzero(~SHOWN)
SETTINGS = {"random_state": 0, "device": "cpu", "n_factors": 4, "n_epochs": 300}


def shown(values: np.ndarray) -> Interactions:
    return Interactions.from_dense(np.where(SHOWN, values, np.nan), allow_negative=True)


def completion(**changes) -> AIR:
    return AIR.for_completion(**SETTINGS | {"settings": "fixed"} | changes)


@pytest.fixture(scope="module")
def noisy() -> np.ndarray:
    """Entries with noise that is not normal."""
    return TRUE + np.random.default_rng(1).laplace(scale=0.4, size=TRUE.shape)


@pytest.fixture(scope="module")
def fitted(noisy) -> AIR:
    model = completion().fit(shown(noisy))
    assert not model.knows_deviations_
    model.predict(0, 0, return_std=True)
    assert model.knows_deviations_
    return model


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_intervals_hold_what_they_say(fitted, noisy, level):
    low, high = fitted.predict_interval(HIDDEN[0], HIDDEN[1], level)
    assert np.mean((low <= noisy[HIDDEN]) & (noisy[HIDDEN] <= high)) == pytest.approx(level, abs=0.08)


def test_deviations_are_those_of_new_ratings(fitted, noisy):
    scores, deviations = fitted.predict(*HIDDEN, return_std=True)
    assert np.std((noisy[HIDDEN] - scores) / deviations) == pytest.approx(1, abs=0.15)


def test_scores_and_lists_stay_as_they_were(fitted, noisy):
    before = completion().fit(shown(noisy))
    np.testing.assert_array_equal(before.predict(*HIDDEN), fitted.predict(*HIDDEN))
    assert before.recommend([0, 1]).equals(fitted.recommend([0, 1]))


def test_they_are_measured_once_and_files_keep_them(fitted, noisy, tmp_path):
    wanted = fitted.predict_interval(HIDDEN[0], HIDDEN[1])
    again, loaded = completion().fit(shown(noisy)), AIR.load(fitted.save(tmp_path / "model.air"))
    assert loaded.knows_deviations_
    for model in (again, loaded):
        np.testing.assert_array_equal(model.predict_interval(HIDDEN[0], HIDDEN[1]), wanted)


def test_new_ratings_and_users_have_them(fitted):
    grown = copy.copy(fitted).partial_fit(Interactions([0, 0], [0, 1], [0.5, 0.1], [99], [0, 1], allow_negative=True))
    low, high = grown.predict_interval([99, 0], [3, 3])
    assert (low < high).all()
    assert grown.predict_table(99, 3)["deviation"].notna().all()


def test_they_are_of_the_state_that_was_asked(noisy):
    model = completion().fit(shown(noisy))
    before = model.predict(59, [3, 4])
    with ThreadPoolExecutor(1) as pool:
        with lock_of(model):
            asked = pool.submit(model.predict_interval, 59, [3, 4])
            time.sleep(0.3)  # it waits for the lock
            model.forget(users=range(10))
        low, high = asked.result()
    np.testing.assert_allclose((low + high) / 2, before)
    assert model.interactions_.n_users == 50


def test_an_unknown_pair_has_the_deviation_of_all_ratings(fitted):
    deviation = fitted.predict(77, 3, unknown="mean", return_std=True)[1]
    assert deviation == pytest.approx(fitted.interactions_.ratings.std())


@pytest.mark.parametrize("make", [AIR.for_interactions, DMF.for_interactions])
def test_probabilities_of_two_values_are_calibrated(make):
    values = (TRUE + np.random.default_rng(2).logistic(scale=0.3, size=TRUE.shape) > 0).astype(float)
    model = make(random_state=0, device="cpu", n_epochs=150).fit(np.where(SHOWN, values, np.nan))
    found = model.predict_proba(*HIDDEN)[:, 1]
    parts = np.array_split(np.argsort(found), 5)
    errors = [abs(found[part].mean() - values[HIDDEN][part].mean()) for part in parts]
    assert np.mean(errors) < 0.09  # of 20 hidden ratings a part
    assert np.mean((found > 0.5) == values[HIDDEN]) > 0.7


def test_too_few_ratings_are_refused_before_any_training():
    model = completion().fit([[1.0, 2.0, 3.0], [2.0, 1.0, 4.0], [3.0, 3.0, 1.0]])
    for ask in (model.predict_interval, model.predict_proba, lambda *pair: model.predict(*pair, return_std=True)):
        with fails(DataError, "expected 100 ratings, to measure deviations on a tenth of them, found 9"):
            ask(0, 0)
    assert not model.knows_deviations_
