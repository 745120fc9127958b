"""How much faster ranks train `AIR.for_ratings` than one process, and whether they find the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch.distributed as dist
from tqdm import tqdm

from air_recsys.data.sets.planted import make_planted_ratings
from air_recsys.distributed import fit
from air_recsys.distributed.group import counted
from air_recsys.evaluation.folds import Fold
from air_recsys.evaluation.results import ResultTable, versions
from air_recsys.evaluation.results.apart import MemoryWatch, Stopwatch
from air_recsys.models import AIR
from air_recsys.splits import random_holdout
from air_recsys.storage.validation import check_integer
from benchmarks.ranks.processes import run_ranks
from benchmarks.scale.sweeps import takes_sweeps

_HELD_OUT = 0.1


class Spent(NamedTuple):
    """What one rank has spent on a training, and what its model predicts."""

    seconds: float
    cpu_seconds: float
    before_gib: float
    peak_gib: float
    received_gb: float
    predictions: dict[str, np.ndarray]  # scores, and their deviations where there are any


def planted_split(n_users: int, n_items: int, n_ratings: int, seed: int) -> Fold:
    """Make planted ratings and hold out a random tenth."""
    data = make_planted_ratings(n_users, n_items, n_ratings, random_state=seed).interactions
    split = random_holdout(data, _HELD_OUT, random_state=seed)
    return Fold("hold-out", data.select(split.train), data.select(split.test))


def bench_ranks(
    load: Callable[[], Fold],
    settings: dict[str, Any],
    *,
    title: str,
    n_ranks: Sequence[int] = (2,),
    repeats: int = 3,
    seed: int = 0,
) -> ResultTable:
    """Train `AIR.for_ratings` by `air_recsys.distributed.fit` on one rank and on several, in turn.

    Every rank of every training is a new process of one thread, which loads the split before the clock starts.

    Parameters
    ----------
    load : callable
        Returns the split; found by its module and name, as pickle wants it.
    settings : dict
        Parameters of `AIR.for_ratings`.
    title : str
        Where the split comes from.
    n_ranks : sequence of int
        Beside one.
    repeats : int
        Of each training; the median of times counts.
    seed : int
        Of the training.

    Returns
    -------
    ResultTable
        A row a number of ranks: seconds on the clock of the slowest rank and the most processor seconds of one, how
        many times faster than one rank that is; of a rank at most, memory before the training (the split included) and
        at the peak, in GiB, and GB received; and the largest relative differences from one rank on the held-out pairs.

    Raises
    ------
    ProcessEndedError
        Where a rank dies.
    """
    numbers = list(dict.fromkeys([1, *n_ranks]))
    for number in (*numbers, repeats):
        check_integer("ranks and repeats", number, minimum=1)
    trainings: dict[int, list[list[Spent]]] = {number: [] for number in numbers}
    rounds = [number for _ in range(repeats) for number in numbers]
    for number in tqdm(rounds, unit="training", desc="bench ranks"):
        trainings[number].append(run_ranks(number, train_on_rank, load, {"random_state": seed} | settings))
    alone, rows = trainings[1], [{"ranks": number, **_figures(trainings[number], trainings[1])} for number in numbers]
    notes = [f"{number} ranks, seconds of each training: {_each(trainings[number])}" for number in numbers]
    given = ", ".join(f"{name}={value}" for name, value in settings.items())
    installed = ", ".join(f"{name} {versions()[name]}" for name in ("air-recsys", "torch"))
    protocol = (
        f"{title}; AIR.for_ratings({given}), seed {seed}, CPU, one thread a rank, gloo, median of {repeats}; "
        f"{len(alone[0][0].predictions['score'])} held-out pairs; {installed}"
    )
    return ResultTable("One training on several ranks", protocol, rows, notes)


def train_on_rank(load: Callable[[], Fold], settings: dict[str, Any]) -> Spent:
    """Train on this rank, once all have loaded their split, and predict the held-out ratings."""
    fold = load()
    model = AIR.for_ratings(**{"device": "cpu"} | settings)
    memory = MemoryWatch()
    dist.barrier()
    with counted() as traffic, Stopwatch() as watch:
        fit(model, fold.train)
    costs = watch.seconds, watch.cpu_seconds, memory.before_gib, memory.peak_gib(), traffic.n_bytes / 1e9
    pairs = fold.test.user_ids[fold.test.user_index], fold.test.item_ids[fold.test.item_index]
    if not takes_sweeps(settings):
        return Spent(*costs, {"score": model.predict(*pairs)})
    scores, deviations = model.predict(*pairs, return_std=True)
    return Spent(*costs, {"score": scores, "deviation": deviations})


def _figures(trainings: list[list[Spent]], alone: list[list[Spent]]) -> dict[str, float]:
    """Return the figures of so many ranks beside those of one."""
    ranks = [rank for training in trainings for rank in training]
    found = {name: median(_largest(trainings, name)) for name in ("seconds", "cpu_seconds")}
    found["times_faster"] = median(_largest(alone, "seconds")) / found["seconds"]
    found |= {name: max(getattr(rank, name) for rank in ranks) for name in ("before_gib", "peak_gib", "received_gb")}
    for name, expected in alone[0][0].predictions.items():
        differences = (np.abs(rank.predictions[name] - expected) / np.abs(expected) for rank in ranks)
        found[f"{name}_difference"] = max(float(difference.max()) for difference in differences)
    return found


def _largest(trainings: list[list[Spent]], name: str) -> list[float]:
    """Return the figure of the rank that has the largest one, of each training."""
    return [max(getattr(rank, name) for rank in training) for training in trainings]


def _each(trainings: list[list[Spent]]) -> str:
    return ", ".join(f"{seconds:.2f}" for seconds in _largest(trainings, "seconds"))
