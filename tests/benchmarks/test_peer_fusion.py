"""Similarity network fusion against its equations, entry by entry."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.accuracy.peers.dnilmf import fused_network


def similarity(seed: int, n: int = 6) -> np.ndarray:
    matrix = np.random.default_rng(seed).random((n, n))
    matrix = (matrix + matrix.T) / 2
    np.fill_diagonal(matrix, 1)
    return matrix


def shares(matrix: np.ndarray) -> np.ndarray:
    return np.array([row / sum(row) for row in matrix])


def strongest(matrix: np.ndarray, size: int) -> np.ndarray:
    return np.array([[value if value >= sorted(row)[-size] else 0.0 for value in row] for row in matrix])


def transcribed(first: np.ndarray, second: np.ndarray, size: int, n_rounds: int) -> np.ndarray:
    """One sum an entry, in place of products of matrices."""
    n = len(first)
    places = [(i, j) for i in range(n) for j in range(n)]
    now = [(shares(each) + shares(each).T) / 2 for each in (first, second)]
    near = [shares(strongest(each, size)) for each in now]
    for _ in range(n_rounds):
        following = [np.zeros((n, n)), np.zeros((n, n))]
        for one, other in ((0, 1), (1, 0)):
            for i, j in places:
                taken = sum(near[one][i, k] * now[other][k, m] * near[one][j, m] for k, m in places)
                following[one][i, j] = taken + (i == j)
        now = [(each + each.T) / 2 for each in following]
    mean = shares((now[0] + now[1]) / 2)
    return np.array([[(mean[i, j] + mean[j, i] + (i == j)) / 2 for j in range(n)] for i in range(n)])


@pytest.mark.parametrize(("size", "n_rounds"), [(3, 2), (2, 1), (6, 3)])
def test_networks_are_those_of_the_equations(size: int, n_rounds: int) -> None:
    first, second = similarity(0), similarity(1)
    fused = fused_network(first, second, size, n_rounds)
    np.testing.assert_allclose(fused, transcribed(first, second, size, n_rounds), rtol=1e-10)
    np.testing.assert_allclose(fused, fused.T)
    np.testing.assert_allclose(fused, fused_network(second, first, size, n_rounds))


def test_equal_neighbors_all_count() -> None:
    even = np.full((5, 5), 0.5)
    np.testing.assert_allclose(fused_network(even, even, 2), transcribed(even, even, 2, 2))
    apart = fused_network(even, even, 2) - np.eye(5) * fused_network(even, even, 2)
    np.testing.assert_allclose(apart[~np.eye(5, dtype=bool)], apart[0, 1])
