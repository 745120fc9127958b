"""`clip`: the range of the ratings, and scores of 0/1 data that are pushed towards 0 and 1."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys import AIR, Interactions
from air_recsys.metrics import average_precision
from air_recsys.models import Recommender
from air_recsys.models.ratings import is_binary, limited, pushed

FEW: dict[str, Any] = {"n_epochs": 60, "device": "cpu", "random_state": 0}
USERS, ITEMS = np.divmod(np.arange(20 * 15), 15)


def groups(high: float = 1.0) -> Interactions:
    """Two groups of users, each with its items, and a third of the pairs hidden."""
    truth = np.where(USERS.reshape(20, 15) % 2 == ITEMS.reshape(20, 15) % 2, high, 0.0)
    hidden = np.random.default_rng(0).random(truth.shape) < 1 / 3
    return Interactions.from_dense(np.where(hidden, np.nan, truth))


def scores(clip: Any, data: Interactions, **options: Any) -> np.ndarray:
    return AIR.for_interactions(clip=clip, **FEW | options).fit(data).predict(USERS, ITEMS)


def test_pushing_keeps_the_order_and_ends_between_0_and_1():
    given = np.linspace(-0.3, 1.0, 200)
    found = pushed(given)
    assert (np.diff(found) > 0).all()
    assert found.min() > 0
    assert found.max() < 1
    np.testing.assert_array_equal(pushed(np.array([-1e6, 1e6])), [0, 1])


def test_pushed_scores_are_those_of_the_preset_and_rank_as_they_were():
    data = groups()
    raw, found = scores(False, data), scores("binary", data)
    np.testing.assert_allclose(found, pushed(raw))
    labels = USERS % 2 == ITEMS % 2
    assert average_precision(labels, found) == pytest.approx(average_precision(labels, raw))


@pytest.mark.parametrize("high", [0.5, 3.0])
def test_other_data_are_limited_to_their_range(high):
    data = groups(high)
    np.testing.assert_array_equal(scores("binary", data), scores(True, data))


def test_a_single_value_limits_nothing():
    positive = Interactions.from_dense(np.where(groups().to_dense() == 1, 1.0, np.nan))
    raw, found = (scores(clip, positive, unobserved_weight=0.1) for clip in (False, "binary"))
    np.testing.assert_array_equal(found, raw)
    assert np.ptp(found) > 0


def test_no_limit_leaves_scores_as_they_are():
    given = np.array([-2.0, 0.4, 7.0])
    np.testing.assert_array_equal(limited(given, False, (0.0, 1.0), binary=True), given)
    np.testing.assert_array_equal(limited(given, True, (0.0, 1.0), binary=True), [0, 0.4, 1])


@pytest.mark.parametrize(
    ("ratings", "expected"), [([0, 1, 1], True), ([1, 1], False), ([0, 0], False), ([0, 1, 2], False)]
)
def test_both_values_make_binary_data(ratings, expected):
    assert is_binary(np.array(ratings, dtype=float)) is expected


def test_lists_explanations_files_and_checks_agree_with_predictions(tmp_path):
    model = AIR.for_interactions(**FEW).fit(groups())
    listed = model.recommend(3, 15, exclude_seen=False)
    assert isinstance(listed, pd.DataFrame)
    np.testing.assert_allclose(listed["score"], model.predict(3, listed["item"]), atol=1e-6)
    assert (np.diff(listed["score"]) <= 0).all()
    found = model.explain(3, 4)
    assert found.score == pytest.approx(model.predict(3, 4)[0])
    assert found.total() == pytest.approx(found.score, abs=1e-5)
    again = Recommender.load(model.save(tmp_path / "model.air"))
    np.testing.assert_array_equal(again.predict(USERS, ITEMS), model.predict(USERS, ITEMS))
