"""Bad input ends with one line on the standard error before any training, and no output replaces another file."""

import contextlib
import os
import sys

import numpy as np
import pytest
import torch
from attacks import paths
from cli_cases import SHORT, assert_refused, cli

from air_recsys import AIR
from air_recsys.images import save_image


def words_of(line, shelf):
    return [word.format(shelf) for word in line.split(" ")]


@pytest.mark.usefixtures("no_training")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("no-such-command", ["no-such-command"]),
        ("train", ["Missing argument"]),
        ("train {}/none.csv", ["expected a file with ratings", "none.csv"]),
        ("train {}", ["expected files that end in .parquet"]),
        ("train {}/empty.csv", ["an empty file"]),
        ("train {}/text.csv --rating-column stars", ["line 1", "['stars']", "'rating'"]),
        ("train {}/broken.csv", ["broken.csv, line 3"]),
        ("train {}/binary.csv", ["binary.csv"]),
        ("train {}/text.air", ["text.air: expected text encoded in utf-8"]),
        ("train {}/text.csv --no-such-option", ["--no-such-option"]),
        ("train {}/text.csv --preset best", ["--preset", "'best'"]),
        ("train {}/text.csv --seed one", ["--seed"]),
        ("train {}/text.csv --set n_factor=3", ["--set expects NAME=VALUE", "'n_factor=3'", "is n_factors meant?"]),
        ("train {}/text.csv --set n_epochs", ["--set expects NAME=VALUE", "'n_epochs'"]),
        ("train {}/text.csv --set n_sweeps=many", ["n_sweeps must be 'auto' or an integer >= 1", "'many'"]),
        ("train {}/text.csv --set solver=adam --set depth={{[]:1}}", ["depth must be an integer >= 2"]),
        ("train {}/text.csv --device gpu", ["device must be", "'gpu'"]),
        ("train {}/text.csv --snapshots 3 --set snapshot_epochs=[0,7]", ["found both"]),
        ("train {}/text.csv --ranking --snapshots 3", ["--ranking does not read --snapshots"]),
        ("train {}/text.csv --ranking --negative", ["--ranking does not read --negative"]),
        ("train {}/text.csv --ranking --set depth=3", ["a parameter of GraphRanker", "'depth=3'"]),
        ("train  --model m.air", ["found an empty one"]),
        ("train {}/text.csv --model --ranking", ["a value of --model, found --ranking", "--model=--ranking"]),
        ("recommend {}/text.air --user --include-seen", ["expected a value of --user, found --include-seen"]),
        ("similar {}/text.air --user u10 --json -", ["a file to write to for --json, found -, and the standard"]),
        ("train {}/text.csv --model=new/", ["a file to write to for --model, found no folder new/"]),
        ("compare - --test -", ["expected - for one file"]),
        ("tune {}/text.csv --space n_factors=2:3 --set n_factors=2", ["--space or --set for n_factors, found both"]),
        ("evaluate", ["either a file or --dataset, found neither"]),
        ("evaluate {}/text.csv --dataset movielens-100k", ["either a file or --dataset, found both"]),
        ("evaluate --dataset netflix", ["--dataset", "'netflix'"]),
        ("evaluate --dataset movielens-100k --negative", ["--dataset does not read --negative"]),
        ("evaluate --dataset movielens-100k --data {}/none", ["found no folder", "none"]),
        ("evaluate --dataset movielens-100k --data {}", ["u.data"]),
        ("evaluate --dataset movielens-100k --folds 5 --data {}", ["u1.base"]),
        ("evaluate {}/text.csv --peers svd,als", ["peers must be of", "'als'"]),
        ("evaluate {}/text.csv --folds 1", ["--folds"]),
        ("evaluate {}/text.csv --folds 1000", ["1000"]),
        ("evaluate {}/text.csv --split last", ["evaluate without --ranking does not read --split"]),
        ("evaluate {}/text.csv --last 2", ["evaluate without --ranking does not read --last"]),
        ("evaluate {}/text.csv --ranking --peers svd", ["peers must be of", "'svd'"]),
        ("evaluate {}/text.csv --ranking --rating-column stars", ["--ranking does not read --rating-column"]),
        ("evaluate {}/text.csv --ranking --folds 3", ["--ranking does not read --folds"]),
        (
            "evaluate {}/text.csv --ranking --timestamp-column when",
            ["--split random does not read --timestamp-column"],
        ),
        ("evaluate {}/text.csv --ranking --split time", ["expected ratings with timestamps, found none"]),
        ("evaluate {}/text.csv --ranking --split last --last 0", ["--last", "greater than or equal to 1"]),
        (
            "evaluate {}/text.csv --ranking --split last --last 2 --test-fraction 0.3",
            ["--last does not read --test-fraction"],
        ),
        ("evaluate {}/text.csv --ranking --split users --last 2", ["--split users does not read --last"]),
        ("evaluate {}/text.csv --ranking --split users --test-fraction 0.99", ["found none with ratings; lower"]),
        ("evaluate {}/text.csv --ranking --split users --peers bpr", ["implicit BPR makes lists only for users of"]),
        ("evaluate {}/text.csv --ranking --k 0", ["--k"]),
        ("tune {}/text.csv --trials 0", ["--trials"]),
        ("tune {}/text.csv --metric best", ["--metric", "'best'"]),
        ("tune {}/text.csv --metric auroc", ["metric='auroc' needs ratings 0 and 1"]),
        ("tune {}/text.csv --seed -1", ["random_state must be an integer >= 0, found -1"]),
        ("tune {}/text.csv --space rank=3:9", ["space must name parameters of AIR", "'rank'"]),
        ("tune {}/text.csv --space n_factors", ["--space expects NAME=LOW:HIGH", "'n_factors'"]),
        ("tune {}/text.csv --space n_factors=", ["--space expects NAME=LOW:HIGH", "'n_factors='"]),
        ("tune {}/text.csv --space n_factors=few:many", ["space['n_factors'] must be a range"]),
        ("tune {}/text.csv --study {}/text.csv", ["expected --study and FILE to be two files"]),
        ("tune {}/text.csv --study {}/integer.csv", ["expected a new file or a study"]),
        (
            "predict {}/bias.air --user u10 --item i0 --probabilities",
            ["needs a model of AIR.for_ratings(), found a Bias"],
        ),
        ("recommend {}/none.air --user u10", ["expected a model file, found no file"]),
        ("recommend {}/text.csv --user u10", ["not a whole air_recsys model file"]),
        ("recommend {}/truncated.air --user u10", ["truncated.air is not a whole air_recsys model file"]),
        ("recommend {}/newer.air --user u10", ["format version '99'", "this library reads version"]),
        ("recommend {}/text.air --user u10 --n 0", ["n must be an integer >= 1, found 0"]),
        ("recommend {}/text.air --user u10 --item nosuch", ["1 item id(s) were not in the training data: 'nosuch'"]),
        ("recommend {}/text.air", ["expected --user, --ratings or both"]),
        ("recommend {}/text.air --ratings {}/none.csv", ["none.csv"]),
        (
            "recommend {}/integer.air --user u10 --n 2",
            ["model's ids are integers, found 1 of 1 that are none: 'u10'"],
        ),
        ("similar {}/text.air", ["either --user or --item, found neither"]),
        ("recommend {}/text.air --user u0 --sep ;", ["recommend without --ratings does not read --sep"]),
        ("predict {}/text.air --user u0 --item i0 --no-quote", ["predict without --pairs does not read --quote"]),
        ("similar {}/text.air --user u10 --item i0", ["either --user or --item, found both"]),
        ("similar {}/text.air --user u10 --titles {}/strange.csv", ["--user does not read --titles"]),
        ("similar {}/integer.air --item i0", ["this model's ids are integers, found 1 of 1 that are none: 'i0'"]),
        ("explain {}/text.air --user u10", ["Missing option '--item'"]),
        ("explain {}/text.air --user nobody --item i5", ["1 user id(s) were not in the training data: 'nobody'"]),
        ("explain {}/bias.air --user u10 --item i5", ["only AIR, DMF and GraphRanker explain their scores, found a"]),
        ("predict {}/text.air --user u0 --item i0 --out x.parquet", ["ends in .csv for --out, found x.parquet"]),
        ("report {}/text.air --out r.pdf", ["ends in .html for --out, found r.pdf"]),
        ("graph {}/text.air --csv g.xlsx", ["ends in .csv for --csv, found g.xlsx"]),
        ("graph {}/none.air", ["found no file"]),
        ("graph {}/bias.air", ["this BiasModel has learned no graph of items"]),
        ("graph {}/text.air --side films", ["--side"]),
        ("graph {}/text.air --titles {}/strange.csv", ["graph without --html does not read --titles"]),
        ("graph {}/text.air --recommend", ["graph without --html does not read --recommend"]),
        ("report {}/text.air --out x --test {}/words.csv", ["words.csv, line 3", "'many'"]),
        ("report {}/text.air --out x --test {}/text.csv --evaluate", ["expected --test or --evaluate, found both"]),
        ("report {}/text.air --out x --sep ;", ["report without --test does not read --sep"]),
        ("train {}/text.csv --every 5", ["train without --checkpoint does not read --every"]),
        ("train {}/text.csv --user-id-column u", ["train without --user-features does not read --user-id-column"]),
        ("evaluate {}/text.csv --k 5", ["evaluate without --ranking does not read --k"]),
        ("evaluate {}/text.csv --folds 2 --test-fraction 0.3", ["--folds does not read --test-fraction"]),
        ("evaluate {}/text.csv --data {}", ["evaluate without --dataset does not read --data"]),
        ("evaluate --dataset movielens-100k --sep ;", ["--dataset does not read --sep"]),
        ("predict {}/text.air --user u0 --item i0 --user-column u", ["without --pairs does not read --user-column"]),
        ("compare {}/text.csv --folds 2 --split time", ["--folds does not read --split"]),
        ("bench speed", ["benchmarks run in a clone", "python -m benchmarks speed"]),
        ("reproduce table-9 --seeds 2", ["python -m benchmarks table-9"]),
        ("datasets fetch no-such-set", ["'ml-100k'", "'no-such-set'"]),
        ("datasets fetch gowalla --to {}/new", ["no address to download from"]),
        ("demo --missing 1 --out {}/new", ["--missing"]),
        ("demo --out {}/text.csv", ["expected a folder for --out"]),
    ],
)
def test_bad_input(shelf, tmp_path, monkeypatch, line, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AIR_RECSYS_DATA", raising=False)
    assert_refused(cli(*words_of(line, shelf)), *said)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("no_training")
@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("train {}/text.csv", "--model"),
        ("train {}/text.csv", "--json"),
        ("evaluate {}/text.csv", "--json"),
        ("tune {}/text.csv", "--json"),
        ("tune {}/text.csv", "--save"),
        ("recommend {}/text.air --user u10 --n 2", "--json"),
        ("similar {}/text.air --user u10", "--json"),
        ("explain {}/text.air --user u10 --item i5", "--json"),
        ("graph {}/text.air", "--json"),
        ("graph {}/text.air", "--graphml"),
        ("graph {}/text.air", "--html"),
        ("report {}/text.air", "--out"),
        ("report {}/text.air --out x.html", "--json"),
        ("datasets list", "--json"),
        ("demo", "--json"),
    ],
)
def test_files_that_cannot_be_written_are_told_before_any_work(shelf, tmp_path, monkeypatch, line, option):
    monkeypatch.chdir(tmp_path)
    command = words_of(line, shelf)
    (tmp_path / "file").touch()
    for target, said in (("none/x", "found no none"), ("file/x", "found no file"), (".", "found the folder .")):
        assert_refused(cli(*command, option, target), said)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    assert_refused(cli(*command, option, "x"), "expected a folder that can be written to for x")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("line", ["train {}/text.csv", "evaluate {}/text.csv", "demo"])
