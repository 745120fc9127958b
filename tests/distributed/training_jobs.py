"""The script that torchrun runs in the tests: tasks from a JSON file, results into a folder."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from air_recsys import AIR, Interactions
from air_recsys.distributed import ParquetRatings, fit
from air_recsys.distributed.group import counted
from air_recsys.exceptions import AirRecsysError
from air_recsys.models.given import with_similarities
from air_recsys.nn.posterior.posterior import Posterior

RANK = int(os.environ.get("RANK", "0"))


def ratings(
    n_users: int = 40,
    n_items: int = 30,
    seed: int = 0,
    n_without: int = 2,
    *,
    known: bool = False,
    alike: bool = False,
) -> Interactions:
    """Ratings of rank 3; the first user has rated everything, the last `n_without` nothing.

    With features of the users if `known`, with similarities of the items if `alike`.
    """
    rng = np.random.default_rng(seed)
    truth = 3 + rng.normal(size=(n_users, 3)) @ rng.normal(size=(3, n_items))
    rated = rng.random(truth.shape) < 0.3
    rated[0], rated[-n_without:] = True, False
    data = Interactions.from_dense(np.where(rated, truth, np.nan), allow_negative=True)
    data = data.with_features(user=rng.normal(size=(n_users, 3))) if known else data
    places = rng.normal(size=(n_items, 2))
    return with_similarities(data, None, (places @ places.T).clip(0)) if alike else data


def model(**options: Any) -> AIR:
    """A small model with everything that is shared out."""
    small = {"n_factors": 4, "graph_neighbors": 4, "n_epochs": 50, "evaluate_every": 1, "graph_refresh": 20}
    small |= {"learning_rate": 0.02, "schedule": "cosine", "solver": "adam"}
    return AIR.for_ratings(**small | {"init_std": 0.3, "n_batches": 1, "random_state": 0, "device": "cpu"} | options)


def sweeping(**options: Any) -> AIR:
    """A small model with a posterior and both graphs."""
    small = {"n_factors": 4, "graph_neighbors": 4, "n_sweeps": 8, "graph_refresh": 4, "pattern_features": 5}
    return AIR.for_ratings(**small | {"random_state": 0, "device": "cpu"} | options)


def learned(fitted: AIR) -> dict[str, np.ndarray]:
    """What a fitted posterior answers: scores, their deviations, new users, and what `arrays` returns."""
    data = fitted.interactions_
    users, items = (ids.repeat(2) for ids in (data.user_ids[:20], data.item_ids[:20]))
    scores, deviations = fitted.predict(users, np.roll(items, 1), return_std=True)
    folded = fitted.fold_in(data.to_csr()[:9])
    found = {"scores": scores, "deviations": deviations, "folded": folded.factors @ fitted.item_factors_.T}
    return found | arrays(fitted)


def arrays(fitted: AIR) -> dict[str, np.ndarray]:
    """What a fitted model is made of."""
    found = {
        name: getattr(fitted, f"{name}_") for name in ("user_factors", "item_factors", "user_biases", "item_biases")
    }
    for name in ("user_graph", "item_graph"):
        if (learned := getattr(fitted, name.replace("graph", "adjacency_"))) is not None:
            found[name] = learned.toarray()
    history = fitted.history_.drop(columns="seconds")
    return found | {f"history_{name}": history[name].to_numpy() for name in history}


class Stop:
    """A callback that ends the training, or its process, at an epoch, or sleeps for longer than the others wait."""

    def __init__(self, epoch: int, way: str, ranks: list[int]) -> None:
        self.epoch, self.way, self.ranks = epoch, way, ranks

    def __call__(self, record: Any) -> bool:
        if record.epoch != self.epoch or RANK not in self.ranks:
            return False
        if self.way == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.way == "sleep":
            time.sleep(9)
        return self.way == "end"


def losing(half_sweep: int | None) -> AbstractContextManager[Any]:
    """Let rank 1 lose its numbers in a half sweep, counted from 0; None loses none."""
    solved, count = Posterior._solved, itertools.count()

    def lost(self: Posterior, side: int, before: Any) -> Any:
        half = solved(self, side, before)
        if next(count) == half_sweep and RANK == 1:
            half.means.fill_(np.nan)
        return half

    return patch.object(Posterior, "_solved", lost)


def asked(task: dict[str, Any]) -> AIR:
    """The model of a task."""
    return sweeping(**task["sweeps"]) if "sweeps" in task else model(**task.get("model", {}))


def given(task: dict[str, Any]) -> Interactions | ParquetRatings:
    """The ratings of a task."""
    if "parquet" in task:
        return ParquetRatings(**task["parquet"] | task.get(f"parquet_of_rank_{RANK}", {}))
    return ratings(**task.get("data", {}) | task.get(f"data_of_rank_{RANK}", {}))


def run(task: dict[str, Any], out: Path) -> None:
    """Fit one model; write its arrays, or the error that it ended with."""
    callbacks = [Stop(**task["stop"])] if "stop" in task else []
    with counted() as traffic, losing(task.get("loses")):
        try:
            fitted = fit(asked(task), given(task), callbacks=callbacks, **task.get("fit", {}))
        except AirRecsysError as error:
            (out / f"{task['name']}-{RANK}.txt").write_text(f"{type(error).__name__}: {error}")
            return
    if not fitted.__sklearn_is_fitted__():
        (out / f"{task['name']}-{RANK}.txt").write_text("not fitted")
        return
    received = {"n_bytes": np.array(traffic.n_bytes), "n_messages": np.array(traffic.n_messages)}
    found = learned(fitted) if "sweeps" in task else arrays(fitted)
    np.savez(out / f"{task['name']}-{RANK}.npz", **(found | received))  # pyright: ignore[reportArgumentType]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for entry in json.loads((folder / "tasks.json").read_text()):
        run(entry, folder)
