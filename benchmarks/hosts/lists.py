"""ImplicitAIR and ImplicitRanker beside the models of implicit: with defaults, and after a search."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.datasets import load_monti, load_movielens
from air_recsys.splits import user_holdout
from benchmarks.accuracy.experiments import settings_of
from benchmarks.harness import Found

_LIKED = 4.0
LIST_LENGTH = 10
_SQUARED = "ImplicitAIR(loss='squared')"
_RANKER = "ImplicitRanker()"
_NDCG = f"ndcg_at_{LIST_LENGTH}"


def bench_implicit(root: Path, *, sets: dict[str, list[int]], search: dict[str, Any]) -> Found:
    """Rank held-out likes of data sets, by name, over the seeds of each, see `searched_likes`."""
    return searched_likes({name: (_ratings(root, name), seeds) for name, seeds in sets.items()}, search)


def searched_likes(sets: Mapping[str, tuple[Interactions, Sequence[int]]], search: dict[str, Any]) -> Found:
    """Rank held-out likes by our models, by BPR, by ALS, and by ALS with the best settings of a search.

    Parameters
    ----------
    sets : mapping of str to (Interactions, sequence of int)
        Title of a data set, its ratings, and the seeds of splits and models. Ratings of 4 and more are likes, a fifth
        of each user's is held out.
    search : dict
        Values of "regularization" and "alpha", "factors", and "iterations", which the best setting takes twice, too.

    Returns
    -------
    Found
        NDCG at 10 of all: means over the seeds of a data set, and each seed with the setting of ALS that the search
        found. The error of a difference in the second is paired over users. The first has the median of the time of
        a fit against that of 15 iterations of ALS at equal width, too.
    """
    splits = [(title, data, seed) for title, (data, seeds) in sets.items() for seed in seeds]
    rows = [
        {"data": title, "seed": seed} | _compared(*likes(data, seed), seed, search)
        for title, data, seed in tqdm(splits, unit="split", desc="ImplicitAIR() and ALS")
    ]
    means = [_mean(title, [row for row in rows if row["data"] == title], search["iterations"]) for title in sets]
    return Found(means, rows, n_settings=len(_tried(search)) + 1)


def _ratings(root: Path, name: str) -> Interactions:
    if name != "Douban":
        return load_movielens(root, "100k" if name == "MovieLens-100K" else "1m")
    parts = load_monti(root, "douban")
    users, items, ratings = (
        np.concatenate([getattr(part, of) for part in parts]) for of in ("user_index", "item_index", "ratings")
    )
    return Interactions(users, items, ratings, parts[0].user_ids, parts[0].item_ids)


def _compared(train: sp.csr_matrix, test: sp.csr_matrix, seed: int, search: dict[str, Any]) -> dict[str, Any]:
    """The NDCG of all, how far ours is above the searched ALS, and the settings of these two."""
    from air_recsys.adapters.implicit import ImplicitAIR, ImplicitRanker
    from air_recsys.adapters.implicit_peer import AlternatingLeastSquares, BayesianPersonalizedRanking

    setting, air = _searched(train, seed, search), partial(ImplicitAIR, device="cpu")
    contenders: dict[str, Callable[..., Any]] = {
        "ALS": AlternatingLeastSquares,
        "ALS, searched": partial(AlternatingLeastSquares, **setting),
        "ImplicitAIR()": air,
        _SQUARED: partial(air, loss="squared"),
        "BPR": BayesianPersonalizedRanking,
        _RANKER: partial(ImplicitRanker, device="cpu"),
    }
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


def _mean(title: str, rows: list[dict[str, Any]], iterations: int) -> dict[str, Any]:
    row: dict[str, Any] = {"data": title, "splits": len(rows)}
    for name in ("ALS", "ALS, searched", "ImplicitAIR()", "difference"):
        row[name] = np.mean([each[name] for each in rows])
    row["smallest difference"] = min(each["difference"] for each in rows)
    for name in (_SQUARED, "BPR", _RANKER):
        row[name] = np.mean([each[name] for each in rows])
    return row | {"time against ALS": float(np.median([_time_against_als(each, iterations) for each in rows]))}


def _time_against_als(row: dict[str, Any], iterations: int) -> float:
    """The time of our fit against that of so many iterations of ALS at the same width."""
    return row["seconds, ImplicitAIR()"] / (row["seconds, ALS, searched"] * iterations / row["ALS, iterations"])


def _tried(search: dict[str, Any]) -> list[dict[str, Any]]:
    return settings_of(
        {"factors": [search["factors"]], **{name: search[name] for name in ("regularization", "alpha")}}
    )


def _searched(train: sp.csr_matrix, seed: int, search: dict[str, Any]) -> dict[str, Any]:
    """The settings of ALS with the best NDCG on a hidden part of the training likes."""
    from air_recsys.adapters.implicit_peer import AlternatingLeastSquares as make

    kept, hidden = divided(Interactions.from_csr(train), seed)

    def ndcg(setting: dict[str, Any]) -> float:
        return trained(partial(make, **setting), kept, hidden, seed)[1][_NDCG]

    iterations = search["iterations"]
    best = max((setting | {"iterations": iterations} for setting in _tried(search)), key=ndcg)
    return max((best, best | {"iterations": 2 * iterations}), key=ndcg)


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
