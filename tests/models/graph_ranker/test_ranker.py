"""`GraphRanker`: its scores are those of the formula, its lists find planted groups, and nothing leaks."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

from air_recsys import AIR, Interactions
from air_recsys.exceptions import DataError, ModelFileError, ParameterError
from air_recsys.models.graph_ranker import hidden, ranker, regression
from air_recsys.models.graph_ranker.factors import FactorTraining, trained_factors
from air_recsys.models.graph_ranker.hidden import HeldOut, HiddenPart, hidden_parts, hide_fifth
from air_recsys.models.graph_ranker.inputs import RankerSettings, interaction_pattern, some_users
from air_recsys.models.graph_ranker.progress import Progress
from air_recsys.models.graph_ranker.ranker import GraphRanker
from air_recsys.models.graph_ranker.selection import Search
from air_recsys.training import train
from air_recsys.training.checkpoint import HeldCheckpoint
from air_recsys.training.softmax import SoftmaxTraining

pytestmark = pytest.mark.order

SMALL: dict[str, Any] = {"n_factors": 6, "n_steps": 30, "n_validation": 200, "device": "cpu"}


def planted(seed=0, n_groups=4, per_group=30, n_items=120):
    """Users who like the items of their group, popular ones more."""
    rng = np.random.default_rng(seed)
    item_group = np.arange(n_items) % n_groups
    group = np.repeat(np.arange(n_groups), per_group)
    popularity = 1 / np.arange(2, n_items + 2)
    chance = np.where(group[:, None] == item_group, 8.0, 0.4) * popularity * 2
    return Interactions.from_csr(sp.csr_array((rng.random(chance.shape) < chance).astype(float))), group, item_group


@pytest.fixture(scope="module")
def fitted():
    data, group, item_group = planted()
    return GraphRanker(**SMALL).fit(data), data, group, item_group


def scores_by_hand(model, data):
    """Return the scores of all pairs by the formula of the docstring."""
    x, s = data.to_csr().toarray(), model.settings_
    weighted = x.T @ (x * np.maximum(x.sum(axis=1, keepdims=True), 1.0) ** -s.regression_exponent)
    own = weighted.diagonal()
    d = s.regression_share * own + (1 - s.regression_share) * own[own > 0].mean()
    d[own == 0] = 1
    m = weighted / np.sqrt(np.outer(d, d))
    h = m @ np.linalg.inv(m + s.regression_penalty * np.eye(len(m)))
    parts = {
        "factor": lambda: np.exp(model.user_factors_ @ model.item_factors_.T / s.factor_temperature),
        "regression": lambda: x / d**s.regression_source @ h / d**s.regression_target,
    }
    total = np.zeros_like(x)
    for name, weight in s.weights.items():
        part = parts[name]()
        total += weight * part / np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-30)
    return total


@pytest.mark.parametrize(
    "settings", [None, {"regression_share": 0.3, "regression_source": 0.1}, {"regression_weight": 0.0}]
)
def test_scores_are_those_of_the_formula(fitted, settings):
    model, data, *_ = fitted
    if settings is not None:
        model = GraphRanker(**SMALL, settings=settings).fit(data)
    users, items = (side.ravel() for side in np.indices((data.n_users, data.n_items)))
    found = model.predict(data.user_ids[users], data.item_ids[items]).reshape(data.n_users, data.n_items)
    np.testing.assert_allclose(found, scores_by_hand(model, data), rtol=1e-4, atol=1e-6)


def test_lists_are_the_best_unseen_items_with_the_scores_of_predict(fitted):
    model, data, *_ = fitted
    lists = model.recommend(data.user_ids, 5)
    seen = data.to_csr().toarray() > 0
    expected = np.where(seen, -np.inf, scores_by_hand(model, data))
    best = np.sort(expected, axis=1)[:, ::-1][:, :5]
    np.testing.assert_allclose(lists["score"].to_numpy().reshape(-1, 5), best, rtol=1e-4, atol=1e-6)
    assert not seen[lists["user"], lists["item"]].any()


def test_small_blocks_change_nothing(fitted, blocks_of):
    model, data, *_ = fitted
    pairs = data.user_ids[data.user_index], data.item_ids[data.item_index]
    expected = model.predict(*pairs), model.recommend(data.user_ids, 3)
    blocks_of(7 * data.n_items)
    np.testing.assert_allclose(model.predict(*pairs), expected[0], rtol=1e-6)
    assert model.recommend(data.user_ids, 3)["item"].equals(expected[1]["item"])


def test_lists_and_neighbours_are_of_the_planted_group(fitted):
    model, data, group, item_group = fitted
    lists = model.recommend(data.user_ids, 5)
    assert (item_group[lists["item"]] == group[lists["user"]]).mean() > 0.8
    alike = model.similar_items(8, 5)["item"].to_numpy()
    assert (item_group[alike] == item_group[8]).mean() >= 0.8
    others = model.similar_users(0, 5)["user"].to_numpy()
    assert (group[others] == group[0]).mean() >= 0.8


def test_the_settings_chosen_are_the_best_of_those_tried(fitted):
    model, *_ = fitted
    tried = model.history_
    assert tried["ndcg"].iloc[-1] == tried["ndcg"].max()
    assert len(tried.iloc[:-1].drop_duplicates()) == len(tried) - 1
    assert list(model.settings_) == tried.iloc[-1][list(RankerSettings._fields)].tolist()


def begun(pattern):
    return FactorTraining(pattern, 6, SoftmaxTraining(30), 0, torch.device("cpu"))


def test_the_search_scores_with_nothing_but_what_is_shown():
    """With other hidden items the same settings make the same lists: the figures alone differ."""
    data, *_ = planted()
    pattern = sp.csr_array(data.to_csr(), dtype=np.float32)
    rng = np.random.default_rng(0)
    hide = rng.random(pattern.nnz) < 0.2
    shown, later = pattern.copy(), pattern.copy()
    shown.data, later.data = np.where(hide, 0, 1).astype(np.float32), hide.astype(np.float32)
    for part in (shown, later):
        part.eliminate_zeros()
    other = sp.csr_array((np.ones(later.nnz), later.indices[::-1].copy(), later.indptr), shape=later.shape)
    held_out = [HeldOut(HiddenPart("", shown, truth), 0, 500) for truth in (later, other)]
    for each in held_out:
        each.use_factors(trained_factors(shown, 6, SoftmaxTraining(30), 0, torch.device("cpu")))
    for scorer in (HeldOut.regression_scores, HeldOut.factor_scores):
        lists = [each.lists(scorer(each, RankerSettings()), 0) for each in held_out]
        np.testing.assert_array_equal(lists[0], lists[1])


def test_the_search_is_asked_for_at_most_so_many_users(monkeypatch):
    data, *_ = planted()
    found = GraphRanker(**SMALL | {"n_validation": 5}).fit(data)
    assert ((found.history_["recall"] >= 0) & (found.history_["recall"] <= 1)).to_numpy().all()
    monkeypatch.setattr(hidden, "_MAX_ENTRIES", 3 * data.n_items)
    pattern = sp.csr_array(data.to_csr(), dtype=np.float32)
    assert HeldOut(HiddenPart("", pattern, pattern), 0, 100).users.size == 3


def test_of_many_interactions_those_of_some_users_are_searched(monkeypatch):
    data, *_ = planted()
    pattern = sp.csr_array(data.to_csr() > 0, dtype=np.float32)
    assert some_users(pattern, 0, pattern.nnz) is pattern
    some = some_users(pattern, 0, pattern.nnz // 2)
    assert 0.3 * pattern.nnz < some.nnz <= pattern.nnz // 2
    rows = {tuple(row) for row in pattern.toarray()}
    assert all(tuple(row) in rows for row in some.toarray())  # whole users
    monkeypatch.setattr(ranker, "MOST_SEARCHED", pattern.nnz // 2)
    model = GraphRanker(**SMALL).fit(data)
    assert model.recommend(data.user_ids, 3)["user"].nunique() == data.n_users


@pytest.mark.parametrize("popularity_bias", [0.0, 0.5, -0.5])
def test_a_fifth_of_each_row_is_hidden_and_nothing_is_in_both_parts(popularity_bias):
    data, *_ = planted()
    pattern = sp.csr_array(data.to_csr() > 0, dtype=np.float32)
    shown, later = hide_fifth(pattern, popularity_bias, 0)
    np.testing.assert_array_equal((shown + later).toarray(), pattern.toarray())
    assert shown.multiply(later).sum() == 0
    sizes = np.diff(pattern.indptr)
    np.testing.assert_array_equal(later.sum(axis=1), np.minimum(np.floor(0.2 * sizes + 0.5), np.maximum(sizes - 1, 0)))


def test_popular_or_rare_columns_are_hidden_first():
    data, *_ = planted()
    pattern = sp.csr_array(data.to_csr() > 0, dtype=np.float32)
    counts = pattern.sum(axis=0)
    alike, popular, rare = (counts[part.hidden.indices].mean() for part in hidden_parts(pattern, None, "auto", 0))
    assert rare < 0.95 * alike < 0.9 * popular


def test_ways_of_hiding_count_by_ratios():
    """The figure of a setting is the geometric mean of those in each way alone."""
    data, *_ = planted()
    ways = hidden_parts(sp.csr_array(data.to_csr() > 0, dtype=np.float32), None, "auto", 0)
    together, *apart = (
        Search(some, begun, 0, 500, Progress(HeldCheckpoint({}))) for some in (ways, *([way] for way in ways))
    )
    for search in (together, *apart):
        search._try(RankerSettings(factor_weight=0), HeldOut.regression_scores)
    alone = np.array([search.history[0]["ndcg"] for search in apart])
    assert together.history[0]["ndcg"] == pytest.approx(np.exp(np.log(alone).mean()))


def test_given_settings_are_used_and_nothing_is_tried():
    data, *_ = planted()
    model = GraphRanker(**SMALL, settings={"factor_weight": 0.0}).fit(data)
    assert model.settings_ == RankerSettings(factor_weight=0.0)
    assert len(model.history_) == 1
    assert np.isnan(model.history_["ndcg"].to_numpy()).all()


def test_many_items_are_regressed_on_their_neighbours(fitted, tmp_path, monkeypatch):
    """Which changes little: in the search, the lists, a file and for new users."""
    model, data, *_ = fitted
    monkeypatch.setattr(regression, "MOST_EXACT", 10)
    monkeypatch.setattr(hidden, "MOST_EXACT", 10)
    sparse = GraphRanker(**SMALL).fit(data)
    np.testing.assert_allclose(sparse.history_["ndcg"].max(), model.history_["ndcg"].max(), rtol=0.02)
    given = GraphRanker(**SMALL, settings={}).fit(data)
    assert sp.issparse(given._fitted().item_weights)
    monkeypatch.undo()
    model = GraphRanker(**SMALL, settings={}).fit(data)
    users, items = (side.ravel() for side in np.indices((data.n_users, data.n_items)))
    assert np.corrcoef(given.predict(users, items), model.predict(users, items))[0, 1] > 0.98
    again = GraphRanker.load(given.save(tmp_path / "ranker.model"))
    assert again.recommend(data.user_ids, 5).equals(given.recommend(data.user_ids, 5))
    assert np.corrcoef(given.fold_in(data).scores().ravel(), model.fold_in(data).scores().ravel())[0, 1] > 0.98


def test_source_factors_of_another_shape_are_refused(fitted, tmp_path):
    model, *_ = fitted
    again = GraphRanker.load(model.save(tmp_path / "ranker.model"))
    again._state = replace(again._fitted(), source_factors=again._fitted().source_factors[:-1])
    with pytest.raises(ModelFileError, match="source factors of shape"):
        GraphRanker.load(again.save(tmp_path / "ranker.model"))


def test_factors_that_do_not_count_are_not_trained():
    data, *_ = planted()
    model = GraphRanker(**SMALL, settings={"factor_weight": 0.0}).fit(data)
    pattern = interaction_pattern(data)
    expected = trained_factors(pattern, 6, SoftmaxTraining(0), 0, torch.device("cpu"))
    np.testing.assert_array_equal(model.item_factors_, expected.targets)
    assert model.fold_in(data).recommend(3)["user"].nunique() == data.n_users


def test_a_file_whose_sources_are_lost_is_refused(fitted):
    with pytest.raises(ValueError, match="source factors"):
        GraphRanker().restored(replace(fitted[0]._fitted(), source_factors=None), {})


def test_a_file_whose_regression_is_lost_is_refused(fitted):
    model = GraphRanker(**SMALL, settings={}).fit(fitted[1])
    state = replace(model._fitted(), item_weights=None)
    with pytest.raises(ValueError, match="weights of the regression"):
        GraphRanker().restored(state, {})


@pytest.mark.parametrize("values", [{}, {"regression_penalty": float("nan")}])
def test_a_file_whose_settings_are_lost_is_refused(fitted, values):
    state = fitted[0]._fitted()
    lost = replace(state.chosen, values=values and state.chosen.values | values)
    with pytest.raises((ValueError, LookupError)):
        GraphRanker().restored(replace(state, chosen=lost), {})


def test_callbacks_see_the_last_training_and_may_end_it():
    data, *_ = planted()
    seen = []
    GraphRanker(**SMALL, settings={}).fit(data, callbacks=[seen.append])
    assert [record.epoch for record in seen] == [10, 20, 30]
    assert seen[-1].objective < seen[0].objective
    model = GraphRanker(**SMALL, settings={}).fit(data, callbacks=[lambda record: record.epoch == 20])
    assert model.n_steps_ == 20
    expected = FactorTraining(interaction_pattern(data), 6, SoftmaxTraining(30), 0, torch.device("cpu"))
    train(expected.trainer(20))
    np.testing.assert_array_equal(model.item_factors_, expected.factors().targets)


def test_where_no_user_has_an_item_to_spare_the_defaults_serve():
    model = GraphRanker(**SMALL).fit(Interactions.from_dense([[1, np.nan], [np.nan, 1], [1, np.nan]]))
    assert model.settings_ == RankerSettings()
    assert model.recommend(0, 1)["item"].tolist() == [1]


def test_ratings_do_not_count():
    data, *_ = planted()
    ratings = np.random.default_rng(0).integers(1, 6, data.n_ratings)
    rated = Interactions(data.user_index, data.item_index, ratings, data.user_ids, data.item_ids)
    models = [GraphRanker(**SMALL).fit(each).recommend(data.user_ids, 5) for each in (data, rated)]
    assert models[0].drop(columns="score").equals(models[1].drop(columns="score"))


def test_graphs_are_made_when_asked_for_and_stay():
    data, *_ = planted()
    model = GraphRanker(**SMALL, settings={}).fit(data)
    assert model._fitted().user_graph is None
    assert model.user_graph_ is model.user_graph_
    assert model.similar_users(0, 3)["user"].size == 3
    assert model.item_graph_.ids.tolist() == data.item_ids.tolist()


def test_a_saved_model_makes_the_same_lists(fitted, tmp_path):
    model, data, *_ = fitted
    again = GraphRanker.load(model.save(tmp_path / "ranker.model"))
    assert again.settings_ == model.settings_
    assert again.recommend(data.user_ids, 5).equals(model.recommend(data.user_ids, 5))


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
    ],
)
def test_parameters_out_of_range_are_errors_before_any_work(changes, message):
    with pytest.raises(ParameterError, match=message):
        GraphRanker(**changes).fit([[1.0, 1.0], [1.0, np.nan]])


def test_scores_that_are_no_products_go_to_no_index(fitted):
    with pytest.raises(ParameterError, match="not products of factors"):
        fitted[0].to_faiss()


def test_a_table_of_likes_needs_no_column_of_ratings():
    rng = np.random.default_rng(0)
    pairs = rng.integers(12, size=(150, 2))
    table = pd.DataFrame({"user": [f"u{user}" for user, _ in pairs], "item": [f"i{item}" for _, item in pairs]})
    once = table.drop_duplicates().assign(rating=1.0)
    plain, rated = (AIR.for_likes(settings={}, device="cpu", random_state=0).fit(each) for each in (table, once))
    users = rated.interactions_.user_ids
    pd.testing.assert_frame_equal(plain.recommend(users), rated.recommend(users))
    new = pd.DataFrame({"user": ["eve", "eve", "eve"], "item": ["i1", "i2", "i2"]})
    found = [plain.fold_in(each).recommend(4) for each in (new, new.drop_duplicates().assign(rating=1.0))]
    pd.testing.assert_frame_equal(*found)
    unseen = pd.DataFrame({"user": users, "item": [plain.recommend(user, 1)["item"][0] for user in users]})
    assert plain.score(unseen) == 1.0


def test_ratings_below_zero_are_no_likes():
    table = pd.DataFrame({"user": [1, 1, 2], "item": [1, 2, 1], "rating": [1.0, -1.0, 1.0]})
    with pytest.raises(DataError, match="ratings must be >= 0"):
        AIR.for_likes(settings={}, device="cpu").fit(table)


def test_a_model_of_ratings_tells_what_takes_likes():
    with pytest.raises(DataError, match=r"expected the column\(s\) \['rating'\].*AIR.for_likes\(\) takes them"):
        AIR.for_ratings().fit(pd.DataFrame({"user": [1, 2], "item": [1, 2]}))
