r"""Censored entries: those of which only a limit is known, above or below (Tobit).

An entry :math:`y = m + e`, :math:`e \sim N(0, \sigma^2 / (w t s))`, of which :math:`y < L` (or :math:`y > L`) is
known, stands in a sweep for the normal distribution around its present score m that is cut off at L:

* *variational*: by its mean, and its variance is part of the squared errors, so that the noise is not too small. This
  is the mean field of scores and values, whose bound grows with every half sweep;
* *langevin*: by a draw from it, exact up to rounding.

Each half sweep makes the values anew from the state before it, so that a checkpoint holds none of them.

Sources: Tobin, Estimation of relationships for limited dependent variables, Econometrica 26, 1958; Chib, Bayes
inference in the Tobit censored regression model, J. Econometrics 51, 1992.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from scipy import special

from air_recsys.nn.objective import Observations
from air_recsys.nn.pattern import SparsePattern
from air_recsys.nn.posterior.equations import Rows
from air_recsys.nn.posterior.exchange import OwnEntries
from air_recsys.nn.posterior.prior import Noise
from air_recsys.nn.sums import row_sums
from air_recsys.storage.lazy import Tensor, torch

Numbers = TypeVar("Numbers", Tensor, np.ndarray)
_ROOT, _ROOT_OF_TWO = math.sqrt(2 / math.pi), math.sqrt(2)
_TAIL, _STEPS = -5.0, 6  # deviations beyond which numbers come by Newton's steps
_LEAST = 1e-12  # share of a weight


def cut_moments(means: Numbers, deviations: Numbers, limits: Numbers, signs: Numbers) -> tuple[Numbers, Numbers]:
    """Mean and variance of normal numbers that are known to lie above a limit (sign 1) or below it (-1).

    Examples
    --------
    >>> one = np.ones(1)
    >>> mean, variance = cut_moments(0 * one, one, 0 * one, -one)
    >>> mean.round(4).item(), variance.round(4).item()  # - (2 / pi)^1/2 and 1 - 2 / pi
    (-0.7979, 0.3634)
    """
    inside = signs * (means - limits) / deviations
    slope = _slope(inside)
    return means + signs * deviations * slope, deviations**2 * (1 - slope * (slope + inside)).clip(0, 1)


def as_measured(
    means: np.ndarray, deviations: np.ndarray, limits: np.ndarray, signs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Values, and their shares of a weight, that say near some means what limits say: a step of Newton."""
    found, variances = cut_moments(means, deviations, limits, signs)
    told = (1 - variances / deviations**2).clip(_LEAST)
    return means + (found - means) / told, told


def cut_draws(means: Tensor, deviations: Tensor, limits: Tensor, signs: Tensor, uniform: Tensor) -> Tensor:
    """The same numbers drawn, from uniform ones in 0..1, by the inverse of their distribution."""
    inside, uniform = signs * (means - limits) / deviations, uniform.clamp(min=torch.finfo(uniform.dtype).tiny)
    near = -torch.special.ndtri(uniform * torch.special.ndtr(inside))
    tail, goal = inside.clamp(max=_TAIL), uniform.log()
    goal = goal + torch.special.log_ndtr(tail)
    far = (tail.square() - 2 * uniform.log()).sqrt()
    for _ in range(_STEPS):
        far = far + (torch.special.log_ndtr(-far) - goal) / _slope(-far)
    return means + signs * deviations * torch.where(inside > _TAIL, near, far)


def _slope(inside: Numbers) -> Numbers:
    """The derivative of the logarithm of the normal distribution function."""
    erfcx = special.erfcx if isinstance(inside, np.ndarray) else torch.special.erfcx
    return _ROOT / erfcx(-inside / _ROOT_OF_TWO)


class Censored:
    """The censored entries of a posterior.

    Parameters
    ----------
    observed : Observations
        All entries, of all processes.
    entries : OwnEntries
        Those of this process as a posterior sees them: the values of the censored ones, their limits, are replaced.
        All processes find the values of all of them, from the same rows.
    signs : Tensor of int8, shape (nnz,)
        Row by row: 1 where an entry is above its value, -1 where below, 0 where it is measured.
    """

    def __init__(self, observed: Observations, entries: OwnEntries, signs: Tensor) -> None:
        (pattern, values, weights), places = observed, signs.nonzero()[:, 0]
        starts = torch.cat([signs.new_zeros(1, dtype=torch.int64), (signs != 0).cumsum(0)])
        self._pattern = SparsePattern(starts[pattern.row_starts.long()], pattern.columns[places], pattern.shape[1])
        self._entries, self._own = entries.entries, [slice(0, 0), slice(0, 0)]  # of the censored ones, by side
        self._places = [places, places]
        for side in (0, 1):
            rows, starts = entries.own(side), pattern.side(side)[0]
            ends = starts[[rows.start, rows.stop]].to(places.dtype)
            ordered = pattern.in_order_of(side, signs).nonzero()[:, 0]
            self._own[side] = slice(*torch.searchsorted(ordered, ends).tolist())
            self._places[side] = ordered[self._own[side]] - ends[0]
        self._limits, self._signs = values[places].double(), signs[places].double()
        self._weights = None if weights is None else weights[places].double()
        self._variances = torch.zeros_like(self._limits)

    def follow(self, sides: list[Rows], noise: Noise, generator: torch.Generator | None) -> None:
        """Give the entries their values in the present state, with a generator as draws."""
        rows, columns = self._pattern.rows.long(), self._pattern.columns.long()
        left, right = (side.mean for side in sides)
        means = self._pattern.sampled_product(left[:, :-1], right[:, :-1]).double()
        means += left[rows, -1] + right[columns, -1]
        precisions = noise.scales[0][rows] * noise.scales[1][columns] / noise.variance
        precisions = precisions if self._weights is None else precisions * self._weights
        known = means, precisions.rsqrt(), self._limits, self._signs
        if generator is None:
            values, self._variances = cut_moments(*known)
        else:
            uniform = torch.rand(len(means), generator=generator, dtype=means.dtype, device=means.device)
            values, self._variances = cut_draws(*known, uniform), torch.zeros_like(means)
        for side, entries in enumerate(self._entries):
            own = self._pattern.in_order_of(side, values).to(entries.values.dtype)
            entries.values.index_copy_(0, self._places[side], own[self._own[side]])

    def errors(self, side: int, precisions: Tensor) -> Tensor:
        """The share of what is not known of the values in the squared errors of the rows of a side, (m,).

        `precisions` (n,) are those of the noise of the partners, as in `equations`.
        """
        shares = self._variances if self._weights is None else self._variances * self._weights
        ordered = self._pattern.in_order_of(side, shares).to(precisions.dtype)
        return row_sums(*self._pattern.side(side), precisions[:, None], ordered)[:, 0]
