"""Files that are whole or absent: what killed writers leave behind, permissions, links, and locks."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from air_recsys.storage import held_files
from air_recsys.storage.held_files import HeldError, HeldFile, hold, remove_free
from air_recsys.storage.writing import beside, remove_leftovers, replace_file


def child(work: Callable[[], object]) -> int:
    """A process that does some work and waits; it has done the work, or died, when this returns its number."""
    reading, writing = os.pipe()
    number = os.fork()
    if number == 0:
        try:
            held = work()  # noqa: F841, it stays open
            os.write(writing, b"done")
            time.sleep(60)
        finally:
            os._exit(1)
    os.close(writing)
    os.read(reading, 4)
    os.close(reading)
    return number


def kill(number: int) -> None:
    os.kill(number, signal.SIGKILL)
    os.waitpid(number, 0)


def test_pieces_stand_one_behind_the_other(tmp_path):
    replace_file(tmp_path / "a", [b"ab", np.frombuffer(b"cd", np.uint8), b""])
    assert (tmp_path / "a").read_bytes() == b"abcd"


def write_half(target: Path) -> None:
    os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
    replace_file(target, b"x" * 1000)


def test_the_next_writer_clears_what_killed_ones_have_left(tmp_path):
    target = tmp_path / "a file [1].air"
    (tmp_path / ".a file [1].air.0123456789abcdef").write_bytes(b"of release 0.1.0")
    for _ in range(3):
        _, status = os.waitpid(child(lambda: write_half(target)), 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
        assert len(list(tmp_path.iterdir())) == 1  # of this one; the one before has gone
    replace_file(target, b"whole")
    assert list(tmp_path.iterdir()) == [target]


def test_files_of_others_and_of_live_writers_stay(tmp_path):
    target, token = tmp_path / "a", "0123456789abcdef"
    others = [tmp_path / name for name in (f".a.{token}0", f".b.{token}", "a.tmp", f".a.air.{token}", ".a.lock")]
    for path in others:
        path.write_bytes(b"")
    live = HeldFile(beside(target, token))  # of another thread
    process = child(lambda: HeldFile(beside(target, token[::-1])))
    try:
        remove_leftovers(target)
        kept = {path.name for path in tmp_path.iterdir()}
        assert kept == {path.name for path in others} | {f".a.{token}", f".a.{token[::-1]}"}
    finally:
        kill(process)
        live.remove()
    remove_leftovers(target)
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in others}


def test_many_writers_of_one_file_do_not_harm_each_other(tmp_path):
    contents = [bytes([65 + number]) * 100_000 for number in range(8)]
    failures = []

    def write(content: bytes) -> None:
        try:
            for _ in range(20):
                replace_file(tmp_path / "a", content)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]
    assert (tmp_path / "a").read_bytes() in contents


def test_permissions_stay_and_a_private_file_is_never_open_to_others(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(os, "fsync", lambda handle: seen.append(os.fstat(handle).st_mode & 0o777))
    before = os.umask(0o027)
    try:
        replace_file(tmp_path / "new", b"")
        for name, mode in (("private", 0o600), ("fixed", 0o444), ("open", 0o666)):
            (tmp_path / name).touch()
            (tmp_path / name).chmod(mode)
            replace_file(tmp_path / name, b"more")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"new": 0o640, "private": 0o600, "fixed": 0o444, "open": 0o666}
    assert 0o600 in seen


def test_a_link_leads_to_what_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    for name in ("there", "dangling"):
        (tmp_path / name).symlink_to(f"folder/{name}")
    (tmp_path / "folder" / "there").write_bytes(b"old")
    for name in ("there", "dangling"):
        replace_file(tmp_path / name, b"new")
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "folder" / name).read_bytes() == b"new"


def test_errors_name_the_file(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        replace_file(tmp_path / "none" / "a", b"")
    assert error.value.filename == str(tmp_path / "none" / "a")
    with pytest.raises(IsADirectoryError):
        replace_file(tmp_path, b"")


# -------------------------------------------------------------------- locks


def test_a_lock_is_held_by_one_process(tmp_path):
    process = child(lambda: hold(tmp_path / "lock"))
    with pytest.raises(HeldError) as error:
        hold(tmp_path / "lock")
    assert error.value.args == (process,)
    kill(process)
    assert (tmp_path / "lock").exists()
    hold(tmp_path / "lock").remove()
    assert list(tmp_path.iterdir()) == []


def test_a_lock_is_held_by_one_thread(tmp_path):
    held, failed = [], []

    def take() -> None:
        try:
            held.append(hold(tmp_path / "lock"))
        except HeldError:
            failed.append(True)

    threads = [threading.Thread(target=take) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(held), len(failed)) == (1, 15)
    held[0].remove()
    assert list(tmp_path.iterdir()) == []


def test_a_fork_does_not_let_go_of_the_lock_of_its_parent(tmp_path):
    lock = hold(tmp_path / "lock")
    child = os.fork()
    if child == 0:
        lock.remove()
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(HeldError):
        hold(tmp_path / "lock")
    lock.remove()


def test_a_file_system_without_locks_refuses_nothing(tmp_path, monkeypatch):
    class NoLocks:
        LOCK_EX = LOCK_NB = 0

        @staticmethod
        def flock(*args: object) -> None:
            raise OSError(95, "Operation not supported")

    monkeypatch.setattr(held_files, "fcntl", NoLocks)
    first = hold(tmp_path / "lock")
    second = hold(tmp_path / "lock")
    (tmp_path / "left").touch()
    assert not remove_free(tmp_path / "left")  # nobody knows whether it is in use
    second.remove()
    first.remove()
    replace_file(tmp_path / "a", b"whole")
    assert (tmp_path / "a").read_bytes() == b"whole"


def test_a_system_without_locks_removes_what_it_can(tmp_path, monkeypatch):
    monkeypatch.setattr(held_files, "fcntl", None)
    (tmp_path / ".a.0123456789abcdef").touch()
    replace_file(tmp_path / "a", b"whole")
    hold(tmp_path / "lock").remove()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
