"""`IterativeSVD`: its step, its fixed points, and when it stops."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from model_cases import dense, global_numpy_state

from air_recsys.exceptions import ParameterError
from air_recsys.models import IterativeSVD
from air_recsys.models.baselines import exact_factors

SHAPE = (30, 20)


def low_rank(rank=2, missing=0.3, seed=0):
    """A matrix of a rank, and the same with gaps."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(0.5, 1.5, (SHAPE[0], rank)) @ rng.uniform(0.5, 1.5, (rank, SHAPE[1]))
    return truth, np.where(rng.random(SHAPE) < missing, np.nan, truth)


def completed(model, array):
    users, items = np.indices(array.shape)
    return model.fit(array).predict(users.ravel(), items.ravel()).reshape(array.shape)


def truncated(matrix, rank):
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    return (left[:, :rank] * values[:rank]) @ right[:rank]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_matrix_of_the_rank_is_recovered(rank):
    truth, array = low_rank(rank)
    found = completed(IterativeSVD(rank, n_iterations=5000, tolerance=1e-11, random_state=0), array)
    np.testing.assert_allclose(found, truth, atol=1e-6)


def test_the_first_step_truncates_the_matrix_of_item_means():
    array = low_rank()[1]
    start = np.where(np.isnan(array), np.nanmean(array, axis=0), array)
    expected = np.where(np.isnan(array), truncated(start, 3), array)
    model = IterativeSVD(3, n_iterations=1, random_state=0)
    np.testing.assert_allclose(completed(model, array), expected, rtol=1e-5)
    change = np.linalg.norm(expected - start) / np.linalg.norm(start)
    np.testing.assert_allclose(model.history_["change"], [change], rtol=1e-4)


def test_gaps_are_those_of_the_truncated_answer():
    rng = np.random.default_rng(0)
    array = np.where(rng.random(SHAPE) < 0.3, np.nan, rng.normal(3, 1, SHAPE).clip(0))
    model = IterativeSVD(2, n_iterations=5000, tolerance=1e-9, random_state=0)
    found = completed(model, array)
    assert model.stopped_by_ == "tolerance"
    gaps = np.isnan(array)
    np.testing.assert_allclose(found[gaps], truncated(found, 2)[gaps], atol=1e-4)  # the truncation is randomized


def test_it_stops_at_the_tolerance_or_after_the_last_iteration():
    array = low_rank()[1]
    model = IterativeSVD(2, n_iterations=500, tolerance=1e-4, random_state=0).fit(array)
    changes = model.history_["change"].to_numpy()
    assert model.stopped_by_ == "tolerance"
    assert changes[-1] <= 1e-4 < changes[:-1].min()
    assert model.history_["iteration"].tolist() == list(range(1, model.n_iter_ + 1))
    model.set_params(n_iterations=3).fit(array)
    assert (model.stopped_by_, model.n_iter_, len(model.history_)) == ("n_iterations", 3, 3)


@pytest.mark.parametrize("rank", [20, 1000])
def test_at_full_rank_item_means_are_left_alone(rank):
    array = low_rank()[1]
    found = completed(IterativeSVD(rank, random_state=0), array)
    np.testing.assert_allclose(found, np.where(np.isnan(array), np.nanmean(array, axis=0), array), rtol=1e-10)


def test_a_matrix_without_gaps_is_left_alone_at_once():
    truth = low_rank()[0]
    model = IterativeSVD(1, tolerance=0, random_state=0)
    np.testing.assert_allclose(completed(model, truth), truth, rtol=1e-12)
    assert model.history_["change"].tolist() == [0.0]


@given(
    table=arrays.arrays(np.int64, st.tuples(st.integers(1, 7), st.integers(1, 7)), elements=st.integers(-1, 5)),
    rank=st.integers(1, 4),
)
def test_ratings_stay_and_every_gap_is_filled(table, rank):
    array = np.where(table >= 0, table, np.nan).astype(float)
    array[0, 0] = 3.0
    found = completed(IterativeSVD(rank, n_iterations=5, random_state=0), array)
    assert np.isfinite(found).all()
    rated = ~np.isnan(array)
    np.testing.assert_allclose(found[rated], array[rated], atol=1e-10)


def test_the_unit_of_the_ratings_does_not_matter():
    array = low_rank()[1]
    one, other = (completed(IterativeSVD(1, random_state=0), unit * array) for unit in (1.0, 1e6))
    np.testing.assert_allclose(other, 1e6 * one, rtol=1e-6)


def test_chance_is_local_and_hardly_matters():
    array, before = low_rank()[1], global_numpy_state()
    model = IterativeSVD(2, random_state=7)
    np.testing.assert_array_equal(completed(model, array), completed(model, array))
    np.testing.assert_allclose(completed(IterativeSVD(2), array), completed(model, array), atol=1e-6)
    np.testing.assert_array_equal(global_numpy_state(), before)


@given(
    matrix=arrays.arrays(
        np.float64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.floats(-1e6, 1e6, width=32)
    ),
    mean=st.floats(-10, 10),
)
def test_factors_hold_a_matrix_to_rounding(matrix, mean):
    factors = exact_factors(matrix, mean)
    rebuilt = factors.user_factors @ factors.item_factors.T + factors.mean
    np.testing.assert_allclose(rebuilt, matrix, atol=1e-13 * (np.abs(matrix).max() + abs(mean)))
    # Users and items share the weight of each direction.
    gram = [side.T @ side for side in (factors.user_factors, factors.item_factors)]
    np.testing.assert_allclose(gram[0], gram[1], atol=1e-13 * (np.abs(gram[0]).max() + 1))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rank": 0}, "rank must be an integer >= 1, found 0"),
        ({"n_iterations": 2.5}, "n_iterations must be an integer >= 1, found 2.5"),
        ({"tolerance": -1e-5}, "tolerance must be a number >= 0, found -1e-05"),
        ({"random_state": "seven"}, "random_state must be an integer >= 0, found 'seven'"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        IterativeSVD(**parameters).fit(dense())
