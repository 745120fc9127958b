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
