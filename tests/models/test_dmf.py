"""`AIR` without its learned graphs: with graphs that are given (DirichletDMF), with total variation (RDMF)."""

import re
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from model_cases import CPU, ITEMS, N_ITEMS, N_USERS, USERS, all_scores, by_paper, dense, frame
from scipy.ndimage import gaussian_filter
from sklearn.base import clone

from air_recsys import DMF, SimilarityGraph
from air_recsys.data.interactions import as_interactions
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.graphs.neighbors import cosine_neighbors
from air_recsys.models import RDMF, DirichletDMF, Recommender

fast: dict[str, Any] = {"n_epochs": 60, "init_std": 0.1, "dtype": "float64", **CPU}
given_graphs = partial(DirichletDMF, user_graph_reg=0.01, item_graph_reg=0.02, **fast)


def random_graph(size, seed=0, share=0.4):
    rng = np.random.default_rng(seed)
    upper = np.triu(np.where(rng.random((size, size)) < share, rng.uniform(0.1, 2, (size, size)), 0), k=1)
    return upper + upper.T


USER_GRAPH, ITEM_GRAPH = random_graph(N_USERS), random_graph(N_ITEMS, seed=1)


def assert_same(first, second):
    np.testing.assert_array_equal(all_scores(first), all_scores(second))


# -------------------------------------------------------------------- given graphs: every form


@pytest.mark.parametrize(
    "form", [np.asarray, sp.csr_array, sp.csc_matrix, np.ndarray.tolist], ids=lambda f: f.__name__
)
def test_a_matrix_of_any_form_is_the_graph_of_the_fit(form):
    model = given_graphs(form(USER_GRAPH), form(ITEM_GRAPH)).fit(frame())
    for adjacency, expected in ((model.user_adjacency_, USER_GRAPH), (model.item_adjacency_, ITEM_GRAPH)):
        assert adjacency is not None
        np.testing.assert_array_equal(adjacency.toarray(), expected)
    assert model.user_graph_ is not None
    assert model.user_graph_.ids.tolist() == USERS
    assert_same(model, given_graphs(USER_GRAPH, ITEM_GRAPH).fit(frame()))


def test_a_similarity_graph_is_matched_by_its_ids():
    rng = np.random.default_rng(3)
    users, items = rng.permutation(N_USERS), rng.permutation(N_ITEMS)
    user_graph = SimilarityGraph(USER_GRAPH[np.ix_(users, users)], np.array(USERS)[users], "user")
    item_graph = SimilarityGraph(ITEM_GRAPH[np.ix_(items, items)], np.array(ITEMS)[items], "item")
    model = given_graphs(user_graph, item_graph).fit(frame())
    assert model.user_adjacency_ is not None
    np.testing.assert_array_equal(model.user_adjacency_.toarray(), USER_GRAPH)
    assert_same(model, given_graphs(USER_GRAPH, ITEM_GRAPH).fit(frame()))


def test_users_that_a_graph_does_not_know_stay_isolated_and_others_are_left_out():
    known = [7, 2, 4, 9, 0]
    graph = np.zeros((8, 8))
    graph[:5, :5] = USER_GRAPH[np.ix_(known, known)]
    graph[5:, :], graph[:, 5:] = 1.0, 1.0  # strangers tied to everyone
    names = [*np.array(USERS)[known], "stranger", "u99", "nobody"]
    expected = np.zeros_like(USER_GRAPH)
    expected[np.ix_(known, known)] = USER_GRAPH[np.ix_(known, known)]
    model = given_graphs(SimilarityGraph(graph, names), None).fit(frame())
    assert model.user_adjacency_ is not None
    np.testing.assert_array_equal(model.user_adjacency_.toarray(), expected)
    assert_same(model, given_graphs(expected, None).fit(frame()))


@pytest.mark.parametrize("k", [1, 3, 50])
def test_neighbors_are_those_of_the_centred_ratings(k):
    data = as_interactions(frame())
    centred = data.to_csr()
    centred.data = centred.data - centred.data.mean()
    users, items = cosine_neighbors(centred, k), cosine_neighbors(sp.csr_array(centred.T), k)
    model = given_graphs(n_neighbors=k).fit(frame())
    assert model.user_adjacency_ is not None
    assert model.item_adjacency_ is not None
    np.testing.assert_allclose(model.user_adjacency_.toarray(), users.toarray(), atol=1e-6)
    np.testing.assert_allclose(model.item_adjacency_.toarray(), items.toarray(), atol=1e-6)
    np.testing.assert_allclose(all_scores(model), all_scores(given_graphs(users, items).fit(frame())), rtol=1e-6)


@pytest.mark.parametrize(
    "options", [{"user_graph": None, "item_graph": None}, {"user_graph_reg": 0.0, "item_graph_reg": 0}]
)
def test_without_graphs_it_is_plain_dmf(options):
    model = given_graphs(**options).fit(frame())
    assert model.user_graph_ is None
    assert model.item_graph_ is None
    assert_same(model, DMF(**fast).fit(frame()))