def test_a_gpu_where_there_is_none(shelf, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    ended = cli(*words_of(line, shelf), "--device", "cuda")
    assert ended.status == 1
    assert "Traceback" not in ended.err
    assert ended.err.splitlines()[-1].startswith("error: device='cuda' was asked for, found 0 CUDA device(s)")


@pytest.mark.usefixtures("no_training")
@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("matplotlib", "demo --device cpu"),
        ("matplotlib", "compare {}/text.csv --out page.html"),
        ("surprise", "evaluate {}/text.csv --peers svd"),
        ("optuna", "tune {}/text.csv --trials 3"),
        ("PIL.Image", "inpaint x.png --missing 0.3 --out y.png"),
        ("skimage.metrics", "inpaint x.png --missing 0.3 --out y.png"),
    ],
)
def test_a_missing_extra_is_told_before_any_training(shelf, tmp_path, monkeypatch, module, line):
    monkeypatch.chdir(tmp_path)
    save_image(tmp_path / "x.png", np.eye(8))
    for name in [name for name in sys.modules if name.startswith("air_recsys.adapters.")]:
        monkeypatch.delitem(sys.modules, name)  # to be imported anew
    monkeypatch.setitem(sys.modules, module, None)
    ended = cli(*words_of(line, shelf))
    assert ended.status == 1
    name = module.partition(".")[0]
    assert ended.err.splitlines()[-1].startswith(f"error: this needs {name}, which is not installed: pip install")


