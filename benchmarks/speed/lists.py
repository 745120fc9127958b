"""Searches: the best items of many users, faiss indexes, and nearest rows."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.datasets import load_movielens
from air_recsys.graphs.candidates import nearest_rows
from air_recsys.graphs.laplacian import squared_norms
from air_recsys.metrics import top_k
from air_recsys.models import Recommender
from air_recsys.models.learned import Factors
from air_recsys.models.ranking.top_items import top_items
from air_recsys.models.state import FittedState, TrainingStatistics
from air_recsys.nn.devices import resolve_device, torch_threads
from air_recsys.storage.validation import import_extra
from benchmarks.harness import Found, in_turn, median_seconds, spent_on

_N = 10
_INDEXES: dict[str, tuple[str, dict[str, int]]] = {
    "Flat": ("Flat", {}),
    "IVF512, 16 cells": ("IVF512,Flat", {"nprobe": 16}),
    "IVF512, 64 cells": ("IVF512,Flat", {"nprobe": 64}),
    "HNSW32": ("HNSW32", {}),
}
_CENTRES = 500  # around which made factors lie
_BLOCK_ENTRIES = 1_300_000
_PLAIN_ENTRIES = 4_000_000


class GivenFactors(Recommender):
    """A model with the factors that it is made of; random ones cost the same time as learned ones."""

    def __init__(self, users: np.ndarray, items: np.ndarray) -> None:
        self.users, self.items = users, items

    def learn(self, data: Interactions) -> FittedState:
        """The state that the model learns from checked interactions."""
        biases = np.zeros(data.n_users, np.float32), np.linspace(-1, 1, data.n_items, dtype=np.float32)
        return FittedState(data, Factors(self.users, self.items, *biases, 0.0))


def bench_blocks(root: Path, *, widths: list[int], rounds: int, device: str) -> Found:
    """Time the top 10 of all MovieLens-1M users, without the items that they have rated, for random factors."""
    resolve_device(device)
    data = load_movielens(root, "1m")
    rows = []
    for width in widths:
        medians = median_seconds(_ways(data, width, device), rounds)
        rows += [
            {"width": width, "way": way, "ms": 1e3 * seconds, "of implicit's": seconds / medians["implicit's search"]}
            for way, seconds in medians.items()
        ]
    return Found(rows, users=data.n_users, items=data.n_items, pairs=data.n_ratings)


def _ways(data: Interactions, width: int, device: str) -> dict[str, Callable[[], object]]:
    topk = import_extra("implicit.cpu.topk", "implicit").topk
    rng = np.random.default_rng(0)
    users, items = (rng.normal(size=(size, width)).astype(np.float32) for size in (data.n_users, data.n_items))
    model = GivenFactors(users, items).fit(data)
    biases, seen = model.item_biases_, TrainingStatistics(data).seen
    masked = sp.csr_matrix(seen, dtype=np.float32)
    user_vectors, item_vectors = np.column_stack([users, np.ones(len(users), np.float32)]), np.c_[items, biases]

    def at_once() -> np.ndarray:
        scores = users @ items.T + biases
        scores[data.user_index, data.item_index] = -np.inf
        return top_k(scores, _N)

    return {
        "recommend": lambda: model.recommend(data.user_ids, _N, device=device),
        "top_items": lambda: top_items(users, items, biases, _N, seen=seen, device=device),
        "implicit's search": lambda: topk(item_vectors, user_vectors, _N, filter_query_items=masked),
        "users x items at once": at_once,
    }


def bench_indexes(*, n_items: int, n_users: int, width: int, groups: int) -> Found:
    """Build faiss indexes over made items, and compare their top 10 with the exact one."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(groups, width))

    def factors(size: int) -> np.ndarray:
        return (centres[rng.integers(groups, size=size)] + 0.5 * rng.normal(size=(size, width))).astype(np.float32)

    pairs = np.arange(n_users), rng.integers(n_items, size=n_users)
    data = Interactions(*pairs, np.ones(n_users), range(n_users), range(n_items))
    model = GivenFactors(factors(n_users), factors(n_items)).fit(data)
    (exact, _), costs = spent_on(lambda: top_items(model.user_factors_, model.item_factors_, model.item_biases_, _N))
    found = {"none, top_items": {"build_seconds": 0.0, "search_seconds": costs["seconds"], "recall": 1.0}}
    for name, (factory, options) in tqdm(_INDEXES.items(), unit="index", desc="speed indexes"):
        found[name] = _of_index(model, factory, options, exact)
    return Found([{"index": name} | row for name, row in found.items()])


