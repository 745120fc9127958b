"""Products of float32 matrices on the CPU by the faster of torch's two libraries.

Torch multiplies float32 matrices with MKL, which reaches half of the speed of processors of another maker. oneDNN, its
other library, reaches all of it, but torch uses it only where bfloat16 is allowed inside of products. Whether it then
rounds depends on the processor: a test decides, and only products as exact as float32 are used. The choice does not
depend on timings, so that a run can be repeated to the last digit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.backends import mkldnn

_SMALLEST = 128  # rows and columns from which on oneDNN is the faster one
_EXACT = 1e-6  # of the sum of absolute products; float32 rounds to 6e-8, bfloat16 to 4e-3
_MATMUL: Any = getattr(mkldnn, "matmul", None)  # torch < 2.9 has no such switch


def fast_products(matrix: Tensor) -> AbstractContextManager[None]:
    """Return a context in which products of matrices like this one are fast and as exact as outside of it.

    The context changes nothing for a small matrix, and for any but float32 on the CPU.

    Examples
    --------
    >>> a = torch.eye(200)
    >>> with fast_products(a):
    ...     bool((a @ a == a).all())
    True
    """
    small = min(matrix.shape) < _SMALLEST
    if small or matrix.dtype != torch.float32 or matrix.device.type != "cpu" or not rounds_as_float32():
        return nullcontext()
    return _onednn()


@cache
def rounds_as_float32() -> bool:
    """Return whether oneDNN is available and keeps float32 where it may round to bfloat16."""
    if _MATMUL is None or not mkldnn.is_available():
        return False
    left, right = torch.randn(2, 256, 256, generator=torch.Generator().manual_seed(0))
    bound = _EXACT * (left.abs() @ right.abs()).double()
    for a, b in ((left, right), (left, right.T.contiguous().T), (left.T.contiguous().T, right)):
        with _onednn():
            product = a @ b
        if not ((product - a.double() @ b.double()).abs() <= bound).all():
            return False
    return True


@contextmanager
def _onednn() -> Iterator[None]:
    before = _MATMUL.fp32_precision
    _MATMUL.fp32_precision = "bf16"
    try:
        yield
    finally:
        _MATMUL.fp32_precision = before
