"""A sweep of the posterior beside its floor: the gathers and the factorizations that it is made of, in plain loops."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.folds import Fold
from air_recsys.evaluation.results import ResultTable
from air_recsys.evaluation.results.apart import run_apart
from air_recsys.exceptions import ParameterError
from air_recsys.models import AIR
from air_recsys.models.engines.scaling import Scaling
from air_recsys.models.solvers import Sweeping, Variational
from air_recsys.nn.build import observations
from air_recsys.nn.pattern import SparsePattern
from air_recsys.nn.posterior.entries import Entries
from air_recsys.nn.posterior.equations import SLAB
from air_recsys.nn.posterior.triangles import size_of
from air_recsys.training import PosteriorSweeps

_BATCH = 512  # matrices a factorization


def bench_sweep(
    load: Callable[[], Fold], settings: dict[str, Any], *, title: str, rounds: int = 5, threads: int = 1
) -> ResultTable:
    """Time sweeps of `AIR.for_ratings(**settings)` and their floor, in a process of its own.

    Parameters
    ----------
    load : callable
        Returns the split, see `benchmarks.speed.bench_ratings`.
    settings : dict
        Parameters of `AIR`.
    title : str
        Where the split comes from.
    rounds : int
        Sweeps, and floors, that are timed after one that is not; the median counts.

    Raises
    ------
    ParameterError
        For a solver without sweeps.
    """
    model = AIR.for_ratings(**settings)
    if not isinstance(model.solver, Sweeping):
        raise ParameterError(f"a sweep is one of solver='variational' or 'langevin', found {model.solver!r}")
    width, rows = run_apart(measure_sweep, load, settings, rounds, threads=threads)
    protocol = (
        f"{title}, training part; {model.solver!r}, width {width}, float32, CPU, {threads} thread(s); sweeps without "
        f"graphs; median of {rounds} in turn"
    )
    notes = [
        f"gathers: the sums over the entries of both sides of {size_of(width + 1)} numbers of their partners, from a "
        f"table in slabs of {SLAB} columns; factorizations: a Cholesky factor and, for covariances, an inverse of the "
        "matrix of each row; both on random numbers"
    ]
    return ResultTable("A sweep of the posterior", protocol, rows, notes)


def measure_sweep(load: Callable[[], Fold], settings: dict[str, Any], rounds: int) -> tuple[int, list[dict[str, Any]]]:
    """Return the width, and a row for the sweep, its parts at their floor, and their sum."""
    data = load().train
    model = AIR.for_ratings(**{"random_state": 0, "device": "cpu"} | settings)
    trainer = model.engine().start(data, None, np.random.default_rng(0))
    assert isinstance(trainer, PosteriorSweeps)
    posterior = trainer.posterior
    width = posterior.sides[0].mean.shape[1] - 1
    gather, factor = floor_of(data, width + 1, inverse=isinstance(model.solver, Variational))
    spent = _medians({"sweep": posterior.sweep, "gathers": gather, "factorizations": factor}, rounds)
    floor = tuple(sum(pair) for pair in zip(spent["gathers"], spent["factorizations"], strict=True))
    rows = [
        {"what": name, "seconds": own[0], "cpu_seconds": own[1], "this / floor": own[1] / floor[1]}
        for name, own in {**spent, "floor": floor}.items()
    ]
    return width, rows


def floor_of(data: Interactions, d: int, *, inverse: bool) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return the gathers and the factorizations of a sweep over rows of d numbers, as calls.

    Examples
    --------
    >>> gather, factor = floor_of(Interactions.from_dense(np.ones((4, 3))), 3, inverse=True)
    >>> gather(), factor()
    (None, None)
    """
    scaling = Scaling.standard(data.ratings)
    observed = observations(data.to_csr(), scaling.forward, torch.float32, torch.device("cpu"))
    generator = torch.Generator().manual_seed(0)
    sides = [(Entries.of(observed, side), _table(observed.pattern, side, d, generator)) for side in (0, 1)]
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


def _table(pattern: SparsePattern, side: int, d: int, generator: torch.Generator) -> list[Tensor]:
    table = torch.randn(pattern.shape[1 - side], size_of(d), generator=generator)
    return [slab.contiguous() for slab in table.split(SLAB, dim=1)]


def _medians(calls: dict[str, Callable[[], None]], rounds: int) -> dict[str, tuple[float, float]]:
    """Return the median seconds of each call, on the clock and of the processors; one call each does not count."""
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for _ in range(rounds + 1):
        for name, call in calls.items():
            before = time.perf_counter(), time.process_time()
            call()
            spent[name].append((time.perf_counter() - before[0], time.process_time() - before[1]))
    medians = {}
    for name, pairs in spent.items():
        clock, processors = zip(*pairs[1:], strict=True)
        medians[name] = statistics.median(clock), statistics.median(processors)
    return medians
