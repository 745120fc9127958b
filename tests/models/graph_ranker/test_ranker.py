"""`GraphRanker`: its scores are those of the formula, its lists find planted groups, and any form of likes will do."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from ranker_cases import all_scores, assert_scores_of_the_formula, likes, training_of

from air_recsys import AIR, Interactions
from air_recsys.exceptions import DataError, DataWarning, ModelFileError, ParameterError, ParameterWarning
from air_recsys.models.graph_ranker import hidden, ranker, regression
from air_recsys.models.graph_ranker.inputs import RankerSettings, interaction_pattern, some_users
from air_recsys.models.graph_ranker.ranker import GraphRanker
from air_recsys.training import train

SMALL: dict[str, Any] = {"n_factors": 6, "n_steps": 30, "device": "cpu"}
GIVEN: dict[str, Any] = SMALL | {"settings": {}}
GROUPS = 4


def planted() -> Interactions:
    """Users who like the items of their group, popular ones more."""
    alike = np.repeat(np.arange(GROUPS), 30)[:, None] == np.arange(120) % GROUPS
    chance = np.where(alike, 8.0, 0.4) / np.arange(2, 122) * 2
    rng = np.random.default_rng(0)
    return Interactions.from_csr(sp.csr_array((rng.random(chance.shape) < chance).astype(float)))


@pytest.fixture(scope="module")
def data() -> Interactions:
    return planted()


@pytest.fixture(scope="module")
def fitted(data: Interactions) -> GraphRanker:
    return GraphRanker(**SMALL).fit(data)


@pytest.fixture(scope="module")
def given(data: Interactions) -> GraphRanker:
    return GraphRanker(**GIVEN).fit(data)


@pytest.mark.parametrize(
    "settings",
    [None, {"regression_share": 0.3, "regression_source": 0.1, "factor_weight": 0.0}, {"regression_weight": 0.0}],
)
def test_scores_and_lists_are_those_of_the_formula(fitted, data, settings):
    model = fitted if settings is None else GraphRanker(**SMALL, settings=settings).fit(data)
    assert_scores_of_the_formula(model, data)


@pytest.mark.order
def test_small_blocks_change_nothing(given, data, blocks_of):
    expected = given.recommend(data.user_ids, 3)
    blocks_of(7 * data.n_items)
    assert given.recommend(data.user_ids, 3)["item"].equals(expected["item"])
    np.testing.assert_allclose(given.predict(expected["user"], expected["item"]), expected["score"], rtol=1e-5)


def test_lists_and_neighbours_are_of_the_planted_group(fitted, data):
    lists = fitted.recommend(data.user_ids, 5)
    assert (lists["item"] % GROUPS == lists["user"] // 30).mean() > 0.8
    assert (fitted.similar_items(8, 5)["item"] % GROUPS == 0).mean() >= 0.8
    assert (fitted.similar_users(0, 5)["user"] < 30).mean() >= 0.8
    assert fitted.user_graph_ is fitted.user_graph_
    assert fitted.item_graph_.ids.tolist() == data.item_ids.tolist()


def test_of_many_interactions_those_of_some_users_are_searched(data, monkeypatch):
    pattern = interaction_pattern(data)
    assert some_users(pattern, 0, pattern.nnz) is pattern
    some = some_users(pattern, 0, pattern.nnz // 2)
    assert 0.3 * pattern.nnz < some.nnz <= pattern.nnz // 2
    rows = {tuple(row) for row in pattern.toarray()}
    assert all(tuple(row) in rows for row in some.toarray())  # whole users
    monkeypatch.setattr(ranker, "MOST_SEARCHED", pattern.nnz // 2)
    model = GraphRanker(**SMALL | {"n_validation": 5}).fit(data)
    assert model.recommend(data.user_ids, 3)["user"].nunique() == data.n_users


def test_settings_that_are_given_are_used_and_factors_without_weight_are_not_trained(data):
    model = GraphRanker(**SMALL, settings={"factor_weight": 0.0}).fit(data)
    assert model.settings_ == RankerSettings(factor_weight=0.0)
    assert model.history_["ndcg"].isna().tolist() == [True]
    assert model.search_line_ == "regression: nothing was compared on hidden parts"
    assert model.n_steps_ == 0
    expected = training_of(interaction_pattern(data), 6, 1).factors()
    np.testing.assert_array_equal(model.item_factors_, expected.targets)
    assert model.fold_in(data).recommend(data.user_ids, 3)["user"].nunique() == data.n_users


def test_callbacks_see_the_last_training_and_may_end_it(data):
    seen = []
    assert GraphRanker(**GIVEN).fit(data, callbacks=[seen.append]).n_steps_ == 30
    assert [record.epoch for record in seen] == [10, 20, 30]
    assert seen[-1].objective < seen[0].objective
    model = GraphRanker(**GIVEN).fit(data, callbacks=[lambda record: record.epoch == 20])
    assert model.n_steps_ == 20
    expected = training_of(interaction_pattern(data), 6, 30)
    train(expected.trainer(20))
    np.testing.assert_array_equal(model.item_factors_, expected.factors().targets)


def test_many_items_are_regressed_on_their_neighbours(fitted, given, data, tmp_path, monkeypatch):
    """Which changes little: in the search, the lists, a file and for new users."""
    monkeypatch.setattr(regression, "MOST_EXACT", 10)
    monkeypatch.setattr(hidden, "MOST_EXACT", 10)
    searched = GraphRanker(**SMALL).fit(data)
    np.testing.assert_allclose(searched.history_["ndcg"].max(), fitted.history_["ndcg"].max(), rtol=0.02)
    sparse = GraphRanker(**GIVEN).fit(data)
    assert sp.issparse(sparse._fitted().item_weights)
    monkeypatch.undo()
    again = GraphRanker.load(sparse.save(tmp_path / "ranker.model"))
    assert again.recommend(data.user_ids, 5).equals(sparse.recommend(data.user_ids, 5))
    for pair in ((sparse, given), [each.fold_in(data) for each in (sparse, given)]):
        assert np.corrcoef(*(all_scores(each).ravel() for each in pair))[0, 1] > 0.98


# -------------------------------------------------------------------- files and parameters


def test_a_file_keeps_the_choice_the_lists_and_what_new_users_get(fitted, data, tmp_path):
    again = GraphRanker.load(fitted.save(tmp_path / "ranker.model"))
    for name in ("settings_", "n_steps_", "search_line_"):
        assert getattr(again, name) == getattr(fitted, name)
    pd.testing.assert_frame_equal(again.members_, fitted.members_)
    pd.testing.assert_frame_equal(again.recommend(data.user_ids, 5), fitted.recommend(data.user_ids, 5))
    found, expected = (each.fold_in(data).recommend(data.user_ids, 5) for each in (again, fitted))
    pd.testing.assert_frame_equal(found, expected)


def with_values(state: Any, values: dict[str, float]) -> dict[str, Any]:
    return {"chosen": replace(state.chosen, values=values)}


@pytest.mark.parametrize(
    "lost",
    [
        lambda state: {"source_factors": None},
        lambda state: {"item_weights": None},
        lambda state: with_values(state, {}),
        lambda state: with_values(state, state.chosen.values | {"regression_penalty": float("nan")}),
        lambda state: with_values(state, state.chosen.values | {"user_half_life": 2.0}),
    ],
    ids=["sources", "regression", "settings", "a number", "times"],
)
def test_a_file_that_has_lost_a_part_is_refused(given, lost):
    state = given._fitted()
    with pytest.raises((ValueError, LookupError)):
        GraphRanker().restored(replace(state, **lost(state)), {})


def test_a_file_with_source_factors_of_another_shape_is_refused(given, tmp_path):
    again = GraphRanker.load(given.save(tmp_path / "ranker.model"))
    again._state = replace(again._fitted(), source_factors=again._fitted().source_factors[:-1])
    with pytest.raises(ModelFileError, match="source factors of shape"):
        GraphRanker.load(again.save(tmp_path / "ranker.model"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": {"factor_temperature": 0.0}}, "factor_temperature"),
        ({"settings": {"factor_weight": 0.0, "regression_weight": 0.0}}, "found both 0"),
        ({"n_steps": 0}, "n_steps"),
        ({"device": "gpu"}, "device must be"),
        ({"n_factors": 2.5}, "n_factors"),
        ({"n_validation": 0}, "n_validation"),
        ({"settings": {"item_power": 1.0}}, "a name in settings"),
        ({"settings": {"factor_weight": -1.0}}, "factor_weight"),
        ({"settings": {"regression_penalty": 0.0}}, "regression_penalty"),
        ({"settings": {"regression_share": 1.5}}, "regression_share"),
        ({"settings": 3}, "settings must be a mapping or None, found int"),
        ({"time_budget": 0}, "time_budget must be None or a number > 0, found 0"),
        ({"validation": "latest"}, "validation must be one of"),
    ],
)
def test_parameters_out_of_range_are_errors_before_any_work(changes, message):
    with pytest.raises(ParameterError, match=message):
        GraphRanker(**changes).fit([[1.0, 1.0], [1.0, np.nan]])


@pytest.mark.parametrize(("name", "value"), [("time_budget", 5), ("validation", "last"), ("n_validation", 9)])
def test_what_given_settings_leave_unread_is_said(data, name, value):
    with pytest.warns(ParameterWarning, match=f"{name}={value!r} has no effect: it needs settings=None"):
        GraphRanker(**GIVEN | {name: value, "n_steps": 1}).fit(data)


def test_scores_that_are_no_products_go_to_no_index(given):
    with pytest.raises(ParameterError, match="not products of factors"):
        given.to_faiss()


# -------------------------------------------------------------------- forms of likes


def test_a_table_of_likes_needs_no_column_of_ratings():
    rng = np.random.default_rng(0)
    pairs = rng.integers(12, size=(150, 2))
    table = pd.DataFrame({"user": [f"u{user}" for user, _ in pairs], "item": [f"i{item}" for _, item in pairs]})
    once = table.drop_duplicates().assign(rating=1.0)
    plain, rated = (AIR.for_likes(settings={}, device="cpu", random_state=0).fit(each) for each in (table, once))
    users = rated.interactions_.user_ids
    pd.testing.assert_frame_equal(plain.recommend(users), rated.recommend(users))
    new = pd.DataFrame({"user": ["eve", "eve", "eve"], "item": ["i1", "i2", "i2"]})
    found = [plain.fold_in(each).recommend("eve", 4) for each in (new, new.drop_duplicates().assign(rating=1.0))]
    pd.testing.assert_frame_equal(*found)
    unseen = pd.DataFrame({"user": users, "item": [plain.recommend(user, 1)["item"][0] for user in users]})
    assert plain.score(unseen) == 1.0


@pytest.mark.parametrize(
    ("kind", "ratings", "message"),
    [
        (AIR.for_likes, [1.0, -1.0], "ratings must be >= 0"),
        (AIR.for_ratings, None, r"expected the column\(s\) \['rating'\].*AIR.for_likes\(\) takes them"),
    ],
)
def test_ratings_below_zero_are_no_likes_and_a_model_of_ratings_tells_what_takes_likes(kind, ratings, message):
    table = pd.DataFrame({"user": [1, 2], "item": [1, 2]})
    with pytest.raises(DataError, match=message):
        kind(device="cpu").fit(table if ratings is None else table.assign(rating=ratings))


USERS, ITEMS, EMPTY = 40, 30, [2, 7]


def rare() -> np.ndarray:
    """Likes of two groups, (n_users, n_items); items are not in the order of their popularity."""
    popular = np.random.default_rng(1).random(ITEMS) < 0.5
    return likes(USERS, ITEMS, own=0.5, other=0.1).toarray() * (
        popular | (np.random.default_rng(2).random((USERS, ITEMS)) < 0.5)
    )


@pytest.fixture(scope="module")
def with_empty_users() -> GraphRanker:
    pattern = rare()
    pattern[EMPTY] = 0
    return GraphRanker(**GIVEN).fit(sp.csr_array(pattern))


@pytest.mark.order
@pytest.mark.parametrize("choice", [{}, {"exclude": [0]}, {"items": [4, 19, 8]}, {"exclude_seen": False}])
def test_users_without_items_get_what_is_popular(with_empty_users, blocks_of, choice):
    model, asked = with_empty_users, [7, 1, 3, 2, 500]
    blocks_of(2 * 3)  # two users at a time
    found = model.recommend(asked, 3, **choice)
    expected = model.fold_in(sp.csr_array((1, ITEMS))).recommend(0, 3, **choice).drop(columns="user")
    assert set(expected["source"]) == {"popular"}
    for user in asked:
        alone = found[found["user"] == user].drop(columns="user").reset_index(drop=True)
        if user in (1, 3):
            assert set(alone["source"]) == {"model"}
        else:
            pd.testing.assert_frame_equal(alone, expected)


def test_the_score_measures_the_lists_of_users_without_items(with_empty_users):
    best = with_empty_users.recommend(EMPTY[0], 10)["item"].to_numpy()
    test = sp.csr_array((np.ones(10), (np.full(10, EMPTY[0]), best)), shape=(USERS, ITEMS))
    assert with_empty_users.score(test) == 1.0


@pytest.mark.filterwarnings("ignore:each row counts as one like")
def test_a_zero_in_a_matrix_is_no_like_and_a_row_of_a_table_is_one():
    stored = sp.csr_array(rare())
    table = Interactions.from_csr(stored).to_frame()
    rated = table.assign(rating=np.arange(len(table)) % 6)
    positive = Interactions.from_frame(rated.assign(rating=rated["rating"] + 1))
    stored.data[::2] = 0
    dense, n_stored = stored.toarray(), stored.nnz
    without = sp.csr_array(dense)
    assert without.nnz < n_stored
    for alike in (
        (without, stored, dense, pd.DataFrame(dense)),
        (table, positive),
    ):
        first, *others = (GraphRanker(**GIVEN).fit(each).recommend(np.arange(USERS), 5) for each in alike)
        for other in others:
            pd.testing.assert_frame_equal(other, first)
    with pytest.warns(DataWarning, match="as much as its rating, found 0..5: leave out the"):
        of_rated = GraphRanker(**GIVEN).fit(rated)
    pd.testing.assert_frame_equal(of_rated.recommend(np.arange(USERS), 5), first)
    model = GraphRanker(**GIVEN).fit(without)
    np.testing.assert_array_equal(all_scores(model.fold_in(stored)), all_scores(model.fold_in(without)))
    assert stored.nnz == n_stored  # the caller's matrix stays as it is
    with pytest.raises(DataError, match="expected at least one rating"):
        GraphRanker(**GIVEN).fit(np.zeros((3, 2)))


def test_an_item_that_all_users_have_leaves_the_search_at_work():
    pattern = rare()
    pattern[:, 5] = 1
    model = GraphRanker(**SMALL).fit(sp.csr_array(pattern))
    assert model.history_["ndcg"].between(0, 1).all()
    assert model.history_["recall"].between(0, 1).all()
    assert not model.members_.empty
    found = model.recommend(np.arange(USERS), ITEMS)
    assert np.isfinite(found["score"]).all()
    assert len(found) == (pattern == 0).sum()
    assert 5 not in set(found["item"])
    assert 5 in set(model.fold_in(sp.csr_array(np.eye(1, ITEMS, 3))).recommend(0, ITEMS)["item"])


def test_where_no_user_has_an_item_to_spare_the_defaults_serve():
    model = GraphRanker(**SMALL).fit(Interactions.from_dense([[1, np.nan], [np.nan, 1], [1, np.nan]]))
    assert model.settings_ == RankerSettings()
    assert model.recommend(0, 1)["item"].tolist() == [1]
