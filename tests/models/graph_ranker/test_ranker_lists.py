"""Lists of a `GraphRanker` by candidates: those of all scores in double precision, ties and edges included."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from air_recsys.models.graph_ranker import lists
from air_recsys.models.graph_ranker.factors import ItemFactors
from air_recsys.models.graph_ranker.lists import best_lists, largest_of_rows
from air_recsys.models.graph_ranker.scorers import FactorScorer, ProductScorer, WeightedScorers
from air_recsys.models.ranking import ties

N_USERS, N_ITEMS = 70, 300
WEIGHTS = {"regression": 1.0, "factor": 0.7}


def product(left: sp.csr_array, right: sp.csr_array | np.ndarray) -> ProductScorer:
    return ProductScorer(left, right, np.ones(left.shape[1]))


def factors(users: np.ndarray, items: np.ndarray, temperature: float) -> FactorScorer:
    return FactorScorer.of(users, ItemFactors(items, items), temperature, np.zeros(len(items)))


def scorers(temperature: float = 0.15, *, copies: bool = False) -> WeightedScorers:
    """A sparse product and factors; with copies, each item is there three times."""
    rng = np.random.default_rng(0)
    n = N_ITEMS // 3 if copies else N_ITEMS
    left = sp.random_array((N_USERS, n), density=0.05, random_state=rng, dtype=np.float32, format="csr")
    right = sp.random_array((n, n), density=0.1, random_state=rng, dtype=np.float32, format="csr")
    users, items = (rng.normal(size=(size, 6)).astype(np.float32) for size in (N_USERS, n))
    users, items = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (users, items))
    users[3] = 0  # who has no items
    if copies:
        right, items = sp.csr_array(sp.hstack([right] * 3)), np.tile(items, (3, 1))
    both = {"regression": product(sp.csr_array(left), right), "factor": factors(users, items, temperature)}
    return WeightedScorers(both, WEIGHTS, N_ITEMS)


def expected(each: WeightedScorers, n: int, seen: sp.csr_array | None, allowed: np.ndarray | None) -> tuple:
    scores = each.scores(np.arange(N_USERS))
    if seen is not None:
        scores[seen.nonzero()] = -np.inf
    if allowed is not None:
        items, values = ties.best_of(scores[:, allowed], n, sum(WEIGHTS.values()))
        return np.where(items < 0, -1, allowed[items]), values
    return ties.best_of(scores, n, sum(WEIGHTS.values()))


def some_seen() -> sp.csr_array:
    seen = np.random.default_rng(1).random((N_USERS, N_ITEMS)) < 0.2
    seen[5] = True
    seen[6, 4:] = True
    return sp.csr_array(seen.astype(np.float32))


@pytest.mark.parametrize(
    ("copies", "temperature", "n", "hides"),
    [
        (False, 0.1, 1, True),
        (False, 0.3, N_ITEMS, True),
        (False, 0.3, 20, False),
        (True, 0.1, 20, True),
        (True, 0.3, 1, False),
        (True, 0.1, N_ITEMS, False),
    ],
)
def test_lists_are_those_of_all_scores(copies: bool, temperature: float, n: int, hides: bool) -> None:
    each, seen = scorers(temperature, copies=copies), some_seen() if hides else None
    items, scores = best_lists(each, np.arange(N_USERS), n, seen=seen)
    wanted, values = expected(each, n, seen, None)
    np.testing.assert_array_equal(items, wanted)
    np.testing.assert_allclose(scores, values, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("spare", [0, 3])
@pytest.mark.parametrize("error", [0.0, 10.0])
def test_lists_do_not_depend_on_the_candidates(monkeypatch: pytest.MonkeyPatch, spare: int, error: float) -> None:
    monkeypatch.setattr(lists, "_SPARE", spare)
    monkeypatch.setattr(lists, "_ERROR", max(error, 2e-4))
    monkeypatch.setattr(lists, "_users_of_block", lambda n_items: 11)
    each, seen = scorers(copies=True), some_seen()
    items, _ = best_lists(each, np.arange(N_USERS), 7, seen=seen)
    np.testing.assert_array_equal(items, expected(each, 7, seen, None)[0])


@pytest.mark.parametrize("allowed", [np.arange(0, N_ITEMS, 2), np.array([4]), np.arange(10, 60)])
def test_lists_hold_what_is_allowed(allowed: np.ndarray) -> None:
    each, seen, n = scorers(), some_seen(), min(5, len(allowed))
    items, _ = best_lists(each, np.arange(N_USERS), n, seen=seen, allowed=allowed)
    np.testing.assert_array_equal(items, expected(each, n, seen, allowed)[0])


def test_nothing_allowed_leaves_nothing() -> None:
    items, scores = best_lists(scorers(), np.arange(2), 0, allowed=np.empty(0, int))
    assert items.shape == scores.shape == (2, 0)


@pytest.mark.parametrize("weight", [1.0, 4.0, 10.0])
def test_scores_of_nothing_are_zero_whatever_they_weigh(weight: float) -> None:
    """In single precision a large weight over the length of a row of zeros is not finite."""
    rng = np.random.default_rng(3)
    items = rng.normal(size=(N_ITEMS, 6)).astype(np.float32)
    nothing = product(sp.csr_array((2, N_ITEMS), dtype=np.float32), sp.eye_array(N_ITEMS, format="csr"))
    for scorer in (nothing, factors(np.zeros((2, 6)), items, 0.15)):
        one = WeightedScorers({"one": scorer}, {"one": weight}, N_ITEMS)
        found, scores = best_lists(one, np.arange(2), 3)
        np.testing.assert_array_equal(found, [[0, 1, 2]] * 2)
        assert not scores.any()


def test_no_users_have_no_lists() -> None:
    assert best_lists(scorers(), np.empty(0, int), 3)[0].shape == (0, 3)


def test_dense_weights_and_a_single_term() -> None:
    rng = np.random.default_rng(2)
    left = sp.random_array((N_USERS, 9), density=0.5, random_state=rng, dtype=np.float32, format="csr")
    scorer = product(sp.csr_array(left), rng.random((9, N_ITEMS), dtype=np.float32))
    one = WeightedScorers({"regression": scorer}, {"regression": 2.0}, N_ITEMS)
    items, _ = best_lists(one, np.arange(N_USERS), 4)
    scores = one.scores(np.arange(N_USERS))
    np.testing.assert_array_equal(items, ties.best_of(scores, 4, 2.0)[0])


@pytest.mark.parametrize("n_columns", [40, 1600, 1607])
def test_the_largest_of_long_rows_are_those_of_all(n_columns: int) -> None:
    scores = torch.rand((5, n_columns), generator=torch.Generator().manual_seed(4))
    scores[0, -3:] = 2.0 + torch.arange(3)
    scores[1] = -torch.inf
    values, places = largest_of_rows(scores, 30)
    assert torch.equal(values, scores.topk(30).values)
    assert torch.equal(scores.gather(1, places), values)
    assert all(row.unique().numel() == 30 for row in places)
