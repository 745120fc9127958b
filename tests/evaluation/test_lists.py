"""Lists of several models on one fold: their measures, intervals and tests are those of others' programs."""

import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys import Interactions
from air_recsys.evaluation.folds import Fold
from air_recsys.evaluation.list_columns import popularity_groups
from air_recsys.evaluation.lists import (
    Popularity,
    Recommending,
    evaluate_lists,
    holdout_in_time,
    holdout_of_last,
    holdout_of_users,
    listers,
)
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.metrics import ndcg_at_k
from air_recsys.models import GraphRanker


class Given:
    """Lists of given scores, whatever is trained."""

    def __init__(self, scores):
        self.scores = scores

    def fit(self, interactions):
        self.seen = interactions.to_csr().toarray() > 0

    def lists(self, users, n):
        return np.argsort(-np.where(self.seen, -np.inf, self.scores)[users], axis=1)[:, :n]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    group = np.arange(60)[:, None] % 3 == np.arange(45) % 3
    chance = np.where(group, 0.5, 0.05)
    return Interactions.from_csr(sp.csr_array((rng.random(chance.shape) < chance).astype(float)))


@pytest.fixture(scope="module")
def fold(data):
    return holdout_of_users(data, 0.2, 0)


@pytest.fixture
def systems():
    rng = np.random.default_rng(1)
    good = (np.arange(60)[:, None] % 3 == np.arange(45) % 3) + 0.1 * rng.random((60, 45))
    bad = rng.random((60, 45))
    return {"good": lambda: Given(good), "again": lambda: Given(good), "bad": lambda: Given(bad)}


def test_measures_are_those_of_the_lists(fold, systems):
    means, groups = evaluate_lists(fold, systems, k=5, progress=False)
    users = np.unique(fold.test.user_index)
    model = systems["bad"]()
    model.fit(fold.train)
    relevant = sp.csr_array(fold.test.to_csr())[users]
    assert means.rows[2]["ndcg@5"] == pytest.approx(ndcg_at_k(model.lists(users, 5), relevant, 5))
    assert [row["system"] for row in groups.rows] == ["good", "again", "bad"]


def test_intervals_hold_the_mean_and_only_another_system_differs(fold, systems):
    good, again, bad = evaluate_lists(fold, systems, k=5, progress=False)[0].rows
    for row in (good, again, bad):
        assert row["ndcg low"] < row["ndcg@5"] < row["ndcg high"]
    assert np.isnan(good["p"])
    assert np.isnan(again["p"])
    assert bad["p"] < 1e-6
    assert bad["ndcg high"] < good["ndcg low"]


def test_the_bootstrap_is_that_of_its_seed(fold, systems):
    lows = [evaluate_lists(fold, systems, k=5, seed=seed, progress=False)[0].rows[0]["ndcg low"] for seed in (0, 0, 1)]
    assert lows[0] == lows[1] != lows[2]


def test_the_means_of_the_groups_make_up_the_whole(fold, systems):
    """Each has a third of the users, those with the fewest training items first."""
    means, groups = evaluate_lists(fold, systems, k=5, progress=False)
    bands = [value for name, value in groups.rows[0].items() if name != "system"]
    assert len(bands) == 3
    assert np.mean(bands) == pytest.approx(means.rows[0]["ndcg@5"], rel=0.02)
    assert groups.notes[0].startswith("few items: ")


def test_all_pairs_are_relevant_whatever_their_values(fold, systems):
    test = Interactions(
        fold.test.user_index,
        fold.test.item_index,
        np.zeros(fold.test.n_ratings),
        fold.test.user_ids,
        fold.test.item_ids,
    )
    zeros, ones = (
        evaluate_lists(Fold("x", fold.train, each), systems, k=5, progress=False)[0] for each in (test, fold.test)
    )
    assert zeros.rows[0]["ndcg@5"] == ones.rows[0]["ndcg@5"]


