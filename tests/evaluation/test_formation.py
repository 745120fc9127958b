"""How communities form: modularity is the one of NetworkX, and NMI knows what is the same division."""

import networkx as nx
import numpy as np
import pytest

from air_recsys import SimilarityGraph
from air_recsys.evaluation.graph_quality import formation, modularity


def noisy(seed: int, n_groups: int = 3, size: int = 30) -> tuple[SimilarityGraph, np.ndarray]:
    rng = np.random.default_rng(seed)
    groups = np.arange(size) % n_groups
    half = rng.random((size, size)) * np.where(np.equal.outer(groups, groups), 1.0, 0.1)
    return SimilarityGraph(half + half.T, range(size)), groups


@pytest.mark.parametrize("seed", range(3))
def test_modularity_is_that_of_networkx(seed):
    graph, groups = noisy(seed)
    parts = [set(np.flatnonzero(groups == each).tolist()) for each in range(3)]
    expected = nx.community.modularity(graph.to_networkx(labels=False), parts)
    assert modularity(graph, groups) == pytest.approx(expected)


def test_a_graph_without_edges_has_no_communities():
    empty = SimilarityGraph(np.zeros((4, 4)), range(4))
    found = formation({0: empty, 1: SimilarityGraph(np.ones((4, 4)), range(4))}, {"own": np.arange(4)})
    assert found.loc[0, ["edges", "communities", "modularity", "last", "own"]].tolist() == [0, 0, 0, 0, 0]


def test_rows_are_in_the_order_of_the_steps_and_end_with_the_last():
    graph, groups = noisy(0)
    coarse = SimilarityGraph(np.ones((30, 30)), range(30))
    found = formation({7: graph, 2: coarse}, {"true": groups, "other names": 2 - groups})
    assert found["step"].tolist() == [2, 7]
    assert found["communities"].tolist() == [1, 3]
    assert found["last"].iloc[-1] == pytest.approx(1)
    assert found["true"].tolist() == found["other names"].tolist() == pytest.approx([0, 1])
