"""What a notebook shows of `Interactions`."""

from __future__ import annotations

from typing import Any

import numpy as np

from air_recsys.storage.markup import Markup, bar, card, card_table, number_text

_MOST_VALUES = 11
_N_ROWS = 3


RatedPairs = Any
"""`Interactions`, whose module imports this one."""


def interactions_card(data: RatedPairs) -> str:
    """Return sizes, the scale, how often each rating is given, and the first ratings as HTML.

    Examples
    --------
    >>> from air_recsys import Interactions
    >>> shown = interactions_card(Interactions.from_dense([[5.0, 1.0], [2.0, float("nan")]]))
    >>> "3 (75 % of all pairs)" in shown, "1 to 5, 2.667 on average" in shown
    (True, True)
    """
    ratings, rated = data.ratings, data.n_rated
    facts = {
        "users": _side(data.user_index, data.n_users, rated[0]),
        "items": _side(data.item_index, data.n_items, rated[1]),
        "ratings": f"{data.n_ratings:,} ({100 * data.density:.3g} % of all pairs)",
        "scale": f"{ratings.min():g} to {ratings.max():g}, {ratings.mean():.4g} on average",
        "limits": None if data.relations is None else f"{np.count_nonzero(data.relations):,} of the ratings (< or >)",
        "with each rating": ", ".join(_beside(data)) or None,
        "features": _features(data),
    }
    return card("Interactions", facts, *_spread(ratings), _first(data))


def _side(index: np.ndarray, n_all: int, n_rated: int) -> str:
    counts = np.bincount(index, minlength=n_all)
    counts = counts[counts > 0]
    without = f", {n_all - n_rated:,} without ratings" if n_rated < n_all else ""
    return f"{n_all:,}{without}; {counts.min():,} to {counts.max():,} ratings each, median {np.median(counts):g}"


def _beside(data: RatedPairs) -> list[str]:
    found = {"a timestamp": data.timestamps, "a weight": data.weights}
    return [name for name, values in found.items() if values is not None]


def _features(data: RatedPairs) -> str | None:
    known = [f"{n} of {side}" for side, n in zip(("users", "items"), data.n_features, strict=True) if n]
    return ", ".join(known) or None


def _spread(ratings: np.ndarray) -> list[Markup]:
    """Return one row per value, where ratings have few of them."""
    values, counts = np.unique(ratings, return_counts=True)
    if not 1 < values.size <= _MOST_VALUES:
        return []
    rows = [
        (f"{value:g}", number_text(int(count)), bar(count / counts.max()))
        for value, count in zip(values, counts, strict=True)
    ]
    return [card_table("How often each rating is given", ["rating", "ratings", ""], rows)]


def _first(data: RatedPairs) -> Markup:
    users, items = data.user_ids[data.user_index[:_N_ROWS]], data.item_ids[data.item_index[:_N_ROWS]]
    rows = zip(users.astype(str), items.astype(str), data.ratings[:_N_ROWS].tolist(), strict=True)
    return card_table("The first ratings", ["user", "item", "rating"], rows)
