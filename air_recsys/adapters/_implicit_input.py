"""What implicit hands over, and its checks: matrices of likes, their split, ids, and what may be listed."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, DataWarning
from air_recsys.splits import user_holdout
from air_recsys.storage.reading import checked_sparse
from air_recsys.storage.validation import RandomState, check_integer, needs_extra

with needs_extra("implicit"):
    from implicit.utils import check_csr


def as_confidences(matrix: Any) -> sp.csr_matrix:
    """The values of a sparse matrix, in order and without stored zeros."""
    if isinstance(matrix, pd.DataFrame | Interactions):
        raise DataError(
            f"expected a SciPy sparse matrix of users and items, as implicit takes it, found {type(matrix).__name__}: "
            "Interactions.from_frame(frame, rating=None).to_csr() is one, and AIR.for_likes().fit(frame) keeps the ids"
        )
    roomy = checked_sparse("the matrix", matrix).dtype  # repeated pairs are summed
    whole = matrix.astype(roomy, copy=False)
    likes = sp.csr_matrix(whole if whole.format == "csr" else check_csr(whole), dtype=np.float64, copy=True)
    likes.sum_duplicates()
    broken = np.flatnonzero(~(likes.data >= 0) | np.isinf(likes.data))
    if broken.size:
        row = np.searchsorted(likes.indptr, broken[0], side="right") - 1
        raise DataError(
            f"confidences must be finite and >= 0, found {broken.size} that are not, the first in row {row}, "
            f"column {likes.indices[broken[0]]}: {likes.data[broken[0]]:g}"
        )
    likes.eliminate_zeros()
    return likes


def shape_of(matrix: sp.csr_matrix | sp.csr_array) -> tuple[int, int]:
    """The numbers of rows and columns."""
    assert matrix.shape is not None  # SciPy types it as optional
    return matrix.shape


def check_ids(name: str, ids: Any, size: int = sys.maxsize) -> None:
    """Raise IndexError, as implicit does, unless all ids are integers in 0..size-1."""
    array = np.atleast_1d(np.asarray(ids))
    if array.size and array.dtype.kind not in "iu":
        raise IndexError(f"{name} must be integers, found {array.dtype}")
    if array.size and (array.min() < 0 or array.max() >= size):
        first = array[(array < 0) | (array >= size)][0]
        raise IndexError(f"{name} must lie in 0..{size - 1}, found {first}")


def checked_candidates(kind: str, filtered: Any, chosen: Any, size: int) -> np.ndarray | None:
    """The candidates, "items" or "users", each once, or None; raises for others than 0..size-1, and beside filters."""
    if filtered is not None:
        check_ids(f"filter_{kind}", filtered, size)
    if chosen is None:
        return None
    check_ids(kind, chosen, size)
    if filtered is not None and np.size(filtered):
        raise ValueError(f"expected {kind} to choose from or {kind} to filter out, found both")
    if not np.size(chosen):
        raise ValueError(f"expected {kind} to choose from, found none")
    return np.unique(chosen)


def check_rows(userid: Any, user_items: Any, sizes: tuple[int, int], *, read: bool) -> None:
    """Raise ValueError unless `user_items` has one row for each user, where it is `read`, and no item too many."""
    n_users, n_items = sizes
    if sp.issparse(user_items):
        check_width(checked_sparse("user_items", user_items), n_items, "items")
        if user_items.shape[1] == n_users < n_items:
            found = f"user_items has {n_users} columns, and the model {n_users} users and {n_items} items"
            warnings.warn(f"{found}: is the matrix of fit transposed? It is users x items", DataWarning, stacklevel=3)
    if not read:
        return
    if not sp.issparse(user_items) or user_items.format != "csr":
        raise ValueError("user_items needs to be a CSR sparse matrix")
    if shape_of(user_items)[0] != (1 if np.isscalar(userid) else len(userid)):
        raise ValueError("user_items must contain 1 row for every user in userids")


def check_width(matrix: Any, size: int, kind: str) -> None:
    """Raise ValueError where a matrix has more columns than the model has items (or users)."""
    if matrix.shape[1] > size:
        raise ValueError(f"expected at most {size} columns, one for each of the {kind}, found {matrix.shape[1]}")


def list_length(n: Any, chosen: Any, size: int) -> int:
    """N, at most the number of candidates: implicit fills longer lists with the id 0."""
    return min(check_integer("N", n, minimum=1), size if chosen is None else len(chosen))


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
    """A csr_matrix with indices of 32 bits where possible: implicit's evaluation accepts no others."""
    index = sp.get_index_dtype(maxval=max(matrix.nnz, *shape_of(matrix)))
    arrays = matrix.data.astype(dtype), matrix.indices.astype(index), matrix.indptr.astype(index)
    return sp.csr_matrix(arrays, shape=matrix.shape)
