"""`AIR.auto`: it looks at the data before it takes a preset."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from air_recsys import AIR, Interactions
from air_recsys.datasets import make_syn_netflix
from air_recsys.evaluation.completion import hide
from air_recsys.exceptions import DataWarning, ParameterError
from air_recsys.models.settings.forms import FULL_WIDTH_CELLS, kind_of

CPU = {"device": "cpu", "random_state": 0}
FEW = Interactions.from_dense(np.random.default_rng(0).integers(1, 6, (10, 10)).astype(float))


@pytest.fixture(scope="module")
def exact():
    return hide(make_syn_netflix(30, 40, 4, 4, random_state=0).matrix, 0.5, 0).observed


@pytest.fixture(scope="module")
def rated(exact):
    """A model of ratings of the same pairs, a user's and an item's mean and noise; not to be changed."""
    rng = np.random.default_rng(0)
    effects = np.add.outer(rng.normal(3, 0.7, 30), rng.normal(0, 0.7, 40))
    ratings = np.clip(np.round(effects + rng.normal(size=(30, 40))), 1, 5)
    data = Interactions.from_dense(np.where(np.isnan(exact.to_dense()), np.nan, ratings))
    return AIR.auto(n_factors=3, search_budget=0.4, **CPU).fit(data)


def likes(exact, value=1.0):
    """The pairs that are rated, and no more than that."""
    return Interactions.from_dense(np.where(np.isnan(exact.to_dense()), np.nan, value))


def test_kinds_are_told_by_the_values_and_the_size(exact):
    assert kind_of(exact).presets == ("completion", "ratings")
    assert kind_of(Interactions.from_dense((exact.to_dense() > 3).astype(float))).presets == ("interactions",)
    n = FULL_WIDTH_CELLS + 1
    large = Interactions([0, 1, 2], [0, 5, n - 1], [1.0, 2.0, 5.0], range(3), range(n))
    assert kind_of(large).presets == ("ratings",)
    words = {kind_of(data).words for data in (exact, large, likes(exact), Interactions.from_dense([[0, 1], [1, 0]]))}
    assert len(words) == 4


@pytest.mark.parametrize("value", [1.0, 4.0])
def test_likes_are_equal_positive_values_of_some_pairs(exact, value):
    assert kind_of(likes(exact, value)).words == "likes, only positive pairs"
    whole = Interactions.from_dense(np.full((30, 40), value))
    assert kind_of(whole).words != "likes, only positive pairs"
    assert kind_of(likes(exact, 0.0)).words != "likes, only positive pairs"


def test_likes_are_warned_of_once_and_models_for_them_are_named(exact):
    with pytest.warns(DataWarning) as caught:
        model = AIR.auto(**CPU).fit(likes(exact))
    (warning,) = caught
    assert all(name in str(warning.message) for name in ("AIR.for_likes()", "ImplicitAIR"))
    assert model.search_line_ == "data: likes, only positive pairs; settings: ratings"
    with pytest.warns(DataWarning) as caught:  # no pair is left to rank
        AIR.auto(**CPU).fit(np.full((5, 4), 4.0))
    assert "AIR.for_likes" not in str(caught[0].message)


def test_exact_values_are_completed_and_noisy_ratings_get_a_posterior(exact, rated):
    completed = AIR.auto(search_budget=1.0, **CPU).fit(exact, callbacks=[lambda record: True])
    assert completed.solver_.name == "adam"
    assert completed.settings_["n_factors"] is None
    assert completed.search_line_.startswith("data: exact values or noisy ratings; settings: ")
    assert "hidden ratings" in completed.search_line_
    assert rated.solver_.name == "variational"
    assert rated.predict([0], [0], return_std=True)[1] > 0


def test_what_is_given_stays(rated):
    assert rated.user_factors_.shape[1] >= 3
    assert "n_factors" not in rated.settings_
    whole = AIR.auto(n_factors=None, search_budget=0.05, **CPU)  # which no posterior takes
    assert whole.fit(rated.interactions_, callbacks=[lambda record: True]).solver_.name == "adam"
    assert AIR.auto(**CPU).fit(FEW).solver_.name == "variational"  # few ratings take the first preset


def test_it_is_an_estimator_like_any_other(exact, rated, tmp_path):
    model = AIR.auto(**CPU)
    assert clone(model).get_params() == model.get_params()
    assert repr(AIR.of_preset("auto", **CPU)) == repr(model)
    with pytest.raises(ParameterError, match="solver='auto' is chosen by fit"):
        model.engine()
    with pytest.raises(ParameterError, match="n_epochs is a parameter of the solver Adam"):
        AIR.auto(n_epochs=3)
    loaded = AIR.load(rated.save(tmp_path / "model.air"))
    assert loaded.solver == "auto"
    assert loaded.solver_ == rated.solver_
    np.testing.assert_array_equal(loaded.predict([0, 1], [2, 3]), rated.predict([0, 1], [2, 3]))
    new = exact.to_csr()[:2]
    np.testing.assert_array_equal(loaded.fold_in(new).user_factors_, rated.fold_in(new).user_factors_)
    assert model.memory_plan(exact).total > 0


def test_scores_of_labels_are_pushed_and_others_limited(rated):
    labels = Interactions.from_dense(np.kron(np.eye(2), np.ones((3, 4))))
    model = AIR.auto(**CPU).fit(labels)
    assert model.settings_["graph_neighbors"] is None
    assert model.predict(0, [0, 4]).min() > 0
    assert np.abs(model.predict(0, [0, 4]) - [1, 0]).max() < 1e-3
    users, items = np.divmod(np.arange(30 * 40), 40)
    assert 1 <= rated.predict(users, items).min() <= rated.predict(users, items).max() <= 5
