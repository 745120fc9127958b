"""AIR's learned graphs and their rivals on data on which a graph can be right or wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.metrics.pairwise import cosine_similarity as cosine
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.data.sets.drug_target import YamanishiName
from air_recsys.datasets import (
    DrugTargetData,
    SynNetflix,
    load_movielens,
    load_movielens_genres,
    load_syn_netflix,
    load_yamanishi,
)
from air_recsys.evaluation.completion import hide
from air_recsys.evaluation.graph_quality import group_recovery
from air_recsys.evaluation.results import mean_of
from air_recsys.graphs.postprocess import LEARNED_SHARE, with_pattern
from air_recsys.models import AIR
from benchmarks.graphs.measures import (
    ease,
    gip,
    group_recovery_of,
    jaccard,
    lift,
    neighbor_agreement,
    pair_correlation,
    smooth_graph,
)
from benchmarks.harness import Found, told
from benchmarks.paper.recipes import settings_of

_OFTEN = 20  # ratings of an item
_FIRST = 10.0  # share of a learned graph whose edges come before those of the pattern
Systems = Iterator[tuple[str, Any]]


def bench_syn_netflix(root: Path, **case: Any) -> Found:
    """The groups that the ratings of Syn-Netflix were made from, see `recovered_groups`."""
    return recovered_groups(load_syn_netflix(root), **case)


def recovered_groups(data: SynNetflix, *, missing: list[float], seeds: int, settings: dict[str, Any]) -> Found:
    """Hide a share of the ratings, and ask the graphs of what is left for the true groups."""
    used, single = settings_of("ours", "syn-netflix-70", "AIR") | settings, []
    names = ("user_auc", "item_auc", "user_nmi", "item_nmi")
    cases = [(share, seed) for share in missing for seed in range(seeds)]
    for share, seed in tqdm(cases, unit="mask", desc="graphs syn-netflix"):
        observed = hide(data.matrix, share, seed).observed
        groups = data.user_groups, data.item_groups
        for system, figures in _recoveries(observed, groups, used | {"random_state": seed}):
            row = {"missing": share, "system": system, "seed": seed}
            single.append(row | dict(zip(names, figures, strict=True)))
    return Found(mean_of(single, ("missing", "system")), single, given=told(used), last=seeds - 1)


def _recoveries(observed: Interactions, groups: tuple[np.ndarray, np.ndarray], settings: dict[str, Any]) -> Systems:
    """Each system with the AUC of users and items, and their NMI."""
    model = AIR.for_completion(**settings).fit(observed)
    assert model.user_graph_ is not None
    assert model.item_graph_ is not None
    users, items = group_recovery(model.user_graph_, groups[0]), group_recovery(model.item_graph_, groups[1])
    yield "AIR", (users[0], items[0], users[1], items[1])
    centred = np.zeros((observed.n_users, observed.n_items))
    centred[observed.user_index, observed.item_index] = observed.ratings - observed.ratings.mean()
    rivals: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "cosine": cosine,
        **{f"EASE, decay {decay:g}": partial(ease, decay=decay) for decay in (0.1, 1.0, 10.0)},
        "GIP": gip,
        "smooth signals": smooth_graph,
    }
    for system, similarity in rivals.items():
        sides = zip((centred, centred.T), groups, strict=True)
        users, items = (group_recovery_of(similarity(rows), truth) for rows, truth in sides)
        yield system, (users[0], items[0], users[1], items[1])


def bench_movielens(root: Path, **case: Any) -> Found:
    """The genres of neighbours on MovieLens-100K, see `neighbor_genres`."""
    return neighbor_genres(load_movielens(root, "100k"), load_movielens_genres(root, "100k"), **case)


def neighbor_genres(
    data: Interactions, genres: pd.DataFrame, *, settings: dict[str, Any], by_adam: dict[str, Any]
) -> Found:
    """Compare the genres of every film with those of its ten nearest films; a column "unknown" is no genre."""
    settings = {"random_state": 0} | settings
    by_adam = settings | {"solver": "adam"} | by_adam
    flags = genres.drop(columns="unknown", errors="ignore").loc[data.item_ids].to_numpy()
    alike, counts = jaccard(flags), np.bincount(data.item_index, minlength=data.n_items)
    often, rows = counts >= _OFTEN, []
    for system, similarity in _of_films(data, settings, by_adam):
        agreement = neighbor_agreement(similarity, alike)
        row = {"system": system, "all rated items": float(agreement[counts > 0].mean())}
        of_often = float(agreement[often].mean()) if often.any() else float("nan")
        rows.append(row | {f"items with {_OFTEN} ratings or more": of_often})
    return Found(rows, shown=data, given=told(settings), by_adam=told(by_adam))


def _of_films(data: Interactions, settings: dict[str, Any], by_adam: dict[str, Any]) -> Systems:
    by_item = data.to_csr().T.tocsr()
    # The graph of a posterior knows the pattern: its edges come first, and `item_graph_` leaves the pattern out.
    for kind, given, share in (("AIR", settings, _FIRST), ("AIR trained by Adam", by_adam, LEARNED_SHARE)):
        model = AIR.for_ratings(**given).fit(data)
        learned = model.item_adjacency_
        yield f"{kind}, learned graph with the pattern", with_pattern(learned, by_item, share=share)
        yield f"{kind}, learned graph", learned
        yield f"{kind}, cosine of the factors", 1 + cosine(model.item_factors_)
    yield "pattern alone", with_pattern(sp.csr_array((data.n_items, data.n_items)), by_item)
    ratings = by_item.toarray().astype(np.float32)
    rated = (ratings > 0).astype(np.float32)
    means = ratings.sum(axis=1, keepdims=True) / np.maximum(rated.sum(axis=1, keepdims=True), 1)
    centred = np.where(rated > 0, ratings - means, 0)
    yield "cosine, ratings less the item's mean", cosine(centred)
    yield "cosine, ratings", cosine(ratings)
    yield "cosine, 0/1", cosine(rated)
    for decay in (200.0, 500.0, 1000.0, 2000.0, 4000.0):
        yield f"EASE, 0/1, decay {decay:g}", ease(rated, decay)
    yield "smooth signals, centred", smooth_graph(centred)
    # Of unit length: as they are, items with few ratings are near to all.
    yield "smooth signals, 0/1", smooth_graph(rated / np.maximum(np.linalg.norm(rated, axis=1, keepdims=True), 1))
    yield "random", np.zeros((data.n_items, data.n_items), dtype=np.float32)


def bench_drug_targets(root: Path, *, sets: list[YamanishiName], settings: dict[str, Any]) -> Found:
    """Chemistry and sequences of neighbours, see `similarities_never_seen`."""
    return similarities_never_seen({name: load_yamanishi(root, name) for name in sets}, settings)


def similarities_never_seen(sets: Mapping[Any, DrugTargetData], settings: dict[str, Any]) -> Found:
    """Compare similarities from interactions alone with chemical and sequence similarities."""
    chosen, rows = {"random_state": 0} | settings, []
    for name, data in sets.items():
        model = AIR.for_interactions(**chosen).fit(data.interactions)
        matrix = data.interactions.to_dense()
        sides = (
            ("drugs", matrix, model.user_adjacency_, data.drug_similarity),
            ("targets", matrix.T, model.item_adjacency_, data.target_similarity),
        )
        for side, own, learned, similarities in sides:
            if similarities is None or learned is None:
                continue
            truth = similarities.to_numpy()
            for system, similarity in _of_interactions(own, learned):
                figures = {"spearman": pair_correlation(similarity, truth), "top_10": lift(similarity, truth)}
                rows.append({"set": name.upper(), "side": side, "system": system} | figures)
    return Found(rows, given=told(chosen))


def _of_interactions(rows: np.ndarray, learned: Any) -> Systems:
    yield "AIR, learned graph with the pattern", with_pattern(learned, rows)
    yield "AIR, learned graph", learned
    yield "pattern alone", with_pattern(sp.csr_array(learned.shape), rows)
    yield "GIP", gip(rows)
    yield "cosine", cosine(rows)
    for decay in (0.1, 1.0, 10.0):
        yield f"EASE, decay {decay:g}", ease(rows, decay)
    yield "smooth signals", smooth_graph(rows)
