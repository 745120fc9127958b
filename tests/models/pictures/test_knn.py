"""`KNN`: the definition, its symmetries, and gaps that no neighbor can fill."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from model_cases import dense

from air_recsys.datasets import load_syn_netflix
from air_recsys.exceptions import ParameterError
from air_recsys.metrics import nmae
from air_recsys.models import KNN

every_form = pytest.mark.parametrize("weights", ["distance", "uniform"])
every_axis = pytest.mark.parametrize("axis", ["users", "items"])
# Ratings 1..5, and 0 for a gap; the corner is always rated.
tables = arrays.arrays(np.int64, st.tuples(st.integers(1, 7), st.integers(1, 7)), elements=st.integers(0, 5))


def with_gaps(table):
    array = np.where(table > 0, table, np.nan).astype(float)
    array[0, 0] = 3.0
    return array


def completed(model, array):
    users, items = np.indices(array.shape)
    return model.fit(array).predict(users.ravel(), items.ravel()).reshape(array.shape)


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


@every_form
@pytest.mark.parametrize("n_neighbors", [1, 3, 100])
def test_gaps_hold_the_mean_of_the_nearest_who_have_the_rating(weights, n_neighbors):
    rng = np.random.default_rng(0)
    array = np.where(rng.random((15, 20)) < 0.7, rng.normal(5, 1, (15, 20)), np.nan)
    found = completed(KNN(n_neighbors, weights), array)
    np.testing.assert_allclose(found, by_definition(array, n_neighbors, weights), rtol=1e-10)


@every_form
def test_nearest_items_are_the_nearest_users_of_the_transpose(weights):
    by_items = completed(KNN(3, weights, axis="items"), dense())
    np.testing.assert_allclose(by_items, completed(KNN(3, weights), dense().T).T, rtol=1e-12)


@every_axis
@every_form
@given(table=tables)
def test_ratings_stay_and_gaps_lie_between_them(axis, weights, table):
    array = with_gaps(table)
    found = completed(KNN(2, weights, axis), array)
    rated = ~np.isnan(array)
    np.testing.assert_allclose(found[rated], array[rated], atol=1e-12)
    assert found.min() >= np.nanmin(array) - 1e-12
    assert found.max() <= np.nanmax(array) + 1e-12


@every_axis
def test_permuted_users_and_items_are_completed_alike(axis):
    rng = np.random.default_rng(0)
    array = np.where(rng.random((12, 9)) < 0.7, rng.normal(5, 1, (12, 9)), np.nan)
    order = np.ix_(rng.permutation(12), rng.permutation(9))
    model = KNN(3, axis=axis)
    np.testing.assert_allclose(completed(model, array[order]), completed(model, array)[order], rtol=1e-10)


@every_axis
def test_twins_share_their_ratings(axis):
    truth = np.kron([[5.0, 1.0, 3.0], [2.0, 4.0, 1.0]], np.ones((4, 4)))
    withheld = np.kron(np.ones((2, 3)), np.eye(4)) > 0
    np.testing.assert_allclose(completed(KNN(3, axis=axis), np.where(withheld, np.nan, truth)), truth, atol=1e-12)


def test_means_stand_where_no_neighbor_can_help():
    array = np.array([[5.0, np.nan, np.nan], [3.0, np.nan, np.nan], [np.nan, 1.0, np.nan]])
    found = completed(KNN(), array)
    assert found[2, 0] == pytest.approx(4)  # shares no item with the two who rated it: the item's mean
    assert found[0, 1] == pytest.approx(1)
    np.testing.assert_allclose(found[:, 2], 3)  # rated by nobody: the mean of all ratings
    np.testing.assert_allclose(completed(KNN(axis="items"), array.T), found.T)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be an integer >= 1, found 0"),
        ({"weights": "cosine"}, "weights must be one of 'distance', 'uniform', found 'cosine'"),
        ({"axis": 0}, "axis must be one of 'users', 'items', found 0"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        KNN(**parameters).fit(dense())


@pytest.mark.data
def test_syn_netflix_is_completed_by_its_groups_of_items(data_root):
    pytest.importorskip("h5py")
    truth = load_syn_netflix(data_root).matrix
    hidden = np.random.default_rng(0).random(truth.shape) < 0.7
    model = KNN(5, axis="items").fit(np.where(hidden, np.nan, truth))
    assert nmae(truth[hidden], model.predict(*np.nonzero(hidden)), np.ptp(truth)) < 0.0032  # KNN in the paper's table
