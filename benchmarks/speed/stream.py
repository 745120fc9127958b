"""A stream of likes: lists of a model that takes them in, beside those of new fits."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from air_recsys import AIR
from air_recsys.datasets import load_movielens
from air_recsys.metrics.at_k import ndcg
from air_recsys.models import GraphRanker
from benchmarks.harness import Found

_DAY = 86_400


def bench_stream(root: Path, *, share: float, days: int, n: int, settings: dict[str, Any], seed: int) -> Found:
    """Measure lists before each part of the last likes of MovieLens-100K: of new fits, and of a model that grows."""
    table = load_movielens(root, "100k").to_frame().sort_values(["timestamp", "user", "item"], kind="stable")
    likes, cut = table.filter(["user", "item"]), int(share * len(table))
    ends = cut + np.flatnonzero(np.diff((table["timestamp"] // (days * _DAY)).to_numpy()[cut:], append=np.inf)) + 1
    begun = AIR.for_likes(**settings, random_state=seed, device="cpu", validation="random").fit(likes.head(cut))
    given = {"settings": begun.settings_._asdict(), "random_state": seed, "device": "cpu"} | settings
    live, anew = copy.deepcopy(begun), begun
    found: dict[str, list[float]] = {"new fits": [], "partial_fit": []}
    seconds = dict.fromkeys(found, 0.0)
    for begin, end in itertools.pairwise([cut, *ends.tolist()]):
        new = likes.head(end).tail(end - begin)
        for way, model in (("new fits", anew), ("partial_fit", live)):
            found[way] += _ndcg(model, new, n)
        start = perf_counter()
        anew, middle = AIR.for_likes(**given).fit(likes.head(end)), perf_counter()
        live.partial_fit(new)
        seconds["new fits"] += middle - start
        seconds["partial_fit"] += perf_counter() - middle
    best = np.array(found["new fits"])
    rows = [
        {
            "way": way,
            f"NDCG@{n}": np.mean(measures),
            "of new fits'": np.mean(measures) / best.mean(),
            "error of the difference": np.std(best - measures) / len(best) ** 0.5,
            "time, of new fits'": seconds[way] / seconds["new fits"],
        }
        for way, measures in found.items()
    ]
    return Found(rows, parts=len(ends), likes=len(likes) - cut, lists=len(best), factors=given["n_factors"])


def _ndcg(model: GraphRanker, new: pd.DataFrame, n: int) -> list[float]:
    """The NDCG of the lists of users whom the model knows, by their new likes."""
    wanted: dict[Any, set[Any]] = {}
    for user, item in new[["user", "item"]].to_numpy().tolist():
        wanted.setdefault(user, set()).add(item)
    users = [user for user in wanted if model.interactions_.users.lookup(user)[0] >= 0]
    if not users:
        return []
    lists = model.recommend(users, n)
    hits = [item in wanted[user] for user, item in zip(lists["user"].tolist(), lists["item"].tolist(), strict=True)]
    counts = np.array([len(wanted[user]) for user in users])
    return ndcg(np.array(hits).reshape(len(users), n), counts).tolist()


def bench_updates(root: Path, *, pairs: int, singles: int, n: int, settings: dict[str, Any], seed: int) -> Found:
    """Measure `partial_fit` of new likes of a trained MovieLens-1M model, at once and one by one, and next lists."""
    table = load_movielens(root, "1m").to_frame()[["user", "item"]]
    order = np.random.default_rng(seed).permutation(len(table))
    new, model = table.iloc[order[: pairs + singles]], AIR.for_likes(**settings, random_state=seed, device="cpu")
    model.fit(table.iloc[np.sort(order[pairs + singles :])]).recommend(new["user"].unique(), n)
    rows = []
    for way, size, part in (("at once", pairs, new.head(pairs)), ("one by one", 1, new.tail(singles))):
        spent = np.array([_update(model, part.iloc[begin : begin + size], n) for begin in range(0, len(part), size)])
        likes, users = model.interactions_.to_frame()[["user", "item"]], part["user"].unique()
        theirs = likes.set_index("user").loc[users].reset_index()
        lists = [each.recommend(users, n) for each in (model, model.fold_in(theirs))]
        rows.append(
            {
                "likes": way,
                "users": users.size,
                "partial_fit, ms": 1e3 * np.median(spent[:, 0]),
                "next lists, ms": 1e3 * np.median(spent[:, 1]),
                "ms a user": 1e3 * spent.sum() / (users.size if size > 1 else len(part)),
                "from a refit": (lists[0]["score"] - lists[1]["score"]).abs().max(),
            }
        )
    return Found(rows, known=len(table) - len(new))


def _update(model: GraphRanker, new: pd.DataFrame, n: int) -> tuple[float, float]:
    """The seconds of an update, and of the next lists of its users."""
    start = perf_counter()
    model.partial_fit(new)
    middle = perf_counter()
    model.recommend(new["user"].unique(), n)
    return middle - start, perf_counter() - middle
