"""Folds: nothing of a test part reaches a training, errors are those of the metrics, and who is left out of lists."""

import sys

import numpy as np
import pandas as pd
import pytest

from air_recsys import AIR, DMF, BiasModel, GlobalMean, Interactions
from air_recsys.adapters.surprise_peer import SurpriseModel
from air_recsys.data.splits.base import StrongSplit
from air_recsys.evaluation.evaluating import evaluate_ratings
from air_recsys.evaluation.folds import (
    NewUsersFold,
    cross_validation_folds,
    given_rows,
    holdout_folds,
    holdout_in_time,
    holdout_of_last,
    holdout_of_new_users,
    users_asked,
)
from air_recsys.evaluation.system import System
from air_recsys.evaluation.systems import PEERS, beside_air
from air_recsys.exceptions import DataError, MissingExtraError, ParameterError

AIR_SHORT = AIR.for_ratings(n_sweeps=5, n_factors=2, graph_neighbors=3, device="cpu", random_state=0)
BY_ADAM = AIR.for_ratings(solver="adam", n_epochs=5, n_factors=2, graph_neighbors=3, device="cpu", random_state=0)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((20, 12)) < 0.5)
    frame = pd.DataFrame({"user": users + 100, "item": [f"i{item}" for item in items]})
    return Interactions.from_frame(frame.assign(rating=rng.integers(1, 6, users.size).astype(float)))


def triples(data):
    return set(data.to_frame()[["user", "item", "rating"]].itertuples(index=False, name=None))


def folds_of(data):
    return [*holdout_folds(data, 0.3, 0), *cross_validation_folds(data, 4, 0)]


def test_folds_part_the_data_and_no_test_rating_reaches_a_training(data):
    seen = []

    class Spy(GlobalMean):
        def fit(self, interactions, *, callbacks=()):
            seen.append(triples(interactions))
            return super().fit(interactions)

    folds = folds_of(data)
    assert [fold.name for fold in folds] == ["hold-out", "fold 1", "fold 2", "fold 3", "fold 4"]
    evaluate_ratings(folds, {"one": System(Spy().fit, ""), "two": System(Spy().fit, "")}, progress=False)
    assert len(seen) == 2 * len(folds)
    for position, fold in enumerate(folds):
        assert triples(fold.train) | triples(fold.test) == triples(data)
        assert not triples(fold.train) & triples(fold.test)
        assert fold.train.user_ids.tolist() == fold.test.user_ids.tolist() == data.user_ids.tolist()
        assert seen[position :: len(folds)] == [triples(fold.train)] * 2
    tested = [triples(fold.test) for fold in folds[1:]]
    assert sum(map(len, tested)) == data.n_ratings
    assert set().union(*tested) == triples(data)


def test_errors_are_those_of_the_predictions_and_the_same_again(data):
    fold = holdout_folds(data, 0.3, 0)[0]
    (means, single), (again, _) = (
        evaluate_ratings([fold], beside_air(AIR_SHORT, ["svd"], 2), progress=False, protocol="mine") for _ in range(2)
    )
    assert [row["rmse"] for row in means.rows] == [row["rmse"] for row in again.rows]
    row = next(row for row in means.rows if row["model"] == "GlobalMean")
    difference = fold.test.ratings - fold.train.ratings.mean()
    assert row["rmse"] == pytest.approx(np.sqrt(np.mean(difference**2)))
    assert row["mae"] == pytest.approx(np.abs(difference).mean())
    assert row["nmae"] == pytest.approx(row["mae"] / np.ptp(fold.train.ratings))
    assert min(row["fit_seconds"], row["predict_seconds"]) >= 0
    assert (means.protocol, single.protocol) == ("mine", "mine")
    assert means.notes[0].startswith("peak memory of the whole run")
    equal = holdout_folds(Interactions.from_dense(np.full((6, 6), 3.0)), 0.3, 0)
    means, _ = evaluate_ratings(equal, {"mean": System(GlobalMean().fit, "")}, progress=False)
    assert np.isfinite(means.rows[0]["nmae"])


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


def test_systems_are_made_anew_each_time(data, monkeypatch):
    """DMF stands beside the objective it shares: beside a posterior it would differ by its engine, not its graphs."""
    systems = beside_air(BY_ADAM, ["svd"], 7)
    made = {name: (system.train(data), system.train(data)) for name, system in systems.items()}
    kinds = {"AIR": AIR, "DMF": DMF, "BiasModel": BiasModel, "GlobalMean": GlobalMean, "Surprise SVD": SurpriseModel}
    assert {name: type(pair[0]) for name, pair in made.items()} == kinds
    assert all(one is not other for one, other in made.values())
    assert made["Surprise SVD"][0].algorithm.random_state == 7
    assert list(beside_air(AIR_SHORT, [], 0)) == ["AIR", "BiasModel", "GlobalMean"]
    with pytest.raises(ParameterError, match=r"peers must be of \['svd', 'svdpp', 'knnbaseline'\], found 'als'"):
        beside_air(AIR_SHORT, ["svd", "als"], 0)
    monkeypatch.setitem(sys.modules, "surprise", None)
    with pytest.raises(MissingExtraError, match="this needs surprise"):
        beside_air(AIR_SHORT, ["svd"], 0)


