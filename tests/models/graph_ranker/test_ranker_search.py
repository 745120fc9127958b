"""How a `GraphRanker` chooses: what it hides, compares and says, how long it trains, and how times count."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from ranker_cases import SMALL, all_scores, assert_scores_of_the_formula, likes, training_of

from air_recsys import Interactions
from air_recsys.exceptions import DataError, ParameterWarning
from air_recsys.metrics import ndcg_at_k
from air_recsys.metrics.checks import Csr
from air_recsys.models import GraphRanker
from air_recsys.models.graph_ranker import progress
from air_recsys.models.graph_ranker.factors import FactorTraining
from air_recsys.models.graph_ranker.hidden import HeldOut, HiddenPart, hidden_parts, hide_fifth
from air_recsys.models.graph_ranker.inputs import (
    RankerSettings,
    interaction_pattern,
    interaction_times,
    log_trend,
    with_half_life,
)
from air_recsys.models.graph_ranker.progress import Progress, StepSearch
from air_recsys.models.graph_ranker.selection import Search
from air_recsys.training import train
from air_recsys.training.checkpoint import HeldCheckpoint
from air_recsys.training.ranks import ALONE
from air_recsys.training.softmax import SoftmaxTrainer

RANDOM = ["alike", "popular", "rare"]


def names(parts: list[HiddenPart]) -> list[str]:
    return [name for part in parts for name in part.powers]


@pytest.fixture(scope="module")
def pattern() -> Csr:
    """Likes of two groups, the first items liked most."""
    liked = np.random.default_rng(1).random((130, 40)) < np.linspace(1, 0.2, 40)
    return sp.csr_array(likes(130, 40, own=0.7, other=0.2).toarray() * liked)


@pytest.fixture(scope="module")
def searched(pattern: Csr) -> GraphRanker:
    return GraphRanker(**SMALL).fit(pattern)


# -------------------------------------------------------------------- what is hidden


def test_a_fifth_of_each_row_is_hidden_and_nothing_is_in_both_parts(pattern):
    shown, later = hide_fifth(pattern, 0)
    np.testing.assert_array_equal((shown + later).toarray(), pattern.toarray())
    assert shown.multiply(later).sum() == 0
    sizes = np.diff(pattern.indptr)
    np.testing.assert_array_equal(later.sum(axis=1), np.minimum(np.floor(0.2 * sizes + 0.5), np.maximum(sizes - 1, 0)))


def test_lists_of_a_random_part_are_measured_with_hidden_items_alike_and_weighed_by_popularity(pattern):
    (part,) = hidden_parts(pattern, None, "auto", 0)
    assert list(part.powers) == RANDOM
    way, counts = HeldOut(part, 0, 500), part.shown.sum(axis=0)
    for by_counts, best in ((counts, "popular"), (-counts, "rare")):
        lists = np.tile(np.argsort(-by_counts, kind="stable")[:20], (way.users.size, 1))
        measured = {name: ndcg for name, (ndcg, _) in way.measured(lists).items()}
        assert list(measured) == RANDOM
        assert max(measured, key=measured.__getitem__) == best
        assert measured["alike"] == pytest.approx(ndcg_at_k(lists, part.hidden[way.users], 20))


def test_users_that_are_held_out_are_shown_or_divided(pattern):
    (part,) = hidden_parts(pattern, None, "users", 0)
    assert list(part.powers) == [f"users_{name}" for name in RANDOM]
    assert part.left is part.given
    held_out = (part.given + part.hidden).toarray()
    assert part.shown.shape == (117, 40)
    rows = [row.tobytes() for row in np.vstack([part.shown.toarray(), held_out])]
    assert sorted(rows) == sorted(row.tobytes() for row in pattern.toarray())
    assert not part.given.multiply(part.hidden).nnz
    np.testing.assert_allclose(part.hidden.sum(axis=1) / held_out.sum(axis=1), 0.2, atol=0.15)
    assert names(hidden_parts(pattern[:60], None, "users", 0)) == RANDOM  # they are too few


def test_lists_of_users_held_out_are_those_of_users_who_are_folded_in(pattern):
    part, settings = hidden_parts(pattern, None, "users", 0)[0], RankerSettings(factor_weight=0.0)
    way = HeldOut(part, 0, 8)
    assert len(set(way.users)) == 8  # no more are asked for
    lists = way.lists(settings)
    model = GraphRanker(**SMALL, settings=settings._asdict()).fit(part.shown)
    found = model.fold_in(part.given[way.users]).recommend(range(way.users.size), 10)
    np.testing.assert_array_equal(lists[:, :10], np.array(found["item"]).reshape(-1, 10))


def test_the_search_scores_with_nothing_but_what_is_shown(pattern):
    """With other hidden items the same settings make the same lists: the figures alone differ."""
    shown, later = hide_fifth(pattern, 0)
    other = sp.csr_array((np.ones(later.nnz), later.indices[::-1].copy(), later.indptr), shape=later.shape)
    held_out = [HeldOut(HiddenPart("", shown, truth), 0, 500) for truth in (later, other)]
    training = training_of(shown, 6, 30)
    train(training.trainer(30))
    for each in held_out:
        each.use_factors(training.factors())
    for weights in ({"factor_weight": 0.0}, {"regression_weight": 0.0}, {}):
        lists = [each.lists(RankerSettings(**weights)) for each in held_out]
        np.testing.assert_array_equal(lists[0], lists[1])


# -------------------------------------------------------------------- what is chosen


def test_the_best_of_all_that_was_compared_is_chosen_and_told(searched):
    tried, members = searched.history_, searched.members_
    assert tried["ndcg"].iloc[-1] == tried["ndcg"].max() == members["ndcg"].max()
    assert len(tried.iloc[:-1].drop_duplicates()) == len(tried) - 1
    assert list(searched.settings_) == tried.iloc[-1][list(RankerSettings._fields)].tolist()
    ways = tried[[f"ndcg_{name}" for name in RANDOM]].to_numpy()
    np.testing.assert_allclose(np.exp(np.log(ways).mean(axis=1)), tried["ndcg"])  # every way counts by ratios
    assert set(members.index) == {"regression", "factors", "regression and factors"}
    assert members["ndcg"].is_monotonic_increasing
    chosen = members.index[-1]
    line = f"{chosen}: NDCG@20 on parts hidden at random: {chosen} {members['ndcg'].max():.4f}, "
    assert searched.search_line_.startswith(line)


def test_the_line_says_that_users_were_held_out(pattern):
    model = GraphRanker(**SMALL, validation="users").fit(pattern)
    assert "NDCG@20 on users held out" in model.search_line_
    assert {f"ndcg_users_{name}" for name in RANDOM} <= set(model.history_)


# -------------------------------------------------------------------- within a time budget


class Watch:
    """A clock that moves by a second whenever it is read."""

    seconds = 0.0

    def perf_counter(self) -> float:
        self.seconds += 1
        return self.seconds


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    clock = Watch()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def test_without_time_it_takes_the_regression_as_it_is_and_says_so():
    with pytest.warns(ParameterWarning, match="time_budget=1e-09 is too short to try anything: the regression"):
        model = GraphRanker(time_budget=1e-9, **SMALL).fit(likes())
    assert list(model.settings_.weights) == ["regression"]
    assert model.members_.empty
    assert model.search_line_ == "regression: nothing was compared on hidden parts"
    assert len(model.recommend(0, n=3)) == 3


@pytest.mark.usefixtures("watch")
def test_a_search_stops_in_time():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GraphRanker(time_budget=20.0, **SMALL).fit(likes())
    assert 1 <= len(model.history_) - 1 <= 12
    assert list(model.members_.index) == ["regression"]
    assert model.search_line_.endswith("; no time for factors")


@pytest.mark.parametrize(
    ("seconds", "steps"),
    # Of 30 steps, measured after 10, 15, ...: 1,000 seconds for these and 1,000 for the last training, or 1,500 and
    # 1,500, or 2,000 and 2,000.
    [(1_700, []), (2_500, [10]), (3_500, [10, 15])],
)
def test_factors_are_trained_as_far_as_there_is_time(seconds, steps, watch, monkeypatch):
    advance = SoftmaxTrainer.advance

    def slowly(trainer: SoftmaxTrainer, position: int) -> None:
        watch.seconds += 100
        advance(trainer, position)

    monkeypatch.setattr(SoftmaxTrainer, "advance", slowly)
    ways, fit = hidden_parts(likes(), None, "auto", 0), Progress(HeldCheckpoint({}), seconds)
    search = Search(ways, lambda pattern: training_of(pattern, 4, 30), 0, 40, fit, ALONE)
    best = search.best()
    assert sorted({row["n_steps"] for row in search.history} - {0}) == steps
    assert fit.budget.spent() < seconds - 100 * best.n_steps


# -------------------------------------------------------------------- how many steps


def few_likes() -> Csr:
    """So few of two groups that factors learn them by heart."""
    return likes(40, 100, own=0.15, other=0.02)


def begun(pattern: Csr, n_steps: int = 12, seed: int = 0) -> FactorTraining:
    return training_of(pattern, 2, n_steps, seed)


@pytest.mark.parametrize(
    ("figures", "best", "measured"),
    [
        ([0.1, 0.2, 0.3, 0.4, 0.5], 12, [4, 6, 8, 10, 12]),
        ([0.1, 0.3, 0.2, 0.3, 0.9], 6, [4, 6, 8, 10]),
        ([0.3, 0.3, 0.2, 0.9, 0.9], 4, [4, 6, 8]),
        ([0.0, 0.1, 0.0, 0.2, 0.0], 10, [4, 6, 8, 10, 12]),
    ],
)
def test_training_stops_where_lists_get_no_better_and_the_best_factors_are_kept(figures, best, measured):
    ways = [HeldOut(HiddenPart(str(seed), *hide_fifth(few_likes(), seed)), 0, 500) for seed in (0, 1)]
    found, seen = dict(zip([4, 6, 8, 10, 12], figures, strict=True)), []

    def measure(step: int) -> float:
        seen.append(step)
        return found[step]

    assert StepSearch(ways, begun, Progress(HeldCheckpoint({}))).best(measure) == best
    assert seen == measured
    for way in ways:
        training = begun(way.shown)
        train(training.trainer(best))
        np.testing.assert_array_equal(way.factors.targets, training.factors().targets)


def test_factors_that_learn_by_heart_are_stopped_early():
    seed, options = 5, {"n_factors": 2, "n_steps": 120, "device": "cpu"}  # no figure is near to another one
    model = GraphRanker(random_state=seed, **options).fit(few_likes())
    joined = model.history_.iloc[:-1].query("factor_weight == 1 and regression_weight == 1")
    figures = joined.drop_duplicates("n_steps").set_index("n_steps")["ndcg"]
    assert figures.index.tolist() == [40, 60, 80]
    assert max(figures[[60, 80]]) < 0.98 * figures[40]
    assert model.n_steps_ == 40
    assert model.search_line_.endswith("; 40 of 120 steps")
    training = begun(few_likes(), 120, seed)
    train(training.trainer(40))
    np.testing.assert_array_equal(model.item_factors_, training.factors().targets)


# -------------------------------------------------------------------- with times

TIMED = {"user_half_life": 2.0, "item_trend": 0.5}


@pytest.fixture(scope="module")
def data() -> Interactions:
    """Likes of items that come and go: at time t everybody takes items near to t."""
    rng = np.random.default_rng(0)
    times = rng.random((60, 14))
    items = np.clip((times * 36 + rng.normal(0, 3, times.shape)).astype(int), 0, 39)
    columns = {
        "user": np.repeat(np.arange(60), 14),
        "item": items.ravel(),
        "timestamp": (1000 * times.ravel()).astype(int),
    }
    table = pd.DataFrame(columns).drop_duplicates(["user", "item"])
    return Interactions.from_frame(table, rating=None, timestamp="timestamp")


def parts_of(data: Interactions, validation: str) -> list[Any]:
    return hidden_parts(interaction_pattern(data), interaction_times(data), validation, 0)


@pytest.fixture(scope="module")
def timed(data: Interactions) -> GraphRanker:
    return GraphRanker(**SMALL, settings=TIMED).fit(data)


@pytest.mark.parametrize("validation", ["last", "time"])
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
        assert names(parts_of(same, "auto")) == RANDOM
    one_visit = Interactions(*pairs, timestamps=data.user_index)  # nobody comes again
    assert names(parts_of(one_visit, "time")) == RANDOM
    assert [part.name for part in parts_of(one_visit, "last")] == ["last"]  # of one time at random


def test_windows_in_time_follow_each_other(data: Interactions) -> None:
    parts = parts_of(data, "auto")
    assert [part.name for part in parts] == ["time_1", "time_2", "time_3"]
    for later, earlier in itertools.pairwise(parts):
        gone = later.shown.toarray() - earlier.shown.toarray() - earlier.hidden.toarray()
        assert (gone >= 0).all()
        assert earlier.times.max() <= later.times.max()
    sizes = [part.shown.nnz for part in parts]
    np.testing.assert_allclose(sizes, data.n_ratings * np.array([0.8, 0.6, 0.4]), atol=3)


@pytest.mark.parametrize(
    ("validation", "told"),
    [
        ("random", "parts hidden at random"),
        ("time", "the latest fifths of all"),
        ("last", "the latest fifth of each"),
    ],
)
def test_it_chooses_on_the_latest_part_and_says_so(data: Interactions, validation: str, told: str) -> None:
    model = GraphRanker(**SMALL | {"n_validation": 20}, validation=validation).fit(data)
    assert f"NDCG@20 on {told}" in model.search_line_
    assert bool(model.settings_.item_trend or model.settings_.user_half_life) == (validation != "random")


def test_it_says_so_where_the_latest_fifth_tells_nothing(data: Interactions) -> None:
    """Where all but one of its interactions are of new users, the fifths before it are left."""
    early = data.to_frame().assign(timestamp=data.timestamps)
    late = early.head(len(early) // 4).assign(timestamp=2000)
    late["user"] += 1000
    both = Interactions.from_frame(pd.concat([early, late]), rating=None, timestamp="timestamp")
    assert [part.name for part in parts_of(both, "time")] == ["time_2", "time_3"]


def test_lists_for_the_future_are_better_with_times(data: Interactions) -> None:
    assert data.timestamps is not None
    early = data.timestamps < 800
    train, test = data.select(early), data.select(~early)
    scores = {each: GraphRanker(**SMALL, validation=each).fit(train).score(test) for each in ("random", "auto")}
    assert scores["auto"] > 1.2 * scores["random"]


# -------------------------------------------------------------------- how times count


def test_scores_and_lists_are_those_of_the_formula(data: Interactions, timed: GraphRanker) -> None:
    assert_scores_of_the_formula(timed, data)


def test_a_file_keeps_the_times_and_new_users_bring_theirs(data: Interactions, timed: GraphRanker, tmp_path) -> None:
    again = GraphRanker.load(timed.save(tmp_path / "x.air"))
    expected = all_scores(timed)
    np.testing.assert_array_equal(all_scores(again), expected)
    for new in (data, data.to_frame()):
        np.testing.assert_allclose(all_scores(again.fold_in(new)), expected, rtol=1e-5, atol=1e-7)
    alike = all_scores(again.fold_in(interaction_pattern(data)))  # a matrix has no times
    assert not np.allclose(alike, expected, rtol=1e-2)
    for model in (timed, timed.fold_in(data)):
        found = model.explain(data.user_ids[3], data.item_ids[5], n=50)
        assert found.total() == pytest.approx(found.score, rel=1e-4)
        added = found.items["contribution"].to_numpy().sum() + found.parts["no_items"]
        assert added == pytest.approx(found.score, rel=1e-4)


def test_an_item_counts_half_with_as_many_later_ones_as_the_half_life_and_those_of_one_time_the_same() -> None:
    pattern = sp.csr_array(np.ones((2, 7), dtype=np.float32))
    times = sp.csr_array(np.array([np.arange(7, 0, -1), [5, 5, 5, 5, 5, 6, 6]]))
    found = with_half_life(pattern, times, 3.0).toarray()
    np.testing.assert_allclose(found, [3 / (3 + np.arange(7)), [0.6] * 5 + [1.0] * 2], rtol=1e-6)
    assert with_half_life(pattern, times, 0.0) is pattern


def test_a_trend_is_one_where_nothing_changes() -> None:
    times = sp.csr_array(np.tile(np.arange(1, 101)[:, None], (1, 4)))
    np.testing.assert_allclose(log_trend(times), 0, atol=1e-12)


def test_a_table_has_times_in_a_column_of_that_name(data: Interactions, timed: GraphRanker) -> None:
    table = data.to_frame().drop(columns="rating")
    model = GraphRanker(**SMALL, settings=TIMED).fit(table)
    assert model.recommend(data.user_ids, 4).equals(timed.recommend(data.user_ids, 4))


@pytest.mark.parametrize(
    ("options", "needs"),
    [({"validation": "time"}, "validation='time'"), ({"settings": {"item_trend": 1.0}}, "item_trend in settings")],
)
def test_what_needs_times_says_so(data: Interactions, options: dict[str, Any], needs: str) -> None:
    with pytest.raises(DataError, match=f"{needs} needs interactions with timestamps, found none"):
        GraphRanker(**SMALL, **options).fit(data.to_csr())
