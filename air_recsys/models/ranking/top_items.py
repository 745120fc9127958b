"""The best items of many users, a block of users at a time, on the CPU or on a GPU."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from air_recsys.exceptions import DataError
from air_recsys.metrics.checks import Csr, check_sparse
from air_recsys.models.ranking import ties
from air_recsys.models.ranking.catalogue import Catalogue
from air_recsys.nn.devices import gpu_of
from air_recsys.storage.arrays import Array, empty, in_numpy, largest_of_rows, library_of, like, taken
from air_recsys.storage.threads import in_workers
from air_recsys.storage.validation import check_integer

_MAX_ENTRIES = 2**25  # scores of a block: 128 MB in float32
_GPU_ENTRIES = 2**24  # `topk` sorts a block there, in six times its memory
_CACHE_ENTRIES = 2**20  # scores that stay in the cache of a CPU between the product and the selection
_ROWS_WORTH_A_PRODUCT = 64  # users; with fewer the product is bounded by reading the item factors
_CANDIDATES = 2**17  # places of lists that are filled at a time
_WIDER = 8  # times more candidates, where the first do not settle a list


def top_items(
    user_factors: Any,
    item_factors: Any,
    item_offsets: Any,
    n: int,
    *,
    seen: Any = None,
    device: str = "cpu",
    block_size: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""The n items with the highest scores :math:`p_u \cdot q_i + c_i` of each user, best first.

    Scores that differ by rounding alone tie: sorted from the highest, neighbours that differ by at most
    :math:`2^{-40}` of the largest score that the user could have, :math:`\sum_k |p_{uk}| \max_i |q_{ik}| + \max_i
    |c_i|`. Of such items the one with the lower index comes first, and all show the highest of their scores; the
    list is cut after that. So lists and scores are the same on every processor and device, in blocks of any size.

    A product in the precision of the factors finds candidates; their scores are computed again in double precision,
    and items that its error could have left out are looked for among all.

    Parameters
    ----------
    user_factors : array_like, shape (b, r)
    item_factors : array_like, shape (n_items, r)
    item_offsets : array_like, shape (n_items,)
        What is added to each item's products, as a rule its bias.
    n : int
        Length of the lists, at least 1.
    seen : SciPy sparse, shape (b, n_items), optional
        Items to leave out: all stored entries, zeros included.
    device : str
        Where to compute: "cpu", "cuda", "cuda:1", ..., or "auto".
    block_size : int, optional
        Users that are scored at a time; by default what fits the cache of a CPU or 64 MB of a GPU. One array of
        block_size x n_items is held, a few more for users whose scores tie, and on a GPU six for the selection.

    Returns
    -------
    items : ndarray of int64, shape (b, n)
        -1 where no item is left.
    scores : ndarray of float32 or float64, shape (b, n)
        In the type of the factors; -inf where no item is left.
    """
    check_integer("n", n, minimum=1)
    users, factors, offsets = as_arrays(user_factors, item_factors, item_offsets)
    if block_size is not None:
        check_integer("block_size", block_size, minimum=1)
    hidden = None if seen is None else check_sparse("seen", seen, (len(users), len(factors)))
    return top_items_of(Catalogue(factors, offsets, gpu_of(device)), users, n, hidden, block_size)