def in_time(*more: tuple[int, int, int]) -> Interactions:
    """User, item and time of a few interactions; those of users 0 and 1, and item 3 and user 2, which come last."""
    rows = [(0, 0, 1), (1, 0, 2), (1, 2, 3), (0, 1, 4), (1, 3, 5), (2, 0, 6), *more]
    users, items, times = zip(*rows, strict=True)
    return Interactions(users, items, np.ones(len(rows)), list("abc"), list("wxyz"), timestamps=times)


def pairs_of(data: Interactions) -> set[tuple[int, int]]:
    return set(zip(data.user_index.tolist(), data.item_index.tolist(), strict=True))


TWO = ((0, 2, 7), (2, 1, 0))


@pytest.mark.parametrize(
    ("fold", "tested", "trained"),
    [
        # where others have the item, with the user who occurs before
        (holdout_of_last(in_time(TWO[1])), {(0, 1), (2, 0)}, {(0, 0), (1, 0), (1, 2), (2, 1)}),
        (holdout_in_time(in_time(TWO[0]), 0.5), {(0, 2)}, {(0, 0), (1, 0), (1, 2)}),
        # items 2 and 3 are among the last of all who have them, and user 2 has no more than two
        (holdout_of_last(in_time(*TWO), 2), {(0, 1)}, {(0, 0), (1, 0), (2, 0), (2, 1)}),
        # the latest share of each; item 3 is the latest of all who have it
        (holdout_of_last(in_time(*TWO), 0.4), {(0, 2), (2, 0)}, {(0, 0), (0, 1), (1, 0), (1, 2), (2, 1)}),
    ],
)
def test_the_last_ones_or_the_latest_share_are_tested_of_those_who_occur_before(fold, tested, trained):
    assert pairs_of(fold.test) == tested
    assert pairs_of(fold.train) == trained
    assert (fold.train.n_users, fold.train.n_items) == (3, 4)


def test_new_users_are_given_four_fifths_of_their_items_and_trained_on_by_nobody():
    data = Interactions.from_dense(np.ones((20, 10)))
    fold = holdout_of_new_users(data, 0.1, 0)
    hidden = users_asked(fold)
    assert hidden.size == 2
    assert fold.train.n_ratings == 180
    assert not np.isin(hidden, fold.train.user_index).any()
    assert pairs_of(fold.given).isdisjoint(pairs_of(fold.test))
    assert np.bincount(fold.given.user_index)[hidden].tolist() == [8, 8]
    np.testing.assert_array_equal(given_rows(fold).toarray(), fold.given.to_csr().toarray()[hidden])
    assert (fold.given.n_users, fold.test.n_items) == (20, 10)
    data = Interactions.from_dense([[1, 1], [1, 1]])
    fold = NewUsersFold.of(data, StrongSplit(*(np.isin(np.arange(4), part) for part in ([0, 1], [2], [3]))))
    assert [pairs_of(part) for part in fold] == [{(0, 0), (0, 1)}, {(1, 0)}, {(1, 1)}]


def test_items_that_no_training_user_has_are_neither_given_nor_tested():
    """Every user has an item that nobody else has, beside five that all have."""
    data = Interactions.from_dense(np.where(np.hstack([np.ones((30, 5)), np.eye(30)]) > 0, 1.0, np.nan))
    for seed in range(5):
        fold = holdout_of_new_users(data, 0.2, seed)
        assert max(fold.given.item_index.max(), fold.test.item_index.max()) < 5
        assert set(fold.given.user_index) == set(fold.test.user_index)


ALONE = Interactions.from_dense(np.where(np.kron(np.eye(5), np.ones((1, 2))) > 0, 1.0, np.nan))


@pytest.mark.parametrize(
    ("hold_out", "message"),
    [
        (lambda: holdout_of_last(in_time()), "found none among 2"),  # nobody else has items 1 and 3
        (lambda: holdout_in_time(in_time(), 0.5), "found none among 3"),
        (lambda: holdout_of_last(in_time(), 3), r"users with more than 3 interaction\(s\), found 3 of one user"),
        (
            lambda: holdout_of_last(Interactions.from_dense([[1, 1]]), 3),
            "ratings with timestamps, found none",
        ),
        (lambda: holdout_of_new_users(ALONE, 0.1, 0), "two items that other users have, found none among 1"),
        (
            lambda: holdout_of_new_users(Interactions.from_dense([[1, 1]]), 0.1, 0),
            "none with ratings; lower test_",
        ),
        (lambda: holdout_of_new_users(ALONE, 1, 0), "must be a number > 0 and < 1, found 1"),
    ],
)
def test_what_cannot_be_tested_is_told(hold_out, message):
    with pytest.raises((DataError, ParameterError), match=message):
        hold_out()
