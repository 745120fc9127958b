"""The embedding of a graph: vectors of unit length, close where nodes are well connected."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys.graphs.embedding import graph_embedding


def groups(sizes, inside=0.6, between=0.02, seed=0):
    """A random graph in groups, and the group of each node."""
    rng, of_node = np.random.default_rng(seed), np.repeat(np.arange(len(sizes)), sizes)
    chance = np.where(of_node[:, None] == of_node, inside, between)
    upper = np.triu(rng.random(chance.shape) < chance, 1)
    return sp.csr_array((upper + upper.T).astype(float)), of_node


def products(adjacency, n_dims):
    found = graph_embedding(adjacency, n_dims).astype(np.float64)
    return found @ found.T


def test_vectors_have_unit_length_but_for_nodes_without_edges():
    adjacency, _ = groups([20, 20])
    lonely = sp.csr_array(sp.block_diag([adjacency, sp.csr_array((3, 3))]))
    found = graph_embedding(lonely, 10)
    assert found.shape == (43, 10)
    np.testing.assert_allclose(np.linalg.norm(found[:40], axis=1), 1, atol=1e-5)
    assert not found[40:].any()


def test_nodes_of_a_group_are_close():
    adjacency, of_node = groups([20, 25, 30])
    found, same = products(adjacency, 8), (of_node[:, None] == of_node) & ~np.eye(75, dtype=bool)
    assert found[same].mean() > 0.5
    assert found[of_node[:, None] != of_node].mean() < -0.1


def test_all_dimensions_give_the_regularized_kernel():
    adjacency, _ = groups([10, 12])
    lonely = sp.csr_array(sp.block_diag([adjacency, sp.csr_array((1000, 1000))]))  # so that the mean is small
    roots = adjacency.sum(axis=1) ** -0.5
    scaled = roots[:, None] * adjacency.toarray() * roots
    kernel = np.linalg.inv(np.eye(22) - 0.97 * scaled)
    lengths = np.sqrt(kernel.diagonal())
    found = graph_embedding(lonely, 100)[:22]
    np.testing.assert_allclose(found @ found.T, kernel / np.outer(lengths, lengths), atol=0.05)


def test_a_pair_among_many_without_edges_is_close():
    found = graph_embedding(sp.csr_array(sp.block_diag([np.array([[0.0, 1.0], [1.0, 0.0]]), np.zeros((50, 50))])), 5)
    assert found[0] @ found[1] > 0.95


def test_more_components_than_dimensions_stay_apart():
    pairs = sp.csr_array(sp.block_diag([np.array([[0.0, 1.0], [1.0, 0.0]])] * 200))
    found = products(pairs, 50)
    together = np.arange(400) // 2
    np.testing.assert_allclose(found[together[:, None] == together], 1, atol=1e-4)
    assert np.sqrt(np.mean(found[together[:, None] != together] ** 2)) < 0.25


def test_the_unit_of_the_weights_does_not_matter():
    adjacency, _ = groups([15, 15])
    np.testing.assert_allclose(products(1000 * adjacency, 6), products(adjacency, 6), atol=1e-4)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_graph_without_edges_has_no_embedding(n):
    assert graph_embedding(sp.csr_array((n, n)), 10).shape == (n, 0)
