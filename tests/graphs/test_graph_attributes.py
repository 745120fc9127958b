"""Attributes and labels of the nodes, and ids that are not there."""

import numpy as np
import pandas as pd
import pytest
from graph_cases import HOSTILE, fails, films

from air_recsys import SimilarityGraph
from air_recsys.exceptions import ParameterError, UnknownIdError

PAIR = [[0.0, 1.0], [1.0, 0.0]]


def test_attributes_follow_the_order_of_the_ids_and_missing_ones_are_missing():
    found = films().attributes
    assert found.index.tolist() == [10, 20, 30, 40]
    assert found.index.name == "item"
    assert found["title"].tolist()[:3] == ["Äpfel (1990)", HOSTILE, "Plums (1991)"]
    assert found.loc[40].isna().all()
    assert found["year"].dtype == "Int64"


def test_labels_are_texts_and_fall_back_to_the_id():
    assert films().labels.tolist() == ["Äpfel (1990)", HOSTILE, "Plums (1991)", "40"]
    assert SimilarityGraph(PAIR, [7, 8]).labels.tolist() == ["7", "8"]
    numbers = pd.DataFrame({"year": [1990, 1991]}, index=[8, 7])
    assert SimilarityGraph(PAIR, [7, 8], attributes=numbers, label="year").labels.tolist() == ["1991", "1990"]


def test_a_graph_without_attributes_has_a_table_without_columns():
    graph = SimilarityGraph(PAIR, ["a", "b"], "user")
    assert graph.attributes.shape == (2, 0)
    assert graph.attributes.index.tolist() == ["a", "b"]
    assert graph.label is None


@pytest.mark.parametrize("column", [True, False])
def test_ids_stand_in_the_index_or_in_a_column_named_like_the_kind(column):
    table = pd.DataFrame({"title": ["A", "B"]}, index=["a", "b"])
    given = table.rename_axis("item").reset_index() if column else table
    graph = SimilarityGraph(PAIR, ["b", "a"], "item").with_attributes(given, label="title")
    assert graph.labels.tolist() == ["B", "A"]
    assert graph.attributes.columns.tolist() == ["title"]


def test_the_graph_shares_no_attributes_with_the_caller():
    table = pd.DataFrame({"title": ["A", "B"]}, index=["a", "b"])
    graph = SimilarityGraph(PAIR, ["a", "b"], attributes=table, label="title")
    table.loc["a", "title"] = "changed"
    copy = graph.attributes
    copy["title"] = "changed"
    assert graph.labels.tolist() == ["A", "B"]


def test_with_attributes_replaces_them_and_keeps_the_edges():
    graph = films()
    bare = graph.with_attributes(pd.DataFrame({"colour": ["red"]}, index=[20]))
    assert bare.label is None
    assert bare.attributes.columns.tolist() == ["colour"]
    assert graph.label == "title"
    assert (bare.to_scipy() != graph.to_scipy()).nnz == 0


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


def test_neighbors_carry_the_labels():
    found = films().neighbors(20)
    assert found.columns.tolist() == ["item", "label", "weight"]
    assert found["label"].tolist() == ["Plums (1991)", "Äpfel (1990)"]
    assert films().neighbors(40).columns.tolist() == ["item", "label", "weight"]


def test_tuples_are_ids_like_others():
    ids = [("a", 1), ("b", 2)]
    table = pd.DataFrame({"name": ["x", "y"]}, index=pd.Index(ids, tupleize_cols=False))
    graph = SimilarityGraph(PAIR, ids, attributes=table, label="name")
    assert graph.neighbors(("a", 1))["label"].tolist() == ["y"]
    assert graph.communities().index.tolist() == ids
    assert graph.communities().index.nlevels == 1


def test_the_repr_says_what_there_is():
    assert repr(films()) == (
        "SimilarityGraph(4 items, 2 edges, 1 isolated, 2 components, weights 0.1..0.333, labelled by 'title')"
    )
    assert repr(SimilarityGraph(np.zeros((0, 0)), [])) == "SimilarityGraph(0 nodes, 0 edges, 0 isolated, 0 components)"
    assert repr(SimilarityGraph([[0.0]], ["x"])) == "SimilarityGraph(1 node, 0 edges, 1 isolated, 1 component)"


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


@pytest.mark.skipif(int(pd.__version__.partition(".")[0]) < 3, reason="older pandas holds them; writing refuses them")
def test_ids_that_utf8_cannot_hold_are_named():
    with fails("expected ids that UTF-8 can hold, found 'odd \\ud800'"):
        SimilarityGraph(PAIR, ["odd \ud800", "b"])


def test_a_subgraph_names_no_node_twice():
    with fails("item ids must be distinct, found 10 twice"):
        films().subgraph([10, 10])
