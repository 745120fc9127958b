"""`Comparison`: the figures of several systems on the same parts, from their answers to tables and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.evaluation.experiment import Answer, Question, Task, Trial, rated_pairs
from air_recsys.evaluation.folds import Fold, NewUsersFold
from air_recsys.evaluation.lists import holm
from air_recsys.evaluation.rating_errors import clipped, interval_figures
from air_recsys.evaluation.resampling import ByUsers
from air_recsys.evaluation.results import ResultTable, format_number, machine, versions, write_json
from air_recsys.exceptions import DataError
from air_recsys.metrics import coverage, mae, rmse, user_measures

_ERRORS = ("rmse", "rmse low", "rmse high", "rmse difference", "rmse p", "mae", "inside 90 %", "width")
_CHANCE = 0.05  # of a difference between equal systems
_COSTS = ("fit_seconds", "answer_seconds", "memory_mib")


@dataclass(repr=False)
class Comparison:
    """Figures of systems that were trained and tested on the same parts.

    Attributes
    ----------
    protocol : str
        Data, parts, and how the figures were obtained.
    k : int
        Length of the lists.
    n_users : int
        Users whose lists were tested, the largest number over the folds.
    rows : list of dict
        One row per system, see `to_frame`.
    folds : list of dict
        One row per fold and system, with its figures on that fold.
    settings : dict of str to str
        Description of each system.
    notes : list of str
        Systems that are not installed, those that failed, and those that score all items alike.
    verdict : str
        Which system to take for lists and for ratings: the best, and those that a paired t-test over the users against
        it does not tell from it at 0.05, corrected for the number of systems (Holm). "" for a single system.
    groups : list of dict
        One row per group of users and system: attribute, group, system, and errors and NDCG as in `to_frame`, each
        with the number of its users.
    """

    protocol: str
    k: int
    n_users: int
    rows: list[dict[str, Any]] = field(default_factory=list)
    folds: list[dict[str, Any]] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    verdict: str = ""
    groups: list[dict[str, Any]] = field(default_factory=list)

    def __repr__(self) -> str:
        return self.text()

    def to_frame(self) -> pd.DataFrame:
        """One row per system, indexed by its name; a figure that a system does not have is NaN.

        ``rmse``, ``mae``
            Errors of the predictions, clipped to the range of the training ratings; means over the folds.
        ``rmse low``, ``rmse high``
            The 95 % interval, by bootstrap over the users.
        ``rmse difference``, ``rmse difference low``, ``rmse difference high``, ``rmse p``
            Difference from the first system, its interval on the same resamples, and the p-value of a paired t-test
            over the users; NaN for the first system and for those with the same answers.
        ``inside 90 %``, ``width``
            The share of the test ratings in the central 90 % intervals, and their mean width, for models with a
            standard deviation.
        ``ndcg@k``, ``recall@k``, ``coverage``
            Measures of lists of k unseen items: `ndcg_at_k` and `recall_at_k` with intervals and tests as for the
            RMSE, and the share of the items that are in any of the lists.
        ``fit_seconds``, ``answer_seconds``, ``memory_mib``
            Times of the training and of all answers of a fold, and the memory of the training.
        """
        return pd.DataFrame(self.rows).set_index("system")

    def tables(self) -> list[ResultTable]:
        """What `text` prints: errors, where there are any, lists, groups, where they were asked for, and costs."""
        ndcg = f"ndcg@{self.k}"
        of_lists = [ndcg, *(f"{ndcg} {name}" for name in ("low", "high", "difference", "p"))]
        tables = [self._table("Errors of predicted ratings", _ERRORS, "rmse")] if self.rated else []
        title = f"Lists of {self.k} items for {self.n_users:,} users"
        tables.append(self._table(title, (*of_lists, f"recall@{self.k}", "coverage"), ndcg))
        tables += [self._of_groups(name) for name in ("rmse", ndcg) if any(name in row for row in self.groups)]
        tables.append(self._table("Costs of a fold", _COSTS, ""))
        tables[0].protocol = self.protocol.replace("; ", "\n")
        tables[-1].notes = self.notes
        return tables

    @property
    def rated(self) -> bool:
        """Whether ratings were predicted."""
        return any("rmse" in row for row in self.rows)

    def text(self) -> str:
        """The tables for the terminal, and the verdict."""
        return "\n\n".join([table.text() for table in self.tables()] + ([self.verdict] if self.verdict else []))

    def content(self) -> dict[str, Any]:
        """Everything as it stands in JSON, with versions and machine."""
        return {
            "title": "Comparison",
            "protocol": self.protocol,
            "k": self.k,
            "rows": self.rows,
            "single_runs": self.folds,
            "settings": self.settings,
            "notes": self.notes,
            "verdict": self.verdict,
            "groups": self.groups,
            "versions": versions(),
            "machine": machine(),
        }

    def to_json(self, path: str | Path) -> None:
        """Write `content` to a file; a missing figure is null.

        Raises
        ------
        ParameterError
            If the folder does not exist.
        """
        write_json(path, self.content())

    def _table(self, title: str, names: tuple[str, ...], measure: str) -> ResultTable:
        """Some columns of the systems that have any of them; those of a measure lose its name."""
        present = [row for row in self.rows if any(name in row for name in names)]
        shown = [name for name in names if any(name in row for row in present)]
        short = {name: name.removeprefix(f"{measure} ") for name in shown}
        return ResultTable(
            title, "", [{"system": row["system"]} | {short[n]: row.get(n, np.nan) for n in shown} for row in present]
        )

    def _of_groups(self, name: str) -> ResultTable:
        """One row per group, with a column per system."""
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for row in self.groups:
            if name in row:
                users = {each: row[each] for each in ("attribute", "group")} | {"users": row[f"{name} users"]}
                rows.setdefault((row["attribute"], row["group"]), users)[row["system"]] = row[name]
        return ResultTable(f"{name.upper()} by groups of users", "", list(rows.values()))


def task_of(fold: Fold, likes: bool, k: int, relevant: float | None, n_users: int, seed: int) -> Task:
    """Ratings and lists that are asked for on a fold.

    Relevant are test items rated `relevant` or more, by default the mean of the training ratings, or the highest test
    rating where all are below; of likes all are. Lists of at most `n_users` users are asked for, drawn with `seed`.
    """
    test = fold.test
    by_default = min(fold.train.ratings.mean(), test.ratings.max(initial=-np.inf))
    threshold = None if likes else float(by_default if relevant is None else relevant)
    is_relevant = np.ones(test.n_ratings, dtype=bool) if threshold is None else test.ratings >= threshold
    if not is_relevant.any():
        raise DataError(f"expected test ratings of at least {threshold:g}, found {test.ratings.max():g} at most")
    pairs = test.user_index[is_relevant], test.item_index[is_relevant]
    users = np.unique(pairs[0])
    if users.size > n_users:
        users = np.sort(np.random.default_rng(seed).choice(users, n_users, replace=False))
    whole = sp.csr_array((np.ones(pairs[0].size), pairs), shape=(test.n_users, test.n_items))
    question = Question(None if likes else rated_pairs(test), users, k=k)
    return Task(fold, question, sp.csr_array(whole[users]), threshold)


class Measures(NamedTuple):
    """What one fold tells of a system: figures, and by user squared errors, NDCG and recall; None without them."""

    figures: dict[str, float]
    squared: np.ndarray | None  # (n_users,), sums over the test ratings of a user
    ndcg: np.ndarray | None  # (n_users,)
    recall: np.ndarray | None  # (n_users,)


def measure(trial: Trial) -> Measures:
    """The measures of a system on a fold."""
    task, answered, costs = trial.task, trial.answer, trial.costs
    figures: dict[str, float] = {}
    squared = ndcg = recall = None
    if answered.predicted is not None:
        figures, errors = rating_figures(task.fold, answered)
        squared = np.bincount(task.fold.test.user_index, errors**2, task.fold.test.n_users)
    k = task.question.k
    if answered.lists is not None:
        by_user = user_measures(answered.lists, task.relevant, k)
        ndcg, recall = (_spread(by_user[f"{name}_at_k"], task) for name in ("ndcg", "recall"))
        figures |= {
            f"ndcg@{k}": float(by_user["ndcg_at_k"].mean()),
            f"recall@{k}": float(by_user["recall_at_k"].mean()),
            "coverage": coverage(answered.lists, task.fold.train.n_items) if (answered.lists >= 0).any() else 0.0,
        }
    figures |= {
        "fit_seconds": costs.seconds,
        "answer_seconds": costs.answer_seconds,
        "memory_mib": 1024 * (costs.peak_gib - costs.before_gib),
    }
    return Measures(figures, squared, ndcg, recall)


def rating_figures(fold: Fold | NewUsersFold, answered: Answer) -> tuple[dict[str, float], np.ndarray]:
    """The errors of predictions, clipped to the range of the training ratings, and the differences, (n_test,)."""
    assert answered.predicted is not None
    truth, within = fold.test.ratings, clipped(answered.predicted, fold.train)
    figures = {"rmse": rmse(truth, within), "mae": mae(truth, within)}
    if answered.deviation is not None:
        figures |= interval_figures(truth, answered.predicted, answered.deviation)
    return figures, truth - within


def _spread(values: np.ndarray, task: Task) -> np.ndarray:
    """The values of the users whose lists are asked for among zeros of the others, shape (n_users,)."""
    whole = np.zeros(task.fold.test.n_users)
    whole[task.question.users] = values
    return whole


@dataclass(frozen=True, eq=False)
class Run:
    """A system on all folds, and its measures on each of them."""

    name: str
    measures: list[Measures]

    def single(self, tasks: Sequence[Task]) -> list[dict[str, Any]]:
        """One row per fold."""
        pairs = zip(tasks, self.measures, strict=True)
        return [{"fold": task.fold.name, "system": self.name} | each.figures for task, each in pairs]

    def row(self, first: Run, tasks: Sequence[Task], seed: int) -> dict[str, Any]:
        """Means over the folds, with intervals, and beside the first system its difference and its test."""
        figures = {name: fmean(each.figures[name] for each in self.measures) for name in self.measures[0].figures}
        row: dict[str, Any] = {"system": self.name}
        others = first.by_users(tasks)
        for name, own in self.by_users(tasks).items():
            row |= {name: figures.pop(name)} | _tested(name, own, None if self is first else others.get(name), seed)
        return row | figures

    def of_group(
        self, first: Run, tasks: Sequence[Task], seed: int, group: tuple[str, str], mask: np.ndarray
    ) -> dict[str, Any]:
        """Errors and NDCG of the users of a mask, (n_users,), with intervals and tests as in `row`."""
        row: dict[str, Any] = {"attribute": group[0], "group": group[1], "system": self.name}
        others = first.by_users(tasks)
        for name, whole in self.by_users(tasks).items():
            if not name.startswith("recall") and (own := whole.of(mask)) is not None:
                other = others[name].of(mask) if name in others and self is not first else None
                row |= {name: own.value(), f"{name} users": own.n_tested} | _tested(name, own, other, seed)
        return row

    def by_users(self, tasks: Sequence[Task]) -> dict[str, ByUsers]:
        """The measures that have intervals and tests, those that this system has."""
        k, found = tasks[0].question.k, {}
        counts = [np.bincount(task.fold.test.user_index, minlength=task.fold.test.n_users) for task in tasks]
        asked = [_spread(np.ones(task.question.n_lists), task) for task in tasks]
        of_lists = [(f"{name}@{k}", name, asked) for name in ("ndcg", "recall")]
        for name, which, tested in [("rmse", "squared", counts), *of_lists]:
            sums = [getattr(each, which) for each in self.measures]
            if sums[0] is not None:
                found[name] = ByUsers(np.stack(sums), np.stack(tested), root=which == "squared")
        return found


def verdict(runs: Sequence[Run], tasks: Sequence[Task]) -> str:
    """Which system to take for lists and for ratings, see `Comparison`."""
    if len(runs) < 2:
        return ""
    ndcg = f"ndcg@{tasks[0].question.k}"
    every = {run.name: run.by_users(tasks) for run in runs}
    parts = []
    for purpose, name, sign in (("lists", ndcg, -1), ("ratings", "rmse", 1)):
        values = {system: found[name] for system, found in every.items() if name in found}
        if values:
            parts.append(f"for {purpose} {_best(values, name.upper(), sign)}")
    return "; ".join(parts)


def _best(values: dict[str, ByUsers], name: str, sign: int) -> str:
    best, *others = sorted(values, key=lambda system: sign * values[system].value())
    p_values = holm([values[other].p_value(values[best]) for other in others])
    level = [other for other, p in zip(others, p_values, strict=True) if not p < _CHANCE]
    figures = {system: f"{system} ({format_number(values[system].value())})" for system in values}
    if level:
        least = np.fmin.reduce(p_values[[others.index(other) for other in level]], initial=1.0)
        first = ", ".join(figures[system] for system in [best, *level[:-1]])
        return f"take {first} or {figures[level[-1]]}: a tie in {name}, p {least:.2g}{' or more' * (len(level) > 1)}"
    if not others:
        return f"take {figures[best]}, which is alone in {name}"
    gap = format_number(abs(values[best].value() - values[others[0]].value()))
    beyond = f"by {gap}, beyond the error (p {p_values[0]:.2g})"
    return f"take {figures[best]}, which is better than {figures[others[0]]} in {name} {beyond}"


def _tested(name: str, own: ByUsers, first: ByUsers | None, seed: int) -> dict[str, float]:
    """The interval of a measure, and where the first system has it too, the difference and its p-value."""
    low, high = own.interval(seed)
    figures = {"low": low, "high": high}
    if first is not None:
        below, above = own.difference(first, seed)
        figures |= {"difference": own.value() - first.value(), "difference low": below, "difference high": above}
        figures["p"] = own.p_value(first)
    return {f"{name} {each}": value for each, value in figures.items()}
