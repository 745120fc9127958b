"""Reliability and groups of errors: laws that hold whatever the model, and lists from likes."""

import numpy as np
import pandas as pd
import pytest

from air_recsys import AIR, BiasModel, Interactions
from air_recsys.evaluation.held_out import evaluate_model
from air_recsys.evaluation.rating_errors import LEVELS, errors_by, interval_reliability, probability_reliability
from air_recsys.exceptions import DataError
from air_recsys.metrics import rmse, user_measures
from air_recsys.splits import random_holdout


def test_exact_intervals_are_found_exact_and_narrow_ones_narrow() -> None:
    noise = np.random.default_rng(0).normal(size=20_000)
    users = np.arange(noise.size) % 500
    exact = interval_reliability(noise, np.zeros(noise.size), np.ones(noise.size), users)
    assert exact["meant"].tolist() == list(LEVELS)
    np.testing.assert_allclose(exact["held"], exact["meant"], atol=0.015)
    narrow = interval_reliability(noise, np.zeros(noise.size), np.full(noise.size, 0.5), users)
    assert np.all(narrow["high"].to_numpy() < narrow["meant"].to_numpy())
    np.testing.assert_allclose(narrow["width"], exact["width"] / 2)


def test_probabilities_are_compared_with_shares() -> None:
    rng = np.random.default_rng(0)
    probability = rng.random(5000)
    truth = (rng.random(5000) < probability).astype(int)
    table = probability_reliability(truth, probability)
    assert table["pairs"].to_numpy().sum() == 5000
    assert table["meant"].is_monotonic_increasing
    low, held, high = (table[name].to_numpy() for name in ("low", "held", "high"))
    assert np.all((low <= held) & (held <= high))
    np.testing.assert_allclose(held, table["meant"], atol=0.06)
    assert len(probability_reliability(truth, np.full(5000, 0.5))) == 1


@pytest.mark.parametrize("n_values", [5, 400])
def test_groups_share_all_errors_out(n_values: int) -> None:
    rng = np.random.default_rng(0)
    values, errors = rng.integers(n_values, size=1000), rng.normal(size=1000)
    table = errors_by(values, errors, np.arange(1000) % 90)
    assert table["pairs"].to_numpy().sum() == 1000
    assert len(table) == 5
    assert np.all(table["lowest"].to_numpy()[1:] > table["highest"].to_numpy()[:-1])
    assert np.sum(table["pairs"].to_numpy() * table["rmse"].to_numpy() ** 2) == pytest.approx((errors**2).sum())
    assert np.average(table["bias"], weights=table["pairs"]) == pytest.approx(errors.mean())


def test_an_evaluation_on_unseen_ratings_has_intervals_deviations_and_counts() -> None:
    rng = np.random.default_rng(0)
    truth = 3 + np.outer(rng.normal(size=40), rng.normal(size=30)) + 0.5 * rng.normal(size=(40, 30))
    data = Interactions.from_dense(np.where(rng.random(truth.shape) < 0.5, truth.clip(1, 5), np.nan))
    split = random_holdout(data, 0.2, random_state=0)
    training, test = data.select(split.train), data.select(split.test)
    model = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(training)
    found = evaluate_model(model, test)
    assert found.is_unseen
    assert found.measure == "rmse"
    assert found.knows_deviations
    for row in found.rows:
        assert row["rmse low"] < row["rmse"] < row["rmse high"]
    best = min(row["rmse"] for row in found.rows[1:])
    assert found.advantage is not None
    assert found.advantage.gain.value == pytest.approx(best - rmse(found.truth, found.predicted))
    assert found.advantage.gain.low > 0
    counts = pd.Series(np.bincount(training.user_index, minlength=40))
    expected = counts.loc[found.pairs["user"]].to_numpy()
    np.testing.assert_array_equal(found.pairs["user_ratings"], expected)
    stranger = pd.DataFrame({"user": [0, 77], "item": [1, 0], "rating": [2.0, 3.0]})
    assert evaluate_model(BiasModel().fit(training), stranger).pairs["user_ratings"].tolist() == [counts[0], 0]


def test_lists_from_likes_are_compared_with_what_is_popular_where_there_is_a_test() -> None:
    rng = np.random.default_rng(1)
    group = np.kron(np.eye(2), np.ones((12, 15))) > 0
    taken = group & (rng.random(group.shape) < 0.7)
    hidden = taken & (rng.random(group.shape) < 0.2)
    training, test = Interactions.from_dense(np.where(taken & ~hidden, 1.0, np.nan)), np.where(hidden, 1.0, np.nan)
    model = AIR.for_likes(settings={}, device="cpu", random_state=0).fit(training)
    found = evaluate_model(model, test)
    assert [row["model"] for row in found.rows] == ["GraphRanker", "most popular"]
    assert found.measure == "ndcg@10"
    table = model.recommend(training.user_ids, n=10)
    lists = np.full((training.n_users, 10), -1)
    lists[table["user"].to_numpy(dtype=int), table["rank"] - 1] = table["item"].to_numpy(dtype=int)
    relevant = Interactions.from_dense(test).to_csr()
    assert found.rows[0]["ndcg@10"] == pytest.approx(user_measures(lists, relevant)["ndcg_at_k"].mean())
    assert found.advantage is not None
    assert found.advantage.baseline == "most popular"
    assert found.advantage.gain.low > 0
    without = evaluate_model(model)
    assert without.rows == []
    assert "give likes that it has not seen" in without.notes[0]
    strange = pd.DataFrame({"user": ["nobody"], "item": ["nothing"], "rating": [1.0]})
    assert evaluate_model(model, strange).rows == []
    with pytest.raises(DataError, match="expected test likes, as the model learned from likes, found ratings"):
        evaluate_model(model, np.where(hidden, [[1.0], [2.0]] * 12, np.nan))
