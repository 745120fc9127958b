"""Rows of users and items, one at a time: their ratings, and the linear solve against the fixed other side."""

from __future__ import annotations

import itertools
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from air_recsys.exceptions import DataError
from air_recsys.storage.reading import checked_sparse

Side = Literal["user", "item"]
SIDES: tuple[Side, Side] = ("user", "item")
_RIDGE = 1e-12  # fraction of the diagonal that is added to it
_SMALLEST = 1e-9  # least variance of the prior, as a fraction of the largest


class Folded(NamedTuple):
    """Factors and biases of rows that were folded in."""

    factors: np.ndarray  # (n, r)
    biases: np.ndarray  # (n,)


class Ties(NamedTuple):
    """Ties of known rows to their neighbours in a learned graph."""

    strength: float  # rho
    degrees: np.ndarray  # (n,), sums of the edge weights a
    pulls: np.ndarray  # (n, r), sums of the neighbours' factors times a


class Edges(NamedTuple):
    """A learned graph, and the strength of its energy against the sum of squared errors."""

    adjacency: sp.csr_array
    strength: float


class Sources(NamedTuple):
    """N ratings and K neighbours of a user."""

    rated: np.ndarray  # (N,), indices of items
    ratings: np.ndarray  # (N,)
    weights: np.ndarray  # (N,)
    deviations: np.ndarray  # (N,), d: less what the time of a rating added, of models that know of time
    neighbors: np.ndarray  # (K,), indices of users


class ScoreContributions(NamedTuple):
    """A personal score by its sources."""

    sources: Sources
    pattern: float
    of_sources: np.ndarray  # (N + K, 2), in all and by the item graph
    item_edges: Edges
    gains: np.ndarray  # (n_items,), g
    scores: np.ndarray  # (n_items,), x
    of_user_features: np.ndarray  # (g,), part of the score
    of_item_features: np.ndarray  # (g,), another view of it

    @property
    def explained(self) -> float:
        """The sum of the contributions of the sources."""
        return self.pattern + float(self.of_user_features.sum()) + float(self.of_sources[:, 0].sum())


class RowSolver(Protocol):
    """Solves for rows of one side against the fixed other side."""

    others: np.ndarray  # (n_others, r), the factors of the fixed side

    def solve(self, ratings: sp.csr_array, *, weights: np.ndarray | None = None) -> Folded:
        """The factors and biases of rows with these ratings, (n, n_others), zeros included, and weights, (nnz,).

        A row without any has factors and bias 0.
        """
        ...


