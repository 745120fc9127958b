"""CornacRanker beside Cornac's own models of lists, judged by Cornac's metrics."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import scipy.sparse as sp
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.results import ResultTable, mean_of
from benchmarks.hosts.implicit import LIST_LENGTH, divided, likes

_GRIDS: dict[str, dict[str, list[Any]]] = {
    "BPR": {"k": [50], "max_iter": [200], "learning_rate": [0.01, 0.05], "lambda_reg": [0.001, 0.01]},
    "EASE": {"lamb": [50.0, 100.0, 200.0, 400.0, 800.0], "posB": [False]},
}


def bench_cornac_lists(data: Interactions, *, seeds: Iterable[int] = range(25, 28)) -> ResultTable:
    """Rank held-out likes with every contender; the tuned ones choose among settings on hidden training likes.

    Parameters
    ----------
    data : Interactions
        Ratings; those of 4 and more are likes, a fifth of each user's is held out.
    seeds : iterable of int
        Of splits and models.
    """
    from air_recsys.adapters.cornac import CornacRanker
    from air_recsys.adapters.cornac_peer import cornac_model

    seeds, single = list(seeds), []
    for seed in tqdm(seeds, unit="split", desc="bench adapters: lists in Cornac"):
        train, test = likes(data, seed)
        single.append({"model": "MostPop"} | _measure(cornac_model("MostPop"), train, test))
        for name, grid in _GRIDS.items():
            single.append({"model": name} | _measure(_peer(name, seed), train, test))
            chosen = _choose(name, grid, train, seed)
            single.append({"model": f"{name}, tuned"} | _measure(_peer(name, seed, **chosen), train, test))
        single.append({"model": "CornacRanker"} | _measure(CornacRanker(seed=seed, device="cpu"), train, test))
    return ResultTable(
        "Lists in Cornac",
        f"ratings of 4 and more are likes, a fifth of each user's is held out, seeds {seeds}; Cornac's metrics of "
        f"lists of {LIST_LENGTH} unseen items; tuned: the best NDCG of all settings on a hidden fifth of each user's "
        "training likes, anew for each seed; CornacRanker: no parameter but the seed; processor seconds of one fit",
        mean_of(single, ("model",)),
        [f"settings tried: {_GRIDS}"],
    )


def _peer(name: str, seed: int, **settings: Any) -> Any:
    from air_recsys.adapters.cornac_peer import cornac_model

    quiet: dict[str, Any] = {"num_threads": 1} if name == "BPR" else {"verbose": False}
    return cornac_model(name, seed=seed, **quiet | settings)


def _choose(name: str, grid: Mapping[str, Sequence[Any]], train: sp.csr_matrix, seed: int) -> dict[str, Any]:
    kept, hidden = divided(Interactions.from_csr(train), seed)
    settings = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    return max(settings, key=lambda each: _measure(_peer(name, seed, **each), kept, hidden)["ndcg_at_10"])


def _measure(model: Any, train: sp.csr_matrix, test: sp.csr_matrix) -> dict[str, float]:
    from air_recsys.adapters.cornac_peer import given_split, list_measures

    split = given_split(train, test)
    start = time.process_time()
    model.fit(split.train_set)
    row = {"fit_seconds": time.process_time() - start}
    return row | list_measures(model, split, LIST_LENGTH)
