"""How a `GraphRanker` chooses its settings: by the lists it makes on hidden parts of its training data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.holdout import HeldOut, hide_leaning
from air_recsys.models.graph_ranker.smoothings import RankerSettings

_LEANS = (0.0, 0.5, -0.5)  # power of the counts in the chance to be hidden: equal, popular first, rare first
_MOST_SEARCHED = 2_000_000  # interactions that a search sees
_ROUNDS = 2  # passes over the settings, since the best value of one depends on the others
Grid = dict[str, tuple[Any, ...]]
Scorer = Callable[[HeldOut, RankerSettings], np.ndarray]
_REGRESSION: Grid = {
    "regression_target": (-0.5, -0.375, -0.25, -0.125, 0.0),
    "regression_source": (0.0, 0.25, 0.5),
    "regression_share": (0.5, 1.0),
}
_USERS: Grid = {"user_target": (0.0, 0.25, 0.5), "user_exponent": (0.25, 0.5, 0.75), "user_power": (1.0, 1.3, 1.6)}
_FACTORS: Grid = {"factor_target": (-0.5, -0.25, 0.0)}
_AXES = (64, 128, 256)  # numbers of axes that are tried, beside all of them
_WEIGHTS: Grid = {"user_weight": (0.0, 0.1, 0.2, 0.4, 0.7, 1.0), "factor_weight": (0.0, 0.1, 0.2, 0.4, 0.7, 1.0)}
_NONE = {"item_weight": 0.0, "user_weight": 0.0, "factor_weight": 0.0, "regression_weight": 0.0}


class Search:
    """A search over `RankerSettings`, one at a time: first those of each term alone, then the weights.

    Best is the largest geometric mean of NDCG over the ways of hiding, so that every way counts by ratios.

    Parameters
    ----------
    ways : sequence of (shown, hidden) csr_array, shapes (n_users, n_items)
        Parts of the training data.
    n_factors, seed, n_users : int
        As in `HeldOut`.

    Attributes
    ----------
    history : list of dict
        Every setting tried, with "ndcg" and "recall" of lists of 20 items: geometric means over the ways.
    """

    def __init__(self, ways: Sequence[tuple[Csr, Csr]], n_factors: int, seed: int, n_users: int) -> None:
        self.history: list[dict[str, Any]] = []
        self.n_factors = n_factors
        self.ways = [HeldOut(shown, hidden, n_factors, seed, n_users) for shown, hidden in ways]

    def best(self) -> RankerSettings:
        """Return the best settings found."""
        start = RankerSettings(n_axes=self.n_factors)
        axes: Grid = {"n_axes": (*(n for n in _AXES if n < self.n_factors), self.n_factors)}
        regression: Grid = {"regression_penalty": self.ways[0].penalties}
        stages: list[tuple[Grid, Scorer, str]] = [
            (regression | _REGRESSION, HeldOut.regression_scores, "regression_weight"),
            (_USERS, HeldOut.user_scores, "user_weight"),
            (axes | _FACTORS, HeldOut.factor_scores, "factor_weight"),
        ]
        for grid, scores, alone in stages:
            chosen = self._descend(start._replace(**_NONE | {alone: 1.0}), grid, scores)
            start = start._replace(**{name: getattr(chosen, name) for name in grid})
        single = {way: [scores(way, start) for _, scores, _ in stages] for way in self.ways}
        start = start._replace(**_NONE | {"regression_weight": 1.0})
        self._descend(start, _WEIGHTS, lambda way, settings: _sum(single[way], settings))
        best = max(self.history, key=lambda row: row["ndcg"])  # which may be a smoothing alone
        return RankerSettings(**{name: best[name] for name in RankerSettings._fields})

    def _descend(self, settings: RankerSettings, grid: Grid, scores: Scorer) -> RankerSettings:
        best = self._try(settings, scores)
        for name, values in [pair for _ in range(_ROUNDS) for pair in grid.items()]:
            for value in values:
                other = settings._replace(**{name: value})
                if value == getattr(settings, name):
                    continue
                ndcg = self._try(other, scores)
                if ndcg > best:
                    settings, best = other, ndcg
        return settings

    def _try(self, settings: RankerSettings, scores: Scorer) -> float:
        tried = [row["ndcg"] for row in self.history if settings._asdict().items() <= row.items()]
        if tried:
            return tried[0]
        figures = np.array([way.measure(scores(way, settings)) for way in self.ways])  # (ways, 2)
        ndcg, recall = (figures.prod(axis=0) ** (1 / len(figures))).tolist()
        self.history.append(settings._asdict() | {"ndcg": ndcg, "recall": recall})
        return ndcg


def some_users(pattern: Csr, seed: int) -> Csr:
    """Return the rows of a pattern, or so many of them, at random, that the search stays within its time.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> some_users(sp.csr_array(np.ones((2, 5), dtype=np.float32)), 0).shape
    (2, 5)
    """
    if pattern.nnz <= _MOST_SEARCHED:
        return pattern
    users = np.random.default_rng(seed).permutation(pattern.shape[0])
    within = np.cumsum(np.diff(pattern.indptr)[users]) <= _MOST_SEARCHED
    return pattern[np.sort(users[within])]


def hidden_parts(pattern: Csr, seed: int) -> list[tuple[Csr, Csr]]:
    """Return what is left and what is hidden when a fifth of each row is hidden alike, popular first and rare first.

    A random part tells how lists do if the future is like the past. Popularity is what differs most often, and no
    part of the past tells which way.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> len(hidden_parts(sp.csr_array(np.ones((2, 5), dtype=np.float32)), 0))
    3
    """
    return [hide_leaning(pattern, lean, seed) for lean in _LEANS]


def history_frame(history: list[dict[str, Any]], chosen: RankerSettings) -> pd.DataFrame:
    """Return the table of a search, the settings chosen in its last row.

    Examples
    --------
    >>> history_frame([], RankerSettings())["ndcg"].tolist()
    [nan]
    """
    tried = [row for row in history if all(row[name] == value for name, value in chosen._asdict().items())]
    last = tried[-1] if tried else chosen._asdict() | {"ndcg": np.nan, "recall": np.nan}
    return pd.DataFrame([*history, last], dtype=np.float64)


def _sum(scores: list[np.ndarray], settings: RankerSettings) -> np.ndarray:
    """Return the weighted sum of the scores of the regression, of users and of axes."""
    total = scores[0] * np.float32(settings.regression_weight)
    for each, weight in zip(scores[1:], (settings.user_weight, settings.factor_weight), strict=True):
        if weight:
            total += np.float32(weight) * each
    return total
