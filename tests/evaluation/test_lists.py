"""Lists of several models on one fold: their measures, intervals and tests are those of others' programs."""

import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys import Interactions
from air_recsys.evaluation.evaluating import evaluate_lists
from air_recsys.evaluation.folds import Fold, NewUsersFold, holdout_of_new_users, holdout_of_users, users_asked
from air_recsys.evaluation.lists import (
    Popularity,
    Recommending,
    catalogue_figures,
    diversity_figure,
    lists_of,
    popularity_groups,
)
from air_recsys.evaluation.system import System, system_of
from air_recsys.evaluation.systems import beside_ranker
from air_recsys.exceptions import ParameterError
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


@pytest.fixture(scope="module")
def systems():
    rng = np.random.default_rng(1)
    good = (np.arange(60)[:, None] % 3 == np.arange(45) % 3) + 0.1 * rng.random((60, 45))
    bad = rng.random((60, 45))
    return {name: system_of(Given(scores)) for name, scores in {"good": good, "again": good, "bad": bad}.items()}


@pytest.fixture(scope="module")
def found(fold, systems):
    return evaluate_lists(fold, systems, k=5, progress=False)


def test_intervals_hold_the_mean_and_only_another_system_differs(found):
    good, again, bad = found[0].rows
    for row in (good, again, bad):
        for name in ("ndcg", "precision", "recall", "map", "mrr", "hit_rate"):
            assert row[f"{name} low"] <= row[f"{name}@5"] <= row[f"{name} high"]
        assert row["ndcg low"] < row["ndcg high"]
    assert np.isnan([good["p"], again["p"]]).all()
    assert bad["p"] < 1e-6
    assert bad["ndcg high"] < good["ndcg low"]
    assert "ndcg low" in found[0].text()
    assert "recall low" not in found[0].text()


def test_the_bootstrap_is_that_of_its_seed_and_p_values_are_corrected(fold, systems, found):
    worse = systems | {"worse": systems["bad"]}
    same, other = (evaluate_lists(fold, worse, k=5, seed=seed, progress=False)[0].rows for seed in (0, 1))
    assert same[0]["ndcg low"] == found[0].rows[0]["ndcg low"] != other[0]["ndcg low"]
    assert [row["p holm"] for row in same] == pytest.approx([np.nan] * 2 + [2 * same[2]["p"]] * 2, nan_ok=True)


def test_the_means_of_the_groups_make_up_the_whole(found):
    """Each has a third of the users, those with the fewest training items first."""
    means, groups = found
    bands = [value for name, value in groups.rows[0].items() if name != "system"]
    assert len(bands) == 3
    assert np.mean(bands) == pytest.approx(means.rows[0]["ndcg@5"], rel=0.02)
    assert groups.notes[0].startswith("few items: ")


def test_all_pairs_are_relevant_whatever_their_values(fold, systems, found):
    test = fold.test
    zeros = Interactions(test.user_index, test.item_index, np.zeros(test.n_ratings), test.user_ids, test.item_ids)
    means, _ = evaluate_lists(Fold("x", fold.train, zeros), systems, k=5, progress=False)
    assert means.rows[0]["ndcg@5"] == found[0].rows[0]["ndcg@5"]


def test_measures_agree_with_trec_eval(fold, systems):
    """By the program of TREC: all measures, AP where k covers all that is relevant."""
    ir_measures = pytest.importorskip("ir_measures")
    from ir_measures import AP, RR, P, R, Success, nDCG

    users = np.unique(fold.test.user_index)
    model = systems["bad"].train(fold.train)
    k = 20
    means, groups = evaluate_lists(fold, {"bad": systems["bad"]}, k=k, progress=False)
    assert [row["system"] for row in groups.rows] == ["bad"]
    lists = model.lists(users, k)
    pairs = zip(fold.test.user_index.tolist(), fold.test.item_index.tolist(), strict=True)
    truth = [ir_measures.Qrel(str(user), str(item), 1) for user, item in pairs]
    run = [
        ir_measures.ScoredDoc(str(user), str(item), float(k - place))
        for user, row in zip(users.tolist(), lists.tolist(), strict=True)
        for place, item in enumerate(row)
    ]
    names = {"precision": P @ k, "recall": R @ k, "ndcg": nDCG @ k, "mrr": RR @ k, "hit_rate": Success @ k}
    names |= {"map": AP @ k}
    theirs = ir_measures.calc_aggregate(list(names.values()), truth, run)
    assert np.bincount(fold.test.user_index).max() <= k
    for name, measure in names.items():
        assert means.rows[0][f"{name}@{k}"] == pytest.approx(theirs[measure], rel=1e-9), name


