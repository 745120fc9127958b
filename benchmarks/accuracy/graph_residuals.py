"""Ratings of items, and of users, that are hidden whole: what features tell of them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge

from air_recsys.data.interactions import Interactions
from air_recsys.datasets import load_movielens
from air_recsys.metrics import rmse
from air_recsys.models import AIR
from benchmarks.accuracy.ratings_data import RATING_SETS, VARIANTS, known_tables
from benchmarks.harness import Found

HIDDEN = {"items by genres": ("item", ["genres"]), "items by genres and years": ("item", ["genres", "year"])}
HIDDEN |= {"users by age, gender and occupation": ("user", ["age", "gender", "occupation"])}


def bench_cold(root: Path, case: str, *, draws: int, hidden: list[str], settings: dict[str, Any]) -> Found:
    """Measure errors on items (users) that are hidden whole: of a ridge of biases on features, and of AIR."""
    name = case.removeprefix("cold-")
    data, known = load_movielens(root, VARIANTS[name]), known_tables(name, root)
    single = []
    for told, seed in itertools.product(hidden or HIDDEN, range(101, 101 + draws)):
        side, columns = HIDDEN[told]
        index = data.users if side == "user" else data.items
        drawn = np.random.RandomState(seed).permutation(np.unique(index.ids))[: len(index) // 10]
        is_hidden = np.isin(getattr(data, f"{side}_index"), index.lookup(drawn))
        shown = data.select(~is_hidden).with_features(**{side: known[side][columns]})
        single.append({"hidden": told, "draw": seed} | _of_cold(shown, data.select(is_hidden), side, settings))
    rows = []
    for told, group in pd.DataFrame(single).groupby("hidden", sort=False):
        gaps, means = group["AIR"] - group["ridge"], group.drop(columns=["hidden", "draw"]).mean()
        rows.append({"hidden": told} | means.to_dict() | {"gap to the ridge": gaps.mean(), "largest gap": gaps.max()})
    return Found(rows, single, title=RATING_SETS[name].title)


def _of_cold(shown: Interactions, hidden: Interactions, side: str, settings: dict[str, Any]) -> dict[str, float]:
    """The errors on hidden rows, and the share of their ratings in 90 % intervals."""
    model = AIR.for_ratings(**{"random_state": 0, "device": "cpu"} | settings).fit(shown)
    state = model._fitted()
    test, pairs = hidden.among(state.data.users, state.data.items), (hidden.user_ids, hidden.item_ids)
    pairs = pairs[0][hidden.user_index], pairs[1][hidden.item_index]
    found = _by_ridge(state.data, test, side)
    low, high = model.predict_interval(*pairs)
    found["AIR by factors"] = rmse(test.ratings, np.clip(state.factor_scores(test.user_index, test.item_index), 1, 5))
    found["AIR"] = rmse(test.ratings, np.clip(model.predict(*pairs), 1, 5))
    return found | {"inside 90 %": float(np.mean((low <= test.ratings) & (test.ratings <= high)))}


def _by_ridge(shown: Interactions, test: Interactions, side: str) -> dict[str, float]:
    """The errors of damped means of the other side, and of these with a ridge of biases, weighted by ratings."""
    other, features = "item" if side == "user" else "user", getattr(shown, f"{side}_features").values
    own, others = (getattr(shown, f"{each}_index") for each in (side, other))
    mean = shown.ratings.mean()
    sums = np.bincount(others, shown.ratings - mean, len(getattr(shown, f"{other}s")))
    means = mean + sums / (np.bincount(others, minlength=sums.size) + 5)
    counts = np.bincount(own, minlength=len(features))
    biases = np.bincount(own, shown.ratings - means[others], len(features)) / counts.clip(1)
    ridge = Ridge(5).fit(features[counts > 0], biases[counts > 0], sample_weight=counts[counts > 0]).predict(features)
    scores = means[getattr(test, f"{other}_index")], ridge[getattr(test, f"{side}_index")]
    found = {"means": scores[0], "ridge": scores[0] + scores[1]}
    return {name: rmse(test.ratings, each.clip(1, 5)) for name, each in found.items()}
