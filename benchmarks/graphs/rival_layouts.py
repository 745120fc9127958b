"""Layouts of a graph beside the explorer's, for comparison."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from air_recsys.graphs import SimilarityGraph
from air_recsys.report.layout import node_positions
from air_recsys.storage.validation import import_extra

_N_STEPS = 200
_N_REPELLED = 6  # random nodes that a node is pushed from in each step
_PUSH = 20.0  # strength of the pushes against the pulls; smaller values draw communities as dots
_LONGEST = 4.0  # limit of one push

Layout = Callable[[SimilarityGraph], np.ndarray]


def layouts() -> dict[str, Layout]:
    """Return the layouts that can be measured here, by name; UMAP where umap-learn is installed."""
    found: dict[str, Layout] = {
        "explorer": node_positions,
        "forces of UMAP, spectral start": forces,
        "spectral": lambda graph: graph.spectral_coordinates(2),
        "ForceAtlas2 (NetworkX)": force_atlas,
    }
    return found | ({"UMAP": umap_layout} if find_spec("umap") else {})


def path_lengths(graph: SimilarityGraph) -> np.ndarray:
    """Return the lengths of the shortest paths, an edge of weight w being 1 / w long; shape (n, n).

    Nodes of two components are twice as far apart as any two of one.
    """
    lengths = graph.to_scipy()
    lengths.data = 1 / lengths.data
    found = csgraph.dijkstra(lengths, directed=False)
    joined = np.isfinite(found)
    return np.where(joined, found, 2 * found[joined].max())


def force_atlas(graph: SimilarityGraph) -> np.ndarray:
    """Return the positions of ForceAtlas2, 200 steps, seed 0."""
    networkx = import_extra("networkx", "viz")
    found = networkx.forceatlas2_layout(graph.to_networkx(), max_iter=200, seed=0)
    return np.array([found[node] for node in graph.ids.tolist()])


def umap_layout(graph: SimilarityGraph) -> np.ndarray:
    """Return the positions of umap-learn with its defaults, of the shortest paths, seed 0."""
    import warnings

    import umap  # pyright: ignore[reportMissingImports]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a seed means one thread
        return umap.UMAP(metric="precomputed", random_state=0).fit_transform(path_lengths(graph))


def forces(graph: SimilarityGraph) -> np.ndarray:
    """Return positions by the forces of UMAP (a = b = 1) from spectral coordinates: edges pull, random pairs push.

    Source: McInnes, Healy, Melville, "UMAP", arXiv:1802.03426.
    """
    order = np.argsort(np.argsort(graph.spectral_coordinates(2), axis=0, kind="stable"), axis=0, kind="stable")
    return _refined(order / len(order) - 0.5, graph.to_scipy())


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
