"""`python -m benchmarks`: cases of TOML files, how they are changed and told, what is refused, and tiny real runs."""

import contextlib
import gc
import inspect
import io
import re
import string

import pytest
from cli_cases import Ended, read_json

from air_recsys.cli.app import run
from air_recsys.evaluation.results import ResultTable, write_json
from air_recsys.exceptions import DataFileError, MissingExtraError, ParameterError
from benchmarks import __main__ as program
from benchmarks.harness import EXPERIMENTS, Case, Found, in_turn, read_cases, spent_on
from benchmarks.paper import pages, runs, steps

NAMES = sorted(path.stem for path in EXPERIMENTS.glob("*.toml"))
CASES = [case for name in NAMES for case in read_cases(name)[2].values()]
PLANTED = "planted=60,40,900"
SIZE = 'size={"n_ratings":900,"n_users":60,"n_items":40,"n_factors":3,"graph_neighbors":5}'


def bench(line: str, *arguments: object) -> Ended:
    """Run a command as ``python -m benchmarks`` does; a word with "=" is a parameter, "~" a space within one."""
    words = [word.replace("~", " ") for each in line.split() for word in (["--set", each] if "=" in each else [each])]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run([*words, *map(str, arguments)], commands=program.app)
    return Ended(status, out.getvalue(), err.getvalue())


def measured(told=1, **parameters) -> Found:
    return Found([{"told": told, **parameters}], told=told)


def of_data(root) -> Found:
    return Found([{"root": root}])


def told_already(case) -> list[ResultTable]:
    return [ResultTable("B", case, [{"a": 1}])]


def case(**changes) -> Case:
    parameters = {"told": 1, "settings": {}, "several": [1], "flag": False}
    return Case("toy one", f"{__name__}:measured", ["A"], ["{told}"], [], [], {}, parameters)._replace(**changes)


# -------------------------------------------------------------------- cases


@pytest.mark.parametrize("each", CASES, ids=lambda each: each.name)
def test_every_case_has_a_function_that_takes_its_parameters(each):
    known = inspect.signature(each._function()).parameters
    whole = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    optional = {name for name, parameter in known.items() if parameter.default is not parameter.empty}
    missing = set(known) - {"root", "seed", "threads", "case"} - set(each.parameters)
    assert whole or (missing <= optional and set(each.parameters) <= set(known))
    assert len(each.protocols) <= len(each.titles)
    assert all(list(string.Formatter().parse(text)) for text in (*each.titles, *each.protocols))


def test_parameters_are_changed_by_name_and_others_are_the_models():
    changed = case().changed({"told": 5, "several": 2, "n_factors": 3, "flag": True})
    assert changed.parameters == {"told": 5, "several": [2], "settings": {"n_factors": 3}, "flag": True}
    assert [case().changed({"several": value}).parameters["several"] for value in ((2, 4), "a, b")] == [
        [2, 4],
        ["a", "b"],
    ]
    assert case().parameters == {"told": 1, "settings": {}, "several": [1], "flag": False}
    with pytest.raises(ParameterError, match=r"a parameter of toy one \(told\), found 'n_factors'"):
        case(parameters={"told": 1}).changed({"n_factors": 3})
    with pytest.raises(ParameterError, match="expects True or False for flag, found 'yes'"):
        case().changed({"flag": "yes"})


def test_tables_are_told_with_facts_and_notes():
    (table,) = case(notes=["always"]).tables(None, 0, 1)
    assert (table.title, table.protocol, table.notes) == ("A", "1", ["always"])
    (table,) = case(run=f"{__name__}:told_already", parameters={}, changes={"a": "b c"}).tables(None, 3, 1)
    assert (table.protocol, table.notes) == ("one", ["`python -m benchmarks toy one --set 'a=b c' --seed 3`"])


def test_an_extra_and_a_set_that_lack_are_named_before_any_work(tmp_path):
    with pytest.raises(MissingExtraError, match=r"no_such_library.*air-recsys\[test\]"):
        case(extras={"no_such_library": "test"}).folder(None)
    expected = r"toy one expects MovieLens 1M in .*ml-1m, found no such folder; get it with"
    with pytest.raises(DataFileError, match=expected):
        case(run=f"{__name__}:of_data", data=["ml-1m"]).folder(tmp_path)


