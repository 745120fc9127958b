"""Processes that work side by side: replaced where one ends, an error where one cannot start, stopped together."""

import os
import signal
import sys
import threading
import time
from functools import partial
from multiprocessing import forkserver

import pytest

from air_recsys.exceptions import AirRecsysError, DataError
from air_recsys.serving.server import keep_working


def work_on(folder, under_way):
    """Write a file with the number of the process, and wait."""
    under_way()
    (folder / str(os.getpid())).touch()
    time.sleep(600)


def fail(error, under_way):
    raise error


def end_at_once(under_way):
    sys.exit(0)


def wait_for(condition) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_process_that_ends_is_replaced_and_all_end_together(tmp_path):
    stopped, pids = threading.Event(), []

    def seen() -> list[int]:
        return [int(path.name) for path in tmp_path.iterdir()]

    def disturb():
        wait_for(lambda: len(seen()) == 2)
        os.kill(seen()[0], signal.SIGKILL)
        wait_for(lambda: len(seen()) == 3)
        pids.extend(seen())
        stopped.set()

    other = threading.Thread(target=disturb)
    other.start()
    keep_working(partial(work_on, tmp_path), 2, stopped)
    other.join()
    assert len(pids) == 3
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize("work", [partial(fail, DataError("no data")), end_at_once])
def test_a_process_that_cannot_start_is_an_error(work, capfd):
    forkserver._forkserver._stop()  # it writes to the standard error of the test that started it
    with pytest.raises(AirRecsysError, match="a process could not start, its status was"):
        keep_working(work, 1, threading.Event())
    err = capfd.readouterr().err
    assert ("error: no data" in err) is isinstance(work, partial)
    assert "Traceback" not in err


def work_at_every_third_start(folder, under_way):
    """Work, but end at once in two of the starts after the first two."""
    number = len(list(folder.iterdir()))
    if number not in (2, 3):
        under_way()  # before the file is there, for which the test waits
    (folder / f"{number}-{os.getpid()}").touch()
    if number in (2, 3):
        sys.exit(1)
    time.sleep(600)


def test_a_process_that_does_not_start_again_is_tried_again(tmp_path):
    stopped = threading.Event()

    def started() -> list[str]:
        return sorted(path.name for path in tmp_path.iterdir())

    def disturb():
        wait_for(lambda: len(started()) == 2)
        os.kill(int(started()[0].split("-")[1]), signal.SIGKILL)
        wait_for(lambda: len(started()) == 5)
        stopped.set()

    other = threading.Thread(target=disturb)
    other.start()
    keep_working(partial(work_at_every_third_start, tmp_path), 2, stopped)
    other.join()
    assert len(started()) == 5
