"""Threads that share out independent work, in each of which torch and the linear algebra of NumPy have one thread.

Blocks of rows are independent, and each is much work for torch: threads that share no work wait for none, which is
faster than several threads for one operation after the other. What a block computes does not depend on the number of
threads, so neither does a bit of the results.

The number that `torch.set_num_threads` takes is that of the calling thread, of threads that start later, and of MKL in
all threads; that of OpenBLAS is one for all threads, too. So these numbers are held together: the first of several
threads that need one thread each takes them, and the last one gives them back.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from threadpoolctl import ThreadpoolController, threadpool_limits

from air_recsys.exceptions import ParameterWarning
from air_recsys.storage.lazy import WHEN_LOADED, is_loaded, torch

Item = TypeVar("Item")
Result = TypeVar("Result")
LITTLE = 4_000_000  # numbers: sharing them out takes as long as it saves, see benchmarks/reports/speed.md


def cores(root: Path = Path("/")) -> int:
    """The processors that this process may use: its affinity, within the limit of a container (half a one is 1).

    Examples
    --------
    >>> 1 <= cores() <= (os.cpu_count() or 1)
    True
    """
    whole = os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else whole
    return max(1, min([allowed, *(math.ceil(limit) for limit in _limits(root))]))


def _limits(root: Path) -> Iterator[float]:
    """The processors that control groups allow this process, of version 2 ("0::/path") and 1 ("4:cpu:/path")."""
    try:
        groups = [line.split(":", 2)[1:] for line in (root / "proc/self/cgroup").read_text().splitlines()]
    except OSError:  # not on Linux
        return
    for kinds, path in groups:
        if kinds and "cpu" not in kinds.split(","):
            continue
        top = root / "sys/fs/cgroup" / ("cpu" if kinds else "")
        within = Path(path.strip("/"))  # in a container perhaps a folder of the host, which is not here
        for folder in (top / within, *(top / each for each in within.parents)):
            files = [folder / f"cpu.cfs_{name}_us" for name in ("quota", "period")] if kinds else [folder / "cpu.max"]
            try:
                quota, period = " ".join(file.read_text() for file in files).split()
                if quota not in ("max", "-1"):
                    yield int(quota) / int(period)
            except (OSError, ValueError, ZeroDivisionError):
                continue


class _Numbers:
    """The numbers that all threads have together, held at one as long as any of them needs that."""

    def __init__(self) -> None:
        self._lock, self.users, self.before = threading.Lock(), 0, 0

    def __enter__(self) -> None:
        with self._lock:
            if not self.users:
                self.before = _of_torch()
                libraries = _linear_algebra(len(sys.modules))
                self._blas = [(each, each.num_threads) for each in libraries]
                _set_blas((each, 1) for each in libraries)
            self.users += 1
            _set_torch(1)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.users -= 1
            if not self.users:
                _set_torch(self.before)
                _set_blas(self._blas)

    def own(self) -> int:
        """The number of the calling thread; a new one would start with the one that is held."""
        found = _of_torch()
        return self.before if self.users and found == 1 and not _THREAD.alone else found


def _of_torch() -> int:
    """The threads of torch, or those that it would start with."""
    if is_loaded():
        return torch.get_num_threads()
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(asked) if asked.isdecimal() and int(asked) else cores()


def _set_torch(number: int) -> None:
    if is_loaded():
        torch.set_num_threads(number)


def _hold_torch() -> None:
    """Give torch, which was loaded just now, one thread where all have one."""
    if _NUMBERS.users:
        torch.set_num_threads(1)


@lru_cache(1)
def _linear_algebra(n_modules: int) -> list[Any]:
    """The libraries that are loaded, looked for again once more modules are there: this takes milliseconds."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


def _set_blas(numbers: Iterable[tuple[Any, int]]) -> None:
    for library, number in numbers:
        # The number of OpenBLAS belongs to the first thread that sets it, by threadpoolctl 3.8; here any thread may.
        release = getattr(library, "clear_controlling_thread", lambda **_: None)
        release(force=True)
        library.set_num_threads(number)
        release(force=True)


class _Thread(threading.local):
    alone = False  # whether torch has one thread here, whatever is asked for


class _Workers(NamedTuple):
    """How many threads the work of a block of code is shared out to, and those beside the calling one."""

    number: int
    pool: ThreadPoolExecutor | None = None


_NUMBERS, _THREAD, _ALONE = _Numbers(), _Thread(), _Workers(1)
_WORKERS: ContextVar[_Workers | None] = ContextVar("_WORKERS", default=None)


def _start_anew() -> None:
    """Forget the threads of the process that this one was forked from: they are not here."""
    global _NUMBERS
    _NUMBERS, _THREAD.alone = _Numbers(), False
    _WORKERS.set(None)
    _set_torch(1)


