"""`air-recsys reproduce` tells bad input before any work, and writes what the page is made of."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cli_cases import cli, read_json
from typer.main import get_command

from air_recsys.evaluation.results.table import ResultTable
from benchmarks import runs, table2, theorem1, theorem2
from benchmarks.commands import reproduce
from benchmarks.figure_titles import FIGURE_TITLES
from benchmarks.figures import Drawn

NEED_DATA = ["table1", *FIGURE_TITLES, "all"]
WRITERS = [*NEED_DATA, "table2", "theorem1", "theorem2"]
SMALL = {"note": "small", "rows": [{"size": 8, "depth": 2, "DMF": 10.0, "RDMF": 15.0, "AIR": 30.0}]}


@pytest.fixture
def no_work(monkeypatch, tmp_path):
    """A folder without anything; whoever starts to work there fails."""

    def refuse(*args, **kwargs):
        raise AssertionError("worked before the input was checked")

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AIR_RECSYS_DATA", raising=False)
    monkeypatch.setattr("air_recsys.data.sets.registry.platformdirs.user_cache_path", lambda name: tmp_path / "cache")
    monkeypatch.setattr(runs, "run_system", refuse)
    monkeypatch.setattr(table2, "median_times", refuse)
    monkeypatch.setattr(theorem1, "theorem1", refuse)
    monkeypatch.setattr(theorem2, "theorem2", refuse)
    (tmp_path / "data").mkdir()
    (tmp_path / "file").touch()
    return tmp_path


def assert_told(ended, *words):
    """One line that has these words, and a status above 0."""
    assert ended.status > 0
    assert ended.err.count("\n") == 1, ended.err
    assert ended.err.startswith("error: ")
    for word in words:
        assert word in ended.err
    assert ended.out == ""


def made(folder):
    """Every file below a folder."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize("command", WRITERS)
def test_a_place_that_cannot_be_written_to(no_work, monkeypatch, command):
    data = [] if command in ("table2", "theorem1") else ["--data", "data"]
    for out, word in (("file", "--out expects a folder, found the file file"), ("file/x", "--out expects a folder")):
        assert_told(cli("reproduce", command, *data, "--out", out), word)
    if command != "all":
        assert_told(cli("reproduce", command, *data, "--json", "none/x.json"), "found no none")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    assert_told(cli("reproduce", command, *data, "--out", "x"), "--out expects a folder that can be written to")
    assert made(no_work) == ["file"]


@pytest.mark.parametrize("command", [*NEED_DATA, "theorem2"])
def test_a_data_folder_that_is_not_there(no_work, monkeypatch, command):
    free = () if command == "theorem2" else ("--data", "theorem1, theorem2 and table2 run without data")
    assert_told(cli("reproduce", command, "--data", "none"), "found no folder 'none'", *free)
    monkeypatch.setenv("AIR_RECSYS_DATA", "elsewhere")
    assert_told(cli("reproduce", command), "AIR_RECSYS_DATA", "found no folder 'elsewhere'", *free)
    monkeypatch.delenv("AIR_RECSYS_DATA")
    if command != "theorem2":
        assert_told(cli("reproduce", command), "AIR_RECSYS_DATA", "cache", *free)
    assert made(no_work) == ["file"]
    assert not (no_work / "reproduction").exists()


@pytest.mark.parametrize(
    ("command", "file", "source"),
    [
        ("table1", "Barbara.jpg", "https://github.com/lizhemin15/AIR-Net"),
        ("table1 --rows ic", "ic_admat_dgc.txt", "dti/yamanishi"),
        ("table1 --rows syn-netflix-70", "synthetic_netflix.mat", "monti/synthetic_netflix"),
        ("fig-depth", "Barbara.jpg", "https://github.com/lizhemin15/AIR-Net"),
        ("fig-heatmaps", "baboon.bmp", "https://github.com/lizhemin15/AIR-Net"),
    ],
)
@pytest.mark.usefixtures("no_work")
def test_a_data_file_that_is_not_there(command, file, source):
    ended = cli("reproduce", *command.split(), "--data", "data", "--device", "cpu")
    assert_told_last(ended, file, source)


