"""Items to be ranked, and their scores in two ways: fast with a known error, and the same on every machine."""

from __future__ import annotations

import numpy as np

from air_recsys.storage.lazy import torch

_CPU_PRODUCTS, _GPU_PRODUCTS = 2**16, 2**24  # products in double precision that are held at a time
_ROWS_OF_MAXIMA = 64  # items that share a row where maxima are taken: long rows are fast


class Catalogue:
    r"""Items with factors q and offsets c, for scores :math:`p_u \cdot q_i + c_i`.

    A product of matrices is fast, but its last bits depend on the processor, its threads and the size of the block.
    `exact` multiplies in double precision and adds in one fixed order, by operations that IEEE 754 rounds alike
    everywhere.
    """

    def __init__(self, factors: np.ndarray, offsets: np.ndarray, device: torch.device) -> None:
        self.numbers = factors.dtype
        self._factors = torch.from_numpy(factors).to(device)
        self._offsets = torch.from_numpy(offsets).to(device)
        finite = offsets[np.isfinite(offsets)]  # an offset of -inf leaves an item out
        self._largest = torch.from_numpy(_largest_entries(factors)).to(device)  # (r,)
        self._largest_offset = float(np.abs(finite).max(initial=0.0))
        self._products = _GPU_PRODUCTS if device.type == "cuda" else _CPU_PRODUCTS

    @property
    def factors(self) -> np.ndarray:
        """The factors, (n_items, r)."""
        return self._factors.cpu().numpy()

    @property
    def offsets(self) -> np.ndarray:
        """The offsets, (n_items,)."""
        return self._offsets.cpu().numpy()

    @property
    def device(self) -> torch.device:
        """The device of the items."""
        return self._factors.device

    @property
    def dtype(self) -> torch.dtype:
        """The type of factors and offsets."""
        return self._factors.dtype

    def __len__(self) -> int:
        return len(self._factors)

    def reach(self, users: torch.Tensor) -> torch.Tensor:
        r"""A bound of the scores of each user, (b,): :math:`\sum_k |p_k| \max_i |q_{ik}| + \max_i |c_i|`."""
        products = users.T.double().abs() * self._largest[:, None]
        return fixed_sum(products) + self._largest_offset

    def approximate(self, users: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        """Write the scores of all items into `out`, (b, n_items), in the precision of the factors, and return it."""
        return torch.addmm(self._offsets, users, self._factors.T, out=out)

    def error(self, reach: torch.Tensor) -> torch.Tensor:
        """The largest difference of `approximate` and `exact`, (b,); infinite where numbers overflow.

        A sum of r products and an offset in any order has an error of at most r + 1 units of roundoff, each half of
        `eps`, of the sum of their sizes. That of `exact` is no larger.
        """
        limits = torch.finfo(self._factors.dtype)
        eps = eps_of_single_products() if self._factors.dtype == torch.float32 else limits.eps
        error = (self._factors.shape[1] + 2) * (eps * reach + limits.tiny)
        return torch.where(reach < limits.max / 4, error, torch.inf)

    def exact(self, users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        """The scores of some items of each user in double precision, (b, m), for items (b, m)."""
        scores = torch.empty(items.shape, dtype=torch.float64, device=items.device)
        own = users.T.double()[:, :, None]  # (r, b, 1)
        most = max(1, self._products // max(1, len(own)))
        columns = min(most, items.shape[1])
        for row in range(0, len(items), most // columns):
            for column in range(0, items.shape[1], columns):
                span = slice(row, row + most // columns), slice(column, column + columns)
                block = items[span]
                factors = self._factors.index_select(0, block.reshape(-1))
                products = _transposed(factors).view(len(own), *block.shape).mul_(own[:, span[0]])
                torch.add(fixed_sum(products), self._offsets.take(block), out=scores[span])
        return scores

    def exact_of_all(self, users: torch.Tensor) -> torch.Tensor:
        """The scores of all items in double precision, (b, n_items), to the bit those of `exact`."""
        scores = torch.empty((len(users), len(self)), dtype=torch.float64, device=users.device)
        own = users.T.double()[:, :, None]  # (r, b, 1)
        columns = max(1, self._products // max(2, 2 * len(users)))
        for start in range(0, len(self), columns):
            span = slice(start, start + columns)
            factors = _transposed(self._factors[span])  # (r, columns)
            torch.add(_sum_of_products(own, factors), self._offsets[span], out=scores[:, span])
        return scores


def unit_rows(factors: np.ndarray) -> np.ndarray:
    """Rows divided by their lengths, in double precision; rows of zeros stay.

    Examples
    --------
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    wide = factors.astype(np.float64)
    norms = np.linalg.norm(wide, axis=-1, keepdims=True)
    return wide / np.where(norms > 0, norms, 1)


def fixed_sum(terms: torch.Tensor) -> torch.Tensor:
    """The sum over the first axis, the second half added to the first again and again; overwrites `terms`.

    Examples
    --------
    >>> fixed_sum(torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]))
    tensor([ 6., 60.])
    """
    if not len(terms):
        return terms.sum(dim=0)
    while (size := len(terms)) > 1:
        half = (size + 1) // 2
        terms[: size - half].add_(terms[half:])
        terms = terms[:half]
    return terms[0]


def _sum_of_products(own: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    """The sums of own[k] * factors[k], (b, c), in the order of `fixed_sum`, with few products at a time."""
    sizes = [len(own)]
    while sizes[-1] > 1:
        sizes.append((sizes[-1] + 1) // 2)

    def term(level: int, k: int) -> torch.Tensor:  # the k-th after that many halvings
        if level == 0:
            return own[k] * factors[k]
        first, second = term(level - 1, k), k + sizes[level]
        return first.add_(term(level - 1, second)) if second < sizes[level - 1] else first

    return term(len(sizes) - 1, 0) if len(own) else fixed_sum(own * factors[:, None])


def _transposed(factors: torch.Tensor) -> torch.Tensor:
    """Factors (m, r) as an array (r, m) in double precision."""
    return factors.T.to(torch.float64, memory_format=torch.contiguous_format)


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
