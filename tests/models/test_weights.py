"""Weights of ratings in training."""

import numpy as np
import pytest

from air_recsys import AIR, DMF, BiasModel, GlobalMean, Interactions
from air_recsys.exceptions import DataError
from air_recsys.models import KNN, GraphRanker

CPU = {"device": "cpu", "random_state": 0, "dtype": "float64"}
OPTIONS = CPU | {"n_epochs": 60}


def data(weights=None, keep=slice(None), noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    rows, columns = np.nonzero(rng.random((20, 15)) < 0.6)
    ratings = np.where(rows % 2 == columns % 2, 4.0, 2.0) + noise * rng.normal(size=rows.size)
    weights = None if weights is None else weights(rows.size)[keep]
    return Interactions(
        rows[keep], columns[keep], ratings[keep], range(20), range(15), weights=weights, allow_negative=True
    )


def by_descent(**overrides):
    """With fixed strengths the number of ratings does not enter."""
    return AIR.for_ratings(**OPTIONS | {"solver": "adam", "user_graph_reg": 1e-4, "item_graph_reg": 1e-4} | overrides)


@pytest.mark.parametrize("overrides", [{"n_factors": 3}, {"n_factors": None}], ids=["factor", "full"])
def test_a_weight_of_one_is_no_weight(overrides):
    plain, ones = by_descent(**overrides).fit(data()), by_descent(**overrides).fit(data(np.ones))
    np.testing.assert_allclose(ones.user_factors_, plain.user_factors_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("overrides", [{"n_factors": 3}, {"n_factors": None}], ids=["factor", "full"])
def test_a_weight_of_zero_is_no_rating(overrides):
    half = np.arange(data().n_ratings) % 2 == 0
    overrides = overrides | {"n_batches": 1}  # the batches of more ratings are other batches
    zeros = by_descent(**overrides).fit(data(lambda n: half.astype(float)))
    without = by_descent(**overrides).fit(data(keep=half))
    np.testing.assert_allclose(zeros.user_factors_, without.user_factors_, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("solver", ["adam", "variational", "langevin"])
def test_what_weighs_more_is_fitted_better(solver):
    heavy = np.arange(data(noise=1.5).n_ratings) % 2 == 0
    ratings = data(lambda n: np.where(heavy, 10.0, 0.1), noise=1.5)
    steps = {"n_epochs": 300, "weight_decay": 1.0} if solver == "adam" else {}
    model = AIR.for_ratings(**CPU | steps, solver=solver, n_factors=2).fit(ratings)
    error = np.abs(
        model.predict(ratings.user_ids[ratings.user_index], ratings.item_ids[ratings.item_index]) - ratings.ratings
    )
    assert error[heavy].mean() < 0.6 * error[~heavy].mean()


def test_weights_survive_a_save(tmp_path):
    model = DMF(**OPTIONS).fit(data(lambda n: np.linspace(0.1, 2, n)))
    loaded = DMF.load(model.save(tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(loaded.interactions_.weights, model.interactions_.weights)


@pytest.mark.parametrize(
    "model", [KNN(), BiasModel(), GlobalMean(), GraphRanker()], ids=lambda model: type(model).__name__
)
def test_models_without_weights_refuse_them(model):
    with pytest.raises(DataError, match=f"{type(model).__name__} knows no weights"):
        model.fit(data(np.ones, noise=0))
