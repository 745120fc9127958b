"""Models with a known structure, and what the tests of explanations ask of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from air_recsys import AIR, Interactions

CPU = {"device": "cpu", "random_state": 0}
N_USERS, N_ITEMS = 40, 30
USERS = [f"u{user:02}" for user in range(N_USERS)]
ALL = 10**6


def planted(density: float = 0.6, seed: int = 0) -> np.ndarray:
    """Two groups of users and two of items; each group of users loves one and dislikes the other, with noise."""
    rng = np.random.default_rng(seed)
    alike = np.equal.outer(np.arange(N_USERS) % 2, np.arange(N_ITEMS) % 2)
    ratings = np.where(alike, 4.5, 1.5) + 0.3 * rng.normal(size=alike.shape)
    return np.where(rng.random(alike.shape) < density, ratings.clip(1, 5), np.nan)


def data(**options: Any) -> Interactions:
    """The same with ids."""
    return Interactions.from_dense(planted(**options), USERS, range(N_ITEMS))


def binary() -> Interactions:
    """1 where a group loves an item, else 0."""
    ones = np.where(np.isnan(planted(density=1.0)), 0.0, planted(density=1.0) > 3)
    return Interactions.from_dense(np.where(np.isnan(planted(seed=1)), np.nan, ones), USERS, range(N_ITEMS))


def ratings_model(**overrides: Any) -> AIR:
    """A small model for ratings."""
    options = {
        "n_factors": 3,
        "weight_decay": 2.0,
        "graph_neighbors": 5,
        "n_epochs": 1500,
        "n_batches": 1,
        "clip": False,
        "scale": False,  # the decay is one for the unit of these ratings
        "solver": "adam",
    }
    return AIR.for_ratings(**CPU | options | overrides)


MODELS = {
    "ratings": lambda: ratings_model(user_graph_reg=1e-3, item_graph_reg=1e-3).fit(data()),
    "interactions": lambda: AIR.for_interactions(n_epochs=1500, **CPU).fit(binary()),
    "completion": lambda: AIR.for_completion(n_epochs=2000, init_std=0.05, **CPU).fit(data()),
}


def random_pairs(model: AIR, n_pairs: int, seed: int = 0) -> Iterator[tuple[Any, Any]]:
    """Pairs of a known user and a known item, rated or not."""
    rng, known = np.random.default_rng(seed), model.interactions_
    return zip(rng.choice(known.user_ids, n_pairs), rng.choice(known.item_ids, n_pairs), strict=True)


def figures(model: AIR, n_pairs: int) -> tuple[float, float, float]:
    """The largest error of the sum, and the mean size of remainder and of personal score."""
    found = [(model.predict(*pair)[0], model.explain(*pair)) for pair in random_pairs(model, n_pairs)]
    personal = [known.rated_items.total + known.similar_users.total + known.remainder for _, known in found]
    assert all(known.score == score for score, known in found)
    error = max(abs(known.total() - score) for score, known in found)
    return error, float(np.mean([abs(known.remainder) for _, known in found])), float(np.mean(np.abs(personal)))


def by_id(table: pd.DataFrame, column: str = "contribution") -> pd.Series:
    """A column of a table by the ids of its rows."""
    return table.set_index(table.columns[0])[column].sort_index()
