"""Accuracy on hidden drug-target interactions: every system on the same folds in one run.

Systems run in another process than the one that holds the labels of the hidden pairs. It is the same process for all
folds: starting one a fold would take longer than the training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.data.splits.base import Split
from air_recsys.datasets import DrugTargetData, load_yamanishi
from air_recsys.dti import DrugTargetAIR, interaction_folds
from air_recsys.evaluation.drug_targets import pair_measures, pair_system, pair_task
from air_recsys.evaluation.experiment import Task, Trial, process_place, task_by_task, trials
from air_recsys.evaluation.results import ResultTable, mean_of
from air_recsys.evaluation.system import System
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.storage.validation import check_choice
from benchmarks.accuracy.experiments import experiment, published_rows
from benchmarks.accuracy.peers.gip import ease_scores, gip_scores, wnn_gip_scores
from benchmarks.accuracy.peers.kronrls import kron_rls_scores
from benchmarks.accuracy.peers.nrlmf import nrlmf_scores
from benchmarks.accuracy.peers.wknnir import wknnir_scores
from benchmarks.harness import check_settings

_TEXTS = experiment("dti")
SEEDS: tuple[int, ...] = tuple(_TEXTS["seeds"])
NRLMF_SETTINGS: dict[str, Any] = _TEXTS["nrlmf"]


class Scores:
    """A peer that scores all pairs of a matrix at once, NaN where a pair is hidden, with or without similarities."""

    def __init__(self, score: Callable[..., np.ndarray], *similarities: np.ndarray) -> None:
        self.score, self.similarities = score, similarities

    def fit(self, shown: Interactions) -> Self:
        """Score all pairs."""
        self._sides = shown.users, shown.items
        self._scores = self.score(shown.to_dense(), *self.similarities)
        return self

    def predict(self, drug_ids: Any, target_ids: Any) -> np.ndarray:
        """The scores of pairs of ids."""
        drugs, targets = self._sides
        return self._scores[drugs.lookup(drug_ids), targets.lookup(target_ids)]


def dti_systems(
    data: DrugTargetData, similarities: bool, settings: Mapping[str, Any] | None = None, *, whole: bool = False
) -> dict[str, System]:
    """The systems without similarities, or those with them.

    Parameters
    ----------
    whole : bool
        Whether drugs or targets are hidden whole, which some systems are for.
    settings : mapping, optional
        Parameters of `DrugTargetAIR` that differ from its defaults.
    """
    changes = dict(settings or {})
    beside = (data.drug_similarity, data.target_similarity) if similarities else ()
    told = f"DrugTargetAIR with {changes or 'its defaults'}"
    air = {"AIR": pair_system(DrugTargetAIR(**changes), *beside)._replace(settings=told)}
    if not similarities:
        return air | {
            "GIP": System(Scores(gip_scores).fit, "RLS-Kron, bandwidth and noise 1, as in its paper"),
            "EASE": System(Scores(ease_scores).fit, "decay 10, targets from targets"),
        }
    if any(each is None for each in beside):
        raise DataError("expected similarities of drugs and of targets, found only one of them or none")
    tables = [each.to_numpy() for each in beside if each is not None]
    peers = {
        "NRLMF": (partial(nrlmf_scores, **NRLMF_SETTINGS), f"PyDTI's defaults: {_words(NRLMF_SETTINGS)}"),
        "RLS-WNN": (wnn_gip_scores, "RLS-Kron with nearest profiles, PyDTI's defaults"),
        "KronRLS": (kron_rls_scores, "on the similarities alone, noise by inner cross-validation"),
    } | ({"WkNNIR": (wknnir_scores, "neighbours and decay by inner cross-validation")} if whole else {})
    return air | {name: System(Scores(score, *tables).fit, told) for name, (score, told) in peers.items()}


def dti(
    root: Path,
    threads: int,
    case: Any,
    *,
    hidden: list[str],
    similarities: bool,
    repetitions: int,
    validation: bool,
    settings: dict[str, Any],
) -> list[ResultTable]:
    """A table for each setting of what is hidden, see `bench_dti`; `settings` are parameters of `DrugTargetAIR`."""
    for setting in hidden:
        check_choice("hidden", setting, list(_TEXTS["hidden"]))
    if not similarities and hidden != ["cvs1"]:
        raise ParameterError("whole hidden drugs and targets need similarities=True: nothing else is known of them")
    check_settings(DrugTargetAIR(), settings)
    data, seeds = hub_pairs() if case == "hubs" else load_yamanishi(root, case), SEEDS[:repetitions]
    how: dict[str, Any] = {"similarities": similarities, "seeds": seeds, "validation": validation, "threads": threads}
    return [
        bench_dti(case, data, each, dti_systems(data, similarities, settings, whole=each != "cvs1"), **how)
        for each in hidden
    ]


def hub_pairs() -> DrugTargetData:
    """A made set with hubs, 700 x 1,500: 2,000 interactions, a fifth of them of five targets, no similarities.

    Drugs and targets are in 40 groups, and differ in how often they interact; hubs are liked by some groups.
    """
    rng, n_groups, size, (n_drugs, n_targets) = np.random.default_rng(0), 40, 2000, (700, 1500)
    groups = rng.integers(n_groups, size=n_drugs), rng.integers(n_groups, size=n_targets)
    popular, active = rng.pareto(1.2, n_targets) + 0.1, rng.pareto(1.5, n_drugs) + 0.2
    hubs = rng.choice(n_targets, 5, replace=False)
    weights = np.outer(active, popular) * np.where(groups[0][:, None] == groups[1], 1.0, 0.01)
    weights[:, hubs] = 0
    values = np.zeros((n_drugs, n_targets))
    values[:, hubs] = active[:, None] * (rng.random((n_groups, hubs.size)) ** 3)[groups[0]]
    found = np.zeros_like(values)
    for each, number in ((weights, size * 4 // 5), (values, size // 5)):
        found.flat[rng.choice(each.size, number, replace=False, p=each.ravel() / each.sum())] = 1
    return DrugTargetData(Interactions.from_dense(found), *[None] * 2)  # type: ignore[arg-type]


def bench_dti(
    name: str,
    data: DrugTargetData,
    setting: str,
    systems: Mapping[str, System],
    *,
    similarities: bool,
    seeds: Sequence[int] = SEEDS,
    n_splits: int = 10,
    validation: bool = False,
    threads: int = 1,
) -> ResultTable:
    """Let every system predict every fold.

    Parameters
    ----------
    name : str
        Of the set, such as "nr".
    setting : str
        One of `air_recsys.dti.SETTINGS`.
    similarities : bool
        Whether the systems are shown the similarities.
    seeds : sequence of int
        Of the folds: one repetition each.
    validation : bool
        Whether each fold is left out altogether and the next one is hidden and tested, for choosing settings.

    Raises
    ------
    LeakError
        Where a hidden pair of a fold is among the shown ones.

    Returns
    -------
    ResultTable
        A row a system: means over the folds of AUPR, average precision, AUROC, enrichment of the top 1 %, and
        seconds of a training; the standard error of the AUPR. Then a row a published figure.
    """
    tasks = _tasks(data, setting, seeds, n_splits, validation=validation)
    found = trials(systems, tasks, place=process_place(threads), title=f"dti {name} {setting}")
    single = [{"system": trial.system} | fold_metrics(trial) for trial in task_by_task(found, tasks)]
    rows = mean_of(single, ("system",))
    for row in rows:
        of_folds = np.array([each["aupr"] for each in single if each["system"] == row["system"]])
        row["aupr_se"] = float(of_folds.std(ddof=1) / np.sqrt(of_folds.size)) if of_folds.size > 1 else float("nan")
    if similarities and not validation:
        rows += published_rows("dti", f"{name}-{setting}")
    return ResultTable(
        f"Drug-target interactions of {name.upper()}, {setting.upper()}, {_shares(similarities)}",
        ("validation parts of the training data only; " if validation else "")
        + _protocol(data, setting, seeds, len(tasks)),
        rows,
        [f"{system}: {each.settings}" for system, each in systems.items()],
    )


def _tasks(
    data: DrugTargetData,
    setting: str,
    seeds: Sequence[int],
    n_splits: int,
    *,
    validation: bool = False,
) -> list[Task]:
    splits: list[Split] = []
    for seed in seeds:
        folds = list(interaction_folds(data.interactions, setting, n_splits, seed))
        splits += validation_parts(data, folds) if validation else folds
    parts = [[data.interactions.select(part) for part in split] for split in splits]
    return [pair_task(shown, hidden).sealed() for shown, hidden in parts]


def validation_parts(data: DrugTargetData, folds: list[Split]) -> list[Split]:
    """A split of every fold's training part, tested on what the next fold hides; the test part is unused."""
    pairs = zip(folds, folds[1:] + folds[:1], strict=True)
    splits = [Split(fold.train & following.train, fold.train & following.test) for fold, following in pairs]
    return [split for split in splits if data.interactions.ratings[split.test].any()]


def fold_metrics(trial: Trial) -> dict[str, float]:
    """The metrics of a system on a fold, and the seconds of its training."""
    measured = pair_measures(trial.task.fold.test.ratings, trial.answer[0])
    return {"aupr": measured["aupr"], **measured, "seconds": trial.costs.seconds}


def _shares(similarities: bool) -> str:
    return "with similarities" if similarities else "without similarities"


def _words(settings: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in settings.items())


def _protocol(data: DrugTargetData, setting: str, seeds: Sequence[int], n_folds: int) -> str:
    pairs = data.interactions
    return (
        f"{pairs.n_users} drugs, {pairs.n_items} targets, {int(pairs.ratings.sum())} interactions; hidden: "
        f"{_TEXTS['hidden'][setting]}; "
        f"{n_folds} folds of {len(seeds)} repetitions, seeds {', '.join(map(str, seeds))}, permuted as in PyDTI; "
        "means over the folds; AUPR by the trapezoid rule, which rewards ties, with average precision beside it; no "
        "setting is chosen on these folds; systems are called with what is shown of a fold, in a process without the "
        "labels of its hidden pairs"
    )
