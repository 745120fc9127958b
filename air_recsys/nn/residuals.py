r"""What factors leave: a Gaussian process of each row over the graph of the columns.

Values are :math:`y = s + f + e`: scores s of factors, noise e of variance :math:`\sigma^2 / w` with the weight w of a
value, and for each row alone

.. math:: f \sim N(0, t \sigma^2 K), \qquad K = (I + D^{-1/2} A D^{-1/2}) / 2,

with the adjacency A of the columns and its degrees D. K is a low pass of the normalised Laplacian L, I - L / 2, with
eigenvalues in 0..1. Of the residuals :math:`r = y - s` of a row at its own columns o follows

.. math:: f = t K_{\cdot o}\, a, \qquad (W^{-1} + t K_{oo})\, a = r.

At a column of its own, f is what the other columns say: the diagonal of K is left out there.

K is sparse, so the equations of some rows are one sparse matrix with a block a row. Chebyshev's iteration solves them
within the known bounds of the spectrum. It takes no sums over a row, so a row has the same bits beside any others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from air_recsys.graphs.agreement import ranges, reduced
from air_recsys.graphs.cooccurrence import scaled_adjacency
from air_recsys.metrics.checks import Csr

Apply = Callable[[np.ndarray], np.ndarray]
_ACCURACY = 1e-8  # of a
_PLACES = 4_000_000  # of a dense block of rows
_ENTRIES = 8_000_000  # of columns near the own ones, gone through at a time


@dataclass(frozen=True, eq=False)
class RowProcesses:
    """The processes of rows over one graph of the columns.

    Parameters
    ----------
    edges : csr_array, shape (n, n)
        :math:`D^{-1/2} A D^{-1/2}`, symmetric with an empty diagonal, see `of_graph`.
    strength : float
        t >= 0.
    near : csr_array, shape (k, n), optional
        The columns near each of those that are asked for, in the unit of `edges`; by default `edges` itself.

    Examples
    --------
    >>> processes = RowProcesses.of_graph(sp.csr_array([[0.0, 3.0], [3.0, 0.0]]), 2.0)
    >>> coefficients = processes.coefficients(sp.csr_array([[1.0, 0.0]]))
    >>> coefficients.toarray(), processes.of(coefficients).toarray()
    (array([[0.5, 0. ]]), array([[0. , 0.5]]))
    """

    edges: Csr
    strength: float
    near: Csr | None = None

    @classmethod
    def of_graph(cls, adjacency: Csr, strength: float) -> RowProcesses:
        """The processes over a symmetric graph without loops."""
        return cls(scaled_adjacency(sp.csr_array(adjacency, dtype=np.float64)), strength)

    @property
    def asked(self) -> Csr:
        """The columns near each of those that are asked for, (k, n)."""
        return self.edges if self.near is None else self.near

    def coefficients(self, residuals: Csr, weights: np.ndarray | None = None) -> sp.csr_array:
        """The coefficients a of rows, at the entries of their residuals, (b, n).

        Parameters
        ----------
        residuals : csr_array, shape (b, n)
            Stored entries are residuals, zeros included.
        weights : ndarray, shape (nnz,), optional
            w of each; an entry of weight 0 says nothing.
        """
        solved = sp.csr_array(residuals, dtype=np.float64, copy=True)
        for start, stop in self._blocks(residuals):
            first, last = residuals.indptr[start], residuals.indptr[stop]
            own = None if weights is None else weights[first:last]
            solved.data[first:last] = self._solved(residuals[start:stop], own)
        return solved

    def of(self, coefficients: Csr) -> sp.csr_array:
        """The processes f of rows at all columns that are asked for, (b, k)."""
        reached = self.edges if self.near is None else sp.csr_array(self.near.T)  # edges are symmetric
        return sp.csr_array(coefficients @ reached) * (self.strength / 2)

    def at(self, coefficients: Csr, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The processes f at pairs of a row of `coefficients`, ascending, and a column that is asked for, (p,)."""
        found, n = np.empty(rows.size), coefficients.shape[1]
        edges = self.asked
        counts, own = np.diff(edges.indptr), np.zeros(0)
        for start, stop in self._blocks(coefficients):
            block = sp.coo_array(coefficients[start:stop])
            own = own if own.size >= (stop - start) * n else np.zeros((stop - start) * n)
            places = block.row * np.int64(n) + block.col
            own[places] = block.data
            first, last = np.searchsorted(rows, (start, stop))
            for pairs in _parts(first, last, counts[columns[first:last]]):
                sizes = counts[columns[pairs]]
                near = ranges(edges.indptr[columns[pairs]].astype(np.int64), sizes)
                place = np.repeat((rows[pairs] - start) * np.int64(n), sizes) + edges.indices[near]
                found[pairs] = reduced(np.add, edges.data[near] * own[place], sizes)
            own[places] = 0.0
        return found * (self.strength / 2)

    def _blocks(self, rows: Csr) -> list[tuple[int, int]]:
        """Stretches of rows whose equations are formed at a time."""
        m, n = rows.shape
        step = max(1, _PLACES // max(1, n))
        return [(start, min(start + step, m)) for start in range(0, m, step)]

    def _solved(self, residuals: Csr, weights: np.ndarray | None) -> np.ndarray:
        """The coefficients a of a block of rows, in the order of their residuals."""
        counts, matrix, half = np.diff(residuals.indptr), self._among_own(residuals), self.strength / 2
        if weights is None:
            highest = np.full(residuals.nnz, 1 + 2 * half)
            return chebyshev(lambda a: (1 + half) * a + half * (matrix @ a), residuals.data, highest)
        roots = np.sqrt(weights)  # of the unknown a / roots the matrix is symmetric, with eigenvalues from 1 on

        def apply(a: np.ndarray) -> np.ndarray:
            scaled = roots * a
            return a + half * roots * (scaled + matrix @ scaled)

        highest = 1 + 2 * half * np.repeat(reduced(np.maximum, weights, counts), counts)
        return roots * chebyshev(apply, roots * residuals.data, highest)

    def _among_own(self, rows: Csr) -> sp.csr_array:
        """The edges among the own columns of each row, one block a row, (nnz, nnz)."""
        n, edges = np.int64(rows.shape[1]), self.edges
        first = np.repeat(np.arange(rows.shape[0]) * n, np.diff(rows.indptr))
        places = np.full(rows.shape[0] * n, -1, dtype=np.int32)
        places[first + rows.indices] = np.arange(rows.nnz, dtype=np.int32)
        degrees = np.diff(edges.indptr)[rows.indices]
        values, columns, found = [], [], [np.zeros(1, dtype=np.int64)]
        for own in _parts(0, rows.nnz, degrees):
            sizes = degrees[own]
            near = ranges(edges.indptr[rows.indices[own]].astype(np.int64), sizes)
            place = places[np.repeat(first[own], sizes) + edges.indices[near]]
            is_own = place >= 0
            values.append(edges.data[near[is_own]])
            columns.append(place[is_own])
            found.append(np.append(0, np.cumsum(is_own))[np.cumsum(sizes)] + found[-1][-1])
        ends = np.concatenate(found)
        if not values:
            return sp.csr_array((rows.nnz, rows.nnz))
        return sp.csr_array((np.concatenate(values), np.concatenate(columns), ends), shape=(rows.nnz, rows.nnz))


def chebyshev(apply: Apply, right: np.ndarray, highest: np.ndarray) -> np.ndarray:
    """X with A x = right, for a symmetric A whose blocks have their eigenvalues in 1..highest, (n,).

    Examples
    --------
    >>> chebyshev(lambda x: np.array([1.0, 3.0]) * x, np.array([2.0, 6.0]), np.array([3.0, 3.0])).round(6)
    array([2., 2.])
    """
    middle = (highest + 1) / 2
    rate = (highest - 1) / 2 / middle
    found, left, step, weight = np.zeros_like(right), right.copy(), right / middle, rate
    for _ in range(_n_steps(float(highest.max(initial=1.0)))):
        found += step
        left -= apply(step)
        rest = 2 - rate * weight
        step = rate / rest * weight * step + 2 / (middle * rest) * left
        weight = rate / rest
    return found


def _n_steps(highest: float) -> int:
    """The steps until the error is a fraction `_ACCURACY` of x."""
    root = math.sqrt(highest)
    factor = (root - 1) / (root + 1)
    return 1 if factor <= 0 else max(1, math.ceil(math.log(_ACCURACY / 2) / math.log(factor)))


def _parts(first: int, last: int, sizes: np.ndarray) -> list[slice]:
    """first..last in slices with about `_ENTRIES` entries each, of which each place has some."""
    n_parts = int(sizes.sum()) // _ENTRIES + 1
    edges = np.linspace(first, last, n_parts + 1).astype(np.int64)
    return [slice(start, stop) for start, stop in itertools.pairwise(edges) if start < stop]
