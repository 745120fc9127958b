"""The shell of a new user, inside the process."""

from __future__ import annotations

import contextlib
import io
import shlex
from typing import NamedTuple

import pytest

from air_recsys.cli import main


class Ended(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str


def shell(line: str) -> Ended:
    """Run a line such as ``air-recsys train FILE`` and return how it ended."""
    out, err = io.StringIO(), io.StringIO()
    program, *arguments = shlex.split(line)
    assert program == "air-recsys"
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(arguments)
    assert isinstance(ended.value.code, int)
    return Ended(ended.value.code, out.getvalue(), err.getvalue())


def answers(line: str) -> list[list[str]]:
    """Return the words of each line that a command prints, which must end well and say nothing else."""
    ended = shell(line)
    assert (ended.status, ended.err) == (0, "")
    return [words.split() for words in ended.out.splitlines()]


def refuses(line: str, *said: str) -> None:
    """Check that a command is refused with one line that says all of that."""
    ended = shell(line)
    assert ended.status > 0
    assert ended.out == ""
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1
    for words in said:
        assert words in ended.err
