"""The product works where the benchmarks and their commands are not installed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from environments import ROOT

# The demo on a part of its data, with few epochs: what it calls is the same.
SHORT_DEMO = """
import sys
from functools import partial
from air_recsys.report import demo
from air_recsys.cli import main
demo.make_syn_netflix = partial(demo.make_syn_netflix, 30, 40, 3, 3)
demo.AIR.for_completion = partial(demo.AIR.for_completion, n_epochs=40)
demo.DMF_SETTINGS |= {"n_epochs": 20}
main(["demo", *sys.argv[1:]])
"""
# Commands one after the other in one process; "\f" ends what each of them printed.
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


@pytest.fixture(scope="module")
def product(tmp_path_factory) -> Path:
    """A folder with the package, without the benchmarks."""
    folder = tmp_path_factory.mktemp("product")
    shutil.copytree(ROOT / "air_recsys", folder / "air_recsys", ignore=shutil.ignore_patterns("__pycache__"))
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((12, 9)) < 0.7)
    ratings = pd.DataFrame({"user": users, "item": items, "rating": rng.integers(1, 6, users.size)})
    ratings.to_csv(folder / "ratings.csv", index=False)
    return folder


def run_all(product: Path, *commands: list[str]) -> list[str]:
    """What each command printed."""
    return run(product, CLI, json.dumps(commands)).split("\f")


def run(product: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", *command],
        cwd=product,
        env=os.environ | {"PYTHONPATH": str(product)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_the_product_that_runs(product):
    assert run(product, "import air_recsys; print(air_recsys.__file__)").startswith(str(product))
    commands = run_all(product, ["--help"])[0]
    assert "train" in commands
    assert "bench" not in commands


def test_a_model_is_trained_asked_and_reported(product):
    pytest.importorskip("matplotlib")
    train = ["train", "ratings.csv", "--model", "a.air", *SHORT]
    recommend, report = ["recommend", "a.air", "--user", "3"], ["report", "a.air", "--out", "page.html", "--evaluate"]
    assert "item" in run_all(product, train, recommend, report)[1]
    assert (product / "page.html").stat().st_size > 1000


def test_models_are_compared_and_settings_searched(product):
    pytest.importorskip("optuna")
    evaluate, tune = ["evaluate", "ratings.csv", *SHORT], ["tune", "ratings.csv", "--trials", "1", *SHORT]
    compared, searched, _ = run_all(product, evaluate, tune)
    assert "BiasModel" in compared
    assert "best" in searched.lower()


def test_the_demo_runs(product):
    assert "AIR" in run(product, SHORT_DEMO, "--out", "demo", "--device", "cpu")
    assert (product / "demo" / "model.air").exists()
