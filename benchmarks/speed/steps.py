"""A step of Adam: at full width, and on ratings beside plain autograd and the floor of the machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from plain_factors import Entries, PlainFactors

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.results.apart import run_apart
from air_recsys.exceptions import ParameterError
from air_recsys.models import AIR
from air_recsys.models.engines.scaling import graph_strength
from air_recsys.nn.objective import Penalties
from air_recsys.solvers import Adam
from benchmarks.harness import Found, median_seconds
from benchmarks.paper.steps import bench_step
from benchmarks.plain_autograd import plain_step
from benchmarks.speed.splits import split_of
from benchmarks.speed.sweeps import COUNTED, epoch_times

_REAL, _INDEX = 4, 4  # bytes
_STEP_BYTES = 6 * _REAL  # of a parameter: Adam reads and writes it and its two moments


def bench_full_width(threads: int, *, size: int, depths: list[int], rounds: int, steps: int) -> Found:
    """Steps as `bench_step` times them, a process a depth: its rows with the depth and the time relative to DMF."""
    found = []
    for depth in depths:
        table = run_apart(bench_step, size, depth, rounds, steps, threads=threads)
        dmf = next(row["milliseconds"] for row in table.rows if row["contender"] == "engine, DMF")
        found += [{"depth": depth, **row, "this / DMF": row["milliseconds"] / dmf} for row in table.rows]
    return Found(found)


def bench_ratings_step(
    root: Path | None, threads: int, seed: int, *, settings: dict[str, Any], steps: int, planted: list[int]
) -> Found:
    """An epoch of `AIR.for_ratings(**settings)`, a plain step of the same objective, and the least work of both."""
    solver, width, n_neighbors = _model(settings)
    title, rows, notes = run_apart(_measured, root, settings, steps, planted, seed, threads=threads)
    facts = {"width": width, "depth": solver.depth, "neighbors": n_neighbors, "counted": COUNTED}
    return Found(rows, notes=notes, title=title, **facts)


class Work(NamedTuple):
    """Bytes between memory and processor, and additions and multiplications; or the machine's rate of each."""

    bytes: float
    flops: float


def step_work(shape: tuple[int, int], n_ratings: int, width: int, n_neighbors: int, depth: int = 2) -> Work:
    """The least work of a step over all ratings with both learned graphs, in single precision.

    Every array is read or written once: column and value of each rating, each edge, and each parameter with its two
    moments; factors are taken to stay in the cache while they are gathered, and gradients to be used where they arise.
    Products: three for the ratings, three for the edges, five of a side's factors with an r x r matrix or
    with each other, three a further layer.

    Examples
    --------
    >>> step_work((10, 5), 20, width=1, n_neighbors=1)
    Work(bytes=1660.0, flops=360.0)
    """
    nodes, edges = sum(shape), sum(shape) * n_neighbors
    parameters = nodes * (width + 1) + edges + nodes + (depth - 2) * width**2
    moved = n_ratings * (_INDEX + _REAL) + edges * _INDEX + parameters * _STEP_BYTES
    flops = 6 * width * (n_ratings + edges) + 10 * nodes * width**2 + 6 * (depth - 2) * shape[0] * width**2
    return Work(float(moved), float(flops))


def measured_machine(megabytes: int = 256, size: int = 1024) -> Work:
    """Bytes a second of a copy and operations a second of a matrix product, on the threads that torch has."""
    source = torch.ones(megabytes * 2**18)
    target = torch.empty_like(source)
    left, out = torch.ones(size, size), torch.empty(size, size)
    calls = {"copy": lambda: target.copy_(source), "product": lambda: torch.mm(left, left, out=out)}
    medians = median_seconds(calls, rounds=9)
    return Work(2 * source.numel() * _REAL / medians["copy"], 2 * size**3 / medians["product"])


def _model(settings: dict[str, Any]) -> tuple[Adam, int, int]:
    """The solver, the width and the neighbours of the model that is timed."""
    model = AIR.for_ratings(**settings)
    if not isinstance(model.solver, Adam):
        raise ParameterError(f"a step is one of solver='adam', found {model.solver!r}")
    width, neighbors = model.n_factors, model.graph_neighbors
    if not isinstance(width, int) or not isinstance(neighbors, int):
        raise ParameterError(f"expected n_factors and graph_neighbors, found {width} and {neighbors}")
    return model.solver, width, neighbors


def _measured(
    root: Path | None, settings: dict[str, Any], steps: int, planted: list[int], seed: int
) -> tuple[str, list[dict[str, Any]], list[str]]:
    fold, title = split_of(root, planted, seed)
    data, (solver, width, n_neighbors) = fold.train, _model(settings)
    engine = epoch_times({"random_state": 0, "device": "cpu"} | settings, data)
    plain = median_seconds({"plain": _plain_step(solver, width, n_neighbors, data)}, steps)["plain"]
    work = step_work((data.n_users, data.n_items), data.n_ratings, width, n_neighbors, solver.depth)
    machine = measured_machine()
    moved, multiplied = work.bytes / machine.bytes, work.flops / machine.flops
    seconds = {
        "engine": engine["epoch_seconds"],
        "plain autograd": plain,
        "bytes moved": moved,
        "products": multiplied,
    }
    floor = max(moved, multiplied)
    rows = [
        {"what": name, "milliseconds": 1e3 * own, "plain / this": plain / own, "this / floor": own / floor}
        for name, own in seconds.items()
    ]
    notes = [
        f"a step moves at least {work.bytes / 1e6:.0f} MB and takes {work.flops / 1e9:.2f} G operations; measured: "
        f"{machine.bytes / 1e9:.1f} GB/s (copy), {machine.flops / 1e9:.0f} G operations/s (1024^3 product)",
        f"choosing edges: {engine['first_seconds']:.2f} s at the start, {engine['refresh_seconds']:.2f} s later",
    ]
    return title, rows, notes


def _plain_step(solver: Adam, width: int, n_neighbors: int, data: Interactions) -> Callable[[], object]:
    generator = torch.Generator().manual_seed(0)
    users, items = (
        torch.randint(size, (size, min(n_neighbors, size - 1)), generator=generator)
        for size in (data.n_users, data.n_items)
    )
    strengths = graph_strength(solver.user_graph_reg, data), graph_strength(solver.item_graph_reg, data)
    penalties = Penalties(solver.weight_decay, solver.bias_decay)
    plain = PlainFactors((users, items), width, solver.depth, strengths, penalties, generator)
    optimizer = torch.optim.Adam(plain.parameters(), lr=float(solver.learning_rate))
    values = torch.as_tensor(data.ratings - data.ratings.mean(), dtype=torch.float32)
    users, items = (torch.as_tensor(each.astype(np.int64)) for each in (data.user_index, data.item_index))
    entries = Entries(users, items, values)
    return lambda: plain_step(plain, [optimizer], entries)