def test_calls_are_timed_in_turn_and_with_their_memory():
    order = []
    times = in_turn({name: lambda name=name: order.append((name, gc.isenabled())) for name in "ab"}, rounds=2)
    assert [name for name, _ in order] == ["a", "b", "a", "b", "a", "b"]  # the first of each does not count
    assert [collects for _, collects in order[2:]] == [False] * 4
    assert gc.isenabled()
    assert {name: each.seconds.shape for name, each in times.items()} == {"a": (2,), "b": (2,)}
    result, costs = spent_on(lambda: sum(range(1000)))
    assert (result, costs["seconds"] >= 0) == (499500, True)
    assert costs["peak_gib"] >= costs["before_gib"] > 0


# -------------------------------------------------------------------- the program


def test_outside_of_a_clone_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "ROOT", tmp_path)
    ended = bench("speed")
    assert ended.status == 1
    assert "run in a clone of the repository: expected air_recsys, tests, constraints.txt" in ended.err


@pytest.fixture
def no_work(monkeypatch, tmp_path):
    """A folder without anything; whoever starts to work there fails."""

    def refuse(*args, **kwargs):
        raise AssertionError("worked before the input was checked")

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AIR_RECSYS_DATA", raising=False)
    for place in ("paper.runs.run_system", "paper.steps.median_times", "accuracy.ratings.trials"):
        monkeypatch.setattr(f"benchmarks.{place}", refuse)
    for folder in ("ml-100k", "ml-1m", "monti/douban", "dti/yamanishi"):
        (tmp_path / "data" / folder).mkdir(parents=True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("speed none", "expected cases of ratings, full-width, ranks, top-n, stream, updates, found 'none'"),
        ("speed full-width rows=3", "a parameter of speed full-width"),
        ("hosts lenskit", "expected cases of surprise, implicit, cornac, sklearn, found 'lenskit'"),
        ("scale training n_factors=3", r"found \['n_factors'\], which are sizes here"),
        ("scale likes depth=3", "expected parameters of GraphRanker .*, found 'depth'"),
        (f"speed ratings {PLANTED} systems=MF", "a system must be one of"),
        ("faults flips formats=none", "a format must be one of"),
        ("faults fuzz readers=none", "a reader must be one of"),
        ("ratings ml-100k systems=SVD", "systems must be one of 'AIR'"),
        ("ratings ml-100k width=3", "none of the systems .* reads width"),
        ("ratings ml-100k systems=AIR,Biases n_epochs=3", "none of the systems AIR, Biases reads n_epochs"),
        ("ratings douban features=True", "features: expected a set that tells of users and items"),
        ("ratings --json none/x.json", "expected an existing folder for x.json"),
        ("ratings ml-100k --data none", "found no folder 'none'"),
        ("ranking lastfm --data data width=3", "expected parameters of GraphRanker"),
        ("ranking lastfm --data data systems=SVD", "systems must be one of 'GraphRanker'"),
        ("ranking lastfm --data data new_users=True validation=True", "new_users has a split of its own"),
        ("dti nr hidden=cvs2", "whole hidden drugs and targets need similarities=True"),
        ("dti nr hidden=cvs9", "hidden must be one of 'cvs1'"),
        ("dti nr rounds=1", "expected parameters of DrugTargetAIR"),
        ("paper table3", "expected cases of table1, ours, untouched, .*, found 'table3'"),
        ("paper table1 rows=ic,dti", "rows must be of .*'barbara-random'.*, found 'dti'"),
        ("paper table1 systems=AIR,air", "systems must be of .*'AIR tuned'.*, found 'air'"),
        ("paper table1 seeds=two", "seeds must be numbers and ranges .*, found 'two'"),
        ("paper fig-depth seeds=-1", "seeds must be numbers and ranges .*, found -1"),
        ("paper table1 validation=1", r"validation must be a number >= 0 and <= 0\.9, found 1"),
        ("paper untouched depth=2", "a parameter of paper untouched .*, found 'depth'"),
        ("paper table2 seeds=3", "a parameter of paper table2 .*, found 'seeds'"),
        ("paper table2 device=gpu", "device must be .*'gpu'"),
        ("paper table1 rows=ic device=cpu --data data", "ic_admat_dgc.txt.*dti/yamanishi"),
        ("paper fig-heatmaps device=cpu --data data", "baboon.bmp.*AIR-Net"),
    ],
)
@pytest.mark.usefixtures("no_work")
def test_what_cannot_be_done_is_refused_before_any_work(line, message):
    if line.split()[0] in ("ratings", "paper", "dti") and "--data" not in line:
        line += " --data data"
    ended = bench(line)
    assert ended.status == 1
    assert re.search(message, ended.err.splitlines()[-1])
    assert "Traceback" not in ended.err


