"""The factors of a `GraphRanker` trained on a GPU: those of the CPU up to rounding; skipped where there is no GPU."""

import numpy as np
import pytest
import scipy.sparse as sp
from gpu_cases import needs_gpu
from power_cuts import PowerCut

from air_recsys import Interactions
from air_recsys.models import GraphRanker
from air_recsys.training import softmax as training
from air_recsys.training.softmax import SoftmaxTrainer

pytestmark = needs_gpu


@pytest.fixture(scope="module")
def likes():
    rng = np.random.default_rng(0)
    chance = np.where(np.arange(60)[:, None] % 3 == np.arange(45) % 3, 0.5, 0.05)
    return Interactions.from_csr(sp.csr_array((rng.random(chance.shape) < chance).astype(float)))


def ranker(device, **parameters):
    return GraphRanker(n_factors=8, n_steps=30, device=device, **parameters)


def test_factors_are_those_of_the_cpu(likes):
    one, other = (ranker(device, settings={}).fit(likes) for device in ("cuda", "cpu"))
    for name in ("user_factors_", "item_factors_"):
        found, expected = getattr(one, name), getattr(other, name)
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, expected, atol=0.02)
    scores = [
        model.predict(likes.user_ids[likes.user_index], likes.item_ids[likes.item_index]) for model in (one, other)
    ]
    assert np.corrcoef(*scores)[0, 1] > 0.999


def test_a_search_with_factors_of_a_gpu_chooses_and_saves(likes, tmp_path):
    model = ranker("cuda").fit(likes)
    assert len(model.history_) > 20
    again = GraphRanker.load(model.save(tmp_path / "ranker.air"))
    assert again.recommend(likes.user_ids, 3).equals(model.recommend(likes.user_ids, 3))


def test_samples_of_columns_are_those_of_the_cpu(likes, monkeypatch):
    monkeypatch.setattr(training, "_MOST_COLUMNS", 40)
    monkeypatch.setattr(training, "_SAMPLE", 20)
    one, other = (ranker(device, settings={}).fit(likes) for device in ("cuda", "cpu"))
    np.testing.assert_allclose(one.item_factors_, other.item_factors_, atol=0.02)


def test_in_implicit_factors_are_those_of_the_cpu(likes):
    pytest.importorskip("implicit")
    from air_recsys.adapters.implicit import ImplicitAIR

    models = [ImplicitAIR(factors=8, random_state=0, device=device) for device in ("cuda", "cpu")]
    for model in models:
        model.fit(sp.csr_matrix(likes.to_csr()), show_progress=False)
    one, other = models
    assert isinstance(one.item_factors, np.ndarray)
    np.testing.assert_allclose(one.user_factors, other.user_factors, atol=0.02)
    np.testing.assert_allclose(one.item_factors, other.item_factors, atol=0.02)


def test_a_fit_that_goes_on_there_ends_where_one_that_ran_through_ends(likes, tmp_path, monkeypatch):
    path, expected = tmp_path / "run.ckpt", ranker("cuda").fit(likes)
    advance, taken = SoftmaxTrainer.advance, []

    def cut(trainer, position):
        if len(taken) == 20:
            raise PowerCut
        taken.append(position)
        advance(trainer, position)

    with monkeypatch.context() as patched:
        patched.setattr(SoftmaxTrainer, "advance", cut)
        with pytest.raises(PowerCut):
            ranker("cuda").fit(likes, checkpoint=path, every=4)
    resumed = ranker("cuda").fit(likes, resume_from=path)
    assert resumed.settings_ == expected.settings_
    np.testing.assert_allclose(resumed.item_factors_, expected.item_factors_, atol=1e-4)
