r"""Fold-in: the factors of new rows from their ratings, by a linear solve against the fixed other side.

With the items fixed, the objective of `AIR` is quadratic in one user's factors u and bias b. In the unit of the
ratings and times n_users n_items it is

.. math::
    \sum_{j\in N} c_j (u v_j^\top + b + o_j - y_j)^2 + \omega\sum_{j\notin N} (u v_j^\top)^2 + u P u^\top
        + \lambda_b b^2 + \rho\sum_k a_k (u - u_k)\, V^\top V\, (u - u_k)^\top

over the user's rated items N, with weights c, offsets o (the mean and the items' biases) and a penalty P: the weight
decay and the energy of the row on the item graph, m n eta V^T L V. The last term ties a known user to its neighbours
k in the user graph; a new user has none. Items are folded in alike, with the sides exchanged.

A model without weight decay is regularized by its depth alone, which no objective of one row shows. There P is that
of a Gaussian prior on rows that look like those of training: sigma^2 S^-1, S the second moment of the trained factors
and sigma^2 the mean squared training error, at least a thousandth of the mean squared rating. Models with a posterior
have equations of their own for a row: `air_recsys.models.posterior_rows`.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.columns import as_weights
from air_recsys.exceptions import DataError, UnknownIdError
from air_recsys.interactions import Interactions
from air_recsys.models.scaling import Scaling

if TYPE_CHECKING:
    from air_recsys.models.air import AIR
    from air_recsys.models.base import Recommender

SIDES = ("user", "item")
_RIDGE = 1e-12  # of the diagonal
_FLATTEST = 1e-6  # of the largest power of a singular value in the decay of deep models
_COLLAPSED = 1e-12  # squared singular value of factors that decay has brought to 0
_SMALLEST = 1e-9  # of the largest variance in the prior
_NOISE = 1e-3  # of the mean squared rating: the least noise, for models that fit their ratings exactly


class Folded(NamedTuple):
    """Factors and biases of rows that were folded in."""

    factors: np.ndarray  # (n, r)
    biases: np.ndarray  # (n,)


class Ties(NamedTuple):
    """What ties known rows to their neighbours in a learned graph."""

    strength: float  # rho
    degrees: np.ndarray  # (n,), sums of the edge weights a
    pulls: np.ndarray  # (n, r), sums of the neighbours' factors times a


class RowSolver:
    """The linear solve of the module's objective, for many rows against one fixed side.

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

    Examples
    --------
    >>> solver = RowSolver(np.array([[1.0], [2.0]]), np.zeros(2), np.zeros((1, 1)))
    >>> solver.solve(sp.csr_array([[3.0, 0.0], [1.0, 2.0]])).factors
    array([[3.],
           [1.]])
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

    def solve(self, ratings: sp.csr_array, *, weights: np.ndarray | None = None, ties: Ties | None = None) -> Folded:
        """Return the factors and biases of rows.

        Parameters
        ----------
        ratings : sparse array, shape (n, n_others)
            Stored entries are ratings, zeros included. A row without any has factors and bias 0, unless it is tied.
        weights : ndarray, shape (nnz,), optional
            c, in the order of the stored entries.
        ties : Ties, optional
            Edges to fixed rows of the own side.
        """
        matrix, right = np.empty_like(self._base), np.empty(len(self._base))
        width = self.others.shape[1]
        solved = np.zeros((len(ratings.indptr) - 1, len(self._base)))
        for row, (start, stop) in enumerate(itertools.pairwise(ratings.indptr)):
            if start == stop and ties is None:
                continue
            part = slice(start, stop)
            confidence = np.ones(stop - start) if weights is None else weights[part]
            self._equation(ratings.indices[part], ratings.data[part], confidence, matrix, right)
            if ties is not None:
                matrix[:width, :width] += ties.strength * ties.degrees[row] * self._gram
                right[:width] += ties.strength * (self._gram @ ties.pulls[row])
            solved[row] = np.linalg.solve(made_definite(matrix), right)
        factors = solved[:, :width].astype(self.others.dtype)
        return Folded(factors, solved[:, width] if self.bias_decay is not None else np.zeros(len(solved)))

    def parts(self, columns: np.ndarray, ratings: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return what each rating of one row contributes to its factors, (k, r): they sum to those of `solve`."""
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


def made_definite(matrix: np.ndarray) -> np.ndarray:
    """Return normal equations with a tiny ridge, in place: directions that nothing sees stay at 0."""
    diagonal = matrix.diagonal()
    matrix.flat[:: len(matrix) + 1] = np.where(diagonal > 0, diagonal * (1 + _RIDGE), 1.0)
    return matrix


def row_solver(model: AIR, side: Literal["user", "item"]) -> RowSolver:
    """Return the solver for new rows of a side ("user" or "item") of a fitted model."""
    if model._spread is not None:
        return model._spread.row_solver(model, side)
    by_user = side == "user"
    own, others = model.user_factors_, model.item_factors_
    graph, weight = model.item_graph_, model._energy_weight("item")
    if not by_user:
        own, others, graph, weight = others, own, model.user_graph_, model._energy_weight("user")
    penalty = _decay(model, by_user) if model._decays else row_prior(model, own)
    if graph is not None and weight > 0:
        factors = others.astype(np.float64)
        energy = factors.T @ (graph.laplacian() @ factors)  # V^T L V, (r, r)
        penalty = penalty + weight * energy
    biases = model.item_biases_ if by_user else model.user_biases_
    return RowSolver(
        others,
        biases + model.global_mean_,
        penalty,
        model.bias_decay if model.biases else None,
        model.unobserved_weight,
    )


def _decay(model: AIR, by_user: bool) -> np.ndarray:
    """Return the weight decay of a row as a quadratic form, in the unit of the side: users carry that of the ratings.

    An item's factors are a row of the last weight: lambda I. A user's are u = w W1 ... W(L-2), with the decay on w.
    Where training has settled the weights are balanced, W(l)^T W(l) = W(l+1) W(l+1)^T, so |w|^2 = u (V^T V)^(2-L) u^T.
    """
    width = model.item_factors_.shape[1]
    if not by_user:
        unit = Scaling.of(model.interactions_.ratings, center=False, scale=model.scale).unit
        return model.weight_decay * unit**2 * np.eye(width)
    if model.depth == 2:
        return model.weight_decay * np.eye(width)
    others = model.item_factors_.astype(np.float64)
    values, axes = np.linalg.eigh(others.T @ others)
    largest, power = max(values[-1], _COLLAPSED), model.depth - 2
    scales = (values.clip(min=0) / largest) ** power
    return model.weight_decay * (axes / scales.clip(min=_FLATTEST)) @ axes.T / largest**power


def row_prior(model: AIR, own: np.ndarray) -> np.ndarray:
    """Return sigma^2 S^-1, the penalty of a Gaussian prior with the second moment S of the trained rows."""
    if not own.any():
        return np.eye(own.shape[1])
    data = model.interactions_
    error = data.ratings - model._score_pairs(data.user_index, data.item_index)
    return span_penalty(own, max(float(np.mean(error**2)), _NOISE * float(np.mean(data.ratings**2))))


def span_penalty(own: np.ndarray, noise: float) -> np.ndarray:
    """Return noise S^-1, S the second moment of some rows: what keeps another row in their span."""
    variances, axes = np.linalg.eigh(own.T.astype(np.float64) @ own / len(own))
    return noise * (axes / variances.clip(min=_SMALLEST * variances[-1])) @ axes.T


def as_rows(
    model: Recommender, ratings: Any, weights: np.ndarray | None, side: str
) -> tuple[sp.csr_array, np.ndarray | None]:
    """Return new rows as a CSR array over the other side's indices, and their weights.

    Raises
    ------
    DataError, UnknownIdError
        Where the ratings do not fit the model.
    """
    if isinstance(ratings, pd.DataFrame):
        ratings = Interactions.from_frame(ratings, allow_negative=True)
    if isinstance(ratings, Interactions):
        if weights is not None:
            raise DataError("expected the weights within the interactions, found them beside")
        return _rows_of_interactions(model, ratings, side)
    if not sp.issparse(ratings):
        raise DataError(f"expected Interactions, a DataFrame or a SciPy sparse matrix, found {type(ratings).__name__}")
    if weights is not None and ratings.format != "csr":
        raise DataError(f"weights stand in the order of a CSR matrix, found a matrix in the format {ratings.format}")
    n_others = model.interactions_.n_items if side == "user" else model.interactions_.n_users
    if ratings.ndim != 2 or ratings.shape[1] != n_others:
        other = "item" if side == "user" else "user"
        raise DataError(f"expected {n_others} columns, one a known {other}, found shape {ratings.shape}")
    rows = sp.csr_array(ratings, dtype=np.float64)
    if not np.isfinite(rows.data).all():
        raise DataError("ratings must be finite, found NaN or infinite ones")
    return rows, None if weights is None else as_weights(weights, rows.nnz)


def _rows_of_interactions(model: Recommender, data: Interactions, side: str) -> tuple[sp.csr_array, np.ndarray | None]:
    own, others, known = data.users, data.items, model.interactions_.items
    index, other_index = data.user_index, data.item_index
    if side == "item":
        own, others, known = data.items, data.users, model.interactions_.users
        index, other_index = other_index, index
    found = known.lookup(others.ids)
    if (found < 0).any():
        hint = "partial_fit takes new ones in" if hasattr(model, "partial_fit") else "leave them out"
        raise UnknownIdError(others.kind, others.ids[found < 0].tolist(), hint)
    return stored_rows((index, found[other_index]), data.ratings, data.weights, (len(own), len(known)))


def stored_rows(
    pairs: tuple[np.ndarray, np.ndarray], ratings: np.ndarray, weights: np.ndarray | None, shape: tuple[int, int]
) -> tuple[sp.csr_array, np.ndarray | None]:
    """Return ratings at (row, column) pairs as a CSR array, and their weights in its order."""
    rows = sp.csr_array((ratings, pairs), shape=shape)
    return rows, None if weights is None else sp.csr_array((weights, pairs), shape=shape).data