def assert_told_last(ended, *words):
    """The same, below a bar of progress perhaps."""
    assert ended.status > 0
    last = ended.err.splitlines()[-1]
    assert last.startswith("error: ")
    assert all(word in last for word in words), last
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("table1 --rows ic,dti", ["rows must be of", "'barbara-random'", "'dti'"]),
        ("table1 --systems AIR,air", ["systems must be of", "'AIR tuned'", "'air'"]),
        ("table1 --seeds 0", ["--seeds"]),
        ("table1 --seeds two", ["--seeds"]),
        ("table1 --first-seed -1", ["--first-seed"]),
        ("table1 --jobs 0", ["--jobs"]),
        ("table1 --validation 1", ["validation must be a number >= 0 and <= 0.9, found 1.0"]),
        ("table1 --validation -0.1", ["validation must be", "found -0.1"]),
        ("table1 --validation nan", ["validation must be", "found nan"]),
        ("table1 --device gpu", ["device must be", "'gpu'"]),
        ("fig-depth --device gpu", ["device must be", "'gpu'"]),
        ("fig-depth --seeds 0", ["--seeds"]),
        ("fig-depth --jobs 0", ["--jobs"]),
        ("all --device gpu", ["device must be", "'gpu'"]),
        ("all --jobs 0", ["--jobs"]),
        ("all --seeds 0", ["--seeds"]),
        ("fig-of-nothing", ["fig-of-nothing"]),
        ("page", ["Missing argument"]),
        ("page none page.md", ["expected result files such as table1.json in none, found none"]),
        ("page data page.md", ["expected result files"]),
        ("page data none/page.md", ["found no none"]),
        ("page data data", ["found the folder data"]),
    ],
)
def test_bad_input(no_work, arguments, words):
    command, *rest = arguments.split()
    data = [] if command in ("page", "fig-of-nothing") else ["--data", "data"]
    assert_told(cli("reproduce", command, *rest, *data), *words)
    assert made(no_work) == ["file"]


@pytest.mark.usefixtures("no_work")
def test_table_2_tells_an_unknown_device():
    assert_told(cli("reproduce", "table2", "--device", "gpu"), "device must be", "'gpu'")


def test_a_broken_result_is_told_and_no_page_written(no_work):
    (no_work / "data" / "table1.json").write_text("{", encoding="utf-8")
    assert_told(cli("reproduce", "page", "data", "page.md"), "table1.json is no result file")
    assert not (no_work / "page.md").exists()


# ---------------------------------------------------------------- help


