"""How well positions in the plane keep the neighbours of a graph together."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np
from sklearn.manifold import trustworthiness
from tqdm import tqdm

from air_recsys.evaluation.results import ResultTable
from air_recsys.graphs import SimilarityGraph
from benchmarks.graphs.rival_layouts import layouts, path_lengths

N_NEIGHBORS = 10
_NEAREST = 30


def bench_layout(graphs: Mapping[str, SimilarityGraph], watched: str | None = None) -> ResultTable:
    """Measure the explorer's layout and others of some graphs.

    Parameters
    ----------
    graphs : mapping of str to SimilarityGraph
    watched : str, optional
        The label of a node whose own neighbours are counted, where a graph has it.
    """
    table = ResultTable(
        "Layouts of learned graphs",
        f"trustworthiness and continuity at {N_NEIGHBORS} neighbours, distances in the graph being shortest paths, an "
        f"edge 1 / weight long; kept: share of the {N_NEIGHBORS} strongest neighbours of a node among the {_NEAREST} "
        f"nearest points, mean over nodes, and of {watched!r}; seconds on one thread",
    )
    cases = [(name, graph, system) for name, graph in graphs.items() for system in layouts()]
    for name, graph, system in tqdm(cases, unit="layout", desc="layouts"):
        started = time.perf_counter()
        positions = layouts()[system](graph)
        seconds = time.perf_counter() - started
        table.rows.append(
            {"graph": name, "layout": system} | _figures(graph, positions, watched) | {"seconds": seconds}
        )
    return table


def _figures(graph: SimilarityGraph, positions: np.ndarray, watched: str | None) -> dict[str, float]:
    lengths = path_lengths(graph)
    kept = neighbors_kept(graph, positions)
    row = np.flatnonzero(graph.labels == watched)
    return {
        "trustworthiness": trustworthiness(lengths, positions, n_neighbors=N_NEIGHBORS, metric="precomputed"),
        "continuity": continuity(lengths, positions, N_NEIGHBORS),
        "kept": float(kept.mean()),
        "kept of the one": float(kept[row[0]]) if row.size else float("nan"),
    }


def neighbors_kept(graph: SimilarityGraph, positions: np.ndarray) -> np.ndarray:
    """Return the share of each node's strongest neighbours that are among the nearest points; shape (n,)."""
    nearest = np.argsort(_distances(positions), axis=1, kind="stable")[:, :_NEAREST]
    adjacency = graph.to_scipy()
    kept = np.empty(len(graph))
    for row in range(len(graph)):
        span = slice(adjacency.indptr[row], adjacency.indptr[row + 1])
        strongest = adjacency.indices[span][np.argsort(np.negative(adjacency.data[span]), kind="stable")[:N_NEIGHBORS]]
        kept[row] = np.isin(strongest, nearest[row]).mean()
    return kept


def continuity(distances: np.ndarray, positions: np.ndarray, n_neighbors: int) -> float:
    """Return how near the n nearest by `distances` (n, n) stay in the plane: 1 where they are the nearest points.

    It is the trustworthiness with both spaces exchanged (Venna, Kaski, Neural Networks 19, 2006).

    Examples
    --------
    >>> line = np.arange(8.0)
    >>> continuity(np.abs(line[:, None] - line), np.column_stack([line, 0 * line]), 2)
    1.0
    """
    n = len(distances)
    ranks = np.argsort(np.argsort(_distances(positions), axis=1, kind="stable"), axis=1, kind="stable") + 1
    own = distances.copy()
    np.fill_diagonal(own, np.inf)
    nearest = np.argsort(own, axis=1, kind="stable")[:, :n_neighbors]
    lost = np.maximum(np.take_along_axis(ranks, nearest, axis=1) - n_neighbors, 0)
    return 1 - 2 * float(lost.sum()) / (n * n_neighbors * (2 * n - 3 * n_neighbors - 1))


def _distances(positions: np.ndarray) -> np.ndarray:
    """Return the distances of all points, infinite from a point to itself; shape (n, n)."""
    found = np.linalg.norm(positions[:, None] - positions, axis=2)
    np.fill_diagonal(found, np.inf)
    return found
