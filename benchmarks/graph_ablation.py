"""Effect of a learned graph's form: dense or sparse, edges per row, refreshes, and the logits of new edges.

Every error is one on a validation part of the observed entries; hidden entries are neither shown nor asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from air_recsys.data.sets.drug_target import YamanishiName
from air_recsys.datasets import load_movielens_fold, load_syn_netflix, load_yamanishi
from air_recsys.evaluation.completion import entry_errors, hide
from air_recsys.evaluation.results import ResultTable, mean_of
from air_recsys.images import load_test_image
from air_recsys.models import AIR
from air_recsys.nn import build
from air_recsys.nn.adaptive_laplacian import SparseLaplacian
from air_recsys.nn.pattern import Carry
from air_recsys.storage.validation import check_choice, check_integer
from air_recsys.training import Record
from benchmarks.recipes import recipe

_WATCHED_EVERY = 250  # epochs

Measure = Callable[[AIR, int], dict[str, Any]]
"""From an unfitted model and a seed to its errors and seconds."""


class Variant(NamedTuple):
    """A form of the graph: changes of the preset, and the class in place of `SparseLaplacian`."""

    name: str
    changes: dict[str, Any]
    laplacian: type = SparseLaplacian


class Data(NamedTuple):
    """Data to complete, and the model that it is completed with."""

    preset: str
    settings: dict[str, Any]
    measure: Measure


class _ZeroEntry(SparseLaplacian):
    def refresh(self, points: Tensor, weighted: Tensor) -> Carry:
        """Let new edges enter at 0."""
        carry = super().refresh(points, weighted)
        self.logits.mul_(_survives(self.parts, carry))
        return carry


class _LateEntry(SparseLaplacian):
    def refresh(self, points: Tensor, weighted: Tensor) -> Carry:
        """Let new edges enter at the largest logit of their row and 1."""
        carry = super().refresh(points, weighted)
        self.logits.add_(1 - _survives(self.parts, carry))
        return carry


def _survives(parts: list[Tensor], carry: Carry) -> Tensor:
    """Return 1 for edges that were there before a refresh and 0 for new ones."""
    return torch.cat([carry(torch.ones_like(logits), position) for position, logits in enumerate(parts)])


VARIANTS = (
    Variant("dense", {"graph_neighbors": None, "graph_refresh": None}),
    *(Variant(f"sparse, k = {k}", {"graph_neighbors": k}) for k in (3, 5, 10, 20, 30)),
    *(Variant(f"sparse, refresh {epochs}", {"graph_refresh": epochs}) for epochs in (25, 100, 400)),
    Variant("sparse, entry at 0", {}, _ZeroEntry),
    Variant("sparse, entry at max + 1", {}, _LateEntry),
    Variant("sparse, k = 10, graph_rate = 0.3", {"graph_neighbors": 10, "graph_rate": 0.3}),
    *(
        Variant(f"sparse, k = 30, graph_rate = {rate}", {"graph_neighbors": 30, "graph_rate": rate})
        for rate in (0.3, 0.5)
    ),
)
"""Unless named, edges per row and refreshes are those of the data's preset (10 edges where it is dense)."""


