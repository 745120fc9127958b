"""Explanations: whether their parts add up, what they leave over, and which parts carry the scores."""

from __future__ import annotations

import copy
import time
from typing import Any

import numpy as np
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.results import ResultTable
from air_recsys.models import AIR
from air_recsys.models.explanation import Explanation


def bench_explanations(
    data: Interactions, models: dict[str, AIR], n_pairs: int = 1000, seed: int = 0, protocol: str = ""
) -> ResultTable:
    """Train each model on all ratings, and explain random pairs of a user and an item, rated or not.

    Parameters
    ----------
    models : dict of str to AIR
        By their names in the table.
    n_pairs : int
    seed : int
        Of the pairs.
    protocol : str
        Where the data came from.

    Returns
    -------
    ResultTable
        A row a model: the largest difference between the sum of the parts and the score; mean absolute values of
        parts, in shares of that of the personal score; how far the personal scores move when all users are solved
        again from their own ratings (`solved_again`, root mean squares over all pairs, in shares of that of the
        scores); and milliseconds of a call, the median.
    """
    table = ResultTable(
        "Explanations",
        f"{protocol}; {n_pairs} random pairs, seed {seed}; CPU, one process",
        notes=["the personal score is what mean and biases leave; the edges of the item graph are another view of it"],
    )
    for name, model in tqdm(models.items(), unit="model", desc="bench explanations"):
        model.fit(data)
        found, seconds = _explained(model, n_pairs, seed)
        table.rows.append(
            {
                "model": name,
                **_shares(found),
                "solved_again": _solved_again(model, data),
                "ms": 1000 * float(np.median(seconds)),
            }
        )
    return table


def _explained(model: AIR, n_pairs: int, seed: int) -> tuple[list[Explanation], list[float]]:
    """The explanations of random pairs, and the seconds of each."""
    rng, data = np.random.default_rng(seed), model.interactions_
    pairs = zip(rng.choice(data.user_ids, n_pairs), rng.choice(data.item_ids, n_pairs), strict=True)
    found, seconds = [], []
    for user, item in pairs:
        start = time.perf_counter()
        found.append(model.explain(user, item))
        seconds.append(time.perf_counter() - start)
    return found, seconds


def _shares(found: list[Explanation]) -> dict[str, float]:
    """The figures of explanations."""
    parts: dict[str, Any] = {
        "remainder": [each.remainder for each in found],
        "rated_items": [each.rated_items.total for each in found],
        "similar_users": [each.similar_users.total for each in found],
        "choice_of_items": [each.pattern for each in found],
    }
    personal = np.abs(np.sum(list(parts.values()), axis=0)).mean()
    parts["item_graph_edges"] = [each.graph_edges.total for each in found]
    error = max(abs(each.total() - each.score) for each in found)
    return {"largest_error": error} | {name: np.abs(part).mean() / personal for name, part in parts.items()}


def _solved_again(model: AIR, data: Interactions) -> float:
    """How far personal scores move when `partial_fit` solves all users again from the same ratings."""
    again = copy.deepcopy(model).partial_fit(data)
    before, after = (each.user_factors_.astype(float) @ each.item_factors_.T.astype(float) for each in (model, again))
    return float(np.sqrt(np.mean((after - before) ** 2) / np.mean(before**2)))
