"""`GraphRanker` on what is rare in likes: users without items, zeros in matrices, an item that all users have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from air_recsys import Interactions
from air_recsys.exceptions import DataError
from air_recsys.models import GraphRanker

SMALL: dict[str, Any] = {"n_factors": 4, "n_steps": 12, "n_validation": 100, "device": "cpu"}
GIVEN: dict[str, Any] = SMALL | {"settings": {}}
EMPTY = [2, 7]
USERS, ITEMS = 40, 30


def pattern() -> np.ndarray:
    """Return likes of two groups, (n_users, n_items); items are not in the order of their popularity."""
    rng = np.random.default_rng(0)
    group = np.arange(ITEMS) % 2 == np.arange(USERS)[:, None] % 2
    return (rng.random((USERS, ITEMS)) < np.where(group, 0.6, 0.1) * rng.random(ITEMS)).astype(float)


@pytest.fixture(scope="module")
def with_empty_users() -> GraphRanker:
    likes = pattern()
    likes[EMPTY] = 0
    return GraphRanker(**GIVEN).fit(sp.csr_array(likes))


@pytest.mark.parametrize("choice", [{}, {"exclude": [0]}, {"items": [4, 19, 8]}, {"exclude_seen": False}])
def test_users_without_items_get_what_is_popular(
    with_empty_users: GraphRanker, blocks_of: Any, choice: dict[str, Any]
) -> None:
    model, asked = with_empty_users, [7, 1, 3, 2, 500]
    blocks_of(2 * 3)  # two users at a time
    found = model.recommend(asked, 3, **choice)
    expected = model.fold_in(sp.csr_array((1, ITEMS))).recommend(3, **choice).drop(columns="user")
    assert set(expected["source"]) == {"popular"}
    for user in asked:
        alone = pd.DataFrame(found[found["user"] == user]).drop(columns="user").reset_index(drop=True)
        if user in (1, 3):
            assert set(alone["source"]) == {"model"}
        else:
            pd.testing.assert_frame_equal(alone, expected)


def test_the_score_measures_the_lists_of_users_without_items(with_empty_users: GraphRanker) -> None:
    best = with_empty_users.recommend(EMPTY[0], 10)["item"].to_numpy()
    test = sp.csr_array((np.ones(10), (np.full(10, EMPTY[0]), best)), shape=(USERS, ITEMS))
    assert with_empty_users.score(test) == 1.0


def test_a_zero_in_a_matrix_is_no_like() -> None:
    stored = sp.csr_array(pattern())
    stored.data[::2] = 0
    dense, n_stored = stored.toarray(), stored.nnz
    without = sp.csr_array(dense)
    assert without.nnz < n_stored
    first, *others = (GraphRanker(**GIVEN).fit(each) for each in (without, stored, dense, pd.DataFrame(dense)))
    expected = first.recommend(np.arange(USERS), 5)
    for model in others:
        pd.testing.assert_frame_equal(model.recommend(np.arange(USERS), 5), expected)
    np.testing.assert_array_equal(first.fold_in(stored).scores(), first.fold_in(without).scores())
    assert stored.nnz == n_stored  # the caller's matrix stays as it is
    with pytest.raises(DataError, match="expected at least one rating"):
        GraphRanker(**GIVEN).fit(np.zeros((3, 2)))


def test_a_row_of_a_table_is_a_like_whatever_its_rating() -> None:
    table = Interactions.from_csr(sp.csr_array(pattern())).to_frame()
    zeros = table.assign(rating=np.arange(len(table)) % 2)
    alike = (table, zeros, Interactions.from_frame(zeros))
    first, *others = (GraphRanker(**GIVEN).fit(each).recommend(np.arange(USERS), 5) for each in alike)
    for other in others:
        pd.testing.assert_frame_equal(other, first)


def test_an_item_that_all_users_have_leaves_the_search_at_work() -> None:
    likes = pattern()
    likes[:, 5] = 1
    model = GraphRanker(**SMALL).fit(sp.csr_array(likes))
    assert model.history_["ndcg"].between(0, 1).all()
    assert not model.members_.empty
    found = model.recommend(np.arange(USERS), ITEMS)
    assert np.isfinite(found["score"]).all()
    assert len(found) == (likes == 0).sum()
    assert 5 not in set(found["item"])
    assert 5 in set(model.fold_in(sp.csr_array(np.eye(1, ITEMS, 3))).recommend(ITEMS)["item"])
