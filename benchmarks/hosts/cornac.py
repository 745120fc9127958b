"""CornacAIR beside Cornac's matrix factorization, each with its defaults and tuned on a validation part."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.folds import Fold, holdout_folds
from air_recsys.evaluation.results import ResultTable, mean_of
from air_recsys.metrics import mae, rmse
from air_recsys.splits import random_holdout

_GRIDS: dict[str, dict[str, list[Any]]] = {
    "MF": {"k": [20], "max_iter": [50, 100], "lambda_reg": [0.02, 0.06, 0.1, 0.2]},
    "CornacAIR": {"n_factors": [5, 8, 10, 15, 20, 30, 40, 50]},
}


def bench_cornac(data: Interactions, *, seeds: int = 3) -> ResultTable:
    """Rate held-out pairs with every contender; the tuned ones choose among eight settings on validation ratings.

    Parameters
    ----------
    seeds : int
        Random 80/20 splits to average over.
    """
    from air_recsys.adapters.cornac import CornacAIR
    from air_recsys.adapters.cornac_peer import cornac_model

    makers: dict[str, Callable[..., Any]] = {
        "MF": lambda seed, **settings: cornac_model("MF", seed=seed, **settings),
        "CornacAIR": lambda seed, **settings: CornacAIR(seed=seed, device="cpu", **settings),
    }
    single = []
    for seed in tqdm(range(seeds), unit="split", desc="bench adapters: Cornac"):
        (fold,) = holdout_folds(data, 0.2, seed)
        single.append({"model": "BaselineOnly"} | _measure(cornac_model("BaselineOnly", seed=seed), fold))
        for name, make in makers.items():
            single.append({"model": name} | _measure(make(seed), fold))
            chosen = _choose(make, _GRIDS[name], fold.train, seed)
            single.append({"model": f"{name}, tuned"} | _measure(make(seed, **chosen), fold))
    return ResultTable(
        "In Cornac",
        f"{data!r}, random 80/20 splits, seeds 0..{seeds - 1}; tuned: the best of eight settings on a validation part "
        "(10 % of the training ratings), then trained on all of them",
        mean_of(single, ("model",)),
        [f"settings tried: {_GRIDS}"],
    )


def _choose(
    make: Callable[..., Any], grid: Mapping[str, Sequence[Any]], train: Interactions, seed: int
) -> dict[str, Any]:
    split = random_holdout(train, 0.1, random_state=seed)
    validation = Fold("validation", train.select(split.train), train.select(split.test))
    settings = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    errors = [_measure(make(seed, **each), validation)["rmse"] for each in settings]
    return settings[int(np.argmin(errors))]


def _measure(model: Any, fold: Fold) -> dict[str, float]:
    from air_recsys.adapters.cornac_peer import to_dataset

    train = to_dataset(fold.train)
    start = time.perf_counter()
    model.fit(train)
    fitted = time.perf_counter()
    test = fold.test
    users = [train.uid_map.get(user, -1) for user in test.user_ids[test.user_index].tolist()]
    items = [train.iid_map.get(item, -1) for item in test.item_ids[test.item_index].tolist()]
    predicted = [model.rate(user, item) for user, item in zip(users, items, strict=True)]
    return {
        "rmse": rmse(test.ratings, predicted),
        "mae": mae(test.ratings, predicted),
        "fit_seconds": fitted - start,
        "rate_us": 1e6 * (time.perf_counter() - fitted) / len(users),
    }
