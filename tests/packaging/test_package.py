"""What is in wheel and sdist, that the installed package works without its repository, and what imports bring."""

import json
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PathDistribution

import numpy as np
import pandas as pd
import pytest
from environments import (
    ROOT,
    Environment,
    build,
    command,
    copy_sources,
    faults,
    package_files,
    wheel_files,
)
from promises import DOORS, round_trip

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LATER = {
    *("cornac", "faiss", "fastapi", "h5py", "implicit", "matplotlib", "mlflow", "myfm", "networkx", "optuna", "PIL"),
    *("pooch", "pygsp", "ray", "skimage", "surprise", "tensorboard", "torch_geometric", "typer", "uvicorn"),
}
HEAVY = {"torch", "numpy", "scipy", "pandas", "sklearn"}
SHOW = "print(*{name.partition('.')[0] for name in sys.modules})"
NAMES = f"""
import sys, air_recsys
assert air_recsys.__version__
{SHOW}
from air_recsys import AIR
{SHOW}
first = {{name: getattr(air_recsys, name) for name in dir(air_recsys)}}
assert set(first) == set(air_recsys.__all__)
assert first.items() <= vars(air_recsys).items()  # made once
assert not hasattr(air_recsys, "none")
import air_recsys.datasets, air_recsys.graphs, air_recsys.models, air_recsys.report.plots
{SHOW}
"""
ANSWERED = f"""
import sys
from air_recsys.cli import main
for words in ("--help", "--version", "--verison", "nonsense", "train --help", "bench --help", "reproduce --help"):
    try:
        main(words.split())
    except SystemExit:
        pass
{SHOW}
"""
# Commands one after the other; "\f" ends what each of them printed.
CLI = """
import json, sys
from air_recsys.cli import main
for words in json.loads(sys.argv[1]):
    try:
        main(words)
    except SystemExit as ended:
        if ended.code:
            raise
    print("\\f")
"""
SHORT = ["--device", "cpu", "--set", "n_sweeps=4", "--set", "n_factors=2", "--set", "graph_neighbors=2"]
COMMANDS = [
    ["train", "ratings.csv", "--model", "a.air", *SHORT],
    ["recommend", "a.air", "--user", "3"],
    ["report", "a.air", "--out", "page.html", "--evaluate"],
    ["evaluate", "ratings.csv", *SHORT],
    ["tune", "ratings.csv", "--trials", "1", *SHORT],
    ["demo", "--out", "demo", "--device", "cpu"],
]


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return copy_sources(tmp_path_factory.mktemp("package") / "sources")


@pytest.fixture(scope="module")
def wheel(sources):
    return build(sources, "wheel", sources.parent / "wheel")


@pytest.fixture(scope="module")
def sdist(sources):
    return build(sources, "sdist", sources.parent / "sdist")


@pytest.fixture(scope="module")
def installed(wheel):
    """An environment with the wheel, and with this one's packages below it."""
    made = Environment.make(sys.executable, wheel.parents[1] / "environment")
    made.install("--no-deps", "--no-index", wheel)  # before the other packages are seen
    made.lay_over(sys.executable)
    return made


def test_the_wheel_holds_the_package_its_licence_and_its_commands_and_nothing_else(wheel, sources):
    assert faults(wheel, sources) == []
    kept = {name.partition(".dist-info/")[2] for name in wheel_files(wheel)} - {""}
    assert {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE", "top_level.txt"} == kept


def test_the_wheel_names_every_requirement_and_extra_and_each_has_a_promise(wheel):
    (folder,) = (path for path in zipfile.Path(wheel).iterdir() if path.name.endswith(".dist-info"))
    found = PathDistribution(folder).metadata
    extras = PROJECT["optional-dependencies"]
    assert found["Name"] == "air-recsys"
    assert found["Requires-Python"] == PROJECT["requires-python"]
    assert set(found.get_all("Provides-Extra", [])) == set(extras)
    assert len(found.get_all("Requires-Dist", [])) == len(PROJECT["dependencies"]) + sum(map(len, extras.values()))
    assert set(extras) - set(DOORS) == {"docs", "all"}  # tools, and a list of others


def test_the_sdist_holds_what_a_build_needs_and_builds_the_same_wheel(sdist, wheel, sources, tmp_path):
    shutil.unpack_archive(sdist, tmp_path / "sdist", filter="data")
    (unpacked,) = (tmp_path / "sdist").iterdir()
    files = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    beside = files - package_files(sources)
    made = {name for name in beside if name.startswith("air_recsys.egg-info/")} | {"PKG-INFO", "setup.cfg"}
    needed = {"CHANGELOG.md", "LICENSE", "MANIFEST.in", "README.md", "constraints.txt", "pyproject.toml"}
    assert beside - made == needed
    again = build(unpacked, "wheel", tmp_path / "wheel")
    assert wheel_files(again) == wheel_files(wheel)


def test_a_model_of_the_installed_package_is_loaded_in_another_process(installed):
    round_trip(installed)


def test_the_installed_commands_work_without_the_benchmarks(installed):
    for extra in ("matplotlib", "optuna"):
        pytest.importorskip(extra)
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((12, 9)) < 0.7)
    ratings = pd.DataFrame({"user": users, "item": items, "rating": rng.integers(1, 6, users.size)})
    ratings.to_csv(installed.folder / "ratings.csv", index=False)
    listed = command([installed.folder / "bin" / "air-recsys", "--help"], installed.folder)
    _, told, _, compared, searched, demo, _ = installed.run(CLI, json.dumps(COMMANDS)).split("\f")
    assert {"demo", "train", "recommend", "compare"} <= set(listed.split())
    assert "bench" not in listed
    assert "item" in told
    assert (installed.folder / "page.html").stat().st_size > 1000
    assert "BiasModel" in compared
    assert "best" in searched.lower()
    assert "AIR" in demo
    assert (installed.folder / "demo" / "model.air").exists()


def shown(code: str, *options: str) -> list[set[str]]:
    """The modules of each line that a program has printed."""
    done = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return [set(line.split()) for line in done.stdout.splitlines()]


def test_imports_bring_what_they_need_and_no_extra():
    alone, with_air, everything = shown(NAMES, "-W", "error")
    assert alone & (HEAVY | LATER) == set()
    assert with_air & LATER == set()
    assert with_air & (HEAVY | {"pooch"}) == {"numpy", "scipy", "pandas"}  # torch and scikit-learn once they are used
    assert (
        shown(NAMES.replace("print(*", "import torch, sklearn; print(*"))[-1] >= HEAVY
    )  # the test sees what there is
    assert "tqdm" in everything
    assert "ipywidgets" not in everything  # where there are none, tqdm.auto warns in a notebook


def test_the_command_line_answers_without_the_library():
    modules = shown(ANSWERED)[-1]
    assert modules & (HEAVY | LATER - {"typer"}) == set()
    assert "typer" in modules
