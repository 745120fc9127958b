"""The k-core: the ratings among users and items that have enough of them."""

from __future__ import annotations

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.storage.validation import check_integer


def k_core(interactions: Interactions, k_user: int = 5, k_item: int = 5) -> np.ndarray:
    """Return the largest set of ratings in which every user has `k_user` and every item `k_item` of them.

    Users and items with too few ratings are dropped in turn until none is left to drop; the order does not matter.

    Parameters
    ----------
    interactions : Interactions
    k_user, k_item : int
        Ratings that a user, and an item, must have to stay, at least 1.

    Returns
    -------
    ndarray of bool, shape (n_ratings,)
        All False where the data has no such ratings. `Interactions.select` keeps the dropped users and items as empty
        rows and columns; ``Interactions.from_frame(data.select(mask).to_frame())`` forgets them.

    Examples
    --------
    >>> nan = float("nan")
    >>> data = Interactions.from_dense([[5, 3, nan], [1, 2, nan], [nan, 4, 4]])
    >>> k_core(data, k_user=2, k_item=2)
    array([ True,  True,  True,  True, False, False])

    References
    ----------
    Seidman: Network structure and minimum degree, Social Networks 5(3), 1983, for two kinds of nodes.
    """
    check_integer("k_user", k_user, minimum=1)
    check_integer("k_item", k_item, minimum=1)
    users, items = interactions.user_index, interactions.item_index
    kept = np.ones(interactions.n_ratings, dtype=bool)
    while True:
        user_counts = np.bincount(users[kept], minlength=interactions.n_users)
        item_counts = np.bincount(items[kept], minlength=interactions.n_items)
        enough = kept & (user_counts[users] >= k_user) & (item_counts[items] >= k_item)
        if np.array_equal(enough, kept):
            return kept
        kept = enough
