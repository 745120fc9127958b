"""Models of other packages: an installed example at every door, and packages that register what is no model."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from cli_cases import assert_refused, cli
from serving_cases import running, table

import air_recsys
from air_recsys.evaluation import compare
from air_recsys.exceptions import ModelFileError, ParameterError
from air_recsys.models import BiasModel

EXAMPLE = Path(__file__).parents[2] / "examples" / "plug_in"
COMMANDS = """
import sys
from air_recsys.cli.app import run
for line in sys.argv[1:]:
    assert run(line.split()) == 0, line
import pandas
from air_recsys.evaluation import compare
print(compare(["DampedMean", "GlobalMean"], pandas.read_csv("ratings.csv"), k=3, progress=False).text())
"""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shelf")
    table().to_csv(folder / "ratings.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def installed(shelf):
    """A folder for PYTHONPATH with the example as pip installs it."""
    source, target = shelf / "source", shelf / "installed"
    shutil.copytree(EXAMPLE, source)
    how = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "install", *how, "--target", target, source], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(target), prepend=os.pathsep)
        yield target


def test_an_installed_package_is_trained_evaluated_compared_reported_and_served(installed, shelf):
    lines = (
        "train ratings.csv --registered DampedMean --set damping=2 --model model.air",
        "evaluate ratings.csv --peers DampedMean --set n_sweeps=2 --set n_factors=2 --device cpu",
        "report model.air --out page.html",
        "recommend model.air --user u1 --n 3",
    )
    command = [sys.executable, "-c", COMMANDS, *lines]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=shelf)
    assert ended.returncode == 0, ended.stderr
    assert len(re.findall(r"^\W*DampedMean .*0\.\d", ended.stdout, re.MULTILINE)) >= 3, ended.stdout
    assert "What DampedMean has learned" in (shelf / "page.html").read_text(encoding="utf-8")
    model = shelf / "model.air"
    with running(model, "--port", 0) as server:
        listed = httpx.get(f"{server.address}recommend", params={"user": "u1", "n": 3}).json()["items"]
    assert all(f"{row['item']} " in ended.stdout.split("wrote page.html")[1] for row in listed)
    with pytest.raises(ModelFileError, match=r"class DampedMean, .* no installed package registers the entry point"):
        air_recsys.load(model)


def register(folder: Path, name: str, value: str, package: str = "odd") -> None:
    """Write what pip writes of a package with one model."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[air_recsys.models]\n{name} = {value}\n")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("Counter", "collections:Counter", "expected one subclass of Recommender of this name, found Counter"),
        ("Mine", "air_recsys.models:BiasModel", "expected one subclass of Recommender of this name, found BiasModel"),
        ("Mine", "json:loads", "expected one subclass of Recommender of this name, found loads"),
        ("Mine", "no_such_module:Mine", "which cannot be imported: ModuleNotFoundError: No module named 'no_such_"),
        ("Mine", "json:Mine", "which cannot be imported: AttributeError: module 'json' has no attribute 'Mine'"),
        ("GlobalMean", "mine:GlobalMean", "expected another name, as air_recsys has a model of this one"),
    ],
)
def test_what_is_no_model_is_refused_with_its_package(name, value, message, shelf, tmp_path, monkeypatch):
    register(tmp_path, name, value)
    monkeypatch.syspath_prepend(tmp_path)
    told = f"odd 1.0 registers the model {name!r} as {value}"
    with pytest.raises(ParameterError) as refused:
        compare([name], table())
    assert str(refused.value).startswith(told)
    assert message in str(refused.value)
    data = shelf / "ratings.csv"
    assert_refused(cli("train", data, "--registered", name, "--model", tmp_path / "m.air"), told, message)
    if name != "GlobalMean":
        assert_refused(cli("evaluate", data, "--peers", name), told, message)
    compare(["GlobalMean" if name != "GlobalMean" else "Biases"], table(), k=3, progress=False)  # others go on


def test_a_name_of_two_packages_and_one_of_none(shelf, tmp_path, monkeypatch):
    for package in ("odd", "even"):
        register(tmp_path, "Mine", "mine:Mine", package)
    monkeypatch.syspath_prepend(tmp_path)
    how = "train", shelf / "ratings.csv", "--model", tmp_path / "m.air", "--registered"
    assert_refused(cli(*how, "Mine"), "odd 1.0 registers the model 'Mine' as mine:Mine", "even 1.0 registers")
    assert_refused(cli(*how, "Other"), "no installed package registers the entry point 'Other'", "registered: Mine")
    for option in (["--preset", "auto"], ["--checkpoint", tmp_path / "c"], ["--snapshots", 2]):
        assert_refused(cli(*how, "Mine", *option), f"--registered does not read {option[0]}")


def test_a_class_with_the_name_of_ours_does_not_open_our_files(tmp_path):
    path = BiasModel().fit(table()).save(tmp_path / "model.air")
    other = type("BiasModel", (BiasModel,), {"__module__": "elsewhere"})
    assert type(air_recsys.load(path)) is BiasModel
    del other
