r"""Communities of large modularity.

With weights :math:`A_{ij}`, degrees :math:`d_i`, total weight m and the resolution :math:`\gamma` a division c has

.. math:: Q = \frac1{2m} \sum_{ij} \Big(A_{ij} - \gamma\, \frac{d_i d_j}{2m}\Big)\, [c_i = c_j].

Nodes move to the community of a neighbour as long as one raises Q; then communities become the nodes of a smaller
graph, and so on. The order of all sums and visits is that of NetworkX's program, and so is the division.

Source: Blondel, Guillaume, Lambiotte, Lefebvre, Fast unfolding of communities in large networks, J. Stat. Mech., 2008.
"""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from air_recsys.graphs.spectral import by_size

_LEAST_GAIN = 1e-7  # of Q, for which another level is worth it

Edges = list[dict[int, float]]
"""The weights of every node to others, and to itself those inside of it, once."""


def louvain(adjacency: sp.csr_array, resolution: float, random_state: int) -> np.ndarray:
    """Communities of large modularity, 0 being the largest; shape (n,).

    Examples
    --------
    >>> pairs = sp.csr_array([[0.0, 5, 1, 0], [5, 0, 0, 1], [1, 0, 0, 5], [0, 1, 5, 0]])
    >>> louvain(pairs, 1.0, 0).tolist()
    [0, 0, 1, 1]
    """
    matrix = sp.csr_array(adjacency, copy=True)
    matrix.sort_indices()
    starts = [*map(int, matrix.indptr)]
    others, weights = matrix.indices.tolist(), matrix.data.tolist()
    edges: Edges = [dict(zip(others[a:b], weights[a:b], strict=True)) for a, b in pairwise(starts)]
    groups = np.arange(len(edges))
    if not matrix.nnz:
        return groups
    visits = random.Random(random_state)
    total = sum(_degrees(edges)) / 2
    before = _modularity(edges, total, resolution)
    while True:
        places = _moved(edges, total, resolution, visits)
        groups = places[groups]
        edges = _joined(edges, places.tolist())
        found = _modularity(edges, total, resolution)
        if found - before <= _LEAST_GAIN:
            return by_size(groups)
        before = found


def _degrees(edges: Edges) -> list[float]:
    return [sum(near.values()) + near.get(node, 0.0) for node, near in enumerate(edges)]


def _modularity(edges: Edges, total: float, resolution: float) -> float:
    """Q of the division in which every node is a community."""
    inside = sum(near.get(node, 0.0) for node, near in enumerate(edges))
    return inside / total - resolution * sum(degree**2 for degree in _degrees(edges)) / (2 * total) ** 2


def _moved(edges: Edges, total: float, resolution: float, visits: random.Random) -> np.ndarray:
    """The community of every node, numbered 0, 1, ..., when no node gains by a move; shape (n,)."""
    place = list(range(len(edges)))
    near = [[pair for pair in each.items() if pair[0] != node] for node, each in enumerate(edges)]
    degrees = _degrees(edges)
    totals = degrees.copy()  # of the communities
    order = place.copy()
    visits.shuffle(order)
    square, moves = 2 * total**2, 1
    while moves:
        moves = 0
        for node in order:
            own, degree = place[node], degrees[node]
            weights: dict[int, float] = {}
            for other, weight in near[node]:
                group = place[other]
                weights[group] = weights[group] + weight if group in weights else weight
            totals[own] -= degree
            leaving = -weights.setdefault(own, 0.0) / total + resolution * (totals[own] * degree) / square
            best, most = own, 0.0
            for group, weight in weights.items():
                gain = leaving + weight / total - resolution * (totals[group] * degree) / square
                if gain > most:
                    best, most = group, gain
            totals[best] += degree
            if best != own:
                place[node] = best
                moves += 1
    return np.unique(place, return_inverse=True)[1]


def _joined(edges: Edges, places: list[int]) -> Edges:
    """The graph whose nodes are communities."""
    joined: Edges = [{} for _ in range(max(places) + 1)]
    for node, near in enumerate(edges):
        first = places[node]
        for other, weight in near.items():
            if other < node:
                continue  # seen from the other end
            second = places[other]
            found = weight + joined[first].get(second, 0.0)
            joined[first][second] = joined[second][first] = found
    return joined
