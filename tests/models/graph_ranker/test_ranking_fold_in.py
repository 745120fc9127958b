"""New users of a `GraphRanker`: a trained user folded in is itself, strangers get the lists of their group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from air_recsys import Interactions
from air_recsys.exceptions import DataError, NotFittedError, ParameterError, UnknownIdError
from air_recsys.models import GraphRanker
from air_recsys.models.graph_ranker import lists
from air_recsys.models.graph_ranker.users import ready_state

pytestmark = pytest.mark.order

SETTINGS: dict[str, Any] = {"regression_source": 0.4}


def planted(seed: int = 0, n_groups: int = 3, per_group: int = 20, n_items: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Users who like the items of their group: the pattern, and the group of each user."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), per_group)
    chance = np.where(group[:, None] == np.arange(n_items) % n_groups, 0.5, 0.03)
    pattern = (rng.random(chance.shape) < chance).astype(float)
    pattern[:, 0] = 1
    return pattern, group


def named(pattern: np.ndarray, prefix: str = "u") -> Interactions:
    return Interactions.from_csr(sp.csr_array(pattern), [f"{prefix}{row:02}" for row in range(len(pattern))])


def fitted(data: Interactions, **settings: Any) -> GraphRanker:
    return GraphRanker(n_factors=5, n_steps=30, device="cpu", settings=SETTINGS | settings).fit(data)


def test_a_trained_user_folds_in_as_itself() -> None:
    data = named(planted()[0])
    model = fitted(data)
    found = model.fold_in(data)
    trained = ready_state(model._fitted()).scores(np.arange(data.n_users))
    np.testing.assert_allclose(found.scores(), trained, rtol=1e-4, atol=1e-6)
    assert found.recommend(5)["item"].equals(model.recommend(data.user_ids, 5)["item"])


def test_strangers_get_items_of_their_group_that_they_do_not_have() -> None:
    pattern, group = planted()
    strangers = planted(seed=1)[0]
    found = fitted(named(pattern)).fold_in(named(strangers, "new")).recommend(5)
    rows = found["user"].str.removeprefix("new").astype(int).to_numpy()
    items = found["item"].to_numpy()
    assert np.mean(items % 3 == group[rows]) > 0.9
    assert not strangers[rows, items].any()
    assert set(found["source"]) == {"model"}
    assert found["rank"].tolist() == [1, 2, 3, 4, 5] * len(strangers)


def test_a_stranger_is_as_a_trained_user_is_to_a_model_that_lacks_it() -> None:
    """Whoever else is folded in with it, and by whatever id or place, its scores are the same."""
    pattern, _ = planted()
    model = fitted(named(pattern[1:]))
    alone = model.fold_in(sp.csr_array(pattern[:1])).scores()
    among = model.fold_in(named(pattern[::-1], "new")).scores(slice(-1, None))
    np.testing.assert_allclose(alone, among, rtol=1e-5, atol=1e-7)


def test_tables_interactions_and_matrices_fold_in_alike_and_values_do_not_count() -> None:
    pattern, _ = planted()
    model, strangers = fitted(named(pattern)), planted(seed=2)[0][:4]
    users, items = np.nonzero(strangers)
    table = pd.DataFrame({"user": users + 1000, "item": items, "rating": np.linspace(0, 5, users.size)})
    found = [model.fold_in(each) for each in (table, named(strangers, "new"), sp.coo_array(7 * strangers))]
    assert [each.user_ids.tolist() for each in found] == [
        [1000, 1001, 1002, 1003],
        ["new00", "new01", "new02", "new03"],
        [0, 1, 2, 3],
    ]
    for each in found[1:]:
        np.testing.assert_array_equal(each.scores(), found[0].scores())


def test_users_without_items_get_what_is_popular() -> None:
    model = fitted(named(planted()[0]))
    rows = sp.lil_array((2, 60))
    rows[1, 4] = 1
    found = model.fold_in(sp.csr_array(rows)).recommend(3)
    assert found["source"].tolist() == ["popular"] * 3 + ["model"] * 3
    expected = model.recommend("nobody", 3)
    assert found["item"][:3].tolist() == expected["item"].tolist()
    assert model.fold_in(sp.csr_array((0, 60))).recommend(3).empty


def test_seen_items_stay_where_they_are_wanted() -> None:
    model, strangers = fitted(named(planted()[0])), sp.csr_array(planted(seed=1)[0])
    found = model.fold_in(strangers).recommend(60, exclude_seen=False)
    assert len(found) == 60 * 60
    assert len(model.fold_in(strangers).recommend(60)) == 60 * 60 - strangers.nnz


def test_small_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model, strangers = fitted(named(planted()[0])), sp.csr_array(planted(seed=1)[0])
    expected = model.fold_in(strangers).recommend(4)
    monkeypatch.setattr(lists, "_users_of_block", lambda n_items: 7)
    pd.testing.assert_frame_equal(model.fold_in(strangers).recommend(4), expected)


def test_a_loaded_model_folds_in_alike_and_folding_in_leaves_no_trace(tmp_path: Any) -> None:
    model, strangers = fitted(named(planted()[0])), sp.csr_array(planted(seed=1)[0])
    before = model.recommend(model.interactions_.user_ids, 5)
    found = model.fold_in(strangers).recommend(5)
    pd.testing.assert_frame_equal(model.recommend(model.interactions_.user_ids, 5), before)
    again = GraphRanker.load(model.save(tmp_path / "ranker.model"))
    pd.testing.assert_frame_equal(again.fold_in(strangers).recommend(5), found)


@pytest.mark.parametrize(
    ("interactions", "error", "message"),
    [
        (sp.csr_array((1, 59)), DataError, "expected 60 columns, one per known item"),
        (np.zeros((1, 60)), DataError, "found ndarray"),
        (pd.DataFrame({"user": ["n"], "item": [99], "rating": [1]}), UnknownIdError, "99; leave them out"),
        (pd.DataFrame({"user": ["n"], "rating": [1]}), DataError, "expected the column"),
    ],
)
def test_what_does_not_fit_the_model_is_told(interactions: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fitted(named(planted()[0])).fold_in(interactions)


def test_models_without_training_are_refused() -> None:
    with pytest.raises(NotFittedError):
        GraphRanker().fold_in(sp.csr_array((1, 3)))


def test_lists_hold_what_is_allowed_and_no_more_than_there_is() -> None:
    pattern = planted()[0]
    folded = fitted(named(pattern)).fold_in(sp.csr_array(np.vstack([pattern[:2], np.zeros(60)])))
    whole = folded.recommend(1000)
    some = set(range(0, 60, 3))
    found = folded.recommend(1000, items=some, exclude=0)
    expected = whole[whole["item"].isin(some - {0})].reset_index(drop=True)
    pd.testing.assert_frame_equal(found.drop(columns="rank"), expected.drop(columns="rank"))
    assert folded.recommend(5, items=[]).empty
    with pytest.raises(ParameterError, match="n must be an integer >= 1, found 0"):
        folded.recommend(0)
