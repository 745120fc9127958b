"""The made graph of the explorer's tests and benchmark: its size, and that its edges stay within groups."""

import numpy as np
import pytest
from made_films import GraphSize, made_graph


@pytest.mark.parametrize("size", [GraphSize(60, 200, 3), GraphSize(500, 4_000, 7), GraphSize(30, 30, 1)])
def test_a_made_graph_has_the_size_that_is_asked_for_and_no_isolated_node(size):
    graph = made_graph(size)
    assert (len(graph), graph.n_edges) == (size.nodes, size.edges)
    assert (np.diff(graph.to_scipy().indptr) > 0).all()
    assert (graph.to_scipy().toarray() == made_graph(size).to_scipy().toarray()).all()


def test_made_edges_stay_within_groups():
    graph = made_graph(GraphSize(800, 4_000, 8))
    shelf = graph.attributes["shelf"].to_numpy()
    entries = graph.to_scipy().tocoo()
    assert np.mean(shelf[entries.row] == shelf[entries.col]) > 0.8
