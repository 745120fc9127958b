"""Half a sweep: all rows of one side given the other side, in blocks, so that no matrices of all rows are formed.

What has the size of all rows are their means and, for Gaussians, the triangles of their covariances. These hold the
sums of the equations until the rows are solved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from air_recsys.nn.posterior.entries import Block
from air_recsys.nn.posterior.equations import Rows, Solution, equations, solve
from air_recsys.nn.posterior.flags import Flag, of_rows
from air_recsys.nn.posterior.triangles import size_of

SUMS = 2**28  # bytes of the equations of a block, where no covariances are kept
FACTORED = {"cpu": 512}  # matrices in one batched factorization: few stay in the cache
MOST_FACTORED = 4096


class Given(NamedTuple):
    """What the rows of one side follow from."""

    blocks: Sequence[Block]  # the entries
    partner: Rows
    precisions: Tensor  # (n,), of the noise of the partners
    scales: Tensor  # (m,), of the noise of the rows
    prior_mean: Tensor  # (m, d)
    prior_precision: Tensor  # (d, d)


class Half(NamedTuple):
    """What half a sweep found."""

    rows: Rows
    means: Tensor  # (m, d), of the rows given the other side
    errors: Tensor  # (m,), expected sums of squared errors, times weights and precisions
    flag: Flag  # of rows whose equations have no solution


Draw = Callable[[Solution, slice], Tensor]
"""Returns some rows from their Gaussian and their place."""


def half_sweep(given: Given, draw: Draw | None = None) -> Half:
    """Return all rows of one side: their Gaussians, or what `draw` makes of these."""
    m, width = given.prior_mean.shape
    means, errors = torch.empty_like(given.prior_mean), torch.empty_like(given.scales)
    states = means if draw is None else torch.empty_like(means)
    covariances = means.new_empty(m, size_of(width)) if draw is None else None
    unsolved = []
    for rows, entries in given.blocks:
        out = None if covariances is None else covariances[rows]
        system = equations(entries, given.partner, given.precisions, out)
        for part in _slices(rows.stop - rows.start, FACTORED.get(means.device.type, MOST_FACTORED)):
            place = slice(rows.start + part.start, rows.start + part.stop)
            own = system.block(part)
            solution = solve(own, given.scales[place], given.prior_mean[place], given.prior_precision)
            unsolved.append(solution.unsolved)
            means[place] = solution.mean
            if draw is not None:
                states[place] = draw(solution, place)
            state = Rows(states[place], None if covariances is None else solution.covariance())
            errors[place] = own.squared_errors(state)
            if covariances is not None and state.covariance is not None:
                covariances[place] = state.covariance  # in the place of the sums
    flag = of_rows(torch.stack(unsolved).sum(), means.dtype)
    return Half(Rows(states, covariances), means, errors, flag)


def rows_at_once(width: int, dtype: torch.dtype, n_bytes: int) -> int:
    """Return how many rows' equations are formed at a time in a block of so many bytes, at least one."""
    return max(n_bytes // (size_of(width) * dtype.itemsize), 1)


def _slices(size: int, step: int) -> Iterator[slice]:
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))
