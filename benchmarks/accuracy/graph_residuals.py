"""What the item graph adds to the scores of a posterior: errors by its strength, and by what its edges tell."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from air_recsys.data.interactions import Interactions
from air_recsys.datasets import load_movielens
from air_recsys.evaluation.folds import Fold
from air_recsys.graphs import SimilarityGraph
from air_recsys.metrics import rmse
from air_recsys.models import AIR
from air_recsys.models.carried import of_pairs
from air_recsys.models.further import NOTHING
from air_recsys.models.state import FittedState
from benchmarks.accuracy.ratings_data import RATING_SETS, VARIANTS, chosen_folds, known_tables
from benchmarks.harness import Found


def bench_graph_residuals(
    root: Path, case: str, *, strengths: list[float], folds: list[str], settings: dict[str, Any], seed: int
) -> Found:
    """Measure test errors of one training a fold, with the part of the item graph at several strengths."""
    parts = chosen_folds(RATING_SETS[case].load(root), folds)
    found = [_of_fold(fold, strengths, settings, seed) for fold in parts]
    rows = [
        {
            "strength": strength,
            "rmse": np.mean([each[number][0] for each in found]),
            "inside 90 %": np.mean([each[number][1] for each in found]),
        }
        | {fold.name: each[number][0] for fold, each in zip(parts, found, strict=True) if len(parts) > 1}
        for number, strength in enumerate(strengths)
    ]
    return Found(rows, title=RATING_SETS[case].title, origin=RATING_SETS[case].origin)


def _of_fold(fold: Fold, strengths: list[float], settings: dict[str, Any], seed: int) -> list[tuple[float, float]]:
    """The error and the share of test ratings in their intervals, at each strength."""
    model = AIR.for_ratings(**{"random_state": seed, "device": "cpu"} | settings).fit(fold.train)
    state, test = model._fitted(), fold.test
    pairs = test.user_ids[test.user_index], test.item_ids[test.item_index]
    found = []
    for strength in strengths:
        model.take_state(replace(state, residual_strength=strength))
        low, high = model.predict_interval(*pairs, unknown="mean")
        inside = np.mean((low <= test.ratings) & (test.ratings <= high))
        found.append((rmse(test.ratings, model.predict(*pairs, unknown="mean")), float(inside)))
    return found


def bench_forms(
    root: Path, *, folds: list[str], edges: list[int], widths: list[float], settings: dict[str, Any], seed: int
) -> Found:
    """Measure test errors of MovieLens-100K with edges that tell less, and with other numbers and widths of them."""
    parts = chosen_folds(RATING_SETS["ml-100k"].load(root), folds)
    forms = {
        "as it is": {},
        "without agreement of residuals": {"agreement": False},
        "without shared users": {"jaccard": False},
        "without distance of factors": {"width": np.inf},
        **{f"{number} edges an item": {"n_edges": number} for number in edges},
        **{f"width {width:g}": {"width": width} for width in widths},
    }
    errors: dict[str, list[float]] = {name: [] for name in ("factors alone", *forms)}
    for fold in parts:
        model = AIR.for_ratings(**{"random_state": seed, "device": "cpu"} | settings).fit(fold.train)
        state, test = model._fitted(), fold.test
        states = {"factors alone": replace(state, residual_strength=0.0)}
        states |= {name: replace(state, item_graph=_graph_of(state, **form)) for name, form in forms.items()}
        for name, changed in states.items():
            pairs = test.user_ids[test.user_index], test.item_ids[test.item_index]
            errors[name].append(rmse(test.ratings, model.take_state(changed).predict(*pairs, unknown="mean")))
    rows = [
        {"edges": name, "rmse": np.mean(each)} | dict(zip([fold.name for fold in parts], each, strict=True))
        for name, each in errors.items()
    ]
    return Found(rows, origin=RATING_SETS["ml-100k"].origin)


def _graph_of(
    state: FittedState, *, agreement: bool = True, jaccard: bool = True, width: float = 0.25, n_edges: int = 20
) -> SimilarityGraph:
    """The graph of items by its definition on all pairs, `air_recsys.graphs.agreement`, or by a part of it."""
    residuals, factors = of_pairs(state.data, state.residuals).toarray(), state.factors.item_factors.astype(float)
    stored = of_pairs(state.data, np.ones(state.data.n_ratings)).toarray()
    shared, counts = stored.T @ stored, stored.sum(axis=0)
    norms = np.square(factors).sum(axis=1)
    distances = (norms[:, None] + norms - 2 * factors @ factors.T).clip(min=0)
    weights = np.exp(-distances / (width * np.median(distances)))
    if jaccard:
        weights *= shared / (counts[:, None] + counts - shared).clip(min=1)
    if agreement:
        square = np.square(state.residuals).mean()
        weights *= 0.1 + (residuals.T @ residuals / ((shared + 50) * square)).clip(min=0)
    np.fill_diagonal(weights, 0)
    least = np.partition(weights, -n_edges, axis=1)[:, [-n_edges]]
    directed = np.where(weights >= least, weights, 0)
    edges = sp.csr_array(np.maximum(directed, directed.T))
    return SimilarityGraph(edges, state.data.item_ids, "item")


def bench_parts(root: Path, *, folds: list[str], settings: dict[str, Any], seed: int) -> Found:
    """Measure test errors of MovieLens-100K with the graph, and with features and moments beside it."""
    parts = chosen_folds(RATING_SETS["ml-100k"].load(root), folds)
    tables = {f"{side}_features": table for side, table in known_tables("ml-100k", root).items()}
    told: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "ratings": ({}, {}),
        "and features": ({}, tables),
        "and dates": ({"time": "drift"}, {}),
        "and both": ({"time": "drift"}, tables),
    }
    rows = []
    for name, (options, known) in told.items():
        found = [_by_part(fold, {"random_state": seed, "device": "cpu"} | settings | options, known) for fold in parts]
        rows.append({"told": name} | {part: np.mean([each[part] for each in found]) for part in found[0]})
    return Found(rows, origin=RATING_SETS["ml-100k"].origin)


def _by_part(fold: Fold, options: dict[str, Any], known: dict[str, Any]) -> dict[str, float]:
    """The errors of factors alone, with the item graph, and with all that is carried; and the parts' strengths."""
    state = AIR.for_ratings(**options).fit(fold.train, **known)._fitted()
    test = fold.test.among(state.data.users, state.data.items)
    times = None if state.drift is None or test.timestamps is None else test.timestamps.astype(np.float64)
    states = {
        "factors alone": replace(state, residual_strength=0.0, further=NOTHING),
        "item graph": replace(state, further=NOTHING),
        "all": state,
    }
    errors = {
        name: rmse(test.ratings, each.scores(test.user_index, test.item_index, True, times))
        for name, each in states.items()
    }
    lasting = state.further.lasting
    return errors | {"features": state.further.features, "moments": 0.0 if lasting is None else lasting.strength}


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
