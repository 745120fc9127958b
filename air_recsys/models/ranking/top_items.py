"""The best items of many users, a block of users at a time, on the CPU or on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from air_recsys.exceptions import DataError
from air_recsys.metrics.checks import Csr, check_sparse
from air_recsys.nn.devices import resolve_device
from air_recsys.validation import check_integer

_MAX_ENTRIES = 2**25  # scores of a block: 128 MB in float32
_CACHE_ENTRIES = 2**20  # scores that stay in the cache of a CPU between the product and the selection
_ROWS_WORTH_A_PRODUCT = 64  # users; with fewer the product is bounded by reading the item factors


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
    r"""Return the n items with the highest scores :math:`p_u \cdot q_i + c_i` of each user, best first.

    Of items with equal scores the one with the lower index comes first, on every device, as in
    `air_recsys.metrics.top_k`.

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
        Users that are scored at a time; by default what fits the cache of a CPU or 128 MB of a GPU. One array of
        block_size x n_items is held, and a few more for users whose scores tie.

    Returns
    -------
    items : ndarray of int64, shape (b, n)
        -1 where no item is left.
    scores : ndarray of float32 or float64, shape (b, n)
        In the type of the factors; -inf where no item is left.

    Raises
    ------
    ParameterError
        Where n or `block_size` is below 1 or `device` is no device.
    DataError
        For shapes that do not match, and for scores that are NaN.
    DeviceError
        Where a GPU is asked for and there is none.

    Examples
    --------
    >>> from scipy import sparse
    >>> users, items = [[1.0, 0.0], [0.0, 1.0]], [[3.0, 1.0], [1.0, 1.0], [2.0, 1.0]]
    >>> top_items(users, items, [0.0, 0.0, 0.0], 2, seen=sparse.csr_array([[1, 0, 0], [0, 0, 0]]))
    (array([[2, 1], [0, 1]]), array([[2., 1.], [1., 1.]]))
    """
    check_integer("n", n, minimum=1)
    target = resolve_device(device)
    users, factors, offsets = _as_arrays(user_factors, item_factors, item_offsets)
    n_users, n_items = len(users), len(factors)
    hidden = None if seen is None else check_sparse("seen", seen, (n_users, n_items))
    size = (
        _default_block(n_items, target) if block_size is None else check_integer("block_size", block_size, minimum=1)
    )
    buffer = torch.empty((min(size, n_users), n_items), dtype=_tensor(offsets).dtype, device=target)
    on_device = _tensor(factors).to(target).T, _tensor(offsets).to(target)
    items = np.full((n_users, n), -1, dtype=np.int64)
    scores = np.full((n_users, n), -np.inf, dtype=offsets.dtype)
    for start in range(0, n_users, size):
        rows = slice(start, min(start + size, n_users))
        block = buffer[: rows.stop - rows.start]  # (b, n_items)
        torch.addmm(on_device[1], _tensor(users[rows]).to(target), on_device[0], out=block)
        if hidden is not None:
            _hide(block, hidden, rows)
        best, chosen = _best(block, min(n, n_items))
        scores[rows, : best.shape[1]], items[rows, : best.shape[1]] = best.cpu().numpy(), chosen.cpu().numpy()
    items[np.isneginf(scores)] = -1
    return items, scores


def _as_arrays(user_factors: Any, item_factors: Any, item_offsets: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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


def _tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array)


def _default_block(n_items: int, device: torch.device) -> int:
    most = max(1, _MAX_ENTRIES // n_items)
    return most if device.type == "cuda" else min(most, max(_ROWS_WORTH_A_PRODUCT, _CACHE_ENTRIES // n_items))


def _hide(block: torch.Tensor, seen: Csr, users: slice) -> None:
    """Set the scores of seen items to -inf, in place."""
    indptr = seen.indptr[users.start : users.stop + 1].astype(np.int64)
    rows = np.repeat(np.arange(len(block)), np.diff(indptr))
    places = rows * block.shape[1] + seen.indices[indptr[0] : indptr[-1]]
    block.view(-1)[_tensor(places).to(block.device)] = -torch.inf


def _best(scores: torch.Tensor, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the n highest scores of each row and where they stand, both (b, n)."""
    values, items = scores.topk(min(n + 1, scores.shape[1]))  # one more shows whether the last one ties
    if values[:, 0].isnan().any():  # NaN sorts as the highest
        raise DataError("expected scores without NaN: the factors or the offsets hold NaN or are infinite")
    ties = ((values[:, 1:] == values[:, :-1]) & (values[:, 1:] > -torch.inf)).any(dim=1).nonzero()[:, 0]
    values, items = values[:, :n], items[:, :n]
    if len(ties):
        values[ties], items[ties] = _best_with_ties(scores[ties], n)
    return values, items


def _best_with_ties(scores: torch.Tensor, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Do what `_best` does where `topk` would choose and order equal scores as it likes."""
    threshold = scores.topk(n).values[:, -1:]  # (b, 1)
    above, equal = scores > threshold, scores == threshold
    room = n - above.sum(dim=1, keepdim=True)
    chosen = above | (equal & (equal.cumsum(dim=1, dtype=torch.int32) <= room))  # n in each row
    items = chosen.nonzero()[:, 1].view(-1, n)  # in the order of the items
    values, order = scores.gather(1, items).sort(dim=1, descending=True, stable=True)
    return values, items.gather(1, order)
