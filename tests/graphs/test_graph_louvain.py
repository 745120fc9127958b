"""Louvain communities are those of NetworkX, node by node."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys.graphs.exports import networkx_graph
from air_recsys.graphs.louvain import louvain
from air_recsys.graphs.spectral import by_size


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("size", "density"), [(5, 0.5), (40, 0.2), (200, 0.04), (200, 0.005)])
@pytest.mark.parametrize("resolution", [0.7, 1.0, 2.0])
def test_the_division_is_that_of_networkx(seed, size, density, resolution):
    half = sp.triu(sp.random_array((size, size), density=density, rng=np.random.default_rng(seed), format="csr"), k=1)
    if seed % 2:
        half.data[:] = np.ceil(3 * half.data)  # ties
    adjacency = sp.csr_array(half + half.T)
    expected = np.empty(size, dtype=int)
    graph = networkx_graph(range(size), adjacency)
    found = nx.community.louvain_communities(graph, resolution=resolution, seed=seed)
    for number, members in enumerate(found):
        expected[list(members)] = number
    np.testing.assert_array_equal(louvain(adjacency, resolution, seed), by_size(expected))


def test_graphs_without_edges_and_without_nodes():
    assert louvain(sp.csr_array((3, 3)), 1.0, 0).tolist() == [0, 1, 2]
    assert louvain(sp.csr_array((0, 0)), 1.0, 0).tolist() == []
