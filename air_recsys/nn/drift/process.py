r"""A process of one side: the changing effect of each of its rows on its entries, forgotten in time.

.. math:: z_i(t) \sim N(0, v / s_i),\qquad \mathrm{Cov}(z_i(t), z_i(t')) = \frac{v}{s_i}\,e^{-|t - t'| / \ell}

with s the scales of the rows' noise: a row whose entries scatter more moves more, too. This is the Ornstein-Uhlenbeck
process. Given the moments before and after, a moment depends on no other one, so that the precision of the moments of
a row is a chain, a symmetric tridiagonal system. Chains, one after another, are solved on the device by cyclic
reduction.

Sources: Rasmussen, Williams, Gaussian processes for machine learning, MIT Press, 2006, appendix B; Hockney, A fast
direct solution of Poisson's equation using Fourier analysis, Journal of the ACM 12, 1965.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from air_recsys.nn.posterior.state import Stateful
from air_recsys.storage.lazy import Tensor, functional, torch

_MOMENTS = 32  # in a time scale; entries between two of them count as of one time


class Moments(NamedTuple):
    """A process at the moments of the entries, and between them."""

    keys: np.ndarray  # (k,), ascending: row times the number of moments there may be, plus moment
    mean: np.ndarray  # (k,)
    spread: np.ndarray  # (k,), the variance left
    first: float  # the time of moment 0
    n_moments: int
    scale: float  # l
    strength: float  # v
    scales: np.ndarray  # (m,), s

    def at(self, rows: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of some rows at times, (q,) each; of rows that came later 0 and v."""
        strengths, step = self.strengths(rows), self.scale / _MOMENTS
        moment = np.floor((times - self.first) / step)
        inside = moment.clip(0, self.n_moments - 1)  # its row does not change by that
        key = rows * self.n_moments + inside.astype(np.int64)
        place = np.searchsorted(self.keys, key, side="right") - 1
        lower, upper = (self._near(rows, moment, each) for each in (place, place + 1))
        between = lower.correlation * upper.correlation
        rest = (1 - np.square(between)).clip(min=1e-12)
        left = (lower.correlation - upper.correlation * between) / rest
        right = (upper.correlation - lower.correlation * between) / rest
        mean = left * lower.mean + right * upper.mean
        shared = _covariance(lower.spread, upper.spread, between / rest / strengths)
        known = np.square(left) * lower.spread + np.square(right) * upper.spread + 2 * left * right * shared
        told = left * lower.correlation + right * upper.correlation
        return mean, known + strengths * (1 - told).clip(min=0)

    def strengths(self, rows: np.ndarray) -> np.ndarray:
        """The strength v / s of some rows, v of those that came later."""
        trained = rows < len(self.scales)
        return self.strength / np.where(trained, self.scales[rows * trained], 1.0)

    def of_rows(self, rows: np.ndarray) -> Moments:
        """The same of some rows, ascending, which are counted anew."""
        trained = rows[rows < len(self.scales)]
        owner = self.keys // self.n_moments
        kept = np.isin(owner, trained)
        keys = np.searchsorted(trained, owner[kept]) * self.n_moments + self.keys[kept] % self.n_moments
        return self._replace(keys=keys, mean=self.mean[kept], spread=self.spread[kept], scales=self.scales[trained])

    def of_new_rows(self) -> Moments:
        """The same for rows that all came later."""
        one = np.ones(1, self.mean.dtype)
        return self._replace(keys=np.full(1, -1, self.keys.dtype), mean=0 * one, spread=one, scales=one)

    def _near(self, rows: np.ndarray, moment: np.ndarray, place: np.ndarray) -> _Near:
        """The process at the moments of some places, with no correlation where they are of another row."""
        there = place.clip(0, len(self.keys) - 1)
        key = self.keys[there]
        same = (there == place) & (key // self.n_moments == rows)
        gap = np.abs(moment - key % self.n_moments)
        return _Near(np.exp(-gap / _MOMENTS) * same, self.mean[there], self.spread[there])


class _Near(NamedTuple):
    correlation: np.ndarray
    mean: np.ndarray
    spread: np.ndarray


def _covariance(lower: np.ndarray, upper: np.ndarray, joint: np.ndarray) -> np.ndarray:
    """The covariance of neighbours in a chain from their variances and minus what joins them in the precision.

    With others summed out, their precision is [[a, -j], [-j, b]], of which the variances give a and b.
    """
    own = (1 + np.sqrt(1 + 4 * np.square(joint) * lower * upper)) / (2 * lower)  # a
    return joint / own * upper


class Process(Stateful):
    """A process at the entries of a side, with their `rows` and `times`, both of shape (nnz,).

    `scale` is l in the unit of the times, `strength` v in the square of the unit of the entries, `scales` (m,) are s.
    """

    _STATE = ("mean", "spread", "_sum", "_squares", "_count")

    def __init__(self, rows: Tensor, times: Tensor, scale: float, strength: float, scales: Tensor) -> None:
        self.scale, self.strength, self._scales = scale, strength, scales
        self._first = float(times.min())
        moments = ((times - self._first) / (scale / _MOMENTS)).floor().long()
        self._n_moments = int(moments.max()) + 1
        self._keys, self._node = torch.unique(rows * self._n_moments + moments, return_inverse=True)
        self._order = torch.argsort(self._node, stable=True)
        self._starts = functional.pad(torch.bincount(self._node, minlength=len(self._keys)).cumsum(0), (1, 0))
        owners = self._keys // self._n_moments
        self._longest = int(torch.bincount(owners).max())
        gaps = functional.pad(self._keys.diff(), (1, 0)).to(torch.float64)
        same = functional.pad(owners.diff() == 0, (1, 0))
        kept = torch.exp(-gaps / _MOMENTS) * same  # correlation with the moment before
        self._kept, self._root = kept, (1 - kept.square()).rsqrt()
        self._strengths = strength / scales[owners]
        self.mean, self.spread = torch.zeros_like(gaps), self._strengths
        self._sum, self._squares, self._count = torch.zeros_like(gaps), torch.zeros_like(gaps), 0

    def update(self, rest: Tensor, precision: Tensor, generator: torch.Generator | None = None) -> None:
        """Set the process to what is most probable given the entries less all else, (nnz,), or draw it."""
        weights, sums = self._sums(precision), self._sums(precision * rest)
        inner = (self._kept * self._root).square()
        diagonal = (self._root.square() + functional.pad(inner[1:], (0, 1))) / self._strengths + weights
        before = -self._kept * self._root.square() / self._strengths
        if generator is not None:  # a solution of disturbed equations is a draw
            first, second = (self._normal(generator) for _ in range(2))
            second = second * self._root / self._strengths.sqrt()
            sums = sums + weights.sqrt() * first + second - functional.pad((self._kept * second)[1:], (0, 1))
        self.mean, self.spread = solve_chains(diagonal, before, sums, self._longest)

    def at_entries(self) -> tuple[Tensor, Tensor]:
        """Mean and variance of the process at each entry, (nnz,)."""
        return self.mean[self._node], self.spread[self._node]

    def count(self) -> None:
        """Let the present draw count for `moments`."""
        self._sum, self._squares = self._sum + self.mean, self._squares + self.mean.square()
        self._count += 1

    def moments(self) -> Moments:
        """The process as it stands, or the mean and the variance of the draws that count."""
        mean, spread = self.mean, self.spread
        if self._count:
            mean = self._sum / self._count
            spread = torch.maximum(self._squares / self._count - mean.square(), 1e-6 * self._strengths)
        keys, mean, spread, scales = (each.cpu().numpy() for each in (self._keys, mean, spread, self._scales))
        return Moments(keys, mean, spread, self._first, self._n_moments, self.scale, self.strength, scales)

    def _sums(self, values: Tensor) -> Tensor:
        return torch.segment_reduce(values[self._order].to(torch.float64), "sum", offsets=self._starts)

    def _normal(self, generator: torch.Generator) -> Tensor:
        like = self.mean
        return torch.randn(like.shape, generator=generator, dtype=like.dtype, device=like.device)


class Solved(NamedTuple):
    """The solution of the equations A x = h of chains, and its variances."""

    solution: Tensor  # (k,)
    variances: Tensor  # (k,), the diagonal of A^-1


def solve_chains(diagonal: Tensor, before: Tensor, right: Tensor, longest: int) -> Solved:
    """The solution x and the diagonal of A^-1 for a positive definite A.

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
    """The values that stand `distance` positions before each."""
    length = len(values)
    if abs(distance) >= length:
        return torch.full_like(values, outside)
    kept = values[:-distance] if distance > 0 else values[-distance:]
    return functional.pad(kept, (distance, 0) if distance > 0 else (0, -distance), value=outside)
