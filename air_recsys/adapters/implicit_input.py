"""The inputs of `ImplicitAIR` and their checks: matrices of likes, ids, and rows of factors."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError
from air_recsys.graphs import SimilarityGraph
from air_recsys.storage.reading import checked_sparse
from air_recsys.storage.validation import check_integer, needs_extra

with needs_extra("implicit"):
    from implicit.utils import check_csr


def as_confidences(matrix: Any, alpha: float) -> sp.csr_matrix:
    """Return alpha times the values of a sparse matrix, in order and without stored zeros.

    Raises
    ------
    DataError
        For anything but a 2-D sparse matrix whose arrays fit each other, and for NaN, infinite or negative values,
        with the first place.

    Examples
    --------
    >>> as_confidences(sp.csr_matrix([[0, 3, 1]]), 2.0).toarray()
    array([[0., 6., 2.]])
    """
    if isinstance(matrix, pd.DataFrame | Interactions):
        raise DataError(
            f"expected a SciPy sparse matrix of users and items, as implicit takes it, found {type(matrix).__name__}: "
            "Interactions.from_frame(frame, rating=None).to_csr() is one, and AIR.for_likes().fit(frame) keeps the ids"
        )
    if not sp.issparse(matrix) or matrix.ndim != 2:
        raise DataError(f"expected a 2-D SciPy sparse matrix, found {type(matrix).__name__}")
    checked_sparse("the matrix", matrix)
    likes = sp.csr_matrix(check_csr(matrix), dtype=np.float64, copy=True)
    likes.sum_duplicates()
    broken = np.flatnonzero(~(likes.data >= 0) | np.isinf(likes.data))
    if broken.size:
        row = np.searchsorted(likes.indptr, broken[0], side="right") - 1
        raise DataError(
            f"confidences must be finite and >= 0, found {broken.size} that are not, the first in row {row}, "
            f"column {likes.indices[broken[0]]}: {likes.data[broken[0]]:g}"
        )
    likes.eliminate_zeros()
    likes.data *= alpha
    return likes


def shape_of(matrix: sp.csr_matrix | sp.csr_array) -> tuple[int, int]:
    """Return the numbers of rows and columns."""
    assert matrix.shape is not None  # SciPy types it as optional
    return matrix.shape


def with_values(likes: sp.csr_matrix, values: np.ndarray) -> sp.csr_array:
    """Return other values at the places of those of a matrix."""
    return sp.csr_array((values, likes.indices, likes.indptr), shape=likes.shape)


def check_ids(name: str, ids: Any, size: int = sys.maxsize) -> None:
    """Raise IndexError, as implicit does, unless all ids are integers in 0..size-1."""
    array = np.atleast_1d(np.asarray(ids))
    if array.size and array.dtype.kind not in "iu":
        raise IndexError(f"{name} must be integers, found {array.dtype}")
    if array.size and (array.min() < 0 or array.max() >= size):
        first = array[(array < 0) | (array >= size)][0]
        raise IndexError(f"{name} must lie in 0..{size - 1}, found {first}")


def check_filters(kind: str, filtered: Any, chosen: Any, size: int) -> None:
    """Raise unless there are candidates, ids to leave out, or neither, all in 0..size-1; `kind` is "items" or "users".

    Raises
    ------
    IndexError
        For ids that are not in the model.
    ValueError
        If there are both.
    """
    if filtered is not None:
        check_ids(f"filter_{kind}", filtered, size)
    if chosen is None:
        return
    check_ids(kind, chosen, size)
    if filtered is not None and len(filtered):
        raise ValueError(f"expected {kind} to choose from or {kind} to filter out, found both")


def check_rows(userid: Any, user_items: Any, n_items: int, *, read: bool) -> None:
    """Raise ValueError unless `user_items` has one row for each user, where it is `read`, and no item too many."""
    if sp.issparse(user_items):
        check_width(checked_sparse("user_items", user_items), n_items, "items")
    if not read:
        return
    if not isinstance(user_items, sp.csr_matrix):
        raise ValueError("user_items needs to be a CSR sparse matrix")
    if shape_of(user_items)[0] != (1 if np.isscalar(userid) else len(userid)):
        raise ValueError("user_items must contain 1 row for every user in userids")


def check_width(matrix: Any, size: int, kind: str) -> None:
    """Raise ValueError where a matrix has more columns than the model has items (or users)."""
    if matrix.shape[1] > size:
        raise ValueError(f"expected at most {size} columns, one for each of the {kind}, found {matrix.shape[1]}")


def list_length(n: Any, chosen: Any, size: int) -> int:
    """Return n, at most the number of candidates: implicit fills longer lists with the id 0."""
    return min(check_integer("N", n, minimum=1), size if chosen is None else len(chosen))


def norms_of(factors: np.ndarray) -> np.ndarray:
    """Return the length of each row, 1e-10 in place of 0 as in all of implicit."""
    norms = np.linalg.norm(factors, axis=-1)
    norms[norms == 0] = 1e-10
    return norms


def with_zero_rows(factors: np.ndarray, rows: np.ndarray, size: int) -> np.ndarray:
    """Return factors (size, r) with the given rows, and zeros elsewhere."""
    wide = np.zeros((size, factors.shape[1]), factors.dtype)
    wide[rows] = factors
    return wide


def widened(graph: SimilarityGraph, size: int) -> SimilarityGraph:
    """Return a graph over 0..size-1 with the edges of one over some of these."""
    edges = graph.to_scipy().tocoo()
    places = (graph.ids[edges.row], graph.ids[edges.col])
    return SimilarityGraph(sp.csr_array((edges.data, places), shape=(size, size)), range(size), graph.kind)


def replaced(factors: np.ndarray, ids: Any, rows: np.ndarray) -> np.ndarray:
    """Return a copy of factors with other rows at some ids, with zeros up to an id beyond the last.

    Examples
    --------
    >>> replaced(np.ones((2, 1)), [0, 3], np.array([[5.0], [6.0]])).T
    array([[5., 1., 0., 6.]])
    """
    places = np.asarray(ids)
    size = max(len(factors), int(places.max(initial=-1)) + 1)
    changed = with_zero_rows(factors, np.arange(len(factors)), size)
    changed[places] = rows
    return changed
