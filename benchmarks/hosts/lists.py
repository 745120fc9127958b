"""Our models of lists in implicit and in Cornac beside the hosts' own, at equal settings and after a search."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.datasets import load_monti, load_movielens
from air_recsys.evaluation.results import ResultTable, mean_of
from air_recsys.splits import user_holdout
from benchmarks.accuracy.experiments import experiment, settings_of
from benchmarks.harness import median_seconds

_TEXTS = experiment("hosts")
GRIDS: dict[str, dict[str, list[Any]]] = _TEXTS["cornac-lists"]
"""What the tuned models of Cornac choose among."""
SEARCH: dict[str, Any] = _TEXTS["implicit"]["search"]
"""What ALS of implicit chooses among."""
_LIKED = 4.0
LIST_LENGTH = 10
_SQUARED = "ImplicitAIR(loss='squared')"
_RANKER = "ImplicitRanker()"
_NDCG = f"ndcg_at_{LIST_LENGTH}"


def bench_implicit(data: Interactions, *, factors: int = 64, seed: int = 0, rounds: int = 9) -> ResultTable:
    """Train both on the same likes with the same settings, rank the rest, and time `recommend` for all users.

    Parameters
    ----------
    data : Interactions
        Ratings; those of 4 and more are likes, a fifth of each user's is held out.
    seed : int
        Of the split and of both models.
    rounds : int
        Rounds of timing, the two in turn; the median counts.
    """
    train, test = likes(data, seed)
    rows, first = [], {}
    for regularization, alpha in _TEXTS["implicit"]["settings"]:
        setting = {"factors": factors, "regularization": regularization, "alpha": alpha, "iterations": 15}
        for name, make in makers().items():
            model, measures = trained(partial(make, **setting), train, test, seed)
            rows.append({"model": name} | measures | setting)
            first.setdefault(name, model)
    n_users, n_items = train.get_shape()
    return ResultTable(
        "In implicit, equal settings",
        f"{n_users} users, {n_items} items; {train.nnz} likes (ratings >= {_LIKED:g}) to train on, {test.nnz} held "
        f"out, seed {seed}; {factors} factors, the first setting is ALS's default; processor seconds of fit. No "
        "setting was chosen on the held-out likes",
        rows,
        [_times(first, train, rounds)],
    )


def bench_searched(sets: Mapping[str, tuple[Interactions, Sequence[int]]]) -> tuple[ResultTable, ResultTable]:
    """Rank held-out likes by our models, by BPR, by ALS, and by ALS with the best settings of a search.

    Parameters
    ----------
    sets : mapping of str to (Interactions, sequence of int)
        Title of a data set, its ratings, and the seeds of splits and models. Ratings of 4 and more are likes, a fifth
        of each user's is held out.

    Returns
    -------
    means, single : ResultTable
        NDCG at 10 of all: means over the seeds of a data set, and each seed with the setting of ALS that the search
        found. The error of a difference in `single` is paired over users. `means` has the median of the time of
        a fit against that of 15 iterations of ALS at equal width, too.
    """
    splits = [(title, data, seed) for title, (data, seeds) in sets.items() for seed in seeds]
    rows = [
        {"data": title, "seed": seed} | _compared(*likes(data, seed), seed)
        for title, data, seed in tqdm(splits, unit="split", desc="ImplicitAIR() and ALS")
    ]
    n_settings = len(_tried()) + 1
    protocol = (
        f"ratings of 4 and more are likes, a fifth of each user's is held out; NDCG at {LIST_LENGTH} of implicit's "
        f"evaluation; ALS, BPR: their defaults; searched: the best of {n_settings} settings on a hidden "
        f"fifth of each user's training likes, {SEARCH['factors']} factors, found anew for each seed; ImplicitAIR(), "
        "ImplicitRanker(): no parameter but the seed, ImplicitAIR also with the squared error; processor seconds of "
        "one fit"
    )
    means = [_mean(title, [row for row in rows if row["data"] == title]) for title in sets]
    title = "In implicit, ImplicitAIR() beside ALS"
    return ResultTable(title, protocol, means), ResultTable(f"{title}: single splits", protocol, rows)


def likes_of(root: Path, names: Sequence[str], seeds: Sequence[int] | None) -> dict[str, tuple[Interactions, Any]]:
    """What `bench_searched` takes: data sets of ``hosts.toml``, all where none is named, with their seeds."""
    sets = {name: _TEXTS["likes"][name] for name in names or _TEXTS["likes"]}
    return {entry["title"]: (_ratings(root, name), seeds or entry["seeds"]) for name, entry in sets.items()}


def _ratings(root: Path, name: str) -> Interactions:
    if name != "douban":
        return load_movielens(root, "100k" if name == "movielens-100k" else "1m")
    parts = load_monti(root, "douban")
    users, items, ratings = (
        np.concatenate([getattr(part, of) for part in parts]) for of in ("user_index", "item_index", "ratings")
    )
    return Interactions(users, items, ratings, parts[0].user_ids, parts[0].item_ids)


def _compared(train: sp.csr_matrix, test: sp.csr_matrix, seed: int) -> dict[str, Any]:
    """The NDCG of all, how far ours is above the searched ALS, and the settings of these two."""
    als, air = makers().values()
    bpr, ranker = list_makers()
    setting = _searched(train, seed)
    contenders = {"ALS": als, "ALS, searched": partial(als, **setting), "ImplicitAIR()": air}
    contenders |= {_SQUARED: partial(air, loss="squared"), "BPR": bpr, _RANKER: ranker}
    models, measures = {}, {}
    for name, make in contenders.items():
        models[name], measures[name] = trained(make, train, test, seed)
    differences = ndcg_of_users(models["ImplicitAIR()"], train, test) - ndcg_of_users(
        models["ALS, searched"], train, test
    )
    row = {name: found[_NDCG] for name, found in measures.items()}
    row |= {"difference": differences.mean(), "s.e.": differences.std() / np.sqrt(differences.size)}
    row |= {f"seconds, {name}": found["fit_seconds"] for name, found in measures.items()}
    return row | {f"ALS, {name}": value for name, value in setting.items()} | models["ImplicitAIR()"].settings_


def _mean(title: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {"data": title, "splits": len(rows)}
    for name in ("ALS", "ALS, searched", "ImplicitAIR()", "difference"):
        row[name] = np.mean([each[name] for each in rows])
    row["smallest difference"] = min(each["difference"] for each in rows)
    for name in (_SQUARED, "BPR", _RANKER):
        row[name] = np.mean([each[name] for each in rows])
    return row | {"time against ALS": float(np.median([_time_against_als(each) for each in rows]))}


def _time_against_als(row: dict[str, Any]) -> float:
    """The time of our fit against that of 15 iterations of ALS at the same width."""
    return row["seconds, ImplicitAIR()"] / (
        row["seconds, ALS, searched"] * SEARCH["iterations"] / row["ALS, iterations"]
    )


def _tried() -> list[dict[str, Any]]:
    return settings_of(
        {"factors": [SEARCH["factors"]], **{name: SEARCH[name] for name in ("regularization", "alpha")}}
    )


def _searched(train: sp.csr_matrix, seed: int) -> dict[str, Any]:
    """The settings of ALS with the best NDCG on a hidden part of the training likes."""
    kept, hidden = divided(Interactions.from_csr(train), seed)
    make = makers()["implicit ALS"]

    def ndcg(setting: dict[str, Any]) -> float:
        return trained(partial(make, **setting), kept, hidden, seed)[1][_NDCG]

    iterations = SEARCH["iterations"]
    best = max((setting | {"iterations": iterations} for setting in _tried()), key=ndcg)
    return max((best, best | {"iterations": 2 * iterations}), key=ndcg)


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
    for seed in tqdm(seeds, unit="split", desc="hosts: lists in Cornac"):
        train, test = likes(data, seed)
        single.append({"model": "MostPop"} | _measure(cornac_model("MostPop"), train, test))
        for name, grid in GRIDS.items():
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
        [f"settings tried: {GRIDS}"],
    )


def _peer(name: str, seed: int, **settings: Any) -> Any:
    from air_recsys.adapters.cornac_peer import cornac_model

    quiet: dict[str, Any] = {"num_threads": 1} if name == "BPR" else {"verbose": False}
    return cornac_model(name, seed=seed, **quiet | settings)


def _choose(name: str, grid: dict[str, list[Any]], train: sp.csr_matrix, seed: int) -> dict[str, Any]:
    kept, hidden = divided(Interactions.from_csr(train), seed)
    return max(settings_of(grid), key=lambda each: _measure(_peer(name, seed, **each), kept, hidden)[_NDCG])


def _measure(model: Any, train: sp.csr_matrix, test: sp.csr_matrix) -> dict[str, float]:
    from cornac.eval_methods import BaseMethod
    from cornac.eval_methods.base_method import ranking_eval
    from cornac.metrics import NDCG, Recall

    split = BaseMethod.from_splits(_triples(train), _triples(test), rating_threshold=0.5, exclude_unknowns=True)
    start = time.process_time()
    model.fit(split.train_set)
    row = {"fit_seconds": time.process_time() - start}
    metrics = {_NDCG: NDCG(k=LIST_LENGTH), f"recall_at_{LIST_LENGTH}": Recall(k=LIST_LENGTH)}
    found, _ = ranking_eval(model, list(metrics.values()), split.train_set, split.test_set, rating_threshold=0.5)
    return row | {name: float(value) for name, value in zip(metrics, found, strict=True)}


def _triples(matrix: sp.csr_matrix) -> list[tuple[int, int, float]]:
    cells = matrix.tocoo()
    return list(zip(cells.row.tolist(), cells.col.tolist(), cells.data.tolist(), strict=True))


def likes(data: Interactions, seed: int) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """The likes to train on and those held out, a fifth of each user's, as implicit wants them."""
    high = data.select(data.ratings >= _LIKED)
    liked = Interactions(high.user_index, high.item_index, np.ones(high.n_ratings), high.user_ids, high.item_ids)
    return divided(liked, seed)


