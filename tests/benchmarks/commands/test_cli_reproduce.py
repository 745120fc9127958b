"""`python -m benchmarks paper` tells bad input before any work, and writes what the reports are made of."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

import pytest
from cli_cases import Ended, read_json

from air_recsys.cli import paths
from air_recsys.cli.app import run
from air_recsys.evaluation.results import ResultTable, write_json
from benchmarks.commands.reproduce import COMMANDS, NAMES
from benchmarks.paper import pages, runs, steps, theorem1, theorem2
from benchmarks.paper.figures import DRAWINGS, Drawn
from benchmarks.paper.recipes import groups

NEED_DATA = ["all", *groups(), "fig-inpainting"]
SMALL = {"note": "small", "rows": [{"size": 8, "depth": 2, "DMF": 10.0, "RDMF": 15.0, "AIR": 30.0}]}


def benchmarks(*arguments: object) -> Ended:
    """Run a command as ``python -m benchmarks`` does."""
    app = paths.App(pretty_exceptions_enable=False)
    for name, command in COMMANDS.items():
        app.command(name)(command)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run([str(argument) for argument in arguments], commands=app)
    return Ended(status, out.getvalue(), err.getvalue())


def paper(line: str, *arguments: object) -> Ended:
    return benchmarks("paper", *line.split(), *arguments)


@pytest.fixture
def no_work(monkeypatch, tmp_path):
    """A folder without anything; whoever starts to work there fails."""

    def refuse(*args, **kwargs):
        raise AssertionError("worked before the input was checked")

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AIR_RECSYS_DATA", raising=False)
    monkeypatch.setattr("air_recsys.data.sets.registry.platformdirs.user_cache_path", lambda name: tmp_path / "cache")
    monkeypatch.setattr(runs, "run_system", refuse)
    monkeypatch.setattr(steps, "median_times", refuse)
    monkeypatch.setattr(theorem1, "theorem1", refuse)
    monkeypatch.setattr(theorem2, "theorem2", refuse)
    (tmp_path / "data").mkdir()
    (tmp_path / "file").touch()
    return tmp_path


def assert_told(ended, *words):
    """One line that has these words, below a bar of progress perhaps, and a status above 0."""
    assert ended.status > 0
    last = ended.err.splitlines()[-1]
    assert last.startswith("error: ")
    for word in words:
        assert word in last
    assert "Traceback" not in ended.err
    assert ended.out == ""


def made(folder):
    """Every file below a folder."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_names_are_those_of_the_recipes_and_drawings():
    assert set(NAMES) == {*NEED_DATA, "table2", "theorem1", "theorem2"}
    assert set(DRAWINGS) <= set(NAMES)


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize("what", ["all", "table1", "fig-depth", "table2", "theorem1", "theorem2"])
def test_a_place_that_cannot_be_written_to(no_work, monkeypatch, what):
    assert_told(paper(f"{what} --data data --out file"), "--out expects a folder, found the file file")
    assert_told(paper(f"{what} --data data --out file/x"), "--out expects a folder")
    if what != "all":
        assert_told(paper(f"{what} --data data --json none/x.json"), "found no none")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    assert_told(paper(f"{what} --data data --out x"), "--out expects a folder that can be written to")
    assert made(no_work) == ["file"]


@pytest.mark.parametrize("what", [*NEED_DATA, "theorem2"])
def test_a_data_folder_that_is_not_there(no_work, monkeypatch, what):
    free = () if what == "theorem2" else ("--data", "theorem1, theorem2 and table2 run without data")
    assert_told(paper(f"{what} --data none"), "found no folder 'none'", *free)
    monkeypatch.setenv("AIR_RECSYS_DATA", "elsewhere")
    assert_told(paper(what), "AIR_RECSYS_DATA", "found no folder 'elsewhere'", *free)
    assert made(no_work) == ["file"]
    assert not (no_work / "reproduction").exists()


@pytest.mark.parametrize(
    ("line", "file", "source"),
    [
        ("table1", "Barbara.jpg", "https://github.com/lizhemin15/AIR-Net"),
        ("table1 --rows ic", "ic_admat_dgc.txt", "dti/yamanishi"),
        ("ours --rows syn-netflix-70", "synthetic_netflix.mat", "monti/synthetic_netflix"),
        ("fig-heatmaps", "baboon.bmp", "https://github.com/lizhemin15/AIR-Net"),
    ],
)
@pytest.mark.usefixtures("no_work")
def test_a_data_file_that_is_not_there(line, file, source):
    assert_told(paper(line, "--data", "data", "--device", "cpu"), file, source)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("table3", ["WHAT must be", "'table1'", "'table3'"]),
        ("table1 --rows ic,dti", ["rows must be of", "'barbara-random'", "'dti'"]),
        ("table1 --systems AIR,air", ["systems must be of", "'AIR tuned'", "'air'"]),
        ("table1 --seeds two", ["seeds must be numbers and ranges", "'two'"]),
        ("fig-depth --seeds -1", ["seeds must be numbers and ranges", "'-1'"]),
        ("theorem1 --seeds 0..2", ["--seeds expects one seed for theorem1, found 3"]),
        ("table1 --jobs 0", ["--jobs"]),
        ("table1 --validation 1", ["validation must be a number >= 0 and <= 0.9, found 1.0"]),
        ("table1 --validation nan", ["validation must be", "found nan"]),
        ("table1 --set depth", ["--set expects NAME=VALUE", "'depth'"]),
        ("untouched --set depth=2", ["untouched does not read --set"]),
        ("fig-depth --rows ic", ["fig-depth does not read --rows"]),
        ("table2 --seeds 3", ["table2 does not read --seeds"]),
        ("all --validation 0.1", ["all does not read --validation"]),
        ("all --json x.json", ["all does not read --json"]),
        ("all --device gpu", ["device must be", "'gpu'"]),
        ("table2 --device gpu", ["device must be", "'gpu'"]),
    ],
)
def test_bad_input(no_work, line, words):
    assert_told(paper(line, "--data", "data"), *words)
    assert made(no_work) == ["file"]


