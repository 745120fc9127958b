"""Chains against the inverse of their matrix."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from air_recsys.nn.drift.process import solve_chains


def chains(lengths, seed=0):
    """A random positive definite A of some chains, as a matrix and in parts."""
    rng = np.random.default_rng(seed)
    k = sum(lengths)
    before = rng.uniform(-1, 1, k)
    before[np.cumsum([0, *lengths])[:-1]] = 0.0
    diagonal = np.abs(before) + np.append(np.abs(before[1:]), 0.0) + rng.uniform(0.01, 1, k)
    matrix = np.diag(diagonal) + np.diag(before[1:], 1) + np.diag(before[1:], -1)
    return matrix, torch.as_tensor(diagonal), torch.as_tensor(before), torch.as_tensor(rng.normal(size=k))


@pytest.mark.parametrize("lengths", [[1], [2], [1, 1, 1], [5], [3, 1, 8, 2], [64], [65, 7], [1000]])
def test_solution_and_variances_are_those_of_the_matrix(lengths):
    matrix, diagonal, before, right = chains(lengths)
    found = solve_chains(diagonal, before, right, max(lengths))
    np.testing.assert_allclose(found.solution, np.linalg.solve(matrix, right), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.variances, np.diag(np.linalg.inv(matrix)), rtol=1e-9)


def test_a_chain_does_not_depend_on_its_neighbours():
    parts = [chains([length], seed)[1:] for seed, length in enumerate((7, 1, 12))]
    whole = solve_chains(*(torch.cat(each) for each in zip(*parts, strict=True)), 12)
    alone = [solve_chains(*part, len(part[0])) for part in parts]
    for joined, each in zip(whole, zip(*alone, strict=True), strict=True):
        torch.testing.assert_close(joined, torch.cat(each), rtol=1e-12, atol=1e-13)
