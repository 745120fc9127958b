"""How a `GraphRanker` selects its settings: by the lists it makes on hidden parts of its training data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from air_recsys.exceptions import DistributedError
from air_recsys.models import learned
from air_recsys.models.graph_ranker.factors import Begin
from air_recsys.models.graph_ranker.hidden import HeldOut, HiddenPart
from air_recsys.models.graph_ranker.inputs import STRENGTHS, WORTH, RankerSettings
from air_recsys.models.graph_ranker.progress import Progress, StepSearch
from air_recsys.models.ranking.calibration import RankCalibration
from air_recsys.training.ranks import Ranks

MOST_SEARCHED = 2_000_000  # interactions that a search sees
_ROUNDS = 2  # passes over the settings, since the best value of one depends on the others
Grid = dict[str, tuple[Any, ...]]
_NO_WORTHS: Mapping[str, float] = {}
_REGRESSION: Grid = {
    "regression_target": (-0.5, -0.375, -0.25, -0.125, 0.0),
    "regression_source": (0.0, 0.25, 0.5),
    "regression_share": (0.5, 1.0),
}
TIMES: Grid = {
    "item_trend": (0.0, 0.25, 0.5, 0.75, 1.0),
    "user_half_life": (0.0, 1.0, 3.0, 10.0, 30.0, 100.0),
}
_STRENGTHS: Grid = {"strength": tuple(map(float, range(len(STRENGTHS))))}
_WORTHS = (0.0, 0.05, 0.1, 0.25, WORTH, 1.0, 2.0)
_WORTH_OF = "worth_"  # begins the names of columns of a history
_FACTORS: Grid = {
    "factor_temperature": (0.1, 0.15, 0.2),
    "factor_weight": (0.25, 0.5, 0.75, 1.0, 1.5, 2.0),
    "regression_target": _REGRESSION["regression_target"],  # which may be another one beside factors
}
_TERMS = {"regression": "regression_weight", "factors": "factor_weight"}
_AFTER_REGRESSION = 0.6  # of the seconds of a fit, for factors and for the training of what is selected
_HIDDEN = {
    "ndcg_users": "users held out",
    "ndcg_last": "the latest fifth of each user's",
    "ndcg_time": "the latest fifths of all",
}
"""In words, by how the columns of a history begin."""


class Selection(NamedTuple):
    """The settings that were selected, or given."""

    settings: RankerSettings
    n_steps: int  # of the training of the factors
    history: list[dict[str, Any]]  # every candidate that was tried
    calibration: RankCalibration | None = None  # on the first hidden part
    worths: Mapping[str, float] = _NO_WORTHS  # of events of other kinds

    @classmethod
    def of_row(cls, row: dict[str, Any], history: list[dict[str, Any]]) -> Selection:
        """The selection of the settings in a row."""
        values: dict[str, Any] = {name: row[name] for name in RankerSettings._fields}
        kept = row.get("calibration")
        calibration = None if kept is None else RankCalibration.of_array(np.asarray(kept, dtype=np.float64))
        worths = {name.removeprefix(_WORTH_OF): each for name, each in row.items() if name.startswith(_WORTH_OF)}
        return cls(RankerSettings(**values), int(row["n_steps"]), history, calibration, worths)

    def kept(self) -> dict[str, Any]:
        """The row of a checkpoint that `of_row` reads."""
        calibration = None if self.calibration is None else self.calibration.to_array().tolist()
        return self.values() | {"calibration": calibration}

    def values(self) -> dict[str, Any]:
        """The settings, the number of steps and the worths by name."""
        return self.settings._asdict() | {"n_steps": self.n_steps} | _columns(self.worths)

    def table(self) -> pd.DataFrame:
        """The candidates, and what was selected in the last row."""
        selected = self.values()
        tried = [row for row in self.history if selected.items() <= row.items()]
        last = tried[-1] if tried else selected | {"ndcg": np.nan, "recall": np.nan}
        return pd.DataFrame([*self.history, last], dtype=np.float64)

    def fitted(self, n_steps: int, most_steps: int) -> learned.Selection:
        """What a fitted model keeps of it, after so many steps of the last training."""
        return learned.Selection(self.values() | {"n_steps": n_steps}, line=self.line(most_steps))

    def line(self, most_steps: int) -> str:
        """What was selected and why, where at most so many steps could be taken."""
        selected = " and ".join(name for name, weight in _TERMS.items() if getattr(self.settings, weight))
        table = self.table()
        members = members_of(table.iloc[:-1])["ndcg"]
        if members.empty:
            return f"{selected}: nothing was compared on hidden parts"
        told = ", ".join(f"{name} {ndcg:.4f}" for name, ndcg in members.iloc[::-1].items())
        left_out = "" if any("factors" in str(name) for name in members.index) else "; no time for factors"
        cut = f"; {self.n_steps} of {most_steps} steps" if 0 < self.n_steps < most_steps else ""
        where = (words for start, words in _HIDDEN.items() if any(str(name).startswith(start) for name in table))
        place = next(where, "parts hidden at random")
        return f"{selected}: NDCG@20 on {place}: {told}{cut}{left_out}{self._counts(table)}"

    def _counts(self, table: pd.DataFrame) -> str:
        """How values count, where some do, and events of other kinds."""
        tried = bool(np.any(table["strength"].to_numpy() > 0))
        told = f"; NDCG by the values, which count {STRENGTHS[int(self.settings.strength)]}" if tried else ""
        worths = ", ".join(f"{name} counts {worth:g}" for name, worth in self.worths.items())
        return f"{told}; {worths}" if worths else told


class Search:
    """A search over `RankerSettings`, one at a time: first those of the regression, then how factors join it.

    Best is the largest geometric mean of NDCG over the parts and their powers, so that each counts by ratios.

    The figures of the parts have names of their own, and parts are all of one kind. Candidates in the history of
    `progress` are not tried again. Those of the regression are tried for four tenths of its budget. Factors are left
    out where a training on each way, and the one that follows, would take longer than what is left.

    Of several `ranks` each has some of the parts, and all find the same.

    Attributes
    ----------
    history : list of dict
        Every candidate tried, with the steps of the factors as "n_steps", with "ndcg" and "recall" of lists of 20
        items, geometric means over the figures, and "ndcg_alike" and the like, of each figure.
    """

    def __init__(
        self, parts: Sequence[HiddenPart], begin: Begin, seed: int, n_users: int, progress: Progress, ranks: Ranks
    ) -> None:
        self._names, self._ranks = [name for part in parts for name in part.powers], ranks
        own = parts[ranks.rank % len(parts) :: ranks.size]  # some have the same where there are more ranks
        self.ways = [HeldOut(part, seed, len(part.powers) * n_users) for part in own]
        self._begin, self._progress = begin, progress
        self.history, self._budget = progress.history, progress.budget
        self._reserve = _AFTER_REGRESSION  # share of the seconds that the search leaves
        self._use_worths(dict.fromkeys(self.ways[0].kinds, WORTH))

    def best(self) -> Selection:
        """The best candidate; the regression as it is where there is no time to try any."""
        regression = RankerSettings(factor_weight=0.0)
        grid: Grid = {"regression_penalty": self.ways[0].penalties} | _REGRESSION
        grid |= {name: TIMES[name] for name in self.ways[0].of_times}
        if self._worths:  # which matter most
            self._weigh_kinds(regression)
        best = self._descend(regression, grid)
        if self._worths:
            self._weigh_kinds(best)
        if self.ways[0].have_values:
            best = self._descend(best, _STRENGTHS)
        if not self.history:
            return Selection(regression, 0, self.history)
        for way in self.ways:
            way.hold_regression(best)  # which leaves them at its strength
        self._join_factors(best)
        row = max(self.history, key=lambda row: row["ndcg"])  # which may be one term alone
        selected = Selection.of_row(row, self.history)
        own = None if self._ranks.rank else self.ways[0].calibration(selected.settings)
        return selected._replace(calibration=self._ranks.of_all(own)[0])

    def _use_worths(self, worths: Mapping[str, float]) -> None:
        """Let events of other kinds count so from now on."""
        self._worths = worths
        for way in self.ways:
            way.worths = worths

    def _weigh_kinds(self, settings: RankerSettings) -> None:
        """Find how much events of each other kind count beside those of the target."""
        best, chosen = -np.inf, self._worths
        for name in [name for _ in range(_ROUNDS) for name in chosen]:
            for worth in (chosen[name], *_WORTHS):
                self._use_worths({**chosen, name: worth})
                if self._may_try(settings, 0) and (ndcg := self._try(settings)) > best:
                    best, chosen = ndcg, self._worths
        self._use_worths(chosen)

    def _join_factors(self, regression: RankerSettings) -> None:
        """Train factors, and try them alone and beside the best regression, as far as there is time."""
        joined = regression._replace(factor_weight=1.0)
        steps = StepSearch(self.ways, self._begin, self._progress)
        n_steps = steps.best(lambda step: self._try(joined, step))
        if n_steps:
            self._reserve = steps.share_for_last()
            kept = {name: getattr(regression, name) for name in (*TIMES, "strength")}
            alone = RankerSettings(**kept, factor_weight=1.0, regression_weight=0.0)
            self._try(alone, n_steps)
            self._descend(joined, _FACTORS, n_steps)

    def _descend(self, settings: RankerSettings, grid: Grid, n_steps: int = 0) -> RankerSettings:
        """The best settings of a grid, one name at a time, as far as there is time."""
        if not self._may_try(settings, n_steps):
            return settings
        best = self._try(settings, n_steps)
        self._keep(settings)
        for name, values in [pair for _ in range(_ROUNDS) for pair in grid.items()]:
            for value in values:
                other = settings._replace(**{name: value})
                if value == getattr(settings, name) or not self._may_try(other, n_steps):
                    continue
                ndcg = self._try(other, n_steps)
                if ndcg > best:
                    settings, best = other, ndcg
                    self._keep(settings)
        return settings

    def _keep(self, settings: RankerSettings) -> None:
        for way in self.ways:
            way.keep(settings)

    def _may_try(self, candidate: RankerSettings, n_steps: int) -> bool:
        """Whether there is time for a candidate, or was before a checkpoint."""
        return bool(self._tried(candidate, n_steps)) or self._budget.has(self._reserve)

    def _tried(self, settings: RankerSettings, n_steps: int) -> list[float]:
        known = self._row(settings, n_steps)
        return [row["ndcg"] for row in self.history if known.items() <= row.items()]

    def _try(self, settings: RankerSettings, n_steps: int = 0) -> float:
        if tried := self._tried(settings, n_steps):
            return tried[0]
        measured = [way.measure(settings) for way in self.ways]
        told = self._ranks.of_all({name: each for own in measured for name, each in own.items()})
        if None in told:  # it has left, with an error of its own
            raise DistributedError("expected all ranks in the search, found one that stopped: its message says why")
        of_parts = {name: each for own in told for name, each in own.items()}
        figures = np.array([of_parts[name] for name in self._names])  # (parts, 2)
        ndcg, recall = (figures.prod(axis=0) ** (1 / len(figures))).tolist()
        each = {f"ndcg_{name}": value for name, value in zip(self._names, figures[:, 0].tolist(), strict=True)}
        self.history.append(self._row(settings, n_steps) | {"ndcg": ndcg, "recall": recall} | each)
        self._progress.tried()
        return ndcg

    def _row(self, settings: RankerSettings, n_steps: int) -> dict[str, Any]:
        """What a candidate is, as the columns of a history."""
        return settings._asdict() | {"n_steps": n_steps} | _columns(self._worths)


def _columns(worths: Mapping[str, float]) -> dict[str, float]:
    return {f"{_WORTH_OF}{name}": worth for name, worth in worths.items()}


def members_of(history: pd.DataFrame) -> pd.DataFrame:
    """NDCG and recall of the best candidate of each choice of terms, by the names of the terms."""
    figures = [name for name in history if str(name).startswith(("ndcg", "recall"))]
    tried = history[history["ndcg"].notna()]
    made_of = pd.Series("", index=tried.index, dtype=str)
    for name, weight in _TERMS.items():
        joined = made_of.where(made_of == "", made_of + " and ") + name
        made_of = made_of.where(tried[weight] == 0, joined)
    best = tried.groupby(made_of.to_numpy())["ndcg"].idxmax() if len(tried) else pd.Series(dtype=int)
    members = tried.loc[best.to_numpy(), figures].set_axis(best.index)
    return members.sort_values("ndcg", kind="stable")
