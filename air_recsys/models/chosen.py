"""What a training took for the parameters that were "auto", and how it was found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pandas as pd


@dataclass(frozen=True)
class Trial:
    """One form of the settings, trained on a part of the ratings and judged on the hidden rest.

    Parameters
    ----------
    form : str
        Its name.
    trainings : float
        How long it was trained, as a share of the training that follows.
    rmse : float
        Root mean squared error on the hidden ratings, in their unit; infinite where the training failed.
    """

    form: str
    trainings: float
    rmse: float


@dataclass(frozen=True)
class Chosen:
    """What a training took for the parameters that were "auto".

    Parameters
    ----------
    values : dict
        Parameters that the form sets, by plain names; all others follow from formulas.
    form : str
        The name of the form, "" where there was none to choose.
    trials : tuple of Trial
        Empty where nothing was searched.
    line : str
        What was chosen, by how much, or why nothing was searched.
    interrupted : bool
        Whether Ctrl-C ended the search.
    """

    values: dict[str, Any] = field(default_factory=dict)
    form: str = ""
    trials: tuple[Trial, ...] = ()
    line: str = ""
    interrupted: bool = False

    def plain_values(self) -> dict[str, Any]:
        """Return the values by plain names, those of a solver beside its name; without what is still "auto".

        Examples
        --------
        >>> Chosen({"n_factors": 3, "solver": {"name": "adam", "depth": 2, "tv_reg": "auto"}}).plain_values()
        {'n_factors': 3, 'solver': 'adam', 'depth': 2}
        """
        of_solver = dict(self.values.get("solver", {}))
        named = {"solver": of_solver.pop("name")} if of_solver else {}
        plain = {name: value for name, value in self.values.items() if name != "solver"} | named | of_solver
        return {name: value for name, value in plain.items() if value != "auto"}

    def table(self) -> pd.DataFrame:
        """Return the trials, one a row."""
        return pd.DataFrame([asdict(trial) for trial in self.trials], columns=["form", "trainings", "rmse"])

    def to_json(self) -> dict[str, Any]:
        """Return the same as JSON holds it."""
        trials = [[each.form, each.trainings, each.rmse if math.isfinite(each.rmse) else None] for each in self.trials]
        return {
            "values": self.values,
            "form": self.form,
            "trials": trials,
            "line": self.line,
            "interrupted": self.interrupted,
        }

    @classmethod
    def from_json(cls, content: Any) -> Chosen:
        """Return what `to_json` described; raise `ValueError`, `TypeError` or `LookupError` for something else.

        Examples
        --------
        >>> chosen = Chosen({"graph_neighbors": 5}, "groups", (Trial("groups", 0.25, math.inf),), "groups")
        >>> Chosen.from_json(chosen.to_json()) == chosen
        True
        """
        values, form, line = content["values"], content["form"], content["line"]
        if not (isinstance(values, Mapping) and isinstance(form, str) and isinstance(line, str)):
            raise ValueError("expected chosen settings by name, found others")
        trials = tuple(
            Trial(str(name), float(share), math.inf if rmse is None else float(rmse))
            for name, share, rmse in content["trials"]
        )
        return cls(dict(values), form, trials, line, content["interrupted"] is True)
