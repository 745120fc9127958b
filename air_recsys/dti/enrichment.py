"""How many of the hidden interactions stand at the top of the list of predicted ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from air_recsys.exceptions import DataError
from air_recsys.interactions import Interactions
from air_recsys.metrics.checks import check_pairs
from air_recsys.splits.base import as_random_state, check_fraction
from air_recsys.validation import RandomState


def enrichment(y_true: Any, y_score: Any, share: float = 0.01) -> float:
    """Return how much more frequent interactions are in the top share of a list than in all of it.

    Parameters
    ----------
    y_true : array_like of {0, 1}, shape (n,)
        Whether a pair interacts; at least one does.
    y_score : array_like of float, shape (n,)
    share : float
        Of the list, in (0, 1); the number of pairs is rounded up.

    Returns
    -------
    float
        1 for a random order, at most min(1 / share, n / n_positive). Of pairs with equal scores at the cut, the
        expected number counts.

    Raises
    ------
    DataError, ParameterError

    Examples
    --------
    >>> enrichment([1, 0, 0, 0], [0.9, 0.1, 0.2, 0.3], share=0.25)
    4.0
    """
    truth, score = check_pairs(y_true, y_score, "y_score")
    if not truth.any():
        raise DataError(f"expected at least one label 1 in y_true, found only 0 in {truth.size} values")
    n_top = int(np.ceil(check_fraction("share", share) * truth.size))
    cut = np.partition(score, truth.size - n_top)[truth.size - n_top]
    above, tied = score > cut, score == cut
    found = truth[above].sum() + truth[tied].mean() * (n_top - above.sum())
    return float(found / n_top / truth.mean())


def hidden_enrichment(
    model: Any,
    interactions: Interactions,
    share: float = 0.01,
    hidden: float = 0.1,
    random_state: RandomState = 0,
    **fit: Any,
) -> dict[str, float]:
    """Hide a share of the interactions among as large a share of all pairs, fit, and look where they are ranked.

    Every pair that the model is not shown as an interaction is ranked: hidden ones, and all zeros.

    Parameters
    ----------
    model : DrugTargetAIR
    interactions : Interactions
        All pairs, with 0 and 1.
    share : float
        Of the list.
    hidden : float
        Share of the interactions to hide. They are shown as zeros, as they would be before they are discovered.
    random_state : int, RandomState, Generator or None
    **fit
        For `DrugTargetAIR.fit`, such as similarities.

    Returns
    -------
    dict
        enrichment, found (share of the hidden interactions in the top), n_hidden, n_top.
    """
    positive = np.flatnonzero(interactions.ratings == 1)
    n_hidden = max(1, round(check_fraction("hidden", hidden) * positive.size))
    chosen = as_random_state(random_state).permutation(positive)[:n_hidden]
    shown = interactions.ratings.copy()
    shown[chosen] = 0
    blinded = _with_ratings(interactions, shown)
    scores = model.fit(blinded, **fit).open_scores_[interactions.user_index, interactions.item_index]
    ranked = shown == 0
    truth = interactions.ratings[ranked]
    factor = enrichment(truth, scores[ranked], share)
    n_top = int(np.ceil(share * truth.size))
    found = factor * n_top * truth.mean() / n_hidden
    return {"enrichment": factor, "found": float(found), "n_hidden": float(n_hidden), "n_top": float(n_top)}


def _with_ratings(interactions: Interactions, ratings: np.ndarray) -> Interactions:
    dense = np.full((interactions.n_users, interactions.n_items), np.nan)
    dense[interactions.user_index, interactions.item_index] = ratings
    return Interactions.from_dense(dense, interactions.user_ids, interactions.item_ids)
