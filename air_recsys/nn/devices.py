"""The device a model trains on, its threads, and the faster of torch's two libraries for products on the CPU.

Torch multiplies float32 matrices with MKL, which reaches half of the speed of processors of another maker. oneDNN, its
other library, reaches all of it, but torch uses it only where bfloat16 is allowed inside of products. Whether it then
rounds depends on the processor: a test decides, and only products as exact as float32 are used. The choice does not
depend on timings, so that a run can be repeated to the last digit.
"""

from __future__ import annotations

import functools
import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any, TypeVar

import torch
from threadpoolctl import threadpool_limits
from torch import Tensor
from torch.backends import mkldnn

from air_recsys.exceptions import DeviceError, ParameterError

if hasattr(os, "register_at_fork"):  # a forked process has none of the threads that torch would wait for
    os.register_at_fork(after_in_child=functools.partial(torch.set_num_threads, 1))

Item = TypeVar("Item")
Result = TypeVar("Result")
_LOGGER = logging.getLogger("air_recsys")
_LITTLE = 1_000_000  # numbers, of which one thread does a step within milliseconds
_SMALLEST = 128  # rows and columns from which on oneDNN is the faster one
_EXACT = 1e-6  # of the sum of absolute products; float32 rounds to 6e-8, bfloat16 to 4e-3
_MATMUL: Any = getattr(mkldnn, "matmul", None)  # torch < 2.9 has no such switch


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


@functools.cache
def _say_once(message: str) -> None:
    _LOGGER.warning(message)


def made_on_cpu() -> AbstractContextManager[Any]:
    """A context in which tensors are made on the CPU where no device is named, whatever the caller has set."""
    return nullcontext() if torch.get_default_device().type == "cpu" else torch.device("cpu")


@contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Give torch so many threads for a while; 0 leaves it those that it has."""
    before = torch.get_num_threads()
    if number:
        torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def in_workers(function: Callable[[Item], Result], items: Sequence[Item], number: int = 0) -> list[Result]:
    """The results of a function of each item, by so many threads in each of which torch has one of its own.

    Threads that share no work wait for none, which is faster than several threads for one item after the other. One
    item is not given to others: all threads of torch are for it. A `number` of 0 is as many as torch has.

    Examples
    --------
    >>> in_workers(abs, [-1, 2, -3], 2)
    [1, 2, 3]
    """
    if len(items) < 2:
        return [function(item) for item in items]
    # The number of threads that a worker sets becomes torch's default for later threads: the context restores it.
    with torch_threads(0):
        workers = number or torch.get_num_threads()
        with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(function, items))


def one_blas_thread() -> AbstractContextManager[Any]:
    """Hold the linear algebra of NumPy and SciPy to one thread for a while, torch's not among it.

    For small matrices more threads gain little, and on a busy processor they wait for each other many times as long as
    one thread works.

    Examples
    --------
    >>> with one_blas_thread():
    ...     len([1, 2])
    2
    """
    return threadpool_limits(1, user_api="blas")


def few_threads(work: int) -> AbstractContextManager[None]:
    """Hold torch to one thread for a while where a step goes through few numbers: more cost more than they bring.

    Examples
    --------
    >>> with few_threads(1000):
    ...     torch.get_num_threads()
    1
    """
    return torch_threads(1 if work < _LITTLE else 0)


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