def top_items_of(
    catalogue: Catalogue,
    users: np.ndarray,
    n: int,
    hidden: Csr | None,
    block_size: int | None = None,
    added: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The lists of `top_items`, for items that many calls rank; `added` (b, n_items) is part of the scores.

    Nothing is checked.
    """
    users = np.require(users, catalogue.numbers, ["C", "W"])
    n_users, n_items, on_cpu = len(users), len(catalogue), catalogue.device is None
    size = _default_block(n_items, on_cpu) if block_size is None else block_size
    items = np.full((n_users, n), -1, dtype=np.int64)
    scores = np.full((n_users, n), -np.inf, dtype=catalogue.numbers)
    together = size if on_cpu else max(size, _CANDIDATES // n)
    beside = _Beside(hidden, None if added is None else catalogue.beside(added))

    def rank(start: int) -> None:
        rows = slice(start, min(start + together, n_users))
        own, of_rows = catalogue.beside(users[rows]), beside if rows.stop - start == n_users else beside.of(rows)
        buffer, library = empty((min(size, n_users), n_items), own, catalogue.numbers.name), library_of(own)
        with np.errstate(over="ignore", invalid="ignore"):  # factors in single precision may have scores beyond it
            best, chosen = _best(catalogue, own, of_rows, min(n, n_items), buffer)
            items[rows, : best.shape[1]] = in_numpy(library.where(library.isneginf(best), -1, chosen))
            scores[rows, : best.shape[1]] = in_numpy(best)

    in_workers(rank, range(0, n_users, together), work=n_users * n_items if on_cpu else 0)
    return items, scores


def as_arrays(user_factors: Any, item_factors: Any, item_offsets: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Factors and offsets of one type, contiguous; `DataError` for shapes that do not match."""
    arrays = [np.asarray(values) for values in (user_factors, item_factors, item_offsets)]
    users, items, offsets = (array.shape for array in arrays)
    if (len(users), len(items), len(offsets)) != (2, 2, 1) or users[1] != items[1] or items[0] != offsets[0]:
        raise DataError(
            "expected user factors (b, r), item factors (n_items, r) and item offsets (n_items,), found shapes "
            f"{users}, {items} and {offsets}"
        )
    dtype = np.result_type(*arrays, np.float32)
    # PyTorch takes neither negative strides nor arrays that cannot be written to.
    first, second, third = (np.require(array, dtype, ["C", "W"]) for array in arrays)
    return first, second, third


def _default_block(n_items: int, on_cpu: bool) -> int:
    if not on_cpu:
        return max(1, _GPU_ENTRIES // n_items)
    return min(max(1, _MAX_ENTRIES // n_items), max(_ROWS_WORTH_A_PRODUCT, _CACHE_ENTRIES // n_items))


def hide(block: Array, seen: Csr | None, start: int = 0) -> Array:
    """Set the scores of seen items to -inf, in place, and return the scores; `start` is the first row in `seen`."""
    if seen is not None:
        indptr = seen.indptr[start : start + len(block) + 1].astype(np.int64)
        rows = np.repeat(np.arange(len(block)), np.diff(indptr))
        block[like(block, rows), like(block, seen.indices[indptr[0] : indptr[-1]])] = -np.inf
    return block


class _Beside(NamedTuple):
    """What is known of the scores of some users beside products and offsets."""

    hidden: Csr | None  # (b, n_items), whose stored entries are left out
    added: Array | None  # (b, n_items), a part of the scores

    def of(self, rows: Any) -> _Beside:
        """The same of some of the users."""
        hidden, added = (None if each is None else each[rows] for each in self)
        return _Beside(hidden, added)

    def applied(self, block: Array, start: int = 0) -> Array:
        """Add what is added and set hidden scores to -inf, in place, and return the scores from user `start` on."""
        if self.added is not None:
            block += self.added[start : start + len(block)]
        return hide(block, self.hidden, start)

    @property
    def largest(self) -> Array | float:
        """The largest size of what is added to the scores of each user, (b,)."""
        return 0.0 if self.added is None else library_of(self.added).amax(abs(self.added), axis=1)

    def added_at(self, items: Array) -> Array | float:
        """What is added to the scores of some items of each user, (b, m)."""
        return 0.0 if self.added is None else taken(self.added, items)


def _best(catalogue: Catalogue, users: Array, beside: _Beside, n: int, buffer: Array) -> tuple[Array, Array]:
    """The n best items of each user and their scores in double precision, both (b, n)."""
    reach = catalogue.reach(users) + beside.largest
    tolerance = ties.tolerance_of(reach)
    values, items, library = empty((len(users), n), users), empty((len(users), n), users, "int64"), library_of(users)
    left = like(users, np.arange(len(users)))  # whose lists are not settled
    first = n + max(4, n // 16)
    for size in [size for size in (first, _WIDER * first) if size < len(catalogue)]:
        whole = len(left) == len(users)
        asked, of_asked = (users, beside) if whole else (users[left], beside.of(in_numpy(left)))
        near, found = _candidates(catalogue, asked, of_asked, size, buffer)
        exact = catalogue.exact(asked, found) + of_asked.added_at(found)
        exact = library.where(library.isneginf(near), -np.inf, exact)
        others = near[:, -1] + catalogue.error(reach[left])  # -inf where all others are seen
        sure, *found = ties.choose(exact, found, n, tolerance[left], others)
        values[left[sure]], items[left[sure]] = (each[sure] for each in found)
        left = left[~sure]
        if not len(left):
            return values, items
    size = max(1, _CACHE_ENTRIES // len(catalogue))
    for rows in [left[start : start + size] for start in range(0, len(left), size)]:
        scores = beside.of(in_numpy(rows)).applied(catalogue.exact_of_all(users[rows]))
        if library.isnan(scores).any():
            raise DataError("expected scores without NaN: the factors or the offsets hold NaN or are infinite")
        values[rows], items[rows] = ties.best(scores, n, tolerance[rows])
    return values, items


def _candidates(catalogue: Catalogue, users: Array, beside: _Beside, size: int, buffer: Array) -> tuple[Array, Array]:
    """The highest approximate scores of each user and their items, both (b, size), best first."""
    scores = empty((len(users), size), users, catalogue.numbers.name)
    items = empty((len(users), size), users, "int64")
    for start in range(0, len(users), len(buffer)):
        rows = slice(start, min(start + len(buffer), len(users)))
        block = catalogue.approximate(users[rows], buffer[: rows.stop - start])
        scores[rows], items[rows] = largest_of_rows(beside.applied(block, start), size)
    return scores, items
