"""Lists of a model against likes that it has not seen, beside the lists of what is popular."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.advantage import Advantage, advantage_of, with_interval
from air_recsys.evaluation.lists import Lister, Popularity, Recommending
from air_recsys.evaluation.resampling import UserResamples
from air_recsys.metrics import user_measures
from air_recsys.models import Recommender

_K = 10
_POPULAR = "most popular"


class Relevant(NamedTuple):
    """Unseen likes by positions in the training data, of the users who have any."""

    users: np.ndarray  # (b,)
    items: Any  # csr_array (b, n_items), 1 for each


def compare_lists(
    model: Recommender, training: Interactions, test: Interactions
) -> tuple[list[dict[str, Any]], Advantage | None]:
    """Return NDCG and recall of lists of ten unseen items, of a model and of what is popular, and the advantage.

    There are no rows where no test like is of a user and an item of the training data.
    """
    relevant = relevant_of(training, test)
    if relevant is None:
        return [], None
    resamples = UserResamples(relevant.users)
    listers: dict[str, Lister] = {
        type(model).__name__: Recommending(model),
        _POPULAR: Popularity().fit(training),
    }
    rows, drawn = [], {}
    for name, lister in listers.items():
        by_user = _measures(lister, relevant)
        drawn[name] = resamples.mean(next(iter(by_user.values())))
        means = {measure: float(values.mean()) for measure, values in by_user.items()}
        rows.append({"model": name} | with_interval(means, drawn[name]))
    return rows, advantage_of(rows, drawn, higher_is_better=True)


def list_measures(model: Recommender, training: Interactions, test: Interactions) -> dict[str, float]:
    """Return NDCG and recall of lists of ten unseen items; nothing where no test like is of a known user and item."""
    relevant = relevant_of(training, test)
    if relevant is None:
        return {}
    return {name: float(values.mean()) for name, values in _measures(Recommending(model), relevant).items()}


def relevant_of(training: Interactions, test: Interactions) -> Relevant | None:
    """Return the test pairs rated above 0 whose user and item are known; None without any.

    Examples
    --------
    >>> training = Interactions.from_dense([[1, np.nan], [1, 1]])
    >>> found = relevant_of(training, Interactions.from_dense([[np.nan, 1], [np.nan, np.nan]]))
    >>> found.users.tolist(), found.items.toarray().tolist()
    ([0], [[0.0, 1.0]])
    """
    users = training.users.lookup(test.user_ids[test.user_index])
    items = training.items.lookup(test.item_ids[test.item_index])
    counted = (users >= 0) & (items >= 0) & (test.ratings > 0)
    if not counted.any():
        return None
    shape = training.n_users, training.n_items
    known = sp.csr_array((np.ones(counted.sum()), (users[counted], items[counted])), shape=shape)
    chosen = np.unique(users[counted])
    return Relevant(chosen, known[chosen])


def _measures(lister: Lister, relevant: Relevant) -> dict[str, np.ndarray]:
    k = min(_K, relevant.items.shape[1])
    lists = lister.lists(relevant.users, k)
    lists = np.pad(lists, ((0, 0), (0, k - lists.shape[1])), constant_values=-1)
    measures = user_measures(lists, relevant.items, k)
    return {f"{name}@{k}": measures[f"{name}_at_k"] for name in ("ndcg", "recall")}
