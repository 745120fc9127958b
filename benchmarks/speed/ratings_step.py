"""A step on ratings: the engine against plain autograd at factor width and against the floor of the machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.folds import Fold
from air_recsys.evaluation.results import ResultTable
from air_recsys.evaluation.results.apart import run_apart
from air_recsys.exceptions import ParameterError
from air_recsys.models import AIR
from air_recsys.models.engines.scaling import graph_strength
from air_recsys.nn.objective import Penalties
from air_recsys.solvers import Adam
from benchmarks.speed.epochs import COUNTED, epoch_times
from benchmarks.speed.floor import measure_machine, median_time, step_work
from benchmarks.speed.plain_factors import Entries, PlainFactors, plain_factors_step


def bench_ratings_step(
    load: Callable[[], Fold], settings: dict[str, Any], *, title: str, threads: int = 1, steps: int = 5
) -> ResultTable:
    """Time an epoch of `AIR.for_ratings(**settings)`, a plain step of the same objective, and the least work of both.

    Parameters
    ----------
    load : callable
        Returns the split whose training part counts; found by its module and name, as pickle wants it.
    settings : dict
        With ``solver="adam"``, `n_factors`, 20 where it is left out, and `graph_neighbors`, which the preset has.
    title : str
        Where the split comes from.
    steps : int
        Of plain autograd, after one that does not count; the median counts.

    Raises
    ------
    ParameterError
        For another solver, full width or graphs over all pairs.
    """
    settings = {"n_factors": 20} | settings
    solver, width, n_neighbors = _model(settings)
    rows, notes = run_apart(_measure, load, settings, steps, threads=threads)
    protocol = (
        f"{title}, training part; width {width}, depth {solver.depth}, {n_neighbors} neighbours, "
        f"float32, CPU, {threads} thread(s); engine: {COUNTED}, choosing edges not counted; plain: median of {steps}"
    )
    return ResultTable("A step on ratings", protocol, rows, notes)


def _model(settings: dict[str, Any]) -> tuple[Adam, int, int]:
    """Return the solver, the width and the neighbours of the model that is timed."""
    model = AIR.for_ratings(**settings)
    if not isinstance(model.solver, Adam):
        raise ParameterError(f"a step is one of solver='adam', found {model.solver!r}")
    if model.n_factors is None or model.graph_neighbors is None:
        raise ParameterError(
            f"expected n_factors and graph_neighbors, found {model.n_factors} and {model.graph_neighbors}"
        )
    assert isinstance(model.n_factors, int)
    assert isinstance(model.graph_neighbors, int)
    return model.solver, model.n_factors, model.graph_neighbors


def _measure(load: Callable[[], Fold], settings: dict[str, Any], steps: int) -> tuple[list[dict[str, Any]], list[str]]:
    data = load().train
    solver, width, n_neighbors = _model(settings)
    engine = epoch_times({"random_state": 0, "device": "cpu"} | settings, data)
    plain = median_time(_plain_step(solver, width, n_neighbors, data), steps)
    machine = measure_machine()
    work = step_work((data.n_users, data.n_items), data.n_ratings, width, n_neighbors, solver.depth)
    floors = machine.seconds(work)
    seconds = {
        "engine": engine.epoch_seconds,
        "plain autograd": plain,
        "bytes moved": floors[0],
        "products": floors[1],
    }
    rows = [
        {
            "what": name,
            "milliseconds": 1e3 * own,
            "plain / this": plain / own,
            "this / floor": own / max(floors),
        }
        for name, own in seconds.items()
    ]
    notes = [
        f"a step moves at least {work.bytes / 1e6:.0f} MB and takes {work.flops / 1e9:.2f} G operations; measured: "
        f"{machine.bandwidth / 1e9:.1f} GB/s (copy), {machine.flop_rate / 1e9:.0f} G operations/s (1024^3 product)",
        f"choosing edges: {engine.first_seconds:.2f} s at the start, {engine.refresh_seconds:.2f} s later",
    ]
    return rows, notes


def _plain_step(solver: Adam, width: int, n_neighbors: int, data: Interactions) -> Callable[[], object]:
    generator = torch.Generator().manual_seed(0)
    neighbors = [
        torch.randint(size, (size, min(n_neighbors, size - 1)), generator=generator)
        for size in (data.n_users, data.n_items)
    ]
    plain = PlainFactors(
        (neighbors[0], neighbors[1]),
        width,
        solver.depth,
        (graph_strength(solver.user_graph_reg, data), graph_strength(solver.item_graph_reg, data)),
        Penalties(solver.weight_decay, solver.bias_decay),
        generator,
    )
    optimizer = torch.optim.Adam(plain.parameters(), lr=float(solver.learning_rate))
    values = torch.as_tensor(data.ratings - data.ratings.mean(), dtype=torch.float32)
    users, items = (torch.as_tensor(index, dtype=torch.int64) for index in (data.user_index, data.item_index))
    entries = Entries(users, items, values)
    return lambda: plain_factors_step(plain, optimizer, entries)