def test_a_training_that_diverges(shelf, tmp_path):
    wild = ["--set", "learning_rate=1e9", "--set", "dtype=float64", "--set", "n_epochs=2000", "--set", "clip=False"]
    wild += ["--device", "cpu", "--preset", "completion"]
    ended = cli("train", shelf / "text.csv", "--model", tmp_path / "m.air", *wild)
    assert ended.status == 1
    assert "Traceback" not in ended.err
    assert ended.err.splitlines()[-1].startswith("error: training diverged")
    assert not (tmp_path / "m.air").exists()


def test_an_interrupt_leaves_no_file(shelf, tmp_path, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(AIR, "train_by", interrupt)
    ended = cli("train", shelf / "text.csv", "--model", tmp_path / "m.air", *SHORT)
    assert ended.status == 130
    assert "Traceback" not in ended.err
    assert list(tmp_path.iterdir()) == []


def test_errors_of_the_system_are_one_line_too(shelf, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device", "m.air")

    monkeypatch.setattr("air_recsys.datasets.read_ratings", full)
    assert_refused(cli("train", shelf / "text.csv", *SHORT), "No space left on device: m.air")


@pytest.mark.parametrize("command", ["", "dti", "datasets"])
def test_help_lists_every_command(command):
    ended = cli(*command.split(), "--help")
    assert (ended.status, ended.err) == (0, "")
    assert "Usage" in ended.out


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    pytest.importorskip("PIL")
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
    ended = cli("train", place / "ratings.csv", "--checkpoint", place / "ratings.csv")
    assert (
        ended.err == f"error: expected --checkpoint and FILE to be two files, found {place / 'ratings.csv'} for both\n"
    )


def test_an_output_may_replace_an_older_one(place, tmp_path):
    for _ in range(2):
        command = "recommend", place / "model.air", "--user", "1", "--json", tmp_path / "list.json"
        assert cli(*command).status == 0
