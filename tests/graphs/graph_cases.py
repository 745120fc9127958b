"""Graphs that the tests of `SimilarityGraph` share."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
from hypothesis import settings
from hypothesis import strategies as st

from air_recsys import SimilarityGraph
from air_recsys.exceptions import DataError

fast = settings(max_examples=40)
HOSTILE = "</script><script>alert(\"1\")</script> & 'x'"


def fails(message, error: type[Exception] = DataError):
    return pytest.raises(error, match=re.escape(message))


def random_adjacency(size, seed, density=0.5):
    """Symmetric, without loops; all weights distinct."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((size, size)) * (rng.random((size, size)) < density), 1)
    return upper + upper.T


@st.composite
def graphs(draw, most=9):
    """Graphs of every density, from no edge to all, connected or not."""
    size = draw(st.integers(1, most))
    density = draw(st.sampled_from([0.0, 0.2, 0.5, 1.0]))
    return SimilarityGraph(random_adjacency(size, draw(st.integers(0, 9999)), density), range(100, 100 + size), "item")


def planted(sizes=(30, 20, 10), inside=0.6, outside=0.02, seed=0):
    """A graph with denser groups, and the group of every node; nodes in random order."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    chance = np.where(groups[:, None] == groups, inside, outside)
    upper = np.triu((rng.random(chance.shape) < chance) * rng.uniform(0.5, 1.5, chance.shape), 1)
    return SimilarityGraph(upper + upper.T, [f"n{row}" for row in range(groups.size)], "user"), groups


def cliques(*sizes):
    """Complete graphs side by side; a clique of one is an isolated node."""
    return SimilarityGraph(scipy.linalg.block_diag(*[np.ones((size, size)) for size in sizes]), range(sum(sizes)))


def films():
    """Four items, one of them isolated, with titles for three and a hostile one among them."""
    adjacency = np.zeros((4, 4))
    adjacency[0, 1] = adjacency[1, 0] = 0.1
    adjacency[1, 2] = adjacency[2, 1] = 1 / 3
    table = pd.DataFrame(
        {
            "item": [30, 10, 20, 99],
            "title": ["Plums (1991)", "Äpfel (1990)", HOSTILE, "Not in the graph"],
            "year": pd.array([1991, 1990, None, 2000], dtype="Int64"),
            "kids": [True, False, True, True],
        }
    )
    return SimilarityGraph(adjacency, [10, 20, 30, 40], "item", attributes=table, label="title")


def same_partition(first, second):
    """Whether two labellings put the same nodes together."""
    pairs = set(zip(first, second, strict=True))
    return len(pairs) == len(set(first)) == len(set(second))
