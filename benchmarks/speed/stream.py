"""A stream of likes: lists of a model that takes them in, beside those of new fits."""

from __future__ import annotations

import copy
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
    cut, part = int(share * len(table)), (table["timestamp"] // (days * _DAY)).to_numpy()
    first, rest, part = table[["user", "item"]][:cut], table[["user", "item"]][cut:], part[cut:]
    begun = AIR.for_likes(**settings, random_state=seed, device="cpu", validation="random").fit(first)
    given = {"settings": begun.settings_._asdict(), "random_state": seed, "device": "cpu"} | settings
    live, anew, known = copy.deepcopy(begun), begun, first
    found: dict[str, list[float]] = {"new fits": [], "partial_fit": []}
    seconds = dict.fromkeys(found, 0.0)
    for number in np.unique(part):
        new = rest[part == number]
        for way, model in (("new fits", anew), ("partial_fit", live)):
            found[way] += _ndcg(model, new, n)
        known, start = pd.concat([known, new]), perf_counter()
        anew, middle = AIR.for_likes(**given).fit(known), perf_counter()
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
    return Found(rows, parts=len(np.unique(part)), likes=len(rest), lists=len(best), factors=given["n_factors"])


def _ndcg(model: GraphRanker, new: pd.DataFrame, n: int) -> list[float]:
    """The NDCG of the lists of users whom the model knows, by their new likes."""
    wanted = new.groupby("user")["item"].apply(set)
    wanted = wanted[wanted.index.isin(model.interactions_.user_ids)]
    lists = model.recommend(wanted.index.to_numpy(), n).groupby("user")["item"].apply(list)
    hits = np.array([[item in wanted[user] for item in lists[user]] for user in wanted.index]).reshape(-1, n)
    return ndcg(hits, np.array([len(each) for each in wanted])).tolist()
