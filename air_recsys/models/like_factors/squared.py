"""Factors by a squared error with confidences and learned graphs: new rows are solved for as those of ALS are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.graphs import SimilarityGraph
from air_recsys.models.air import AIR
from air_recsys.models.like_factors.rows import check_matrices, with_zero_rows
from air_recsys.models.like_factors.targets import Targets, powers_of
from air_recsys.models.rows import LeastSquaresRows
from air_recsys.models.solvers import Adam
from air_recsys.training import Callback

STEPS_PER_ITERATION = 20
LEARNING_RATE = 0.1


class SquaredRows(NamedTuple):
    """How rows of factors follow from likes.

    Attributes
    ----------
    user_penalty, item_penalty : ndarray, shape (r, r)
        Quadratic penalties of a row: the regularization and the energy of the graph of the other side.
    """

    alpha: float  # confidence of a value of 1
    user_penalty: np.ndarray
    item_penalty: np.ndarray
    targets: Targets | None  # None: all are 1

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], alpha: float, unit: float | None) -> SquaredRows:
        """What `to_arrays` was called on; `unit` is that of the targets, None without any."""
        targets = None if unit is None else Targets(unit, arrays["user_counts"], arrays["item_counts"])
        return cls(alpha, arrays["user_penalty"], arrays["item_penalty"], targets)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """What a file has to hold beside `alpha` and the unit of the targets, by name."""
        arrays = {"user_penalty": self.user_penalty, "item_penalty": self.item_penalty}
        if self.targets is not None:
            arrays |= {"user_counts": self.targets.users, "item_counts": self.targets.items}
        return arrays

    def check(self, n_users: int, n_items: int, width: int) -> None:
        """Raise `ValueError` where it does not fit so many users and items with factors of a width."""
        check_matrices(self.to_arrays(), dict.fromkeys(("user_penalty", "item_penalty"), (width, width)))
        if self.targets is not None:
            self.targets.check(n_users, n_items)

    def solver(self, side: str, others: np.ndarray) -> SquaredSolver:
        """What solves for rows of a side, "user" or "item", against the factors of the other side."""
        penalty = self.user_penalty if side == "user" else self.item_penalty
        trained = others if side == "item" or self.targets is None else times(others, 1 / self.targets.item_powers)
        rows = LeastSquaresRows(trained, np.zeros(len(trained)), penalty, unobserved_weight=1.0)
        return SquaredSolver(self, side, rows)

    def with_rows(self, side: str, ids: Any, likes: sp.csr_matrix, others: np.ndarray) -> SquaredRows:
        """The same with the counts of rows at some ids that have these likes."""
        return self if self.targets is None else self._replace(targets=self.targets.with_rows(side, ids, likes))


class SquaredSolver(NamedTuple):
    """Solves for rows of one side."""

    rows: SquaredRows
    side: str
    least_squares: LeastSquaresRows

    def solve(self, likes: sp.csr_matrix) -> np.ndarray:
        """The factors of rows with these likes, (b, r)."""
        values = targets_of(self.rows.targets, self.side, likes)
        wanted = sp.csr_array((values, likes.indices, likes.indptr), shape=likes.shape)
        factors = self.least_squares.solve(wanted, weights=likes.data * self.rows.alpha).factors
        return times(factors, powers_of(likes)) if self.side == "item" and self.rows.targets is not None else factors

    def contributions(self, likes: sp.csr_matrix) -> np.ndarray:
        """What each like of one user adds to its factors, (n_likes, r)."""
        wanted = targets_of(self.rows.targets, "user", likes)
        return self.least_squares.contributions(likes.indices, wanted, likes.data * self.rows.alpha)


def targets_of(targets: Targets | None, side: str, rows: sp.csr_matrix) -> np.ndarray:
    """The target of each stored like of some rows, (nnz,)."""
    return np.ones(rows.nnz) if targets is None else targets.of(side, rows)


def times(factors: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Factors times numbers, in the type of the factors."""
    return (factors * scales).astype(factors.dtype)


