"""The benchmark of the adapters, on data that take no time."""

import gc

import numpy as np
import pytest

from air_recsys import Interactions
from air_recsys.benchmarks.hosts import bench_cornac, bench_implicit, bench_sklearn, bench_surprise
from air_recsys.benchmarks.hosts.implicit import likes
from air_recsys.benchmarks.hosts.sklearn import standardised
from air_recsys.benchmarks.hosts.timing import median_seconds


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    rows, columns = np.nonzero(rng.random((60, 40)) < 0.5)
    ratings = np.where(rows % 2 == columns % 2, 4.5, 1.5) + 0.3 * rng.normal(size=rows.size)
    return Interactions(rows, columns, ratings.clip(1, 5), range(60), range(40))


def by_model(report):
    return {row["model"]: row for row in report.rows}


def test_surprise(data):
    found = by_model(bench_surprise(data, n_folds=2, rounds=1))
    assert list(found) == ["Surprise SVD", "SurpriseAIR"]
    assert all(0 < row["mae"] <= row["rmse"] < 1.5 for row in found.values())
    assert all(row[name] > 0 for row in found.values() for name in ("estimate_us", "predict_us", "test_us"))
    assert found["SurpriseAIR"]["rmse"] != found["Surprise SVD"]["rmse"]


def test_implicit(data):
    report = bench_implicit(data, factors=4, rounds=1)
    assert [row["model"] for row in report.rows] == ["implicit ALS", "ImplicitAIR"] * 3
    assert [row["alpha"] for row in report.rows] == [1, 1, 1, 1, 4, 4]
    chance = 2 / 30  # about two hidden likes a user among thirty unseen items
    assert all(row["precision_at_10"] > 1.2 * chance for row in report.rows)
    assert "ratio" in report.notes[0]


def test_likes_are_divided(data):
    train, test = likes(data, seed=0)
    assert train.multiply(test).nnz == 0
    assert train.nnz + test.nnz == (data.ratings >= 4).sum()
    assert set(train.data) == set(test.data) == {1.0}


def test_cornac(data, monkeypatch):
    monkeypatch.setattr(
        "air_recsys.benchmarks.hosts.cornac._GRIDS",
        {"MF": {"max_iter": [5]}, "CornacAIR": {"n_epochs": [20], "weight_decay": [1.0, 1e6]}},
    )
    found = by_model(bench_cornac(data, seeds=1))
    assert list(found) == ["BaselineOnly", "MF", "MF, tuned", "CornacAIR", "CornacAIR, tuned"]
    assert found["CornacAIR, tuned"]["rmse"] < 0.9 * found["BaselineOnly"]["rmse"]  # a decay of 1e6 is not chosen


def test_sklearn():
    report = bench_sklearn(hidden=(0.2,), seeds=[0], tables=("wine",))
    found = {row["imputer"]: row["rmse"] for row in report.rows}
    assert list(found) == ["mean", "KNNImputer", "IterativeImputer", "AIRImputer"]
    assert found["mean"] == pytest.approx(1, abs=0.1)
    assert found["AIRImputer"] < 0.9 * found["mean"]


def test_tables_have_units_of_one():
    table = standardised("digits")
    assert table.shape == (1797, 61)  # three pixels are always white
    np.testing.assert_allclose(table.std(axis=0), 1)


def test_contenders_run_in_turn_without_the_collector():
    seen = []

    def contender(name):
        return lambda: seen.append((name, gc.isenabled()))

    medians = median_seconds({"a": contender("a"), "b": contender("b")}, rounds=2)
    assert [name for name, _ in seen] == ["a", "b"] * 3  # one call each that does not count
    assert [collects for _, collects in seen[2:]] == [False] * 4
    assert gc.isenabled()
    assert all(seconds > 0 for seconds in medians.values())
