r"""What factors leave: a Gaussian process of each row over the graph of the columns.

Values are :math:`y = s + f + e`: scores s of factors, noise e of variance :math:`\sigma^2 / w` with the weight w of a
value, and for each row alone

.. math:: f \sim N(0, t \sigma^2 K), \qquad K = (I + D^{-1/2} A D^{-1/2}) / 2,

with the adjacency A of the columns and its degrees D. K is a low pass of the normalised Laplacian L, I - L / 2, with
eigenvalues in 0..1. Of the residuals :math:`r = y - s` of a row at its own columns o follows

.. math:: f = t K_{\cdot o}\, a, \qquad (W^{-1} + t K_{oo})\, a = r.

At a column of its own, f is what the other columns say: the diagonal of K, what a column has for itself, is left out.

:math:`t K` may have further parts, of moments and features (`air_recsys.nn.row_kernels`).

Products with K take a time that is linear in the entries, so conjugate gradients solve the equations of many rows at
once, each row with its own steps: it has the same bits beside any others.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from air_recsys.graphs.cooccurrence import scaled_adjacency
from air_recsys.metrics.checks import Csr
from air_recsys.nn.row_kernels import Chains, Lasting
from air_recsys.storage.threads import in_workers

Apply = Callable[[np.ndarray], np.ndarray]
_ACCURACY, _MOST_STEPS = 1e-8, 1000  # what is left of the residuals
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
    features : ndarray, shape (n, g), optional
        Of the columns, in a unit in which their products are part of t K, see `air_recsys.nn.row_kernels.in_unit`.
    near_features : ndarray, shape (k, g), optional
        Those of the columns that are asked for, by default `features` itself.
    lasting : Lasting, optional
        A part of t K that fades in time, of rows whose times are known.
    """

    edges: Csr
    strength: float
    near: Csr | None = None
    features: np.ndarray | None = None
    near_features: np.ndarray | None = None
    lasting: Lasting | None = None

    @classmethod
    def of_graph(cls, adjacency: Csr, strength: float) -> RowProcesses:
        """The processes over a symmetric graph without loops."""
        return cls(scaled_adjacency(sp.csr_array(adjacency, dtype=np.float64)), strength)

    @classmethod
    def of_features(cls, features: np.ndarray, lasting: Lasting | None = None) -> RowProcesses:
        """The processes without a graph: products of features of the columns, (n, d), and what lasts."""
        return cls(sp.csr_array((len(features), len(features))), 0.0, features=features, lasting=lasting)

    @property
    def asked(self) -> Csr:
        """The columns near each of those that are asked for, (k, n)."""
        return self.edges if self.near is None else self.near

    def coefficients(
        self, residuals: Csr, weights: np.ndarray | None = None, times: np.ndarray | None = None
    ) -> sp.csr_array:
        """The coefficients a of rows, at the entries of their residuals, (b, n).

        Parameters
        ----------
        residuals : csr_array, shape (b, n)
            Stored entries are residuals, zeros included.
        weights : ndarray, shape (nnz,), optional
            w of each; an entry of weight 0 says nothing.
        times : ndarray, shape (nnz,), optional
            The moment of each.
        """
        solved = sp.csr_array(residuals, dtype=np.float64, copy=True)

        def solve(rows: tuple[int, int]) -> None:
            start, stop = rows
            block = slice(residuals.indptr[start], residuals.indptr[stop])
            own, moments = (None if each is None else each[block] for each in (weights, times))
            solved.data[block] = self._solved(residuals[start:stop], own, moments)

        in_workers(solve, self._blocks(residuals))
        return solved

    def of(self, coefficients: Csr) -> np.ndarray:
        """The processes f of rows at all columns that are asked for, but for what lasts, (b, k)."""
        reached = self.edges if self.near is None else sp.csr_array(self.near.T)  # edges are symmetric
        found = sp.csr_array(coefficients @ reached).toarray() * (self.strength / 2)
        if self.features is not None:
            found += np.asarray(coefficients @ self.features) @ self.asked_features.T
        return found

    def at(
        self,
        coefficients: Csr,
        rows: np.ndarray,
        columns: np.ndarray,
        times: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> np.ndarray:
        """The processes f at pairs of a row of `coefficients`, ascending, and a column that is asked for, (p,).

        `times` are those of the entries of `coefficients`, and of the pairs; without them nothing lasts.
        """
        found, n = np.empty(rows.size), coefficients.shape[1]
        edges = self.asked
        counts = np.diff(edges.indptr)

        def reach(block: tuple[int, int]) -> None:
            start, stop = block
            coefficient, own = sp.coo_array(coefficients[start:stop]), np.zeros((stop - start) * n)
            own[coefficient.row * np.int64(n) + coefficient.col] = coefficient.data
            first, last = np.searchsorted(rows, (start, stop))
            for pairs in _parts(first, last, counts[columns[first:last]]):
                sizes = counts[columns[pairs]]
                near = ranges(edges.indptr[columns[pairs]].astype(np.int64), sizes)
                place = np.repeat((rows[pairs] - start) * np.int64(n), sizes) + edges.indices[near]
                found[pairs] = reduced(np.add, edges.data[near] * own[place], sizes)

        in_workers(reach, self._blocks(coefficients))
        found *= self.strength / 2
        if self.features is not None or times is not None:
            found += self._further_at(coefficients, rows, columns, times)
        return found

    def _further_at(
        self, coefficients: Csr, rows: np.ndarray, columns: np.ndarray, times: tuple[np.ndarray, np.ndarray] | None
    ) -> np.ndarray:
        """The parts of features and of what lasts, at pairs, (p,)."""
        found = np.zeros(rows.size)
        if self.features is not None:
            taken = np.asarray(coefficients @ self.features)  # (b, g)
            for pairs in _parts(0, rows.size, np.full(rows.size, self.features.shape[1])):
                found[pairs] = (taken[rows[pairs]] * self.asked_features[columns[pairs]]).sum(axis=1)
        if times is not None and self.lasting is not None:
            kept = sp.coo_array(coefficients)
            found += self.lasting.at((kept.row, times[0], kept.data), (rows, times[1]))
        return found

    def between(self, asked: int, columns: np.ndarray) -> np.ndarray:
        """What coefficients at some columns count in f at a column that is asked for, but for what lasts, (k,)."""
        found = self.strength / 2 * self.asked[[asked]].toarray()[0, columns]
        return found if self.features is None else found + self.features[columns] @ self.asked_features[asked]

    @property
    def asked_features(self) -> np.ndarray:
        """The features of the columns that are asked for, (k, g)."""
        assert self.features is not None
        return self.features if self.near_features is None else self.near_features

    def _blocks(self, rows: Csr) -> list[tuple[int, int]]:
        """Stretches of rows whose equations are formed at a time."""
        m, n = rows.shape
        width = 0 if self.features is None else self.features.shape[1]
        step = max(1, min(_PLACES // max(1, n), m * _ENTRIES // max(1, rows.nnz * width)))
        return [(start, min(start + step, m)) for start in range(0, m, step)]

    def _solved(self, residuals: Csr, weights: np.ndarray | None, times: np.ndarray | None) -> np.ndarray:
        """The coefficients a of a block of rows, in the order of their residuals."""
        if self.strength == 0 and times is None and self.features is not None:
            return self._solved_by_features(self.features, residuals, weights)
        product, counts = self._covariances(residuals, times), np.diff(residuals.indptr)
        if weights is None:
            return solved_by_rows(lambda a: a + product(a), residuals.data, counts)
        roots = np.sqrt(weights)  # of the unknown a / roots the matrix is symmetric
        return roots * solved_by_rows(lambda a: a + roots * product(roots * a), roots * residuals.data, counts)

    @staticmethod
    def _solved_by_features(features: np.ndarray, residuals: Csr, weights: np.ndarray | None) -> np.ndarray:
        """The same without a graph, by the equations of the weights of features."""
        found, roots = np.empty(residuals.nnz), np.ones(residuals.nnz) if weights is None else np.sqrt(weights)
        for start, stop in itertools.pairwise(residuals.indptr - residuals.indptr[0]):
            own, root = slice(start, stop), roots[start:stop]
            inputs, right = root[:, None] * features[residuals.indices[own]], root * residuals.data[own]
            solved = np.linalg.solve(inputs.T @ inputs + np.eye(inputs.shape[1]), inputs.T @ right)
            found[own] = root * (right - inputs @ solved)
        return found

    def _covariances(self, residuals: Csr, times: np.ndarray | None) -> Apply:
        """The products with t K among the own columns of each row."""
        rows, half = np.repeat(np.arange(residuals.shape[0]), np.diff(residuals.indptr)), self.strength / 2
        among = self._among_own(residuals) if half else None
        lasting = None if times is None else self.lasting
        chains = None if lasting is None or times is None else Chains(rows, times, lasting.scale)
        features = None if self.features is None else self.features[residuals.indices]
        starts = residuals.indptr - residuals.indptr[0]
        sums = sp.csr_array((np.ones(rows.size), np.arange(rows.size), starts), shape=(residuals.shape[0], rows.size))

        def product(values: np.ndarray) -> np.ndarray:
            found = np.zeros(values.size) if among is None else half * (values + among @ values)
            if chains is not None and lasting is not None:
                found += lasting.strength * chains.product(values)
            if features is not None:
                taken = sums @ (values[:, None] * features)  # (b, g)
                found += (taken[rows] * features).sum(axis=1)
            return found

        return product

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


def solved_by_rows(apply: Apply, right: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """X with A x = right, for a positive definite A of blocks of some sizes, (n,), by conjugate gradients."""

    def products(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return reduced(np.add, one * other, counts)

    found, left, step = np.zeros_like(right), right.copy(), right
    square = products(left, left)
    enough = _ACCURACY**2 * square
    going = square > enough
    for _ in range(_MOST_STEPS):
        if not going.any():
            break
        applied = apply(step)
        length = np.divide(square, products(step, applied), out=np.zeros_like(square), where=going)
        found += np.repeat(length, counts) * step
        left = left - np.repeat(length, counts) * applied
        before, square = square, products(left, left)
        turn = np.divide(square, before, out=np.zeros_like(square), where=going)
        going = going & (square > enough)
        step = left + np.repeat(turn, counts) * step
    return found


def _parts(first: int, last: int, sizes: np.ndarray) -> list[slice]:
    """first..last in slices with about `_ENTRIES` entries each, of which each place has some."""
    n_parts = int(sizes.sum()) // _ENTRIES + 1
    edges = np.linspace(first, last, n_parts + 1).astype(np.int64)
    return [slice(start, stop) for start, stop in itertools.pairwise(edges) if start < stop]


def ranges(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The numbers from each start on, as many as its size, one after the other."""
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))


def reduced(by: np.ufunc, values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """What an operation makes of successive stretches of some sizes, each by itself; 0 of an empty one."""
    found, some = np.zeros(sizes.size), sizes > 0
    if some.any():
        found[some] = by.reduceat(values, (np.cumsum(sizes) - sizes)[some])
    return found
