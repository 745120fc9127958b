"""Processes that do the same work side by side: started together, replaced where one ends, stopped together."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing import connection

from air_recsys.exceptions import AirRecsysError

# A process that is forked from one that has computed lacks the threads of torch.
_SPAWN = multiprocessing.get_context("spawn")
_PAUSE = 0.2  # seconds between two looks at whether to stop
_STOPPING = 20  # seconds that a process has to end in

Work = Callable[[Callable[[], None]], None]
"""Work until SIGTERM; its argument has to be called when it is under way."""


class Worker:
    """A process at work."""

    def __init__(self, work: Work) -> None:
        self.under_way = _SPAWN.Event()
        self.process = _SPAWN.Process(target=_run, args=(work, self.under_way.set))
        self.process.start()


def keep_working(work: Work, number: int, stopped: threading.Event) -> None:
    """Let so many processes work until they are to stop; one that ends before is replaced.

    Parameters
    ----------
    work : callable
        That can be pickled.
    number : int
    stopped : Event
        Set, by a handler of signals, when they are to stop.

    Raises
    ------
    AirRecsysError
        Where a process ends before its work is under way: another one would do so, too.
    """
    workers: list[Worker] = []
    try:
        workers += [Worker(work) for _ in range(number)]
        while not stopped.is_set():
            connection.wait([each.process.sentinel for each in workers], _PAUSE)
            for place, worker in enumerate(workers):
                if worker.process.exitcode is None or stopped.is_set():
                    continue
                if not worker.under_way.is_set():
                    raise AirRecsysError(f"a process could not start, its status was {worker.process.exitcode}")
                workers[place] = Worker(work)
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.process.join(_STOPPING)
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
