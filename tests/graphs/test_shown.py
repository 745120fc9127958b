"""The numbers that people see on edges, and the order of equal ones."""

import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys import SimilarityGraph
from air_recsys.exceptions import DataError
from air_recsys.graphs.pruning import common_counts, support_of_ties, to_similarities


def weighted(seed=0, n=30):
    rng = np.random.default_rng(seed)
    half = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.4), 1)
    return sp.csr_array(half + half.T)


@pytest.mark.parametrize("unit", [1e-7, 1.0, 3e5])
def test_similarities_do_not_depend_on_the_unit_and_keep_the_order(unit):
    edges = weighted()
    shown = to_similarities(sp.csr_array(unit * edges))
    np.testing.assert_array_equal(shown.toarray(), to_similarities(edges).toarray())
    assert shown.data.max() == 1
    assert (np.diff(shown.data[np.argsort(edges.data)]) >= 0).all()
    np.testing.assert_allclose(shown.data, edges.data / edges.data.max(), rtol=5.1e-4)


def test_an_empty_graph_stays_empty():
    nothing = sp.csr_array((3, 3))
    assert to_similarities(nothing).nnz == support_of_ties(nothing, sp.csr_array(np.eye(3))).nnz == 0


def test_common_counts_are_those_of_the_rows():
    rows = (np.random.default_rng(1).random((20, 9)) < 0.5).astype(float)
    first, second = np.nonzero(np.ones((20, 20)))
    expected = (rows @ rows.T).ravel()
    np.testing.assert_array_equal(common_counts(sp.csr_array(rows), first, second), expected)
    assert common_counts(sp.csr_array(rows), [], []).size == 0


def test_support_orders_equal_weights_everywhere():
    ids = ["a", "b", "c", "d"]
    edges = sp.csr_array([[0, 1, 1, 1], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]])
    support = sp.csr_array([[0, 1, 5, 1], [1, 0, 0, 0], [5, 0, 0, 0], [1, 0, 0, 0]])
    graph = SimilarityGraph(edges, ids, "item", support=support)
    assert graph.neighbors("a")["item"].tolist() == ["c", "b", "d"]
    assert SimilarityGraph(edges, ids, "item").neighbors("a")["item"].tolist() == ["b", "c", "d"]
    first = graph.strongest_first()
    assert [ids[column] for column in first.col] == ["c", "b", "d"]
    for other in (graph.top(3), graph.mass(1), graph.with_attributes(graph.attributes), graph.ego("a")):
        assert other.neighbors("a")["item"].tolist() == ["c", "b", "d"]
    assert graph.subgraph(["d", "c", "a"]).neighbors("a")["item"].tolist() == ["c", "d"]
    with pytest.raises(DataError, match="expected support of the shape"):
        SimilarityGraph(edges, ids, support=sp.csr_array((3, 3)))
