"""How well hidden drug-target interactions are predicted: every system on the same folds in one run.

Systems are functions of what is shown of one fold. They run in another process than the one that holds the labels of
the hidden pairs, the same for all folds: starting one a fold would take longer than the training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from air_recsys.benchmarks.accuracy.dti_systems import Scored, Shown, System, score_fold
from air_recsys.benchmarks.accuracy.published import published_figures
from air_recsys.benchmarks.accuracy.sealed import Pairs, check_sealed
from air_recsys.benchmarks.apart import process_apart
from air_recsys.datasets import DrugTargetData
from air_recsys.dti import enrichment, interaction_folds
from air_recsys.metrics import aupr, auroc, average_precision
from air_recsys.results import ResultTable, mean_of
from air_recsys.splits.base import Split

SEEDS = (7771, 8367, 22, 1812, 4659)


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
    data : DrugTargetData
    setting : str
        One of `air_recsys.dti.SETTINGS`.
    systems : mapping of str to System
    similarities : bool
        Whether the systems are shown the similarities.
    seeds : sequence of int
        Of the folds: one repetition each.
    n_splits : int
    validation : bool
        Whether each fold is left out altogether and the next one is hidden and tested, for choosing settings.
    threads : int

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
    shown = _similarities(data, similarities)
    splits: list[Split] = []
    for seed in seeds:
        folds = list(interaction_folds(data.interactions, setting, n_splits, seed))
        splits += _validation_parts(data, folds) if validation else folds
    single: list[dict[str, Any]] = []
    with process_apart(threads) as call:
        for split in tqdm(splits, unit="fold", desc=f"bench dti {name} {setting}"):
            single += _measured(data, split, Shown(data.interactions.select(split.train), *shown), systems, call)
    rows = mean_of(single, ("system",))
    for row in rows:
        each = np.array([one["aupr"] for one in single if one["system"] == row["system"]])
        row["aupr_se"] = float(each.std(ddof=1) / np.sqrt(each.size)) if each.size > 1 else float("nan")
    published = published_figures("dti", f"{name}-{setting}") if similarities and not validation else []
    rows += [{"system": system} | figure for system, figure in published]
    beside = "with similarities" if similarities else "without similarities"
    return ResultTable(
        f"Drug-target interactions of {name.upper()}, {setting.upper()}, {beside}",
        ("validation parts of the training data only; " if validation else "")
        + _protocol(data, setting, seeds, len(splits)),
        rows,
        [f"{system}: {each.settings}" for system, each in systems.items()],
    )


def _validation_parts(data: DrugTargetData, folds: list[Split]) -> list[Split]:
    """Return a split of every fold's training part, tested on what the next fold hides; the test part is unused."""
    pairs = zip(folds, folds[1:] + folds[:1], strict=True)
    parts = [Split(fold.train & following.train, fold.train & following.test) for fold, following in pairs]
    return [part for part in parts if data.interactions.ratings[part.test].any()]


def _measured(
    data: DrugTargetData, split: Split, shown: Shown, systems: Mapping[str, System], call: Callable[..., Any]
) -> list[dict[str, Any]]:
    hidden = data.interactions.select(split.test)
    asked = hidden.user_index, hidden.item_index
    check_sealed(shown_pairs(shown), asked)
    answer: dict[str, Scored] = call(score_fold, dict(systems), shown, asked)
    return [{"system": name} | fold_metrics(hidden.ratings, found) for name, found in answer.items()]


def fold_metrics(truth: np.ndarray, found: Scored) -> dict[str, float]:
    """Return what a system did on a fold."""
    return {
        "aupr": aupr(truth, found.scores),
        "average_precision": average_precision(truth, found.scores),
        "auroc": auroc(truth, found.scores),
        "enrichment_1%": enrichment(truth, found.scores, 0.01),
        "seconds": found.seconds,
    }


def shown_pairs(shown: Shown) -> Pairs:
    """Return the positions of the pairs that are shown."""
    return shown.interactions.user_index, shown.interactions.item_index


def _similarities(data: DrugTargetData, wanted: bool) -> tuple[Any, Any]:
    return (data.drug_similarity, data.target_similarity) if wanted else (None, None)


def _protocol(data: DrugTargetData, setting: str, seeds: Sequence[int], n_folds: int) -> str:
    known = data.interactions
    hidden = {
        "cvs1": "random pairs",
        "cvs2": "whole drugs",
        "cvs3": "whole targets",
        "cvs4": "drugs and targets, tested where they meet, 3 x 3 blocks",
    }[setting]
    return (
        f"{known.n_users} drugs, {known.n_items} targets, {int(known.ratings.sum())} interactions; hidden: {hidden}; "
        f"{n_folds} folds of {len(seeds)} repetitions, seeds {', '.join(map(str, seeds))}, permuted as in PyDTI; "
        "means over the folds; AUPR by the trapezoid rule, which rewards ties, with average precision beside it; no "
        "setting is chosen on these folds; systems are called with what is shown of a fold, in a process without the "
        "labels of its hidden pairs"
    )
