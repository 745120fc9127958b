"""Time and memory of `DrugTargetAIR` on planted interactions by size."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.dti import DrugTargetAIR
from air_recsys.evaluation.results import ResultTable
from air_recsys.evaluation.results.apart import MemoryWatch, run_apart
from air_recsys.metrics import average_precision
from benchmarks.scale.likes import LikesSize, planted_likes

_HIDDEN = 0.05  # of the interactions
_TESTED = 500  # drugs whose pairs are ranked


def bench_drug_targets(
    sizes: Sequence[LikesSize], settings: dict[str, Any], *, lists: bool = False, seed: int = 0, threads: int = 1
) -> ResultTable:
    """Fit planted interactions of each size in a process of its own.

    Parameters
    ----------
    sizes : sequence of LikesSize
        Drugs as users, targets as items, interactions as likes.
    settings : dict
        Parameters of `DrugTargetAIR`.
    lists : bool
        Whether the first list with probabilities is timed too: twenty completions more.
    seed : int
        Of the data.

    Returns
    -------
    ResultTable
        A row a size: sizes, seconds of `fit` and of the list, memory in GiB with the data alone and at the peak, and
        the average precision of hidden interactions among the pairs of some drugs that are not shown, beside that of
        the product of the counts of both sides.
    """
    rows = [
        run_apart(measure_drug_targets, size, settings, lists, seed, threads=threads)
        for size in tqdm(sizes, unit="size", desc="bench scale-dti")
    ]
    given = ", ".join(f"{name}={value}" for name, value in settings.items())
    protocol = (
        f"planted interactions with long tails, seed {seed}; {_HIDDEN:.0%} hidden as zeros; all others are zeros; "
        f"DrugTargetAIR({given}), {threads} thread(s), a process a size"
    )
    return ResultTable("Drugs and targets by size", protocol, rows)


def measure_drug_targets(size: LikesSize, settings: dict[str, Any], lists: bool, seed: int) -> dict[str, Any]:
    """Make the interactions, fit, and return the row of this size."""
    shown, hidden = _divided(planted_likes(size, seed), seed)
    data = Interactions.from_csr(shown)
    memory, start = MemoryWatch(), time.perf_counter()
    model = DrugTargetAIR(**settings).fit(data)
    row = {
        "n_drugs": size.n_users,
        "n_targets": size.n_items,
        "n_interactions": int(shown.nnz),
        "fit_seconds": time.perf_counter() - start,
    }
    if lists:
        start = time.perf_counter()
        model.new_interactions(50)
        row["list_seconds"] = time.perf_counter() - start
    row |= {"data_gib": memory.before_gib, "peak_gib": memory.peak_gib()}
    drugs = np.random.default_rng(seed).choice(size.n_users, min(_TESTED, size.n_users), replace=False)
    open_pairs, truth = shown[drugs].toarray() == 0, hidden[drugs].toarray() > 0
    counts = np.outer(np.diff(shown.indptr)[drugs] + 1, np.bincount(shown.indices, minlength=size.n_items) + 1)
    measured = {"average_precision": model.scores_[drugs], "by_counts": counts}
    return row | {name: average_precision(truth[open_pairs], of[open_pairs]) for name, of in measured.items()}


def _divided(interactions: sp.csr_array, seed: int) -> tuple[sp.csr_array, sp.csr_array]:
    """Return the shown and the hidden interactions."""
    hide = np.random.default_rng(seed).random(interactions.nnz) < _HIDDEN
    rows, columns = interactions.nonzero()
    shown, hidden = (
        sp.csr_array((np.ones(int(part.sum())), (rows[part], columns[part])), shape=interactions.shape)
        for part in (~hide, hide)
    )
    return shown, hidden