class LeastSquaresRows:
    """The linear solve of many rows, each a least squares problem against one fixed side, with a quadratic penalty.

    Row u and bias b minimise the sum over its ratings y of c (u v + b + o - y)^2, plus u P u + lambda_b b^2, plus
    omega times the sum of (u v)^2 over all pairs without a rating.

    Parameters
    ----------
    others : ndarray, shape (n_others, r)
        V, the factors of the fixed side.
    offsets : ndarray, shape (n_others,)
        o, what a score starts from.
    penalty : ndarray, shape (r, r)
        P, symmetric and positive semi-definite.
    bias_decay : float, optional
        lambda_b; None for rows without a bias.
    unobserved_weight : float
        omega.
    """

    def __init__(
        self,
        others: np.ndarray,
        offsets: np.ndarray,
        penalty: np.ndarray,
        bias_decay: float | None = None,
        unobserved_weight: float = 0.0,
    ) -> None:
        self.others, self.offsets, self.penalty = others, offsets, penalty
        self.bias_decay, self.unobserved_weight = bias_decay, unobserved_weight
        width = others.shape[1]
        self._inputs = np.asarray(others, dtype=np.float64)  # (n_others, r), or r + 1 with a bias
        self._gram = self._inputs.T @ self._inputs  # (r, r)
        self._base = penalty + unobserved_weight * self._gram
        if bias_decay is not None:
            self._inputs = np.column_stack([self._inputs, np.ones(len(others))])
            self._base = np.pad(self._base, (0, 1))
            self._base[width, width] = bias_decay

    def against(self, others: np.ndarray, offsets: np.ndarray) -> LeastSquaresRows:
        """The same solve against another fixed side."""
        return LeastSquaresRows(others, offsets, self.penalty, self.bias_decay, self.unobserved_weight)

    def solve(self, ratings: sp.csr_array, *, weights: np.ndarray | None = None, ties: Ties | None = None) -> Folded:
        """The factors and biases of rows, see `RowSolver`; a row that is tied has some without any rating.

        Parameters
        ----------
        ratings : sparse array, shape (n, n_others)
        weights : ndarray, shape (nnz,), optional
            c.
        ties : Ties, optional
            Edges to fixed rows of the own side: rho sum_k a_k (u - u_k) V^T V (u - u_k)^T is added.
        """
        ratings = checked_rows(ratings, len(self.others))
        matrix, right = np.empty_like(self._base), np.empty(len(self._base))
        width = self.others.shape[1]
        solved = np.zeros((len(ratings.indptr) - 1, len(self._base)))
        for row, (start, stop) in enumerate(itertools.pairwise(ratings.indptr)):
            if start == stop and ties is None:
                continue
            entries = slice(start, stop)
            confidence = np.ones(stop - start) if weights is None else weights[entries]
            self._equation(ratings.indices[entries], ratings.data[entries], confidence, matrix, right)
            if ties is not None:
                matrix[:width, :width] += ties.strength * ties.degrees[row] * self._gram
                right[:width] += ties.strength * (self._gram @ ties.pulls[row])
            solved[row] = np.linalg.solve(made_definite(matrix), right)
        factors = solved[:, :width].astype(self.others.dtype)
        return Folded(factors, solved[:, width] if self.bias_decay is not None else np.zeros(len(solved)))

    def contributions(self, columns: np.ndarray, ratings: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The contributions of each rating of one row to its factors, (k, r): they sum to those of `solve`."""
        matrix, right = np.empty_like(self._base), np.empty(len(self._base))
        self._equation(columns, ratings, weights, matrix, right)
        deviations = weights * (ratings - self.offsets[columns])
        sources = self._inputs[columns] * deviations[:, None]  # (k, r) or (k, r + 1)
        return np.linalg.solve(made_definite(matrix), sources.T).T[:, : self.others.shape[1]]

    def _equation(
        self,
        columns: np.ndarray,
        ratings: np.ndarray,
        confidence: np.ndarray,
        matrix: np.ndarray,
        right: np.ndarray,
    ) -> None:
        """Write the normal equations of one row."""
        inputs = self._inputs[columns]  # (k, r) or (k, r + 1)
        np.matmul(inputs.T * (confidence - self.unobserved_weight), inputs, out=matrix)
        matrix += self._base
        np.matmul(inputs.T, confidence * (ratings - self.offsets[columns]), out=right)


def other_side(side: Side) -> Side:
    """Items for users, users for items."""
    return "item" if side == "user" else "user"


def checked_rows(ratings: Any, n_others: int) -> sp.csr_array:
    """Ratings of rows over at most `n_others`, in the order of their entries, or raise `DataError`."""
    rows = checked_sparse("ratings", ratings)
    if rows.format != "csr" or rows.shape[1] > n_others:
        raise DataError(f"expected a CSR array of {n_others} columns, found {rows.format} of shape {rows.shape}")
    return rows


def made_definite(matrix: np.ndarray) -> np.ndarray:
    """Normal equations with a tiny ridge, in place: directions that nothing sees stay at 0."""
    diagonal = matrix.diagonal()
    matrix.flat[:: len(matrix) + 1] = np.where(diagonal > 0, diagonal * (1 + _RIDGE), 1.0)
    return matrix


def span_penalty(own: np.ndarray, noise: float) -> np.ndarray:
    """The penalty noise S^-1, S the second moment of some rows, which keeps another row in their span."""
    variances, axes = np.linalg.eigh(own.T.astype(np.float64) @ own / len(own))
    return noise * (axes / variances.clip(min=_SMALLEST * variances[-1])) @ axes.T
