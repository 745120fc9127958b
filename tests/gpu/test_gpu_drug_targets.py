"""The completion of drugs and targets on a GPU: that of the CPU up to rounding; skipped where there is no GPU."""

import numpy as np
import pandas as pd
import pytest
from gpu_cases import needs_gpu

from air_recsys.dti import DrugTargetAIR

pytestmark = needs_gpu


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    chance = np.where(np.arange(24)[:, None] % 3 == np.arange(17) % 3, 0.6, 0.05)
    values = (rng.random(chance.shape) < chance).astype(float)
    values[rng.random(values.shape) < 0.1] = np.nan
    return pd.DataFrame(values)


def similarity(n):
    points = np.random.default_rng(n).random((n, 2))
    return np.exp(-np.square(points[:, None] - points).sum(axis=2))


@pytest.mark.parametrize("settings", [{}, {"similarity_weight": "auto"}], ids=["preset", "auto"])
def test_scores_lists_and_explanations_are_those_of_the_cpu(table, settings):
    one, other = (
        DrugTargetAIR(device=device, **settings).fit(table, similarity(24), similarity(17))
        for device in ("cuda", "cpu")
    )
    assert one.similarity_weight_ == other.similarity_weight_
    assert isinstance(one.scores_, np.ndarray)
    np.testing.assert_allclose(one.scores_, other.scores_, atol=1e-8)
    np.testing.assert_allclose(one.open_scores_, other.open_scores_, atol=1e-8)
    found = one.explain(0, 1)
    assert found.total() == pytest.approx(found.score)


def test_a_file_of_a_gpu_answers_alike(table, tmp_path):
    model = DrugTargetAIR(device="cuda").fit(table)
    again = DrugTargetAIR.load(model.save(tmp_path / "dti.air"))
    np.testing.assert_array_equal(again.scores_, model.scores_)
    np.testing.assert_allclose(again.open_scores_, model.open_scores_, atol=1e-8)
