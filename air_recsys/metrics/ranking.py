"""Rankings from scores, a block of users at a time, so that no users x items array is held."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.exceptions import DataError, DataWarning, ParameterError
from air_recsys.metrics.at_k import MEASURES, as_relevant, find_hits
from air_recsys.metrics.checks import Csr, check_sparse
from air_recsys.storage.validation import check_integer

_BLOCK_ENTRIES = 16_000_000  # scores held at a time


def top_k(scores: Any, k: int = 10) -> np.ndarray:
    """Return the k items with the highest scores of each user, best first.

    Of items with exactly equal scores the one with the lower index comes first. Lists of models also tie scores that
    differ only by rounding, see `air_recsys.models.ranking.ties`.

    Parameters
    ----------
    scores : array_like of float, shape (n_users, n_items)
    k : int
        Length of the lists, in 1..n_items.

    Returns
    -------
    ndarray of int64, shape (n_users, k)
        Item indices. Items with the score -inf come last, and appear where no others are left.

    Raises
    ------
    ParameterError
        If k is out of range.
    DataError
        For NaN among the scores, or an array that is not 2-D.

    Examples
    --------
    >>> top_k([[0.1, 0.7, 0.7, 0.3]], k=3)
    array([[1, 2, 3]])
    """
    array = _as_scores(scores)
    _check_k(k, array.shape[1])
    lists = np.empty((array.shape[0], k), dtype=np.int64)
    for user, row in enumerate(array):  # a row at a time: no working copy of the whole block
        if np.isnan(row.max()):
            raise DataError(f"expected scores without NaN, found NaN in row {user}")
        threshold = _kth_largest(row, k)
        candidates = np.flatnonzero(row >= threshold)  # all that tie with the k-th, in index order
        lists[user] = candidates[np.argsort(-row[candidates], kind="stable")[:k]]
    return lists


def ranking_report(
    score_block: Callable[[np.ndarray], Any],
    relevant: Any,
    seen: Any = None,
    k: int = 10,
    block_size: int = 1024,
) -> dict[str, float]:
    """Rank all items for all users with relevant items, and return every ranking measure.

    Parameters
    ----------
    score_block : callable
        Takes user indices, shape (b,), and returns their scores, shape (b, n_items), b <= `block_size`. Items are
        ranked as by `top_k`; those with the score -inf are not recommended.
    relevant : SciPy sparse, shape (n_users, n_items)
        Non-zero where the item is relevant for the user, as a rule the test ratings.
    seen : SciPy sparse, shape (n_users, n_items), optional
        Items not to recommend, as a rule the training ratings: all stored entries, zeros included.
    k : int
        Length of the lists, in 1..n_items.
    block_size : int
        Number of users that are scored at a time. At most two arrays of `block_size` x n_items are in memory, beside
        the needs of `score_block`.

    Returns
    -------
    dict of str to float
        ``precision_at_k``, ``recall_at_k``, ``ndcg_at_k``, ``map_at_k``, ``mrr_at_k`` and ``hit_rate_at_k`` as defined
        by the functions of these names, ``k``, and ``n_users``, the number of users with relevant items.

    Raises
    ------
    ParameterError
        If k or `block_size` is out of range.
    DataError
        For NaN among the scores, shapes that do not match, or where no user has relevant items.

    Examples
    --------
    >>> from scipy import sparse
    >>> scores = np.array([[0.9, 0.5, 0.1], [0.2, 0.8, 0.3]])
    >>> report = ranking_report(lambda users: scores[users], sparse.csr_array([[0, 1, 0], [0, 1, 0]]), k=1)
    >>> report["recall_at_k"], report["n_users"]
    (0.5, 2)
    """
    check_integer("block_size", block_size, minimum=1)
    if not callable(score_block):
        found = f"found {type(score_block).__name__}: of an array it is lambda users: scores[users]"
        raise DataError(f"expected score_block as a function of user indices, {found}")
    truth = as_relevant(relevant)
    _check_k(k, truth.shape[1])
    hidden = None if seen is None else check_sparse("seen", seen, truth.shape)
    if hidden is not None:
        stored = sp.csr_array((np.ones(hidden.nnz), hidden.indices, hidden.indptr), shape=truth.shape)
        if shared := truth.multiply(stored).nnz:
            told = f"{shared} relevant pairs are among the seen ones, which are not listed: they count as missed"
            warnings.warn(told, DataWarning, stacklevel=2)
    n_relevant = np.diff(truth.indptr)
    users = np.flatnonzero(n_relevant)
    if users.size == 0:
        raise DataError("expected at least one user with relevant items, found none")
    totals, n_alike = dict.fromkeys(MEASURES, 0.0), 0
    for start in range(0, users.size, block_size):
        block = users[start : start + block_size]
        scores = _as_scores(score_block(block), (block.size, truth.shape[1]))
        n_alike += np.count_nonzero((scores == scores[:, :1]).all(axis=1))
        lists = unseen_top_k(scores, None if hidden is None else hidden[block], k)
        hits = find_hits(lists, truth[block])
        for name, measure in MEASURES.items():
            totals[name] += float(measure(hits, n_relevant[block]).sum())
    if 2 * n_alike > users.size and truth.shape[1] > 1:
        told = f"{n_alike} of {users.size} users have one score for all items: their lists are in the order of these"
        warnings.warn(told, DataWarning, stacklevel=2)
    return {name: total / users.size for name, total in totals.items()} | {"k": k, "n_users": users.size}


def _kth_largest(row: np.ndarray, k: int) -> float:
    """Return the k-th largest value; of long rows from those that reach the k-th largest maximum of a piece."""
    pieces = 4 * k
    if row.size > 8 * pieces:
        whole = row[: row.size // pieces * pieces]
        row = row[row >= _kth_largest(whole.reshape(pieces, -1).max(axis=1), k)]
    return np.partition(row, row.size - k)[row.size - k]


def unseen_top_k(scores: np.ndarray, seen: Csr | None, k: int) -> np.ndarray:
    """Return the lists of `top_k` without the seen items, with -1 where no item is left."""
    if seen is not None:
        scores = scores.copy()
        rows = np.repeat(np.arange(scores.shape[0]), np.diff(seen.indptr))
        scores[rows, seen.indices] = -np.inf
    lists = top_k(scores, k)
    return np.where(np.isneginf(np.take_along_axis(scores, lists, axis=1)), -1, lists)


def lists_of_scores(scores: Callable[[np.ndarray], np.ndarray], seen: Any, users: np.ndarray, n: int) -> np.ndarray:
    """Return the best n unseen items of some users, or all where there are fewer; scored by blocks of users."""
    n_items = seen.shape[1]
    block = max(1, _BLOCK_ENTRIES // n_items)
    blocks = [users[start : start + block] for start in range(0, users.size, block)]
    return np.concatenate([unseen_top_k(scores(some), seen[some], min(n, n_items)) for some in blocks])


def _as_scores(scores: Any, shape: tuple[int, int] | None = None) -> np.ndarray:
    array = np.asarray(np.ma.filled(scores.astype(np.float64), -np.inf) if np.ma.is_masked(scores) else scores)
    array = array if array.dtype.kind == "f" else array.astype(np.float64)
    if array.ndim != 2 or (shape is not None and array.shape != shape):
        expected = "in a 2-D array (users x items)" if shape is None else f"of shape {shape}"
        raise DataError(f"expected scores {expected}, found shape {array.shape}")
    return array


def _check_k(k: int, n_items: int) -> None:
    if check_integer("k", k, minimum=1) > n_items:
        raise ParameterError(f"k must be <= the number of items, {n_items}, found {k}")
