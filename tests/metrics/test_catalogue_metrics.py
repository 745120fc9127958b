"""Measures of what lists do to a catalogue: their definitions by loops, their limits, and what they refuse."""

import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys.exceptions import DataError
from air_recsys.metrics import (
    coverage,
    gini,
    intra_list_diversity,
    miscalibration,
    novelty,
    popularity_lift,
)

N_USERS, N_ITEMS, K = 30, 25, 6


@pytest.fixture
def seen():
    pattern = np.random.default_rng(0).random((N_USERS, N_ITEMS)) < np.linspace(0.6, 0.05, N_ITEMS)
    pattern[:, 0] = True
    return sp.csr_array(np.where(pattern, 3.0, 0.0))


@pytest.fixture
def lists():
    rng = np.random.default_rng(1)
    found = np.array([rng.permutation(N_ITEMS)[:K] for _ in range(N_USERS)])
    found[:5, -2:] = -1
    return found


def test_measures_are_their_definitions(lists, seen):
    pattern = seen.toarray() > 0
    counts = pattern.sum(axis=0)
    filled = [row[row >= 0] for row in lists]
    all_items = np.concatenate(filled)
    assert coverage(lists, N_ITEMS) == len(set(all_items.tolist())) / N_ITEMS
    assert novelty(lists, seen) == pytest.approx(-np.log2(np.maximum(counts[all_items], 1) / N_USERS).mean())
    lifts = [counts[row].mean() / counts[own].mean() - 1 for row, own in zip(filled, pattern, strict=True)]
    assert popularity_lift(lists, seen) == pytest.approx(np.mean(lifts))
    unit = pattern / np.sqrt(np.maximum(counts, 1))
    alike = unit.T @ unit
    spread = [1 - alike[np.ix_(row, row)][~np.eye(row.size, dtype=bool)].mean() for row in filled]
    assert intra_list_diversity(lists, seen) == pytest.approx(np.mean(spread))
    times = np.sort(np.bincount(all_items, minlength=N_ITEMS))
    pairs = np.abs(times[:, None] - times).sum() / (2 * N_ITEMS**2 * times.mean())  # half the relative mean difference
    assert gini(lists, N_ITEMS) == pytest.approx(pairs)


def test_calibration_compares_the_shares_of_groups(lists, seen):
    groups = np.random.default_rng(2).random((N_ITEMS, 3)) < 0.5
    groups[0] = True
    shares = groups / np.maximum(groups.sum(axis=1, keepdims=True), 1)
    distances = []
    for row, own in zip(lists, seen.toarray() > 0, strict=True):
        p, q = shares[own].sum(axis=0), shares[row[row >= 0]].sum(axis=0)
        p, q = p / p.sum(), q / q.sum()
        mixed = 0.99 * q + 0.01 * p
        distances.append(sum(p[g] * np.log2(p[g] / mixed[g]) for g in range(3) if p[g] > 0))
    assert miscalibration(lists, seen, groups) == pytest.approx(np.mean(distances))


def test_the_own_items_are_neither_more_popular_nor_miscalibrated_and_all_items_alike_cover_most(seen):
    own = [np.flatnonzero(row) for row in seen.toarray()]
    width = max(row.size for row in own)
    same = np.array([np.pad(row, (0, width - row.size), constant_values=-1) for row in own])
    assert popularity_lift(same, seen) == pytest.approx(0)
    assert miscalibration(same, seen, np.eye(N_ITEMS)) == pytest.approx(0, abs=1e-12)
    every = np.arange(10)[:, None]
    assert (gini(every, 10), coverage(every, 10)) == (0, 1)
    assert gini(np.zeros((9, 1), dtype=int), 10) == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ([[0, 30]], "expected item indices in -1..24"),
        ([[-1, -1]], "at least one item"),
        ([[0.5]], "2-D integer array"),
        ([0, 1], "2-D integer array"),
    ],
)
@pytest.mark.parametrize("measure", [novelty, intra_list_diversity])
def test_what_is_no_list_is_refused(measure, lists, message, seen):
    with pytest.raises(DataError, match=message):
        coverage(lists, N_ITEMS)
    with pytest.raises(DataError, match=message):
        measure(lists, seen)


def test_what_cannot_be_measured_is_refused(seen):
    with pytest.raises(DataError, match="found none"):
        popularity_lift([[1]], sp.csr_array((1, N_ITEMS)))
    with pytest.raises(DataError, match="two items"):
        intra_list_diversity([[1, -1]], seen)
    with pytest.raises(DataError, match="groups of 25 items"):
        miscalibration([[1]], seen[:1], np.ones((3, 2)))
    with pytest.raises(DataError, match="some group"):
        miscalibration([[1]], seen[:1], np.zeros((N_ITEMS, 2)))
    with pytest.raises(DataError, match="with 2 users"):
        popularity_lift([[1], [2]], seen)
