"""The cost of a training step: against plain autograd and its matrix products, and as Table 2 of the paper."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from tqdm import tqdm

from air_recsys.evaluation.results import ResultTable
from air_recsys.evaluation.results.apart import run_apart
from air_recsys.graphs.laplacian import row_softmin
from air_recsys.nn.build import Settings, build_objective, observations
from air_recsys.nn.devices import fast_products, resolve_device
from benchmarks.harness import Found
from benchmarks.paper.recipes import content_of
from benchmarks.plain_autograd import PlainAIR, plain_optimizers, plain_step, program_step

_MISSING = 0.3
_STRENGTH = 1e-4
_EVERY = 10
_SYSTEMS: dict[str, dict[str, Any]] = {
    "DMF": {"strengths": (0.0, 0.0)},
    "RDMF": {"strengths": (0.0, 0.0), "tv_strength": 1e-3},
    "AIR": {"strengths": (_STRENGTH, _STRENGTH)},
}


def bench_step(
    size: int = 240, depth: int = 3, rounds: int = 30, steps: int = 20, device: str = "cpu"
) -> list[dict[str, Any]]:
    """Time steps of the engine, of plain autograd, of the bare matrix products, and of parts of a step, in turn.

    Parameters
    ----------
    size : int
        Rows and columns of the matrix; full width.
    rounds, steps : int
        Each contender runs `steps` steps in every round; the median round counts.
    """
    device = str(resolve_device(device))
    air = Settings(depth=depth, **_SYSTEMS["AIR"])
    contenders = {
        "engine, AIR": engine_step(size, device, air),
        f"engine, AIR, graphs every {_EVERY}th step": engine_step(size, device, replace(air, graph_every=_EVERY)),
        "engine, DMF": engine_step(size, device, Settings(depth=depth, **_SYSTEMS["DMF"])),
        "plain autograd, AIR": _plain(size, depth, device, plain_step),
        "authors' program, AIR": _plain(size, depth, device, program_step),
        "matrix products of AIR": _products(size, depth, device, fast=False),
        "matrix products of AIR, fast": _products(size, depth, device, fast=True),
        "part: Adam": _adam(size, depth, device),
        "part: both adjacencies, both gradients of logits": _adjacencies(size, device),
    }
    medians = median_times(contenders, rounds, steps, device, "step")
    return [
        {
            "depth": depth,
            "contender": name,
            "milliseconds": 1e3 * median,
            "plain / this": medians["plain autograd, AIR"] / median,
            "program / this": medians["authors' program, AIR"] / median,
            "this / products": median / medians["matrix products of AIR"],
            "this / fast": median / medians["matrix products of AIR, fast"],
            "this / DMF": median / medians["engine, DMF"],
        }
        for name, median in medians.items()
    ]


def bench_full_width(threads: int, *, size: int, depths: list[int], rounds: int, steps: int) -> Found:
    """Steps as `bench_step` times them, a process a depth."""
    return Found(
        [row for depth in depths for row in run_apart(bench_step, size, depth, rounds, steps, threads=threads)]
    )


def table2(*, rounds: int, steps: int, device: str) -> list[ResultTable]:
    """Time a step of DMF, RDMF and AIR on m x m matrices, in turn.

    Ratios are what can be compared with the paper; seconds for 10,000 steps belong to the device named.
    """
    used = str(resolve_device(device))
    printed = content_of("table2")
    table = ResultTable(
        "Table 2",
        f"m x m random matrices, 30 % missing, full width, depth L, float32, Adam, device {used}; median of {rounds} "
        f"rounds of {steps} steps, systems in turn",
    )
    for case in printed["rows"]:
        size, depth = case["size"], case["depth"]
        contenders = {name: engine_step(size, used, Settings(depth=depth, **own)) for name, own in _SYSTEMS.items()}
        seconds = median_times(contenders, rounds, steps, used, f"m={size}, L={depth}")
        row: dict[str, Any] = {"m": size, "L": depth}
        for name in ("RDMF", "AIR"):
            row[f"{name}/DMF"] = seconds[name] / seconds["DMF"]
            row[f"{name}/DMF, published"] = case[name] / case["DMF"]
        for name, value in seconds.items():
            row[f"{name}, s for 10,000 steps"] = 1e4 * value
            row[f"{name}, published"] = case[name]
        table.rows.append(row)
    smaller = sum(row["AIR/DMF"] <= row["AIR/DMF, published"] for row in table.rows)
    table.notes = [f"AIR/DMF no larger than published in {smaller} of {len(table.rows)} rows", printed["note"]]
    return [table]


def median_times(
    contenders: dict[str, Callable[[], object]], rounds: int, steps: int, device: str, title: str
) -> dict[str, float]:
    """The seconds a step of each contender, run in turn: the median over rounds of `steps` steps."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in tqdm(range(rounds), unit="round", desc=title):
        for name, step in contenders.items():
            times[name].append(_time(step, steps, device))
    return {name: statistics.median(values) for name, values in times.items()}


def engine_step(size: int, device: str, settings: Settings) -> Callable[[], object]:
    """One training step of the engine on a random size x size matrix."""
    targets, mask = _data(size, device)
    rows, columns = np.nonzero(mask.cpu().numpy())
    ratings = sp.csr_array((targets.cpu().numpy()[rows, columns], (rows, columns)), shape=(size, size))
    observed = observations(ratings, lambda values: values, torch.float32, torch.device(device))
    objective = build_objective(observed, settings, np.random.default_rng(0))
    optimizer = torch.optim.Adam(objective.parameters(), lr=1e-3, fused=True)

    def step() -> None:
        with torch.no_grad():
            objective.evaluate()
            optimizer.step()

    return step


def _data(size: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    targets, mask = rng.random((size, size)), rng.random((size, size)) >= _MISSING
    return (torch.as_tensor(array, dtype=torch.float32, device=device) for array in (targets, mask))  # type: ignore[return-value]


def _plain(size: int, depth: int, device: str, step: Callable[..., object]) -> Callable[[], object]:
    targets, mask = _data(size, device)
    model = PlainAIR(size, size, depth, _STRENGTH, torch.Generator().manual_seed(0)).to(device)
    optimizers = plain_optimizers(model, 1e-3)
    return lambda: step(model, optimizers, targets, mask)


def _products(size: int, depth: int, device: str, fast: bool) -> Callable[[], object]:
    """As many products as a step of AIR needs: 3 (depth - 1) for the factors, 2 for each graph.

    With `fast`, they run in the mode of the engine's products.
    """
    left, out = torch.rand(size, size, device=device), torch.empty(size, size, device=device)

    def step() -> None:
        with fast_products(out) if fast else nullcontext():
            for _ in range(3 * (depth - 1) + 4):
                torch.mm(left, left, out=out)

    return step


def _adam(size: int, depth: int, device: str) -> Callable[[], object]:
    """A step of the optimiser on the factors and on the logits of both graphs."""
    parameters = list(torch.rand(depth + 2, size, size, device=device))
    for parameter in parameters:
        parameter.grad = torch.rand_like(parameter)
    return torch.optim.Adam(parameters, lr=1e-3, fused=True).step


def _adjacencies(size: int, device: str) -> Callable[[], object]:
    logits, distances = torch.rand(2, size, size, device=device)
    return lambda: [row_softmin(logits, distances) for _ in range(2)]


def _time(step: Callable[[], object], steps: int, device: str) -> float:
    _wait(device)
    start = time.perf_counter()
    for _ in range(steps):
        step()
    _wait(device)
    return (time.perf_counter() - start) / steps


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()
