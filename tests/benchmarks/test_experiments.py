"""Cases of TOML files: what they need, how they are changed and told, and a tiny real run of each."""

import json
import string

import pytest

from air_recsys.cli.app import run
from air_recsys.exceptions import DataFileError, MissingExtraError, ParameterError
from benchmarks import __main__ as program
from benchmarks.harness import EXPERIMENTS, Case, Found, in_turn, read_cases, spent_on

NAMES = sorted(path.stem for path in EXPERIMENTS.glob("*.toml"))
CASES = [case for name in NAMES for case in read_cases(name)[2].values()]
PLANTED = "planted=60,40,900"
SIZE = '{"n_ratings":900,"n_users":60,"n_items":40,"n_factors":3,"graph_neighbors":5}'


def bench(*arguments: object) -> int:
    return run([str(argument) for argument in arguments], commands=program.app)


def rows_of(file) -> list[list[dict]]:
    return [report["rows"] for report in json.loads(file.read_text())["reports"]]


def measured(told=1, **parameters) -> Found:
    return Found([{"told": told, **parameters}], told=told)


def of_data(root) -> Found:
    return Found([{"root": root}])


def case(**changes) -> Case:
    whole = Case(
        "toy one", f"{__name__}:measured", ["A"], ["{told}"], [], [], {}, {"told": 1, "settings": {}, "several": [1]}
    )
    return whole._replace(**changes)


# -------------------------------------------------------------------- cases


@pytest.mark.parametrize("each", CASES, ids=lambda each: each.name)
def test_every_case_has_a_function_that_takes_its_parameters(each):
    import inspect

    known = inspect.signature(each._function()).parameters
    whole = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    assert whole or set(known) - {"root", "seed", "threads"} == set(each.parameters)
    assert len(each.protocols) <= len(each.titles)
    assert all(list(string.Formatter().parse(text)) for text in (*each.titles, *each.protocols))


def test_parameters_are_changed_by_name_and_others_are_the_models():
    changed = case().changed({"told": 5, "several": 2, "n_factors": 3})
    assert changed.parameters == {"told": 5, "several": [2], "settings": {"n_factors": 3}}
    assert case().changed({"several": (2, 4)}).parameters["several"] == [2, 4]
    assert case().parameters == {"told": 1, "settings": {}, "several": [1]}


def test_a_case_without_a_model_refuses_what_it_does_not_know():
    with pytest.raises(ParameterError, match=r"a parameter of toy one \(told\), found 'n_factors'"):
        case(parameters={"told": 1}).changed({"n_factors": 3})


def test_tables_are_told_with_facts_and_notes(monkeypatch):
    (table,) = case(notes=["always"]).tables(None, 0, 1)
    assert (table.title, table.protocol, table.notes) == ("A", "1", ["always"])
    assert table.rows[0]["several"] == [1]


def test_an_extra_is_named_before_any_work():
    with pytest.raises(MissingExtraError, match=r"no_such_library.*air-recsys\[test\]"):
        case(extras={"no_such_library": "test"}).folder(None)


def test_a_set_that_lacks_is_named_with_what_is_expected(tmp_path):
    with pytest.raises(
        DataFileError, match=r"toy one expects MovieLens 1M in .*ml-1m, found no such folder; get it with"
    ):
        case(run=f"{__name__}:of_data", data=["ml-1m"]).folder(tmp_path)


def test_calls_are_timed_in_turn_and_with_their_memory():
    order = []
    times = in_turn({name: lambda name=name: order.append(name) for name in "ab"}, rounds=2)
    assert order == ["a", "b", "a", "b", "a", "b"]
    assert {name: each.seconds.shape for name, each in times.items()} == {"a": (2,), "b": (2,)}
    result, costs = spent_on(lambda: sum(range(1000)))
    assert result == 499500
    assert costs["peak_gib"] >= costs["before_gib"] > 0
    assert costs["seconds"] >= 0


# -------------------------------------------------------------------- the program


def test_no_two_commands_have_one_name():
    names = [each.name for each in program.app.registered_commands]
    assert len(names) == len(set(names))
    assert {*NAMES, "ratings", "paper"} <= set(names)


