"""Changes that are written down: none is lost that was promised, none is told that was not, and damage is an error."""

import os
import threading

import pytest

from air_recsys.exceptions import DataFileError, DataWarning
from air_recsys.storage.journal import Journal

CHANGES = [{"users": ["ann", 'b"digest":"\n\ud800', 3]}, {"rating": [4.5, -1e300]}, {"forget": {"users": [2**62]}}]


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path / "model.air.journal", "of this model")


def again(journal, subject="of this model"):
    """The journal as another process opens it."""
    return Journal(journal.path, subject)


def write(journal, *changes):
    with journal.held():
        assert list(journal.read()) == []
        for change in changes:
            journal.append(change)


def read(journal):
    """The changes without their digests."""
    with journal.held():
        return [{name: change[name] for name in change if name != "digest"} for change in journal.read()]


def test_changes_are_read_once_in_their_order(journal):
    other = again(journal)
    assert not other.is_behind
    write(journal, *CHANGES)
    assert not journal.is_behind
    assert other.is_behind
    assert read(other) == CHANGES
    assert not other.is_behind
    write(other, *CHANGES[:1])
    assert read(journal) == CHANGES[:1]
    assert read(again(journal)) == [*CHANGES, *CHANGES[:1]]
    assert list(journal.path.parent.iterdir()) == [journal.path]


def test_a_change_that_could_not_be_taken_in_is_read_again(journal):
    write(journal, *CHANGES)
    other = again(journal)
    with other.held():
        assert next(other.read())["users"][0] == "ann"
    assert read(other) == CHANGES


def test_of_a_last_change_that_was_cut_anywhere_nothing_is_left(journal):
    write(journal, *CHANGES[:1])
    short = journal.path.read_bytes()
    write(journal, CHANGES[1])
    whole = journal.path.read_bytes()
    for size in (1, 40, *range(len(short) + 1, len(whole), 7), len(whole) - 1):
        journal.path.write_bytes(whole[:size])
        with pytest.warns(DataWarning, match="left out a last change that was cut short"):
            assert read(again(journal)) == (CHANGES[:1] if size > len(short) else [])
        other = again(journal)
        assert read(other) == (CHANGES[:1] if size > len(short) else [])
        write(other, CHANGES[2])
        assert read(again(journal))[-1] == CHANGES[2]


def test_damage_is_an_error_whose_advice_helps(journal):
    write(journal, *CHANGES)
    whole = journal.path.read_bytes()
    starts = [0, *(place + 1 for place, byte in enumerate(whole) if byte == 10)]
    for number, start in enumerate(starts[:-1]):
        damaged = bytearray(whole)
        damaged[start + 20] ^= 1
        journal.path.write_bytes(damaged)
        with pytest.raises(DataFileError, match=f"damaged at byte {start}: .* truncate -s {start}"):
            read(again(journal))
        os.truncate(journal.path, start)
        assert read(again(journal)) == CHANGES[: max(0, number - 1)]


def test_a_journal_of_another_file_and_one_that_was_cut_are_errors(journal):
    write(journal, *CHANGES)
    with pytest.raises(DataFileError, match="has changes of another file"):
        read(again(journal, "of another model"))
    os.truncate(journal.path, journal.path.stat().st_size - 3)
    assert journal.is_behind
    with pytest.raises(DataFileError, match="lacks changes that it had"):
        read(journal)
    journal.path.unlink()
    assert journal.is_behind


def test_what_the_disk_refuses_is_not_there(journal, monkeypatch):
    def refuse(_):
        raise OSError(28, "No space left on device")

    for known in ([], CHANGES[:1]):
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", refuse)
            with pytest.raises(DataFileError, match=r"cannot use .*model\.air\.journal: No space left"):
                write(journal, CHANGES[2])
        assert read(again(journal)) == known
        write(journal, CHANGES[0])


def test_many_writers_take_turns(journal):
    def work(number):
        own = again(journal)
        for step in range(20):
            with own.held():
                list(own.read())
                own.append({"by": number, "step": step})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = read(journal)
    assert len(found) == 80
    for number in range(4):
        assert [each["step"] for each in found if each["by"] == number] == list(range(20))
