"""Trainings on several ranks: the script that torchrun runs, with tasks from a JSON file, and what tests ask of it."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
import torch.distributed as dist

from air_recsys import AIR, Interactions
from air_recsys.distributed import ParquetRatings, fit
from air_recsys.distributed.group import counted, joined
from air_recsys.exceptions import AirRecsysError
from air_recsys.models import GraphRanker
from air_recsys.models.given import with_similarities
from air_recsys.nn.posterior.posterior import Posterior
from air_recsys.training.softmax import SoftmaxTrainer

RANK = int(os.environ.get("RANK", "0"))


# -------------------------------------------------------------------- ratings and models


def ratings(
    n_users: int = 40,
    n_items: int = 30,
    seed: int = 0,
    n_without: int = 2,
    *,
    known: bool = False,
    alike: bool = False,
    limits: bool = False,
) -> Interactions:
    """Ratings of rank 3; the first user has rated everything, the last `n_without` nothing.

    With features of the users if `known`, with similarities of the items if `alike`, half of them `limits`.
    """
    rng = np.random.default_rng(seed)
    truth = 3 + rng.normal(size=(n_users, 3)) @ rng.normal(size=(3, n_items))
    rated = rng.random(truth.shape) < 0.3
    rated[0], rated[-n_without:] = True, False
    data = Interactions.from_dense(np.where(rated, truth, np.nan), allow_negative=True)
    if limits:
        frame = data.to_frame().assign(relation=np.array(["=", "<", ">", "="])[rng.integers(4, size=data.n_ratings)])
        return Interactions.from_frame(frame, relation="relation", allow_negative=True)
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
    small = {"n_factors": 4, "graph_neighbors": 4, "n_sweeps": 8, "pattern_features": 5}
    return AIR.for_ratings(**small | {"random_state": 0, "device": "cpu"} | options)


def learned(fitted: AIR) -> dict[str, np.ndarray]:
    """What a fitted posterior answers: scores, their deviations, new users, and what `arrays` returns."""
    data = fitted.interactions_
    users, items = (ids.repeat(2) for ids in (data.user_ids[:20], data.item_ids[:20]))
    scores, deviations = fitted.predict(users, np.roll(items, 1), return_std=True)
    folded = fitted.fold_in(data.to_csr()[:9])
    found = {"scores": scores, "deviations": deviations, "folded": folded.user_factors_ @ fitted.item_factors_.T}
    return found | arrays(fitted)


def arrays(fitted: AIR) -> dict[str, np.ndarray]:
    """What a fitted model is made of."""
    found = {
        name: getattr(fitted, f"{name}_") for name in ("user_factors", "item_factors", "user_biases", "item_biases")
    }
    for name in ("user_graph", "item_graph"):
        if (graph := getattr(fitted, name.replace("graph", "adjacency_"))) is not None:
            found[name] = graph.toarray()
    history = fitted.history_.drop(columns="seconds")
    return found | {f"history_{name}": history[name].to_numpy() for name in history}


def likes(n_users: int = 1025, n_items: int = 40, seed: int = 0) -> Interactions:
    """Likes of two groups, with times; a second step of the factors has one user, and some have no item."""
    rng = np.random.default_rng(seed)
    alike = np.arange(n_users)[:, None] % 2 == np.arange(n_items) % 2
    taken = (rng.random(alike.shape) < np.where(alike, 0.3, 0.05)) & (np.arange(n_items) != 7)
    users, items = np.nonzero(taken)
    times = rng.integers(0, 1000, users.size)
    return Interactions(users, items, np.ones(users.size), range(n_users), range(n_items), timestamps=times)


def ranker(**options: Any) -> GraphRanker:
    """A small ranker of likes."""
    return GraphRanker(**{"n_factors": 4, "n_steps": 12, "device": "cpu"} | options)


def sparse_from(n_items: int | None) -> AbstractContextManager[Any]:
    """Let a regression of more items than so many be that of neighbours; None leaves the number."""
    name = "air_recsys.models.graph_ranker.regression.MOST_EXACT"
    return nullcontext() if n_items is None else patch(name, n_items)


def arrays_of_likes(fitted: GraphRanker) -> dict[str, np.ndarray]:
    """What a fitted ranker is made of, and what it answers."""
    state = fitted._fitted()
    assert state.item_weights is not None
    assert state.source_factors is not None
    users = fitted.interactions_.user_ids[:50]
    found = {name: getattr(fitted, f"{name}_") for name in ("user_factors", "item_factors")}
    found |= {"weights": sp.csr_array(state.item_weights).toarray(), "sources": state.source_factors}
    found |= {"settings": np.array([*fitted.settings_, fitted.n_steps_]), "history": fitted.history_.to_numpy()}
    found["scores"] = fitted.predict(users, fitted.interactions_.item_ids[[1] * 50])
    if state.calibration is not None:
        found["calibration"] = state.calibration.to_array()
    return found


def assert_close(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """What ranks have found is a posterior of one process, up to rounding."""
    assert expected.keys() <= found.keys()
    for part in ("scores", "deviations", "folded", "user_biases", "item_biases", "history_noise"):
        np.testing.assert_allclose(found[part], expected[part], rtol=1e-5, atol=1e-5, err_msg=part)
    for part in ("user_graph", "item_graph", "history_user_energy", "history_item_energy"):
        np.testing.assert_allclose(found[part], expected[part], rtol=1e-4, atol=1e-5, err_msg=part)


# -------------------------------------------------------------------- processes


def start(out: Path, tasks: list[dict[str, Any]], command: list[str], **variables: str) -> subprocess.Popen[str]:
    """Start a command on tasks of `run`, whose results go to `out`."""
    out.mkdir(exist_ok=True)
    (out / "tasks.json").write_text(json.dumps(tasks))
    return subprocess.Popen(
        [*command, __file__, str(out)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def torchrun(out: Path, tasks: list[dict[str, Any]], *, n_ranks: int = 2) -> None:
    """Run tasks on all ranks."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n_ranks)]
    job = start(out, tasks, command)
    printed, _ = job.communicate(timeout=100)
    assert job.returncode == 0, printed


