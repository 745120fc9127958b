"""Commands in processes of their own: signals lose nothing, and closed or full streams are one line."""

import os
import signal
import subprocess

import pandas as pd
import pytest
from attacks import signals
from attacks.processes import program
from cli_cases import SHORT, cli

from air_recsys import AIR, Interactions
from air_recsys.cli import app, main


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Names that not every locale can show, and a model of them."""
    folder = tmp_path_factory.mktemp("files")
    items, ratings = ["æble", "æble", "æble", "y", "y", "z"], [1, 2, 3, 4, 5, 3]
    frame = pd.DataFrame({"user": ["ann", "bjørn", "曉明"] * 2, "item": items, "rating": ratings})
    frame.to_csv(folder / "ratings.csv", index=False)
    data = Interactions.from_frame(frame)
    AIR.for_ratings(n_sweeps=2, n_factors=2, random_state=0, device="cpu").fit(data).save(folder / "model.air")
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Ratings, and the model of a training that is left alone."""
    folder = tmp_path_factory.mktemp("whole")
    expected, _ = signals.left_alone(folder, within)
    return folder / "ratings.csv", expected


def within(arguments):
    ended = cli(*arguments)
    return ended.status, ended.err


@pytest.mark.parametrize("name", ["SIGTERM in training", "ten SIGINT in training", "SIGINT from the start"])
def test_a_signal_loses_nothing(name, whole, tmp_path):
    table, expected = whole
    assert signals.faults_of(signals.CASES[name], table, tmp_path / "run", 0.3, expected, within) == []


def test_ctrl_c_behind_an_error_of_an_import_ends_like_ctrl_c(monkeypatch, capsys):
    def imports(*_, **__):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise ImportError("numpy failed to import") from None

    before = signal.getsignal(signal.SIGINT)  # a shell lets its background commands ignore it
    monkeypatch.setattr(app, "app", imports)
    with pytest.raises(SystemExit) as ended:
        main(["demo"])
    assert ended.value.code == 130
    assert capsys.readouterr().err == "error: aborted\n"
    assert signal.getsignal(signal.SIGINT) is before  # a caller within a process still hears it


def test_an_error_of_ours_stays_an_error(monkeypatch):
    def fails(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(app, "app", fails)
    with pytest.raises(ZeroDivisionError):
        main(["demo"])


def run(*arguments, shell="", **changed):
    """Run a command line, with redirections of a shell where given; return status, output and errors as bytes."""
    words = " ".join(f"'{word}'" for word in program([*map(str, arguments)]))
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | changed
    done = subprocess.run(["bash", "-c", f"{words} {shell}"], env=environment, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("changed", [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "latin-1"}], ids=str)
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
    assert run("train", tmp_path / "none.csv", shell="2>&-")[0] == 1


def test_an_output_that_cannot_be_written_to_is_one_line(files):
    status, _, err = run("similar", files / "model.air", "--user", "ann", shell="> /dev/full")
    assert (status, err) == (1, b"error: cannot write to the standard output: No space left on device\n")


def test_a_reader_that_has_gone_takes_no_training_away(files, tmp_path):
    model = tmp_path / "model.air"
    shell = "2>&1 | true; exit ${PIPESTATUS[0]}"
    assert run("train", files / "ratings.csv", *SHORT, "--model", model, shell=shell)[0] == 1
    assert AIR.load(model).interactions_.n_users == 3


def test_help_is_there_in_a_terminal_of_no_columns():
    assert b"--model" in run("train", "--help", COLUMNS="0")[1]


def test_a_reader_that_has_gone_is_one_line():
    status, _, err = run("datasets", "list", shell="| true; exit ${PIPESTATUS[0]}")
    assert status in (0, 1)  # 0 where all was written before the reader had gone
    assert err in (b"", b"error: cannot write to the standard output: Broken pipe\n")
