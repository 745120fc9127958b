"""Progress bars on terminals and in notebooks, and messages beside them."""

from __future__ import annotations

import io
import logging
import sys
import warnings

import pytest

from air_recsys.storage import progress
from air_recsys.storage.progress import in_notebook, messages_beside, progress_bar

CELL = """
import time, warnings
from air_recsys.storage.progress import in_notebook, messages_beside, progress_bar

with progress_bar(None, total=2, desc="training") as bar, messages_beside(bar):
    bar.update()
    time.sleep({seconds})
    {tell}("look here", UserWarning)
    bar.update()
print(in_notebook())
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_gets_lines_after_a_while(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not in_notebook()
    with progress_bar(None, total=2) as bar:
        bar.update()
        assert (bool(bar.disable), bar.delay, bar.mininterval, bar.leave) == (False, 10, 10, False)
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]
    with progress_bar(None, total=2, desc="sweeps", delay=0, mininterval=0, miniters=1) as bar:
        bar.update()
        bar.update()
    lines = sys.stderr.getvalue().splitlines()  # type: ignore[attr-defined]
    assert [line.partition("|")[0] for line in lines] == ["sweeps:   0%", "sweeps:  50%", "sweeps: 100%"]
    monkeypatch.setattr(sys, "stderr", None)
    progress_bar(True, total=2).close()


def test_a_bar_waits_two_seconds_and_leaves_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_bar(None, total=2) as bar:
        bar.update()
        assert (bool(bar.disable), bar.delay, bar.leave) == (False, 2, False)
    assert sys.stderr.getvalue().strip() == ""  # type: ignore[attr-defined]


def test_warnings_and_loggers_write_lines_of_their_own_beside_a_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(warnings, "showwarning", progress._SHOW_WARNING)
    with progress_bar(True, total=2, desc="training") as bar, messages_beside(bar):
        bar.update()
        warnings.showwarning("look here", UserWarning, "file.py", 3)
        logging.getLogger("a library").warning("and here")
        bar.update()
    assert warnings.showwarning is progress._SHOW_WARNING
    lines = sys.stderr.getvalue().replace("\r", "\n").splitlines()  # type: ignore[attr-defined]
    assert "file.py:3: UserWarning: look here" in lines
    assert "and here" in lines


def test_a_display_of_warnings_by_others_stays(monkeypatch):
    told: list[str] = []
    monkeypatch.setattr(warnings, "showwarning", lambda message, *_: told.append(str(message)))
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_bar(True, total=1) as bar, messages_beside(bar):
        warnings.showwarning("look here", UserWarning, "file.py", 3)
    assert told == ["look here"]


COURSES = (2.3, "warnings.warn"), (0, "print")


def test_a_notebook_shows_a_bar_and_a_warning_above_it_but_none_of_a_quick_training():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [nbformat.v4.new_code_cell(CELL.format(seconds=seconds, tell=tell)) for seconds, tell in COURSES]
    nbclient.NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=120, kernel_name="python3").execute()
    long, quick = ("".join(each.get("text", "") for each in cell.outputs) for cell in cells)
    lines = long.replace("\r", "\n").splitlines()
    assert any(line.startswith("training:  50%") for line in lines)
    assert any(line.endswith("UserWarning: look here") for line in lines)
    assert "True" in long
    assert "IProgress" not in long
    assert "training" not in quick
