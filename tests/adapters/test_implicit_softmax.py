"""`ImplicitAIR` as it is untouched: a softmax over all items, and rows that follow from likes.

What holds for each of its losses, and files, are in `test_implicit_air.py`.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from host_cases import COLUMNS, ITEMS, LIKES, N_ITEMS, N_USERS, USERS, assert_same
from implicit import evaluation
from implicit.cpu.als import AlternatingLeastSquares

from air_recsys.adapters.implicit import ImplicitAIR
from air_recsys.datasets import load_movielens
from air_recsys.graphs.neighbors import nearest_neighbors_graph
from air_recsys.models.like_factors.softmax import temperature_for
from benchmarks.hosts.lists import likes


def fitted(matrix: sp.csr_matrix = LIKES, **parameters) -> ImplicitAIR:
    model = ImplicitAIR(**{"device": "cpu", "random_state": 0, "num_threads": 1} | parameters)
    model.fit(matrix, show_progress=False)
    return model


@pytest.fixture(scope="module")
def model() -> ImplicitAIR:
    return fitted()


def test_users_have_length_one_and_items_follow_their_likes(model):
    assert model.settings_ == {"factors": N_ITEMS, "temperature": 0.25}
    np.testing.assert_allclose(np.linalg.norm(model.user_factors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(model.item_factors, axis=1), np.diff(COLUMNS.indptr) ** 0.05, rtol=1e-5)
    ids, _ = model.recommend(USERS, LIKES, N=5)
    assert np.mean(ids % 2 == USERS[:, None] % 2) > 0.95  # what their group likes
    of_more_items = [temperature_for(n) for n in (1, 2, 100, 3_000, 40_000, 10**7)]
    assert of_more_items == sorted(of_more_items, reverse=True)
    assert (of_more_items[0], of_more_items[-1]) == (0.25, 0.1)


def test_values_do_not_count_and_a_seed_decides(model):
    ones = LIKES.copy()
    ones.data[:] = 1
    assert_same(model, fitted(ones))
    drawn, again = (fitted(iterations=2, random_state=np.random.default_rng(3)) for _ in range(2))
    assert_same(drawn, again)


@pytest.mark.parametrize("told_loss", [True, False])
def test_the_loss_is_told_once_an_iteration_where_asked_for_and_falls(told_loss):
    told = []
    model = ImplicitAIR(device="cpu", random_state=0, iterations=4, calculate_training_loss=told_loss)
    model.fit(LIKES, show_progress=False, callback=lambda *each: told.append(each))
    assert [number for number, _, _ in told] == [0, 1, 2, 3]
    assert all(seconds > 0 for _, seconds, _ in told)
    assert told[-1][2] < told[0][2] if told_loss else [loss for _, _, loss in told] == [None] * 4


@pytest.mark.parametrize("parameters", [{"alpha": 2.0}, {"user_graph_reg": 0.0}, {"loss": "squared"}])
def test_parameters_of_the_squared_error_ask_for_it(parameters):
    settings = fitted(iterations=1, steps_per_iteration=1, **parameters).settings_
    assert set(settings) == {"factors", "regularization", "alpha"}


def test_width_steps_and_rate_are_those_asked_for(model):
    narrow = fitted(factors=7, dtype=np.float64)
    assert (narrow.item_factors.shape, narrow.item_factors.dtype) == ((N_ITEMS, 7), np.float64)
    wide = fitted(factors=60)
    assert wide.user_factors.shape == (N_USERS, 60)
    assert np.isfinite(wide.user_factors).all()
    assert_same(fitted(iterations=2, steps_per_iteration=6), fitted(iterations=1))
    assert np.abs(fitted(learning_rate=0.1).item_factors - model.item_factors).max() > 1e-3


def test_known_users_are_solved_to_what_they_are_and_items_near_to_it(model):
    np.testing.assert_allclose(model.recalculate_user(USERS, LIKES), model.user_factors, atol=1e-6)
    np.testing.assert_array_equal(model.recalculate_user(0, LIKES[0]), model.recalculate_user([0], LIKES[[0]])[0])
    narrow = fitted(factors=8)
    solved = narrow.recalculate_item(ITEMS, COLUMNS)
    cosines = (solved * narrow.item_factors).sum(axis=1) / (
        np.linalg.norm(solved, axis=1) * np.linalg.norm(narrow.item_factors, axis=1)
    )
    assert np.median(cosines) > 0.9


def test_a_new_item_reaches_users_and_makes_them():
    model = fitted()
    even = sp.csr_matrix((USERS % 2 == 0).astype(np.float32)[None])
    model.partial_fit_items([N_ITEMS], even)
    assert len(model.item_factors) == N_ITEMS + 1
    scores = model.user_factors @ model.item_factors[N_ITEMS]
    assert scores[::2].min() > scores[1::2].max()
    likes_it = sp.csr_matrix(([1.0], ([0], [N_ITEMS])), shape=(1, N_ITEMS + 1))
    ids, _ = model.recommend(0, likes_it, N=5, recalculate_user=True)
    assert (ids % 2 == 0).all()
    model.partial_fit_users([N_USERS + 1], likes_it)
    assert model.user_factors.shape[0] == N_USERS + 2
    assert not model.user_factors[N_USERS].any()


def test_graphs_are_the_strongest_cosines_and_are_made_once(model):
    graph = model.item_graph_
    assert graph is model.item_graph_
    expected = nearest_neighbors_graph(model.item_factors, 20, "cosine")
    np.testing.assert_allclose(graph.to_scipy().toarray(), expected.toarray())
    assert model.user_graph_.kind == "user"
    few, every = (fitted(graph_neighbors=neighbors) for neighbors in (3, None))
    assert (few.user_graph_.to_scipy() > 0).sum() < (model.user_graph_.to_scipy() > 0).sum()
    assert (every.item_graph_.to_scipy() > 0).sum() > (graph.to_scipy() > 0).sum()


@pytest.mark.data
def test_untouched_it_ranks_movielens_above_als(data_root):
    train, test = likes(load_movielens(data_root, variant="100k"), seed=23)
    model = fitted(train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # OpenBLAS has threads
        als = AlternatingLeastSquares(128, 45.0, 7.0, num_threads=1, random_state=0)  # the best of a search
    als.fit(train, show_progress=False)
    ours, theirs = (evaluation.ndcg_at_k(each, train, test, show_progress=False) for each in (model, als))
    assert ours > theirs - 0.01
