"""The sums over the entries of each row of a sparse matrix of what their columns have in a table."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache

from air_recsys.storage.lazy import Tensor, functional, torch

Sums = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]
_LOGGER = logging.getLogger("air_recsys")
_FEW = 2**17  # entries, whose sums take a GPU less than compiling a kernel once
_OLDEST = 7, 0  # compute capability that Triton compiles for


def row_sums(starts: Tensor, partners: Tensor, table: Tensor, weights: Tensor | None = None) -> Tensor:
    r""":math:`\sum_j w_{ij} t_j` over the entries of each row, (m, k), in the same order every time.

    Large sums on a GPU are those of a kernel of this library, where Triton is there and the kernel works.

    Parameters
    ----------
    starts : Tensor, shape (m + 1,)
        Entries of row i are ``starts[i]:starts[i + 1]``.
    partners : Tensor, shape (nnz,)
        The column of each entry.
    table : Tensor, shape (n, k)
    weights : Tensor, optional, shape (nnz,)
        All 1 where None.
    """
    if table.is_cuda and len(partners) >= _FEW and not table.requires_grad:
        return _of_device(table.device, table.dtype)(starts, partners, table, weights)
    return _by_torch(starts, partners, table, weights)


def _by_torch(starts: Tensor, partners: Tensor, table: Tensor, weights: Tensor | None) -> Tensor:
    table = table.contiguous()  # columns, as a QR decomposition leaves them, take five times as long
    return functional.embedding_bag(
        partners, table, starts, mode="sum", per_sample_weights=weights, include_last_offset=True
    )


@cache
def _of_device(device: torch.device, dtype: torch.dtype) -> Sums:
    """The kernel, if it gives on this device what torch gives."""
    try:
        capability = torch.cuda.get_device_capability(device)
        if capability < _OLDEST:
            raise RuntimeError(f"expected compute capability 7.0 or higher, found {capability[0]}.{capability[1]}")
        from air_recsys.nn.sums_kernel import sums_by_kernel

        check(sums_by_kernel, device, dtype)
    except Exception as error:  # of an import, a compiler or a driver
        reason = f"{type(error).__name__}: {str(error).strip()[:200]}"
        _LOGGER.warning("sums on %s are those of torch, which take longer: no Triton kernel (%s)", device, reason)
        return _by_torch
    return sums_by_kernel


def check(sums: Sums, device: torch.device, dtype: torch.dtype) -> None:
    """Raise `RuntimeError` where sums over rows without entries, with few and with many differ from those of torch."""
    starts = torch.tensor([0, 0, 3, 2500, 2501], device=device, dtype=torch.int32)
    partners = torch.arange(2501, device=device, dtype=torch.int32) * 5 % 7
    table = torch.linspace(-1, 1, 7 * 300, device=device, dtype=dtype).view(7, 300)
    given = starts, partners, table, torch.linspace(0, 2, 2501, device=device, dtype=dtype)
    found, expected = sums(*given), _by_torch(*given)
    if not torch.allclose(found, expected, rtol=1e-4, atol=1e-2):
        error = float((found - expected).abs().max())
        raise RuntimeError(f"sums differ from those of torch by {error:.2g}")
