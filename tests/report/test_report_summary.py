"""What the report says first: data, accuracy with intervals, and nothing that it does not know."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from page_reader import Page

from air_recsys import AIR, BiasModel, Interactions
from air_recsys.evaluation.held_out import Evaluation, evaluate_model
from air_recsys.evaluation.resampling import Advantage, Interval
from air_recsys.models import Recommender
from air_recsys.report.learned import learned_section, parameters_section
from air_recsys.report.page import report_html
from air_recsys.report.summary import advantage_text, calibration_section, errors_section, summary_section
from air_recsys.splits import random_holdout

FAST: dict[str, Any] = {"n_factors": 2, "random_state": 0, "device": "cpu"}


def data() -> Interactions:
    rng = np.random.default_rng(0)
    truth = 3 + np.outer(rng.normal(size=30), rng.normal(size=24)) + 0.4 * rng.normal(size=(30, 24))
    return Interactions.from_dense(np.where(rng.random(truth.shape) < 0.6, np.round(truth.clip(1, 5)), np.nan))


@pytest.fixture(scope="module")
def fitted() -> tuple[Recommender, Interactions]:
    split = random_holdout(data(), 0.2, random_state=0)
    return AIR.for_ratings(**FAST).fit(data().select(split.train)), data().select(split.test)


@pytest.fixture(scope="module")
def evaluation(fitted: tuple[Recommender, Interactions]) -> Evaluation:
    return evaluate_model(*fitted)


def test_the_first_sentences_hold_the_figures(fitted: Any, evaluation: Evaluation) -> None:
    text = Page(summary_section(fitted[0], evaluation)).text
    own = evaluation.rows[0]
    assert f"{fitted[0].interactions_.n_ratings:,} ratings (1 to 5," in text
    assert f"its RMSE is {own['rmse']:.3g} (95 % interval {own['rmse low']:.3g} to {own['rmse high']:.3g})" in text
    assert "lower than that of BiasModel" in text
    assert "Its 90 % intervals hold" in text
    assert "errors on training ratings" not in text


def test_without_unseen_ratings_the_page_says_so_and_has_no_sections_on_them(fitted: Any) -> None:
    evaluation = evaluate_model(fitted[0])
    text = Page(summary_section(fitted[0], evaluation)).text
    assert "is not known: no held-out ratings were given" in text
    assert "--test FILE" in text
    assert "95 % interval" not in text
    assert calibration_section(evaluation) is None
    assert errors_section(evaluation) is None


def test_the_order_of_the_page(fitted: Any, evaluation: Evaluation) -> None:
    page = Page(report_html(fitted[0], evaluation))
    order = ["accuracy", "users", "items", "calibration", "errors", "recommendations", "learned"]
    assert page.values("section", "id") == [*order, "data", "training", "parameters", "made"]
    assert page.text.index("snapshots") > page.text.index("Are the intervals right?")
    assert " ± " in page.text


@pytest.mark.parametrize(
    ("measure", "gain", "said"),
    [
        ("rmse", (0.1, 0.05, 0.2), ", 0.1 (0.05 to 0.2) lower than that of it"),
        ("rmse", (-0.1, -0.2, -0.05), ", 0.1 (0.05 to 0.2) higher than that of it, which is worse"),
        ("ndcg@10", (0.1, 0.05, 0.2), ", 0.1 (0.05 to 0.2) higher than that of it"),
        ("ndcg@10", (-0.1, -0.2, -0.05), ", 0.1 (0.05 to 0.2) lower than that of it, which is worse"),
        ("rmse", (0.1, -0.05, 0.2), ", not clearly different from that of it"),
    ],
)
def test_a_difference_is_told_in_words(measure: str, gain: tuple[float, float, float], said: str) -> None:
    assert advantage_text(measure, Advantage("it", Interval(*gain))) == said


def test_intervals_and_errors_are_in_tables_too(evaluation: Evaluation) -> None:
    calibration, errors = calibration_section(evaluation), errors_section(evaluation)
    assert calibration is not None
    assert errors is not None
    held = np.mean(np.abs(evaluation.truth - evaluation.predicted) <= 1.6448536 * evaluation.pairs["deviation"])
    assert f"{held:.1%}" in Page(calibration).text
    assert Page(errors).tags.count("svg") == 3
    assert "true rating 5" in Page(errors).text


def test_a_model_without_deviations_has_errors_but_no_intervals(evaluation: Evaluation) -> None:
    without = replace(evaluation, pairs=evaluation.pairs.assign(deviation=np.nan))
    assert calibration_section(without) is None
    assert errors_section(without) is not None


def test_parameters_are_told_apart_from_the_nearest_preset() -> None:
    page = Page(parameters_section(AIR.for_ratings(n_sweeps=7, random_state=3)))
    assert "As AIR.for_ratings():" in page.text
    before, _, after = page.text.partition("parameters with the same value")
    assert "solver__n_sweeps7" in before
    assert "random_state3" in before
    assert "pattern_graphs" in after
    assert "All parameters have its values." in parameters_section(AIR.for_completion())
    assert "As BiasModel()" in parameters_section(BiasModel())


def test_strengths_and_effects_are_told() -> None:
    kinds = pd.DataFrame({"kind": ["<b>calm</b>"] * 12 + ["loud"] * 12})
    model = AIR.for_ratings(**FAST).fit(data(), item_features=kinds)
    found = learned_section(model)
    assert found is not None
    page = Page(found)
    effects = model.feature_effects("item")
    assert f"kind=<b>calm</b>{effects.set_index('feature').loc['kind=<b>calm</b>', 'effect']:+.3f}" in page.text
    assert "noise: standard deviation" in page.text
    assert "<b>" not in found


def test_likes_have_lists_in_the_place_of_errors() -> None:
    rng = np.random.default_rng(1)
    taken = (np.kron(np.eye(2), np.ones((10, 12))) > 0) & (rng.random((20, 24)) < 0.7)
    hidden = taken & (rng.random(taken.shape) < 0.2)
    model = AIR.for_likes(settings={}, device="cpu", random_state=0).fit(np.where(taken & ~hidden, 1.0, np.nan))
    for test in (np.where(hidden, 1.0, np.nan), None):
        page = Page(report_html(model, evaluate_model(model, test)))
        assert ("its NDCG@10 is" in page.text) == (test is not None)
        assert "RMSE" not in page.text
        assert len(page.ids) == len(set(page.ids))
        assert "GraphRanker is not trained in epochs." in page.text
