"""`GraphRanker` for new users: it chooses on users who take no part in the trainings of its search."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys.models.graph_ranker.hidden import HeldOut, HiddenPart, hidden_parts
from air_recsys.models.graph_ranker.inputs import RankerSettings
from air_recsys.models.graph_ranker.ranker import GraphRanker

SMALL: dict[str, Any] = {"n_factors": 4, "n_steps": 5, "device": "cpu"}
N_USERS, N_ITEMS = 130, 40
KINDS = ["users_alike", "users_popular_first", "users_rare_first"]


@pytest.fixture(scope="module")
def pattern() -> sp.csr_array:
    """Likes of two groups."""
    group = np.arange(N_USERS)[:, None] % 2 == np.arange(N_ITEMS) % 2
    likes = np.random.default_rng(0).random((N_USERS, N_ITEMS)) < np.where(group, 0.5, 0.05)
    return sp.csr_array(likes.astype(np.float32))


def test_users_are_shown_or_divided(pattern: sp.csr_array) -> None:
    parts = hidden_parts(pattern, None, "users", 0)
    assert [part.name for part in parts] == KINDS
    for part in parts:
        assert part.given is not None
        assert part.left is part.given
        held_out = (part.given + part.hidden).toarray()
        assert part.shown.shape == (N_USERS - 13, N_ITEMS)
        rows = [row.tobytes() for row in np.vstack([part.shown.toarray(), held_out])]
        assert sorted(rows) == sorted(row.tobytes() for row in pattern.toarray())
        assert not part.given.multiply(part.hidden).nnz
        np.testing.assert_allclose(part.hidden.sum(axis=1) / held_out.sum(axis=1), 0.2, atol=0.1)


def test_few_users_are_not_held_out(pattern: sp.csr_array) -> None:
    assert [part.name for part in hidden_parts(pattern[:60], None, "users", 0)] == [
        "alike",
        "popular_first",
        "rare_first",
    ]


def test_lists_are_those_of_users_who_are_folded_in(pattern: sp.csr_array) -> None:
    part = hidden_parts(pattern, None, "users", 0)[0]
    assert part.given is not None
    settings = RankerSettings(regression_weight=1.0, factor_weight=0.0)
    way = HeldOut(part, 0, 100)
    lists = way.lists(way.regression_scores(settings), 0)
    model = GraphRanker(**SMALL, settings=settings._asdict()).fit(part.shown)
    found = model.fold_in(part.given[way.users]).recommend(10)
    expected = np.array(found["item"]).reshape(-1, 10)
    np.testing.assert_array_equal(lists[:, :10], expected)


def test_who_is_held_out_does_not_count_in_the_training(pattern: sp.csr_array) -> None:
    part = hidden_parts(pattern, None, "users", 0)[0]
    assert part.given is not None
    other = HiddenPart(part.name, part.shown, part.hidden, given=sp.csr_array(part.given[::-1]))
    settings = RankerSettings()
    normalised = [HeldOut(each, 0, 100)._normalised(0.5, 1.0) for each in (part, other)]
    np.testing.assert_array_equal(normalised[0].rows.toarray(), normalised[1].rows.toarray())
    scores = [HeldOut(each, 0, 100).regression_scores(settings) for each in (part, other)]
    assert not np.array_equal(scores[0], scores[1])


def test_the_line_says_that_users_were_held_out(pattern: sp.csr_array) -> None:
    model = GraphRanker(**SMALL, validation="users").fit(pattern)
    assert "NDCG@20 on users held out" in model.search_line_
    assert {f"ndcg_{name}" for name in KINDS} <= set(model.history_)
    again = GraphRanker(**SMALL, validation="users").fit(pattern)
    assert again.settings_ == model.settings_
