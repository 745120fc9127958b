"""Lists of a `GraphRanker` by the positions of users and items, for hosts that know no other ids."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp

from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.fold_in import new_terms
from air_recsys.models.graph_ranker.lists import best_lists
from air_recsys.models.graph_ranker.ranker import GraphRanker
from air_recsys.models.graph_ranker.ranker_state import RankerState, ready_state
from air_recsys.models.graph_ranker.smoothings import Smoothing, Term


def lists_of_users(
    model: GraphRanker,
    users: np.ndarray,
    n: int,
    *,
    rows: Csr | None = None,
    seen: Csr | None = None,
    allowed: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The n items with the highest scores of trained or of new users, best first, and these scores.

    A user without any item gets the items that most users have.

    Parameters
    ----------
    model : GraphRanker
        Trained.
    users : ndarray of int, shape (b,)
        Positions of trained users; only their number counts with `rows`.
    n : int
    rows : csr_array, shape (b, n_items), optional
        1 for every item of a new user: the users are folded in.
    seen : csr_array, shape (b, n_items), optional
        Stored entries, none of them 0, are items to leave out.
    allowed : ndarray of int, optional
        The items that a list may hold, ascending.

    Returns
    -------
    items, scores : ndarray, shape (b, n)
        -1 and -inf where no item is left.

    Examples
    --------
    >>> taken = sp.csr_array(np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 1, 1]], dtype=np.float32))
    >>> model = GraphRanker(settings={}, device="cpu").fit(taken)
    >>> lists_of_users(model, np.array([0]), 1, seen=taken[[0]])[0].tolist()
    [[2]]
    """
    ranker = ready_state(model._fitted())
    n_items = ranker.fitted.data.n_items
    length = min(n, n_items if allowed is None else allowed.size)
    if rows is None:
        terms, places, ends = ranker.terms, users, ranker.own.indptr
        counts = ends[users + 1] - ends[users]
    else:
        terms, places = new_terms(ranker, rows, rows, np.full(users.size, -1)), np.arange(users.size)
        counts = np.diff(rows.indptr)
    items, scores = np.full((users.size, n), -1), np.full((users.size, n), -np.inf)

    def rank(some: np.ndarray, terms: Mapping[str, Term], weights: Mapping[str, float], places: np.ndarray) -> None:
        hidden = None if seen is None else seen[some]
        found = best_lists(terms, weights, places, length, n_items, seen=hidden, allowed=allowed)
        items[some, :length], scores[some, :length] = found

    known, others = np.flatnonzero(counts), np.flatnonzero(counts == 0)
    rank(known, terms, ranker.settings.weights, places[known])
    if others.size:
        rank(others, {"popular": _popularity(ranker)}, {"popular": 1.0}, np.zeros(others.size, dtype=np.int64))
    return items, scores


def _popularity(ranker: RankerState) -> Smoothing:
    """The scores of one user of whom nothing is known: the share of the users who have each item."""
    shares = ranker.fitted.statistics.item_counts / ranker.fitted.data.n_users
    return Smoothing(sp.csr_array(np.ones((1, 1), dtype=np.float32)), shares[None].astype(np.float32))
