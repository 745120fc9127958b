"""A split of implicit's matrices that keeps their values."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from air_recsys.adapters.implicit_input import shape_of
from air_recsys.data.interactions import Interactions
from air_recsys.splits import user_holdout
from air_recsys.storage.validation import RandomState, check_integer


def leave_k_out_split(
    ratings: Any, K: int = 1, *, random_state: RandomState = None
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Hold out K random likes of every user; a replacement of ``implicit.evaluation.leave_k_out_split``.

    That one draws from NumPy's global state whatever its `random_state` (implicit issue 639), and where some users
    have too few likes it puts likes of others into the test matrix twice, which doubles their values. Here every value
    is in one of the two matrices, once. Users with at most K likes keep all of them for training.

    Parameters
    ----------
    ratings : sparse matrix, shape (n_users, n_items)
    K : int
        Likes to hold out per user, at least 1.
    random_state : int, RandomState, Generator or None

    Returns
    -------
    train, test : csr_matrix, shape (n_users, n_items)
        They sum to `ratings`, in its dtype.

    Raises
    ------
    DataError
        If no user has more than K likes.

    Examples
    --------
    >>> likes = sp.csr_matrix([[5, 3, 1], [0, 2, 0]])
    >>> train, test = leave_k_out_split(likes, K=1, random_state=0)
    >>> train.nnz, test.nnz, bool((train + test != likes).nnz)
    (3, 1, False)
    """
    check_integer("K", K, minimum=1)
    data = Interactions.from_csr(ratings, duplicates="sum", allow_negative=True)
    split = user_holdout(data, K, random_state)
    train, test = (as_implicit_reads(data.select(rows).to_csr(), ratings.dtype) for rows in split)
    return train, test


def as_implicit_reads(matrix: sp.csr_array, dtype: Any) -> sp.csr_matrix:
    """Return a csr_matrix with indices of 32 bits where possible: implicit's evaluation accepts no others."""
    index = sp.get_index_dtype(maxval=max(matrix.nnz, *shape_of(matrix)))
    arrays = matrix.data.astype(dtype), matrix.indices.astype(index), matrix.indptr.astype(index)
    return sp.csr_matrix(arrays, shape=matrix.shape)
