"""A service in one process or several: the address, the processes, and how they stop.

One process reads the model file. Several map a copy of it that is private to them: what is large is in memory once,
and a program that writes to the file harms none of them.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import connection
from pathlib import Path
from typing import Any

from air_recsys.data.readers.titles import groups_in, read_titles, titles_of
from air_recsys.exceptions import AirRecsysError, ModelFileError, ParameterError
from air_recsys.models import Recommender
from air_recsys.models.listing import ListsByTaking
from air_recsys.serving.app import make_app
from air_recsys.serving.changes import journal_of
from air_recsys.serving.limits import Limits
from air_recsys.serving.service import Service
from air_recsys.storage.held_files import hold, remove_free
from air_recsys.storage.threads import one_thread, threads
from air_recsys.storage.validation import needs_extra

with needs_extra("serve"):
    from fastapi import FastAPI
    from uvicorn import Config, Server

_TERMINATED = 143  # the status of shells after SIGTERM
_STOPPING = 10  # seconds that requests have to end in
_is_full = threading.Event()  # once no file was left for a connection


@dataclass(frozen=True)
class Address:
    """Where a service listens."""

    host: str = "127.0.0.1"  # a name or an address of this machine
    port: int = 8000  # 0 takes a free one
    public: bool = False  # whether other machines may reach it


@dataclass(frozen=True)
class Served:
    """What every process of a service is told."""

    model: Path
    titles: Path | None = None
    hosts: frozenset[str] | None = None
    limits: Limits = field(default_factory=Limits)
    token: str | None = field(default=None, repr=False)  # of those who may change the model
    group_by: str | None = None  # the column of the titles that has groups of items
    copied: Path | None = None  # of the model, private to the service, to be mapped

    def app(self) -> FastAPI:
        """Load the model and the titles, and return the application."""
        model = Recommender.load(self.copied or self.model, mapped=self.copied is not None)
        if isinstance(model, ListsByTaking):
            model.learn_lists()  # which no request should wait for
        ids = model.interactions_.item_ids
        about = None if self.titles is None else read_titles(self.titles, ids)
        groups = None if about is None or self.group_by is None else groups_in(about, self.group_by)
        titles = None if about is None else titles_of(about)
        service = Service(model, titles, journal_of(self.model, self.copied), groups)
        service.prepare()
        return make_app(service, self.limits, self.hosts, self.token)


def listen(address: Address) -> socket.socket:
    """Return a socket that listens at an address, from now on and before any model is loaded.

    Raises
    ------
    ParameterError
        Where the address is none of this machine, the port is taken, or other machines could reach it unasked.
    """
    place = f"{address.host}:{address.port}"
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise ParameterError(f"expected a host of this machine, found {address.host!r}: {error}") from None
    family, *_, where = min(found, key=lambda each: each[0] != socket.AF_INET)
    if not address.public and not ipaddress.ip_address(str(where[0]).partition("%")[0]).is_loopback:
        raise ParameterError(
            f"{place} can be reached from other machines, and the service has no passwords and no encryption: put a "
            "server with both before it, or pass --public if everybody on the network may ask"
        )
    try:
        return socket.create_server((str(where[0]), int(where[1])), family=family, backlog=1024)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ParameterError(f"expected a free port, found {place} in use; port 0 takes a free one") from None
        raise ParameterError(f"cannot listen at {place}: {error.strerror or error}") from None


def address_of(listening: socket.socket) -> str:
    """Return the address of the page of a service that listens there."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def hosts_of(address: Address) -> frozenset[str] | None:
    """Return the names that requests to a private service may have; None, any, for a public one."""
    named = f"[{address.host}]" if ":" in address.host else address.host.lower()
    return None if address.public else frozenset({"localhost", "127.0.0.1", "[::1]", named})


def serve(served: Served, listening: socket.socket, workers: int, started: Callable[[], None]) -> None:
    """Answer requests until SIGINT or SIGTERM: then those that are there are answered, and it returns."""
    with suppress(ImportError, ValueError, OSError):  # Windows, and systems without a bound
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]  # connections are files: without one left all wait
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with listening, _cleaning_up():
        if workers == 1:
            with threads(1), one_thread():  # threads are for requests
                _answer(served, listening, started)
            return
        with _private_copy(served) as copied:
            copied.app()  # what is wrong is said before there are processes
            stopped = threading.Event()
            with _noted_signals(stopped.set):
                started()
                keep_working(partial(_work, copied, listening), workers, stopped)


