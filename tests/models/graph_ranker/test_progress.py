"""A `GraphRanker` within a time budget, and what it says of its choice."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from air_recsys import AIR, Interactions
from air_recsys.exceptions import ParameterError, ParameterWarning
from air_recsys.models import GraphRanker
from air_recsys.models.graph_ranker import progress
from air_recsys.models.graph_ranker.factors import FactorTraining
from air_recsys.models.graph_ranker.hidden import hidden_parts
from air_recsys.models.graph_ranker.progress import Progress, TimeBudget
from air_recsys.models.graph_ranker.selection import Search
from air_recsys.training.checkpoint import HeldCheckpoint
from air_recsys.training.softmax import SoftmaxTrainer, SoftmaxTraining

SMALL = {"n_factors": 4, "n_steps": 5, "device": "cpu", "n_validation": 40}


def likes(seed: int = 0) -> Interactions:
    rng = np.random.default_rng(seed)
    same = np.arange(60)[:, None] % 2 == np.arange(30) % 2
    return Interactions.from_dense(np.where(rng.random((60, 30)) < np.where(same, 0.4, 0.05), 1.0, np.nan))


class Watch:
    """A clock that moves by a second whenever it is read."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def perf_counter(self) -> float:
        self.seconds += 1
        return self.seconds


def test_without_a_budget_all_members_are_compared() -> None:
    model = GraphRanker(**SMALL).fit(likes())
    members = model.members_
    assert set(members.index) == {"regression", "factors", "regression and factors"}
    assert members["ndcg"].is_monotonic_increasing
    chosen = members.index[-1]
    assert model.history_.iloc[-1]["ndcg"] == members["ndcg"].max()
    assert model.search_line_.startswith(
        f"{chosen}: NDCG@20 on parts hidden at random: {chosen} {members['ndcg'].max():.4f}, "
    )


def test_each_way_of_hiding_is_told_and_their_mean_is_what_counts() -> None:
    history = GraphRanker(**SMALL).fit(likes()).history_
    ways = history[["ndcg_alike", "ndcg_popular_first", "ndcg_rare_first"]].to_numpy()
    np.testing.assert_allclose(np.exp(np.log(ways).mean(axis=1)), history["ndcg"])


def test_without_time_it_takes_the_regression_as_it_is_and_says_so() -> None:
    with pytest.warns(ParameterWarning, match="time_budget=1e-09 is too short to try anything: the regression"):
        model = GraphRanker(time_budget=1e-9, **SMALL).fit(likes())
    assert list(model.settings_.weights) == ["regression"]
    assert model.members_.empty
    assert model.search_line_ == "regression: nothing was compared on hidden parts"
    assert len(model.recommend(0, n=3)) == 3


def test_a_search_stops_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "time", Watch())
    model = GraphRanker(time_budget=20.0, **SMALL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(likes())
    assert 1 <= len(model.history_) - 1 <= 12
    assert list(model.members_.index) == ["regression"]
    assert model.search_line_.endswith("; no time for factors")


@pytest.mark.parametrize(
    ("seconds", "steps"),
    # Of 30 steps, measured after 10, 15, ...: 3,000 seconds for three ways and 1,000 for the last training, or 4,500
    # and 1,500, or 6,000 and 2,000.
    [(3_500, []), (5_000, [10]), (7_000, [10, 15])],
)
def test_factors_are_trained_as_far_as_there_is_time(
    seconds: int, steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Watch()
    monkeypatch.setattr(progress, "time", clock)
    advance = SoftmaxTrainer.advance

    def slowly(trainer: SoftmaxTrainer, position: int) -> None:
        clock.seconds += 100
        advance(trainer, position)

    monkeypatch.setattr(SoftmaxTrainer, "advance", slowly)
    monkeypatch.setattr("air_recsys.models.graph_ranker.progress._PATIENCE", 5)
    ways = hidden_parts(likes().to_csr().astype(np.float32), None, "auto", 0)

    def begun(pattern: sp.csr_array) -> FactorTraining:
        return FactorTraining(pattern, 4, SoftmaxTraining(30), 0, torch.device("cpu"))

    search = Search(ways, begun, 0, 40, Progress(HeldCheckpoint({}), seconds))
    best = search.best()
    assert sorted({row["n_steps"] for row in search.history} - {0}) == steps
    assert search._budget.spent() < seconds - 100 * best.n_steps


def test_a_budget_is_kept_about() -> None:
    start = time.perf_counter()
    budget = TimeBudget(100.0)
    assert 0 < budget.left() <= 100
    assert budget.has(0.0)
    assert not budget.has(1.0)
    assert TimeBudget().left() == float("inf")
    assert TimeBudget().has(1.0)
    assert time.perf_counter() - start < 60


def test_budgets_are_checked() -> None:
    with pytest.raises(ParameterError, match="time_budget must be None or a number > 0, found 0"):
        GraphRanker(time_budget=0).fit(likes())
    with pytest.warns(ParameterWarning, match="time_budget=5 has no effect: it needs settings=None"):
        GraphRanker(time_budget=5, settings={}, device="cpu").fit(likes())


def test_the_choice_is_in_the_file(tmp_path) -> None:
    model = AIR.for_likes(**SMALL).fit(likes())
    assert isinstance(model, GraphRanker)
    loaded = GraphRanker.load(model.save(tmp_path / "model.air"))
    assert loaded.search_line_ == model.search_line_
    assert loaded.members_.equals(model.members_)


def test_given_settings_are_said_to_be_given() -> None:
    model = GraphRanker(settings={"factor_weight": 0.0}, device="cpu").fit(likes())
    assert model.search_line_ == "regression: nothing was compared on hidden parts"
