"""myFM's Bayesian factorization machines with the fit and predict of our models, for comparisons."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from types import ModuleType
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions, as_interactions
from air_recsys.storage.validation import needs_extra


@contextmanager
def _without_pkg_resources() -> Iterator[None]:
    """Make myFM 0.4.0 importable: it imports two names of pkg_resources, gone from setuptools 82, and uses neither."""
    if "pkg_resources" in sys.modules:
        yield
        return
    stand_in: Any = ModuleType("pkg_resources")
    stand_in.get_distribution, stand_in.DistributionNotFound = None, LookupError
    sys.modules["pkg_resources"] = stand_in
    try:
        yield
    finally:
        del sys.modules["pkg_resources"]


with needs_extra("test"), _without_pkg_resources():
    from myfm import MyFMOrderedProbit, MyFMRegressor, RelationBlock


class MyFMModel:
    r"""A Bayesian factorization machine on users and items, sampled by Gibbs steps; the mean of the samples predicts.

    By itself it is Bayesian matrix factorization with biases. With `implicit` a user is described by an indicator and
    by the rated items N(u), each with weight :math:`|N(u)|^{-1/2}`, and an item by its indicator and its users in the
    same way: myFM's "Bayesian SVD++ flipped". Features of users and items of the interactions stand beside, a group
    for each side. Users and items without ratings keep their prior, and unknown ones are
    described by nothing. With `dates` the day of a rating is an indicator, too, that of timestamps in seconds: its
    "timeSVD++ flipped". With `ordered` the values are classes of an ordered probit, and a prediction is the mean of
    their distribution. All Gibbs steps but the first five are kept.

    Source: Rendle, Zhang, Koren, On the Difficulty of Evaluating Baselines, 2019, section 3; myFM's examples.
    """

    def __init__(
        self,
        rank: int,
        n_steps: int,
        random_state: int = 0,
        implicit: bool = False,
        *,
        dates: bool = False,
        ordered: bool = False,
    ) -> None:
        self.n_steps, self.implicit, self.dates, self.ordered = n_steps, implicit, dates, ordered
        self._model: Any = (MyFMOrderedProbit if ordered else MyFMRegressor)(rank=rank, random_seed=random_state)

    def fit(self, interactions: Any) -> Self:
        """Train on whatever `as_interactions` accepts."""
        self._data = data = as_interactions(interactions)
        sides = [data.n_users, data.n_items]
        self._relational = self.implicit or self.dates or any(data.n_features)
        self._days = np.unique(_days(data.timestamps)) if self.dates else np.empty(0)
        if self._relational:
            blocks = _blocks(data, self.implicit)
            self._tables = [_table(parts) for parts in blocks]
            sides = [_width(part) for parts in blocks for part in parts]
        sides = [self._days.size, *sides] if self.dates else sides
        design = self._design(data.user_index, data.item_index, data.timestamps)
        self._values, classes = np.unique(data.ratings, return_inverse=True)
        with redirect_stderr(io.StringIO()):  # its progress bar cannot be turned off
            truth = classes if self.ordered else data.ratings
            self._model.fit(**design, y=truth, n_iter=self.n_steps, group_shapes=sides)
        return self

    def predict(self, user_ids: Any, item_ids: Any, *, timestamps: Any = None) -> np.ndarray:
        """The mean over the samples for each pair of ids, with `dates` at its time, shape (n,)."""
        if self.ordered:
            return self.predict_proba(user_ids, item_ids, timestamps=timestamps) @ self._values
        return np.asarray(self._model.predict(**self._asked(user_ids, item_ids, timestamps)))

    def predict_proba(self, user_ids: Any, item_ids: Any, *, timestamps: Any = None) -> np.ndarray:
        """The probability of each value of the training ratings, in ascending order, with `ordered`, (n, k)."""
        return np.asarray(self._model.predict_proba(**self._asked(user_ids, item_ids, timestamps)))

    def _asked(self, user_ids: Any, item_ids: Any, timestamps: Any) -> dict[str, Any]:
        return self._design(self._data.users.lookup(user_ids), self._data.items.lookup(item_ids), timestamps)

    def _design(self, users: np.ndarray, items: np.ndarray, timestamps: Any) -> dict[str, Any]:
        """The design of some pairs: a sparse matrix, or two tables and the rows of each pair in them."""
        if not self._relational:
            return {"X": _one_hot(self._data, users, items)}
        sizes = self._data.n_users, self._data.n_items
        sides = zip((users, items), sizes, self._tables, strict=True)
        # An unknown id, -1, has the last row.
        return {
            "X": _indicators(_days(timestamps), self._days) if self.dates else None,
            "X_rel": [RelationBlock((index % (size + 1)).tolist(), table) for index, size, table in sides],
        }


def _days(timestamps: Any) -> np.ndarray:
    return np.asarray(timestamps) // 86_400


def _indicators(values: np.ndarray, known: np.ndarray) -> sp.csr_matrix:
    """One row per value with a 1 for its place among the known ones, if it is one of them."""
    places = np.searchsorted(known, values).clip(max=known.size - 1)
    found = known[places] == values
    pairs = np.flatnonzero(found), places[found]
    return sp.csr_matrix((np.ones(found.sum()), pairs), shape=(values.size, known.size))


def _one_hot(data: Interactions, users: np.ndarray, items: np.ndarray) -> sp.csr_matrix:
    """One row per pair with a 1 for its user and one for its item if known, shape (n, n_users + n_items)."""
    known = np.column_stack([users, items]) >= 0
    columns = np.column_stack([users, data.n_users + items])[known].astype(np.int32)
    starts = np.append(0, known.sum(axis=1).cumsum()).astype(np.int32)
    return sp.csr_matrix((np.ones(columns.size), columns, starts), shape=(users.size, data.n_users + data.n_items))


def _blocks(data: Interactions, implicit: bool) -> list[list[sp.csr_matrix]]:
    """What describes users, and items: indicators, the scaled pattern if `implicit`, features if any."""
    ones = np.ones(data.n_ratings)
    pattern = sp.csr_matrix((ones, (data.user_index, data.item_index)), shape=(data.n_users, data.n_items))
    blocks = []
    for rated, features in ((pattern, data.user_features), (pattern.T.tocsr(), data.item_features)):
        counts = np.diff(rated.indptr)
        parts = [sp.eye(counts.size)]
        if implicit:
            parts.append(sp.diags(np.maximum(counts, 1) ** -0.5) @ rated)
        if features is not None:
            parts.append(sp.csr_matrix(features.values.astype(np.float64)))
        blocks.append(parts)
    return blocks


def _table(parts: list[sp.csr_matrix]) -> sp.csr_matrix:
    """A row for each user or item, and one of zeros."""
    rows = sp.hstack(parts)
    return sp.csr_matrix(sp.vstack([rows, sp.csr_matrix((1, _width(rows)))], format="csr"))


def _width(matrix: Any) -> int:
    return int(matrix.shape[1])