def parameters(command):
    """The options of a command as it declares them."""
    group = get_command(reproduce.reproduce_app)
    return {name for parameter in group.commands[command].params for name in parameter.opts}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("all", {"--seeds", "--data", "--out", "--quick", "--jobs", "--device"}),
        ("table1", {"--rows", "--systems", "--seeds", "--first-seed", "--validation", "--jobs", "--json"}),
        ("table2", {"--out", "--quick", "--device", "--json"}),
        ("fig-depth", {"--seeds", "--data", "--out", "--quick", "--jobs", "--device", "--json"}),
        ("theorem1", {"--out", "--quick", "--seed", "--json"}),
        ("theorem2", {"--out", "--quick", "--seed", "--data", "--json"}),
        ("page", {"--figures", "--column"}),
    ],
)
def test_help_lists_the_options(command, expected, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    assert expected <= parameters(command)
    ended = cli("reproduce", command, "--help")
    assert (ended.status, ended.err) == (0, "")
    for option in expected:
        assert option in ended.out


def test_every_figure_has_a_command_that_says_what_it_shows():
    commands = get_command(reproduce.reproduce_app).commands  # type: ignore[attr-defined]
    assert {*WRITERS, "page"} <= set(commands)
    assert {name: commands[name].help for name in FIGURE_TITLES} == {
        name: f"{title}." for name, title in FIGURE_TITLES.items()
    }


# ---------------------------------------------------------------- real runs


def assert_result(path, command):
    content = read_json(path)
    assert content["rows"]
    assert {"title", "protocol", "notes", "machine", "versions"} <= set(content)
    assert "QUICK" in content["title"].upper(), command
    return content


def test_all_runs_everything_into_one_folder(tmp_path, monkeypatch):
    figure_module = pytest.importorskip("matplotlib.figure")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    asked = []
    rows = [{"data": "A", "system": "AIR", "published": 0.1, "nmae": 0.1, "ours / published": 1.0}]
    report, drawing = ResultTable("Title", "protocol", rows), figure_module.Figure()

    def made_up(name, result):
        def fake(*args, **how):
            asked.append((name, *args, how))
            return result

        return fake

    drawn = Drawn(report, {"A": {"AIR": {"epoch": [0.0]}}}, drawing)
    results = {
        "benchmarks.table1.table1": (report, report),
        "benchmarks.figures.reproduce_figure": drawn,
        "benchmarks.table2.table2": report,
        "benchmarks.theorem1.theorem1": (report, {}),
        "benchmarks.theorem2.theorem2": (report, {}),
        "plotting.theorems.plot_theorem1": drawing,
        "plotting.theorems.plot_theorem2": drawing,
    }
    for path, result in results.items():
        monkeypatch.setattr(f"air_recsys.{path}", made_up(path.rpartition(".")[2], result))
    ended = cli("reproduce", "all", "--quick", "--data", "data", "--device", "cpu", "--jobs", 2, "--out", "results")
    assert ended.status == 0, ended.err
    assert "results in results" in ended.out
    names = ["table1", *FIGURE_TITLES, "table2", "theorem1", "theorem2"]
    written = {f"{name}.json" for name in names} | {f"{name}-curves.json" for name in FIGURE_TITLES}
    drawings = {f"{name}.{kind}" for name in names if not name.startswith("table") for kind in ("png", "svg")}
    assert set(made(tmp_path)) == written | drawings
    how = runs.Options(Path("data"), Path("results/runs"), quick=True, device="cpu", jobs=2)
    assert [call[1] for call in asked if call[0] == "table1"] == [how]
    assert [call[1:3] for call in asked if call[0] == "reproduce_figure"] == [(name, how) for name in FIGURE_TITLES]
    assert all(call[-1]["quick"] for call in asked if call[0] in ("table2", "theorem1", "theorem2"))


def test_theorem_1_quickly(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = cli("reproduce", "theorem1", "--quick", "--out", "results", "--json", "copy.json")
    assert ended.status == 0, ended.err
    assert made(tmp_path) == ["copy.json", "theorem1.json", "theorem1.png", "theorem1.svg"]
    assert read_json(tmp_path / "copy.json")["rows"] == read_json(tmp_path / "results" / "theorem1.json")["rows"]


def test_theorem_2_runs_without_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AIR_RECSYS_DATA", raising=False)
    monkeypatch.setattr("air_recsys.data.sets.registry.platformdirs.user_cache_path", lambda name: tmp_path / "none")
    given, whole = [], theorem2.theorem2

    def watched(root, **how):
        given.append(root)
        return whole(root, **how)

    monkeypatch.setattr(theorem2, "theorem2", watched)
    ended = cli("reproduce", "theorem2", "--quick")
    assert ended.status == 0, ended.err
    assert given == [None]
    assert made(tmp_path) == ["theorem2.json", "theorem2.png", "theorem2.svg"]


def test_table_2_and_the_page_of_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(table2, "recipe", lambda name: SMALL)
    ended = cli("reproduce", "table2", "--quick", "--device", "cpu", "--out", "results")
    assert ended.status == 0, ended.err
    assert "Table 2 (QUICK" in ended.out
    assert_result(tmp_path / "results" / "table2.json", "table2")
    ended = cli("reproduce", "page", "results", "page.md", "--figures", "drawn")
    assert (ended.status, ended.out, ended.err) == (0, "wrote page.md\n", "")
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page.count("\n## ") == 1
    assert "air-recsys reproduce table2" in page


def test_the_page_fills_the_column_of_another(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = {"data": "A, 20 % missing", "model": "AIR.for_completion()", "nmae": 0.5, "nmae s.e.": 0.1}
    ResultTable("Untouched presets", "presets", [row]).to_json(tmp_path / "untouched.json")
    table = "| NMAE | preset, untouched |\n|---|---|\n| A, 20 % random | {} |\n"
    (tmp_path / "readme.md").write_text(table.format(""), encoding="utf-8")
    ended = cli("reproduce", "page", ".", "page.md", "--column", "readme.md")
    assert (ended.status, ended.out, ended.err) == (0, "wrote page.md\nwrote readme.md\n", "")
    assert (tmp_path / "readme.md").read_text(encoding="utf-8") == table.format("0.5000 ± 0.1000")
    assert "| A, 20 % missing |" in (tmp_path / "page.md").read_text(encoding="utf-8")
    (tmp_path / "untouched.json").write_text('{"rows": 3}', encoding="utf-8")
    assert cli("reproduce", "page", ".", "page.md", "--column", "readme.md").status == 1
    assert (tmp_path / "readme.md").read_text(encoding="utf-8") == table.format("0.5000 ± 0.1000")  # left as it was


@pytest.mark.data
def test_a_figure_and_rows_of_table_1_on_real_data(data_root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    common = ["--quick", "--device", "cpu", "--data", data_root, "--out", "results"]
    figure = ["reproduce", "fig-trajectories", *common]
    ended = cli(*figure)
    assert ended.status == 0, ended.err
    first = assert_result(tmp_path / "results" / "fig-trajectories.json", "fig-trajectories")
    curves = read_json(tmp_path / "results" / "fig-trajectories-curves.json")
    assert set(curves) == {row["panel"] for row in first["rows"]}
    monkeypatch.setattr(runs, "run_system", None)  # nothing is run again
    assert cli(*figure).status == 0
    assert read_json(tmp_path / "results" / "fig-trajectories.json")["rows"] == first["rows"]
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    ended = cli("reproduce", "table1", *common, "--rows", "gpcr", "--systems", "KNN,AIR tuned", "--json", "t.json")
    assert ended.status == 0, ended.err
    assert "(0.0409)" in ended.out
    table = assert_result(tmp_path / "results" / "table1.json", "table1")
    assert len(table["rows"]) == len(table["single_runs"]) == 2
    assert read_json(tmp_path / "t.json")["rows"] == table["rows"]
    assert cli("reproduce", "page", "results", "page.md").status == 0
    assert (tmp_path / "page.md").read_text(encoding="utf-8").count("\n## ") == 2