class SquaredError(NamedTuple):
    """The objective and its training: settings of the likes, strengths of the graphs, steps, and the model's own."""

    settings: Mapping[str, Any]  # factors, regularization, alpha
    user_graph_reg: float
    item_graph_reg: float
    depth: int
    n_steps: int
    learning_rate: float
    evaluate_every: int
    of_model: Mapping[str, Any]  # parameters of `AIR`


def train_squared_rows(
    likes: sp.csr_matrix, error: SquaredError, *, scaled: bool, callbacks: Iterable[Callback] = ()
) -> tuple[np.ndarray, np.ndarray, SquaredRows, dict[str, SimilarityGraph]]:
    """The factors of users and items and how others follow; users and items without likes have zeros.

    Beside them the graphs of "user" and "item", as far as they are learned. With `scaled` targets fall with the
    numbers of likes; else all are 1. Callbacks get records whose objective is divided by the sum of all confidences.
    """
    shape = likes.get_shape()
    alpha = error.settings["alpha"]
    targets = Targets.of_likes(likes) if scaled else None
    confidences = likes.data * alpha
    # Users and items without likes have zero factors: they are left out here, and get their zeros below.
    users, items = np.flatnonzero(np.diff(likes.indptr)), np.unique(likes.indices)
    size = users.size * items.size
    data = Interactions(
        np.searchsorted(users, np.repeat(np.arange(shape[0]), np.diff(likes.indptr))),
        np.searchsorted(items, likes.indices),
        targets_of(targets, "user", likes),
        users,
        items,
        weights=confidences,
    )
    unit = size / (float(confidences.sum()) + shape[0] * shape[1] - likes.nnz)
    model = _model(error, size).fit(data, callbacks=[_in_unit(each, unit) for each in callbacks])
    solvers = model.row_solver("user"), model.row_solver("item")
    assert isinstance(solvers[0], LeastSquaresRows)  # those of AIR's objective
    assert isinstance(solvers[1], LeastSquaresRows)
    rows = SquaredRows(alpha, solvers[0].penalty, solvers[1].penalty, targets)
    item_factors = with_zero_rows(model.item_factors_, items, shape[1])
    if targets is not None:
        item_factors = times(item_factors, targets.item_powers)
    graphs = _widened({"user": model.user_adjacency_, "item": model.item_adjacency_}, (users, items), shape)
    return with_zero_rows(model.user_factors_, users, shape[0]), item_factors, rows, graphs


def _model(error: SquaredError, size: int) -> AIR:
    solver = Adam(
        depth=error.depth,
        user_graph_reg=error.user_graph_reg / size,
        item_graph_reg=error.item_graph_reg / size,
        n_epochs=error.n_steps,
        learning_rate=error.learning_rate,
        schedule="cosine",
        weight_decay=error.settings["regularization"],
        scale=False,
        unobserved_weight=1.0,
        init_mean=0.0,
        init_std=0.1,
        evaluate_every=error.evaluate_every,
    )
    return AIR(n_factors=error.settings["factors"], solver=solver, **error.of_model)


def _in_unit(callback: Callback, unit: float) -> Callback:
    """A callback of records whose objective is in another unit."""
    return lambda record: callback(record._replace(objective=record.objective * unit))


def _widened(
    learned: dict[str, sp.csr_array | None], places: tuple[np.ndarray, np.ndarray], shape: tuple[int, int]
) -> dict[str, SimilarityGraph]:
    """The graphs that there are, over all users and all items; `places` are those of their rows."""
    wide = {}
    for (kind, adjacency), rows, size in zip(learned.items(), places, shape, strict=True):
        if adjacency is not None:
            edges = adjacency.tocoo()
            among = (rows[edges.row], rows[edges.col])
            wide[kind] = SimilarityGraph(sp.csr_array((edges.data, among), shape=(size, size)), range(size), kind)
    return wide
