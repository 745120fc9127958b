"""What stands beside `AIR`: the mean, the biases, and `DMF`, with given graphs or with total variation."""

from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from covering import covering
from model_cases import CPU, N_ITEMS, N_USERS, USERS, by_paper, dense, fails, frame

from air_recsys import AIR, DMF, BiasModel, GlobalMean, SimilarityGraph
from air_recsys.data.interactions import as_interactions
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.graphs.neighbors import cosine_neighbors
from air_recsys.models import RDMF, DirichletDMF, Recommender
from air_recsys.testing import all_scores

# -------------------------------------------------------------------- the mean and the biases


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
    found = BiasModel(0.0).fit(array).predict([0, 3], [0, 2])
    np.testing.assert_allclose(found, [truth[0, 0], truth[3, 2]], atol=1e-9)
    with fails(ParameterError, "bias_decay must be a number >= 0, found -1"):
        BiasModel(-1).fit(dense())


# -------------------------------------------------------------------- DMF

fast: dict[str, Any] = {"n_epochs": 60, "init_std": 0.1, "dtype": "float64", **CPU}
given_graphs = partial(DirichletDMF, user_graph_reg=0.01, item_graph_reg=0.02, **fast)


def random_graph(size, seed=0):
    rng = np.random.default_rng(seed)
    upper = np.triu(np.where(rng.random((size, size)) < 0.4, rng.uniform(0.1, 2, (size, size)), 0), k=1)
    return upper + upper.T


USER_GRAPH, ITEM_GRAPH = random_graph(N_USERS), random_graph(N_ITEMS, seed=1)


def assert_same(first, second):
    np.testing.assert_array_equal(all_scores(first), all_scores(second))


@cache
def with_both_graphs():
    return given_graphs(USER_GRAPH, ITEM_GRAPH).fit(frame())


@cache
def plain_dmf():
    return DMF(**fast).fit(frame())


def test_dmf_is_air_without_graphs():
    options = CPU | {"n_epochs": 40, "init_std": 0.1, "schedule": "linear"}
    plain = DMF(**options).fit(dense())
    air = by_paper(user_graph_reg=0.0, item_graph_reg=0.0, **options).fit(dense())
    np.testing.assert_array_equal(plain.user_factors_, air.user_factors_)
    assert (plain.user_graph_, plain.item_graph_) == (None, None)
    assert (plain.transform_graphs_, plain.snapshots_) == ([], {})


@pytest.mark.parametrize("preset", ["for_completion", "for_ratings", "for_interactions"])
def test_dmf_like_a_model_and_its_own_presets_have_the_same_parameters(preset):
    air = getattr(AIR, preset)(solver="adam", n_epochs=7, **CPU)
    like, own = DMF.like(air), getattr(DMF, preset)(n_epochs=7, **CPU)
    assert own.get_params() == like.get_params()
    # But for the width, what is "auto" was chosen with graphs in mind: DMF has its own numbers.
    parameters = air.get_params(deep=False) | air.solver.get_params()
    taken = {name: value for name, value in parameters.items() if value != "auto" or name == "n_factors"}
    assert like.get_params() == {name: taken.get(name, value) for name, value in DMF().get_params().items()}
    assert not {"adjacency", "transforms", "tv_reg", "user_graph_reg", "snapshot_epochs"} & set(own.get_params())


@pytest.mark.parametrize(
    ("kind", "preset"),
    covering([DMF, RDMF, DirichletDMF, DMF], ["ratings", "completion", "interactions"]),
)
def test_presets_that_are_offered_can_be_fitted(kind, preset):
    assert np.isfinite(getattr(kind, f"for_{preset}")(n_epochs=2, **CPU).fit(dense()).predict(0, 0)).all()


@pytest.mark.parametrize(
    "model",
    [
        given_graphs(None, None),
        given_graphs(user_graph_reg=0.0, item_graph_reg=0),
        given_graphs(np.zeros_like(USER_GRAPH), None),
        RDMF(tv_reg=0.0, **fast),
    ],
    ids=["no graphs", "no strength", "no edges", "no variation"],
)
def test_what_costs_nothing_is_plain_dmf(model):
    assert_same(model.fit(frame()), plain_dmf())
    assert (model.history_["user_energy"].to_numpy() == 0).all()
    assert (model.user_graph_ is None) == (getattr(model, "user_graph", None) is None or model.user_graph_reg == 0)


