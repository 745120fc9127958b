"""Closed and full streams, narrow locales, full disks: one line, and a status."""

import os
import subprocess
import sys

import pandas as pd
import pytest
from cli_cases import SHORT

from air_recsys import AIR, Interactions

PROGRAM = [sys.executable, "-c", "from air_recsys.cli import main; main()"]
NAMES = ["ann", "bjørn", "曉明"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    items, ratings = ["æble", "æble", "x", "y", "y", "z"], [1, 2, 3, 4, 5, 3]
    frame = pd.DataFrame({"user": NAMES * 2, "item": items, "rating": ratings})
    frame.to_csv(folder / "ratings.csv", index=False)
    data = Interactions.from_frame(frame)
    AIR.for_ratings(n_sweeps=2, n_factors=2, random_state=0, device="cpu").fit(data).save(folder / "model.air")
    return folder


def run(*arguments, shell="", **changed):
    """Run a command line, with redirections of a shell where given; return status, output and errors as bytes."""
    words = " ".join(f"'{word}'" for word in [*PROGRAM, *map(str, arguments)])
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | changed
    done = subprocess.run(["bash", "-c", f"{words} {shell}"], env=environment, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "changed",
    [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "latin-1"}, {"PYTHONIOENCODING": "ascii"}, {"PYTHONUTF8": "0"}],
    ids=str,
)
def test_names_that_a_locale_cannot_show_are_escaped(changed, files):
    status, out, err = run("similar", files / "model.air", "--user", "ann", **changed)
    assert (status, err) == (0, b"")
    assert "曉明".encode() in out or rb"\u66c9\u660e" in out


def test_a_closed_standard_output_is_an_error_before_any_work(files, tmp_path):
    model = tmp_path / "model.air"
    status, _, err = run("train", files / "ratings.csv", *SHORT, "--model", model, shell=">&-")
    assert (status, err) == (1, b"error: the standard output is closed\n")
    assert not model.exists()


def test_a_closed_standard_error_takes_nothing_away(files, tmp_path):
    model = tmp_path / "model.air"
    status, out, _ = run("train", files / "ratings.csv", *SHORT, "--model", model, shell="2>&-")
    assert status == 0
    assert b"wrote" in out
    assert AIR.load(model).interactions_.n_users == 3


def test_an_error_with_a_closed_standard_error_still_has_its_status(tmp_path):
    assert run("train", tmp_path / "none.csv", shell="2>&-")[0] == 1


def test_an_output_that_cannot_be_written_to_is_one_line(files):
    status, _, err = run("similar", files / "model.air", "--user", "ann", shell="> /dev/full")
    assert (status, err) == (1, b"error: cannot write to the standard output: No space left on device\n")


def test_a_reader_that_has_gone_is_one_line(files):
    status, _, err = run("datasets", "list", shell="| true; exit ${PIPESTATUS[0]}")
    assert status in (0, 1)  # 0 where all was written before the reader had gone
    assert err in (b"", b"error: cannot write to the standard output: Broken pipe\n")
