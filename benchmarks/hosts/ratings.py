"""SurpriseAIR and CornacAIR beside the hosts' own models of ratings: errors, and the cost of a prediction."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.datasets import load_movielens
from air_recsys.evaluation.folds import Fold, cross_validation_folds, holdout_folds
from air_recsys.evaluation.results import mean_of
from air_recsys.metrics import mae, rmse
from benchmarks.accuracy.experiments import settings_of
from benchmarks.harness import Found, median_seconds


def bench_surprise(root: Path, seed: int, **sizes: Any) -> Found:
    """Both on MovieLens-100K, see `beside_surprise`."""
    return beside_surprise(load_movielens(root, "100k"), seed, **sizes)


def beside_surprise(data: Interactions, seed: int, *, n_folds: int, rounds: int) -> Found:
    """Cross-validate both with their defaults, and time estimates of one pair and of a whole test set.

    Parameters
    ----------
    seed : int
        Of the folds and of both algorithms.
    rounds : int
        Rounds of timing, the two in turn; the median counts.
    """
    from air_recsys.adapters.surprise import SurpriseAIR
    from air_recsys.adapters.surprise_peer import SurpriseModel

    factories = {
        "Surprise SVD": lambda: SurpriseModel("SVD", random_state=seed).algorithm,
        "SurpriseAIR": lambda: SurpriseAIR(random_state=seed, device="cpu"),
    }
    single, fitted = [], {}
    folds = cross_validation_folds(data, n_folds, seed)
    for fold in tqdm(folds, unit="fold", desc="hosts: Surprise"):
        for name, factory in factories.items():
            fitted[name], row = _fit(factory(), fold)
            single.append({"model": name} | row)
    rows = mean_of(single, ("model",))
    costs = _costs(fitted, folds[-1].test, rounds)
    for row in rows:
        row |= costs[row["model"]]
    svd, air = (costs[name] for name in factories)
    ratios = ", ".join(f"{name.partition('_')[0]} {air[name] / svd[name]:.2f}" for name in air)
    return Found(rows, notes=[f"cost of SurpriseAIR / SVD: {ratios}"], shown=repr(data))


def _fit(algo: Any, fold: Fold) -> tuple[Any, dict[str, float]]:
    trainset = fold.train.to_surprise()
    start = time.perf_counter()
    algo.fit(trainset)
    seconds = time.perf_counter() - start
    predicted = [prediction.est for prediction in algo.test(_testset(fold.test))]
    truth = fold.test.ratings
    return algo, {"rmse": rmse(truth, predicted), "mae": mae(truth, predicted), "fit_seconds": seconds}


def _testset(test: Interactions) -> list[tuple[Any, Any, float]]:
    users, items = test.user_ids[test.user_index], test.item_ids[test.item_index]
    return list(zip(users.tolist(), items.tolist(), test.ratings.tolist(), strict=True))


def _costs(fitted: dict[str, Any], test: Interactions, rounds: int) -> dict[str, dict[str, float]]:
    """Microseconds a pair: of `estimate` by inner ids, `predict` by raw ids, and `test` of the whole list."""
    testset = _testset(test)
    inner = list(zip(test.user_index.tolist(), test.item_index.tolist(), strict=True))

    def estimates(algo: Any) -> None:
        for user, item in inner:
            algo.estimate(user, item)

    def predictions(algo: Any) -> None:
        for user, item, _ in testset:
            algo.predict(user, item)

    ways = {"estimate_us": estimates, "predict_us": predictions, "test_us": lambda algo: algo.test(testset)}
    costs: dict[str, dict[str, float]] = {name: {} for name in fitted}
    for way, call in ways.items():
        medians = median_seconds({name: lambda c=call, a=algo: c(a) for name, algo in fitted.items()}, rounds)
        for name, seconds in medians.items():
            costs[name][way] = 1e6 * seconds / len(inner)
    return costs


def bench_cornac(root: Path, **sizes: Any) -> Found:
    """All on MovieLens-100K, see `beside_cornac`."""
    return beside_cornac(load_movielens(root, "100k"), **sizes)


def beside_cornac(data: Interactions, *, seeds: int, grids: dict[str, dict[str, list[Any]]]) -> Found:
    """Rate held-out pairs with every contender; the tuned ones choose among settings on validation ratings.

    Parameters
    ----------
    seeds : int
        Random 80/20 splits to average over.
    grids : dict
        What is tried of each contender, by its name.
    """
    from air_recsys.adapters.cornac import CornacAIR
    from air_recsys.adapters.cornac_peer import cornac_model

    makers: dict[str, Callable[..., Any]] = {
        "MF": lambda seed, **settings: cornac_model("MF", seed=seed, **settings),
        "CornacAIR": lambda seed, **settings: CornacAIR(seed=seed, device="cpu", **settings),
    }
    single = []
    for seed in tqdm(range(seeds), unit="split", desc="hosts: Cornac"):
        (fold,) = holdout_folds(data, 0.2, seed)
        single.append({"model": "BaselineOnly"} | _measure(cornac_model("BaselineOnly", seed=seed), fold))
        for name, make in makers.items():
            single.append({"model": name} | _measure(make(seed), fold))
            chosen = _choose(make, grids[name], fold.train, seed)
            single.append({"model": f"{name}, tuned"} | _measure(make(seed, **chosen), fold))
    notes = [f"settings tried: {grids}"]
    return Found(mean_of(single, ("model",)), notes=notes, shown=repr(data), last=seeds - 1)


def _choose(make: Callable[..., Any], grid: dict[str, list[Any]], train: Interactions, seed: int) -> dict[str, Any]:
    (validation,) = holdout_folds(train, 0.1, seed)
    return min(settings_of(grid), key=lambda each: _measure(make(seed, **each), validation)["rmse"])


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