# -------------------------------------------------------------------- given graphs


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


@pytest.mark.parametrize("k", [3, 50])
def test_neighbors_are_those_of_the_centred_ratings(k):
    data = as_interactions(frame())
    centred = data.to_csr()
    centred.data = centred.data - centred.data.mean()
    users, items = cosine_neighbors(centred, k), cosine_neighbors(sp.csr_array(centred.T), k)
    model = given_graphs(n_neighbors=k).fit(frame())
    for adjacency, expected in ((model.user_adjacency_, users), (model.item_adjacency_, items)):
        assert adjacency is not None
        np.testing.assert_allclose(adjacency.toarray(), expected.toarray(), atol=1e-6)
    np.testing.assert_allclose(all_scores(model), all_scores(given_graphs(users, items).fit(frame())), rtol=1e-6)


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


LOPSIDED, NEGATIVE = USER_GRAPH.copy(), USER_GRAPH.copy()
LOPSIDED[0, 1] = 3.5
NEGATIVE[0, 1] = NEGATIVE[1, 0] = -1.0
BAD_GRAPHS = {
    "wrong size": USER_GRAPH[:-1, :-1],
    "not square": USER_GRAPH[:, :-1],
    "asymmetric": LOPSIDED,
    "negative": NEGATIVE,
    "not finite": np.where(np.eye(N_USERS)[::-1] > 0, np.nan, USER_GRAPH),
    "unknown ids": SimilarityGraph(USER_GRAPH, range(N_USERS)),
    "wrong name": "cosine",
    "reserved name": "given",
    "auto": "auto",
    "a number": 5,
    "ragged": [[0.0, 1.0], [1.0]],
    "text": [["a"] * N_USERS] * N_USERS,
}


@pytest.mark.parametrize("graph", BAD_GRAPHS.values(), ids=BAD_GRAPHS)
def test_a_bad_graph_is_named_before_any_work(graph):
    model = given_graphs(user_graph=graph)
    with pytest.raises(ParameterError if isinstance(graph, str) else (DataError, ParameterError), match="user_graph"):
        model.fit(frame())
    assert not hasattr(model, "interactions_")


def test_the_graph_of_the_items_is_named_too():
    size = f"{N_ITEMS} x {N_ITEMS}"
    with fails(DataError, f"item_graph must be a graph over the items: expected an adjacency of {size}, "):
        given_graphs(item_graph=USER_GRAPH).fit(frame())
    with fails(ParameterError, 'item_graph must be a graph, a matrix, "neighbors" or None, found'):
        given_graphs(item_graph="neighbours").fit(frame())


# -------------------------------------------------------------------- given graphs: files and copies


@pytest.mark.parametrize(
    ("user_graph", "item_graph", "options"),
    [
        (USER_GRAPH, "neighbors", {}),
        (SimilarityGraph(USER_GRAPH[:8, :8], [*USERS[6:0:-1], "stranger", "other"]), sp.csr_array(ITEM_GRAPH), {}),
        (sp.csc_matrix(USER_GRAPH), ITEM_GRAPH.tolist(), {}),
        (USER_GRAPH, None, {"user_graph_reg": 0.0}),
    ],
    ids=["neighbors", "SimilarityGraph", "forms", "not needed"],
)
def test_graphs_come_back_from_a_file_and_a_second_fit_is_the_same(user_graph, item_graph, options, tmp_path):
    model = given_graphs(user_graph, item_graph, **options).fit(frame())
    again = Recommender.load(model.save(tmp_path / "model.air"))
    assert isinstance(again, DirichletDMF)
    if isinstance(item_graph, list):
        assert_same(again, with_both_graphs())
    for name in ("user_graph_", "item_graph_"):
        found, expected = getattr(again, name), getattr(model, name)
        assert (found is None) is (expected is None)
        if expected is not None:
            np.testing.assert_array_equal(found.to_scipy().toarray(), expected.to_scipy().toarray())
            assert found.ids.tolist() == expected.ids.tolist()
    assert_same(again, model)
    once_more = DirichletDMF.load(again.save(tmp_path / "again.air"))
    assert_same(once_more.fit(frame()), model)
