"""How a `GraphRanker` chooses its settings: by the lists it makes on hidden parts of its training data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from air_recsys.models.graph_ranker.factors import Start
from air_recsys.models.graph_ranker.holdout import HeldOut
from air_recsys.models.graph_ranker.search.progress import Progress
from air_recsys.models.graph_ranker.search.steps import StepChoice
from air_recsys.models.graph_ranker.smoothings import RankerSettings
from air_recsys.models.graph_ranker.times.hidden_parts import HiddenPart
from air_recsys.nn.devices import in_workers, one_blas_thread

MOST_SEARCHED = 2_000_000  # interactions that a search sees
_ROUNDS = 2  # passes over the settings, since the best value of one depends on the others
Grid = dict[str, tuple[Any, ...]]
Scorer = Callable[[HeldOut, RankerSettings], np.ndarray]
_REGRESSION: Grid = {
    "regression_target": (-0.5, -0.375, -0.25, -0.125, 0.0),
    "regression_source": (0.0, 0.25, 0.5),
    "regression_share": (0.5, 1.0),
}
TIMES: Grid = {
    "item_trend": (0.0, 0.25, 0.5, 0.75, 1.0),
    "user_half_life": (0.0, 1.0, 3.0, 10.0, 30.0, 100.0),
}
_FACTORS: Grid = {"factor_temperature": (0.1, 0.15, 0.2), "factor_weight": (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)}
_NONE: dict[str, Any] = {"item_weight": 0.0, "user_weight": 0.0, "factor_weight": 0.0, "regression_weight": 0.0}
_TERMS = {"regression": "regression_weight", "factors": "factor_weight"}
_AFTER_REGRESSION = 0.6  # of the seconds of a fit, for factors and for the training of what is chosen


class Choice(NamedTuple):
    """What a search has chosen."""

    settings: RankerSettings
    n_steps: int  # of the training of the factors
    history: list[dict[str, Any]]

    @classmethod
    def of_row(cls, row: dict[str, Any], history: list[dict[str, Any]]) -> Choice:
        """Return a choice of the settings in a row."""
        values: dict[str, Any] = {name: row[name] for name in RankerSettings._fields}
        return cls(RankerSettings(**values), int(row["n_steps"]), history)


class Search:
    """A search over `RankerSettings`, one at a time: first those of the regression, then how factors join it.

    Best is the largest geometric mean of NDCG over the ways of hiding, so that every way counts by ratios.

    Parameters
    ----------
    parts : sequence of HiddenPart
        Of the training data, each with a name of its own; all of one kind.
    start : callable
        Returns the `FactorCourse` of a pattern.
    seed, n_users
        As in `HeldOut`.
    progress : Progress
        Settings in its history are not tried again. The settings of the regression are tried for four tenths of its
        budget. Factors are left out where a training on each way, and the one that follows, would take longer than
        what is left.

    Attributes
    ----------
    history : list of dict
        Every setting tried, with the steps of the factors as "n_steps", with "ndcg" and "recall" of lists of 20 items,
        geometric means over the ways, and "ndcg_alike" and the like, of each part.
    """

    def __init__(self, parts: Sequence[HiddenPart], start: Start, seed: int, n_users: int, progress: Progress) -> None:
        self.ways = [HeldOut(part, seed, n_users) for part in parts]
        self._start, self._progress = start, progress
        self.history, self._budget = progress.history, progress.budget
        self._reserve = _AFTER_REGRESSION  # share of the seconds that the search leaves

    def best(self) -> Choice:
        """Return the best choice found; the regression as it is where there is no time to try any."""
        start = RankerSettings(**_NONE)
        regression: Grid = {"regression_penalty": self.ways[0].penalties}
        grid = regression | _REGRESSION | {name: TIMES[name] for name in self.ways[0].of_times}
        chosen = self._descend(start._replace(regression_weight=1.0), grid, HeldOut.regression_scores)
        if not self.history:
            return Choice(start._replace(regression_weight=1.0), 0, self.history)
        single = {way: way.regression_scores(chosen) for way in self.ways}
        for way in self.ways:
            way.forget_regression()
        times = {name: getattr(chosen, name) for name in TIMES}
        self._join_factors(start._replace(**times), chosen, single)
        best = max(self.history, key=lambda row: row["ndcg"])  # which may be one term alone
        return Choice.of_row(best, self.history)

    def _join_factors(self, start: RankerSettings, chosen: RankerSettings, single: dict[HeldOut, np.ndarray]) -> None:
        """Train factors, and try them alone and beside the regression that was chosen, as far as there is time."""

        def together(way: HeldOut, settings: RankerSettings) -> np.ndarray:
            return single[way] + np.float32(settings.factor_weight) * way.factor_scores(settings)

        joined = chosen._replace(factor_weight=1.0)
        steps = StepChoice(self.ways, self._start, self._progress)
        n_steps = steps.best(lambda step: self._try(joined, together, step))
        if n_steps:
            self._reserve = steps.share_for_last()
            self._try(start._replace(factor_weight=1.0), HeldOut.factor_scores, n_steps)
            self._descend(joined, _FACTORS, together, n_steps)

    def _descend(self, settings: RankerSettings, grid: Grid, scores: Scorer, n_steps: int = 0) -> RankerSettings:
        """Return the best settings of a grid, one name at a time, as far as there is time."""
        if not self._may_try(settings, n_steps):
            return settings
        best = self._try(settings, scores, n_steps)
        for name, values in [pair for _ in range(_ROUNDS) for pair in grid.items()]:
            for value in values:
                other = settings._replace(**{name: value})
                if value == getattr(settings, name) or not self._may_try(other, n_steps):
                    continue
                ndcg = self._try(other, scores, n_steps)
                if ndcg > best:
                    settings, best = other, ndcg
        return settings

    def _may_try(self, settings: RankerSettings, n_steps: int) -> bool:
        """Return whether there is time for settings, or was before a checkpoint."""
        return bool(self._tried(settings, n_steps)) or self._budget.has(self._reserve)

    def _tried(self, settings: RankerSettings, n_steps: int) -> list[float]:
        known = settings._asdict() | {"n_steps": n_steps}
        return [row["ndcg"] for row in self.history if known.items() <= row.items()]

    def _try(self, settings: RankerSettings, scores: Scorer, n_steps: int = 0) -> float:
        if tried := self._tried(settings, n_steps):
            return tried[0]
        with one_blas_thread():  # each way has a thread
            measured = in_workers(lambda way: way.measure(scores(way, settings)), self.ways)
        figures = np.array(measured)  # (ways, 2)
        ndcg, recall = (figures.prod(axis=0) ** (1 / len(figures))).tolist()
        each = {f"ndcg_{way.name}": value for way, value in zip(self.ways, figures[:, 0].tolist(), strict=True)}
        self.history.append(settings._asdict() | {"n_steps": n_steps, "ndcg": ndcg, "recall": recall} | each)
        self._progress.tried()
        return ndcg


def history_frame(choice: Choice) -> pd.DataFrame:
    """Return the table of a search, what was chosen in its last row.

    Examples
    --------
    >>> history_frame(Choice(RankerSettings(), 150, []))[["n_steps", "ndcg"]].values.tolist()
    [[150.0, nan]]
    """
    chosen = choice.settings._asdict() | {"n_steps": choice.n_steps}
    tried = [row for row in choice.history if chosen.items() <= row.items()]
    last = tried[-1] if tried else chosen | {"ndcg": np.nan, "recall": np.nan}
    return pd.DataFrame([*choice.history, last], dtype=np.float64)


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
