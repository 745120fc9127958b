"""No output of a command replaces one of its inputs, another output, or a file that is none of ours."""

import contextlib

import pytest
from attacks import paths
from cli_cases import cli

from air_recsys.cli.paths import is_same_file

pytest.importorskip("PIL")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    paths.write_files(folder)
    return folder


def within(folder, command):
    with contextlib.chdir(folder):
        ended = cli(*command)
    return ended.status, ended.err


@pytest.mark.parametrize("command", [command for group in paths.CASES.values() for command in group], ids=" ".join)
def test_no_file_is_replaced_and_one_line_says_why(command, place):
    if command[0] == "tune":
        pytest.importorskip("optuna")
    assert paths.fault_of(place, command, within) is None


def test_the_message_names_both_options_and_the_file(place):
    ended = cli("report", place / "model.air", "--out", place / "model.air")
    assert ended.err == f"error: expected --out and MODEL to be two files, found {place / 'model.air'} for both\n"


def test_an_output_may_replace_an_older_one(place, tmp_path):
    for _ in range(2):
        command = "recommend", place / "model.air", "--user", "1", "--json", tmp_path / "list.json"
        assert cli(*command).status == 0


def test_links_and_other_spellings_lead_to_one_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one = tmp_path / "one"
    assert is_same_file(one, one.relative_to(tmp_path))
    one.touch()
    (tmp_path / "link").symlink_to(one)
    (tmp_path / "other").touch()
    assert is_same_file(tmp_path / "link", one)
    assert not is_same_file(tmp_path / "other", one)


def test_a_command_that_replaces_a_file_is_counted_as_wrong(place):
    def replaces(place, command):
        (place / "titles.csv").write_text("gone")
        return 1, "error: no\n"

    assert paths.fault_of(place, ["train"], replaces) == "changed titles.csv"
