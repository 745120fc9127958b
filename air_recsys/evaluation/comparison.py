"""`Comparison`: the figures of several systems on the same parts, as tables and as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.evaluation.results import ResultTable, machine, versions, write_json

_ERRORS = ("rmse", "rmse low", "rmse high", "rmse difference", "rmse p", "mae", "inside 90 %", "width")
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
        Systems that are not installed, and those that failed.
    """

    protocol: str
    k: int
    n_users: int
    rows: list[dict[str, Any]] = field(default_factory=list)
    folds: list[dict[str, Any]] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

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
        """What `text` prints: errors, where there are any, lists, and costs."""
        ndcg = f"ndcg@{self.k}"
        of_lists = [ndcg, *(f"{ndcg} {name}" for name in ("low", "high", "difference", "p"))]
        tables = [self._table("Errors of predicted ratings", _ERRORS, "rmse")] if self.rated else []
        title = f"Lists of {self.k} items for {self.n_users:,} users"
        tables.append(self._table(title, (*of_lists, f"recall@{self.k}", "coverage"), ndcg))
        tables.append(self._table("Costs of a fold", _COSTS, ""))
        tables[0].protocol = self.protocol.replace("; ", "\n")
        tables[-1].notes = self.notes
        return tables

    @property
    def rated(self) -> bool:
        """Whether ratings were predicted."""
        return any("rmse" in row for row in self.rows)

    def text(self) -> str:
        """The tables for the terminal."""
        return "\n\n".join(table.text() for table in self.tables())

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