def test_models_of_the_library_and_of_implicit_make_lists_of_unseen_items(data, fold):
    pytest.importorskip("implicit")
    users, seen = np.unique(fold.test.user_index), fold.train.to_csr().toarray() > 0
    for name, system in beside_ranker(["als", "bpr"], 0, {"n_factors": 5}).items():
        lists = lists_of(system.train(fold.train), fold.train, users, 45)
        filled = lists >= 0
        assert not seen[np.repeat(users, filled.sum(axis=1)), lists[filled]].any(), name
    few = Popularity().fit(Interactions.from_dense([[1, 1, np.nan], [np.nan, 1, np.nan]]))
    assert few.lists(np.array([0, 1]), 3).tolist() == [[2, -1, -1], [0, 2, -1]]
    model = Recommending(GraphRanker(n_factors=5, settings={}).fit(data))
    asked = np.array([7, 3, 50])  # in any order
    np.testing.assert_array_equal(model.lists(asked, 4), model.lists(np.arange(60), 4)[asked])


def test_the_ranker_is_above_what_is_popular_also_for_new_users(data, fold):
    ours, popular = evaluate_lists(fold, beside_ranker([], 0, {"n_factors": 5}), progress=False)[0].rows
    assert ours["ndcg low"] > popular["ndcg high"]
    assert ours["coverage"] > popular["coverage"]
    assert ours["popularity lift"] < popular["popularity lift"]
    pytest.importorskip("implicit")
    systems = beside_ranker(["als"], 0, {"n_factors": 5, "n_steps": 20, "device": "cpu"}, new_users=True)
    found, _ = evaluate_lists(holdout_of_new_users(data, 0.3, 0), systems, k=5, progress=False)
    ours, popular, als = found.rows
    assert min(ours["recall@5"], als["recall@5"]) > popular["recall@5"]


def test_lists_of_new_users_come_from_what_is_given_of_them(data):
    fold = holdout_of_new_users(data, 0.3, 0)
    asked = []

    class Noting(Popularity):
        def lists_of_new(self, rows, n):
            asked.append(rows)
            return super().lists_of_new(rows, n)

    means, groups = evaluate_lists(fold, {"popular": System(Noting().fit, "", new_users=True)}, k=5, progress=False)
    users, (rows,) = users_asked(fold), asked
    np.testing.assert_array_equal(rows.toarray(), fold.given.to_csr().toarray()[users] > 0)
    order = np.argsort(-np.bincount(fold.train.item_index, minlength=45), kind="stable")
    lists = np.array([[item for item in order if not row[item]][:5] for row in rows.toarray()])
    relevant = sp.csr_array(fold.test.to_csr())[users]
    assert means.rows[0]["ndcg@5"] == pytest.approx(ndcg_at_k(lists, relevant, 5))
    sizes = np.diff(rows.indptr)
    assert groups.notes[0].startswith(f"few items: {sizes.min()}..")
    assert "items given" in groups.title


def test_what_cannot_be_measured_is_refused_before_any_work(fold, systems):
    for k in (0, 46):
        with pytest.raises(ParameterError, match=r"k must be in 1\.\.45"):
            evaluate_lists(fold, systems, k=k)
    with pytest.raises(ParameterError, match="peers must be of"):
        beside_ranker(["svd"], 0)
    with pytest.raises(ParameterError, match="implicit BPR makes lists only for users of its training: leave it out"):
        beside_ranker(["als", "bpr"], 0, new_users=True)
    new_users = NewUsersFold(fold.train, fold.train, fold.test)
    with pytest.raises(ParameterError, match=r"expected systems with lists_of_new, .* found good, again, bad"):
        evaluate_lists(new_users, systems, k=5)


def test_the_lift_counts_all_users_that_are_shown_and_groups_have_a_third_of_the_interactions_each():
    """Item 0 has 3 of the 4 users, item 1 one of them; only the last user is asked."""
    train = Interactions.from_dense([[1, np.nan], [1, np.nan], [1, np.nan], [np.nan, 1]])
    figures = catalogue_figures(np.array([[0]]), np.array([3]), train, train.to_csr())
    assert figures["popularity lift"] == 2
    assert figures["coverage"] == 0.5
    assert np.isnan(diversity_figure(np.array([[0]]), train)["diversity"])
    counts = np.random.default_rng(0).integers(1, 50, 3000)
    sums = counts @ popularity_groups(counts)
    np.testing.assert_allclose(sums / counts.sum(), 1 / 3, atol=0.01)
