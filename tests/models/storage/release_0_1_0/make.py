"""How the files in this folder were made, once, by release 0.1.0; later releases have other parameters.

Model files have format version 2 and checkpoints version 1: all parameters of `AIR` stand side by side, those that its
solver never read included.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from air_recsys import AIR, DMF, BiasModel, GlobalMean, Interactions
from air_recsys.models import KNN, PNMC, RDMF, DirichletDMF, GraphRanker, IterativeSVD, PatchAIR

FOLDER = Path(__file__).resolve().parent
N_USERS, N_ITEMS = 12, 9

# Double precision and short trainings: other processors then come to the same numbers within a small tolerance.
CPU: dict[str, Any] = {"device": "cpu", "random_state": 0, "dtype": "float64"}
SHORT: dict[str, Any] = {"n_epochs": 60, "init_std": 0.1, **CPU}
SMALL: dict[str, Any] = {"n_factors": 3, "graph_neighbors": 3, **CPU}
# What a posterior never read: the files hold it all the same.
DEAD: dict[str, Any] = {"learning_rate": 7.0, "weight_decay": 99.0, "n_epochs": 1, "scale": True, "schedule": "linear"}
ALONE: dict[str, Any] = {"user_graph_reg": 0.0, "item_graph_reg": 1e9, "n_sweeps": 8}
WATCHED: dict[str, Any] = {"validation_fraction": 0.2, "patience": 4, "evaluate_every": 2}
BARE: dict[str, Any] = {"n_factors": 3, "unobserved_weight": 0.1, "scale": False}
MODELS: dict[str, Any] = {
    "completion": lambda: AIR.for_completion(**SHORT, snapshot_epochs=(20,)),
    "interactions": lambda: AIR.for_interactions(**SHORT),
    "ratings": lambda: AIR.for_ratings(**SMALL, **DEAD),
    "ratings-one-graph": lambda: AIR.for_ratings(**SMALL, **ALONE),
    "langevin": lambda: AIR.for_ratings(solver="langevin", n_sweeps=12, **SMALL),
    "adam": lambda: AIR.for_ratings(solver="adam", n_sweeps=5, pattern_features=7, **SMALL),
    "transforms": lambda: AIR.for_completion(transforms=(("columns", 1e-4, 2),), tv_reg=1e-3, **SHORT),
    "unobserved": lambda: AIR(**BARE, **SHORT),
    "watched": lambda: AIR.for_ratings(solver="adam", **WATCHED, **SMALL),
    "dmf": lambda: DMF(**SHORT),
    "rdmf": lambda: RDMF(**SHORT),
    "dirichlet": lambda: DirichletDMF(n_neighbors=3, **SHORT),
    "knn": lambda: KNN(n_neighbors=3),
    "svd": lambda: IterativeSVD(rank=2, n_iterations=20, random_state=0),
    "pnmc": lambda: PNMC(patch=3, n_similar=4, rank=2, n_rounds=1),
    "patches": lambda: PatchAIR(patch=3, stride=1, n_factors=2, n_epochs=20, graph_neighbors=3, **CPU),
    "ranker": lambda: GraphRanker(n_factors=3, settings={}),
    "bias": BiasModel,
    "mean": GlobalMean,
}
CUT = {"completion": 40, "adam": 20, "ratings": 10, "langevin": 6, "watched": 6, "dmf": 40}  # epochs, or sweeps


def data() -> Interactions:
    """The ratings that all of them were fitted on."""
    rng = np.random.default_rng(0)
    truth = 3 + 2 * np.outer(rng.normal(size=N_USERS), rng.normal(size=N_ITEMS))
    array = np.where(rng.random(truth.shape) < 0.6, truth.round().clip(1, 5), np.nan)
    array[0] = truth[0].round().clip(1, 5)
    array[:, 0] = 2.0
    users, items = np.nonzero(~np.isnan(array))
    names = [f"u{user:02}" for user in users], [f"i{item}" for item in items]
    return Interactions.from_frame(pd.DataFrame({"user": names[0], "item": names[1], "rating": array[users, items]}))


def main() -> None:
    for name, make in MODELS.items():
        make().fit(data()).save(FOLDER / f"{name}.air")
    for name, epoch in CUT.items():
        stop = [lambda record, epoch=epoch: record.epoch >= epoch]
        MODELS[name]().fit(data(), checkpoint=FOLDER / f"{name}.ckpt", every=epoch, callbacks=stop)


if __name__ == "__main__":
    main()
