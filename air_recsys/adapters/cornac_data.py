"""What Cornac's data sets hold, as interactions under their raw ids."""

from __future__ import annotations

from typing import Any

import numpy as np

from air_recsys.models.ranking.ties import best_of
from air_recsys.storage.validation import check_integer, needs_extra

with needs_extra("cornac"):
    from cornac.data import Dataset

Triples = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Indices of users, indices of items, ratings."""


def raw_ids(dataset: Dataset) -> tuple[list, list]:
    """Return the raw ids in index order; the maps may hold those of a test set, which come last."""
    maps = (dataset.uid_map, dataset.num_users), (dataset.iid_map, dataset.num_items)
    users, items = (sorted(ids, key=ids.__getitem__)[:size] for ids, size in maps)
    return users, items


def triples_of(dataset: Dataset) -> Triples:
    """Return the ratings of a data set."""
    users, items, ratings = (np.asarray(column) for column in dataset.uir_tuple)
    return users, items, ratings


def ranked(scores: Any, item_indices: Any, k: int) -> np.ndarray:
    """Return items, best first by scores that stand in their order, ties by index; behind the first k by index.

    Scores that differ by rounding alone tie, see `air_recsys.models.ranking.ties`; Cornac leaves such items in any
    order.

    Examples
    --------
    >>> ranked([1.0, 3.0, 3.0], [4, 7, 2], -1).tolist()
    [2, 7, 4]
    """
    given = np.arange(len(scores)) if item_indices is None else np.asarray(item_indices)
    if not given.size:
        return given
    by_index = np.argsort(given, kind="stable")
    sorted_scores = np.asarray(scores, dtype=np.float64)[by_index]
    n = given.size if k == -1 else min(check_integer("k", k, minimum=1), given.size)
    first = best_of(sorted_scores[None], n, float(np.abs(sorted_scores).max()))[0][0]
    return given[np.r_[by_index[first], np.delete(by_index, first)]]