def ndcg_of_users(model: Any, train: sp.csr_matrix, test: sp.csr_matrix) -> np.ndarray:
    """The NDCG of implicit at 10 of each user with held-out likes; their mean is that of its evaluation."""
    held_out = np.diff(test.indptr)
    users = np.flatnonzero(held_out)
    items, _ = model.recommend(users, train[users], N=LIST_LENGTH)
    hits = test[np.repeat(users, items.shape[1]), items.ravel()].reshape(items.shape) > 0
    gains = 1 / np.log2(np.arange(LIST_LENGTH) + 2)
    return hits @ gains[: items.shape[1]] / np.cumsum(gains)[np.minimum(held_out[users], LIST_LENGTH) - 1]


def makers() -> dict[str, Callable[..., Any]]:
    """Both models by name, each to be called with its parameters."""
    from air_recsys.adapters.implicit import ImplicitAIR
    from air_recsys.adapters.implicit_peer import AlternatingLeastSquares

    return {"implicit ALS": AlternatingLeastSquares, "ImplicitAIR": partial(ImplicitAIR, device="cpu")}


def list_makers() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The BPR of implicit and our ranker, which share no settings with the others."""
    from air_recsys.adapters.implicit import ImplicitRanker
    from air_recsys.adapters.implicit_peer import BayesianPersonalizedRanking

    return BayesianPersonalizedRanking, partial(ImplicitRanker, device="cpu")


def divided(liked: Interactions, seed: int) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """The likes to train on and a fifth of each user's, as implicit wants them."""
    from air_recsys.adapters._implicit_input import as_implicit_reads

    split = user_holdout(liked, 0.2, random_state=seed)
    train, test = (as_implicit_reads(liked.select(mask).to_csr(), np.float32) for mask in split)
    return train, test


