"""MovieLens: whether an item's nearest neighbours have its genres."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.results import ResultTable
from air_recsys.graphs.postprocess import LEARNED_SHARE, with_pattern
from air_recsys.models import AIR
from benchmarks.graphs.measures import jaccard, neighbor_agreement
from benchmarks.graphs.rivals import cosine, ease, smooth_graph

EASE_DECAYS = (200.0, 500.0, 1000.0, 2000.0, 4000.0)
_OFTEN = 20
_FIRST = 10.0  # share of a learned graph whose edges come before those of the pattern


def bench_movielens(
    data: Interactions,
    genres: pd.DataFrame,
    settings: dict[str, Any] | None = None,
    by_adam: dict[str, Any] | None = None,
) -> ResultTable:
    """Compare the genres of every film with those of its ten nearest films.

    Parameters
    ----------
    genres : DataFrame of bool
        One row a film, indexed by id; a column "unknown" is no genre.
    settings : dict, optional
        Parameters that differ from `AIR.for_ratings`.
    by_adam : dict, optional
        Those of the model that `Adam` trains; by default the same.
    """
    settings = {"random_state": 0} | (settings or {})
    by_adam = settings | {"solver": "adam"} | (by_adam or {})
    flags = genres.drop(columns="unknown", errors="ignore").loc[data.item_ids].to_numpy()
    alike, counts = jaccard(flags), np.bincount(data.item_index, minlength=data.n_items)
    often = counts >= _OFTEN
    table = ResultTable(
        "MovieLens: genres of neighbours",
        "mean Jaccard index of the genres of an item and its 10 nearest items, ties at random; all ratings; "
        f"{data!r}; AIR.for_ratings with {settings}, trained by Adam with {by_adam}",
    )
    for system, similarity in _systems(data, settings, by_adam):
        agreement = neighbor_agreement(similarity, alike)
        row = {"system": system, "all rated items": float(agreement[counts > 0].mean())}
        of_often = float(agreement[often].mean()) if often.any() else float("nan")
        table.rows.append(row | {f"items with {_OFTEN} ratings or more": of_often})
    return table


def _systems(data: Interactions, settings: dict[str, Any], by_adam: dict[str, Any]) -> Iterator[tuple[str, Any]]:
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
    for decay in EASE_DECAYS:
        yield f"EASE, 0/1, decay {decay:g}", ease(rated, decay)
    yield "smooth signals, centred", smooth_graph(centred)
    # Of unit length: as they are, items with few ratings are near to all.
    yield "smooth signals, 0/1", smooth_graph(rated / np.maximum(np.linalg.norm(rated, axis=1, keepdims=True), 1))
    yield "random", np.zeros((data.n_items, data.n_items), dtype=np.float32)
