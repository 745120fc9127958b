"""Models at the edges of the numbers: units of ratings, ill-conditioned data, NaN, processes and threads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from covering import covering
from model_cases import (
    BY_DESCENT,
    CPU,
    ITEMS,
    MODELS,
    N_ITEMS,
    N_USERS,
    PAIRS,
    POSTERIORS,
    TRAINED,
    dense,
    fitted,
    frame,
)
from threadpoolctl import threadpool_limits

from air_recsys import AIR, DMF, Interactions
from air_recsys.exceptions import AirRecsysError, DivergenceError
from air_recsys.models import GraphRanker, IterativeSVD, Recommender
from air_recsys.models.engines.posterior import PosteriorEngine
from air_recsys.models.trained import TrainedRecommender
from air_recsys.solvers import Adam
from air_recsys.testing import all_scores, answers_of


def untied() -> np.ndarray:
    """Ratings of which no two are equal: which of equal ones is nearest is a matter of rounding."""
    return dense() + np.random.default_rng(5).random((N_USERS, N_ITEMS))


def scores_of(model: Recommender, data: Any) -> np.ndarray:
    return model.fit(data).predict(*PAIRS)


# -------------------------------------------------------------------- units


@cache
def plain_scores(name: str) -> np.ndarray:
    """The scores of ratings in their own unit."""
    return scores_of(MODELS[name](), untied())


TIED = ["AIR-transforms", "RDMF"]  # a row to all others: no new rows
BLIND = ["GraphRanker"]  # to what ratings say
# What training in float32 leaves of a rating, after all its epochs, against the largest one; the others use float64.
ROUNDING = dict.fromkeys([*TRAINED, "PatchAIR"], 2e-5)


@pytest.mark.parametrize(
    ("name", "unit"), covering([name for name in MODELS if name not in BLIND], [1e-30, 1e30, 1e-6, 1e6])
)
def test_scores_are_in_the_unit_of_the_ratings(name, unit):
    scaled = scores_of(MODELS[name](), unit * untied())
    np.testing.assert_allclose(scaled / unit, plain_scores(name), atol=6 * ROUNDING.get(name, 1e-12), rtol=0)


@pytest.mark.parametrize(
    ("name", "unit"), covering([name for name in TRAINED if name not in TIED], [1e-9, 1e30, 1e-9])
)
def test_new_rows_are_in_the_unit_of_the_ratings(name, unit):
    first = np.arange(N_ITEMS) < 3
    new = sp.csr_array(np.where(first, untied()[:1], 0))
    plain, scaled = (MODELS[name]().fit(factor * untied()).fold_in(factor * new) for factor in (1, unit))
    np.testing.assert_allclose(scaled.user_biases_ / unit, plain.user_biases_, atol=1e-3, rtol=0)


# -------------------------------------------------------------------- ill-conditioned data


def ill_conditioned() -> dict[str, np.ndarray]:
    row, column = np.full((2, N_USERS, N_ITEMS), np.nan)
    row[3], column[:, 3] = 1 + np.arange(N_ITEMS) % 5, 1 + np.arange(N_USERS) % 5
    twins, constant, outlier = dense(), dense(), dense()
    twins[:, 5], constant[:, 5], outlier[0, 0] = twins[:, 4], 3.0, 1e12
    rank_one = np.tile(1.0 + np.arange(N_ITEMS) % 5, (N_USERS, 1))
    return {
        "one user has all ratings": row,
        "one item has all ratings": column,
        "two equal columns": twins,
        "a constant column": constant,
        "rank one without gaps": rank_one,
        "one rating of 1e12": outlier,
    }


@pytest.mark.filterwarnings("ignore:ratings lie between 1 and 1e")
@pytest.mark.filterwarnings("ignore:each row counts as one like")
@pytest.mark.parametrize(
    ("name", "case"),
    sorted({*covering(MODELS, ill_conditioned()), *((name, "one rating of 1e12") for name in TRAINED)}),
)
def test_scores_of_ill_conditioned_data_are_finite(name, case):
    data = ill_conditioned()[case]
    scores = scores_of(MODELS[name](), data)
    assert np.isfinite(scores).all()
    assert np.abs(scores).max() <= 10 * np.nanmax(data)


WEIGHTED = [name for name in MODELS if isinstance(MODELS[name](), TrainedRecommender)]


def weighted(lowest: int, highest: int) -> Interactions:
    """Ratings whose weights run from one power of ten to another."""
    users, items = np.nonzero(~np.isnan(dense()))
    weights = np.logspace(lowest, highest, users.size)
    return Interactions(users, items, dense()[users, items], range(N_USERS), range(N_ITEMS), weights=weights)


# A posterior takes a weight as a number of ratings: large ones are for the next test.
ORDERS = [(name, -12, 0) for name in WEIGHTED] + [(name, -6, 6) for name in WEIGHTED if name not in POSTERIORS]


@pytest.mark.parametrize(("name", "lowest", "highest"), ORDERS)
def test_scores_under_weights_over_twelve_orders_are_finite(name, lowest, highest):
    assert np.isfinite(scores_of(MODELS[name](), weighted(lowest, highest))).all()


@pytest.mark.parametrize("name", POSTERIORS)
def test_a_posterior_takes_the_weights_that_its_precision_can_tell_apart(name):
    assert np.isfinite(scores_of(MODELS[name](), weighted(-1, 1))).all()
    assert np.isfinite(scores_of(MODELS[name](dtype="float64"), weighted(-4, 4))).all()


# -------------------------------------------------------------------- NaN


def into_factors(model: Any) -> None:
    model._at_work._objective.model_parameters()[0][0, 0] = np.nan


def into_last_parameter(model: Any) -> None:
    model._at_work._objective.model_parameters()[-1].view(-1)[-1] = np.inf


def into_logits(model: Any) -> None:
    logits = model._at_work._objective.logits()
    (logits or model._at_work._objective.model_parameters())[-1].view(-1)[0] = np.nan


@pytest.mark.parametrize(("name", "spoil"), covering(BY_DESCENT, [into_factors, into_last_parameter, into_logits]))
def test_nan_in_a_parameter_ends_in_the_last_good_state(name, spoil):
    model: Any = MODELS[name]()
    records, wanted = [], []

    def once(record: Any) -> None:
        records.append(record.epoch)
        if len(records) == 2:
            wanted.append(model.current_factors())
            spoil(model)

    with pytest.raises(DivergenceError) as found:
        model.fit(frame(), callbacks=[once])
    assert len(records) == 2
    assert found.value.last_good_epoch == model.n_iter_ == records[-1] < found.value.epoch
    assert model.stopped_by_ == "divergence"
    np.testing.assert_array_equal(model.user_factors_, wanted[0].user_factors)
    np.testing.assert_array_equal(model.item_factors_, wanted[0].item_factors)
    assert np.isfinite(all_scores(model)).all()


NAN = float("nan")


def lose(owner: Any, name: str) -> None:
    setattr(owner, name, getattr(owner, name) * NAN)


def lose_factors(sweeps: Any) -> None:
    side = sweeps.posterior.sides[1]
    sweeps.posterior.sides[1] = side._replace(mean=side.mean * NAN)


FAULTS: dict[str, Callable[[Any], Any]] = {
    "factors": lose_factors,
    "noise": lambda sweeps: lose(sweeps.posterior.noise, "variance"),
    "precision": lambda sweeps: lose(sweeps.posterior.priors[0], "precision"),
    "weights": lambda sweeps: lose(sweeps.posterior.priors[1], "weights"),
    "scales": lambda sweeps: sweeps.posterior.noise.scales.__setitem__(0, sweeps.posterior.noise.scales[0] * NAN),
}


def fitted_until(name: str, sweep: int, do: Callable[[Any], bool | None]) -> Any:
    model: Any = MODELS[name]()
    sweeps: list[Any] = []
    start = PosteriorEngine.start

    def kept(*args: Any) -> Any:
        sweeps.append(start(*args))
        return sweeps[-1]

    def fit() -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PosteriorEngine, "start", kept)
            return model.fit(frame(), callbacks=[lambda record: record.epoch == sweep and bool(do(sweeps[-1]))])

    return model, fit


LAST = {"AIR-variational": 8, "AIR-langevin": 18}


@cache
def stopped(name: str) -> Any:
    model, fit = fitted_until(name, LAST[name], lambda sweeps: True)
    fit()
    return model


@pytest.mark.parametrize("name", POSTERIORS)
@pytest.mark.parametrize("fault", FAULTS)
def test_nan_in_a_state_of_a_posterior_ends_in_the_last_good_one(name, fault):
    last, good = LAST[name], stopped(name)
    model, fit = fitted_until(name, last, FAULTS[fault])
    with pytest.raises(DivergenceError, match=f"The model holds the last good state, of epoch {last}") as found:
        fit()
    assert (found.value.epoch, found.value.last_good_epoch) == (last + 1, last)
    assert (model.stopped_by_, model.n_iter_) == ("divergence", last)
    np.testing.assert_array_equal(all_scores(model), all_scores(good))
    np.testing.assert_array_equal(*(one.predict("u01", ITEMS, return_std=True)[1] for one in (model, good)))
    for one, other in ((model.user_graph_, good.user_graph_), (model.item_graph_, good.item_graph_)):
        np.testing.assert_array_equal(one.to_scipy().toarray(), other.to_scipy().toarray())


def test_before_the_first_draw_that_is_kept_there_is_no_good_state():
    model, fit = fitted_until("AIR-langevin", 2, lose_factors)
    with pytest.raises(AirRecsysError, match="have no solution") as found:
        fit()
    assert not isinstance(found.value, DivergenceError)
    assert not hasattr(model, "global_mean_")


# -------------------------------------------------------------------- processes and threads


SWEEPS: dict[str, Any] = {"n_factors": 8, "n_sweeps": 3, **CPU}
LARGER: dict[str, Callable[[], Recommender]] = {
    "dense": lambda: AIR(solver=Adam(schedule="cooldown", n_epochs=4, init_std=0.1), **CPU),
    "completion": lambda: AIR.for_completion(n_epochs=4, settings="fixed", **CPU),
    "sparse": lambda: AIR.for_interactions(n_epochs=4, graph_refresh=2, init_std=0.1, **CPU),
    "ratings": lambda: AIR.for_ratings(solver="adam", n_epochs=1, **CPU),
    "variational": lambda: AIR.for_ratings(solver="variational", **SWEEPS),
    "langevin": lambda: AIR.for_ratings(solver="langevin", **SWEEPS),
    "DMF": lambda: DMF(n_epochs=4, init_std=0.1, **CPU),
    "IterativeSVD": lambda: IterativeSVD(rank=3, n_iterations=5, random_state=0),
    "GraphRanker": lambda: GraphRanker(n_factors=8, settings={}),
}


def many() -> Interactions:
    """More pairs than one thread takes of an operation, ratings 1..5."""
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((240, 200)) < 0.2)
    return Interactions(users, items, rng.integers(1, 6, users.size), range(240), range(200))


def scores_with(n_threads: int) -> dict[str, np.ndarray]:
    """Return the scores of all rated pairs by each model."""
    before, known = torch.get_num_threads(), many()
    pairs = known.user_index, known.item_index
    torch.set_num_threads(n_threads)
    try:
        with threadpool_limits(n_threads, user_api="blas"):
            return {name: make().fit(known).predict(*pairs) for name, make in LARGER.items()}
    finally:
        torch.set_num_threads(before)


PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from air_recsys.testing import answers_of
from test_model_numerics import scores_with
from air_recsys.models import Recommender
folder = Path(sys.argv[1])
for path in folder.glob("*.air"):
    np.savez(path.with_suffix(".npz"), *answers_of(Recommender.load(path)))
np.savez(folder / "scores.npz", **scores_with(1))
"""


def test_another_process_answers_alike_and_trains_alike_and_more_threads_do_to_rounding(tmp_path):
    models = {name: fitted(make) for name, make in MODELS.items()}
    for name, model in models.items():
        model.save(tmp_path / f"{name}.air")
    here = Path(__file__).parent
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (here, here.parent, *sys.path)))}
    subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], env=environment, check=True)
    for name, model in models.items():
        found = np.load(tmp_path / f"{name}.npz")
        for number, expected in enumerate(answers_of(model)):
            np.testing.assert_array_equal(found[f"arr_{number}"], expected, err_msg=name)
    alone, threaded, elsewhere = scores_with(1), scores_with(2), np.load(tmp_path / "scores.npz")
    for name, scores in alone.items():
        np.testing.assert_array_equal(elsewhere[name], scores, err_msg=name)
        np.testing.assert_allclose(threaded[name], scores, atol=5e-4, rtol=0, err_msg=name)  # of ratings up to 5