def test_measures_agree_with_trec_eval(fold, systems):
    """By the program of TREC: all measures, AP where k covers all that is relevant."""
    ir_measures = pytest.importorskip("ir_measures")
    from ir_measures import AP, RR, P, R, Success, nDCG

    users = np.unique(fold.test.user_index)
    model = systems["bad"]()
    model.fit(fold.train)
    k = 20
    found = evaluate_lists(fold, {"bad": systems["bad"]}, k=k, progress=False)[0].rows[0]
    lists = model.lists(users, k)
    truth = [
        ir_measures.Qrel(str(user), str(item), 1)
        for user, item in zip(fold.test.user_index.tolist(), fold.test.item_index.tolist(), strict=True)
    ]
    run = [
        ir_measures.ScoredDoc(str(user), str(item), float(k - place))
        for user, row in zip(users.tolist(), lists.tolist(), strict=True)
        for place, item in enumerate(row)
    ]
    names = {
        "precision": P @ k,
        "recall": R @ k,
        "ndcg": nDCG @ k,
        "mrr": RR @ k,
        "hit_rate": Success @ k,
        "map": AP @ k,
    }
    theirs = ir_measures.calc_aggregate(list(names.values()), truth, run)
    assert np.bincount(fold.test.user_index).max() <= k
    for name, measure in names.items():
        assert found[f"{name}@{k}"] == pytest.approx(theirs[measure], rel=1e-9), name


def test_models_of_the_library_and_of_implicit_make_lists_of_unseen_items(fold):
    pytest.importorskip("implicit")
    users, seen = np.unique(fold.test.user_index), fold.train.to_csr().toarray() > 0
    for name, make in listers(["als", "bpr"], 0, {"n_factors": 5}).items():
        model = make()
        model.fit(fold.train)
        lists = model.lists(users, 45)
        filled = lists >= 0
        assert not seen[np.repeat(users, filled.sum(axis=1)), lists[filled]].any(), name


def test_the_ranker_is_above_what_is_popular(fold):
    ours, popular = evaluate_lists(fold, listers([], 0, {"n_factors": 5}), progress=False)[0].rows
    assert ours["ndcg low"] > popular["ndcg high"]
    assert ours["coverage"] > popular["coverage"]
    assert ours["popularity lift"] < popular["popularity lift"]


def test_users_are_asked_for_in_any_order(data):
    model = Recommending(GraphRanker(n_factors=5, settings={})).fit(data)
    users = np.array([7, 3, 50])
    np.testing.assert_array_equal(model.lists(users, 4), model.lists(np.arange(60), 4)[users])


def test_popularity_pads_lists_of_users_who_have_nearly_everything():
    model = Popularity().fit(Interactions.from_dense([[1, 1, np.nan], [np.nan, 1, np.nan]]))
    assert model.lists(np.array([0, 1]), 3).tolist() == [[2, -1, -1], [0, 2, -1]]


def test_groups_of_popularity_have_a_third_of_the_interactions_each():
    counts = np.random.default_rng(0).integers(1, 50, 3000)
    sums = counts @ popularity_groups(counts)
    np.testing.assert_allclose(sums / counts.sum(), 1 / 3, atol=0.01)


def in_time(*more: tuple[int, int, int]) -> Interactions:
    """User, item and time of a few interactions; those of users 0 and 1, and item 3 and user 2, which come last."""
    rows = [(0, 0, 1), (1, 0, 2), (1, 2, 3), (0, 1, 4), (1, 3, 5), (2, 0, 6), *more]
    users, items, times = zip(*rows, strict=True)
    return Interactions(users, items, np.ones(len(rows)), list("abc"), list("wxyz"), timestamps=times)


def pairs_of(data: Interactions) -> set[tuple[int, int]]:
    return set(zip(data.user_index.tolist(), data.item_index.tolist(), strict=True))


def test_the_last_of_each_user_is_tested_where_others_had_the_item():
    with pytest.raises(DataError, match="found none among 2"):  # nobody else has items 1 and 3
        holdout_of_last(in_time())
    fold = holdout_of_last(in_time((2, 1, 0)))
    assert pairs_of(fold.test) == {(0, 1), (2, 0)}
    assert pairs_of(fold.train) == {(0, 0), (1, 0), (1, 2), (2, 1)}
    assert (fold.train.n_users, fold.train.n_items) == (3, 4)


def test_the_latest_share_is_tested_of_those_who_occur_before():
    with pytest.raises(DataError, match="found none among 3"):
        holdout_in_time(in_time(), 0.5)
    fold = holdout_in_time(in_time((0, 2, 7)), 0.5)
    assert pairs_of(fold.test) == {(0, 2)}
    assert pairs_of(fold.train) == {(0, 0), (1, 0), (1, 2)}


def test_what_cannot_be_measured_is_refused_before_any_work(fold, systems):
    for k in (0, 46):
        with pytest.raises(ParameterError, match=r"k must be in 1\.\.45"):
            evaluate_lists(fold, systems, k=k)
    with pytest.raises(ParameterError, match="peers must be of"):
        listers(["svd"], 0)
