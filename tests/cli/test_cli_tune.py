"""The command ``tune``: what the library finds, a study that goes on, and every fault told before any training."""

import sys

import pytest
from cli_cases import SHORT, cli, fill, ratings, read_json

from air_recsys import AIR
from air_recsys.cli.tune import Metric
from air_recsys.evaluation.results.table import format_number
from air_recsys.evaluation.tuning import METRICS, tune

FEW = [*SHORT, "--trials", 3]
FIXED = {"n_sweeps": [20], "n_factors": [2], "graph_neighbors": [2]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables and models, good and bad."""
    return fill(tmp_path_factory.mktemp("cli"))


@pytest.fixture
def no_training(monkeypatch):
    def refuse(self, *args, **kwargs):
        raise AssertionError("trained before the input was checked")

    monkeypatch.setattr(AIR, "train_by", refuse)


def test_tune_prints_and_writes_what_the_library_finds(folder, tmp_path):
    target, model = tmp_path / "t.json", tmp_path / "best.air"
    ended = cli("tune", folder / "text.csv", *FEW, "--metric", "mae", "--seed", 4, "--json", target, "--save", model)
    assert ended.status == 0, ended.err
    expected = tune(ratings("text"), space=FIXED, n_trials=3, metric="mae", random_state=4, device="cpu")
    figures = read_json(target)
    assert figures["best_params"] == expected.best_params
    assert figures["best_value"] == pytest.approx(expected.best_value)
    assert (figures["metric"], figures["preset"], len(figures["trials"])) == ("mae", "ratings", 3)
    assert figures["trials"][0]["value"] == figures["best_value"]
    assert figures["protocol"] == expected.protocol
    assert figures["versions"]["air-recsys"]
    assert figures["protocol"] in ended.out
    assert all(format_number(trial["value"]) in ended.out for trial in figures["trials"])
    assert all(f"--set {name}={value}" in ended.out for name, value in expected.best_params.items())
    assert "this is a validation value" in ended.out
    assert f"wrote {model}, fitted on all" in ended.out
    frame = ratings("text")
    saved, again = AIR.load(model), expected.model().fit(frame)
    assert saved.interactions_.n_ratings == len(frame)
    assert saved.predict(frame["user"], frame["item"]).tolist() == pytest.approx(
        again.predict(frame["user"], frame["item"]).tolist(), rel=1e-5
    )


def test_the_settings_that_are_printed_are_options_of_train(folder, tmp_path):
    ended = cli("tune", folder / "text.csv", *FEW, "--json", tmp_path / "t.json")
    words = [word for line in ended.out.splitlines() if line.startswith("  --set") for word in line.split()]
    assert cli("train", folder / "text.csv", "--model", tmp_path / "m.air", "--device", "cpu", *words).status == 0
    model = AIR.load(tmp_path / "m.air")
    best = read_json(tmp_path / "t.json")["best_params"]
    learned = model.get_params(deep=False) | model.solver.get_params()
    assert {name: learned[name] for name in best} == best


def test_a_study_goes_on_and_another_search_is_refused(folder, tmp_path):
    study, target = tmp_path / "s.db", tmp_path / "t.json"
    begun = ["tune", folder / "text.csv", *SHORT, "--study", study, "--json", target]
    assert cli(*begun, "--trials", 1).status == 0
    first = read_json(target)
    assert cli(*begun, "--trials", 3).status == 0
    second = read_json(target)
    assert (len(first["trials"]), len(second["trials"])) == (1, 3)
    assert first["trials"][0] in second["trials"]
    ended = cli(*begun, "--trials", 3, "--metric", "mae")
    assert ended.status == 1
    assert ended.err.splitlines()[-1].startswith("error: the study 'air_recsys' was made with metric=rmse, found mae")
    assert "Traceback" not in ended.err


def test_ranges_and_choices(folder, tmp_path):
    domains = ["--space", "weight_decay=2:5", "--space", "schedule=linear,constant", "--space", "n_epochs=10"]
    domains += ["--space", "solver=adam", "--device", "cpu"]
    ended = cli("tune", folder / "integer.csv", *domains, "--trials", 6, "--json", tmp_path / "t.json")
    assert ended.status == 0, ended.err
    trials = read_json(tmp_path / "t.json")["trials"]
    assert all(2 <= trial["weight_decay"] <= 5 for trial in trials[1:])
    assert {trial["schedule"] for trial in trials} <= {"linear", "constant"}


def test_the_metrics_of_the_command_are_those_of_the_library():
    assert [metric.value for metric in Metric] == list(METRICS)


@pytest.mark.usefixtures("no_training")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("tune", ["Missing argument"]),
        ("tune {}/none.csv", ["expected a file with ratings", "none.csv"]),
        ("tune {}/text.csv --trials 0", ["--trials"]),
        ("tune {}/text.csv --metric best", ["--metric", "'best'"]),
        ("tune {}/text.csv --metric auroc", ["metric='auroc' needs ratings 0 and 1"]),
        ("tune {}/text.csv --preset best", ["--preset", "'best'"]),
        ("tune {}/text.csv --validation-fraction 1", ["validation_fraction must be a number > 0 and < 1, found 1.0"]),
        ("tune {}/text.csv --timeout 0", ["timeout must be a number > 0"]),
        ("tune {}/text.csv --seed -1", ["random_state must be an integer >= 0, found -1"]),
        ("tune {}/text.csv --set rank=3", ["--set expects NAME=VALUE", "'rank=3'"]),
        ("tune {}/text.csv --space rank=3:9", ["space must name parameters of AIR", "'rank'"]),
        ("tune {}/text.csv --space n_factors", ["--space expects NAME=LOW:HIGH", "'n_factors'"]),
        ("tune {}/text.csv --space n_factors=", ["--space expects NAME=LOW:HIGH", "'n_factors='"]),
        ("tune {}/text.csv --space n_factors=9:3", ["space['n_factors'] must be a range", "(9, 3)"]),
        ("tune {}/text.csv --space n_factors=few:many", ["space['n_factors'] must be a range"]),
        ("tune {}/text.csv --space depth=2,3", ["Variational does not read depth, Adam does"]),
        ("tune {}/text.csv --space solver=adam --space depth=1,2", ["depth must be an integer >= 2, found 1"]),
        ("tune {}/text.csv --study {}/none/s.db", ["expected an existing folder for s.db"]),
        ("tune {}/text.csv --study {}/text.csv", ["expected --study and FILE to be two files"]),
        ("tune {}/text.csv --study {}/integer.csv", ["expected a new file or a study"]),
        ("tune {}/text.csv --save {}/none/m.air", ["expected an existing folder for m.air"]),
        ("tune {}/text.csv --json {}", ["expected a file to write to, found the folder"]),
        ("tune {}/text.csv --device gpu", ["device must be", "'gpu'"]),
    ],
)
def test_bad_input(folder, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    ended = cli(*[part.format(folder) for part in arguments.split(" ")])
    assert ended.status > 0
    assert len(ended.err.splitlines()) == 1, ended.err
    assert ended.err.startswith("error: ")
    for word in words:
        assert word in ended.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("no_training")
def test_a_missing_optuna_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    ended = cli("tune", folder / "text.csv", *FEW)
    assert (ended.status, len(ended.err.splitlines())) == (1, 1)
    assert "pip install 'air-recsys[tune]'" in ended.err
