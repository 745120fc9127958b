"""Comparisons on the same folds: nothing of a test part reaches a training, and errors are those of the metrics."""

import sys

import numpy as np
import pandas as pd
import pytest

from air_recsys import AIR, DMF, BiasModel, GlobalMean, Interactions
from air_recsys.adapters.surprise_peer import SurpriseModel
from air_recsys.evaluation.evaluating import evaluate_ratings
from air_recsys.evaluation.folds import Fold, cross_validation_folds, holdout_folds
from air_recsys.evaluation.system import System
from air_recsys.evaluation.systems import PEERS, beside_air
from air_recsys.exceptions import MissingExtraError, ParameterError

AIR_SHORT = AIR.for_ratings(n_sweeps=5, n_factors=2, graph_neighbors=3, device="cpu", random_state=0)
BY_ADAM = AIR.for_ratings(solver="adam", n_epochs=5, n_factors=2, graph_neighbors=3, device="cpu", random_state=0)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((20, 12)) < 0.5)
    frame = pd.DataFrame({"user": users + 100, "item": [f"i{item}" for item in items]})
    return Interactions.from_frame(frame.assign(rating=rng.integers(1, 6, users.size).astype(float)))


def triples(data):
    return set(data.to_frame()[["user", "item", "rating"]].itertuples(index=False, name=None))


def folds_of(data):
    return [*holdout_folds(data, 0.3, 0), *cross_validation_folds(data, 4, 0)]


def test_folds_part_the_data(data):
    for fold in folds_of(data):
        assert triples(fold.train) | triples(fold.test) == triples(data)
        assert not triples(fold.train) & triples(fold.test)
        assert fold.train.user_ids.tolist() == fold.test.user_ids.tolist() == data.user_ids.tolist()
    tested = [triples(fold.test) for fold in cross_validation_folds(data, 4, 0)]
    assert sum(map(len, tested)) == data.n_ratings
    assert set().union(*tested) == triples(data)
    assert [fold.name for fold in folds_of(data)] == ["hold-out", "fold 1", "fold 2", "fold 3", "fold 4"]


def test_no_test_rating_reaches_a_training(data):
    seen = []

    class Spy(GlobalMean):
        def fit(self, interactions, *, callbacks=()):
            seen.append(triples(interactions))
            return super().fit(interactions)

    folds = folds_of(data)
    evaluate_ratings(folds, {"one": System(Spy().fit, ""), "two": System(Spy().fit, "")}, progress=False)
    assert len(seen) == 2 * len(folds)
    for position, fold in enumerate(folds):
        for given in seen[position :: len(folds)]:
            assert given == triples(fold.train)
            assert not given & triples(fold.test)


def test_predictions_do_not_depend_on_the_test_ratings(data):
    fold = holdout_folds(data, 0.3, 0)[0]
    test = fold.test
    other = Interactions(test.user_index, test.item_index, 6 - test.ratings, test.user_ids, test.item_ids)
    for system in beside_air(AIR_SHORT, PEERS, 0).values():
        first, second = (
            system.train(part.train).predict(part.test.to_frame()["user"], part.test.to_frame()["item"])
            for part in (fold, Fold("other", fold.train, other))
        )
        np.testing.assert_array_equal(first, second)


def test_errors_are_those_of_the_predictions(data):
    fold = holdout_folds(data, 0.3, 0)[0]
    means, single = evaluate_ratings([fold], beside_air(AIR_SHORT, [], 0), progress=False, protocol="mine")
    row = next(row for row in means.rows if row["model"] == "GlobalMean")
    difference = fold.test.ratings - fold.train.ratings.mean()
    assert row["rmse"] == pytest.approx(np.sqrt(np.mean(difference**2)))
    assert row["mae"] == pytest.approx(np.abs(difference).mean())
    assert row["nmae"] == pytest.approx(row["mae"] / np.ptp(fold.train.ratings))
    assert min(row["fit_seconds"], row["predict_seconds"]) >= 0
    assert (means.protocol, single.protocol) == ("mine", "mine")
    assert means.notes[0].startswith("peak memory of the whole run")


def test_every_contender_runs_on_every_fold_and_means_are_means(data):
    folds = cross_validation_folds(data, 2, 0)
    means, single = evaluate_ratings(folds, beside_air(BY_ADAM, PEERS, 0), progress=False)
    names = ["AIR", "DMF", "BiasModel", "GlobalMean", "Surprise SVD", "Surprise SVDpp", "Surprise KNNBaseline"]
    assert [(row["fold"], row["model"]) for row in single.rows] == [
        (fold.name, name) for fold in folds for name in names
    ]
    assert [row["model"] for row in means.rows] == names
    for row in means.rows:
        runs = [run["rmse"] for run in single.rows if run["model"] == row["model"]]
        assert row["rmse"] == pytest.approx(np.mean(runs))
        assert 0.5 < row["rmse"] < 3


def test_the_same_seed_gives_the_same_errors(data):
    first, again = (
        evaluate_ratings(holdout_folds(data, 0.3, 1), beside_air(AIR_SHORT, ["svd"], 2), progress=False)[0]
        for _ in range(2)
    )
    assert [row["rmse"] for row in first.rows] == [row["rmse"] for row in again.rows]


def test_systems_are_made_anew_each_time(data):
    systems = beside_air(BY_ADAM, ["svd"], 7)
    made = {name: (system.train(data), system.train(data)) for name, system in systems.items()}
    kinds = {"AIR": AIR, "DMF": DMF, "BiasModel": BiasModel, "GlobalMean": GlobalMean, "Surprise SVD": SurpriseModel}
    assert {name: type(pair[0]) for name, pair in made.items()} == kinds
    assert all(one is not other for one, other in made.values())
    svd = made["Surprise SVD"][0]
    assert isinstance(svd, SurpriseModel)
    assert svd.algorithm.random_state == 7


def test_dmf_stands_beside_the_model_whose_objective_it_shares(data):
    """Beside a posterior it would differ by its engine, not by its graphs."""
    assert list(beside_air(AIR_SHORT, [], 0)) == ["AIR", "BiasModel", "GlobalMean"]
    assert list(beside_air(BY_ADAM, [], 0)) == ["AIR", "DMF", "BiasModel", "GlobalMean"]


def test_unknown_peers_and_a_missing_surprise_are_told_before_any_work(monkeypatch):
    with pytest.raises(ParameterError, match=r"peers must be of \['svd', 'svdpp', 'knnbaseline'\], found 'als'"):
        beside_air(AIR_SHORT, ["svd", "als"], 0)
    monkeypatch.setitem(sys.modules, "surprise", None)
    with pytest.raises(MissingExtraError, match="this needs surprise"):
        beside_air(AIR_SHORT, ["svd"], 0)


def test_ratings_that_are_all_equal_have_an_nmae():
    data = Interactions.from_dense(np.full((6, 6), 3.0))
    monotone = AIR.for_ratings(
        solver="adam", n_epochs=1, n_factors=2, unobserved_weight=0.1, biases=False, center=False, device="cpu"
    )
    means, _ = evaluate_ratings(holdout_folds(data, 0.3, 0), beside_air(monotone, [], 0), progress=False)
    assert all(np.isfinite(row["nmae"]) for row in means.rows)
