"""Single runs of recipes, each kept in a file of its own, so that none is repeated."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from air_recsys.exceptions import ParameterError
from air_recsys.storage.validation import check_real, import_extra
from benchmarks.paper.cases import load_case, observed_entries
from benchmarks.paper.recipes import SCARCE, Recipe
from benchmarks.paper.systems import Outcome, run_system


@dataclass(frozen=True)
class Options:
    """Options of the runs of recipes.

    Parameters
    ----------
    root : Path
        Folder of the benchmark data.
    folder : Path
        The folder of the single runs.
    quick : bool
        Few epochs: a check that everything runs, without meaningful figures.
    validation : float
        Ask for a part of the observed entries instead of the hidden ones, see `cases.validation_entries`.
    """

    root: Path
    folder: Path
    quick: bool = False
    validation: float = 0.0
    device: str = "auto"

    def __post_init__(self) -> None:
        check_real("validation", self.validation, maximum=0.9)


class Run(NamedTuple):
    """One system on one recipe with one seed."""

    recipe: Recipe
    system: str
    seed: int

    def path(self, options: Options) -> Path:
        """The file of this run: a name that changes with all that the result depends on, and nothing else."""
        recipe = asdict(self.recipe)
        settings = dict(self.recipe.systems[self.system])
        if (source := settings.get("graphs_of")) is not None:
            settings["graphs_of"] = dict(self.recipe.systems[source])
        needed = {key: recipe[key] for key in ("data", "mask", "missing", "keep")}
        needed |= {"settings": settings, "seed": self.seed}
        needed |= {"quick": options.quick, "validation": options.validation, "version": metadata.version("air-recsys")}
        digest = hashlib.sha256(json.dumps(needed, sort_keys=True, default=str).encode()).hexdigest()[:12]
        system = "".join(letter if letter.isalnum() else "-" for letter in self.system)
        return options.folder / f"{self.recipe.data}-{self.recipe.mask}-{system}-{self.seed}-{digest}.npz"


def all_runs(recipes: Sequence[Recipe], seeds: Sequence[int] | None = None, systems: Sequence[str] = ()) -> list[Run]:
    """The runs of recipes; `seeds` replace theirs, `systems` chooses among theirs."""
    names = {system for recipe in recipes for system in recipe.systems}
    if unknown := [system for system in systems if system not in names]:
        raise ParameterError(f"systems must be of {sorted(names)}, found {unknown[0]!r}")
    runs = []
    for recipe in recipes:
        used = recipe.seeds if seeds is None else seeds
        chosen = [system for system in recipe.systems if not systems or system in systems]
        runs += [Run(recipe, system, seed) for seed in used for system in chosen]
    return runs


def outcomes(runs: Sequence[Run], options: Options, title: str) -> dict[Run, Outcome]:
    """The outcome of every run, from its file where it is done, else by running it.

    An interruption loses only the runs under way; the same call goes on from there.
    """
    options.folder.mkdir(parents=True, exist_ok=True)
    done = {run: Outcome.read(run.path(options)) for run in runs if run.path(options).is_file()}
    missing = [run for run in runs if run not in done]
    _check_data(missing, options)
    # A run that starts from another one's graphs has to wait for it.
    missing.sort(key=lambda run: "graphs_of" in run.recipe.systems[run.system])
    for run in tqdm(missing, initial=len(done), total=len(runs), unit="run", desc=title):
        _execute(run, options)
    return {run: done[run] if run in done else Outcome.read(run.path(options)) for run in runs}


def _check_data(runs: list[Run], options: Options) -> None:
    """Raise before any work where a file of the data, or what measures pictures, is missing."""
    for recipe in dict.fromkeys(run.recipe for run in runs):
        if recipe.data == SCARCE:
            continue
        case = load_case(recipe.data, options.root)
        observed_entries(recipe, case, options.root, seed=0)
        if case.picture:
            import_extra("skimage.metrics", "images")


def _execute(run: Run, options: Options) -> None:
    settings = dict(run.recipe.systems[run.system])
    graphs = None
    if (source := settings.pop("graphs_of", None)) is not None:
        graphs = Outcome.read(Run(run.recipe, source, run.seed).path(options)).arrays
    outcome = run_system(
        run.recipe,
        settings,
        run.seed,
        root=options.root,
        validation=options.validation,
        quick=options.quick,
        device=options.device,
        graphs=graphs,
    )
    outcome.write(run.path(options))


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """The mean and the standard deviation over seeds; NaN for the deviation of a single one."""
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return float(np.mean(values)), deviation
