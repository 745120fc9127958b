"""Accuracy on hidden drug-target interactions: every system on the same folds in one run.

Systems run in another process than the one that holds the labels of the hidden pairs. It is the same process for all
folds: starting one a fold would take longer than the training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.data.splits.base import Split
from air_recsys.datasets import DrugTargetData
from air_recsys.dti import interaction_folds
from air_recsys.evaluation.drug_targets import pair_measures
from air_recsys.evaluation.results import ResultTable, mean_of
from air_recsys.evaluation.results.apart import process_apart
from air_recsys.metrics import calibration_error
from benchmarks.accuracy.dti_systems import Scored, Shown, System, air_probabilities, score_fold
from benchmarks.accuracy.published import published_figures
from benchmarks.accuracy.sealed import Pairs, check_sealed

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
    splits: list[Split] = []
    for seed in seeds:
        folds = list(interaction_folds(data.interactions, setting, n_splits, seed))
        splits += _validation_parts(data, folds) if validation else folds
    single: list[dict[str, Any]] = []
    with process_apart(threads) as call:
        for split in tqdm(splits, unit="fold", desc=f"bench dti {name} {setting}"):
            shown, hidden, asked = _sealed(data, split, similarities)
            answers: dict[str, Scored] = call(score_fold, dict(systems), shown, asked)
            single += [{"system": name} | fold_metrics(hidden.ratings, each) for name, each in answers.items()]
    rows = mean_of(single, ("system",))
    for row in rows:
        of_folds = np.array([each["aupr"] for each in single if each["system"] == row["system"]])
        row["aupr_se"] = float(of_folds.std(ddof=1) / np.sqrt(of_folds.size)) if of_folds.size > 1 else float("nan")
    published = published_figures("dti", f"{name}-{setting}") if similarities and not validation else []
    rows += [{"system": system} | figure for system, figure in published]
    shares = "with similarities" if similarities else "without similarities"
    return ResultTable(
        f"Drug-target interactions of {name.upper()}, {setting.upper()}, {shares}",
        ("validation parts of the training data only; " if validation else "")
        + _protocol(data, setting, seeds, len(splits)),
        rows,
        [f"{system}: {each.settings}" for system, each in systems.items()],
    )


def bench_dti_probabilities(
    name: str,
    data: DrugTargetData,
    setting: str,
    *,
    similarities: bool,
    settings: Mapping[str, Any] | None = None,
    seeds: Sequence[int] = SEEDS,
    n_splits: int = 10,
    threads: int = 1,
) -> ResultTable:
    """Compare the probabilities of `DrugTargetAIR` with what hidden pairs turn out to be.

    Parameters are those of `bench_dti`; `settings` are parameters of `DrugTargetAIR` that differ from its defaults.

    Returns
    -------
    ResultTable
        One row: the expected calibration error of all hidden pairs together, over ten bins of equal width, that of the
        pairs with a probability above 0.1, their number, and the mean of the probabilities of hidden interactions and
        of hidden zeros.
    """
    splits = [split for seed in seeds for split in interaction_folds(data.interactions, setting, n_splits, seed)]
    truths, found = [], []
    with process_apart(threads) as call:
        for split in tqdm(splits, unit="fold", desc=f"bench dti {name} {setting}"):
            shown, hidden, asked = _sealed(data, split, similarities)
            found.append(call(partial(air_probabilities, **(settings or {})), shown, asked))
            truths.append(hidden.ratings)
    truth, probability = np.concatenate(truths), np.concatenate(found)
    likely = probability > 0.1
    row = {
        "system": "AIR",
        "calibration_error": calibration_error(truth, probability),
        "calibration_error_above_0.1": calibration_error(truth[likely], probability[likely]),
        "above_0.1": int(likely.sum()),
        "of_interactions": float(probability[truth == 1].mean()),
        "of_zeros": float(probability[truth == 0].mean()),
    }
    shares = "with similarities" if similarities else "without similarities"
    return ResultTable(
        f"Probabilities of hidden interactions of {name.upper()}, {setting.upper()}, {shares}",
        _protocol(data, setting, seeds, len(splits)),
        [row],
        [f"AIR: DrugTargetAIR with {dict(settings or {}) or 'its defaults'}"],
    )


def _sealed(data: DrugTargetData, split: Split, similarities: bool) -> tuple[Shown, Interactions, Pairs]:
    """Return what is shown of a fold, its hidden pairs, and their positions, none of which is shown."""
    beside = (data.drug_similarity, data.target_similarity) if similarities else (None, None)
    shown, hidden = Shown(data.interactions.select(split.train), *beside), data.interactions.select(split.test)
    asked = hidden.user_index, hidden.item_index
    check_sealed(shown_pairs(shown), asked)
    return shown, hidden, asked


def _validation_parts(data: DrugTargetData, folds: list[Split]) -> list[Split]:
    """Return a split of every fold's training part, tested on what the next fold hides; the test part is unused."""
    pairs = zip(folds, folds[1:] + folds[:1], strict=True)
    splits = [Split(fold.train & following.train, fold.train & following.test) for fold, following in pairs]
    return [split for split in splits if data.interactions.ratings[split.test].any()]


def fold_metrics(truth: np.ndarray, scored: Scored) -> dict[str, float]:
    """Return the metrics of a system on a fold, and the seconds of its training."""
    measured = pair_measures(truth, scored.scores)
    return {"aupr": measured["aupr"], **measured, "seconds": scored.seconds}


def shown_pairs(shown: Shown) -> Pairs:
    """Return the positions of the pairs that are shown."""
    return shown.interactions.user_index, shown.interactions.item_index


def _protocol(data: DrugTargetData, setting: str, seeds: Sequence[int], n_folds: int) -> str:
    pairs = data.interactions
    hidden = {
        "cvs1": "random pairs",
        "cvs2": "whole drugs",
        "cvs3": "whole targets",
        "cvs4": "drugs and targets, tested where they meet, 3 x 3 blocks",
    }[setting]
    return (
        f"{pairs.n_users} drugs, {pairs.n_items} targets, {int(pairs.ratings.sum())} interactions; hidden: {hidden}; "
        f"{n_folds} folds of {len(seeds)} repetitions, seeds {', '.join(map(str, seeds))}, permuted as in PyDTI; "
        "means over the folds; AUPR by the trapezoid rule, which rewards ties, with average precision beside it; no "
        "setting is chosen on these folds; systems are called with what is shown of a fold, in a process without the "
        "labels of its hidden pairs"
    )
