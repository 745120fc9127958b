"""Deterministic positions of the nodes of a graph in the plane, computed before the page is written."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from air_recsys.graphs import SimilarityGraph

_N_STEPS = 200
_N_REPELLED = 6  # random nodes that a node is pushed from in each step
_PUSH = 20.0  # strength of the pushes against the pulls; smaller values draw communities as dots
_LONGEST = 4.0  # limit of one push


def node_positions(graph: SimilarityGraph) -> np.ndarray:
    """Return a position in the plane for every node, (n, 2), so that joined nodes are close to each other.

    The start are spectral coordinates, which unfold the large structure. Then edges pull and random pairs push, as in
    UMAP: a force of 2 w^(1/2) d / (1 + d^2) along an edge of length d, whose weight w is taken relative to the
    larger of the maxima at its two ends, and 2 d / ((0.1 + d^2) (1 + d^2)) between random nodes. Isolated nodes
    are in rows below the others. The positions are the same for the same graph; 1,000 nodes take a second or less.

    Source: McInnes, Healy, Melville, "UMAP", arXiv:1802.03426 (the forces, with a = b = 1).

    Examples
    --------
    >>> import numpy as np
    >>> graph = SimilarityGraph(np.kron(np.eye(2), np.ones((4, 4))), range(8))  # two groups of four
    >>> x, y = node_positions(graph).T
    >>> distance = np.hypot(x[:, None] - x, y[:, None] - y)
    >>> bool(distance[:4, :4].max() < distance[:4, 4:].min())
    True
    """
    adjacency = graph.to_scipy()
    joined = np.flatnonzero(np.diff(adjacency.indptr))
    positions = np.zeros((len(graph), 2))
    if joined.size:
        start = _ranks(graph.spectral_coordinates(2)[joined])
        positions[joined] = _refined(start, sp.csr_array(adjacency[joined][:, joined]))
    isolated = np.setdiff1d(np.arange(len(graph)), joined)
    positions[isolated] = _rows_below(positions[joined], isolated.size)
    return positions


def _ranks(coordinates: np.ndarray) -> np.ndarray:
    """Return the ranks in each coordinate, spread over [-1/2, 1/2]: few nodes far out would take all the room."""
    order = np.argsort(np.argsort(coordinates, axis=0, kind="stable"), axis=0, kind="stable")
    return order / len(coordinates) - 0.5


def _refined(start: np.ndarray, adjacency: sp.csr_array) -> np.ndarray:
    rng = np.random.default_rng(0)
    # From a small picture the pushes spread communities evenly; from a large one the start's shape stays.
    positions = 4 * start + rng.normal(scale=0.1, size=start.shape)
    edges = _edges(adjacency)
    for step in range(_N_STEPS):
        done = step / _N_STEPS
        # While the pushes are weak, nodes find their community; at full strength some never would.
        pushes = min(1.0, 2 * done) * _PUSH * _pushes(positions, rng)
        positions += 0.25 * (1 - done) * (_pulls(positions, *edges) + pushes)
    return positions - positions.mean(axis=0)


def _edges(adjacency: sp.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return both ends of every directed edge and its pull in (0, 1], shapes (n_entries,)."""
    entries = adjacency.tocoo()
    heads, tails = entries.row, entries.col
    largest = adjacency.max(axis=1).toarray().ravel()
    share = entries.data / np.maximum(largest[heads], largest[tails])
    return heads, tails, np.sqrt(share)


def _pulls(positions: np.ndarray, heads: np.ndarray, tails: np.ndarray, pull: np.ndarray) -> np.ndarray:
    """Return twice the mean force along the edges of every node, shape (n, 2); sums would make hubs leap."""
    size = len(positions)
    along = positions[tails] - positions[heads]  # (n_entries, 2)
    forces = along * (2 * pull / (1 + (along**2).sum(axis=1)))[:, None]
    summed = np.stack([np.bincount(heads, forces[:, axis], minlength=size) for axis in range(2)], axis=1)
    return 2 * summed / np.bincount(heads, minlength=size)[:, None]


def _pushes(positions: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the mean force away from a few random nodes, shape (n, 2)."""
    others = rng.integers(len(positions), size=(len(positions), _N_REPELLED))
    away = positions[:, None] - positions[others]  # (n, n_repelled, 2)
    squared = (away**2).sum(axis=2, keepdims=True)
    return np.clip(2 * away / ((0.1 + squared) * (1 + squared)), -_LONGEST, _LONGEST).mean(axis=1)


def _rows_below(joined: np.ndarray, n_isolated: int) -> np.ndarray:
    """Return places in rows under the box of `joined`, shape (n_isolated, 2)."""
    left, width, bottom = -5.0, 10.0, 0.0
    if len(joined):
        left, width, bottom = joined[:, 0].min(), max(np.ptp(joined[:, 0]), 1.0), joined[:, 1].max()
    columns = max(1, math.ceil(math.sqrt(4 * n_isolated)))
    gap = width / columns
    index = np.arange(n_isolated)
    return np.column_stack((left + (index % columns + 0.5) * gap, bottom + (index // columns + 2) * gap))
