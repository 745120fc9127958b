"""Whether the equations of a sweep had a solution: told by the device, and read by the host once.

A host that asks a GPU after each factorization waits each time until the device has nothing left to do. So a sweep
collects flags, and what follows from a matrix without a solution is not finite, or of no use, until they are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from air_recsys.exceptions import NumericalError
from air_recsys.storage.lazy import Tensor, torch
from air_recsys.storage.threads import in_workers

_PRIORS = "the priors of the posterior have no solution: "
_NOT_DEFINITE = (
    _PRIORS + "linalg.cholesky: The factorization could not be completed because the input is not positive-definite "
    "(the leading minor of order {} is not positive-definite)."
)
_SINGULAR = (
    _PRIORS + "linalg.inv: The diagonal element {} is zero, the inversion could not be completed because the input "
    "matrix is singular."
)
_ROWS = (
    "{{}} rows of the posterior have no solution in {}: expected positive definite equations; use dtype='float64' or "
    "smaller weights"
)
_AT_ONCE = 2**20  # numbers
_BATCHED = 256  # rows of a matrix
_NOT_FINITE = "expected a finite posterior, found NaN or infinity; use dtype='float64' or smaller weights"


class Flag(NamedTuple):
    """A number that is 0 where all is well, and what it means where it is not."""

    code: Tensor  # ()
    message: str  # the code takes the place of {}


def cholesky(matrix: Tensor, flags: list[Flag]) -> Tensor:
    """The Cholesky factor of a prior's matrix (d, d); adds a flag."""
    if matrix.is_cuda and len(matrix) <= _BATCHED:  # factors of a batch are kernels alone, which graphs can hold
        factors, codes = torch.linalg.cholesky_ex(matrix.expand(2, -1, -1))
        factor, code = factors[0], codes[0]
    else:
        factor, code = torch.linalg.cholesky_ex(matrix)
    flags.append(Flag(code, _NOT_DEFINITE))
    return factor


def inverse(matrix: Tensor, flags: list[Flag]) -> Tensor:
    """The inverse of a prior's symmetric matrix (d, d); adds a flag."""
    if matrix.is_cuda:  # there an LU decomposition may let the host wait
        factor = cholesky(matrix, flags)
        identity = torch.eye(len(factor), dtype=factor.dtype, device=factor.device)
        root = torch.linalg.solve_triangular(factor, identity, upper=False)
        return root.mT @ root
    found, code = torch.linalg.inv_ex(matrix)
    flags.append(Flag(code, _SINGULAR))
    return found


def of_rows(unsolved: Tensor, dtype: torch.dtype) -> Flag:
    """The flag of a number of rows without a solution."""
    return Flag(unsolved, _ROWS.format(dtype))


def unsolved_rows(number: int, dtype: torch.dtype | str) -> str:
    """The message of rows without a solution."""
    return _ROWS.format(dtype).format(number)


def of_finite(tensors: Sequence[Tensor]) -> Flag:
    """The flag of tensors with a number that is not finite."""
    # One such number makes the sum so, and each tensor is read once.
    on_gpu = tensors[0].is_cuda
    pieces = [piece for each in tensors for piece in ([each] if on_gpu else each.flatten().split(_AT_ONCE))]
    kind = torch.float64 if on_gpu else None
    sums = in_workers(lambda piece: piece.sum(dtype=kind), pieces, work=0 if on_gpu else len(pieces) * _AT_ONCE)
    return Flag(torch.stack([each.double() for each in sums]).mul(0.0).sum(), _NOT_FINITE)


def together(flags: Sequence[Flag], *numbers: Tensor) -> Tensor:
    """The codes of flags, and 0-dimensional numbers, as doubles in one tensor."""
    return torch.stack([each.double() for each in (*(flag.code for flag in flags), *numbers)])


def read(values: Tensor, messages: Sequence[str]) -> list[float]:
    """The numbers of `together`, for which the host waits, or `NumericalError` with the message of a flag."""
    found = values.tolist()
    for code, message in zip(found, messages, strict=False):
        if code != 0:
            raise NumericalError(message.format(f"{code:.0f}"))
    return found[len(messages) :]
