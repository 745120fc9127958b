"""Every kind of bad input ends with one line on the standard error and a status above 0, before any training."""

import os
import sys

import pytest
import torch
from cli_cases import SHORT, cli, fill

from air_recsys import AIR
from air_recsys.cli import options


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables and models, good and bad."""
    return fill(tmp_path_factory.mktemp("cli"))


def assert_one_line(ended, *words):
    assert ended.status > 0
    lines = ended.err.splitlines()
    assert len(lines) == 1, ended.err
    assert lines[0].startswith("error: ")
    assert "Traceback" not in ended.out
    for word in words:
        assert word in lines[0]


@pytest.fixture
def no_training(monkeypatch):
    def refuse(self, *args, **kwargs):
        raise AssertionError("trained before the input was checked")

    monkeypatch.setattr(AIR, "train_by", refuse)


@pytest.mark.usefixtures("no_training")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("train {}/none.csv", ["expected a file with ratings", "none.csv"]),
        ("train {}", ["expected files that end in .parquet"]),
        ("train {}/empty.csv", ["an empty file"]),
        ("train {}/text.csv --rating-column stars", ["line 1", "['stars']", "'rating'"]),
        ("train {}/text.csv --user-column u --item-column i", ["['u', 'i']"]),
        ("train {}/broken.csv", ["broken.csv, line 3"]),
        ("train {}/words.csv", ["words.csv, line 3", "'many'"]),
        ("train {}/binary.csv", ["binary.csv"]),
        ("train {}/text.air", ["expected a name that ends in one of"]),
        ("train {}/text.csv --sep ab", ["sep must be one", "'ab'"]),
        ("train {}/text.csv --no-such-option", ["--no-such-option"]),
        ("train {}/text.csv --preset best", ["--preset", "'best'"]),
        ("train {}/text.csv --seed one", ["--seed"]),
        ("train {}/text.csv --set n_epoch=3", ["--set expects NAME=VALUE", "'n_epoch=3'"]),
        ("train {}/text.csv --set n_epochs", ["--set expects NAME=VALUE", "'n_epochs'"]),
        ("train {}/text.csv --set n_sweeps=many", ["n_sweeps must be an integer >= 1", "'many'"]),
        ("train {}/text.csv --set n_epochs=9", ["Variational does not read n_epochs, Adam does"]),
        ("train {}/text.csv --set solver=adam --set depth=1", ["depth must be an integer >= 2, found 1"]),
        ("train {}/text.csv --set solver=adam --set depth={{[]:1}}", ["depth must be an integer >= 2"]),
        (
            "train {}/text.csv --set solver=adam --set learning_rate=nan",
            ["learning_rate must be 'auto' or a number"],
        ),
        ("train {}/text.csv --set solver=sgd", ["solver must be 'adam', 'variational', 'langevin'", "found 'sgd'"]),
        ("train {}/text.csv --preset completion --set n_sweeps=9", ["Adam does not read n_sweeps, Variational and"]),
        ("train {}/text.csv --device gpu", ["device must be", "'gpu'"]),
        ("train", ["Missing argument"]),
        ("evaluate", ["either a file or --dataset, found neither"]),
        ("evaluate {}/text.csv --dataset movielens-100k", ["either a file or --dataset, found both"]),
        ("evaluate --dataset netflix", ["--dataset", "'netflix'"]),
        ("evaluate --dataset movielens-100k --data {}/none", ["found no folder", "none"]),
        ("evaluate --dataset movielens-100k --data {}", ["u.data"]),
        ("evaluate --dataset movielens-100k --folds 5 --data {}", ["u1.base"]),
        ("evaluate {}/text.csv --peers svd,als", ["peers must be of", "'als'"]),
        ("train {}/text.csv --ranking --snapshots 3", ["--ranking does not read --snapshots"]),
        ("train {}/text.csv --ranking --preset auto", ["--ranking does not read --preset"]),
        ("train {}/text.csv --ranking --set depth=3", ["a parameter of GraphRanker", "'depth=3'"]),
        ("evaluate {}/text.csv --ranking --peers svd", ["peers must be of", "'svd'"]),
        ("evaluate {}/text.csv --ranking --preset auto", ["--ranking does not read --preset"]),
        ("evaluate {}/text.csv --ranking --folds 3", ["expected no --folds"]),
        ("evaluate {}/text.csv --split last", ["evaluate without --ranking does not read --split"]),
        (
            "evaluate {}/text.csv --ranking --timestamp-column when",
            ["--split random does not read --timestamp-column"],
        ),
        ("evaluate {}/text.csv --ranking --split time", ["expected ratings with timestamps, found none"]),
        (
            "evaluate {}/text.csv --ranking --split last --last 2 --test-fraction 0.3",
            ["expected --last or --test-fraction, found both"],
        ),
        ("evaluate {}/text.csv --ranking --split last", ["found none", "--timestamp-column"]),
        ("evaluate {}/text.csv --ranking --split users --last 2", ["--split users does not read --last"]),
        ("evaluate {}/text.csv --ranking --last 2", ["--split random does not read --last"]),
        ("evaluate {}/text.csv --last 2", ["evaluate without --ranking does not read --last"]),
        ("evaluate {}/text.csv --ranking --split last --last 0", ["--last", "greater than or equal to 1"]),
        (
            "evaluate {}/text.csv --ranking --split users --timestamp-column when",
            ["--split users does not read --timestamp-column"],
        ),
        ("evaluate {}/text.csv --ranking --split users --test-fraction 1", ["test_fraction must be", "found 1"]),
        ("evaluate {}/text.csv --ranking --split users --test-fraction 0.99", ["found none with ratings; lower"]),
        ("evaluate {}/text.csv --ranking --split users --peers bpr", ["implicit BPR makes lists only for users of"]),
        ("evaluate {}/text.csv --ranking --k 0", ["--k"]),
        ("evaluate {}/text.csv --ranking --set width=3", ["a parameter of GraphRanker", "'width=3'"]),
        ("evaluate {}/text.csv --folds 1", ["--folds"]),
        ("evaluate {}/text.csv --folds 1000", ["1000"]),
        ("evaluate {}/text.csv --test-fraction 1", ["test_fraction must be"]),
        ("recommend {}/none.air --user u10", ["expected a model file, found no file"]),
        ("recommend {}/text.csv --user u10", ["not a whole air_recsys model file"]),
        ("recommend {}/truncated.air --user u10", ["truncated.air is not a whole air_recsys model file"]),
        ("recommend {}/newer.air --user u10", ["format version '99'", "this library reads version"]),
        ("recommend {}/foreign.air --user u10", ["foreign.air is not an air_recsys model file"]),
        ("recommend {}/empty.csv --user u10", ["not a whole air_recsys model file"]),
        ("recommend {}/text.air --user u10 --n 0", ["n must be an integer >= 1, found 0"]),
        ("recommend {}/text.air --user u10 --item nosuch", ["1 item id(s) were not in the training data: 'nosuch'"]),
        ("recommend {}/text.air --user u10 --n two", ["--n"]),
        ("recommend {}/text.air", ["expected --user, --ratings or both"]),
        ("recommend {}/text.air --ratings {}/none.csv", ["none.csv"]),
        ("recommend {}/integer.air --user u10 --n 2", ["this model's ids are integers, found 'u10'"]),
        ("similar {}/text.air", ["either --user or --item, found neither"]),
        ("similar {}/text.air --user u10 --item i0", ["either --user or --item, found both"]),
        ("similar {}/text.air --item i99", ["1 item id(s) were not in the training data: 'i99'"]),
        ("similar {}/bias.air --item i99", ["1 item id(s) were not in the training data: 'i99'"]),
        ("similar {}/integer.air --item 99", ["1 item id(s) were not in the training data: 99"]),
        ("similar {}/integer.air --item i0", ["this model's ids are integers, found 'i0'"]),
        ("graph {}/none.air", ["found no file"]),
        ("graph {}/bias.air", ["this BiasModel has learned no graph of items"]),
        ("graph {}/text.air --side films", ["--side"]),
        ("bench speed", ["benchmarks run in a clone", "python -m benchmarks speed"]),
        ("reproduce table-9 --seeds 2", ["python -m benchmarks table-9"]),
        ("datasets fetch no-such-set", ["'ml-100k'", "'no-such-set'"]),
        ("datasets fetch gowalla --to {}/new", ["no address to download from"]),
        ("demo --missing 1 --out {}/new", ["--missing"]),
        ("demo --out {}/text.csv", ["expected a folder for --out"]),
        ("no-such-command", ["no-such-command"]),
    ],
)
def test_bad_input(folder, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AIR_RECSYS_DATA", raising=False)
    assert_one_line(cli(*[part.format(folder) for part in arguments.split(" ")]), *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("arguments", ["train {}/text.csv", "evaluate {}/text.csv", "demo"])
def test_a_gpu_where_there_is_none(folder, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    ended = cli(*[part.format(folder) for part in arguments.split(" ")], "--device", "cuda")
    assert ended.status == 1
    assert "Traceback" not in ended.err
    assert ended.err.splitlines()[-1].startswith("error: device='cuda' was asked for, found 0 CUDA device(s)")


WRITERS = [
    ("train {}/text.csv", "--model"),
    ("train {}/text.csv", "--json"),
    ("evaluate {}/text.csv", "--json"),
    ("recommend {}/text.air --user u10 --n 2", "--json"),
    ("similar {}/text.air --user u10", "--json"),
    ("graph {}/text.air", "--json"),
    ("graph {}/text.air", "--graphml"),
    ("datasets list", "--json"),
    ("demo", "--json"),
]


@pytest.mark.usefixtures("no_training")
@pytest.mark.parametrize(("arguments", "option"), WRITERS)
def test_files_that_cannot_be_written_are_told_before_any_work(folder, tmp_path, monkeypatch, arguments, option):
    monkeypatch.chdir(tmp_path)
    command = [part.format(folder) for part in arguments.split(" ")]
    (tmp_path / "file").touch()
    for target, word in (("none/x", "found no none"), ("file/x", "found no file"), (".", "found the folder .")):
        ended = cli(*command, option, target)
        assert_one_line(ended, word)
        assert ended.out == ""
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    assert_one_line(cli(*command, option, "x"), "expected a folder that can be written to for x")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("networkx", ["demo", "--device", "cpu"]),
        ("matplotlib", ["demo", "--device", "cpu"]),
        ("surprise", ["evaluate", "text.csv", "--peers", "svd"]),
    ],
)
@pytest.mark.usefixtures("no_training")
def test_a_missing_extra_is_told_before_any_training(folder, tmp_path, monkeypatch, module, arguments):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.csv").write_bytes((folder / "text.csv").read_bytes())
    for name in [name for name in sys.modules if name.startswith("air_recsys.adapters.")]:
        monkeypatch.delitem(sys.modules, name)  # to be imported anew
    monkeypatch.setitem(sys.modules, module, None)
    ended = cli(*arguments)
    assert ended.status == 1
    assert ended.err.splitlines()[-1].startswith(f"error: this needs {module}, which is not installed: pip install")


def test_a_training_that_diverges(folder, tmp_path):
    wild = ["--set", "learning_rate=1e9", "--set", "dtype=float64", "--set", "n_epochs=2000", "--set", "clip=False"]
    wild += ["--device", "cpu", "--preset", "completion"]
    ended = cli("train", folder / "text.csv", "--model", tmp_path / "m.air", *wild)
    assert ended.status == 1
    assert "Traceback" not in ended.err
    assert ended.err.splitlines()[-1].startswith("error: training diverged")
    assert not (tmp_path / "m.air").exists()


def test_an_interrupt_leaves_no_file(folder, tmp_path, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(AIR, "train_by", interrupt)
    ended = cli("train", folder / "text.csv", "--model", tmp_path / "m.air", *SHORT)
    assert ended.status == 130
    assert "Traceback" not in ended.err
    assert list(tmp_path.iterdir()) == []


def test_errors_of_the_system_are_one_line_too(folder, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device", "m.air")

    monkeypatch.setattr("air_recsys.datasets.read_ratings", full)
    assert_one_line(cli("train", folder / "text.csv", *SHORT), "No space left on device: m.air")


def test_settings_keep_their_kind():
    texts = ["n_epochs=5", "learning_rate=1e-2", "patience=None", "clip=True", "schedule=cosine", "device=cuda:1"]
    expected = {"n_epochs": 5, "learning_rate": 0.01, "patience": None, "clip": True}
    assert options.parse_settings(texts) == expected | {"schedule": "cosine", "device": "cuda:1"}
    assert options.parse_settings(None) == {}
    assert options.parse_settings(["n_epochs=5", "n_epochs=6"]) == {"n_epochs": 6}


@pytest.mark.parametrize("command", ["", "dti", "datasets"])
def test_help_lists_every_command(command):
    ended = cli(*command.split(), "--help")
    assert (ended.status, ended.err) == (0, "")
    assert "Usage" in ended.out