def test_an_empty_graph_costs_nothing():
    model = given_graphs(np.zeros_like(USER_GRAPH), None).fit(frame())
    assert (model.history_["user_energy"].to_numpy() == 0).all()
    assert_same(model, DMF(**fast).fit(frame()))


def test_the_energies_of_the_history_are_those_of_the_given_graphs():
    model = given_graphs(USER_GRAPH, ITEM_GRAPH, scale=False).fit(frame())
    scores = all_scores(model).reshape(N_USERS, N_ITEMS)
    for side, graph, rows in (("user", USER_GRAPH, scores), ("item", ITEM_GRAPH, scores.T)):
        matrix = np.diag(graph.sum(axis=1)) - graph
        energy = model.history_[f"{side}_energy"].iloc[-1]
        assert energy == pytest.approx(np.trace(rows.T @ matrix @ rows), rel=1e-6)
    last = model.history_.iloc[-1]
    total = last["fit"] + 0.01 * last["user_energy"] + 0.02 * last["item_energy"]
    assert last["objective"] == pytest.approx(total, rel=1e-10)


def test_given_graphs_go_with_few_factors_too():
    wide, narrow = (given_graphs(USER_GRAPH, ITEM_GRAPH, n_factors=width).fit(frame()) for width in (None, 3))
    assert narrow.user_factors_.shape == (N_USERS, 3)
    assert narrow.user_graph_ is not None
    assert wide.user_graph_ is not None
    np.testing.assert_array_equal(narrow.user_graph_.to_scipy().toarray(), wide.user_graph_.to_scipy().toarray())


# -------------------------------------------------------------------- given graphs: what is refused

LOPSIDED, NEGATIVE = USER_GRAPH.copy(), USER_GRAPH.copy()
LOPSIDED[0, 1] = 3.5
NEGATIVE[0, 1] = NEGATIVE[1, 0] = -1.0
BAD_GRAPHS = {
    "wrong size": (USER_GRAPH[:-1, :-1], DataError),
    "not square": (USER_GRAPH[:, :-1], DataError),
    "asymmetric": (LOPSIDED, DataError),
    "negative": (NEGATIVE, DataError),
    "not finite": (np.where(np.eye(N_USERS)[::-1] > 0, np.nan, USER_GRAPH), DataError),
    "unknown ids": (SimilarityGraph(USER_GRAPH, range(N_USERS)), DataError),
    "wrong name": ("cosine", ParameterError),
    "reserved name": ("given", ParameterError),
    "auto": ("auto", ParameterError),
    "a number": (5, (DataError, ParameterError)),
    "ragged": ([[0.0, 1.0], [1.0]], (DataError, ParameterError)),
    "text": ([["a"] * N_USERS] * N_USERS, (DataError, ParameterError)),
}


@pytest.mark.parametrize(("graph", "error"), BAD_GRAPHS.values(), ids=BAD_GRAPHS)
def test_a_bad_graph_is_named_before_any_work(graph, error):
    model = given_graphs(user_graph=graph)
    with pytest.raises(error, match="user_graph"):
        model.fit(frame())
    assert not hasattr(model, "interactions_")


def test_the_graph_of_the_items_is_named_too():
    with pytest.raises(
        DataError,
        match=f"^item_graph must be a graph over the items: expected an adjacency of {N_ITEMS} x {N_ITEMS}, .*shape",
    ):
        given_graphs(item_graph=USER_GRAPH).fit(frame())
    with pytest.raises(ParameterError, match=r'^item_graph must be a graph, a matrix, "neighbors" or None, found'):
        given_graphs(item_graph="neighbours").fit(frame())


@pytest.mark.parametrize("name", ["user_graph_reg", "item_graph_reg"])
@pytest.mark.parametrize("value", [-1, np.nan, None])
def test_a_bad_strength_is_named(name, value):
    with pytest.raises(
        ParameterError, match=f"^{name} must be 'auto' or a number >= 0, found {re.escape(repr(value))}"
    ):
        DirichletDMF(**{name: value, **fast}).fit(frame())


@pytest.mark.parametrize("value", [0, 2.5, "3", None])
def test_a_bad_number_of_neighbors_is_named(value):
    with pytest.raises(ParameterError, match=r"^n_neighbors must be an integer >= 1, found"):
        DirichletDMF(n_neighbors=value, **fast).fit(frame())


@pytest.mark.parametrize("kind", [DMF, RDMF, DirichletDMF])
@pytest.mark.parametrize("preset", ["completion", "interactions", "ratings"])
def test_presets_that_are_offered_can_be_fitted(kind, preset):
    getattr(kind, f"for_{preset}")(n_epochs=2, **CPU).fit(dense())


# -------------------------------------------------------------------- given graphs: files and copies


