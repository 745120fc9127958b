"""The share of hidden interactions at the top of the list of predicted ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.data.splits.base import as_random_state, check_fraction
from air_recsys.exceptions import DataError
from air_recsys.metrics.checks import check_pairs
from air_recsys.models.drug_target.pairs import as_pairs, with_zeros
from air_recsys.storage.validation import RandomState


def enrichment(y_true: Any, y_score: Any, share: float = 0.01) -> float:
    """The frequency of interactions in the top share of a list, divided by that in the whole list.

    Parameters
    ----------
    y_true : array_like of {0, 1}, shape (n,)
        Whether a pair interacts; at least one does.
    y_score : array_like of float, shape (n,)
    share : float
        Share of the list, in (0, 1); the number of pairs is rounded up.

    Returns
    -------
    float
        1 for a random order, at most min(1 / share, n / n_positive). For equal scores at the cut, the expected number
        counts.

    Raises
    ------
    DataError, ParameterError

    Examples
    --------
    >>> enrichment([1, 0, 0, 0], [0.9, 0.1, 0.2, 0.3], share=0.25)
    4.0
    """
    truth, score = _labelled(y_true, y_score)
    n_top = int(np.ceil(check_fraction("share", share) * truth.size))
    cut = np.partition(score, truth.size - n_top)[truth.size - n_top]
    above, tied = score > cut, score == cut
    n_positive = truth[above].sum() + truth[tied].mean() * (n_top - above.sum())
    return float(n_positive / n_top / truth.mean())


def enrichment_curve(y_true: Any, y_score: Any) -> pd.DataFrame:
    """The hit rate and the enrichment of the top of a list, for tops of many sizes.

    Parameters
    ----------
    y_true, y_score : array_like, shape (n,)
        As in `enrichment`.

    Returns
    -------
    DataFrame
        n_top (1, 2, 5, 10, ... and n), share (n_top / n), hit_rate (share of interactions in the top), found (share of
        all interactions that are in the top), and enrichment. Pairs with equal scores at a cut count as in
        `enrichment`.

    Raises
    ------
    DataError

    Examples
    --------
    >>> enrichment_curve([1, 1, 0, 0], [0.9, 0.1, 0.2, 0.0])
       n_top  share  hit_rate  found  enrichment
    0      1   0.25       1.0    0.5         2.0
    1      2   0.50       0.5    0.5         1.0
    2      4   1.00       0.5    1.0         1.0
    """
    truth, score = _labelled(y_true, y_score)
    levels, size = np.unique(-score, return_inverse=True)[1], truth.size
    totals, hits = np.bincount(levels), np.bincount(levels, truth)
    ends = np.concatenate([[0], np.cumsum(totals)])
    found = np.concatenate([[0.0], np.cumsum(hits)])
    scale = np.outer(10.0 ** np.arange(np.ceil(np.log10(size)) + 1), (1, 2, 5)).ravel()
    tops = np.append(scale[scale < size], size).astype(np.int64)
    inside = np.interp(tops, ends, found)  # equal scores share their interactions
    return pd.DataFrame(
        {
            "n_top": tops,
            "share": tops / size,
            "hit_rate": inside / tops,
            "found": inside / truth.sum(),
            "enrichment": inside / tops / truth.mean(),
        }
    )


def _labelled(y_true: Any, y_score: Any) -> tuple[np.ndarray, np.ndarray]:
    truth, score = check_pairs(y_true, y_score, "y_score")
    if not truth.any():
        raise DataError(f"expected at least one label 1 in y_true, found only 0 in {truth.size} values")
    return truth, score


def hidden_enrichment(
    model: Any,
    interactions: Any,
    share: float = 0.01,
    hidden: float = 0.1,
    random_state: RandomState = 0,
    **fit: Any,
) -> dict[str, float]:
    """Hide a share of the interactions, fit, and return their enrichment in the list of predicted ones.

    The list ranks every pair that is not an interaction for the model: hidden ones, and all zeros.

    Parameters
    ----------
    model : DrugTargetAIR
    interactions : DataFrame, Interactions, sparse matrix or ndarray
        As for `DrugTargetAIR.fit`.
    share : float
        Of the list.
    hidden : float
        Share of the interactions to hide. They are zeros for the model, as before their discovery.
    random_state : int, RandomState, Generator or None
    **fit
        Further arguments of `DrugTargetAIR.fit`, such as similarities.

    Returns
    -------
    dict
        enrichment, found (share of the hidden interactions in the top), n_hidden, n_top.
    """
    interactions = with_zeros(as_pairs(interactions))
    positive = np.flatnonzero(interactions.ratings == 1)
    n_hidden = max(1, round(check_fraction("hidden", hidden) * positive.size))
    chosen = as_random_state(random_state).permutation(positive)[:n_hidden]
    shown = interactions.ratings.copy()
    shown[chosen] = 0
    pairs = interactions.user_index, interactions.item_index
    values = interactions.to_dense()
    values[pairs] = shown
    blinded = Interactions.from_dense(values, interactions.user_ids, interactions.item_ids)
    scores = model.fit(blinded, **fit).open_scores_[pairs]
    ranked = shown == 0
    truth = interactions.ratings[ranked]
    factor = enrichment(truth, scores[ranked], share)
    n_top = int(np.ceil(share * truth.size))
    recall = factor * n_top * truth.mean() / n_hidden
    return {"enrichment": factor, "found": float(recall), "n_hidden": float(n_hidden), "n_top": float(n_top)}
