"""Chains: symmetric tridiagonal systems, many one after another, solved on the device by cyclic reduction.

Source: Hockney, A fast direct solution of Poisson's equation using Fourier analysis, Journal of the ACM 12, 1965.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


class Solved(NamedTuple):
    """What follows from the equations A x = h of chains."""

    solution: Tensor  # (k,)
    variances: Tensor  # (k,), the diagonal of A^-1


def solve_chains(diagonal: Tensor, before: Tensor, right: Tensor, longest: int) -> Solved:
    """Return x and the diagonal of A^-1 for a positive definite A.

    Each step adds to an equation those at some distance on both sides, so that they no longer share an unknown with
    it, and doubles the distance: about log2(`longest`) steps, each for all equations at once.

    Parameters
    ----------
    diagonal : Tensor, shape (k,)
    before : Tensor, shape (k,)
        What joins each equation to the one before it; 0 where a chain starts.
    right : Tensor, shape (k,)
        h.
    longest : int
        Equations of the longest chain.

    Examples
    --------
    >>> diagonal, before = torch.tensor([2.0, 3.0, 1.0]), torch.tensor([0.0, -1.0, 0.0])
    >>> found = solve_chains(diagonal, before, torch.tensor([4.0, 3.0, 5.0]), longest=2)
    >>> [round(float(value), 4) for value in (*found.solution, *found.variances)]
    [3.0, 2.0, 5.0, 0.6, 0.4, 1.0]
    """
    after = functional.pad(before[1:], (0, 1))
    distance = 1
    while distance < longest:
        left, next_ = -before / _moved(diagonal, distance, 1.0), -after / _moved(diagonal, -distance, 1.0)
        diagonal = diagonal + left * _moved(after, distance) + next_ * _moved(before, -distance)
        right = right + left * _moved(right, distance) + next_ * _moved(right, -distance)
        before, after = left * _moved(before, distance), next_ * _moved(after, -distance)
        distance *= 2
    return Solved(right / diagonal, 1 / diagonal)


def _moved(values: Tensor, distance: int, outside: float = 0.0) -> Tensor:
    """Return what stands `distance` places before each value."""
    length = len(values)
    if abs(distance) >= length:
        return torch.full_like(values, outside)
    kept = values[:-distance] if distance > 0 else values[-distance:]
    return functional.pad(kept, (distance, 0) if distance > 0 else (0, -distance), value=outside)
