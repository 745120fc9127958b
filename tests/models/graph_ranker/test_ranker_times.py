"""`GraphRanker` with times: what it hides, how later items and trends count; files and new users keep them."""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from air_recsys import Interactions
from air_recsys.exceptions import DataError, ParameterError, ParameterWarning
from air_recsys.models.graph_ranker.hidden import hidden_parts
from air_recsys.models.graph_ranker.inputs import interaction_pattern, interaction_times, log_trend, with_half_life
from air_recsys.models.graph_ranker.ranker import GraphRanker

SMALL: dict[str, Any] = {"n_factors": 4, "n_steps": 5, "n_validation": 100, "device": "cpu"}
TIMED = {"user_half_life": 2.0, "item_trend": 0.5}


def moving(n_users: int = 60, n_items: int = 40, seed: int = 0) -> Interactions:
    """Return likes of items that come and go: at time t everybody takes items near to t, of n_items times."""
    rng = np.random.default_rng(seed)
    times = rng.random((n_users, 14))
    items = np.clip((times * 0.9 * n_items + rng.normal(0, 3, times.shape)).astype(int), 0, n_items - 1)
    frame = pd.DataFrame(
        {
            "user": np.repeat(np.arange(n_users), 14),
            "item": items.ravel(),
            "timestamp": (1000 * times.ravel()).astype(int),
        }
    ).drop_duplicates(["user", "item"])
    return Interactions.from_frame(frame, rating=None, timestamp="timestamp")


def parts_of(data: Interactions, validation: str) -> list[Any]:
    return hidden_parts(interaction_pattern(data), interaction_times(data), validation, 0)


@pytest.fixture(scope="module")
def data() -> Interactions:
    return moving()


@pytest.fixture(scope="module")
def fitted(data: Interactions) -> GraphRanker:
    return GraphRanker(**SMALL, settings=TIMED).fit(data)


@pytest.mark.parametrize("validation", ["last", "time", "auto"])
def test_nothing_hidden_is_earlier_than_what_is_shown(data: Interactions, validation: str) -> None:
    times = data.to_csr()
    times = sp.csr_array((data.timestamps, (data.user_index, data.item_index)), shape=times.shape).toarray()
    for part in parts_of(data, validation):
        shown, hidden = part.shown.toarray() > 0, part.hidden.toarray() > 0
        assert hidden.sum() > 0
        assert not (shown & hidden).any()
        assert hidden.any(axis=1).sum() >= 10
        assert shown[hidden.any(axis=1)].any(axis=1).all()
        assert shown[:, hidden.any(axis=0)].any(axis=0).all()
        np.testing.assert_array_equal(part.times.toarray()[shown], times[shown])
        if validation == "last":
            latest = np.where(shown, times, -1).max(axis=1)
            assert (np.where(hidden, times, 10**6).min(axis=1) >= latest).all()
        else:
            assert times[hidden].min() >= times[shown].max()


def test_times_without_order_hide_at_random(data: Interactions) -> None:
    pairs = data.user_index, data.item_index, data.ratings, data.user_ids, data.item_ids
    for timestamps in (None, np.full(data.n_ratings, 7)):
        same = Interactions(*pairs, timestamps=timestamps)
        assert [part.name for part in parts_of(same, "auto")] == ["alike", "popular_first", "rare_first"]
    one_visit = Interactions(*pairs, timestamps=data.user_index)  # nobody comes again
    assert [part.name for part in parts_of(one_visit, "time")] == ["alike", "popular_first", "rare_first"]
    assert [part.name for part in parts_of(one_visit, "last")] == ["last"]  # of one time at random


def test_windows_in_time_follow_each_other(data: Interactions) -> None:
    parts = parts_of(data, "time")
    assert [part.name for part in parts] == ["time_1", "time_2", "time_3"]
    for later, earlier in itertools.pairwise(parts):
        gone = later.shown.toarray() - earlier.shown.toarray() - earlier.hidden.toarray()
        assert (gone >= 0).all()
        assert earlier.times.max() <= later.times.max()
    sizes = [part.shown.nnz for part in parts]
    np.testing.assert_allclose(sizes, data.n_ratings * np.array([0.8, 0.6, 0.4]), atol=3)


def test_it_chooses_on_the_latest_part_and_says_so(data: Interactions, tmp_path) -> None:
    told = {"random": "parts hidden at random", "time": "the latest fifths of all", "last": "the latest fifth of each"}
    small: dict[str, Any] = SMALL | {"n_validation": 20}
    models = {validation: GraphRanker(**small, validation=validation).fit(data) for validation in told}
    for validation, model in models.items():
        assert f"NDCG@20 on {told[validation]}" in model.search_line_
        assert bool(model.settings_.item_trend or model.settings_.user_half_life) == (validation != "random")
    model = models["last"]
    again = GraphRanker.load(model.save(tmp_path / "x.air"))
    assert again.search_line_ == model.search_line_
    assert again.recommend(data.user_ids, 5).equals(model.recommend(data.user_ids, 5))


