"""The search for the best items of many users."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.datasets import load_movielens
from air_recsys.metrics import top_k
from air_recsys.models import Recommender
from air_recsys.models.learned import Factors
from air_recsys.models.ranking.top_items import top_items
from air_recsys.models.state import FittedState, TrainingStatistics
from air_recsys.nn.devices import resolve_device
from air_recsys.storage.validation import import_extra
from benchmarks.harness import Found, median_seconds

_N = 10


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
