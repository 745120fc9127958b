"""Effects of lists of recommended items on a catalogue: coverage, popularity, and diversity.

`coverage` has the notation. None of these measures knows what is relevant.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.exceptions import DataError
from air_recsys.metrics.checks import Csr, check_sparse


def coverage(recommended: Any, n_items: int) -> float:
    r"""Return the share of the items that are recommended to anyone.

    Parameters
    ----------
    recommended : array_like of int, shape (n_users, k)
        Item indices :math:`i_{u1}, \dots, i_{uk}`; -1 for a place that could not be filled.
    n_items : int

    Raises
    ------
    DataError
        For lists that are not a 2-D array of integers in -1..n_items - 1, or without any item.

    Examples
    --------
    >>> coverage([[0, 1], [0, -1]], n_items=4)
    0.5
    """
    return float((_counts(recommended, n_items) > 0).mean())


def gini(recommended: Any, n_items: int) -> float:
    r"""Return the Gini coefficient of how often each item is recommended: 0 if all alike, near 1 if only one item is.

    .. math:: \frac{\sum_{j=1}^n (2j - n - 1)\, c_{(j)}}{n \sum_j c_{(j)}}

    with :math:`c_{(1)} \le \dots \le c_{(n)}` the numbers of lists that hold each item.

    Parameters and errors are those of `coverage`.

    Examples
    --------
    >>> gini([[0], [1]], n_items=2), gini([[0], [0]], n_items=2)
    (0.0, 0.5)
    """
    counts = np.sort(_counts(recommended, n_items))
    places = 2 * np.arange(1, n_items + 1) - n_items - 1
    return float((places * counts).sum() / (n_items * counts.sum()))


def novelty(recommended: Any, seen: Any) -> float:
    r"""Return the mean surprise of the recommended items, :math:`-\log_2 p_i`, in bits.

    :math:`p_i` is the share of the users that have item i; an item that nobody has counts as one that one user has.

    Parameters
    ----------
    recommended : array_like of int, shape (n_users, k)
        As in `coverage`.
    seen : SciPy sparse, shape (any number of users, n_items)
        The training data: all stored entries.

    Raises
    ------
    DataError
        As `coverage`.

    Examples
    --------
    >>> from scipy import sparse
    >>> seen = sparse.csr_array([[1, 1], [1, 0], [1, 0], [1, 0]])
    >>> novelty([[0], [1]], seen)
    1.0

    References
    ----------
    Vargas, Castells: Rank and relevance in novelty and diversity metrics for recommender systems, RecSys 2011.
    """
    matrix = check_sparse("seen", seen, (None, None))
    items = _items(recommended, matrix.shape[1])
    shares = np.maximum(_popularity(matrix), 1) / matrix.shape[0]
    return float(-np.log2(shares[items[items >= 0]]).mean())


def popularity_lift(recommended: Any, seen: Any) -> float:
    r"""Return how much more popular a list is than the user's own items, as the mean over the users.

    .. math:: \frac{\mathrm{mean}_{j \le k}\, c_{i_j}}{\mathrm{mean}_{i \in \mathrm{own}}\, c_i} - 1

    with :math:`c_i` the number of users that have item i. 0 is no bias, 1 is twice as popular.

    Parameters
    ----------
    recommended : array_like of int, shape (n_users, k)
        As in `coverage`.
    seen : SciPy sparse, shape (n_users, n_items)
        The training data of the same users: all stored entries. Users without any do not count.

    Raises
    ------
    DataError
        As `coverage`, or where no user has both.

    Examples
    --------
    >>> from scipy import sparse
    >>> seen = sparse.csr_array([[0, 1, 0], [1, 0, 1], [1, 0, 0]])
    >>> popularity_lift([[0], [1], [1]], seen)
    0.0555...

    References
    ----------
    Abdollahpouri, Mansoury, Burke, Mobasher: The unfairness of popularity bias in recommendation, RMSE 2019.
    """
    matrix = check_sparse("seen", seen, (len(recommended), None))
    counts = _popularity(matrix).astype(np.float64)
    lists = _items(recommended, matrix.shape[1])
    filled, own = lists >= 0, np.diff(matrix.indptr)
    both = filled.any(axis=1) & (own > 0)
    if not both.any():
        raise DataError("expected a user with items of its own and recommended ones, found none")
    listed = np.where(filled, counts[lists], 0).sum(axis=1)[both] / filled.sum(axis=1)[both]
    had = (_pattern(matrix) @ counts)[both] / own[both]
    return float((listed / had - 1).mean())


def intra_list_diversity(recommended: Any, seen: Any) -> float:
    r"""Return the mean over the users of 1 - the mean cosine between the items of a list.

    The cosine of two items is that of the sets of users that have them; it is 0 for an item that nobody has.

    Parameters
    ----------
    recommended : array_like of int, shape (n_users, k)
        As in `coverage`. Lists with less than two items do not count.
    seen : SciPy sparse, shape (any number of users, n_items)
        The training data: all stored entries.

    Raises
    ------
    DataError
        As `coverage`, or where no list has two items.

    Examples
    --------
    >>> from scipy import sparse
    >>> seen = sparse.csr_array([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    >>> round(intra_list_diversity([[0, 1], [0, 2]], seen), 6)
    0.5

    References
    ----------
    Ziegler, McNee, Konstan, Lausen: Improving recommendation lists through topic diversification, WWW 2005.
    """
    matrix = check_sparse("seen", seen, (None, None))
    lists = _items(recommended, matrix.shape[1])
    filled = (lists >= 0).sum(axis=1)
    if not (filled > 1).any():
        raise DataError("expected a list of two items or more, found none")
    rows, places = np.nonzero(lists >= 0)
    ones = sp.csr_array((np.ones(rows.size), (rows, lists[rows, places])), shape=(len(lists), matrix.shape[1]))
    unit = sp.csr_array(_pattern(matrix).T) / np.sqrt(np.maximum(_popularity(matrix), 1))[:, None]
    sums = sp.csr_array(ones @ sp.csr_array(unit))  # of a list's unit vectors
    own = ones @ (_popularity(matrix) > 0).astype(np.float64)  # cosines of items with themselves
    pairs = np.maximum(filled * (filled - 1), 1)
    cosines = (np.asarray(sums.multiply(sums).sum(axis=1)).ravel() - own) / pairs
    return float((1 - cosines)[filled > 1].mean())


def miscalibration(recommended: Any, seen: Any, groups: Any) -> float:
    r"""Return how far the groups of a list are from those of the user's own items, as the mean over the users.

    The distance is the Kullback-Leibler divergence :math:`\sum_g p_g \log_2 (p_g / \tilde q_g)`, in bits, between
    the shares p of the groups among the user's items and those of the list, :math:`\tilde q = 0.99 q + 0.01 p`.
    Groups are genres, or how popular an item is.

    Parameters
    ----------
    recommended : array_like of int, shape (n_users, k)
        As in `coverage`.
    seen : SciPy sparse, shape (n_users, n_items)
        The training data of the same users: all stored entries. Users without any do not count.
    groups : array_like, shape (n_items, n_groups)
        Above 0 if an item belongs to a group, else 0; an item counts for its groups by shares of their sum.

    Raises
    ------
    DataError
        As `coverage`, for groups of another number of items, or where no user has items of any group on both sides.

    Examples
    --------
    >>> from scipy import sparse
    >>> seen = sparse.csr_array([[1, 1, 0, 0]])
    >>> groups = [[1, 0], [0, 1], [1, 0], [0, 1]]
    >>> miscalibration([[2, 3]], seen, groups), round(miscalibration([[2]], seen, groups), 3)
    (0.0, 2.826)

    References
    ----------
    Steck: Calibrated recommendations, RecSys 2018.
    """
    matrix = check_sparse("seen", seen, (len(recommended), None))
    lists = _items(recommended, matrix.shape[1])
    belongs = np.asarray(groups, dtype=np.float64)
    if belongs.ndim != 2 or len(belongs) != matrix.shape[1] or not (belongs >= 0).all():
        raise DataError(f"expected groups of {matrix.shape[1]} items, 0 or more, found shape {belongs.shape}")
    shares = belongs / np.maximum(belongs.sum(axis=1, keepdims=True), 1e-300)
    own = _pattern(matrix) @ shares
    listed = np.where((lists >= 0)[:, :, None], shares[lists], 0).sum(axis=1)  # (n_users, n_groups)
    both = (own.sum(axis=1) > 0) & (listed.sum(axis=1) > 0)
    if not both.any():
        raise DataError("expected a user with items of some group of its own and recommended ones, found none")
    p, q = (each[both] / each[both].sum(axis=1, keepdims=True) for each in (own, listed))
    return float(divergence_of_groups(p, q).mean())


def divergence_of_groups(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    r"""The divergence of shares q of groups from shares p, along the last axis, in bits, see `miscalibration`.

    Examples
    --------
    >>> divergence_of_groups(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]])).tolist()
    [0.0]
    """
    mixed = 0.99 * q + 0.01 * p
    ratios = np.divide(p, mixed, out=np.ones_like(mixed), where=p > 0)
    return (p * np.log2(ratios)).sum(axis=-1)


def _items(recommended: Any, n_items: int) -> np.ndarray:
    lists = np.asarray(recommended)
    if lists.ndim != 2 or lists.dtype.kind not in "iu":
        raise DataError(f"expected item indices in a 2-D integer array, found {lists.dtype} {lists.shape}")
    if not (lists >= 0).any() or lists.min() < -1 or lists.max() >= n_items:
        raise DataError(f"expected item indices in -1..{n_items - 1} and at least one item, found others")
    return lists.astype(np.int64)


def _counts(recommended: Any, n_items: int) -> np.ndarray:
    lists = _items(recommended, n_items)
    return np.bincount(lists[lists >= 0], minlength=n_items)


def _popularity(seen: Csr) -> np.ndarray:
    return np.bincount(seen.indices, minlength=seen.shape[1])


def _pattern(seen: Csr) -> Csr:
    return sp.csr_array((np.ones(seen.nnz), seen.indices, seen.indptr), shape=seen.shape)
