"""Readers of models, checkpoints and runs, with samples that are trained in a moment."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch

from air_recsys.data.interactions import Interactions
from air_recsys.distributed.checkpoint import Checkpoints
from air_recsys.distributed.group import Cut, joined
from air_recsys.dti import DrugTargetAIR
from air_recsys.models import AIR, BiasModel, GraphRanker, Recommender
from air_recsys.models.trained import TrainedRecommender
from attacks.readers import Loader

MARK: dict[str, Any] = {"data": "d", "parameters": {"depth": 3}}
_CPU: dict[str, Any] = {"device": "cpu", "random_state": 0}
_ROWS = 6


def trained() -> dict[str, Any]:
    """Return what makes small models of each solver."""
    posterior = partial(AIR.for_ratings, n_sweeps=3, n_factors=2, pattern_features=2, **_CPU)
    return {
        "AIR": partial(AIR.for_interactions, n_epochs=3, evaluate_every=1, graph_neighbors=2, **_CPU),
        "AIR with a posterior": posterior,
        "langevin": partial(posterior, solver="langevin", n_sweeps=5),
    }


def models() -> dict[str, Any]:
    """Return what makes small models of each kind."""
    return {**trained(), "BiasModel": BiasModel, "GraphRanker": partial(GraphRanker, n_factors=2, settings={})}


def loaders() -> list[Loader]:
    """Return the readers of this module."""
    return [
        *(
            Loader(f"model file: {name}", "safetensors", partial(save_model, make), _load_model)
            for name, make in models().items()
            if name != "langevin"
        ),
        Loader("model file: DrugTargetAIR", "safetensors", save_drug_target, _load_drug_target, 0.5),
        Loader("model file: ImplicitAIR", "zip", save_implicit, _load_implicit),
        *(
            Loader(f"checkpoint: {name}", "safetensors", partial(write_checkpoint, make), partial(_resume, make), 0.5)
            for name, make in trained().items()
        ),
        Loader("checkpoint, several ranks", "safetensors", write_checkpoints, _read_checkpoints, 0.15),
    ]


def _ratings() -> pd.DataFrame:
    rows = [(f"u{user}", f"é{item}", 1.0 + (user + item) % 5) for user in range(_ROWS) for item in range(5)]
    return pd.DataFrame(rows, columns=["user", "item", "rating"]).iloc[::2]


def interactions() -> Interactions:
    """Return the ratings that all samples are trained on."""
    return Interactions.from_frame(_ratings())


def save_model(make: Any, folder: Path) -> None:
    """Write a model of the ratings."""
    with warnings.catch_warnings(action="ignore"):
        make().fit(_ratings()).save(folder / "model.air")


def _load_model(folder: Path) -> None:
    model = Recommender.load(folder / "model.air")
    users, items = model.interactions_.user_ids[:2], model.interactions_.item_ids[:1]
    model.predict(users, items)
    model.recommend(users, n=1)
    model.similar_items(items[0], n=1)
    if isinstance(model, TrainedRecommender) and model.knows_deviations_:
        model.predict(users[:1], items, return_std=True)


def save_drug_target(folder: Path) -> None:
    """Write a model of drugs and targets."""
    pairs = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1.0]])
    DrugTargetAIR(n_rounds=1, noise=0.1, similarity_weight=0.5).fit(pairs).save(folder / "model.air")


def _load_drug_target(folder: Path) -> None:
    model = DrugTargetAIR.load(folder / "model.air")
    model.predict(model.drugs_.ids[:1], model.targets_.ids[:1])


def save_implicit(folder: Path) -> None:
    """Write a model of implicit's kind."""
    from air_recsys.adapters.implicit import ImplicitAIR  # it cannot be imported without its host

    model = ImplicitAIR(factors=2, iterations=2, steps_per_iteration=2, random_state=0, device="cpu")
    model.fit(sp.csr_matrix(np.eye(_ROWS) + np.eye(_ROWS, k=1)), show_progress=False)
    model.save(str(folder / "model.npz"))


def _load_implicit(folder: Path) -> None:
    from air_recsys.adapters.implicit import ImplicitAIR

    model = ImplicitAIR.load(str(folder / "model.npz"))
    if model.user_factors is not None and model.item_factors is not None and len(model.user_factors):
        model.recommend(0, sp.csr_matrix((1, len(model.item_factors))), N=1)


def write_checkpoint(make: Any, folder: Path) -> None:
    """Write the checkpoint of a training that was cut short."""
    with warnings.catch_warnings(action="ignore"):
        make().fit(_ratings(), checkpoint=folder / "run.ckpt", every=2, callbacks=[lambda record: record.epoch == 2])


def _resume(make: Any, folder: Path) -> None:
    with warnings.catch_warnings(action="ignore"):
        model = make().fit(_ratings(), resume_from=folder / "run.ckpt")
    if not np.isfinite(model.predict("u0", "é0")).all():
        raise AssertionError("a score that is no number")


def _tensors() -> dict[str, tuple[torch.Tensor, Cut | None]]:
    return {"factors": (torch.ones(4, 2), Cut((0, 4))), "bias": (torch.ones(3), None)}


def write_checkpoints(folder: Path) -> None:
    """Write a checkpoint of several ranks."""
    with joined("cpu", 10) as group:
        Checkpoints(group, folder / "kept", MARK).write(3, _tensors(), {"epoch": 3, "records": [[0.5]]})


def _read_checkpoints(folder: Path) -> None:
    with joined("cpu", 10) as group:
        read_checkpoints(Checkpoints(group, folder / "kept", MARK))


def read_checkpoints(checkpoints: Checkpoints) -> tuple[dict[str, Any], dict[str, tuple[torch.Tensor, Cut | None]]]:
    """Return what the newest checkpoint of several ranks holds."""
    path, tensors = checkpoints.latest(), _tensors()
    assert path is not None
    return checkpoints.read(path, tensors), tensors
