"""Generated graphs of films that never were, to write pages of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.graphs import SimilarityGraph

ADJECTIVES = ("Silent", "Crimson", "Last", "Golden", "Hidden", "Velvet", "Hollow", "Iron", "Quiet", "Frozen", "Paper")
NOUNS = ("Harbor", "River", "Garden", "Signal", "Mountain", "Letters", "Orchard", "Machine", "Lantern", "Voyage")
_NEAR, _SAME_GROUP = 0.6, 0.3  # shares of the edges within circles and within groups; others lead anywhere
_CIRCLE = 25  # nodes, about


class GraphSize(NamedTuple):
    """How many nodes and edges a generated graph has, and in how many groups."""

    nodes: int
    edges: int
    groups: int


def made_graph(size: GraphSize) -> SimilarityGraph:
    """Return a graph whose nodes belong to groups, and within these to circles, with titles, years and shelves.

    Most edges join nodes of a circle, others nodes of a group, and a tenth any two; weights are gamma distributed.
    The same size gives the same graph.
    """
    rng = np.random.default_rng(0)
    group = np.sort(rng.choice(size.groups, size.nodes, p=rng.dirichlet(np.full(size.groups, 4.0))))
    rows, columns = _pairs(group, size, rng)
    half = sp.csr_array((rng.gamma(2.0, size=rows.size), (rows, columns)), shape=(size.nodes, size.nodes))
    names = rng.integers(len(ADJECTIVES), size=size.nodes), rng.integers(len(NOUNS), size=size.nodes)
    years = rng.integers(1930, 2020, size.nodes)
    titles = [f"{ADJECTIVES[a]} {NOUNS[b]} ({year})" for a, b, year in zip(*names, years, strict=True)]
    table = pd.DataFrame({"title": titles, "year": years, "shelf": [f"shelf {number}" for number in group]})
    table.index = pd.RangeIndex(1, size.nodes + 1)
    return SimilarityGraph(half + half.T, table.index, kind="item").with_attributes(table, label="title")


def _pairs(group: np.ndarray, size: GraphSize, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the two ends of as many different edges as are wanted, at least one at every node."""
    low, high = np.searchsorted(group, group), np.searchsorted(group, group, side="right")
    place = np.arange(size.nodes)
    near_low = np.maximum(low, place - place % _CIRCLE)
    near_high = np.minimum(high, place - place % _CIRCLE + _CIRCLE)
    found = np.column_stack((place, (place + 1) % size.nodes))
    while len(found) < size.edges:
        rows = rng.integers(size.nodes, size=size.edges)
        kind = rng.random(rows.size)
        first = np.where(kind < _NEAR, near_low[rows], np.where(kind < _NEAR + _SAME_GROUP, low[rows], 0))
        last = np.where(kind < _NEAR, near_high[rows], np.where(kind < _NEAR + _SAME_GROUP, high[rows], size.nodes))
        columns = first + (rng.random(rows.size) * (last - first)).astype(int)
        found = _different(np.vstack((found, np.column_stack((rows, columns))[rows != columns])))
    return found[: size.edges, 0], found[: size.edges, 1]


def _different(pairs: np.ndarray) -> np.ndarray:
    """Return each pair once, in the order of first appearance."""
    ordered = np.sort(pairs, axis=1)
    return ordered[np.sort(np.unique(ordered, axis=0, return_index=True)[1])]
