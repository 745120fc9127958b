"""One training shared out over the processes of this machine, beside one process."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from tqdm import tqdm

from air_recsys.distributed import fit
from air_recsys.distributed.group import counted
from air_recsys.evaluation.results import versions
from air_recsys.evaluation.results.apart import ProcessEndedError, thread_variables
from air_recsys.models import AIR
from air_recsys.storage.validation import check_integer
from benchmarks.harness import Found, spent_on
from benchmarks.speed.ratings import split_of

_WAIT = timedelta(seconds=60)  # for ranks that start


class Spent(NamedTuple):
    """What one rank has spent on a training, and what its model predicts."""

    title: str
    costs: dict[str, float]
    predictions: dict[str, np.ndarray]  # scores, and their deviations where there are any


def bench_ranks(
    root: Path | None, seed: int, *, settings: dict[str, Any], n_ranks: list[int], repeats: int, planted: list[int]
) -> Found:
    """Train `AIR.for_ratings` by `air_recsys.distributed.fit` on one rank and on several, in turn.

    Every rank of every training is a new process of one thread, which loads the split before the clock starts.
    """
    numbers = list(dict.fromkeys([1, *n_ranks]))
    for number in (*numbers, repeats):
        check_integer("ranks and repeats", number, minimum=1)
    trainings: dict[int, list[list[Spent]]] = {number: [] for number in numbers}
    asked = root, {"random_state": seed} | settings, planted, seed
    for number in tqdm([number for _ in range(repeats) for number in numbers], unit="training", desc="speed ranks"):
        trainings[number].append(run_ranks(number, train_on_rank, *asked))
    rows = [{"ranks": number, **_figures(trainings[number], trainings[1])} for number in numbers]
    notes = [f"{number} ranks, seconds of each training: {_each(trainings[number])}" for number in numbers]
    first = trainings[1][0][0]
    installed = ", ".join(f"{name} {versions()[name]}" for name in ("air-recsys", "torch"))
    return Found(rows, notes=notes, title=first.title, pairs=len(first.predictions["score"]), installed=installed)


def run_ranks(n_ranks: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Call a function in new processes of one thread each, the ranks of a gloo group, and return what each returns.

    Raises
    ------
    ProcessEndedError
        Where a process ends without a result; the others are ended too.

    Examples
    --------
    >>> run_ranks(2, divmod, 17, 5)
    [(3, 2), (3, 2)]
    """
    pool = ProcessPoolExecutor(n_ranks, get_context("spawn"), torch.set_num_threads, (1,))
    with tempfile.TemporaryDirectory() as folder, thread_variables(1), pool:
        meeting = (Path(folder) / "store").as_uri()
        ranks = [pool.submit(_as_rank, meeting, rank, n_ranks, function, arguments) for rank in range(n_ranks)]
        try:
            return [rank.result() for rank in ranks]
        except BrokenProcessPool as error:
            name = getattr(function, "__name__", "a measurement")
            raise ProcessEndedError(
                f"one of {n_ranks} ranks of {name} ended without a result, often for want of memory"
            ) from error


def _as_rank(meeting: str, rank: int, n_ranks: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    os.environ["LOCAL_WORLD_SIZE"] = str(n_ranks)  # so many share the memory
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=n_ranks, timeout=_WAIT)
    try:
        return function(*arguments)
    finally:
        dist.destroy_process_group()  # whoever waits for this rank hears that it is gone


def train_on_rank(root: Path | None, settings: dict[str, Any], planted: list[int], seed: int) -> Spent:
    """Train on this rank, once all have loaded their split, and predict the held-out ratings."""
    fold, title = split_of(root, planted, seed)
    model = AIR.for_ratings(**{"device": "cpu"} | settings)
    dist.barrier()
    with counted() as traffic:
        _, costs = spent_on(lambda: fit(model, fold.train))
    costs["received_gb"] = traffic.n_bytes / 1e9
    pairs = fold.test.user_ids[fold.test.user_index], fold.test.item_ids[fold.test.item_index]
    if settings.get("solver") == "adam":
        return Spent(title, costs, {"score": model.predict(*pairs)})
    scores, deviations = model.predict(*pairs, return_std=True)
    return Spent(title, costs, {"score": scores, "deviation": deviations})


def _figures(trainings: list[list[Spent]], alone: list[list[Spent]]) -> dict[str, float]:
    """The figures of so many ranks beside those of one."""
    ranks = [rank for training in trainings for rank in training]
    found = {name: median(_largest(trainings, name)) for name in ("seconds", "cpu_seconds")}
    found["times_faster"] = median(_largest(alone, "seconds")) / found["seconds"]
    found |= {name: max(rank.costs[name] for rank in ranks) for name in ("before_gib", "peak_gib", "received_gb")}
    for name, expected in alone[0][0].predictions.items():
        differences = (np.abs(rank.predictions[name] - expected) / np.abs(expected) for rank in ranks)
        found[f"{name}_difference"] = max(float(difference.max()) for difference in differences)
    return found


def _largest(trainings: list[list[Spent]], name: str) -> list[float]:
    """The figure of the rank that has the largest one, of each training."""
    return [max(rank.costs[name] for rank in training) for training in trainings]


def _each(trainings: list[list[Spent]]) -> str:
    return ", ".join(f"{seconds:.2f}" for seconds in _largest(trainings, "seconds"))
