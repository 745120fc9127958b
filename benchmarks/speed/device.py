"""Trainings on a GPU, for whoever has one: seconds, memory, and launches of kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from air_recsys import AIR
from air_recsys.data.interactions import Interactions
from air_recsys.data.sets.planted import make_planted_ratings
from air_recsys.datasets import load_movielens, make_syn_netflix
from air_recsys.nn.devices import resolve_device
from air_recsys.storage.validation import check_choice
from benchmarks.harness import Found

_STEPS = 20  # more sweeps, or epochs, of the second of two trainings whose launches are compared


class _Training(NamedTuple):
    """A training: a model of settings, its data, and what counts its steps."""

    model: Callable[..., Any]
    data: Callable[[], Any]
    steps: str
    settings: dict[str, Any] = {}  # noqa: RUF012, a tuple has no other defaults


def bench_device(root: Path, *, systems: list[str], sizes: list[int], device: str) -> Found:
    """Train twice and look at what the device did; on a CPU there are seconds alone."""
    place = resolve_device(device)
    on_gpu = place.type == "cuda"
    known = _trainings(root, sizes)
    rows = []
    for name in systems or known:
        training = known[check_choice("a system", name, known)]
        data = training.data()
        if on_gpu:
            torch.cuda.reset_peak_memory_stats(place)
        seconds = [_seconds(training, data, device) for _ in range(2)]
        row = {"what": name, "first, s": seconds[0], "second, s": seconds[1]}
        if on_gpu:
            plan = training.model(device=device, **training.settings).memory_plan(data).total
            row |= {"GiB": torch.cuda.max_memory_allocated(place) / 2**30, "planned, GiB": plan / 2**30}
            row["launches"] = _launches(training, data, device)
        rows.append(row)
    name = torch.cuda.get_device_name(place) if on_gpu else "a CPU"
    return Found(rows, name=name, torch=torch.__version__)


def _trainings(root: Path, sizes: list[int]) -> dict[str, _Training]:
    def films() -> Interactions:
        return load_movielens(root, "1m")

    def planted() -> Interactions:
        return make_planted_ratings(*sizes, random_state=0).interactions

    fixed = {"settings": "fixed", "exact_epochs": 0, "evaluate_every": 1000}
    return {
        "preset": _Training(AIR.for_ratings, films, "n_sweeps", {"solver": "variational"}),
        "langevin": _Training(AIR.for_ratings, films, "n_sweeps", {"solver": "langevin"}),
        "adam": _Training(AIR.for_ratings, films, "n_epochs", {"solver": "adam", "evaluate_every": 1000}),
        "completion": _Training(AIR.for_completion, _completion, "n_epochs", fixed),
        "completion, searched": _Training(AIR.for_completion, _completion, "", {}),
        "planted": _Training(AIR.for_ratings, planted, "n_sweeps", {"solver": "variational"}),
    }


def _completion() -> Any:
    made = make_syn_netflix(random_state=0)
    return np.where(made.train_mask, made.matrix, np.nan)


def _seconds(training: _Training, data: Any, device: str, **more: Any) -> float:
    model = training.model(**{"device": device, "random_state": 0, "verbose": False, **training.settings, **more})
    start = perf_counter()
    model.fit(data)  # its arrays are on the host in the end, so that nothing is left to wait for
    return perf_counter() - start


def _launches(training: _Training, data: Any, device: str) -> float:
    """Launches a step, those of graphs among them."""
    if not training.steps:
        return float("nan")
    counts = []
    for number in (_STEPS, 2 * _STEPS):
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
            _seconds(training, data, device, **{training.steps: number})
        events = found.key_averages()
        counts.append(sum(event.count for event in events if "Launch" in event.key and event.key.startswith("cu")))
    return (counts[1] - counts[0]) / _STEPS
