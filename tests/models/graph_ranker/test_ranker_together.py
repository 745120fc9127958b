"""`GraphRanker` for what users do next, without times: it chooses on hidden parts that belong together."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from air_recsys.models.graph_ranker.ranker import GraphRanker
from air_recsys.models.graph_ranker.times.hidden_parts import hidden_parts
from air_recsys.models.graph_ranker.times.together import likeness_to_one

SMALL: dict[str, Any] = {"n_factors": 4, "n_steps": 5, "device": "cpu"}
N_USERS, N_ITEMS, N_KINDS = 120, 48, 4
KIND = np.arange(N_ITEMS) % N_KINDS
NAMES = ["together_1", "together_2", "together_3"]


@pytest.fixture(scope="module")
def pattern() -> sp.csr_array:
    """Likes of items of two kinds of four, by user."""
    rng = np.random.default_rng(0)
    of_user = np.argsort(rng.random((N_USERS, N_KINDS)), axis=1)[:, :2]
    group = (of_user[:, :, None] == KIND).any(axis=1)
    return sp.csr_array((rng.random(group.shape) < np.where(group, 0.8, 0.02)).astype(np.float32))


def test_the_likeness_is_that_of_the_columns(pattern: sp.csr_array) -> None:
    dense, likeness = pattern.toarray(), likeness_to_one(pattern, 0)
    for row in range(N_USERS):
        place = slice(pattern.indptr[row], pattern.indptr[row + 1])
        items, found = pattern.indices[place], likeness[place]
        (drawn,) = items[np.isinf(found)]
        others = np.delete(dense, row, axis=0)
        expected = others.T @ others[:, drawn] / np.sqrt(dense.sum(axis=0))
        np.testing.assert_allclose(found[items != drawn], expected[items[items != drawn]])


def test_blocks_of_rows_change_nothing(pattern: sp.csr_array, monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = sp.csr_array(sp.vstack([pattern[:7], sp.csr_array((2, N_ITEMS)), pattern[7:]]))  # rows without entries
    whole = likeness_to_one(pattern, 3)
    monkeypatch.setattr("air_recsys.models.graph_ranker.times.together._BLOCK_ENTRIES", 5 * N_ITEMS)
    np.testing.assert_array_equal(likeness_to_one(pattern, 3), whole)


def test_a_fifth_of_each_user_is_hidden_of_one_kind_mostly(pattern: sp.csr_array) -> None:
    parts = hidden_parts(pattern, None, "together", 0)
    assert [part.name for part in parts] == NAMES
    for part in parts:
        np.testing.assert_array_equal((part.shown + part.hidden).toarray(), pattern.toarray())
        sizes = np.diff(pattern.indptr)
        assert (np.abs(np.diff(part.hidden.indptr) - 0.2 * sizes) <= 0.5).all()
        assert part.given is None
        assert part.times is None
        of_kinds = part.hidden @ np.eye(N_KINDS)[KIND]
        assert np.mean(of_kinds.max(axis=1) / of_kinds.sum(axis=1)) > 0.9
    assert (parts[0].hidden != parts[1].hidden).nnz > 0


def test_few_users_have_random_parts(pattern: sp.csr_array) -> None:
    assert hidden_parts(pattern[:9], None, "together", 0)[0].name == "alike"


def test_the_search_tells_what_it_has_hidden(pattern: sp.csr_array) -> None:
    model = GraphRanker(**SMALL, validation="together").fit(pattern)
    assert {f"ndcg_{name}" for name in NAMES} <= set(model.history_)
    assert "NDCG@20 on hidden parts that belong together" in model.search_line_
    np.testing.assert_array_equal(
        GraphRanker(**SMALL, validation="together").fit(pattern).recommend(0)["item"], model.recommend(0)["item"]
    )


def test_times_are_not_read(pattern: sp.csr_array) -> None:
    rows, columns = pattern.nonzero()
    table = pd.DataFrame({"user": rows, "item": columns, "timestamp": np.arange(rows.size)})
    model = GraphRanker(**SMALL, validation="together").fit(table)
    assert model.settings_.item_trend == model.settings_.user_half_life == 0
    assert "belong together" in model.search_line_


def test_the_regression_leans_further_to_what_is_popular(pattern: sp.csr_array) -> None:
    tried = {kind: GraphRanker(**SMALL, validation=kind).fit(pattern).history_ for kind in ("together", "random")}
    least = {kind: history["regression_target"].min() for kind, history in tried.items()}
    assert least == {"together": -0.75, "random": -0.5}
    beside = {kind: history.query("regression_weight > 0 and factor_weight > 0") for kind, history in tried.items()}
    assert beside["random"]["regression_target"].nunique() == 1
    assert beside["together"]["regression_target"].nunique() == 7


def test_beside_factors_both_are_tried_together(pattern: sp.csr_array) -> None:
    model = GraphRanker(**SMALL, validation="together").fit(pattern)
    history = model.history_.iloc[:-1].dropna(subset="ndcg")
    assert model.history_["ndcg"].iloc[-1] == history["ndcg"].max()
    pairs = history.query("regression_weight > 0 and factor_weight > 0")[["regression_target", "factor_weight"]]
    assert len(pairs.drop_duplicates()) >= 12  # six weights, and six further targets
