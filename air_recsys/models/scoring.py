"""How well a model does on data it has not seen, as one number of which larger is better."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError
from air_recsys.metrics import ranking_report
from air_recsys.models.state import FittedState

LIST_LENGTH = 10


def pairs_of(state: FittedState, test: Interactions) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the positions of the pairs of other data, -1 for unknown ids, and their times where the model reads them.

    Examples
    --------
    >>> from air_recsys import GlobalMean
    >>> state = GlobalMean().fit([[1.0, 2.0]])._fitted()
    >>> pairs_of(state, Interactions.from_dense([[5.0, np.nan, 4.0]]))
    (array([0, 0]), array([ 0, -1]), None)
    """
    users = state.data.users.lookup(test.user_ids)[test.user_index]
    items = state.data.items.lookup(test.item_ids)[test.item_index]
    if state.drift is None or test.timestamps is None:
        return users, items, None
    return users, items, state.drift.checked(test.timestamps, users.size)


def list_ndcg(state: FittedState, test: Interactions, score_block: Callable[[np.ndarray], np.ndarray]) -> float:
    """Return the mean NDCG of lists of 10 unseen items, over the users with a known and unseen item in other data.

    Parameters
    ----------
    state : FittedState
    test : Interactions
        What users took since; values do not count.
    score_block : callable
        Takes positions of users, (b,), and returns their scores of all items, (b, n_items).

    Raises
    ------
    DataError
        If no known user has such an item.
    """
    users, items, _ = pairs_of(state, test)
    known = (users >= 0) & (items >= 0)
    users, items = users[known], items[known]
    new = ~np.isin(users * state.data.n_items + items, state.data.pair_index)
    if not new.any():
        raise DataError(
            f"expected items that users of the model have not taken before, found none in {test.n_ratings} pairs"
        )
    shape = state.data.n_users, state.data.n_items
    relevant = sp.csr_array((np.ones(np.count_nonzero(new)), (users[new], items[new])), shape=shape)
    length = min(LIST_LENGTH, state.data.n_items)
    return float(ranking_report(score_block, relevant, state.statistics.seen, k=length)["ndcg_at_k"])
