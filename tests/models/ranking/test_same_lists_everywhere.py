"""A model that was saved once makes the same lists, to the last item, as on older processors and with more threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from model_cases import MODELS, with_factors
from processors import KINDS, settings

from air_recsys import AIR, Interactions
from air_recsys.adapters.implicit import ImplicitAIR
from air_recsys.models import GraphRanker, Recommender

N_USERS, N_ITEMS = 40, 120
HERE = Path(__file__).resolve()
MAKERS: dict[str, Any] = {
    "air": lambda: AIR.for_ratings(n_factors=5, graph_neighbors=4, random_state=0, device="cpu"),
    "adam": lambda: AIR.for_ratings(n_factors=5, solver="adam", n_epochs=30, random_state=0, device="cpu"),
    "dmf": MODELS["DMF"],
    "bias": MODELS["BiasModel"],
    "ranker": lambda: GraphRanker(n_factors=6, settings={}),
}


def data() -> Interactions:
    """Whole stars of few users: many items have the same bias, and every third item is a copy of the one before."""
    rng = np.random.default_rng(0)
    table = np.where(rng.random((N_USERS, N_ITEMS)) < 0.15, rng.integers(1, 6, (N_USERS, N_ITEMS)), np.nan)
    table[:, 2::3] = table[:, 1::3]
    table[0, np.isnan(table).all(axis=0)] = 3
    return Interactions.from_dense(table)


def likes() -> sp.csr_matrix:
    return sp.csr_matrix(np.nan_to_num(data().to_dense()) >= 4, dtype=np.float32)


def save_all(folder: Path) -> None:
    """Train the models, give half of their items copied factors, and save them."""
    for name, make in MAKERS.items():
        model = make().fit(data())
        if name != "ranker":
            copied = np.arange(N_ITEMS) - (np.arange(N_ITEMS) % 3 == 2)
            factors = model.factors_
            items = factors.item_factors[copied], factors.item_biases[copied]
            with_factors(model, factors._replace(item_factors=items[0], item_biases=items[1]))
        model.save(folder / f"{name}.air")
    host = ImplicitAIR(factors=6, iterations=5, use_gpu=False, num_threads=1, random_state=0)
    host.fit(likes(), show_progress=False)
    host.item_factors = host.item_factors[np.arange(N_ITEMS) - (np.arange(N_ITEMS) % 3 == 2)]
    host.save(folder / "host.npz")


def lists_of(folder: Path) -> dict[str, Any]:
    """Return every list of the saved models: for all users at once, for single ones, and of what is alike."""
    found: dict[str, Any] = {}
    for name in MAKERS:
        model: Any = Recommender.load(folder / f"{name}.air")
        users = range(N_USERS)
        found[name] = [model.recommend(users, 25)["item"].tolist()]
        found[name] += [model.recommend(user, N_ITEMS, exclude_seen=False)["item"].tolist() for user in range(3)]
        found[name] += [model.similar_items(item, 20)["item"].tolist() for item in range(0, N_ITEMS, 17)]
        found[name] += [model.similar_users(user, 20)["user"].tolist() for user in range(0, N_USERS, 9)]
    found["folded"] = model.fold_in(sp.csr_array(data().to_csr()[:9])).recommend(range(9), 25)["item"].tolist()
    host, rows = ImplicitAIR.load(folder / "host.npz"), likes()
    found["host"] = [
        host.recommend(np.arange(N_USERS), rows, N=15)[0].tolist(),
        *(host.recommend(user, rows[user], N=15)[0].tolist() for user in range(5)),
        host.recommend(3, rows[3], N=9, items=np.arange(0, N_ITEMS, 2))[0].tolist(),
        host.similar_items(np.arange(9), N=15)[0].tolist(),
        host.similar_users(3, N=15)[0].tolist(),
    ]
    return found


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder of models, and their lists in this process."""
    folder = tmp_path_factory.mktemp("models")
    save_all(folder)
    return folder, json.loads(json.dumps(lists_of(folder)))


@pytest.mark.parametrize(("kind", "threads"), [(KINDS[0], 2), (KINDS[1], 1)])
def test_the_lists_are_those_of_this_process(saved: tuple[Path, dict[str, Any]], kind: str, threads: int) -> None:
    folder, expected = saved
    paths = os.pathsep.join(str(HERE.parents[up]) for up in (0, 1, 2))
    environment = os.environ | settings(kind, threads) | {"PYTHONPATH": paths}
    code = f"""
import json, pathlib, sys
import torch
from test_same_lists_everywhere import lists_of
torch.set_num_threads({threads})
json.dump(lists_of(pathlib.Path({str(folder)!r})), sys.stdout)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    found = json.loads(run.stdout)
    assert found.keys() == expected.keys()
    for name, lists in expected.items():
        assert found[name] == lists, name
