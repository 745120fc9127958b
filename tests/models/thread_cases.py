"""Models fitted with a number of threads; run as a program with a folder, with one thread."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from model_cases import answers_of
from threadpoolctl import threadpool_limits

from air_recsys import AIR, DMF, Interactions
from air_recsys.models import GraphRanker, IterativeSVD, Recommender
from air_recsys.solvers import Adam

SEEDED: dict[str, Any] = {"device": "cpu", "random_state": 0}
POSTERIOR = {"n_factors": 8, "n_sweeps": 3, **SEEDED}
MODELS: dict[str, Callable[[], Recommender]] = {
    "dense": lambda: AIR(solver=Adam(schedule="cooldown", n_epochs=4, init_std=0.1), **SEEDED),
    "completion": lambda: AIR.for_completion(n_epochs=4, settings="fixed", **SEEDED),
    "sparse": lambda: AIR.for_interactions(n_epochs=4, graph_refresh=2, init_std=0.1, **SEEDED),
    "ratings": lambda: AIR.for_ratings(solver="adam", n_epochs=1, **SEEDED),
    "variational": lambda: AIR.for_ratings(solver="variational", **POSTERIOR),
    "langevin": lambda: AIR.for_ratings(solver="langevin", **POSTERIOR),
    "DMF": lambda: DMF(n_epochs=4, init_std=0.1, **SEEDED),
    "IterativeSVD": lambda: IterativeSVD(rank=3, n_iterations=5, random_state=0),
    "GraphRanker": lambda: GraphRanker(n_factors=8, settings={}),
}


def data() -> Interactions:
    """More pairs than one thread takes of an operation, ratings 1..5."""
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((240, 200)) < 0.2)
    return Interactions(users, items, rng.integers(1, 6, users.size), range(240), range(200))


def scores(n_threads: int) -> dict[str, np.ndarray]:
    """Return the scores of all rated pairs by each model."""
    before, known = torch.get_num_threads(), data()
    pairs = known.user_index, known.item_index
    torch.set_num_threads(n_threads)
    try:
        with threadpool_limits(n_threads, user_api="blas"):
            return {name: make().fit(known).predict(*pairs) for name, make in MODELS.items()}
    finally:
        torch.set_num_threads(before)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for path in folder.glob("*.air"):
        np.savez(path.with_suffix(".npz"), *answers_of(Recommender.load(path)))
    np.savez(folder / "scores.npz", **scores(1))  # type: ignore[arg-type]
