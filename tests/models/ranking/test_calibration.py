"""Probabilities by ranks: they are those of data with known chances, fall with the rank, and survive files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from air_recsys import AIR, load
from air_recsys.exceptions import DataWarning, NotFittedError, UnknownIdError
from air_recsys.metrics import calibration_error
from air_recsys.models import GraphRanker
from air_recsys.models.ranking.calibration import RankCalibration

SMALL: dict[str, Any] = {"n_factors": 4, "n_steps": 12, "n_validation": 300, "device": "cpu"}


def drawn(n_users: int = 300, n_items: int = 60, share: float = 0.8) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What users of groups take, which of that is shown, and the chance that a pair not shown is in the rest."""
    rng = np.random.default_rng(0)
    alike = np.arange(n_users)[:, None] % 3 == np.arange(n_items) % 3
    chance = np.where(alike, 0.6, 0.08) * np.linspace(0.6, 1.4, n_users)[:, None]
    taken = rng.random(alike.shape) < chance
    shown = taken & (rng.random(alike.shape) < share)
    return taken, shown, (1 - share) * chance / (1 - share * chance)


@pytest.fixture(scope="module")
def fitted() -> GraphRanker:
    return GraphRanker(**SMALL).fit(drawn()[1].astype(float))


def all_of(model: GraphRanker, user: Any) -> np.ndarray:
    return model.predict_proba(user, model.interactions_.item_ids)


def test_probabilities_are_those_of_the_part_that_is_missing(fitted):
    taken, shown, chances = drawn()
    found = np.stack([all_of(fitted, user) for user in range(300)])
    new = ~shown
    assert 0 <= found.min() < found.max() <= 1
    assert calibration_error(taken[new], found[new]) < 0.02
    assert found[new].mean() == pytest.approx(chances[new].mean(), rel=0.1)


def test_a_higher_score_of_a_user_has_no_lower_probability(fitted):
    for user in (0, 7, 100):
        scores, found = fitted.predict(user, fitted.interactions_.item_ids), all_of(fitted, user)
        assert (np.diff(found[np.argsort(scores)]) >= 0).all()


@pytest.mark.parametrize("at_random", [True, False])
def test_a_calibration_finds_the_chances_of_ranks(at_random):
    rng = np.random.default_rng(1)
    n_users, n_items = 400, 50
    scores, chance = np.tile(np.arange(n_items, 0, -1.0), (n_users, 1)), 0.7 / np.arange(1, n_items + 1) ** 0.7
    whole = rng.random(scores.shape) < chance
    seen = whole & (rng.random(scores.shape) < 0.64) if at_random else np.zeros_like(whole)
    hidden = whole & ~seen & (rng.random(scores.shape) < (4 / 9 if at_random else 1))
    seen[:, -1] = True
    found = RankCalibration.of(scores, *map(sp.csr_array, (seen, hidden)), at_random=at_random)
    asked = whole & (rng.random(scores.shape) < 0.8) if at_random else np.zeros_like(whole)
    asked[:, -1] = True
    probabilities = found.of_scores(scores, sp.csr_array(asked))
    assert probabilities[~asked].mean() == pytest.approx((whole & ~asked).sum() / (~asked).sum(), rel=0.15)
    assert calibration_error((whole & ~asked)[~asked], probabilities[~asked]) < 0.03


def test_unknown_ids_get_the_share_of_the_users_who_have_the_item(fitted):
    shown = drawn()[1]
    with pytest.warns(DataWarning, match="unknown"):
        found = fitted.predict_proba([0, -5, 0], [3, 3, 99])
    np.testing.assert_allclose(found[1:], [shown[:, 3].mean(), 0])
    with pytest.raises(UnknownIdError):
        fitted.predict_proba(-5, 3)
    np.testing.assert_allclose(fitted.predict_proba(-5, 3, unknown="mean"), shown[:, 3].mean())


def test_files_and_new_likes_keep_the_calibration(fitted, tmp_path):
    again = load(fitted.save(tmp_path / "model.air"))
    np.testing.assert_array_equal(all_of(again, 5), all_of(fitted, 5))
    best = int(fitted.recommend(5, 1)["item"].iloc[0])
    again.partial_fit(pd.DataFrame({"user": [5], "item": [best]}))
    changed = all_of(again, 5)
    assert 0 <= changed.min() < changed.max() <= 1


def test_a_checkpoint_keeps_the_calibration(fitted, tmp_path):
    data, file = drawn()[1].astype(float), tmp_path / "run.ckpt"
    GraphRanker(**SMALL).fit(data, checkpoint=file)
    np.testing.assert_array_equal(all_of(GraphRanker(**SMALL).fit(data, resume_from=file), 9), all_of(fitted, 9))


def test_without_hidden_parts_there_are_no_probabilities():
    model = AIR.for_likes(n_factors=4, n_steps=12, device="cpu", settings={}).fit(drawn()[1].astype(float))
    with pytest.raises(NotFittedError, match="settings=None"):
        model.predict_proba(0, 0)


def test_parts_hidden_in_time_have_probabilities_too():
    users, items = np.nonzero(drawn(60, 30)[1])
    times = np.random.default_rng(0).random(users.size)
    data = pd.DataFrame({"user": users, "item": items, "timestamp": times})
    found = GraphRanker(**SMALL, validation="last").fit(data)
    probabilities = all_of(found, 0)
    assert 0 <= probabilities.min() < probabilities.max() <= 1
    assert not found._fitted().calibration.at_random


@pytest.mark.parametrize("values", [np.zeros(3), np.full(10, np.nan)])
def test_a_damaged_calibration_is_refused(values):
    with pytest.raises(ValueError, match="calibration"):
        RankCalibration.of_array(values)
