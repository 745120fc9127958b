"""Seconds an epoch, or a sweep, and memory by size, one size changed at a time, and how they grow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from air_recsys.data.sets.planted import make_planted_ratings
from air_recsys.evaluation.results import ResultTable
from air_recsys.evaluation.results.apart import MemoryWatch, ProcessEndedError, run_apart
from air_recsys.exceptions import ParameterError
from air_recsys.models import AIR
from air_recsys.models.solvers import Sweeping, as_solver
from air_recsys.storage.validation import check_choice
from benchmarks.speed.epochs import (
    COUNTED,
    COUNTED_SWEEPS,
    EpochTimes,
    SweepTimes,
    epoch_times,
    sweep_times,
)

_MEMORY = ("data_gib", "peak_gib")


class Size(NamedTuple):
    """The sizes that the time of a training depends on."""

    n_ratings: int
    n_users: int
    n_items: int
    n_factors: int
    graph_neighbors: int

    @property
    def settings(self) -> dict[str, int]:
        """Return those that are parameters of `AIR`."""
        return {"n_factors": self.n_factors, "graph_neighbors": self.graph_neighbors}


SWEEPS = Size._fields
"""The sizes that can be changed."""


def sizes_of(base: Size, sweeps: Mapping[str, Iterable[int]]) -> list[tuple[str, Size]]:
    """Return (what is changed, sizes) of every point, all else as in `base`.

    Examples
    --------
    >>> sizes_of(Size(900, 60, 40, 4, 5), {"n_factors": [4, 8]})[1]
    ('n_factors', Size(n_ratings=900, n_users=60, n_items=40, n_factors=8, graph_neighbors=5))
    """
    for name in sweeps:
        check_choice("a sweep", name, SWEEPS)
    return [(name, base._replace(**{name: value})) for name, values in sweeps.items() for value in values]


def bench_growth(
    points: list[tuple[str, Size]], settings: dict[str, Any], *, seed: int = 0, threads: int = 1
) -> tuple[ResultTable, ResultTable]:
    """Time epochs, or sweeps, of `AIR.for_ratings` on planted ratings of every size, each in a process of its own.

    A size that several sweeps share is measured once. One that does not fit into memory is reported without figures.

    Parameters
    ----------
    points : list of (str, Size)
        As `sizes_of` returns them.
    settings : dict
        Further parameters of `AIR`, such as ``solver="adam"``, not those of `Size`.
    seed : int
        Of data and start.

    Returns
    -------
    ResultTable
        A row a point: the sizes, the seconds of `EpochTimes` or `SweepTimes`, and memory in GiB with the data alone
        and at the peak of the training.
    ResultTable
        A row for each size that changes: the exponents of these times.

    Raises
    ------
    ParameterError
        Before any work, for settings that belong to the sizes.
    """
    check_further(settings)
    sweeps = takes_sweeps(settings)
    times = (SweepTimes if sweeps else EpochTimes)._fields
    figures: dict[Size, dict[str, float]] = {}
    lost: dict[Size, str] = {}
    growth, exponents = ResultTable("Time and memory by size", ""), ResultTable("Growth", "")
    for name, size in tqdm(points, unit="size", desc="bench scale"):
        if size not in figures:
            try:
                figures[size] = run_apart(measure_size, size, settings, seed, threads=threads)
            except (ProcessEndedError, MemoryError) as error:
                figures[size], lost[size] = dict.fromkeys((*times, *_MEMORY), math.nan), str(error)
        growth.rows.append({"sweep": name, **size._asdict(), **figures[size]})
    growth.notes = [f"{size}: {reason}" for size, reason in lost.items()]
    for name in dict.fromkeys(name for name, _ in points):
        rows = [row for row in growth.rows if row["sweep"] == name]
        sizes = [row[name] for row in rows]
        fits = {measure: growth_exponent(sizes, [row[measure] for row in rows]) for measure in times}
        exponents.rows.append({"sweep": name, "points": len(rows), **fits})
    given = ", ".join(f"{key}={value}" for key, value in settings.items())
    growth.protocol = (
        f"planted ratings, seed {seed}; AIR.for_ratings({given}) with the width and neighbours of the row, CPU, "
        f"{threads} thread(s), a process a size; {COUNTED_SWEEPS if sweeps else COUNTED}"
    )
    exponents.protocol = "slope of the logarithm of the seconds over that of the size, least squares"
    return growth, exponents


def check_further(settings: dict[str, Any]) -> None:
    """Raise `ParameterError` for settings that a `Size` decides."""
    decided = [name for name in settings if name in SWEEPS]
    if decided:
        raise ParameterError(f"expected further settings only, found {decided}, which are sizes here")


def growth_exponent(sizes: Iterable[float], seconds: Iterable[float]) -> float:
    """Return p of seconds ~ size^p by least squares on the logarithms; NaN for fewer than two usable sizes.

    Examples
    --------
    >>> round(growth_exponent([1, 10, 100], [0.02, 0.2, 2.0]), 6)
    1.0
    """
    x, y = np.array(list(sizes), dtype=float), np.array(list(seconds), dtype=float)
    usable = np.isfinite(y) & (y > 0)
    if np.unique(x[usable]).size < 2:
        return math.nan
    return float(np.polyfit(np.log(x[usable]), np.log(y[usable]), 1)[0])


def measure_size(size: Size, settings: dict[str, Any], seed: int) -> dict[str, float]:
    """Make the ratings, train for a few epochs, and return times in seconds and memory in GiB."""
    data = make_planted_ratings(size.n_users, size.n_items, size.n_ratings, random_state=seed).interactions
    memory = MemoryWatch()
    measure = sweep_times if takes_sweeps(settings) else epoch_times
    times = measure({"random_state": seed, "device": "cpu"} | settings | size.settings, data)
    return {**times._asdict(), "data_gib": memory.before_gib, "peak_gib": memory.peak_gib()}


def takes_sweeps(settings: dict[str, Any]) -> bool:
    """Return whether the solver that these settings give to `AIR.for_ratings` is one of a posterior."""
    return isinstance(as_solver(settings.get("solver", AIR.for_ratings().solver)), Sweeping)