# ---------------------------------------------------------------- real runs


def test_all_measures_everything_into_one_folder(tmp_path, monkeypatch):
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

    results = {
        "tables.table_of": (report, report),
        "figures.figure_of": Drawn(report, {"A": {"AIR": {"epoch": [0.0]}}}, drawing),
        "steps.table2": report,
        "theorem1.theorem1": report,
        "theorem2.theorem2": report,
    }
    for path, result in results.items():
        monkeypatch.setattr(f"benchmarks.paper.{path}", made_up(path.rpartition(".")[2], result))
    ended = paper("all --quick --data data --device cpu --jobs 2 --out results")
    assert ended.status == 0, ended.err
    assert "results in results" in ended.out
    names = ["table1", *DRAWINGS, "table2", "theorem1", "theorem2"]
    written = {f"{name}.json" for name in names} | {f"{name}-curves.json" for name in DRAWINGS}
    drawings = {f"{name}.{kind}" for name in DRAWINGS for kind in ("png", "svg")}
    assert set(made(tmp_path)) == written | drawings
    how = runs.Options(Path("data"), Path("results/runs"), quick=True, device="cpu", jobs=2)
    assert [call[1:3] for call in asked if call[0] == "table_of"] == [("table1", how)]
    assert [call[1:3] for call in asked if call[0] == "figure_of"] == [(name, how) for name in DRAWINGS]
    assert all(call[-1]["quick"] for call in asked if call[0] in ("table2", "theorem1", "theorem2"))


def test_theorem_1_quickly(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = paper("theorem1 --quick --out results --json copy.json")
    assert ended.status == 0, ended.err
    assert made(tmp_path) == ["copy.json", "theorem1.json"]
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
    ended = paper("theorem2 --quick")
    assert ended.status == 0, ended.err
    assert given == [None]
    assert made(tmp_path) == ["theorem2.json"]


def test_table_2_and_the_pages(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(steps, "content_of", lambda name: SMALL)
    ended = paper("table2 --quick --device cpu --out results/reproduction")
    assert ended.status == 0, ended.err
    assert "Table 2 (QUICK" in ended.out
    table = read_json(tmp_path / "results" / "reproduction" / "table2.json")
    report = {"reports": [{"title": "Accuracy", "protocol": "p", "rows": table["rows"], "notes": []}]}
    ResultTable("x", "y").to_json(tmp_path / "results" / "accuracy-a.json")
    origin = {name: table[name] for name in ("versions", "machine")}
    pages_of = tmp_path / "reports"
    pages_of.mkdir()
    monkeypatch.setattr(pages, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(pages, "REPORTS", pages_of)
    assert benchmarks("reports").status == 1
    assert made(pages_of) == []  # a broken file leaves all pages as they were
    write_json(tmp_path / "results" / "accuracy-a.json", report | origin)
    ended = benchmarks("reports")
    assert (ended.status, ended.err) == (0, "")
    page = (pages_of / "reproduction.md").read_text(encoding="utf-8")
    assert page.count("\n## ") == 1
    assert "python -m benchmarks paper table2" in page
    assert "\n## Accuracy\n" in (pages_of / "accuracy-tables.md").read_text(encoding="utf-8")


@pytest.mark.data
def test_a_figure_and_rows_of_tables_on_real_data(data_root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    common = ["--quick", "--device", "cpu", "--data", data_root, "--out", "results"]
    assert paper("fig-trajectories", *common).status == 0
    first = read_json(tmp_path / "results" / "fig-trajectories.json")
    assert "QUICK" in first["title"]
    curves = read_json(tmp_path / "results" / "fig-trajectories-curves.json")
    assert set(curves) == {row["panel"] for row in first["rows"]}
    monkeypatch.setattr(runs, "run_system", None)  # nothing is run again
    assert paper("fig-trajectories", *common).status == 0
    assert read_json(tmp_path / "results" / "fig-trajectories.json")["rows"] == first["rows"]
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    ended = paper("table1 --rows gpcr", "--systems", "KNN,AIR tuned", "--json", "t.json", *common)
    assert ended.status == 0, ended.err
    assert "(0.0409)" in ended.out
    table = read_json(tmp_path / "results" / "table1.json")
    assert len(table["rows"]) == len(table["single_runs"]) == 2
    assert read_json(tmp_path / "t.json")["rows"] == table["rows"]
    assert paper("ours --rows gpcr,syn-netflix-80", *common).status == 0
    ours = read_json(tmp_path / "results" / "ours.json")["rows"]
    assert [row["system"] for row in ours] == ["AIR", "DMF", "AIR", "AIR dense", "DMF"]
    assert [row["published"] for row in ours] == [0.0007, 0.0014, 0.0271, 0.0271, 0.1513]
    assert "user_auc" in ours[0]
    assert "user_auc" not in ours[1]  # DMF learns no graph
