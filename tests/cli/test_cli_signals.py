"""Signals end a command as they say, with what was learned; errors of an interrupted import are no errors of ours."""

import signal

import pytest
from attacks import signals

from air_recsys.cli import app, main


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Ratings, and the model of a training that is left alone."""
    folder = tmp_path_factory.mktemp("whole")
    expected, _ = signals.left_alone(folder)
    return folder / "ratings.csv", expected


@pytest.mark.parametrize("name", ["SIGTERM in training", "ten SIGINT in training", "SIGINT from the start"])
def test_a_signal_loses_nothing(name, whole, tmp_path):
    table, expected = whole
    assert signals.faults_of(signals.CASES[name], table, tmp_path / "run", 0.3, expected) == []


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