def test_it_says_so_where_the_latest_fifth_tells_nothing(data: Interactions) -> None:
    """Where all but one of its interactions are of new users, the fifths before it are left."""
    early = data.to_frame().assign(timestamp=data.timestamps)
    late = early.head(len(early) // 4).assign(timestamp=2000)
    late["user"] += 1000
    model = GraphRanker(**SMALL, validation="time").fit(pd.concat([early, late]))
    parts = [name for name in model.history_ if str(name).startswith("ndcg_")]
    assert parts == ["ndcg_time_2", "ndcg_time_3"]
    assert "NDCG@20 on the latest fifths of all" in model.search_line_


def test_lists_for_the_future_are_better_with_times(data: Interactions) -> None:
    assert data.timestamps is not None
    early = data.timestamps < 800
    train, test = data.select(early), data.select(~early)
    scores = {each: GraphRanker(**SMALL, validation=each).fit(train).score(test) for each in ("random", "auto")}
    assert scores["auto"] > 1.2 * scores["random"]


def test_scores_are_those_of_the_formula(data: Interactions, fitted: GraphRanker) -> None:
    pattern, times, s = interaction_pattern(data), interaction_times(data), fitted.settings_
    assert times is not None
    x, t = pattern.toarray().astype(float), times.toarray()
    later = ((t[:, None, :] > t[:, :, None]) & (x[:, None, :] > 0)).sum(axis=2)
    own = x * 2 / (2 + later)
    gains = np.exp(log_trend(times)) ** 0.5
    weighted = x.T @ (x / np.sqrt(x.sum(axis=1, keepdims=True)))
    d = weighted.diagonal()
    m = weighted / np.sqrt(np.outer(d, d))
    h = m @ np.linalg.inv(m + s.regression_penalty * np.eye(len(m)))
    regressed = own / d**s.regression_source @ h / d**s.regression_target * gains
    sums = own @ fitted._fitted().source_factors
    cosines = sums / np.linalg.norm(sums, axis=1, keepdims=True) @ fitted.item_factors_.T
    factored = np.exp(cosines / s.factor_temperature) * gains
    expected = sum(
        weight * part / np.linalg.norm(part, axis=1, keepdims=True)
        for weight, part in ((s.regression_weight, regressed), (s.factor_weight, factored))
    )
    users, items = (side.ravel() for side in np.indices(x.shape))
    found = fitted.predict(data.user_ids[users], data.item_ids[items]).reshape(x.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    lists = fitted.recommend(data.user_ids, 5)
    best = np.sort(np.where(x > 0, -np.inf, expected), axis=1)[:, ::-1][:, :5]
    np.testing.assert_allclose(lists["score"].to_numpy().reshape(-1, 5), best, rtol=1e-4, atol=1e-6)


def test_a_file_keeps_the_times_and_new_users_bring_theirs(data: Interactions, fitted: GraphRanker, tmp_path) -> None:
    again = GraphRanker.load(fitted.save(tmp_path / "x.air"))
    users, items = (side.ravel() for side in np.indices((data.n_users, data.n_items)))
    pairs = data.user_ids[users], data.item_ids[items]
    np.testing.assert_array_equal(again.predict(*pairs), fitted.predict(*pairs))
    expected = fitted.predict(*pairs).reshape(data.n_users, -1)
    np.testing.assert_allclose(again.fold_in(data).scores(), expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(again.fold_in(data.to_frame()).scores(), expected, rtol=1e-5, atol=1e-7)
    alike = again.fold_in(interaction_pattern(data)).scores()  # a matrix has no times
    assert not np.allclose(alike, expected, rtol=1e-2)


def test_contributions_sum_to_the_score(data: Interactions, fitted: GraphRanker) -> None:
    user = data.user_ids[3]
    for model in (fitted, fitted.fold_in(data)):
        found = model.explain(user, data.item_ids[5], n=50)
        assert found.total() == pytest.approx(found.score, rel=1e-4)
        added = found.items["contribution"].to_numpy().sum() + found.parts["no_items"]
        assert added == pytest.approx(found.score, rel=1e-4)


def test_items_of_one_time_count_the_same() -> None:
    pattern = sp.csr_array(np.ones((2, 3), dtype=np.float32))
    times = sp.csr_array(np.array([[1, 1, 2], [5, 5, 5]]))
    expected = [[0.5, 0.5, 1.0], [1.0, 1.0, 1.0]]
    np.testing.assert_array_equal(with_half_life(pattern, times, 1.0).toarray(), expected)
    assert with_half_life(pattern, times, 0.0) is pattern


def test_an_item_counts_half_with_as_many_later_ones_as_the_half_life() -> None:
    pattern = sp.csr_array(np.ones((1, 7), dtype=np.float32))
    times = sp.csr_array(np.arange(7, 0, -1)[None, :])
    found = with_half_life(pattern, times, 3.0).toarray()[0]
    np.testing.assert_allclose(found, 3 / (3 + np.arange(7)), rtol=1e-6)
    assert found[3] == 0.5


def test_a_trend_is_one_where_nothing_changes() -> None:
    times = sp.csr_array(np.tile(np.arange(1, 101)[:, None], (1, 4)))
    np.testing.assert_allclose(log_trend(times), 0, atol=1e-12)


def test_a_table_has_times_in_a_column_of_that_name(data: Interactions, fitted: GraphRanker) -> None:
    table = data.to_frame().drop(columns="rating")
    model = GraphRanker(**SMALL, settings=TIMED).fit(table)
    assert model.recommend(data.user_ids, 4).equals(fitted.recommend(data.user_ids, 4))


def test_what_needs_times_says_so(data: Interactions) -> None:
    bare = data.to_csr()
    with pytest.raises(DataError, match="validation='time' needs interactions with timestamps, found none"):
        GraphRanker(**SMALL, validation="time").fit(bare)
    with pytest.raises(DataError, match="item_trend in settings needs interactions with timestamps"):
        GraphRanker(**SMALL, settings={"item_trend": 1.0}).fit(bare)
    with pytest.raises(ParameterError, match="validation must be one of"):
        GraphRanker(validation="latest").fit(bare)
    with pytest.warns(ParameterWarning, match="validation='last' has no effect"):
        GraphRanker(**SMALL, validation="last", settings={}).fit(data)
