"""Quality of lists of k recommended items, averaged over the users; `precision_at_k` has the notation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from air_recsys.exceptions import DataError, DataWarning, ParameterError
from air_recsys.metrics.checks import Csr, check_sparse
from air_recsys.storage.validation import check_integer


def precision_at_k(recommended: Any, relevant: Any, k: int = 10) -> float:
    r"""Return the mean share of relevant items among the first k recommended.

    .. math:: \mathrm{precision@k} = \tfrac1k \sum_{j=1}^k h_j

    User u has the relevant items :math:`R_u` and the recommended items :math:`i_1, \dots, i_k`; :math:`h_j = 1` where
    :math:`i_j \in R_u`, else 0.

    Parameters
    ----------
    recommended : array_like of int, shape (n_users, at least k)
        Item indices, best first; -1 for a place that could not be filled, which counts as a miss.
    relevant : SciPy sparse, shape (n_users, n_items)
        Non-zero where the item is relevant for the user.
    k : int
        Length of the list, at least 1.

    Returns
    -------
    float
        In [0, 1], the mean over the users with relevant items; the others do not count.

    Raises
    ------
    ParameterError
        If k is below 1 or larger than the number of recommended columns.
    DataError
        For shapes that do not match, indices that are no items, an item recommended twice to a user, or where no
        user has relevant items.

    Examples
    --------
    >>> from scipy import sparse
    >>> relevant = sparse.csr_array([[1, 1, 0, 0], [0, 0, 0, 1]])
    >>> precision_at_k([[0, 2], [3, -1]], relevant, k=2)
    0.5
    """
    return _mean("precision_at_k", recommended, relevant, k)


def recall_at_k(recommended: Any, relevant: Any, k: int = 10) -> float:
    r"""Return the mean share of the relevant items that are among the first k recommended.

    .. math:: \mathrm{recall@k} = \tfrac{1}{|R_u|} \sum_{j=1}^k h_j

    The sum is divided by the number of relevant items, also where that is larger than k.

    Parameters, value and errors are those of `precision_at_k`.

    Examples
    --------
    >>> from scipy import sparse
    >>> relevant = sparse.csr_array([[1, 1, 0, 0], [0, 0, 0, 1]])
    >>> recall_at_k([[0, 2], [3, -1]], relevant, k=2)
    0.75
    """
    return _mean("recall_at_k", recommended, relevant, k)


def ndcg_at_k(recommended: Any, relevant: Any, k: int = 10) -> float:
    r"""Return the mean normalised discounted cumulative gain with binary gains.

    .. math:: \mathrm{NDCG@k} = \frac{\sum_{j=1}^{k} h_j / \log_2(j + 1)}
              {\sum_{j=1}^{\min(k, |R_u|)} 1 / \log_2(j + 1)}

    The ideal list is truncated at k, so a list of k relevant items has 1 however many there are.

    Parameters, value and errors are those of `precision_at_k`.

    Examples
    --------
    >>> from scipy import sparse
    >>> relevant = sparse.csr_array([[1, 1, 0, 0], [0, 0, 0, 1]])
    >>> round(ndcg_at_k([[0, 2], [3, -1]], relevant, k=2), 4)
    0.8066

    References
    ----------
    Järvelin, Kekäläinen: Cumulated gain-based evaluation of IR techniques, ACM TOIS 20(4), 2002.
    """
    return _mean("ndcg_at_k", recommended, relevant, k)


def map_at_k(recommended: Any, relevant: Any, k: int = 10) -> float:
    r"""Return the mean average precision of the first k recommended.

    .. math:: \mathrm{AP@k} = \frac{1}{\min(k, |R_u|)} \sum_{j=1}^k h_j \, \mathrm{precision@}j

    Parameters, value and errors are those of `precision_at_k`.

    Examples
    --------
    >>> from scipy import sparse
    >>> relevant = sparse.csr_array([[1, 1, 0, 0], [0, 0, 0, 1]])
    >>> map_at_k([[0, 2], [3, -1]], relevant, k=2)
    0.75
    """
    return _mean("map_at_k", recommended, relevant, k)


def mrr_at_k(recommended: Any, relevant: Any, k: int = 10) -> float:
    r"""Return the mean reciprocal rank of the first relevant item among the first k recommended.

    .. math:: \mathrm{RR@k} = 1 / \min\{j \le k : h_j = 1\}, \quad 0 \text{ where no } h_j = 1

    Parameters, value and errors are those of `precision_at_k`.

    Examples
    --------
    >>> from scipy import sparse
    >>> relevant = sparse.csr_array([[1, 1, 0, 0], [0, 0, 0, 1]])
    >>> mrr_at_k([[2, 0], [3, -1]], relevant, k=2)
    0.75
    """
    return _mean("mrr_at_k", recommended, relevant, k)


def user_measures(recommended: Any, relevant: Any, k: int = 10) -> dict[str, np.ndarray]:
    """Return every measure of each user with relevant items, users ascending: what the functions here are means of.

    Parameters and errors are those of `precision_at_k`.

    Returns
    -------
    dict of str to ndarray, shape (number of users with relevant items,)
        By the names of the functions.

    Examples
    --------
    >>> from scipy import sparse
    >>> relevant = sparse.csr_array([[1, 1, 0, 0], [0, 0, 0, 1]])
    >>> user_measures([[0, 2], [3, -1]], relevant, k=2)["recall_at_k"].tolist()
    [0.5, 1.0]
    """
    matrix = as_relevant(relevant)
    lists = _check_lists(recommended, matrix, k)
    n_relevant = np.diff(matrix.indptr)
    rated = n_relevant > 0
    if not rated.any():
        raise DataError("expected at least one user with relevant items, found none")
    hits = find_hits(lists, matrix)[rated]
    return {name: measure(hits, n_relevant[rated]).astype(np.float64) for name, measure in MEASURES.items()}


def hit_rate_at_k(recommended: Any, relevant: Any, k: int = 10) -> float:
    r"""Return the share of users with at least one relevant item among the first k recommended.

    .. math:: \mathrm{hit\ rate@k} = \max_{j \le k} h_j

    Parameters, value and errors are those of `precision_at_k`.

    Examples
    --------
    >>> from scipy import sparse
    >>> relevant = sparse.csr_array([[1, 1, 0, 0], [0, 0, 0, 1]])
    >>> hit_rate_at_k([[2, 3], [3, -1]], relevant, k=2)
    0.5
    """
    return _mean("hit_rate_at_k", recommended, relevant, k)


def _mean(name: str, recommended: Any, relevant: Any, k: int) -> float:
    return float(user_measures(recommended, relevant, k)[name].mean())


def _check_lists(recommended: Any, relevant: Csr, k: int) -> np.ndarray:
    lists = np.asarray(recommended)
    n_users, n_items = relevant.shape
    if lists.ndim != 2 or lists.dtype.kind not in "iu" or lists.shape[0] != n_users:
        raise DataError(
            f"expected item indices in an integer array ({n_users} users x k), found {lists.dtype} {lists.shape}"
        )
    if check_integer("k", k, minimum=1) > lists.shape[1]:
        raise ParameterError(f"k must be <= the {lists.shape[1]} recommended items per user, found {k}")
    lists = lists[:, :k].astype(np.int64)
    if lists.size and (lists.min() < -1 or lists.max() >= n_items):
        raise DataError(f"expected item indices in -1..{n_items - 1}, found {lists.min()}..{lists.max()}")
    ordered = np.sort(lists, axis=1)
    repeated = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    if repeated.any():
        raise DataError(f"expected each item once per user, found one twice in row {repeated.argmax()}")
    return lists


Measure = Callable[[np.ndarray, np.ndarray], np.ndarray]


def as_relevant(matrix: Any) -> Csr:
    """Return the non-zero entries of a users x items sparse matrix, each once, rows sorted; grades are told."""
    relevant = check_sparse("relevant", matrix, (None, None)).copy()
    values = relevant.data[relevant.data != 0]
    if values.size and (high := float(values.max())) > 2 * (low := float(values.min())):
        told = f"values of relevant do not count, found {low:g}..{high:g}: each of them is relevant"
        warnings.warn(f"{told}; choose some as in ratings >= 4", DataWarning, stacklevel=5)
    relevant.sum_duplicates()
    relevant.eliminate_zeros()
    return relevant


def find_hits(recommended: np.ndarray, relevant: Csr) -> np.ndarray:
    """Return which recommended items are relevant, shape (n_users, k); -1 never is."""
    n_users, n_items = relevant.shape
    rows = np.repeat(np.arange(n_users), np.diff(relevant.indptr))
    relevant_pairs = np.append(np.sort(rows * n_items + relevant.indices), np.iinfo(np.int64).max)
    recommended_pairs = np.arange(n_users)[:, None] * n_items + recommended  # (n_users, k)
    nearest = relevant_pairs[np.searchsorted(relevant_pairs, recommended_pairs)]
    return (nearest == recommended_pairs) & (recommended >= 0)


def ndcg(hits: np.ndarray, n_relevant: np.ndarray) -> np.ndarray:
    """Return the discounted gain of each user over that of the best possible list of k."""
    return _discounted(hits) / _discounted(np.arange(hits.shape[1]) < n_relevant[:, None])


def graded_ndcg(lists: np.ndarray, gains: Csr) -> np.ndarray:
    """The NDCG of lists of positions, (b, k), by the gains of the relevant items, (b, n_items), of users with some.

    It is that of `user_measures` where all gains are 1.

    Examples
    --------
    >>> from scipy import sparse
    >>> graded_ndcg(np.array([[0, 2]]), sparse.csr_array([[1.0, 3.0, 3.0]])).round(4).tolist()
    [0.5912]
    """
    return Gains(gains, lists.shape[1]).ndcg(lists)


class Gains:
    """What `graded_ndcg` makes of gains, for many lists of at most k positions."""

    def __init__(self, gains: Csr, k: int) -> None:
        gains = gains.sorted_indices()
        self._size, counts = gains.shape[1], np.diff(gains.indptr)
        rows = np.repeat(np.arange(counts.size), counts)
        order = np.lexsort((-gains.data, rows))
        places = np.arange(rows.size) - gains.indptr[rows]  # of the best list
        best = np.zeros((counts.size, k))
        best[rows[places < k], places[places < k]] = gains.data[order][places < k]
        self._ideal, self._data = _discounted(best), np.append(gains.data, 0.0)
        self._keys = np.append(rows * self._size + gains.indices, np.iinfo(np.int64).max)  # ascending

    def ndcg(self, lists: np.ndarray) -> np.ndarray:
        """The NDCG of lists of k positions, (b, k), of users with gains."""
        asked = np.where(lists < 0, -1, np.arange(len(lists))[:, None] * self._size + lists)
        found = np.searchsorted(self._keys, asked)  # (b, k)
        reached = _discounted(np.where(self._keys[found] == asked, self._data[found], 0.0))
        return reached[self._ideal > 0] / self._ideal[self._ideal > 0]


def _discounted(gains: np.ndarray) -> np.ndarray:
    """Return the sums of gains in lists, (n_users, k), over the logs of their places; equal lists have equal ones."""
    discount = 1 / np.log2(np.arange(2, gains.shape[1] + 2))  # (k,)
    return np.cumsum(gains * discount, axis=1)[:, -1]


def average_precision(hits: np.ndarray, n_relevant: np.ndarray) -> np.ndarray:
    """Return the precision at each hit, summed, over min(k, number of relevant items), of each user."""
    k = hits.shape[1]
    precisions = np.cumsum(hits, axis=1) / np.arange(1, k + 1)  # (n_users, k)
    return (precisions * hits).sum(axis=1) / np.minimum(n_relevant, k)


def reciprocal_rank(hits: np.ndarray, _: np.ndarray) -> np.ndarray:
    """Return one over the place of the first hit of each user, 0 where there is none."""
    return np.where(hits.any(axis=1), 1 / (hits.argmax(axis=1) + 1), 0.0)


MEASURES: dict[str, Measure] = {
    "precision_at_k": lambda hits, _: hits.sum(axis=1) / hits.shape[1],
    "recall_at_k": lambda hits, n_relevant: hits.sum(axis=1) / n_relevant,
    "ndcg_at_k": ndcg,
    "map_at_k": average_precision,
    "mrr_at_k": reciprocal_rank,
    "hit_rate_at_k": lambda hits, _: (hits.sum(axis=1) > 0).astype(np.float64),
}
