"""Runs of the paper's tables: every recipe's systems over its data, missing rates and seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from tqdm import tqdm

from air_recsys.datasets import load_syn_netflix, load_yamanishi
from air_recsys.evaluation.completion import complete, hide, recovery
from air_recsys.evaluation.results import ResultTable, mean_of
from air_recsys.models import AIR, DMF, Recommender
from air_recsys.storage.validation import check_choice
from benchmarks.recipes import recipe

Groups = tuple[np.ndarray, np.ndarray]


class Case(NamedTuple):
    """One row of a table: a fully known matrix and the share of it to hide."""

    data: str
    missing: float
    truth: np.ndarray  # (m, n)
    groups: Groups | None
    published: dict[str, float]


def reproduce(
    name: str,
    root: Path,
    *,
    seeds: int | None = None,
    first_seed: int = 0,
    validation: float = 0.0,
    overrides: dict[str, Any] | None = None,
    names: list[str] | None = None,
    device: str = "auto",
    progress: bool = True,
) -> tuple[ResultTable, ResultTable]:
    """Run a recipe and return the means over seeds and the single runs.

    Parameters
    ----------
    name : {"syn-netflix", "dti-completion"}
    seeds : int, optional
        Run this many seeds, from `first_seed` on, instead of the recipe's.
    first_seed : int
        Other seeds are other masks: settings that were chosen on some have to hold on the others.
    validation : float
        Ask for this share of the observed entries instead of the hidden ones: how settings are chosen.
    overrides : dict, optional
        Parameters of AIR that differ from the recipe.
    names : list of str, optional
        Only these of the recipe's systems.
    progress : bool
        Show a progress bar.
    """
    chosen = recipe(name)
    for system in names or []:
        check_choice("systems", system, chosen["systems"])
    chosen["systems"] = names or chosen["systems"]
    chosen["dmf"] |= {name: value for name, value in (overrides or {}).items() if name in chosen["dmf"]}
    settings = chosen["settings"] | (overrides or {})
    used = chosen["seeds"] if seeds is None else range(first_seed, first_seed + seeds)
    runs = [(case, seed) for case in CASES[name](chosen, root) for seed in used]
    single = ResultTable(f"{name}: single runs", _protocol(chosen, settings, list(used), validation))
    with tqdm(total=len(runs) * len(chosen["systems"]), disable=not progress, unit="run", desc=name) as bar:
        for case, seed in runs:
            air = AIR.of_preset(chosen["preset"], **{"random_state": seed, "device": device} | settings)
            for row in _run(case, seed, air, chosen, validation):
                single.rows.append(row)
                bar.update()
    rows = mean_of(single.rows, ("data", "missing", "system"))
    return ResultTable(f"{name}: means of {len(used)} seed(s)", single.protocol, rows), single


def _run(case: Case, seed: int, air: AIR, chosen: dict[str, Any], validation: float) -> Iterator[dict[str, Any]]:
    data = hide(case.truth, case.missing, seed, validation)
    for system, model in systems(air, chosen["systems"], chosen["dmf"]):
        row: dict[str, Any] = {"data": case.data, "missing": case.missing, "system": system, "seed": seed}
        row["published"] = case.published.get(system.partition(" ")[0], float("nan"))
        row |= complete(model, data)
        if case.groups is not None:
            row |= recovery(model, *case.groups)
        yield row


def systems(air: AIR, forms: Iterable[str], dmf: dict[str, Any]) -> Iterator[tuple[str, Recommender]]:
    """Yield the named forms of a model: AIR with sparse or dense graphs, and DMF with some settings of its own."""
    for form in forms:
        if form == "DMF":
            yield form, DMF.like(air).set_params(**dmf)
        else:
            again: Any = clone(air)
            dense = {"graph_neighbors": None, "graph_refresh": None} if form == "AIR dense" else {}
            yield form, again.set_params(**dense)


def _syn_netflix(chosen: dict[str, Any], root: Path) -> list[Case]:
    data = load_syn_netflix(root)
    groups = (data.user_groups, data.item_groups)
    return [
        Case("Syn-Netflix", missing, data.matrix, groups, _published(chosen, position))
        for position, missing in enumerate(chosen["missing"])
    ]


def _dti_completion(chosen: dict[str, Any], root: Path) -> list[Case]:
    truths = [load_yamanishi(root, name).interactions.to_dense() for name in chosen["sets"]]
    return [
        Case(name.upper(), missing, truths[position], None, _published(chosen, position))
        for position, name in enumerate(chosen["sets"])
        for missing in chosen["missing"]
    ]


CASES: dict[str, Callable[[dict[str, Any], Path], list[Case]]] = {
    "syn-netflix": _syn_netflix,
    "dti-completion": _dti_completion,
}


def _published(chosen: dict[str, Any], position: int) -> dict[str, float]:
    return {system: values[position] for system, values in chosen["published"].items()}


def _protocol(chosen: dict[str, Any], settings: dict[str, Any], seeds: list[int], validation: float) -> str:
    asked = f"asked for {validation:.0%} of the observed entries" if validation else "asked for the hidden entries"
    parameters, own = (", ".join(f"{k}={v}" for k, v in given.items()) for given in (settings, chosen["dmf"]))
    return (
        f"uniform random masks, seeds {seeds}, {asked}; AIR.for_{chosen['preset']}({parameters}); "
        f"DMF: the same without graphs and with {own}; NMAE = mean absolute error / range of the truth"
    )
