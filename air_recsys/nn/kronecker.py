r"""What scores leave, as a Gaussian process over pairs, and rows without values, as a process over rows.

**Pairs.** With two kernels :math:`K_U` of the rows and :math:`K_I` of the columns, the residuals r of some pairs are
:math:`f + e` with

.. math:: f \sim N(0, K_U \otimes K_I), \qquad e \sim N(0, \lambda / w),

in any unit, so that of all pairs :math:`F = K_U A K_I` follows, where A is 0 but at the given pairs and
:math:`F + \lambda A / w = r` there. No more than products with the two kernels is formed: conjugate gradients solve
the equations for several :math:`\lambda` at once, as the spaces of their steps are the same.

**Rows.** Each column z of a complete matrix is a process of its own over the rows, :math:`z \sim N(\beta 1, K +
\lambda I)`, and with generalised least squares for :math:`\beta`, or 0 for it, says what rows without values have.
With :math:`P = C - C 1 1^\top C / 1^\top C 1` (:math:`P = C` for :math:`\beta = 0`) and :math:`C = (K + \lambda
I)^{-1}` each row is off by :math:`(P z)_i / P_{ii}` from what all others say of it.
K may be of `profiles`, where rows are alike if the same rows are similar to both. What a left-out row adds to the
profiles of the others is then taken out, but not from their lengths.

**New rows with some values.** What others say of a row is off by :math:`e \sim N(0, \Sigma)`, with :math:`\Sigma` the
second moments of the left-out errors of rows that have values, partly those of columns alike, and a noise. So a few
values of a new row correct what is said of all of its columns.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from air_recsys.graphs import laplacian
from air_recsys.nn.posterior.censored import as_measured
from air_recsys.storage.lazy import torch

Apply = Callable[[np.ndarray], np.ndarray]
_ACCURACY, _STEPS = 1e-8, 100  # of the residuals, for the smallest noise; more steps make no better scores
_SOLVED = 1e-30  # the residual of a larger shift, as a fraction of that of the smallest
_LEAST = 1e-9  # of the largest eigenvalue, below which a negative one is rounding


def with_unit_diagonal(similarity: np.ndarray) -> np.ndarray:
    """Similarities over the roots of those of both rows to themselves; of a row without one that is the largest."""
    symmetric = (similarity.astype(np.float64) + similarity.T) / 2
    own = symmetric.diagonal().copy()
    own[own <= 0] = float(symmetric.max(initial=0.0)) or 1.0
    np.fill_diagonal(symmetric, own)
    roots = np.sqrt(own)
    return symmetric / np.outer(roots, roots)


def mended(matrix: np.ndarray) -> tuple[np.ndarray, float]:
    """The positive semidefinite part of a symmetric matrix with a diagonal of ones, and the share that was negative.

    Returns
    -------
    kernel : ndarray, shape (n, n)
        With a diagonal of ones again.
    share : float
        Of the absolute eigenvalues.
    """
    values, vectors = np.linalg.eigh(matrix)
    negative = values < -_LEAST * values[-1]
    share = float(-values[negative].sum() / np.abs(values).sum())
    if share:
        matrix = (vectors * values.clip(0)) @ vectors.T
    root = np.sqrt(matrix.diagonal())
    return matrix / np.outer(root, root), share


def profiles(among: np.ndarray, near: np.ndarray | None = None) -> np.ndarray:
    """How far rows are similar to the same rows: the cosines of their similarities to those and to themselves.

    Parameters
    ----------
    among : ndarray, shape (n, n)
        Similarities of some rows.
    near : ndarray, shape (k, n), optional
        Of other rows to these; without it the rows are compared with each other.

    Examples
    --------
    >>> profiles(np.array([[1.0, 0.5], [0.5, 1.0]])).round(3)
    array([[1. , 0.8],
           [0.8, 1. ]])
    >>> profiles(np.eye(2), np.array([[0.5, 0.0]])).round(3)
    array([[0.894, 0.   ]])
    """
    rows, itself = (among, 0.0) if near is None else (near, 1.0)
    lengths, of_rows = (np.sqrt(np.square(each).sum(axis=1) + own) for each, own in ((among, 0.0), (rows, itself)))
    return (rows @ among + itself * rows) / np.outer(of_rows, lengths)


def squared_distances(factors: np.ndarray) -> np.ndarray:
    """The squared distances of all rows, (n, n)."""
    centred = torch.from_numpy(factors.astype(np.float64) - factors.mean(axis=0))
    return laplacian.squared_distances(centred, centred).numpy()


class PairProcess(NamedTuple):
    """A process over pairs; a kernel that is None is the identity."""

    rows: np.ndarray | None  # (m, m)
    columns: np.ndarray | None  # (n, n)

    def of(self, coefficients: np.ndarray) -> np.ndarray:
        """The process of all pairs, from the coefficients A, (m, n)."""
        found = coefficients if self.rows is None else self.rows @ coefficients
        return found if self.columns is None else found @ self.columns

    def coefficients(
        self,
        shape: tuple[int, int],
        pairs: tuple[np.ndarray, np.ndarray],
        residuals: np.ndarray,
        noises: list[float],
        weights: np.ndarray | None = None,
    ) -> np.ndarray:
        """The coefficients A for each noise, (k, m, n).

        Parameters
        ----------
        shape : tuple of int
            (m, n).
        pairs : tuple of ndarray
            Rows and columns of the residuals.
        residuals : ndarray, shape (p,)
        noises : list of float
            The variances of the noise, above 0.
        weights : ndarray, shape (p,), optional
            w of each residual; one of 0 says nothing.
        """
        roots = np.ones(residuals.size) if weights is None else np.sqrt(weights)
        grid, shifts = np.zeros(shape), np.array(noises) - min(noises)

        def apply(x: np.ndarray) -> np.ndarray:
            grid[pairs] = roots * x
            return roots * self.of(grid)[pairs] + min(noises) * x

        found = np.zeros((len(noises), *shape))
        found[:, *pairs] = roots * _shifted(apply, roots * residuals, shifts)
        return found


def _shifted(apply: Apply, right: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """X with (A + shift) x = right for each shift >= 0, (k, n), by conjugate gradients for the smallest."""
    found, steps = np.zeros((shifts.size, right.size)), np.tile(right, (shifts.size, 1))
    left, step, size = right.copy(), right.copy(), float(right @ right)
    ends, before, now = _ACCURACY**2 * size, np.ones(shifts.size), np.ones(shifts.size)  # factors of the residuals
    length, turn = 1.0, 0.0
    for _ in range(_STEPS):
        if size <= ends:
            break
        moved = apply(step)
        last, length = length, size / float(step @ moved)
        going = now > _SOLVED  # a larger shift is solved sooner
        below = length * turn * (before - now) + before * last * (1 + shifts * length)
        after = np.divide(now * before * last, below, out=np.zeros_like(now), where=going)
        lengths = length * np.divide(after, now, out=np.zeros_like(now), where=going)
        found += lengths[:, None] * steps
        left -= length * moved
        size, smaller = float(left @ left), size
        turn = size / smaller
        step = left + turn * step
        turns = turn * lengths / length * np.divide(after, now, out=np.zeros_like(now), where=going)
        steps = after[:, None] * left + turns[:, None] * steps
        before, now = now, after
    return found


@dataclass(frozen=True, eq=False)
class RowRegression:
    """The process of rows, from the eigenvalues and eigenvectors of K, see the module."""

    spectrum: np.ndarray  # (k,)
    vectors: np.ndarray  # (k, k)
    noise: float
    intercept: bool
    own: np.ndarray | None = None  # (k, k), what each row (columns) adds to the profiles of others

    @classmethod
    def of(cls, kernel: np.ndarray, noise: float, *, intercept: bool, by_profiles: bool = False) -> Self:
        """The process over a kernel of the rows, (k, k), or over its profiles."""
        if not by_profiles:
            return cls(*np.linalg.eigh(kernel), noise, intercept)
        own = kernel / np.sqrt(np.square(kernel).sum(axis=1, keepdims=True))
        np.fill_diagonal(own, 0)
        return cls(*np.linalg.eigh(profiles(kernel)), noise, intercept, own)

    def left_out(self, values: np.ndarray) -> np.ndarray:
        """By how much each row differs from what all others say of it, (k, n)."""
        solved, ones = self._inverse(values), self._inverse(np.ones(len(values)))
        diagonal, total, sums = np.square(self.vectors) @ self._gains, np.full(len(ones), ones.sum()), ones @ values
        sums = np.tile(sums, (len(ones), 1))
        if self.own is not None:  # others are no longer alike by it: an update of rank one, for each row
            across = self._inverse(self.own)
            scale = 1 - np.einsum("ij,ij->j", self.own, across)
            itself, by_ones, by_values = across.diagonal() / scale, self.own.T @ ones, self.own.T @ solved
            diagonal = diagonal + np.square(itself) * scale
            total, sums = total + np.square(by_ones) / scale, sums + (by_ones / scale)[:, None] * by_values
            solved, ones = solved + itself[:, None] * by_values, ones + itself * by_ones
        if self.intercept:
            solved, diagonal = solved - (ones / total)[:, None] * sums, diagonal - np.square(ones) / total
        return solved / diagonal[:, None]

    def of_new(self, near: np.ndarray, values: np.ndarray) -> np.ndarray:
        """What rows without values have, by their kernel with the others, (j, k), and the values of these, (k, n)."""
        solved, level = self._solved(values)
        return near @ solved + level

    def shares(self, near: np.ndarray, values: np.ndarray) -> np.ndarray:
        """What each row with values adds to one without, (k,), for one column of values, (k,)."""
        return near * self._solved(values[:, None])[0][:, 0]

    @property
    def _gains(self) -> np.ndarray:
        return 1 / (self.spectrum.clip(0) + self.noise)

    def _inverse(self, values: np.ndarray) -> np.ndarray:
        return self.vectors @ (self._gains * (self.vectors.T @ values).T).T

    def _solved(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """P times values, (k, n), and the intercepts, (n,)."""
        solved = self._inverse(values)
        if not self.intercept:
            return solved, np.zeros(values.shape[1])
        ones = self._inverse(np.ones(len(values)))
        level = ones @ values / ones.sum()
        return solved - np.outer(ones, level), level


_SHARES, _OWN_NOISES = (0.1, 0.3, 0.5), (0.05, 0.1, 0.2, 0.4)  # of columns alike, and of the mean square of errors
_ASKED = 10  # values of a left-out row that its others are predicted from
_LEVEL, _NORMAL = 0.9, 1.6449  # of the errors that deviations hold
_LEAST_WEIGHT, _NEWTON = 1e-12, 8  # steps towards what limits say


class RowErrors(NamedTuple):
    """The distribution of the errors of a row over the columns, see the module."""

    covariance: np.ndarray  # (n, n)
    noise: float
    reaches: tuple[tuple[float, float], ...] = ((0.0, 1.0),)  # log(1 + number of values), and factors of deviations

    @classmethod
    def of(cls, errors: np.ndarray, observed: np.ndarray, measured: np.ndarray, columns: np.ndarray | None) -> Self:
        """The best of a few for the left-out errors of rows (k, n): some values of each predict its others.

        Deviations hold those that are `measured`, no limits. `columns` is the kernel of the columns, (n, n); None for
        the identity.
        """
        moments = errors.T @ errors / len(errors)
        roots = np.sqrt(moments.diagonal())
        alike = np.diag(moments.diagonal()) if columns is None else columns * np.outer(roots, roots)
        rng, scale = np.random.default_rng(0), float(np.square(errors).mean()) or 1.0
        asked = [rng.permutation(np.flatnonzero(each)) for each in observed]

        def apart(tried: Self, share: float, number: int) -> tuple[np.ndarray, np.ndarray]:
            """Errors given so many of each row, over deviations, too; the moments leave the row itself out."""
            found = []
            for row, places, counts in zip(errors, asked, measured, strict=True):
                some, others = np.split(places, [min(number, places.size // 2)])
                own = tried.covariance - (1 - share) * np.outer(row, row) / len(errors)
                expected, deviations = cls(own, tried.noise).given(some, row[some])
                left = row - expected
                found.append((left[others], (left / deviations)[others[counts[others]]]))
            return np.concatenate([each for each, _ in found]), np.concatenate([each for _, each in found])

        tried = {
            (share, noise): cls((1 - share) * moments + share * alike, noise * scale)
            for share, noise in itertools.product(_SHARES, _OWN_NOISES)
        }
        best = min(tried, key=lambda each: np.square(apart(tried[each], each[0], _ASKED)[0]).sum())
        half, reaches = int(np.mean([places.size // 2 for places in asked])), []
        for number in sorted({0, min(_ASKED, half), half}):
            ratios = np.abs(apart(tried[best], best[0], number)[1])
            reaches.append((np.log1p(number), float(np.quantile(ratios, _LEVEL)) / _NORMAL if ratios.size else 1.0))
        return tried[best]._replace(reaches=tuple(reaches))

    def given(
        self, places: np.ndarray, values: np.ndarray, weights: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The expected errors of a row at all columns, (n,), and the deviations of new values, from some."""
        across = self.covariance[:, places]
        solved = np.linalg.solve(self._among(places, weights), across.T)  # (p, n)
        variance = self.covariance.diagonal() - np.einsum("np,pn->n", across, solved)
        numbers, factors = np.transpose(self.reaches)
        reach = float(np.interp(np.log1p(places.size), numbers, factors))
        return solved.T @ values, reach * np.sqrt(variance.clip(0) + self.noise)

    def of_limits(
        self, places: np.ndarray, values: np.ndarray, weights: np.ndarray, signs: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values and weights that say of a row what values and limits (signs of 1 and -1) say."""
        is_limit, limits, (values, own) = signs != 0, values, (values.copy(), weights.copy())
        deviations = np.sqrt(self.noise / np.maximum(weights, _LEAST_WEIGHT))[is_limit]
        for _ in range(_NEWTON if is_limit.any() else 0):
            expected = self.given(places, values, own)[0][places[is_limit]]
            values[is_limit], told = as_measured(expected, deviations, limits[is_limit], signs[is_limit])
            own[is_limit] = weights[is_limit] * told
        return values, own

    def shares(self, places: np.ndarray, values: np.ndarray, weights: np.ndarray, column: int) -> np.ndarray:
        """What each of the values adds to the expected error at a column, (p,)."""
        return self.covariance[column, places] * np.linalg.solve(self._among(places, weights), values)

    def _among(self, places: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        weights = np.ones(places.size) if weights is None else np.maximum(weights, _LEAST_WEIGHT)
        return self.covariance[np.ix_(places, places)] + np.diag(self.noise / weights)