WHEN_LOADED.append(_hold_torch)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


def default_threads() -> int:
    """The threads where nobody says how many: those of torch, and at most `cores` unless `OMP_NUM_THREADS` is set."""
    found = _NUMBERS.before if _THREAD.alone else _NUMBERS.own()
    return found if "OMP_NUM_THREADS" in os.environ else min(found, cores())


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold torch, and the linear algebra of NumPy and SciPy, to one thread for a while.

    What is computed then has the same bits on any machine with any number of cores. For small matrices more threads
    gain little, and on a busy processor they wait for each other many times as long as one thread works.

    Examples
    --------
    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    if _THREAD.alone:
        yield
        return
    before = _NUMBERS.own()
    try:
        with _NUMBERS:
            _THREAD.alone = True
            try:
                yield
            finally:
                _THREAD.alone = False
    finally:
        _set_own(before)


@contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Give torch so many threads for a while; 0 leaves it those that it has."""
    before = _NUMBERS.own()
    if number and not _THREAD.alone:
        _set_own(number)
    try:
        yield
    finally:
        _set_own(1 if _THREAD.alone else before)


def _set_own(number: int) -> None:
    """Give torch so many threads in the calling thread; the numbers of all stay where others hold them."""
    if is_loaded() and number != torch.get_num_threads():
        if _NUMBERS.users:
            threadpool_limits(number, user_api="openmp")
        else:
            torch.set_num_threads(number)


def warn_of_many(number: int | None, stacklevel: int = 4) -> None:
    """Warn of more threads than processors."""
    if number is not None and number > (most := cores()):
        told = f"n_threads={number} is more than the {most} processor(s) of this process, and no faster than {most}"
        warnings.warn(told, ParameterWarning, stacklevel=stacklevel)


@contextmanager
def threads(number: int | None = None) -> Iterator[None]:
    """Let `in_workers` share out work to so many threads for a while, and torch have as many where it works alone.

    None is as many as around it, or `default_threads`.

    Examples
    --------
    >>> with threads(2):
    ...     in_workers(abs, [-1, 2, -3])
    [1, 2, 3]
    """
    around = _WORKERS.get()
    if around is not None and (number is None or around is _ALONE):
        yield
        return
    number = number or default_threads()
    with ThreadPoolExecutor(max(number - 1, 1)) as pool, torch_threads(number):
        before = _WORKERS.set(_Workers(number, pool))
        try:
            yield
        finally:
            _WORKERS.reset(before)


def in_workers(
    function: Callable[[Item], Result], items: Sequence[Item], number: int = 0, work: float = math.inf
) -> list[Result]:
    """The results of a function of each item, by so many threads in each of which torch has one of its own.

    Items are begun in their order, by whichever thread is free. Where one fails, what is begun ends, and the error of
    the first item is raised. One item is not given to others: all threads of torch are for it. A `number` of 0, and
    at most, is that of `threads`. Little `work`, in numbers that all items go through, is done by the calling thread.

    Examples
    --------
    >>> in_workers(abs, [-1, 2, -3], 2)
    [1, 2, 3]
    """
    if len(items) < 2:
        return [function(item) for item in items]
    around = _WORKERS.get()
    most = (number or default_threads()) if around is None else around.number
    number = min(number or most, most, len(items)) if work >= LITTLE else 1
    with one_thread():
        if number < 2:
            return [function(item) for item in items]
        own = None if around is None else around.pool
        with ThreadPoolExecutor(number - 1) if own is None else nullcontext(own) as pool:
            return _shared_out(function, items, pool, number - 1)


def _shared_out(
    function: Callable[[Item], Result], items: Sequence[Item], pool: ThreadPoolExecutor, n_others: int
) -> list[Result]:
    """The results of a function of each item, by this thread and others."""
    left, results, errors = deque(enumerate(items)), dict[int, Result](), dict[int, BaseException]()

    def work() -> None:
        alone, around = _THREAD.alone, _WORKERS.set(_ALONE)
        _THREAD.alone = True
        try:
            while left:
                try:
                    place, item = left.popleft()
                except IndexError:  # another thread was faster
                    return
                try:
                    results[place] = function(item)
                except BaseException as error:
                    errors[place] = error
                    left.clear()
        finally:
            _THREAD.alone = alone
            _WORKERS.reset(around)

    others = [pool.submit(work) for _ in range(n_others)]
    try:
        work()
    finally:
        left.clear()
        wait([other for other in others if not other.cancel()])
    if errors:
        raise errors.pop(min(errors))
    return [results[place] for place in range(len(items))]