def _answer(served: Served, listening: socket.socket, started: Callable[[], None]) -> None:
    config = Config(
        served.app(),
        http="h11",  # whose bounds on lines and headers are fixed
        log_level="error",  # what is no HTTP is answered with a status and is no news
        access_log=False,  # addresses hold the ids of users
        server_header=False,
        limit_concurrency=served.limits.connections,
        timeout_graceful_shutdown=_STOPPING,
    )
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(_is_news)  # after the configuration, which sets the logger anew
    server = Server(config)
    with _noted_signals(partial(setattr, server, "should_exit", True)):  # also before it hears them itself
        started()
        server.run([listening])


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a message tells of more than a second signal, which cancels what is under way, or a repeated lack."""
    raised = record.exc_info[1] if record.exc_info else None  # by a request; that of the application comes as text
    if isinstance(raised, OSError) and raised.errno in (errno.EMFILE, errno.ENFILE):  # told a thousand times a second
        record.msg, record.exc_info = "no file is left for new connections, which wait (see ulimit -n)", None
        return not _is_full.is_set() and _is_full.set() is None
    told = record.getMessage()
    is_of_an_ended_server = "_start_serving" in told  # asyncio tries a socket again that has been closed
    return not (isinstance(raised, asyncio.CancelledError) or "CancelledError" in told or is_of_an_ended_server)


def _work(served: Served, listening: socket.socket, under_way: Callable[[], None]) -> None:
    """Answer requests in a process of several."""
    with threads(1), one_thread():
        _answer(served, listening, under_way)


_COPIES, _OWNER = "air-recsys-serve-", "owner"


@contextmanager
def _private_copy(served: Served) -> Iterator[Served]:
    """Give several processes copies of the files that nobody else writes to, as long as they run."""
    given = {"copied": served.model} | ({} if served.titles is None else {"titles": served.titles})
    _remove_left_copies()
    with tempfile.TemporaryDirectory(prefix=_COPIES) as folder:
        owner = hold(Path(folder, _OWNER))
        copied = {name: Path(folder) / name for name in given}
        try:
            for name, file in given.items():
                _copy(file, copied[name])
            yield replace(served, **copied)
        finally:
            owner.remove()


def _copy(file: Path, target: Path) -> None:
    try:
        shutil.copyfile(file, target)
    except OSError as error:
        raise ModelFileError(f"cannot copy {file} to {target.parent}: {error.strerror or error}") from None


def _remove_left_copies() -> None:
    """Remove the copies of services that were killed, which hold their file no more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_COPIES}*"):
        owner = folder / _OWNER
        if owner.exists() and remove_free(owner):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _cleaning_up() -> Iterator[None]:
    """Let SIGTERM end the process by an exit, which removes what it has made; SIGINT does so anyway."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _noted_signals(note: Callable[[], object]) -> Iterator[None]:
    """Call something at SIGINT and SIGTERM and do nothing more; uvicorn raises them again when it has stopped."""
    before = {number: signal.signal(number, lambda *_: note()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# Linux forks from a process that has imported, which takes seconds, and not computed, as torch loses its threads.
_PROCESSES: Any = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
if sys.platform == "linux":
    _PROCESSES.set_forkserver_preload([__name__])
_PAUSE = 0.2  # seconds between two looks at whether to stop
_LONGEST_PAUSE = 30  # seconds before a process that does not start is tried again
_ENDING = 20  # seconds that a process has to end in

Work = Callable[[Callable[[], None]], None]
"""Work until SIGTERM; its argument has to be called when it is under way."""


class Worker:
    """A process at work that is started again: at once after work, after growing pauses where it does not start."""

    def __init__(self, work: Work) -> None:
        self._work, self._n_failed = work, 0
        self._due: float | None = None
        self._start()

    def _start(self) -> None:
        self.under_way = _PROCESSES.Event()
        self.process = _PROCESSES.Process(target=_run, args=(self._work, self.under_way.set))
        with _interrupts_held():
            self.process.start()

    def look(self) -> None:
        """Start the process again where it has ended and the pause is over."""
        if self.process.exitcode is None:
            return
        now, due = time.monotonic(), self._due
        if due is None:
            self._n_failed = 0 if self.under_way.is_set() else self._n_failed + 1
            due = now + (min(_PAUSE * 2**self._n_failed, _LONGEST_PAUSE) if self._n_failed else 0)
        self._due = due if now < due else None
        if self._due is None:
            self._start()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let processes that are started hear no Ctrl-C, not even while they import: their parent ends them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def keep_working(work: Work, number: int, stopped: threading.Event) -> None:
    """Let so many processes work until they are to stop; one that ends before is replaced, again and again.

    The workers of uvicorn are replaced without a pause where none can start, and tell nobody when they are under way.

    Raises
    ------
    AirRecsysError
        Where a process ends before any has been under way: another one would do so, too.
    """
    workers: list[Worker] = []
    has_worked = False
    try:
        workers += [Worker(work) for _ in range(number)]
        while not stopped.is_set():
            stopped.wait(_PAUSE)
            has_worked = has_worked or any(worker.under_way.is_set() for worker in workers)
            for worker in workers:
                ended = worker.process.exitcode
                if not has_worked and ended is not None:
                    raise AirRecsysError(f"a process could not start, its status was {ended}")
                if not stopped.is_set():
                    worker.look()
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.process.join(_ENDING)
            worker.process.kill()


def _run(work: Work, under_way: Callable[[], None]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        work(under_way)
    except (AirRecsysError, MemoryError) as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(1)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
