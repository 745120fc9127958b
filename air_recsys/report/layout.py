"""Deterministic positions of the nodes of a graph in the plane, computed before the page is written."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree
from threadpoolctl import threadpool_limits

from air_recsys.graphs import SimilarityGraph
from air_recsys.graphs.embedding import graph_embedding

_N_DIMS, _FEW_DIMS = 128, 64  # of the embedding, of few and of many nodes
_PERPLEXITY = 20.0
_MANY = 2_500  # nodes, above which some of them are placed first
_NODES_OF_A_LANDMARK, _NEAREST_LANDMARKS = 8, 3
_ANGLE_AND_MOST = ((0.5, 1_000), (0.8, 10**9))  # how roughly t-SNE sums up far nodes, and up to how many nodes
_NOISE = 0.01  # length of what is added to vectors, which have length 1
_FEWEST = 8  # nodes; fewer stand where spectral coordinates have them
_GAP = 0.1  # between any two nodes, in units in which the median distance of nearest nodes is 0.15
_ROUNDS = 30  # most, of moves apart


def node_positions(graph: SimilarityGraph) -> np.ndarray:
    """Return a position in the plane for every node, (n, 2), so that the nodes around one are its neighbours.

    t-SNE of the embedding of the graph (Euclidean, up to 128 dimensions), from a start by spectral coordinates,
    which unfold the large structure; of many nodes an eighth goes first. Then nodes that lie over each other move
    apart. Isolated nodes are in rows below the others. The positions are the same for the same graph.

    Source: van der Maaten, Hinton, Visualizing data using t-SNE, JMLR 9, 2008, in scikit-learn's program.
    """
    adjacency = graph.to_scipy()
    joined = np.flatnonzero(np.diff(adjacency.indptr))
    positions = np.zeros((len(graph), 2))
    if joined.size:
        start = _ranks(graph.spectral_coordinates(2)[joined])
        found = start if joined.size < _FEWEST else _embedded(sp.csr_array(adjacency[joined][:, joined]), start)
        positions[joined] = _apart(_scaled(found))
    isolated = np.setdiff1d(np.arange(len(graph)), joined)
    positions[isolated] = _rows_below(positions[joined], isolated.size)
    return positions


def _embedded(adjacency: sp.csr_array, start: np.ndarray) -> np.ndarray:
    size = len(start)
    is_large = size > _MANY
    with threadpool_limits(1):  # sums of several threads differ in their last bits, and so would the picture
        found = graph_embedding(adjacency, _FEW_DIMS if is_large else _N_DIMS)
        # Where more nodes than the perplexity are alike, it has no solution: they are told apart a little.
        found += np.random.default_rng(0).normal(scale=_NOISE / math.sqrt(found.shape[1]), size=found.shape)
        if not is_large:
            rate = max(size / 48, min(50.0, size / 4))  # scikit-learn's is at least 50, too much for few nodes
            return _by_tsne(found, 1e-4 * start, rate, max_iter=500)
        # From places that are nearly right a hundred steps do, which a bound that every gradient meets makes them.
        return _by_tsne(found, _around_landmarks(found, start), size / 12, max_iter=250, min_grad_norm=1e9)


def _around_landmarks(vectors: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return places of all nodes between those of their nearest landmarks, nodes that t-SNE places first; (n, 2)."""
    size = len(start) // _NODES_OF_A_LANDMARK
    chosen = np.sort(np.random.default_rng(0).permutation(len(start))[:size])
    places = _by_tsne(vectors[chosen], 1e-4 * start[chosen], max(size / 48, 50.0), max_iter=300)
    cosines = vectors @ vectors[chosen].T  # (n, size)
    nearest = np.argpartition(-cosines, _NEAREST_LANDMARKS, axis=1)[:, :_NEAREST_LANDMARKS]
    weights = np.take_along_axis(cosines, nearest, axis=1).clip(1e-3) ** 2
    means = np.einsum("nk,nkd->nd", weights / weights.sum(axis=1, keepdims=True), places[nearest])
    spread = means * math.sqrt(_NODES_OF_A_LANDMARK)  # for as much room a node
    return spread + np.random.default_rng(1).normal(scale=0.05, size=spread.shape)


def _by_tsne(vectors: np.ndarray, start: np.ndarray, rate: float, **steps: Any) -> np.ndarray:
    from sklearn.manifold import TSNE

    size = len(vectors)
    angle = next(angle for angle, most in _ANGLE_AND_MOST if size <= most)
    given: Any = {"init": start, "learning_rate": rate, "angle": angle, **steps}
    model = TSNE(2, perplexity=min(_PERPLEXITY, (size - 1) / 5), random_state=0, **given)
    return model.fit_transform(vectors).astype(np.float64)


def _scaled(positions: np.ndarray) -> np.ndarray:
    """Return positions around 0 with a median distance of 0.15 from the nearest other, as far as they differ."""
    nearest = KDTree(positions).query(positions, k=min(2, len(positions)))[0].reshape(len(positions), -1)[:, -1]
    median = float(np.median(nearest))
    return 1.5 * _GAP * (positions - positions.mean(axis=0)) / (median if median > 0 else 1.0)


def _apart(positions: np.ndarray) -> np.ndarray:
    """Return positions of which hardly two are nearer than the gap: such pairs move apart, again and again."""
    moved = positions.copy()
    for _ in range(_ROUNDS):
        pairs = KDTree(moved).query_pairs(_GAP, output_type="ndarray")
        if not len(pairs):
            break
        first, second = pairs[np.lexsort(pairs.T[::-1])].T
        along = moved[second] - moved[first]
        length = np.linalg.norm(along, axis=1)
        angle = 2.4 * first  # nodes at one place part in all directions
        same = np.column_stack((np.cos(angle), np.sin(angle)))
        unit = np.where(length[:, None] > 1e-9, along / np.maximum(length, 1e-9)[:, None], same)
        step = 0.5 * (1.02 * _GAP - length)[:, None] * unit
        np.subtract.at(moved, first, step)
        np.add.at(moved, second, step)
    return moved


def _ranks(coordinates: np.ndarray) -> np.ndarray:
    """Return the ranks in each coordinate, spread over [-1/2, 1/2]: few nodes far out would take all the room."""
    order = np.argsort(np.argsort(coordinates, axis=0, kind="stable"), axis=0, kind="stable")
    return order / len(coordinates) - 0.5


def _rows_below(joined: np.ndarray, n_isolated: int) -> np.ndarray:
    """Return places in rows under the box of `joined`, shape (n_isolated, 2)."""
    left, width, bottom = -5.0, 10.0, 0.0
    if len(joined):
        left, width, bottom = joined[:, 0].min(), max(np.ptp(joined[:, 0]), 1.0), joined[:, 1].max()
    columns = max(1, math.ceil(math.sqrt(4 * n_isolated)))
    gap = width / columns
    index = np.arange(n_isolated)
    return np.column_stack((left + (index % columns + 0.5) * gap, bottom + (index // columns + 2) * gap))
