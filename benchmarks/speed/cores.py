"""Two threads against one: trainings, lists and new rows, and the share of them that one thread does alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from air_recsys import AIR
from air_recsys.data.interactions import Interactions
from air_recsys.data.sets.planted import make_planted_ratings
from air_recsys.datasets import load_movielens
from air_recsys.exceptions import ParameterWarning
from air_recsys.models.ranking.top_items import top_items
from air_recsys.models.state import TrainingStatistics
from air_recsys.storage import threads as pool
from air_recsys.storage.threads import cores, threads
from air_recsys.storage.validation import check_choice
from benchmarks.harness import Found

Run = Callable[[int], list[np.ndarray]]
"""Does the work with so many threads, and returns what was found."""
_CPU: dict[str, Any] = {"random_state": 0, "device": "cpu", "verbose": False}


def bench_cores(root: Path, *, systems: list[str], rounds: int, workers: int, sizes: list[int], sweeps: int) -> Found:
    """Time each kind of work with one thread, with two, and with more workers than cores."""
    known = _kinds(root, sizes, sweeps)
    rows = []
    for name in systems or known:
        run = known[check_choice("a system", name, known)]()
        expected, seconds, same, alone = run(1), {1: [], 2: [], workers: []}, True, []
        for number in [number for _ in range(rounds) for number in seconds]:
            with _shared() as shared:
                start = perf_counter()
                found = run(number)
                seconds[number].append(perf_counter() - start)
            same = same and all(map(np.array_equal, expected, found))
            if number == workers:
                alone.append(seconds[number][-1] - sum(shared))
        one, two, many = (median(each) for each in seconds.values())
        own = {"1 thread, s": one, "2 threads, s": two, "times faster": one / two, f"{workers} workers, s": many}
        rows.append({"what": name, **own, "serial share": median(alone) / one, "same": same})
    return Found(rows, cores=cores())


@contextmanager
def _shared() -> Iterator[list[float]]:
    """The seconds of each call that shares out work."""
    before, seconds = pool._shared_out, []

    def timed(*given: Any) -> list[Any]:
        start = perf_counter()
        try:
            return before(*given)
        finally:
            seconds.append(perf_counter() - start)

    pool._shared_out = timed
    try:
        yield seconds
    finally:
        pool._shared_out = before


def _kinds(root: Path, sizes: list[int], sweeps: int) -> dict[str, Callable[[], Run]]:
    def films() -> Interactions:
        return load_movielens(root, "1m")

    def made() -> Run:
        data = make_planted_ratings(*sizes, random_state=0).interactions
        return partial(_trained, AIR.for_ratings(**_CPU, n_sweeps=4), data)

    def likes() -> Run:
        data = films()
        frame = data.to_frame()[data.ratings >= 4]
        return partial(_trained, AIR.for_likes(settings={}, n_steps=40, random_state=0, device="cpu"), frame)

    return {
        "preset": lambda: partial(_trained, AIR.for_ratings(**_CPU), films()),
        "langevin": lambda: partial(_trained, AIR.for_ratings(solver="langevin", n_sweeps=sweeps, **_CPU), films()),
        "planted": made,
        "likes": likes,
        "lists": lambda: _lists(films()),
        "new rows": lambda: _new_rows(films()),
    }


def _trained(model: Any, data: Any, number: int) -> list[np.ndarray]:
    with threads(number), threadpool_limits(min(number, cores()), user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ParameterWarning)  # of more threads than cores
        return [*model.fit(data).factors_.arrays()]


def _lists(data: Interactions) -> Run:
    rng = np.random.default_rng(0)
    users, items = (rng.normal(size=(size, 64)).astype(np.float32) for size in (data.n_users, data.n_items))
    biases, seen = np.zeros(len(items), np.float32), TrainingStatistics(data).seen

    def run(number: int) -> list[np.ndarray]:
        with threads(number):
            return [*top_items(users, items, biases, 10, seen=seen)]

    return run


def _new_rows(data: Interactions) -> Run:
    model = AIR.for_ratings(n_sweeps=2, **_CPU).fit(data)

    def run(number: int) -> list[np.ndarray]:
        with threads(number):
            return [model.fold_in(data.to_csr()).user_factors_]

    return run
