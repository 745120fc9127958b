"""Items to be ranked, and their scores in two ways: fast with a known error, and the same on every machine."""

from __future__ import annotations

import numpy as np

from air_recsys.storage.arrays import Array, empty, in_numpy, library_of, like, wide
from air_recsys.storage.lazy import torch

_CPU_PRODUCTS, _GPU_PRODUCTS = 2**16, 2**24  # products in double precision that are held at a time
_ROWS_OF_MAXIMA = 64  # items that share a row where maxima are taken: long rows are fast


class Catalogue:
    r"""Items with factors q and offsets c, for scores :math:`p_u \cdot q_i + c_i`.

    A product of matrices is fast, but its last bits depend on the processor, its threads and the size of the block.
    `exact` multiplies in double precision and adds in one fixed order, by operations that IEEE 754 rounds alike
    everywhere.
    """

    def __init__(self, factors: np.ndarray, offsets: np.ndarray, device: torch.device | None = None) -> None:
        self.numbers, self.device = factors.dtype, device  # None is the CPU
        arrays: list[Array] = [factors, offsets, _largest_entries(factors)]
        if device is not None:
            arrays = [torch.from_numpy(each).to(device) for each in arrays]
        self._factors, self._offsets, self._largest = arrays
        finite = offsets[np.isfinite(offsets)]  # an offset of -inf leaves an item out
        self._largest_offset = float(np.abs(finite).max(initial=0.0))
        self._products = _CPU_PRODUCTS if device is None else _GPU_PRODUCTS

    @property
    def factors(self) -> np.ndarray:
        """The factors, (n_items, r)."""
        return in_numpy(self._factors)

    @property
    def offsets(self) -> np.ndarray:
        """The offsets, (n_items,)."""
        return in_numpy(self._offsets)

    def beside(self, array: np.ndarray) -> Array:
        """An array in the place of the items."""
        return like(self._factors, array)

    def __len__(self) -> int:
        return len(self._factors)

    def reach(self, users: Array) -> Array:
        r"""A bound of the scores of each user, (b,): :math:`\sum_k |p_k| \max_i |q_{ik}| + \max_i |c_i|`."""
        products = abs(wide(users.T)) * self._largest[:, None]
        return fixed_sum(products) + self._largest_offset

    def approximate(self, users: Array, out: Array) -> Array:
        """Write the scores of all items into `out`, (b, n_items), in the precision of the factors, and return it."""
        if self.device is not None:
            return torch.addmm(self._offsets, users, self._factors.T, out=out)
        np.matmul(users, self._factors.T, out=out)
        out += self._offsets
        return out

    def error(self, reach: Array) -> Array:
        """The largest difference of `approximate` and `exact`, (b,); infinite where numbers overflow.

        A sum of r products and an offset in any order has an error of at most r + 1 units of roundoff, each half of
        `eps`, of the sum of their sizes. That of `exact` is no larger.
        """
        limits = np.finfo(self.numbers)
        rounded = self.device is not None and self.numbers == np.float32
        eps = eps_of_single_products() if rounded else float(limits.eps)
        error = (self._factors.shape[1] + 2) * (eps * reach + float(limits.tiny))
        return library_of(reach).where(reach < float(limits.max) / 4, error, np.inf)

    def exact(self, users: Array, items: Array) -> Array:
        """The scores of some items of each user in double precision, (b, m), for items (b, m)."""
        scores = empty(items.shape, items)
        own = wide(users.T)[:, :, None]  # (r, b, 1)
        most = max(1, self._products // max(1, len(own)))
        columns = min(most, items.shape[1])
        for row in range(0, len(items), most // columns):
            for column in range(0, items.shape[1], columns):
                span = slice(row, row + most // columns), slice(column, column + columns)
                block = items[span]
                products = wide(self._factors[block.reshape(-1)].T).reshape(len(own), *block.shape)
                products *= own[:, span[0]]
                scores[span] = fixed_sum(products) + self._offsets[block]
        return scores

    def exact_of_all(self, users: Array) -> Array:
        """The scores of all items in double precision, (b, n_items), to the bit those of `exact`."""
        scores = empty((len(users), len(self)), users)
        own = wide(users.T)[:, :, None]  # (r, b, 1)
        columns = max(1, self._products // max(2, 2 * len(users)))
        for start in range(0, len(self), columns):
            span = slice(start, start + columns)
            factors = wide(self._factors[span].T)  # (r, columns)
            scores[:, span] = _sum_of_products(own, factors) + self._offsets[span]
        return scores


def unit_rows(factors: np.ndarray) -> np.ndarray:
    """Rows divided by their lengths, in double precision; rows of zeros stay."""
    wide = factors.astype(np.float64)
    norms = np.linalg.norm(wide, axis=-1, keepdims=True)
    return wide / np.where(norms > 0, norms, 1)


def fixed_sum(terms: Array) -> Array:
    """The sum over the first axis, the second half added to the first again and again; overwrites `terms`."""
    if not len(terms):
        return terms.sum(axis=0)
    while (size := len(terms)) > 1:
        half = (size + 1) // 2
        terms[: size - half] += terms[half:]
        terms = terms[:half]
    return terms[0]


def _sum_of_products(own: Array, factors: Array) -> Array:
    """The sums of own[k] * factors[k], (b, c), in the order of `fixed_sum`, with few products at a time."""
    sizes = [len(own)]
    while sizes[-1] > 1:
        sizes.append((sizes[-1] + 1) // 2)

    def term(level: int, k: int) -> Array:  # the k-th after that many halvings
        if level == 0:
            return own[k] * factors[k]
        first, second = term(level - 1, k), k + sizes[level]
        if second < sizes[level - 1]:
            first += term(level - 1, second)
        return first

    return term(len(sizes) - 1, 0) if len(own) else fixed_sum(own * factors[:, None])


def eps_of_single_products() -> float:
    """The precision that torch was asked for in products of float32 matrices."""
    try:
        asked = torch.get_float32_matmul_precision()
    except RuntimeError:  # asked for backend by backend
        asked = "medium"
    return {"highest": torch.finfo(torch.float32).eps, "high": 2.0**-10}.get(asked, 2.0**-7)


def _largest_entries(factors: np.ndarray) -> np.ndarray:
    """The largest size of an entry of each column, (r,); NaN where there is one."""
    n_items, width = factors.shape
    whole = n_items - n_items % _ROWS_OF_MAXIMA if width else 0
    parts = [factors[whole:]]
    if whole:
        long = factors[:whole].reshape(-1, _ROWS_OF_MAXIMA * width)
        parts += [extreme.reshape(-1, width) for extreme in (long.max(axis=0), long.min(axis=0))]
    return np.abs(np.concatenate(parts)).max(axis=0, initial=0.0).astype(np.float64)
