"""`SimilarityGraph`: what it accepts, and what it answers about nodes, their neighbours, attributes and labels."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from graph_cases import HOSTILE, fails, fast, films, random_adjacency
from hypothesis import given
from hypothesis import strategies as st

from air_recsys import SimilarityGraph
from air_recsys.exceptions import ParameterError, UnknownIdError

PAIR = [[0.0, 1.0], [1.0, 0.0]]
TRIANGLE = [[0.0, 2.0, 1.0], [2.0, 0.0, 0.0], [1.0, 0.0, 0.0]]


# -------------------------------------------------------------------- what it accepts


@fast
@given(
    st.integers(1, 8), st.integers(0, 999), st.sampled_from([np.asarray, sp.csr_array, sp.coo_matrix, sp.csc_array])
)
def test_every_container_gives_the_same_graph(size, seed, container):
    adjacency = random_adjacency(size, seed)
    graph = SimilarityGraph(container(adjacency), range(size))
    np.testing.assert_array_equal(graph.to_scipy().toarray(), adjacency)
    assert len(graph) == size
    assert graph.n_edges == np.count_nonzero(adjacency) / 2


def test_diagonal_stored_zeros_and_what_float32_leaves_of_zero_are_ignored():
    adjacency = np.array([[9.0, 1.0, 1e-9], [1.0, 9.0, 2.0], [1e-9, 2.0, 0.0]])
    graph = SimilarityGraph(adjacency, "abc")
    assert graph.n_edges == 2
    assert graph.to_scipy().nnz == 4
    assert not graph.to_scipy().diagonal().any()
    matrix = sp.csr_array(np.array(TRIANGLE, dtype=np.int64))
    matrix.data[matrix.data == 1] = 0
    graph = SimilarityGraph(matrix, "abc")
    assert graph.n_edges == 1
    assert graph.to_scipy().dtype == np.float64


@pytest.mark.parametrize("unit", [1e-6, 1, 1e6])
def test_rounding_is_no_asymmetry_and_the_result_is_exactly_symmetric(unit):
    adjacency = unit * np.array(TRIANGLE)
    adjacency[0, 1] *= 1 + 1e-7
    matrix = SimilarityGraph(adjacency, "abc").to_scipy()
    assert (matrix != matrix.T).nnz == 0
    adjacency[0, 1] *= 1.1
    with fails("expected a symmetric adjacency, found a difference of"):
        SimilarityGraph(adjacency, "abc")


def test_the_graph_shares_no_memory_with_the_caller():
    given_matrix, table = sp.csr_array(TRIANGLE), pd.DataFrame({"title": [*"ABC"]}, index=[*"abc"])
    graph = SimilarityGraph(given_matrix, "abc", attributes=table, label="title")
    given_matrix.data[:] = 7
    graph.to_scipy().data[:] = 7
    table.loc["a", "title"] = "changed"
    copy = graph.attributes
    copy["title"] = "changed"
    np.testing.assert_array_equal(graph.to_scipy().toarray(), TRIANGLE)
    assert graph.labels.tolist() == [*"ABC"]


@pytest.mark.parametrize(
    ("adjacency", "ids", "message"),
    [
        (np.zeros((2, 3)), "abc", "expected an adjacency of 3 x 3, one row per id, found shape (2, 3)"),
        (np.zeros((2, 2)), "abc", "expected an adjacency of 3 x 3, one row per id, found shape (2, 2)"),
        (np.zeros(3), "abc", "expected an adjacency of 3 x 3"),
        (-np.array(TRIANGLE), "abc", "expected finite weights >= 0, found -2..-1"),
        (np.array(TRIANGLE) * np.nan, "abc", "expected finite weights >= 0, found nan"),
        ([[0, np.inf, 0], [np.inf, 0, 0], [0, 0, 0]], "abc", "expected finite weights >= 0, found inf..inf"),
        (np.triu(TRIANGLE), "abc", "expected a symmetric adjacency, found a difference of 2"),
        (TRIANGLE, "aba", "node ids must be distinct, found 'a' twice"),
        pytest.param(
            PAIR,
            ["odd \ud800", "b"],
            "expected ids that UTF-8 can hold, found 'odd \\ud800'",
            marks=pytest.mark.skipif(int(pd.__version__.partition(".")[0]) < 3, reason="older pandas holds them"),
        ),
    ],
)
def test_unusable_matrices_and_ids_are_named(adjacency, ids, message):
    with fails(message):
        SimilarityGraph(adjacency, ids)


# -------------------------------------------------------------------- neighbours


def test_neighbors_come_strongest_first_and_ties_in_the_order_of_ids():
    adjacency = np.zeros((5, 5))
    adjacency[2] = [1, 3, 0, 3, 1]
    graph = SimilarityGraph(adjacency + adjacency.T, [10, 11, 12, 13, 14], "item")
    expected = pd.DataFrame({"item": [11, 13, 10, 14], "weight": [3.0, 3.0, 1.0, 1.0]})
    pd.testing.assert_frame_equal(graph.neighbors(12), expected)
    pd.testing.assert_frame_equal(graph.neighbors(12, n=2), expected.head(2))
    assert graph.neighbors(10)["item"].tolist() == [12]
    levels = np.random.default_rng(0).integers(1, 3, 60).astype(float)
    adjacency = np.zeros((61, 61))
    adjacency[60, :60] = adjacency[:60, 60] = levels
    found = SimilarityGraph(adjacency, range(61)).neighbors(60, n=60)["node"]
    assert found.tolist() == [*np.flatnonzero(levels == 2), *np.flatnonzero(levels == 1)]


def test_ten_neighbors_come_where_no_number_is_asked_for_and_at_least_one_must_be():
    assert len(SimilarityGraph(1 - np.eye(13), range(13)).neighbors(0)) == 10
    with fails("n must be an integer >= 1, found 0", ParameterError):
        films().neighbors(20, n=0)


@fast
@given(st.integers(2, 8), st.integers(0, 999), st.randoms())
def test_permuting_the_nodes_changes_no_answer(size, seed, random):
    adjacency = random_adjacency(size, seed, density=0.9)
    order = random.sample(range(size), size)
    graph = SimilarityGraph(adjacency, range(size))
    moved = SimilarityGraph(adjacency[np.ix_(order, order)], order)
    for node in range(size):
        pd.testing.assert_frame_equal(moved.neighbors(node), graph.neighbors(node))


def test_neighbors_carry_the_labels_also_of_a_node_that_has_none():
    found = films().neighbors(20)
    assert found.columns.tolist() == ["item", "label", "weight"]
    assert found["label"].tolist() == ["Plums (1991)", "Äpfel (1990)"]
    found = films().neighbors(40)
    assert found.empty
    assert found.columns.tolist() == ["item", "label", "weight"]


# -------------------------------------------------------------------- attributes and labels


def test_attributes_follow_the_order_of_the_ids_and_missing_ones_are_missing():
    found = films().attributes
    assert found.index.tolist() == [10, 20, 30, 40]
    assert found.index.name == "item"
    assert found["title"].tolist()[:3] == ["Äpfel (1990)", HOSTILE, "Plums (1991)"]
    assert found.loc[40].isna().all()
    assert found["year"].dtype == "Int64"


def test_labels_are_texts_and_fall_back_to_the_id():
    assert films().labels.tolist() == ["Äpfel (1990)", HOSTILE, "Plums (1991)", "40"]
    numbers = pd.DataFrame({"year": [1990, 1991]}, index=[8, 7])
    assert SimilarityGraph(PAIR, [7, 8], attributes=numbers, label="year").labels.tolist() == ["1991", "1990"]
    bare = SimilarityGraph(PAIR, ["a", "b"], "user")
    assert bare.labels.tolist() == ["a", "b"]
    assert bare.attributes.shape == (2, 0)
    assert bare.attributes.index.tolist() == ["a", "b"]
    assert bare.label is None


@pytest.mark.parametrize("column", [True, False])
def test_ids_stand_in_the_index_or_in_a_column_named_like_the_kind(column):
    table = pd.DataFrame({"title": ["A", "B"]}, index=["a", "b"])
    given = table.rename_axis("item").reset_index() if column else table
    graph = SimilarityGraph(PAIR, ["b", "a"], "item").with_attributes(given, label="title")
    assert graph.labels.tolist() == ["B", "A"]
    assert graph.attributes.columns.tolist() == ["title"]


@pytest.mark.parametrize(
    "cut",
    [
        lambda graph: graph.top(1),
        lambda graph: graph.threshold(0.2),
        lambda graph: graph.mass(0.5),
        lambda graph: graph.ego(20),
        lambda graph: graph.ego(40),
        lambda graph: graph.subgraph([30, 10]),
    ],
)
def test_attributes_and_labels_travel(cut):
    whole = films()
    found = cut(whole)
    assert found.kind == "item"
    assert found.label == "title"
    pd.testing.assert_frame_equal(found.attributes, whole.attributes.loc[found.ids])
    known = dict(zip(whole.ids.tolist(), whole.labels.tolist(), strict=True))
    assert found.labels.tolist() == [known[id] for id in found.ids.tolist()]


def test_tuples_are_ids_like_others():
    ids = [("a", 1), ("b", 2)]
    table = pd.DataFrame({"name": ["x", "y"]}, index=pd.Index(ids, tupleize_cols=False))
    graph = SimilarityGraph(PAIR, ids, attributes=table, label="name")
    assert graph.neighbors(("a", 1))["label"].tolist() == ["y"]
    assert graph.communities().index.tolist() == ids
    assert graph.communities().index.nlevels == 1


@pytest.mark.parametrize(
    ("table", "label", "message", "error"),
    [
        ({"title": ["A"]}, None, "expected a DataFrame of attributes, found dict", ValueError),
        (pd.DataFrame({"t": ["A"]}, index=[7]), "title", "label must be one of 't', found 'title'", ParameterError),
        (None, "title", "label must be one of , found 'title'", ParameterError),
        (pd.DataFrame({"t": ["A", "B"]}, index=[7, 7]), None, "item ids must be distinct, found 7 twice", ValueError),
        (pd.DataFrame([["A", 1]], [7], ["t", "t"]), None, "expected distinct columns of attributes", ValueError),
        (
            pd.DataFrame({"t": ["A"]}, index=["7"]),
            None,
            "expected attributes of some of the items, found none: the table's ids are such as '7', the graph's such "
            "as 7",
            ValueError,
        ),
    ],
)
def test_unusable_attributes_are_named(table, label, message, error):
    with fails(message, error):
        SimilarityGraph(PAIR, [7, 8], "item", attributes=table, label=label)


# -------------------------------------------------------------------- ids that are not there


@pytest.mark.parametrize(
    ("id", "hint"),
    [
        ("30", "the nearest are 30 ('Plums (1991)')"),  # another type
        ("plums 1991", "the nearest are 30 ('Plums (1991)')"),  # a title, nearly
        (300, "the nearest are 30 ('Plums (1991)')"),
        ("Eggs", "none is near; the ids are such as 10 ('Äpfel (1990)'), 20 ("),
    ],
)
def test_an_unknown_id_is_told_the_nearest(id, hint):
    with fails(f"1 item id(s) were not in the training data: {id!r}; {hint}", UnknownIdError):
        films().neighbors(id)


def test_every_question_about_a_node_knows_unknown_ids():
    for ask in (lambda graph: graph.ego("n9"), lambda graph: graph.subgraph(["n0", "n1", "n9"])):
        with fails("1 node id(s) were not in the training data: 'n9'; the nearest are 'n1', 'n0'", UnknownIdError):
            ask(SimilarityGraph(PAIR, ["n0", "n1"]))
    with fails("'x'; the graph has no nodes", UnknownIdError):
        SimilarityGraph(np.zeros((0, 0)), []).neighbors("x")
    with fails("item ids must be distinct, found 10 twice"):
        films().subgraph([10, 10])
