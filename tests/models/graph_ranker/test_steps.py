"""How many steps the factors of a `GraphRanker` are trained."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from air_recsys import Interactions
from air_recsys.models import GraphRanker
from air_recsys.models.graph_ranker.factors import FactorTraining
from air_recsys.models.graph_ranker.hidden import HeldOut, hidden_parts
from air_recsys.models.graph_ranker.inputs import interaction_pattern
from air_recsys.models.graph_ranker.progress import Progress, StepSearch
from air_recsys.training import train
from air_recsys.training.checkpoint import HeldCheckpoint
from air_recsys.training.softmax import SoftmaxTraining

SMALL = {"n_factors": 2, "device": "cpu"}


def likes() -> Interactions:
    """Return so few likes of two groups that factors learn them by heart."""
    rng = np.random.default_rng(0)
    chance = np.where(np.arange(40)[:, None] % 2 == np.arange(100) % 2, 0.15, 0.02)
    return Interactions.from_dense(np.where(rng.random(chance.shape) < chance, 1.0, np.nan))


def begun(pattern: sp.csr_array, n_steps: int = 12, seed: int = 0) -> FactorTraining:
    return FactorTraining(pattern, 2, SoftmaxTraining(n_steps), seed, torch.device("cpu"))


@pytest.mark.parametrize(
    ("figures", "best", "measured"),
    [
        ([0.1, 0.2, 0.3, 0.4, 0.5], 12, [4, 6, 8, 10, 12]),
        ([0.1, 0.3, 0.2, 0.3, 0.9], 6, [4, 6, 8, 10]),
        ([0.3, 0.3, 0.2, 0.9, 0.9], 4, [4, 6, 8]),
        ([0.0, 0.1, 0.0, 0.2, 0.0], 10, [4, 6, 8, 10, 12]),
    ],
)
def test_training_stops_where_lists_get_no_better_and_the_best_factors_are_kept(figures, best, measured) -> None:
    ways = [HeldOut(part, 0, 500) for part in hidden_parts(interaction_pattern(likes()), None, "auto", 0)]
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


def test_factors_that_learn_by_heart_are_stopped_early() -> None:
    data, seed = likes(), 3  # of which no figure is near to another one
    model = GraphRanker(n_steps=120, random_state=seed, **SMALL).fit(data)
    joined = model.history_.iloc[:-1].query("factor_weight == 1 and regression_weight == 1")
    figures = joined.drop_duplicates("n_steps").set_index("n_steps")["ndcg"]
    assert figures.index.tolist() == [40, 60, 80]
    assert max(figures[[60, 80]]) < 0.98 * figures[40]
    assert model.n_steps_ == 40
    assert model.search_line_.endswith("; 40 of 120 steps")
    training = begun(interaction_pattern(data), 120, seed)
    train(training.trainer(40))
    np.testing.assert_array_equal(model.item_factors_, training.factors().targets)


def test_given_settings_take_all_steps_and_factors_without_weight_none() -> None:
    found = [GraphRanker(n_steps=5, settings=each, **SMALL).fit(likes()) for each in ({}, {"factor_weight": 0.0})]
    assert [model.n_steps_ for model in found] == [5, 0]
    assert not any("steps" in model.search_line_ for model in found)


def test_the_number_of_steps_is_in_the_file(tmp_path) -> None:
    model = GraphRanker(n_steps=5, settings={}, **SMALL).fit(likes())
    assert GraphRanker.load(model.save(tmp_path / "lists.air")).n_steps_ == 5
