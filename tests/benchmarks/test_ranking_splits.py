"""How a split was made: a part drawn at random is as like the rest as itself, a visit to other items is not."""

import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys import Interactions
from air_recsys.evaluation.folds import Fold, holdout_of_users
from benchmarks.accuracy.ranking_data import bench_ranking_splits, likeness

_GROUPS, _SIZE = 6, 12


@pytest.fixture(scope="module")
def likes():
    """Users of two kinds of items each."""
    rng = np.random.default_rng(0)
    kinds = np.argsort(rng.random((300, _GROUPS)), axis=1)[:, :2]
    member = (kinds[:, :, None] == np.arange(_GROUPS * _SIZE) // _SIZE).any(axis=1)
    return Interactions.from_csr(sp.csr_array((member & (rng.random(member.shape) < 0.8)).astype(float)))


def test_a_random_part_is_as_like_the_rest_as_itself(likes):
    assert likeness(holdout_of_users(likes, 0.2, 0)).ratio == pytest.approx(1, abs=0.05)


def test_items_of_one_kind_belong_together(likes):
    last = likes.item_index // _SIZE == _last_kind(likes)[likes.user_index]
    last &= np.random.default_rng(0).random(last.size) < 0.6
    found = likeness(Fold("test", likes.select(~last), likes.select(last)))
    assert found.ratio > 1.4
    assert 140 <= found.n_users <= 150  # of the other half


def test_users_of_few_items_are_not_asked(likes):
    few = likes.select((likes.item_index < 2) | (likes.user_index < 200))
    fold = holdout_of_users(few, 0.2, 0)
    assert 0 < likeness(fold).n_users < 150


def test_a_split_of_single_items_has_no_likeness(likes):
    first = np.unique(likes.user_index, return_index=True)[1]
    single = np.isin(np.arange(likes.n_ratings), first)
    found = likeness(Fold("last", likes.select(~single), likes.select(single)))
    assert np.isnan([found.within, found.across, found.ratio]).all()
    assert found.n_users == 0


def test_a_table_has_the_test_part_and_a_random_one(likes):
    fold = holdout_of_users(likes, 0.2, 0)
    table = bench_ranking_splits({"gowalla": fold, "lastfm": fold})
    assert [(row["set"], row["part"]) for row in table.rows] == [
        ("Gowalla", "test"),
        ("Gowalla", "random"),
        ("Last.fm", "test"),
        ("Last.fm", "random"),
    ]
    first = table.rows[0]
    assert first["ratio"] == pytest.approx(first["within"] / first["across"])


def _last_kind(likes):
    last = np.zeros(likes.n_users, dtype=int)
    np.maximum.at(last, likes.user_index, likes.item_index // _SIZE)
    return last