def test_outside_of_a_clone_it_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(program, "ROOT", tmp_path)
    assert bench("speed") == 1
    assert "run in a clone of the repository: expected air_recsys, tests, constraints.txt" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("speed", "none"), "expected cases of ratings, full-width, top-n, found 'none'"),
        (("speed", "full-width", "--set", "rows=3"), "a parameter of speed full-width"),
        (("hosts", "lenskit"), "expected cases of surprise, implicit, cornac, sklearn, found 'lenskit'"),
        (("scale", "training", "--set", "n_factors=3"), r"found \['n_factors'\], which are sizes here"),
        (("scale", "likes", "--set", "depth=3"), "expected parameters of GraphRanker .*, found 'depth'"),
        (("speed", "ratings", "--set", PLANTED, "--set", "systems=MF"), "a system must be one of"),
        (("faults", "flips", "--set", "formats=none"), "a format must be one of"),
        (("faults", "fuzz", "--set", "readers=none"), "a reader must be one of"),
    ],
)
def test_what_cannot_be_done_is_refused_before_any_work(arguments, message, capsys):
    assert bench(*arguments) == 1
    import re

    assert re.search(message, capsys.readouterr().err)


def test_a_data_folder_that_lacks_a_set_is_told(tmp_path, capsys):
    assert bench("graphs", "movielens", "--data", tmp_path) == 1
    assert f"graphs movielens expects MovieLens 100K in {tmp_path / 'ml-100k'}" in capsys.readouterr().err


def test_a_fault_has_a_status(monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.faults.flipped_bits", lambda *_: [{"format": "a", "flips": 3, "silent": 1}])
    assert bench("faults", "flips") == 1
    assert "silent" in capsys.readouterr().out


# -------------------------------------------------------------------- a tiny run of each kind


@pytest.mark.parametrize(
    ("arguments", "column", "values"),
    [
        (("speed", "full-width", "--set", "size=12", "--set", "depths=2", "--set", "rounds=1"), "depth", [2] * 9),
        (
            ("hosts", "sklearn", "--set", "tables=wine", "--set", "seeds=0", "--set", "hidden=0.2"),
            "imputer",
            ["mean", "KNNImputer", "IterativeImputer", "AIRImputer"],
        ),
        (
            ("scale", "training", "--set", f"size={SIZE}", "--set", "solver=adam", "--set", "n_epochs=5"),
            "biases_rmse",
            None,
        ),
        (
            ("scale", "drug-targets", "--set", "n_drugs=80", "--set", "n_targets=60", "--set", "n_interactions=900"),
            "n_drugs",
            [80],
        ),
        (
            ("faults", "flips", "--set", "flips=3", "--set", "formats=model: BiasModel"),
            "format",
            ["model: BiasModel", "all"],
        ),
        (("faults", "fuzz", "--set", "inputs=9", "--set", "readers=titles, CSV"), "inputs", [9, 9]),
        (("faults", "kills", "--set", "kills=1"), "exact", [1, 1]),
    ],
    ids=lambda each: " ".join(each[:2]) if isinstance(each, tuple) else "",
)
def test_a_case_prints_its_table_and_writes_it(arguments, column, values, at_once, tmp_path, capsys):
    pytest.importorskip("implicit")
    file = tmp_path / "a.json"
    assert bench(*arguments, "--json", file) == 0
    tables = rows_of(file)
    found = [row[column] for table in tables for row in table if column in row]
    assert found[: len(values)] == values if values is not None else len(found) == 1
    assert column in capsys.readouterr().out


def test_likes_grow_with_the_share(at_once, monkeypatch, tmp_path):
    monkeypatch.setattr("benchmarks.scale.likes._GROUPS", 4)
    sizes = (
        "n_users=300",
        "n_items=400",
        "n_likes=6000",
        "shares=0.5,1",
        "n_factors=8",
        "n_steps=20",
        "n_validation=50",
    )
    file = tmp_path / "a.json"
    assert bench("scale", "likes", *(word for size in sizes for word in ("--set", size)), "--json", file) == 0
    (rows,) = rows_of(file)
    assert [row["n_users"] for row in rows] == [150, 300]
    assert rows[1]["recall_at_20"] > rows[1]["popularity"] > 0