def test_a_fault_has_a_status(monkeypatch):
    monkeypatch.setattr("benchmarks.faults.flipped_bits", lambda *_: [{"format": "a", "flips": 3, "silent": 1}])
    ended = bench("faults flips")
    assert (ended.status, "silent" in ended.out) == (1, True)


def test_single_runs_are_written_and_not_printed_and_the_reports_are_made_of_the_results(tmp_path, monkeypatch):
    small = {"note": "small", "rows": [{"size": 8, "depth": 2, "DMF": 10.0, "RDMF": 15.0, "AIR": 30.0}]}
    monkeypatch.setattr(steps, "content_of", lambda name: small)
    for folder in ("results/reproduction", "reports"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("results", "reports"):
        monkeypatch.setattr(pages, name.upper(), tmp_path / name)
    file = tmp_path / "results/reproduction/table2.json"
    ended = bench("paper table2 device=cpu rounds=1 steps=1", "--json", file)
    assert ended.status == 0, ended.err
    write_json(tmp_path / "results/accuracy-a.json", {})
    assert bench("reports").status == 1
    assert list((tmp_path / "reports").iterdir()) == []  # a broken file leaves all reports as they were
    write_json(tmp_path / "results/accuracy-a.json", read_json(file))
    ended = bench("reports")
    assert (ended.status, ended.err) == (0, "")
    page = (tmp_path / "reports/reproduction.md").read_text(encoding="utf-8")
    assert page.count("\n## ") == page.count("python -m benchmarks paper table2`: m x m") == 1
    assert "\n## Table 2\n" in (tmp_path / "reports/accuracy-tables.md").read_text(encoding="utf-8")


# -------------------------------------------------------------------- a tiny run of each kind


@pytest.mark.parametrize(
    ("line", "column", "values"),
    [
        ("speed full-width size=12 depths=2 rounds=1", "depth", [2] * 9),
        ("hosts sklearn tables=wine seeds=0 hidden=0.2", "imputer", ["mean", "KNNImputer", "IterativeImputer"]),
        (f"scale training {SIZE} solver=adam n_epochs=5", "biases_rmse", None),
        ("scale drug-targets n_drugs=80 n_targets=60 n_interactions=900", "n_drugs", [80]),
        ("faults flips flips=3 formats=model:~BiasModel", "format", ["model: BiasModel", "all"]),
        ("faults fuzz inputs=9 readers=['titles,~CSV']", "inputs", [9, 9]),
        ("faults kills kills=1", "exact", [1, 1]),
    ],
)
def test_a_case_prints_its_table_and_writes_it(line, column, values, at_once, tmp_path):
    pytest.importorskip("implicit")
    file = tmp_path / "a.json"
    ended = bench(line, "--json", file)
    assert ended.status == 0, ended.err
    found = [row[column] for table in read_json(file)["reports"] for row in table["rows"] if column in row]
    assert found[: len(values)] == values if values is not None else found
    assert column in ended.out


@pytest.mark.data
def test_rows_of_every_kind_on_real_data(data_root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    quick = ["--set", "quick=True", "--set", "device=cpu", "--data", data_root, "--json", "a.json"]
    assert bench("paper fig-trajectories", *quick).status == 0
    (first,) = read_json(tmp_path / "a.json")["reports"]
    curves = read_json(tmp_path / "reproduction" / "fig-trajectories-curves.json")
    assert set(curves) == {row["panel"] for row in first["rows"]}
    monkeypatch.setattr(runs, "run_system", None)  # nothing is run again
    assert bench("paper fig-trajectories", *quick).status == 0
    assert read_json(tmp_path / "a.json")["reports"] == [first]
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    ended = bench("paper table1 rows=gpcr systems=KNN", *quick)
    assert "(0.0409)" in ended.out
    assert "single runs" not in ended.out
    assert [len(table["rows"]) for table in read_json(tmp_path / "a.json")["reports"]] == [1, 1, 1]
    ended = bench("ratings ml-100k systems=Biases folds=u1", "--data", data_root)
    assert "`python -m benchmarks ratings ml-100k --set systems=Biases --set folds=u1`" in ended.out
    ended = bench("dti nr n_rounds=1 repetitions=1", "--data", data_root, "--json", "a.json")
    assert [row["system"] for row in read_json(tmp_path / "a.json")["reports"][0]["rows"]] == ["AIR", "GIP", "EASE"]