def bench_graph_ablation(
    root: Path,
    sets: Collection[str] = (),
    variants: Collection[str] = (),
    *,
    seeds: int = 1,
    n_epochs: int | None = None,
) -> tuple[ResultTable, ResultTable]:
    """Measure forms of the learned graph on validation parts of several data sets.

    Parameters
    ----------
    sets : collection of str
        Keys of `SETS`; all where empty.
    variants : collection of str
        Names of `VARIANTS`; all where empty.
    seeds : int
        Masks and starts.
    n_epochs : int, optional
        In place of those of the presets.

    Returns
    -------
    means, single : ResultTable
        NMAE at the end of the training (and average precision and AUROC where the truth is 0/1), the least NMAE along
        it and its epoch; on MovieLens the least RMSE.
    """
    check_integer("seeds", seeds, minimum=1)
    for name in sets:
        check_choice("sets", name, SETS)
    for name in variants:
        check_choice("variants", name, [variant.name for variant in VARIANTS])
    chosen = [variant for variant in VARIANTS if not variants or variant.name in variants]
    changes = {} if n_epochs is None else {"n_epochs": n_epochs}
    runs = [
        (name, data, variant, seed)
        for name, data in ((name, SETS[name](root)) for name in sets or SETS)
        for variant in chosen
        for seed in range(seeds)
    ]
    protocol = f"validation parts of the observed entries, seeds 0..{seeds - 1}"
    protocol += "".join(f"; {name}={value}" for name, value in changes.items())
    single = ResultTable("Forms of the learned graph: single runs", protocol)
    for name, data, variant, seed in tqdm(runs, unit="run", desc="bench graph-ablation"):
        result = measure(data, variant, seed, changes)
        single.rows.append({"data": name, "graph": variant.name, "seed": seed} | result)
    return ResultTable("Forms of the learned graph", protocol, mean_of(single.rows, ("data", "graph"))), single


def measure(data: Data, variant: Variant, seed: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Return errors and seconds of one form on one data set."""
    settings = data.settings | variant.changes | changes | {"random_state": seed}
    with mock.patch.object(build, "SparseLaplacian", variant.laplacian):
        return data.measure(AIR.of_preset(data.preset, **settings), seed)


def _interactions(root: Path, name: YamanishiName) -> Data:
    truth = load_yamanishi(root, name).interactions.to_dense()
    return Data("interactions", {}, _completion(truth, share=0.2, validation=0.2))


def _syn_netflix(root: Path, missing: float) -> Data:
    settings = recipe("syn-netflix")["settings"]
    return Data("completion", settings, _completion(load_syn_netflix(root).matrix, missing, validation=0.1))


def _barbara(root: Path) -> Data:
    settings = {"graph_neighbors": 10}
    return Data("completion", settings, _completion(load_test_image(root, "barbara"), share=0.3, validation=0.1))


def _movielens(root: Path) -> Data:
    train, _ = load_movielens_fold(root, "u1")

    def watched(model: AIR, seed: int) -> dict[str, Any]:
        history = model.set_params(validation_fraction=0.1).fit(train).history_
        rmse, seconds = history["validation_rmse"].to_numpy(), history["seconds"].to_numpy()
        return {"rmse": float(rmse.min()), "seconds": float(seconds[-1])}

    return Data("ratings", {"solver": "adam"}, watched)  # scores of a posterior do not depend on its graphs


def _completion(truth: np.ndarray, share: float, validation: float) -> Measure:
    def measured(model: AIR, seed: int) -> dict[str, Any]:
        data = hide(truth, share, seed, validation)
        along: list[tuple[float, int]] = []  # NMAE on the entries asked for, and epoch

        def watch(record: Record) -> None:
            factors = model.current_factors()  # of a training without biases
            scores = factors.user_factors @ factors.item_factors.T + factors.mean
            error = float(np.abs(scores - data.truth)[data.asked].mean() / np.ptp(data.truth))
            along.append((error, record.epoch))

        start = time.perf_counter()
        model.set_params(solver__evaluate_every=_WATCHED_EVERY).fit(data.observed, callbacks=[watch])
        seconds = time.perf_counter() - start
        errors = entry_errors(data.truth, data.asked, model.predict(*np.nonzero(data.asked)))
        least, epoch = min(along)
        return errors | {"least_nmae": least, "at_epoch": epoch, "seconds": seconds}

    return measured


SETS: dict[str, Callable[[Path], Data]] = {
    "barbara": _barbara,
    "ic": partial(_interactions, name="ic"),
    "gpcr": partial(_interactions, name="gpcr"),
    "syn-netflix-70": partial(_syn_netflix, missing=0.7),
    "syn-netflix-80": partial(_syn_netflix, missing=0.8),
    "movielens-100k": _movielens,
}
"""Loaders of the data, by their names."""
