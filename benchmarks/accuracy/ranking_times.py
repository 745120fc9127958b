"""Time of lists by system: with the search of its settings, with the chosen ones alone, and of all lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.lists import lists_of
from air_recsys.evaluation.results import ResultTable
from air_recsys.evaluation.results.apart import MemoryWatch, Stopwatch, run_apart
from air_recsys.evaluation.system import System
from air_recsys.models import GraphRanker
from benchmarks.accuracy.ranking_data import RANKING_SETS
from benchmarks.accuracy.ranking_systems import choice_of, ranking_systems

TIMED = ("GraphRanker", "implicit ALS")
"""The systems, which choose their settings inside of their training."""
_LENGTH = 20


def bench_ranking_times(
    data: str, shown: Interactions, *, systems: Sequence[str] = TIMED, seed: int = 0, threads: int = 1
) -> ResultTable:
    """Time every system on the training part of a set, each in a process of its own, one after the other.

    Parameters
    ----------
    data : str
        A key of `benchmarks.accuracy.ranking_data.RANKING_SETS`.
    shown : Interactions
        Its training part: nothing is tested.
    systems : sequence of str
        Names of systems that choose their settings.

    Returns
    -------
    ResultTable
        A row a system: seconds of the training with the search, of one with the settings that it chose, and of the
        lists of all users, and the memory at the peak of the search.
    """
    found = ranking_systems(data, seed=seed, threads=threads)
    protocol = (
        f"{RANKING_SETS[data].title}, {RANKING_SETS[data].origin}, its training part; {shown.n_ratings} interactions "
        f"of {shown.n_users} users and {shown.n_items} items; searched: training with the search of the settings; "
        f"trained: once, with those chosen; lists: the {_LENGTH} best new items of all users; seed {seed}, CPU, "
        f"{threads} thread(s), a process a system, one after the other"
    )
    table = ResultTable(f"Time of lists on {RANKING_SETS[data].title}", protocol)
    for name in tqdm(systems, unit="system", desc=f"ranking-times {data}"):
        figures, chosen = run_apart(measure_times, found[name], shown, threads=threads)
        table.rows.append({"system": name} | figures)
        table.notes.append(f"{name}: {found[name].settings}; chosen: {chosen}")
    return table


def measure_times(system: System, shown: Interactions) -> tuple[dict[str, float], str]:
    """Return the figures of a system, and the settings that it has chosen, in words."""
    memory = MemoryWatch()
    with Stopwatch() as searching:
        model = system.train(shown)
    peak, users = memory.peak_gib(), np.arange(shown.n_users)
    again = untrained(model)
    with Stopwatch() as training:
        again.fit(shown)
    with Stopwatch() as listing:
        lists_of(again, shown, users, _LENGTH)
    figures = {
        "searched_seconds": searching.seconds,
        "trained_seconds": training.seconds,
        "lists_seconds": listing.seconds,
        "peak_gib": peak,
    }
    return figures, choice_of(model)


def untrained(model: Any) -> Any:
    """An untrained model with the settings that a trained one has chosen, which searches nothing."""
    if not isinstance(model, GraphRanker):
        return model.again()
    chosen = {"settings": model.settings_._asdict(), "n_steps": max(1, model.n_steps_), "validation": "auto"}
    return GraphRanker(**model.get_params() | chosen)