@pytest.mark.parametrize(
    ("user_graph", "item_graph"),
    [
        (USER_GRAPH, "neighbors"),
        (SimilarityGraph(USER_GRAPH[:8, :8], [*USERS[6:0:-1], "stranger", "other"]), sp.csr_array(ITEM_GRAPH)),
        (None, ITEM_GRAPH.tolist()),
        ("neighbors", None),
    ],
    ids=["matrix", "SimilarityGraph", "list", "names"],
)
def test_graphs_come_back_from_a_file_and_a_second_fit_is_the_same(user_graph, item_graph, tmp_path):
    model = given_graphs(user_graph, item_graph).fit(frame())
    again = Recommender.load(model.save(tmp_path / "model.air"))
    assert isinstance(again, DirichletDMF)
    for name in ("user_graph_", "item_graph_"):
        found, expected = getattr(again, name), getattr(model, name)
        assert (found is None) is (expected is None)
        if expected is not None:
            np.testing.assert_array_equal(found.to_scipy().toarray(), expected.to_scipy().toarray())
            assert found.ids.tolist() == expected.ids.tolist()
    assert_same(again, model)
    copy: Any = clone(again)
    assert_same(copy.fit(frame()), model)
    once_more = DirichletDMF.load(again.save(tmp_path / "again.air"))
    assert_same(once_more.fit(frame()), model)


def test_a_given_graph_without_strength_is_not_needed_after_loading(tmp_path):
    model = given_graphs(USER_GRAPH, None, user_graph_reg=0.0).fit(frame())
    again = DirichletDMF.load(model.save(tmp_path / "model.air"))
    assert_same(again.fit(frame()), model)


def test_parameters_round_trip_through_clone_and_fit_leaves_them():
    kept = USER_GRAPH.copy()
    model = given_graphs(kept, SimilarityGraph(ITEM_GRAPH, ITEMS))
    copy: Any = clone(model)
    assert_same(copy.fit(frame()), model.fit(frame()))
    assert model.user_graph is kept
    np.testing.assert_array_equal(kept, USER_GRAPH)
    assert "user_graph" in repr(model)


# -------------------------------------------------------------------- DMF


def test_like_takes_what_dmf_has_and_leaves_the_graphs():
    options = {"depth": 4, "n_factors": 3, "n_epochs": 7, "transforms": [("rows", 1.0)], "user_graph_reg": 0.5}
    source = by_paper(**options, **CPU)
    model = DMF.like(source)
    assert type(model) is DMF
    expected = source.get_params(deep=False) | source.solver.get_params()
    assert model.get_params() == {name: expected[name] for name in DMF().get_params()}
    assert not {"transforms", "tv_reg", "user_graph_reg", "snapshot_epochs"} & set(model.get_params())
    model.fit(dense())
    assert model.user_graph_ is None
    assert model.transform_graphs_ == []
    assert model.snapshots_ == {}


def test_total_variation_of_no_strength_is_plain_dmf():
    assert_same(RDMF(tv_reg=0.0, **fast).fit(frame()), DMF(**fast).fit(frame()))


# -------------------------------------------------------------------- known answers


def hidden(truth, share, seed):
    return np.random.default_rng(seed).random(truth.shape) < share


def error_on(model, truth, mask):
    scores = model.user_factors_ @ model.item_factors_.T
    return np.sqrt(np.square(scores - truth)[mask].mean())


@pytest.mark.parametrize("seed", [0, 1])
def test_the_right_graph_beats_none(seed):
    """Eight groups of three users who rate alike: too many groups for depth alone to find."""
    truth = np.repeat(np.random.default_rng(seed).uniform(1, 5, (8, 20)), 3, axis=0)  # (24, 20)
    mask = hidden(truth, 0.5, seed)
    ratings = np.where(mask, np.nan, truth)
    cliques = np.kron(np.eye(8), np.ones((3, 3)) - np.eye(3))
    options = {"n_epochs": 1500, "learning_rate": 3e-3, "init_std": 0.05, **CPU}
    plain = DMF(**options).fit(ratings)
    helped = DirichletDMF(cliques, None, user_graph_reg=1e-3, **options).fit(ratings)
    alike = np.repeat(mask.reshape(8, 3, 20).all(axis=1), 3, axis=0)  # hidden from the whole group
    assert error_on(helped, truth, mask & ~alike) < 0.5 * error_on(plain, truth, mask & ~alike)


@pytest.mark.parametrize("seed", [0, 1])
def test_total_variation_restores_a_smooth_surface(seed):
    surface = gaussian_filter(np.random.default_rng(seed).normal(size=(24, 24)), 2.0)
    surface = 1 + (surface - surface.min()) / np.ptp(surface)
    mask = hidden(surface, 0.5, seed)
    ratings = np.where(mask, np.nan, surface)
    options = {"n_epochs": 1500, "learning_rate": 3e-3, "init_std": 0.05, **CPU}
    plain, smooth = (model.fit(ratings) for model in (DMF(**options), RDMF(tv_reg=3e-3, **options)))
    assert error_on(smooth, surface, mask) < 0.8 * error_on(plain, surface, mask)
