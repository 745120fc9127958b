"""The device a model trains on, and the faster of torch's two libraries for products on the CPU.

Torch multiplies float32 matrices with MKL, which reaches half of the speed of processors of another maker. oneDNN, its
other library, reaches all of it, but torch uses it only where bfloat16 is allowed inside of products. Whether it then
rounds depends on the processor: a test decides, and only products as exact as float32 are used. The choice does not
depend on timings, so that a run can be repeated to the last digit.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

from air_recsys.exceptions import DeviceError, ParameterError
from air_recsys.storage.lazy import Tensor, is_installed, torch

_LOGGER = logging.getLogger("air_recsys")
_SMALLEST = 128  # rows and columns from which on oneDNN is the faster one
_EXACT = 1e-6  # of the sum of absolute products; float32 rounds to 6e-8, bfloat16 to 4e-3


def resolve_device(device: str) -> torch.device:
    """The torch device of a name; "auto" is the GPU if there is one, and logs once if there is none."""
    check_device_name(device)
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        _say_once("no CUDA device found, training on the CPU")
        return torch.device("cpu")
    chosen = torch.device(device)
    count = torch.cuda.device_count()
    if chosen.type == "cuda" and (chosen.index or 0) >= count:
        raise DeviceError(f"device={device!r} was asked for, found {count} CUDA device(s); use device='cpu' or 'auto'")
    return chosen


def gpu_of(device: str) -> torch.device | None:
    """The GPU of a name; None where that means the CPU, which needs no torch."""
    check_device_name(device)
    if device == "cpu" or (device == "auto" and not is_installed()):
        return None
    chosen = resolve_device(device)
    return None if chosen.type == "cpu" else chosen


def device_or_cpu(name: str | None) -> torch.device:
    """The device of a name, such as that of a training on another machine, or the CPU where it is not here.

    Examples
    --------
    >>> device_or_cpu("cuda:99"), device_or_cpu(None)
    (device(type='cpu'), device(type='cpu'))
    """
    chosen = torch.device(name or "cpu")
    is_here = chosen.type == "cuda" and (chosen.index or 0) < torch.cuda.device_count()
    return chosen if is_here else torch.device("cpu")


def check_device_name(device: str) -> None:
    """Raise `ParameterError` for what names a device on no machine."""
    if not isinstance(device, str) or not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
        raise ParameterError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:N', found {device!r}")


@cache
def _say_once(message: str) -> None:
    _LOGGER.warning(message)


def made_on_cpu() -> AbstractContextManager[Any]:
    """A context in which tensors are made on the CPU where no device is named, whatever the caller has set."""
    return nullcontext() if torch.get_default_device().type == "cpu" else torch.device("cpu")


def fast_products(matrix: Tensor) -> AbstractContextManager[None]:
    """A context in which products of matrices like this one are fast and as exact as outside of it.

    The context changes nothing for a small matrix, and for any but float32 on the CPU.
    """
    small = min(matrix.shape) < _SMALLEST
    if small or matrix.dtype != torch.float32 or matrix.device.type != "cpu" or not rounds_as_float32():
        return nullcontext()
    return _onednn()


@cache
def rounds_as_float32() -> bool:
    """Whether oneDNN is available and keeps float32 where it may round to bfloat16."""
    if _switch() is None or not torch.backends.mkldnn.is_available():
        return False
    left, right = torch.randn(2, 256, 256, generator=torch.Generator().manual_seed(0))
    bound = _EXACT * (left.abs() @ right.abs()).double()
    for a, b in ((left, right), (left, right.T.contiguous().T), (left.T.contiguous().T, right)):
        with _onednn():
            product = a @ b
        if not ((product - a.double() @ b.double()).abs() <= bound).all():
            return False
    return True


def _switch() -> Any:
    return getattr(torch.backends.mkldnn, "matmul", None)  # torch < 2.9 has none


@contextmanager
def _onednn() -> Iterator[None]:
    switch = _switch()
    before, switch.fp32_precision = switch.fp32_precision, "bf16"
    try:
        yield
    finally:
        switch.fp32_precision = before
