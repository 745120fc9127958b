"""The benchmark of the adapters, on data that take no time."""

import json
from pathlib import Path

import numpy as np
import pytest
from implicit.cpu.als import AlternatingLeastSquares
from implicit.evaluation import ranking_metrics_at_k

from air_recsys import Interactions
from benchmarks.hosts.lists import _ratings, likes, ndcg_of_users, searched_likes
from benchmarks.hosts.ratings import beside_cornac, beside_surprise
from benchmarks.hosts.sklearn import bench_sklearn

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
REPORTS = RESULTS.with_name("reports")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    rows, columns = np.nonzero(rng.random((60, 40)) < 0.5)
    ratings = np.where(rows % 2 == columns % 2, 4.5, 1.5) + 0.3 * rng.normal(size=rows.size)
    return Interactions(rows, columns, ratings.clip(1, 5), range(60), range(40))


def by_model(report):
    return {row["model"]: row for row in report.tables[0]}


def test_surprise(data):
    found = by_model(beside_surprise(data, 0, n_folds=2, rounds=1))
    assert list(found) == ["Surprise SVD", "SurpriseAIR"]
    assert all(0 < row["mae"] <= row["rmse"] < 1.5 for row in found.values())
    assert all(row[name] > 0 for row in found.values() for name in ("estimate_us", "predict_us", "test_us"))
    assert found["SurpriseAIR"]["rmse"] != found["Surprise SVD"]["rmse"]


SYSTEMS = ("ALS", "ALS, searched", "ImplicitAIR()", "BPR", "ImplicitRanker()")
CHANCE = 2 / 30  # about two hidden likes a user among thirty unseen items


def test_implicit_after_a_search(data):
    search = {"regularization": [1e4, 10.0], "alpha": [2.0], "factors": 128, "iterations": 15}
    found = searched_likes({"made": (data, [1, 2])}, search)
    means, single = found.tables
    assert found.facts["n_settings"] == 3
    first, second = single
    assert (first["data"], first["seed"], second["seed"]) == ("made", 1, 2)
    assert [row["ALS, regularization"] for row in single] == [10.0] * 2  # 1e4 leaves factors of 0
    assert first["factors"] == 40
    assert all(row[name] > CHANCE for row in single for name in SYSTEMS)
    assert first["difference"] == pytest.approx(first["ImplicitAIR()"] - first["ALS, searched"], abs=1e-6)
    (mean,) = means
    assert mean["splits"] == 2
    assert mean["ALS"] == pytest.approx((first["ALS"] + second["ALS"]) / 2)
    assert mean["ImplicitRanker()"] == pytest.approx(np.mean([row["ImplicitRanker()"] for row in single]))
    assert mean["smallest difference"] == min(first["difference"], second["difference"])


@pytest.mark.data
def test_likes_of_douban_are_of_both_its_parts(data_root):
    assert _ratings(data_root, "Douban").n_ratings == 136_891


def test_ndcg_of_users_has_the_mean_of_implicit(data):
    train, test = likes(data, seed=0)
    model = AlternatingLeastSquares(factors=4, random_state=0, num_threads=1)
    model.fit(train, show_progress=False)
    expected = ranking_metrics_at_k(model, train, test, K=10, show_progress=False)["ndcg"]
    assert ndcg_of_users(model, train, test).mean() == pytest.approx(expected, rel=1e-6)


def test_likes_are_divided(data):
    train, test = likes(data, seed=0)
    assert train.multiply(test).nnz == 0
    assert train.nnz + test.nnz == (data.ratings >= 4).sum()
    assert set(train.data) == set(test.data) == {1.0}


def test_cornac(data):
    grids = {"MF": {"max_iter": [5]}, "CornacAIR": {"n_epochs": [20], "weight_decay": [1.0, 1e6]}}
    found = by_model(beside_cornac(data, seeds=1, grids=grids))
    assert list(found) == ["BaselineOnly", "MF", "MF, tuned", "CornacAIR", "CornacAIR, tuned"]
    assert found["CornacAIR, tuned"]["rmse"] < 0.9 * found["BaselineOnly"]["rmse"]  # a decay of 1e6 is not chosen


def test_sklearn():
    report = bench_sklearn(hidden=[0.2], seeds=[0], tables=["wine"])
    found = {row["imputer"]: row["rmse"] for row in report.tables[0]}
    assert list(found) == ["mean", "KNNImputer", "IterativeImputer", "AIRImputer"]
    assert found["mean"] == pytest.approx(1, abs=0.1)
    assert found["AIRImputer"] < 0.9 * found["mean"]


def test_the_tables_of_implicit_are_those_of_the_result_file():
    page = (REPORTS / "ranking.md").read_text(encoding="utf-8")
    means, single = json.loads((RESULTS / "adapters-implicit.json").read_text("utf-8"))["reports"][1:]
    for row in means["rows"]:
        systems = " | ".join(f"{row[name]:.4f}" for name in ("ALS", "ALS, searched", "ImplicitAIR()"))
        differences = f"{row['difference']:+.4f} | {row['smallest difference']:+.4f}"
        assert f"| {row['data']} | {row['splits']} | {systems} | {differences} |" in page
        splits = [each["difference"] for each in single["rows"] if each["data"] == row["data"]]
        assert (len(splits), min(splits)) == (row["splits"], row["smallest difference"])
