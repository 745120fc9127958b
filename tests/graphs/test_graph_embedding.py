"""The embedding of a graph: vectors of unit length, close where nodes are well connected."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from graph_cases import planted

from air_recsys.graphs.embedding import graph_embedding

PAIR = np.array([[0.0, 1.0], [1.0, 0.0]])


def beside(adjacency, n_lonely):
    """A graph and nodes without edges."""
    return sp.csr_array(sp.block_diag([adjacency, sp.csr_array((n_lonely, n_lonely))]))


def test_nodes_of_a_group_are_close_at_unit_length_in_any_unit_of_the_weights():
    graph, groups = planted((25, 20, 30))
    adjacency = graph.to_scipy()
    found, same = graph_embedding(beside(adjacency, 3), 8), (groups[:, None] == groups) & ~np.eye(75, dtype=bool)
    assert found.shape == (78, 8)
    np.testing.assert_allclose(np.linalg.norm(found[:75], axis=1), 1, atol=1e-5)
    assert not found[75:].any()
    products = found[:75] @ found[:75].T
    assert products[same].mean() > 0.5
    assert products[groups[:, None] != groups].mean() < -0.1
    scaled = graph_embedding(beside(1000 * adjacency, 3), 8)[:75]
    np.testing.assert_allclose(scaled @ scaled.T, products, atol=1e-4)


def test_all_dimensions_give_the_regularized_kernel():
    adjacency = planted((10, 12))[0].to_scipy()
    roots = adjacency.sum(axis=1) ** -0.5
    kernel = np.linalg.inv(np.eye(22) - 0.97 * roots[:, None] * adjacency.toarray() * roots)
    lengths = np.sqrt(kernel.diagonal())
    found = graph_embedding(beside(adjacency, 1000), 100)[:22]  # lonely ones so that the mean is small
    np.testing.assert_allclose(found @ found.T, kernel / np.outer(lengths, lengths), atol=0.05)


def test_a_pair_among_many_without_edges_is_close():
    found = graph_embedding(beside(PAIR, 50), 5)
    assert found[0] @ found[1] > 0.95


def test_more_components_than_dimensions_stay_apart():
    found = graph_embedding(sp.csr_array(sp.block_diag([PAIR] * 200)), 50).astype(np.float64)
    products, together = found @ found.T, np.arange(400) // 2
    np.testing.assert_allclose(products[together[:, None] == together], 1, atol=1e-4)
    assert np.sqrt(np.mean(products[together[:, None] != together] ** 2)) < 0.25


def test_a_graph_without_edges_has_no_embedding():
    for n in (0, 1, 5):
        assert graph_embedding(sp.csr_array((n, n)), 10).shape == (n, 0)