def _of_index(model: Recommender, factory: str, options: dict[str, int], exact: np.ndarray) -> dict[str, float]:
    items, built = spent_on(lambda: model.to_faiss(factory=factory))
    for name, value in options.items():
        setattr(items.index, name, value)
    asked = items.queries(model.interactions_.user_ids)
    (_, nearest), searched = spent_on(lambda: items.index.search(asked, _N))
    hits = [len(set(row) & set(best)) for row, best in zip(nearest.tolist(), exact.tolist(), strict=True)]
    recall = float(np.mean(hits)) / _N
    return {"build_seconds": built["seconds"], "search_seconds": searched["seconds"], "recall": recall}


def bench_nearest_rows(*, rows: list[int], widths: list[int], ks: list[int], rounds: int) -> Found:
    """The search for nearest rows beside the distances alone, these with `torch.topk`, and faiss where it is there."""
    searches: dict[str, Callable[[Tensor, int], object]] = {"product": _product, "plain": _plain, "ours": _ours}
    if find_spec("faiss") is not None:
        searches["faiss"] = _faiss
    cases = [(size, width, k) for size in rows for width in widths for k in ks]
    found = []
    with torch_threads(1):
        for size, width, k in tqdm(cases, unit="case", desc="speed nearest-rows"):
            points = torch.as_tensor(_made(size, width))
            times = in_turn({name: partial(search, points, k) for name, search in searches.items()}, rounds)
            row: dict[str, Any] = {"rows": size, "width": width, "k": k}
            found.append(row | {name: float(each.cpu_seconds.min()) for name, each in times.items()})
    return Found(found)


def _made(size: int, width: int) -> np.ndarray:
    """Factors around centres, (size, width)."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(_CENTRES, width))
    factors = centres[rng.integers(_CENTRES, size=size)] + 0.5 * rng.normal(size=(size, width))
    return factors.astype(np.float32)


def _ours(points: Tensor, k: int) -> Tensor:
    return nearest_rows(points, points, k)


def _product(points: Tensor, k: int) -> None:
    norms = squared_norms(points, points)
    width = min(points.shape[0], 10_000)
    block = max(1, _BLOCK_ENTRIES // width)
    out = points.new_empty(block * width)
    for start in range(0, points.shape[0], block):
        rows = points[start : start + block]
        for first in range(0, points.shape[0], width):
            others = points[first : first + width]
            tile = out[: rows.shape[0] * others.shape[0]].view(rows.shape[0], -1)
            torch.addmm(norms[first : first + width], rows, others.T, alpha=-2, out=tile)


def _plain(points: Tensor, k: int) -> Tensor:
    norms, m = squared_norms(points, points), points.shape[0]
    neighbors = torch.empty(m, k, dtype=torch.int64)
    block = max(1, _PLAIN_ENTRIES // m)
    for start in range(0, m, block):
        rows = slice(start, min(start + block, m))
        distances = torch.addmm(norms, points[rows], points.T, alpha=-2)  # (block, m)
        distances[:, rows].fill_diagonal_(torch.inf)
        neighbors[rows] = distances.topk(k, dim=1, largest=False, sorted=False).indices
    return neighbors.sort(dim=1).values


def _faiss(points: Tensor, k: int) -> object:
    faiss = importlib.import_module("faiss")
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        return faiss.knn(points.numpy(), points.numpy(), k + 1)
    finally:
        faiss.omp_set_num_threads(before)
