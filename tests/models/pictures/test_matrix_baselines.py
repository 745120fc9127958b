"""`KNN` and `IterativeSVD`: their definitions, fixed points and symmetries, and gaps that no neighbor can fill."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from model_cases import completed, global_numpy_state

from air_recsys.datasets import load_syn_netflix
from air_recsys.metrics import nmae
from air_recsys.models import KNN, IterativeSVD
from air_recsys.models.baselines import exact_factors

# Ratings 1..5, and 0 for a gap; the corner is always rated.
tables = arrays.arrays(np.int64, st.tuples(st.integers(1, 7), st.integers(1, 7)), elements=st.integers(0, 5))
MODELS = [
    *(KNN(2, weights, axis) for weights in ("distance", "uniform") for axis in ("users", "items")),
    *(IterativeSVD(rank, n_iterations=5, random_state=0) for rank in (1, 4)),
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
@settings(max_examples=10)
@given(table=tables)
def test_ratings_stay_and_every_gap_is_filled(model, table):
    array = np.where(table > 0, table, np.nan).astype(float)
    array[0, 0] = 3.0
    found = completed(model, array)
    rated = ~np.isnan(array)
    np.testing.assert_allclose(found[rated], array[rated], atol=1e-10)
    assert np.isfinite(found).all()
    if isinstance(model, KNN):  # gaps lie between the ratings
        assert np.nanmin(array) - 1e-12 <= found.min() <= found.max() <= np.nanmax(array) + 1e-12


# -------------------------------------------------------------------- nearest neighbors


def gapped(shape):
    rng = np.random.default_rng(0)
    return np.where(rng.random(shape) < 0.7, rng.normal(5, 1, shape), np.nan)


def by_definition(array, n_neighbors, weights):
    """The mean over the nearest of those who have the rating, one gap after the other."""
    filled = array.copy()
    for user, item in np.argwhere(np.isnan(array)):
        squares = (array - array[user]) ** 2
        distances = np.sqrt(array.shape[1] * np.nanmean(squares, axis=1))
        donors = np.flatnonzero(~np.isnan(array[:, item]))
        nearest = donors[np.argsort(distances[donors], kind="stable")[:n_neighbors]]
        share = 1 / distances[nearest] if weights == "distance" else np.ones(nearest.size)
        filled[user, item] = share @ array[nearest, item] / share.sum()
    return filled


@pytest.mark.parametrize("weights", ["distance", "uniform"])
@pytest.mark.parametrize("n_neighbors", [1, 3, 100])
def test_gaps_hold_the_mean_of_the_nearest_who_have_the_rating(weights, n_neighbors):
    array = gapped((15, 20))
    expected = by_definition(array, n_neighbors, weights)
    np.testing.assert_allclose(completed(KNN(n_neighbors, weights), array), expected, rtol=1e-10)
    by_items = completed(KNN(n_neighbors, weights, axis="items"), array.T)
    np.testing.assert_allclose(by_items, expected.T, rtol=1e-10)


@pytest.mark.parametrize("axis", ["users", "items"])
def test_permuted_users_and_items_are_completed_alike_and_twins_share_their_ratings(axis):
    rng, array, model = np.random.default_rng(0), gapped((12, 9)), KNN(3, axis=axis)
    order = np.ix_(rng.permutation(12), rng.permutation(9))
    np.testing.assert_allclose(completed(model, array[order]), completed(model, array)[order], rtol=1e-10)
    truth = np.kron([[5.0, 1.0, 3.0], [2.0, 4.0, 1.0]], np.ones((4, 4)))
    withheld = np.kron(np.ones((2, 3)), np.eye(4)) > 0
    np.testing.assert_allclose(completed(model, np.where(withheld, np.nan, truth)), truth, atol=1e-12)


def test_means_stand_where_no_neighbor_can_help():
    array = np.array([[5.0, np.nan, np.nan], [3.0, np.nan, np.nan], [np.nan, 1.0, np.nan]])
    found = completed(KNN(), array)
    assert found[2, 0] == pytest.approx(4)  # shares no item with the two who rated it: the item's mean
    assert found[0, 1] == pytest.approx(1)
    np.testing.assert_allclose(found[:, 2], 3)  # rated by nobody: the mean of all ratings
    np.testing.assert_allclose(completed(KNN(axis="items"), array.T), found.T)


@pytest.mark.data
def test_syn_netflix_is_completed_by_its_groups_of_items(data_root):
    pytest.importorskip("h5py")
    truth = load_syn_netflix(data_root).matrix
    hidden = np.random.default_rng(0).random(truth.shape) < 0.7
    model = KNN(5, axis="items").fit(np.where(hidden, np.nan, truth))
    assert nmae(truth[hidden], model.predict(*np.nonzero(hidden)), np.ptp(truth)) < 0.0032  # KNN in the paper's table


# -------------------------------------------------------------------- iterated truncation


def low_rank(rank=2, missing=0.3):
    """A matrix of a rank, and the same with gaps."""
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.5, 1.5, (30, rank)) @ rng.uniform(0.5, 1.5, (rank, 20))
    return truth, np.where(rng.random(truth.shape) < missing, np.nan, truth)


def truncated(matrix, rank):
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    return (left[:, :rank] * values[:rank]) @ right[:rank]


@pytest.mark.parametrize("rank", [1, 3])
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
    for rank in (20, 1000):  # at full rank the means are left alone
        np.testing.assert_allclose(completed(IterativeSVD(rank, random_state=0), array), start, rtol=1e-10)


def test_gaps_are_those_of_the_truncated_answer():
    rng = np.random.default_rng(0)
    array = np.where(rng.random((30, 20)) < 0.3, np.nan, rng.normal(3, 1, (30, 20)).clip(0))
    model = IterativeSVD(2, n_iterations=5000, tolerance=1e-9, random_state=0)
    found = completed(model, array)
    assert model.stopped_by_ == "tolerance"
    gaps = np.isnan(array)
    np.testing.assert_allclose(found[gaps], truncated(found, 2)[gaps], atol=1e-4)  # the truncation is randomized


def test_it_stops_at_the_tolerance_or_after_the_last_iteration():
    truth, array = low_rank()
    model = IterativeSVD(2, n_iterations=500, tolerance=1e-4, random_state=0).fit(array)
    changes = model.history_["change"].to_numpy()
    assert model.stopped_by_ == "tolerance"
    assert changes[-1] <= 1e-4 < changes[:-1].min()
    assert model.history_["iteration"].tolist() == list(range(1, model.n_iter_ + 1))
    model.set_params(n_iterations=3).fit(array)
    assert (model.stopped_by_, model.n_iter_, len(model.history_)) == ("n_iterations", 3, 3)
    whole = IterativeSVD(1, tolerance=0, random_state=0)  # without gaps it is left alone at once
    np.testing.assert_allclose(completed(whole, truth), truth, rtol=1e-12)
    assert whole.history_["change"].tolist() == [0.0]


def test_chance_and_the_unit_of_the_ratings_hardly_matter():
    array, before = low_rank()[1], global_numpy_state()
    found = completed(IterativeSVD(2, random_state=7), array)
    np.testing.assert_allclose(completed(IterativeSVD(2), array), found, atol=1e-6)
    np.testing.assert_array_equal(global_numpy_state(), before)
    one, other = (completed(IterativeSVD(1, random_state=0), unit * array) for unit in (1.0, 1e6))
    np.testing.assert_allclose(other, 1e6 * one, rtol=1e-6)


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
