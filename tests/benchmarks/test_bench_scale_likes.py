"""Planted likes by size: what is drawn, what is hidden, and a row a size."""

import numpy as np

from benchmarks.scale import LikesSize, bench_likes, likes
from benchmarks.scale.likes import measure_likes, planted_likes

SIZE = LikesSize(n_users=300, n_items=400, n_likes=6000)
SMALL = {"n_factors": 8, "n_steps": 20, "n_validation": 50}


def test_likes_come_in_groups_with_a_long_tail():
    found = planted_likes(SIZE, 0)
    counts = np.sort(np.bincount(found.indices, minlength=SIZE.n_items))[::-1]
    assert counts[:40].sum() > 3 * counts[-40:].sum()
    assert (planted_likes(SIZE, 0) != found).nnz == 0
    assert (planted_likes(SIZE, 1) != found).nnz > 0


def test_some_likes_of_some_users_are_hidden():
    every = planted_likes(SIZE, 0)
    shown, users, hidden = likes._divided(every, 0)
    assert shown.nnz + hidden.nnz == every.nnz
    assert hidden.shape == (len(users), SIZE.n_items)
    assert hidden.multiply(shown[users]).nnz == 0
    assert 0.1 < hidden.nnz / every[users].nnz < 0.3


def test_a_share_has_fewer_users_and_likes_of_the_same_items():
    assert SIZE.times(0.5) == LikesSize(150, 400, 3000)


def test_a_size_is_measured(monkeypatch):
    monkeypatch.setattr(likes, "_GROUPS", 4)
    monkeypatch.setattr(likes, "_ASKED", 70)
    row = measure_likes(SIZE, SMALL, 0)
    assert row["fit_seconds"] > 0
    assert row["lists_seconds"] > 0
    assert row["peak_gib"] >= row["data_gib"]
    assert row["recall_at_20"] > row["popularity"] > 0
    assert row["chosen"].startswith("regression")


def test_the_table_has_a_row_a_share():
    table, growth = bench_likes(SIZE, (0.5, 1.0), SMALL)
    assert [row["n_users"] for row in table.rows] == [150, 300]
    assert set(growth.rows[0]) == {"fit_seconds", "lists_seconds"}
