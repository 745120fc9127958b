"""`ImplicitAIR()` and `ImplicitRanker()` without any parameter beside implicit's BPR and ALS, ALS also searched."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.datasets import load_monti, load_movielens
from air_recsys.evaluation.results import ResultTable
from benchmarks.hosts.implicit import (
    LIST_LENGTH,
    divided,
    likes,
    list_makers,
    makers,
    ndcg_of_users,
    trained,
)

LIKES_SEEDS = {"movielens-100k": range(25, 30), "movielens-1m": range(23, 25), "douban": range(25, 30)}
_TITLES = {"movielens-100k": "MovieLens-100K", "movielens-1m": "MovieLens-1M", "douban": "Douban"}
_GRID = ((10.0, 20.0, 45.0, 75.0, 105.0), (2.0, 4.0, 7.0, 10.0))  # of the search: regularization, alpha
_FACTORS = 128
_ITERATIONS = 15  # of ALS, its default; the best setting is tried with twice as many
_SQUARED = "ImplicitAIR(loss='squared')"
_RANKER = "ImplicitRanker()"
_NDCG = f"ndcg_at_{LIST_LENGTH}"


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
    n_settings = len(_GRID[0]) * len(_GRID[1]) + 1
    protocol = (
        f"ratings of 4 and more are likes, a fifth of each user's is held out; NDCG at {LIST_LENGTH} of implicit's "
        f"evaluation; ALS, BPR: their defaults; searched: the best of {n_settings} settings on a hidden "
        f"fifth of each user's training likes, {_FACTORS} factors, found anew for each seed; ImplicitAIR(), "
        "ImplicitRanker(): no parameter but the seed, ImplicitAIR also with the squared error; processor seconds of "
        "one fit"
    )
    means = [_mean(title, [row for row in rows if row["data"] == title]) for title in sets]
    title = "In implicit, ImplicitAIR() beside ALS"
    return ResultTable(title, protocol, means), ResultTable(f"{title}: single splits", protocol, rows)


def likes_of(root: Path, names: Sequence[str], seeds: Sequence[int] | None) -> dict[str, tuple[Interactions, Any]]:
    """Return what `bench_searched` takes: data sets of `LIKES_SEEDS`, all where none is named, with their seeds."""
    return {_TITLES[name]: (_ratings(root, name), seeds or LIKES_SEEDS[name]) for name in names or LIKES_SEEDS}


def _ratings(root: Path, name: str) -> Interactions:
    if name != "douban":
        return load_movielens(root, "100k" if name == "movielens-100k" else "1m")
    parts = load_monti(root, "douban")
    users, items, ratings = (
        np.concatenate([getattr(part, of) for part in parts]) for of in ("user_index", "item_index", "ratings")
    )
    return Interactions(users, items, ratings, parts[0].user_ids, parts[0].item_ids)


def _compared(train: sp.csr_matrix, test: sp.csr_matrix, seed: int) -> dict[str, Any]:
    """Return the NDCG of all, how far ours is above the searched ALS, and the settings of these two."""
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
    """Return the time of our fit against that of 15 iterations of ALS at the same width."""
    return row["seconds, ImplicitAIR()"] / (row["seconds, ALS, searched"] * _ITERATIONS / row["ALS, iterations"])


def _searched(train: sp.csr_matrix, seed: int) -> dict[str, Any]:
    """Return the settings of ALS with the best NDCG on a hidden part of the training likes."""
    kept, hidden = divided(Interactions.from_csr(train), seed)
    make = makers()["implicit ALS"]

    def ndcg(setting: dict[str, Any]) -> float:
        return trained(partial(make, **setting), kept, hidden, seed)[1][_NDCG]

    tried = [
        {"factors": _FACTORS, "regularization": regularization, "alpha": alpha, "iterations": _ITERATIONS}
        for regularization, alpha in itertools.product(*_GRID)
    ]
    best = max(tried, key=ndcg)
    return max((best, best | {"iterations": 2 * _ITERATIONS}), key=ndcg)
