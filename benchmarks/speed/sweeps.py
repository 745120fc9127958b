"""The parts of a training: an epoch and a choice of edges, or a sweep, beside the floor of a sweep."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.results.apart import run_apart
from air_recsys.exceptions import ParameterError
from air_recsys.models import AIR
from air_recsys.models.engines.scaling import Scaling
from air_recsys.models.solvers import Sweeping, Variational
from air_recsys.nn.build import observations
from air_recsys.nn.posterior.entries import Entries
from air_recsys.nn.posterior.equations import SLAB
from air_recsys.nn.posterior.triangles import size_of
from air_recsys.training import PosteriorSweeps, Record
from benchmarks.harness import Found, in_turn
from benchmarks.speed.splits import split_of

_STRIDE = 5  # epochs between two records
_ROUND = 3 * _STRIDE  # epochs between two refreshes
_EPOCHS = 2 * _ROUND
COUNTED = (
    f"{_EPOCHS} epochs, the first {_STRIDE} left out as warm-up; the median over runs of {_STRIDE} epochs, each with "
    "one record"
)
"""The epochs that `epoch_times` counts, for the protocol of a table."""

_SWEEPS = 5
_EDGES = {"graph_refresh": 4}  # sweeps between two choices of edges, as many as in the twelve sweeps of the preset
COUNTED_SWEEPS = (
    f"{_SWEEPS} sweeps, the first apart with all before it; the median of the others, of which one chooses edges anew"
)
"""The sweeps that `sweep_times` counts, for the protocol of a table."""
_BATCH = 512  # matrices a factorization


def sweep_times(settings: dict[str, Any], data: Interactions) -> dict[str, float]:
    """Seconds of a sweep with the steps of its graphs, and of all before and with the first one."""
    records: list[Record] = []
    AIR.for_ratings(**_EDGES | settings | {"n_sweeps": _SWEEPS}).fit(data, callbacks=[records.append])
    seconds = [record.seconds for record in records]
    sweep = statistics.median(later - sooner for sooner, later in itertools.pairwise(seconds))
    return {"sweep_seconds": sweep, "first_seconds": seconds[0]}


def epoch_times(settings: dict[str, Any], data: Interactions) -> dict[str, float]:
    """Seconds of an epoch without a refresh, of a later choice of edges, and of the first one with its record."""
    records: list[Record] = []
    plan = {"n_epochs": _EPOCHS, "graph_refresh": _ROUND, "evaluate_every": _STRIDE}
    AIR.for_ratings(**settings | plan).fit(data, callbacks=[records.append])
    steps = {later.epoch: later.seconds - sooner.seconds for sooner, later in itertools.pairwise(records)}
    with_refresh = steps.pop(_ROUND)
    del steps[_STRIDE]
    epoch = statistics.median(steps.values()) / _STRIDE
    refresh, first = max(0.0, with_refresh - _STRIDE * epoch), max(0.0, records[0].seconds - epoch)
    return {"epoch_seconds": epoch, "refresh_seconds": refresh, "first_seconds": first}


def takes_sweeps(settings: dict[str, Any]) -> bool:
    """Whether the solver that these settings give to `AIR.for_ratings` is one of a posterior."""
    return isinstance(AIR.for_ratings(**settings).solver, Sweeping)


def bench_sweep(
    root: Path | None, threads: int, seed: int, *, settings: dict[str, Any], rounds: int, planted: list[int]
) -> Found:
    """Sweeps of `AIR.for_ratings(**settings)` without graphs, and their floor, in a process of its own."""
    solver = AIR.for_ratings(**settings).solver
    if not takes_sweeps(settings):
        raise ParameterError(f"a sweep is one of solver='variational' or 'langevin', found {solver!r}")
    title, width, rows = run_apart(_measured, root, settings, rounds, planted, seed, threads=threads)
    return Found(rows, title=title, solver=solver, width=width, numbers=size_of(width + 1), slab=SLAB)


def _measured(
    root: Path | None, settings: dict[str, Any], rounds: int, planted: list[int], seed: int
) -> tuple[str, int, list[dict[str, Any]]]:
    """The width, and a row for the sweep, its parts at their floor, and their sum."""
    fold, title = split_of(root, planted, seed)
    model = AIR.for_ratings(**{"random_state": 0, "device": "cpu"} | settings)
    trainer = model.engine().start(fold.train, None, np.random.default_rng(0))
    assert isinstance(trainer, PosteriorSweeps)
    posterior = trainer.posterior
    width = posterior.sides[0].mean.shape[1] - 1
    gather, factor = floor_of(fold.train, width + 1, inverse=isinstance(model.solver, Variational))
    calls = {"sweep": posterior.sweep, "gathers": gather, "factorizations": factor}
    spent = {name: np.median(times, axis=1) for name, times in in_turn(calls, rounds).items()}
    spent["floor"] = spent["gathers"] + spent["factorizations"]
    rows = [
        {"what": name, "seconds": own[0], "cpu_seconds": own[1], "this / floor": own[1] / spent["floor"][1]}
        for name, own in spent.items()
    ]
    return title, width, rows


def floor_of(data: Interactions, d: int, *, inverse: bool) -> tuple[Callable[[], None], Callable[[], None]]:
    """The gathers and the factorizations of a sweep over rows of d numbers, as calls."""
    scaling = Scaling.standard(data.ratings)
    observed = observations(data.to_csr(), scaling.forward, torch.float32, torch.device("cpu"))
    generator = torch.Generator().manual_seed(0)
    sides = []
    for side in (0, 1):
        table = torch.randn(observed.pattern.shape[1 - side], size_of(d), generator=generator)
        sides.append((Entries.of(observed, side), [slab.contiguous() for slab in table.split(SLAB, dim=1)]))
    root = torch.randn(_BATCH, d, 2 * d, generator=generator)
    matrices = root @ root.mT

    def gather() -> None:
        for entries, slabs in sides:
            for slab in slabs:
                entries.sum(slab)

    def factor() -> None:
        for size in observed.pattern.shape:
            for start in range(0, size, _BATCH):
                cholesky = torch.linalg.cholesky(matrices[: min(_BATCH, size - start)])
                if inverse:
                    torch.cholesky_inverse(cholesky)

    return gather, factor
