"""How a `GraphRanker` chooses its settings: by the lists it makes on hidden parts of its training data."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.factors import Train
from air_recsys.models.graph_ranker.holdout import HeldOut
from air_recsys.models.graph_ranker.smoothings import RankerSettings
from air_recsys.models.graph_ranker.times.hidden_parts import HiddenPart
from air_recsys.nn.devices import in_workers, one_blas_thread

_MOST_SEARCHED = 2_000_000  # interactions that a search sees
_ROUNDS = 2  # passes over the settings, since the best value of one depends on the others
Grid = dict[str, tuple[Any, ...]]
Scorer = Callable[[HeldOut, RankerSettings], np.ndarray]
_REGRESSION: Grid = {
    "regression_target": (-0.5, -0.375, -0.25, -0.125, 0.0),
    "regression_source": (0.0, 0.25, 0.5),
    "regression_share": (0.5, 1.0),
}
_TIMES: Grid = {
    "item_trend": (0.0, 0.25, 0.5, 0.75, 1.0),
    "user_half_life": (0.0, 3.0, 10.0, 30.0, 100.0),
}
_FACTORS: Grid = {"factor_temperature": (0.1, 0.15, 0.2), "factor_weight": (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)}
_NONE: dict[str, Any] = {"item_weight": 0.0, "user_weight": 0.0, "factor_weight": 0.0, "regression_weight": 0.0}
_TERMS = {"regression": "regression_weight", "factors": "factor_weight"}
_AFTER_REGRESSION = 0.6  # of the seconds of a fit, for factors and for the training of what is chosen
_FOR_FACTORS = 0.3  # without so much it is no use to start


class TimeBudget:
    """The seconds that a fit may take; None for all that it needs."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self._start = time.perf_counter()

    def spent(self) -> float:
        """Return the seconds since the start."""
        return time.perf_counter() - self._start

    def left(self) -> float:
        """Return the seconds that are left, below 0 where the time is over."""
        return self.seconds - self.spent()

    def has(self, share: float) -> bool:
        """Return whether a share of the seconds is left, and more."""
        return self.seconds == math.inf or self.left() > share * self.seconds


class Search:
    """A search over `RankerSettings`, one at a time: first those of the regression, then how factors join it.

    Best is the largest geometric mean of NDCG over the ways of hiding, so that every way counts by ratios.

    Parameters
    ----------
    parts : sequence of HiddenPart
        Of the training data, each with a name of its own; all of one kind.
    train, seed, n_users
        As in `HeldOut`.
    budget : TimeBudget, optional
        The settings of the regression are tried for four tenths of it. Factors are left out where a training on each
        way, and the one that follows, would take longer than what is left.

    Attributes
    ----------
    history : list of dict
        Every setting tried, with "ndcg" and "recall" of lists of 20 items, geometric means over the ways, and
        "ndcg_alike" and the like, of each part.
    """

    def __init__(
        self,
        parts: Sequence[HiddenPart],
        train: Train,
        seed: int,
        n_users: int,
        budget: TimeBudget | None = None,
    ) -> None:
        self.history: list[dict[str, Any]] = []
        self.ways = [HeldOut(part, train, seed, n_users) for part in parts]
        self._budget = budget or TimeBudget()
        self._reserve = _AFTER_REGRESSION  # share of the seconds that the search leaves

    def best(self) -> RankerSettings:
        """Return the best settings found; the regression as it is where there is no time to try any."""
        start = RankerSettings(**_NONE)
        regression: Grid = {"regression_penalty": self.ways[0].penalties}
        grid = regression | _REGRESSION | {name: _TIMES[name] for name in self.ways[0].of_times}
        chosen = self._descend(start._replace(regression_weight=1.0), grid, HeldOut.regression_scores)
        if not self.history:
            return start._replace(regression_weight=1.0)
        single = {way: way.regression_scores(chosen) for way in self.ways}
        for way in self.ways:
            way.forget_regression()
        if self._train_factors():
            times = {name: getattr(chosen, name) for name in _TIMES}
            self._join_factors(start._replace(**times), chosen, single)
        best = max(self.history, key=lambda row: row["ndcg"])  # which may be one term alone
        return RankerSettings(**{name: best[name] for name in RankerSettings._fields})

    def _train_factors(self) -> bool:
        """Train the factors of all ways, and return whether there was time for that."""
        for number, way in enumerate(self.ways):
            before = self._budget.spent()
            if not self._budget.has(_FOR_FACTORS) and not number:
                return False
            way.train_factors()
            seconds = self._budget.spent() - before
            if (len(self.ways) - number) * seconds > self._budget.left():  # the last of them that of what is chosen
                return False
            self._reserve = seconds / self._budget.seconds
        return True

    def _join_factors(self, start: RankerSettings, chosen: RankerSettings, single: dict[HeldOut, np.ndarray]) -> None:
        """Try the factors alone, and beside the regression that was chosen."""
        self._try(start._replace(factor_weight=1.0), HeldOut.factor_scores)

        def together(way: HeldOut, settings: RankerSettings) -> np.ndarray:
            return single[way] + np.float32(settings.factor_weight) * way.factor_scores(settings)

        self._descend(chosen._replace(factor_weight=1.0), _FACTORS, together)

    def _descend(self, settings: RankerSettings, grid: Grid, scores: Scorer) -> RankerSettings:
        """Return the best settings of a grid, one name at a time, as far as there is time."""
        if not self._budget.has(self._reserve):
            return settings
        best = self._try(settings, scores)
        for name, values in [pair for _ in range(_ROUNDS) for pair in grid.items()]:
            for value in values:
                other = settings._replace(**{name: value})
                if value == getattr(settings, name) or not self._budget.has(self._reserve):
                    continue
                ndcg = self._try(other, scores)
                if ndcg > best:
                    settings, best = other, ndcg
        return settings

    def _try(self, settings: RankerSettings, scores: Scorer) -> float:
        tried = [row["ndcg"] for row in self.history if settings._asdict().items() <= row.items()]
        if tried:
            return tried[0]
        with one_blas_thread():  # each way has a thread
            measured = in_workers(lambda way: way.measure(scores(way, settings)), self.ways)
        figures = np.array(measured)  # (ways, 2)
        ndcg, recall = (figures.prod(axis=0) ** (1 / len(figures))).tolist()
        each = {f"ndcg_{way.name}": ndcg for way, ndcg in zip(self.ways, figures[:, 0].tolist(), strict=True)}
        self.history.append(settings._asdict() | {"ndcg": ndcg, "recall": recall} | each)
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


def members_of(history: pd.DataFrame) -> pd.DataFrame:
    """Return what the best of each choice of terms reached, NDCG and recall, by the names of the terms.

    Examples
    --------
    >>> history = pd.DataFrame({"regression_weight": 1.0, "factor_weight": [0, 0.5, 1]})
    >>> members_of(history.assign(ndcg=[0.2, 0.25, 0.3], recall=0.3))
                            ndcg  recall
    regression               0.2     0.3
    regression and factors   0.3     0.3
    """
    figures = [name for name in history if str(name).startswith(("ndcg", "recall"))]
    tried = history[history["ndcg"].notna()]
    made_of = pd.Series("", index=tried.index, dtype=str)
    for name, weight in _TERMS.items():
        joined = made_of.where(made_of == "", made_of + " and ") + name
        made_of = made_of.where(tried[weight] == 0, joined)
    best = tried.groupby(made_of.to_numpy())["ndcg"].idxmax() if len(tried) else pd.Series(dtype=int)
    members = tried.loc[best.to_numpy(), figures].set_axis(best.index)
    return members.sort_values("ndcg", kind="stable")
