"""How alike the entries of a row are to one of them, drawn at random: what was done in one visit belongs together."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from air_recsys.metrics.checks import Csr

_BLOCK_ENTRIES = 4_000_000  # products held at a time


def likeness_to_one(pattern: Csr, seed: int) -> np.ndarray:
    """Return how alike each entry of a row is to one entry of the row, which is drawn at random.

    Two columns are as alike as their cosine over the other rows, times a number that is the same for the whole row.

    Parameters
    ----------
    pattern : csr_array, shape (m, n)
        Of ones.
    seed : int
        Of the draw.

    Returns
    -------
    ndarray, shape (nnz,)
        In the order of the entries; infinite for the one that was drawn.

    Examples
    --------
    >>> pattern = sp.csr_array([[1.0, 1, 1], [0, 1, 1], [0, 1, 1]])
    >>> likeness_to_one(pattern, 1)[:3].round(2)  # the third was drawn: two others have the second, too
    array([0.  , 1.15,  inf])
    """
    sizes = np.diff(pattern.indptr)
    filled = np.flatnonzero(sizes)
    draws = np.random.default_rng(seed).random(pattern.nnz)
    drawn = np.lexsort((draws, np.repeat(np.arange(sizes.size), sizes)))[pattern.indptr[:-1][filled]]  # (filled,)
    counts = np.bincount(pattern.indices, minlength=pattern.shape[1])
    likeness = (_in_common(pattern, filled, pattern.indices[drawn]) - 1) / np.sqrt(counts[pattern.indices])
    likeness[drawn] = np.inf
    return likeness


def _in_common(pattern: Csr, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return how many rows have both the column of an entry and the one column named for its row, (nnz,)."""
    by_rows, by_columns = sp.csr_array(pattern.T), sp.csc_array(pattern)
    found = np.empty(pattern.nnz)
    size = max(1, _BLOCK_ENTRIES // pattern.shape[1])
    for start in range(0, rows.size, size):
        block = slice(start, start + size)
        products = (by_rows @ by_columns[:, columns[block]]).toarray()  # (n, b)
        own = pattern[rows[block]]
        place = np.repeat(np.arange(own.shape[0]), np.diff(own.indptr))
        found[pattern.indptr[rows[start]] :][: own.nnz] = products[own.indices, place]
    return found
