"""The mean, the biases, and AIR without its graphs."""

import re

import numpy as np
import pytest
from model_cases import CPU, by_paper, dense

from air_recsys import AIR, DMF, BiasModel, GlobalMean
from air_recsys.exceptions import ParameterError


def test_global_mean():
    model = GlobalMean().fit(dense())
    np.testing.assert_allclose(model.predict(range(9), range(9)), np.nanmean(dense()))


@pytest.mark.parametrize("decay", [0.0, 0.5, 5.0, 1e6])
def test_biases_solve_the_normal_equations(decay):
    array = dense()
    model = BiasModel(decay).fit(array)
    fitted = model.global_mean_ + model.user_biases_[:, None] + model.item_biases_
    residual = np.nan_to_num(array - fitted)
    np.testing.assert_allclose(residual.sum(axis=1), decay * model.user_biases_, atol=1e-5)
    np.testing.assert_allclose(residual.sum(axis=0), decay * model.item_biases_, atol=1e-5)
    assert model.global_mean_ == pytest.approx(np.nanmean(array))


def test_biases_without_decay_complete_an_additive_matrix():
    truth = np.arange(5.0)[:, None] + np.array([0.0, 2.0, 1.0, 4.0])
    array = truth.copy()
    array[0, 0] = array[3, 2] = np.nan
    np.testing.assert_allclose(
        BiasModel(0.0).fit(array).predict([0, 3], [0, 2]), [truth[0, 0], truth[3, 2]], atol=1e-9
    )


def test_one_user_with_as_many_ratings_as_the_decay_has_about_half_its_deviation():
    array = np.full((101, 400), np.nan)
    rng = np.random.default_rng(0)
    for user in range(100):
        array[user, rng.permutation(400)[:200]] = 3.0
    array[100, :5] = 5.0
    model = BiasModel(5.0).fit(array)
    assert model.user_biases_[100] == pytest.approx(1.0, abs=0.15)


def test_bias_decay_is_checked():
    with pytest.raises(ParameterError, match=re.escape("bias_decay must be a number >= 0, found -1")):
        BiasModel(-1).fit(dense())


def test_dmf_is_air_without_graphs():
    options = CPU | {"n_epochs": 40, "init_std": 0.1, "schedule": "linear"}
    plain = DMF(**options).fit(dense())
    air = by_paper(user_graph_reg=0.0, item_graph_reg=0.0, **options).fit(dense())
    np.testing.assert_array_equal(plain.user_factors_, air.user_factors_)
    assert (plain.user_graph_, plain.item_graph_) == (None, None)
    assert "adjacency" not in plain.get_params()


@pytest.mark.parametrize("preset", ["for_completion", "for_ratings", "for_interactions"])
def test_dmf_like_a_model_and_its_own_presets_have_the_same_parameters(preset):
    air = getattr(AIR, preset)(solver="adam", n_epochs=7, **CPU)
    like, own = DMF.like(air), getattr(DMF, preset)(n_epochs=7, **CPU)
    assert own.get_params() == like.get_params()
    # But for the width, what is "auto" was chosen with graphs in mind: DMF has its own numbers.
    parameters = air.get_params(deep=False) | air.solver.get_params()
    taken = {name: value for name, value in parameters.items() if value != "auto" or name == "n_factors"}
    assert like.get_params() == {name: taken.get(name, value) for name, value in DMF().get_params().items()}
    assert np.isfinite(own.fit(dense()).predict(0, 0)).all()