def results(out: Path, name: str, n_ranks: int = 2) -> list[dict[str, np.ndarray]]:
    """Return what each rank has written for a task."""
    return [dict(np.load(out / f"{name}-{rank}.npz")) for rank in range(n_ranks)]


def message(out: Path, name: str, rank: int = 0) -> str:
    """Return the error that a task has ended with."""
    return (out / f"{name}-{rank}.txt").read_text()


def same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    """Return whether two results are equal to the bit, whatever their traffic."""
    names = (first.keys() | second.keys()) - {"n_bytes", "n_messages"}
    return all(np.array_equal(first[name], second[name], equal_nan=True) for name in names)


# -------------------------------------------------------------------- tasks of a rank


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
            time.sleep(8)
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


def diverging(rank: int | None) -> AbstractContextManager[Any]:
    """Let the factors of likes leave the finite numbers on a rank."""
    return patch.object(SoftmaxTrainer, "problem", lambda *_: "lost") if rank == RANK else nullcontext()


def leave(seconds: float) -> dict[str, np.ndarray]:
    """Join the others, be the later the higher the rank is, and return when the work and the group have ended."""
    with joined("cpu", 20) as group:
        group.of_all(None)
        time.sleep(seconds * RANK)
        done = time.time()
    return {"done": np.array(done), "left": np.array(time.time())}


def joins(gpus: list[int], device: str) -> dict[str, np.ndarray]:
    """The device of this rank, and the backends that ranks talk by, on machines that say to have so many GPUs."""
    backends, new_group = [], dist.new_group

    def without_nccl(backend: str, **options: Any) -> Any:
        backends.append(backend)
        return new_group(backend="gloo", **options)

    with (
        patch("torch.cuda.is_available", lambda: gpus[RANK] > 0),
        patch("torch.cuda.device_count", lambda: gpus[RANK]),
        patch("torch.cuda.set_device"),
        patch.object(dist, "new_group", without_nccl),
        joined(device, 20) as group,
    ):
        return {"device": np.array(str(group.device)), "backends": np.array(backends)}


def asked(task: dict[str, Any]) -> AIR | GraphRanker:
    """The model of a task."""
    if "likes" in task:
        return ranker(**task["likes"])
    return sweeping(**task["sweeps"]) if "sweeps" in task else model(**task.get("model", {}))


def given(task: dict[str, Any]) -> Interactions | ParquetRatings:
    """The ratings of a task."""
    if "likes" in task:
        return likes(**task.get(f"data_of_rank_{RANK}", {}))
    if "parquet" in task:
        return ParquetRatings(**task["parquet"] | task.get(f"parquet_of_rank_{RANK}", {}))
    return ratings(**task.get("data", {}) | task.get(f"data_of_rank_{RANK}", {}))


def run(task: dict[str, Any], out: Path) -> None:
    """Fit one model; write its arrays, or the error that it ended with."""
    if "leaves" in task:
        np.savez(out / f"{task['name']}-{RANK}.npz", **leave(task["leaves"]))  # pyright: ignore[reportArgumentType]
        return
    callbacks = [Stop(**task["stop"])] if "stop" in task else []
    with (
        counted() as traffic,
        losing(task.get("loses")),
        sparse_from(task.get("sparse_from")),
        diverging(task.get("diverges")),
    ):
        try:
            if "joins" in task:
                np.savez(out / f"{task['name']}-{RANK}.npz", **joins(**task["joins"]))  # pyright: ignore[reportArgumentType]
                return
            fitted = fit(asked(task), given(task), callbacks=callbacks, **task.get("fit", {}))
        except AirRecsysError as error:
            (out / f"{task['name']}-{RANK}.txt").write_text(f"{type(error).__name__}: {error}")
            return
    if not fitted.__sklearn_is_fitted__():
        (out / f"{task['name']}-{RANK}.txt").write_text("not fitted")
        return
    received = {"n_bytes": np.array(traffic.n_bytes), "n_messages": np.array(traffic.n_messages)}
    if isinstance(fitted, GraphRanker):
        found = arrays_of_likes(fitted)
    else:
        found = learned(fitted) if "sweeps" in task else arrays(fitted)
    np.savez(out / f"{task['name']}-{RANK}.npz", **(found | received))  # pyright: ignore[reportArgumentType]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for entry in json.loads((folder / "tasks.json").read_text()):
        run(entry, folder)