def trained(
    make: Callable[..., Any], train: sp.csr_matrix, test: sp.csr_matrix, seed: int
) -> tuple[Any, dict[str, float]]:
    """A model, trained, with the processor seconds of that and its measures on the held-out likes."""
    from implicit.evaluation import ranking_metrics_at_k

    model = make(random_state=seed)
    start = time.process_time()
    model.fit(train, show_progress=False)
    row = {"fit_seconds": time.process_time() - start}
    measures = ranking_metrics_at_k(model, train, test, K=LIST_LENGTH, show_progress=False)
    return model, row | {f"{key}_at_{LIST_LENGTH}": measures[key] for key in ("precision", "map", "ndcg")}


def _times(models: dict[str, Any], train: sp.csr_matrix, rounds: int) -> str:
    users = np.arange(train.get_shape()[0])
    medians = median_seconds(
        {name: lambda m=model: m.recommend(users, train, N=LIST_LENGTH) for name, model in models.items()}, rounds
    )
    times = ", ".join(f"{name} {1e3 * seconds:.0f} ms" for name, seconds in medians.items())
    ratio = medians["ImplicitAIR"] / medians["implicit ALS"]
    what = f"top {LIST_LENGTH} of all users, their likes left out, median of {rounds} rounds in turn"
    return f"{what}: {times}; ratio {ratio:.2f}"
