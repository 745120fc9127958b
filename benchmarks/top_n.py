"""The best items of many users: blocks on the CPU or a GPU, implicit's search, and faiss indexes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.results import ResultTable
from air_recsys.metrics import top_k
from air_recsys.models import Recommender
from air_recsys.models.learned import Factors
from air_recsys.models.ranking.top_items import top_items
from air_recsys.models.state import FittedState, TrainingStatistics
from benchmarks.hosts.timing import median_seconds

_N = 10
_INDEXES: dict[str, tuple[str, dict[str, int]]] = {
    "Flat": ("Flat", {}),
    "IVF512, 16 cells": ("IVF512,Flat", {"nprobe": 16}),
    "IVF512, 64 cells": ("IVF512,Flat", {"nprobe": 64}),
    "HNSW32": ("HNSW32", {}),
}


def bench_blocks(
    data: Interactions, widths: tuple[int, ...] = (20, 64), rounds: int = 9, device: str = "cpu"
) -> ResultTable:
    """Time the top 10 of all users, without the items that they have rated, for random factors.

    Parameters
    ----------
    data : Interactions
        Whose users, items and ratings; the values do not matter.
    rounds : int
        The contenders take turns; the median counts.
    device : str
        Of `recommend` and `top_items`.
    """
    rows = []
    for width in widths:
        medians = median_seconds(_contenders(data, width, device), rounds)
        rows += [
            {"width": width, "way": way, "ms": 1e3 * seconds, "of implicit's": seconds / medians["implicit's search"]}
            for way, seconds in medians.items()
        ]
    return ResultTable(
        "The top 10 of all users",
        f"{data.n_users} users, {data.n_items} items, {data.n_ratings} rated pairs left out, random factors in single "
        f"precision, seed 0, device {device}; median of {rounds} rounds in turn",
        rows,
    )


def _contenders(data: Interactions, width: int, device: str) -> dict[str, Callable[[], object]]:
    from air_recsys.adapters.implicit_peer import top_items_of_implicit

    model = with_random_factors(data, width)
    users, items, biases = model.user_factors_, model.item_factors_, model.item_biases_
    seen = TrainingStatistics(data).seen
    masked = sp.csr_matrix(seen, dtype=np.float32)
    user_vectors, item_vectors = np.column_stack([users, np.ones(len(users), np.float32)]), np.c_[items, biases]

    def at_once() -> np.ndarray:
        scores = users @ items.T + biases
        scores[data.user_index, data.item_index] = -np.inf
        return top_k(scores, _N)

    return {
        "recommend": lambda: model.recommend(data.user_ids, _N, device=device),
        "top_items": lambda: top_items(users, items, biases, _N, seen=seen, device=device),
        "implicit's search": lambda: top_items_of_implicit(user_vectors, item_vectors, _N, masked),
        "users x items at once": at_once,
    }


def bench_indexes(n_items: int = 200_000, n_users: int = 1000, width: int = 20, groups: int = 200) -> ResultTable:
    """Build faiss indexes over made items, and compare their top 10 with the exact one.

    Parameters
    ----------
    groups : int
        Centres around which the factors of users and items lie.
    """
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(groups, width))

    def factors(size: int) -> np.ndarray:
        return (centres[rng.integers(groups, size=size)] + 0.5 * rng.normal(size=(size, width))).astype(np.float32)

    pairs = np.arange(n_users), rng.integers(n_items, size=n_users)
    data = Interactions(*pairs, np.ones(n_users), range(n_users), range(n_items))
    model = GivenFactors(factors(n_users), factors(n_items)).fit(data)
    start = time.perf_counter()
    exact, _ = top_items(model.user_factors_, model.item_factors_, model.item_biases_, _N)
    rows: list[dict[str, Any]] = [
        {
            "index": "none, top_items",
            "build_seconds": 0.0,
            "search_seconds": time.perf_counter() - start,
            "recall": 1.0,
        }
    ]
    for name, (factory, options) in tqdm(_INDEXES.items(), unit="index", desc="bench top-n"):
        rows.append({"index": name} | _measure(model, factory, options, exact))
    return ResultTable(
        "faiss indexes",
        f"{n_items} items, {n_users} users, width {width}, factors in {groups} groups, seed 0; recall of the exact "
        f"top {_N}, seen items included",
        rows,
    )


class GivenFactors(Recommender):
    """A model with the factors that it is made of."""

    def __init__(self, users: np.ndarray, items: np.ndarray) -> None:
        self.users, self.items = users, items

    def learn(self, data: Interactions) -> FittedState:
        """The state that the model learns from checked interactions."""
        biases = np.zeros(data.n_users, np.float32), np.linspace(-1, 1, data.n_items, dtype=np.float32)
        return FittedState(data, Factors(self.users, self.items, *biases, 0.0))


def with_random_factors(data: Interactions, width: int) -> Recommender:
    """Return a model of some data with random factors, which cost the same time as learned ones."""
    rng = np.random.default_rng(0)
    users, items = (rng.normal(size=(size, width)).astype(np.float32) for size in (data.n_users, data.n_items))
    return GivenFactors(users, items).fit(data)


def _measure(model: Recommender, factory: str, options: dict[str, int], exact: np.ndarray) -> dict[str, float]:
    start = time.perf_counter()
    items = model.to_faiss(factory=factory)
    built = time.perf_counter()
    for name, value in options.items():
        setattr(items.index, name, value)
    _, nearest = items.index.search(items.queries(model.interactions_.user_ids), _N)
    searched = time.perf_counter()
    hits = [len(set(row) & set(best)) for row, best in zip(nearest.tolist(), exact.tolist(), strict=True)]
    return {
        "build_seconds": built - start,
        "search_seconds": searched - built,
        "recall": float(np.mean(hits)) / _N,
    }
