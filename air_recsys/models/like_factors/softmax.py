"""Factors by a softmax over all items: users are what their items make them, and a new item what its users make it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.models.graph_ranker.factors import FactorTraining, user_factors
from air_recsys.models.graph_ranker.inputs import ones_of
from air_recsys.models.like_factors.rows import check_matrices, like_counts, replaced, with_zero_rows
from air_recsys.storage.lazy import torch
from air_recsys.training import Callback, train
from air_recsys.training.softmax import SoftmaxTraining

WIDTH = 128
STEPS_PER_ITERATION = 12
LEARNING_RATE = 0.01
_POWER = 1.1  # of the softmax, see `air_recsys.nn.softmax`
_BATCH_USERS = 256
_ITEM_POWER = 0.05  # of the numbers of likes, in the lengths of the items' factors
_SHARPNESS = 13.3  # of the temperature
_TEMPERATURES = (0.1, 0.25)


def temperature_for(n_items: int) -> float:
    """The temperature for so many items, 13.3 / log(n)^2 between 0.1 and 0.25: the more, the sharper."""
    lowest, highest = _TEMPERATURES
    return float(np.clip(_SHARPNESS / np.log(max(n_items, 2)) ** 2, lowest, highest))


class SoftmaxSettings(NamedTuple):
    """Width of the factors, temperature, steps, the size of the first step, and steps between two records."""

    factors: int
    temperature: float
    n_steps: int
    learning_rate: float
    evaluate_every: int = 10


class SoftmaxRows(NamedTuple):
    """How rows of factors follow from likes.

    Attributes
    ----------
    sources : ndarray, shape (n_items, r)
        What a like of each item adds to a user, whose factors are the sum, of length 1.
    target_map, source_map : ndarray, shape (r + 1, r)
        From the direction of the sum of an item's users, and a 1, to the direction of its factors and to its source:
        the least squares fit over the trained items, each weighed by its likes.
    """

    sources: np.ndarray
    target_map: np.ndarray
    source_map: np.ndarray

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> SoftmaxRows:
        """What `to_arrays` was called on."""
        return cls(*(arrays[name] for name in cls._fields))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """What a file has to hold, by name."""
        return self._asdict()

    def check(self, n_users: int, n_items: int, width: int) -> None:
        """Raise `ValueError` where it does not fit so many users and items with factors of a width."""
        rows = {"sources": n_items, "target_map": width + 1, "source_map": width + 1}
        check_matrices(self._asdict(), {name: (number, width) for name, number in rows.items()})

    def solver(self, side: str, others: np.ndarray) -> SoftmaxSolver:
        """What solves for rows of a side, "user" or "item", against the factors of the other side."""
        return SoftmaxSolver(self, side, others)

    def with_rows(self, side: str, ids: Any, likes: sp.csr_matrix, others: np.ndarray) -> SoftmaxRows:
        """The same with the sources of items at some ids that have these likes."""
        if side == "user":
            return self
        sources = self.of_items(likes, others, self.source_map) / np.sqrt(_column_of_counts(likes))
        return self._replace(sources=replaced(self.sources, ids, sources.astype(self.sources.dtype)))

    def of_items(self, likes: sp.csr_matrix, users: np.ndarray, to: np.ndarray) -> np.ndarray:
        """What a map makes of items with these likes, from the factors of the users, (b, r)."""
        return _with_one(user_factors(ones_of(likes, len(users)), users)) @ to


class SoftmaxSolver(NamedTuple):
    """Solves for rows of one side."""

    rows: SoftmaxRows
    side: str
    others: np.ndarray

    def solve(self, likes: sp.csr_matrix) -> np.ndarray:
        """The factors of rows with these likes, (b, r); 0 without any."""
        if self.side == "user":
            return user_factors(ones_of(likes, len(self.rows.sources)), self.rows.sources)
        targets = self.rows.of_items(likes, self.others, self.rows.target_map)
        return _of_items(targets, _column_of_counts(likes)) * (np.diff(likes.indptr) > 0)[:, None]

    def contributions(self, likes: sp.csr_matrix) -> np.ndarray:
        """What each like of one user adds to its factors, (n_likes, r)."""
        parts = self.rows.sources[likes.indices].astype(np.float64)
        return parts / max(float(np.linalg.norm(parts.sum(axis=0))), np.finfo(np.float32).tiny)


def train_softmax_rows(
    likes: sp.csr_matrix,
    settings: SoftmaxSettings,
    seed: int,
    device: torch.device,
    callbacks: tuple[Callback, ...] = (),
    *,
    progress: bool = False,
) -> tuple[np.ndarray, np.ndarray, SoftmaxRows]:
    """The factors of users and items and how others follow; users and items without likes have zeros."""
    m, n = likes.get_shape()
    items = np.unique(likes.indices)
    pattern = ones_of(likes, n)[:, items]
    training = SoftmaxTraining(settings.n_steps, settings.temperature, _POWER, _BATCH_USERS, *settings[3:])
    filled = pattern[np.diff(pattern.indptr) > 0]
    begun = FactorTraining(filled, settings.factors, training, seed, device)
    if training.n_steps:
        error = train(begun.trainer(training.n_steps), callbacks=callbacks, progress=progress).error
        if error is not None:
            raise error
    # There are no more axes than users or items: columns of zeros follow up to the width.
    sources, targets = (np.pad(each, ((0, 0), (0, settings.factors - each.shape[1]))) for each in begun.factors())
    users = user_factors(pattern, sources)
    by_item = sp.csr_matrix(pattern.T)
    counts = _column_of_counts(by_item)
    known = _with_one(user_factors(ones_of(by_item, m), users))  # (n, r + 1)
    maps = (_fitted(known, each, counts) for each in (targets, sources * np.sqrt(counts)))
    factors = _of_items(targets, counts).astype(np.float32)
    return users, with_zero_rows(factors, items, n), SoftmaxRows(with_zero_rows(sources, items, n), *maps)


def _fitted(known: np.ndarray, wanted: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The map from `known` to `wanted` with the least squared error, rows weighed by counts, (n, 1)."""
    scales = np.sqrt(counts)
    return np.linalg.lstsq(known * scales, wanted * scales, rcond=1e-6)[0]


def _of_items(targets: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Factors of items: directions, with a power of the likes as length."""
    lengths = np.linalg.norm(targets, axis=1, keepdims=True)
    return targets / np.maximum(lengths, np.finfo(np.float32).tiny) * counts**_ITEM_POWER


def _column_of_counts(rows: sp.csr_matrix) -> np.ndarray:
    return like_counts(rows)[:, None]


def _with_one(units: np.ndarray) -> np.ndarray:
    return np.hstack([units.astype(np.float64), np.ones((len(units), 1))])
