"""`GraphRanker` and `DrugTargetAIR` on a GPU: those of the CPU up to rounding; skipped where there is no GPU."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from gpu_cases import needs_gpu, peak_of
from power_cuts import PowerCut

from air_recsys import Interactions
from air_recsys.dti import DrugTargetAIR
from air_recsys.models import GraphRanker
from air_recsys.nn.softmax import ColumnFactors
from air_recsys.training import train
from air_recsys.training.softmax import SoftmaxTrainer, SoftmaxTraining

pytestmark = needs_gpu


def grouped(n_rows, n_columns, most):
    """Ones that follow three groups."""
    chance = np.where(np.arange(n_rows)[:, None] % 3 == np.arange(n_columns) % 3, most, 0.05)
    return (np.random.default_rng(0).random(chance.shape) < chance).astype(float)


LIKES = Interactions.from_csr(sp.csr_array(grouped(60, 45, 0.5)))


def ranker(device, **parameters):
    return GraphRanker(n_factors=8, n_steps=30, device=device, **parameters)


def test_factors_are_those_of_the_cpu():
    one, other = (ranker(device, settings={}).fit(LIKES) for device in ("cuda", "cpu"))
    for name in ("user_factors_", "item_factors_"):
        found, expected = getattr(one, name), getattr(other, name)
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, expected, atol=0.02)
    pairs = LIKES.user_ids[LIKES.user_index], LIKES.item_ids[LIKES.item_index]
    assert np.corrcoef(*(model.predict(*pairs) for model in (one, other)))[0, 1] > 0.999


def test_samples_of_columns_are_those_of_the_cpu():
    shape = 20, 50_001  # of more than 50,000 columns a step takes a part
    columns = np.arange(60) * 833
    entries = sp.csr_array((np.ones(60, np.float32), (np.arange(60) % 20, columns)), shape=shape)
    found = []
    for device in ("cuda", "cpu"):
        random = torch.Generator().manual_seed(0)
        start = [(0.1 * torch.randn(shape[1], 4, generator=random)).to(device) for _ in range(2)]
        trainer = SoftmaxTrainer(
            entries, ColumnFactors(*start, torch.ones(shape[1], device=device)), SoftmaxTraining(5), 0
        )
        assert train(trainer).error is None
        found.append(trainer.factors.targets.cpu()[columns])
    np.testing.assert_allclose(*found, atol=0.02)


def test_a_search_chooses_saves_and_goes_on_where_it_was_cut(tmp_path, monkeypatch):
    path, expected = tmp_path / "run.ckpt", ranker("cuda").fit(LIKES)
    assert len(expected.history_) > 20
    again = GraphRanker.load(expected.save(tmp_path / "ranker.air"))
    assert again.recommend(LIKES.user_ids, 3).equals(expected.recommend(LIKES.user_ids, 3))
    advance, taken = SoftmaxTrainer.advance, []

    def cut(trainer, position):
        if len(taken) == 7:
            raise PowerCut
        taken.append(position)
        advance(trainer, position)

    with monkeypatch.context() as patched:
        patched.setattr(SoftmaxTrainer, "advance", cut)
        with pytest.raises(PowerCut):
            ranker("cuda").fit(LIKES, checkpoint=path, every=4)
    resumed = ranker("cuda").fit(LIKES, resume_from=path)
    assert resumed.settings_ == expected.settings_
    np.testing.assert_allclose(resumed.item_factors_, expected.item_factors_, atol=1e-4)


def test_in_implicit_factors_are_those_of_the_cpu():
    pytest.importorskip("implicit")
    from air_recsys.adapters.implicit import ImplicitAIR

    one, other = (ImplicitAIR(factors=8, random_state=0, device=device) for device in ("cuda", "cpu"))
    for model in (one, other):
        model.fit(sp.csr_matrix(LIKES.to_csr()), show_progress=False)
    assert isinstance(one.item_factors, np.ndarray)
    np.testing.assert_allclose(one.user_factors, other.user_factors, atol=0.02)
    np.testing.assert_allclose(one.item_factors, other.item_factors, atol=0.02)


WAYS = {
    "all": {},
    "some": {"items": LIKES.item_ids[::2].tolist()},
    "own": {"exclude": {0: [0, 1, 2], 7: LIKES.item_ids.tolist()}},
    "seen too": {"exclude_seen": False, "n": 45},
}


@pytest.mark.parametrize("settings", [{}, {"factor_weight": 0.0}, {"regression_weight": 0.0}], ids=str)
@pytest.mark.parametrize("most_exact", [100, 10], ids=["exact", "sparse"])
def test_lists_are_those_of_the_cpu(settings, most_exact, monkeypatch):
    monkeypatch.setattr("air_recsys.models.graph_ranker.regression.MOST_EXACT", most_exact)
    monkeypatch.setattr("air_recsys.models.graph_ranker.lists._MOST_ENTRIES", 45 * 7)  # blocks of seven users
    likes = LIKES.to_csr().toarray()
    if most_exact > 45:
        likes = np.repeat(likes, 2, axis=1)[:, :45]  # items that tie: weights of a sparse regression round apart
    model = ranker("cpu", settings=settings).fit(sp.csr_array(likes))
    for way in WAYS.values():
        found, expected = (model.recommend([*range(60), -1], device=device, **way) for device in ("cuda", "cpu"))
        pd.testing.assert_frame_equal(found.drop(columns="score"), expected.drop(columns="score"))
        np.testing.assert_allclose(found["score"], expected["score"], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("most_exact", [5000, 10], ids=["exact", "sparse"])
def test_lists_take_the_memory_of_some_blocks(most_exact, monkeypatch):
    monkeypatch.setattr("air_recsys.models.graph_ranker.regression.MOST_EXACT", most_exact)
    monkeypatch.setattr("air_recsys.models.graph_ranker.lists._MOST_ENTRIES", 2**20)
    model = ranker("cpu", settings={}).fit(sp.csr_array(grouped(3000, 400, 0.05)))
    taken = peak_of(lambda: model.recommend(range(3000), device="cuda"))
    assert taken < 10 * 4 * 2**20 + 8 * 400**2


def test_products_rounded_as_tensor_cores_do_leave_the_lists():
    model = ranker("cpu", settings={}).fit(LIKES)
    expected = model.recommend(range(60), device="cpu")
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        found = model.recommend(range(60), device="cuda")
    finally:
        torch.set_float32_matmul_precision(before)
    assert found["item"].tolist() == expected["item"].tolist()


def similarity(n):
    points = np.random.default_rng(n).random((n, 2))
    return np.exp(-np.square(points[:, None] - points).sum(axis=2))


@pytest.mark.parametrize("settings", [{}, {"similarity_weight": "auto"}], ids=["preset", "auto"])
def test_drugs_and_targets_are_those_of_the_cpu_and_of_the_file(settings, tmp_path):
    table = pd.DataFrame(grouped(24, 17, 0.6))
    table = table.mask(np.random.default_rng(1).random(table.shape) < 0.1)
    one, other = (
        DrugTargetAIR(device=device, **settings).fit(table, similarity(24), similarity(17))
        for device in ("cuda", "cpu")
    )
    assert one.similarity_weight_ == other.similarity_weight_
    assert isinstance(one.scores_, np.ndarray)
    found = one.explain(0, 1)
    assert found.total() == pytest.approx(found.score)
    for each in (other, DrugTargetAIR.load(one.save(tmp_path / "dti.air"))):
        np.testing.assert_allclose(one.scores_, each.scores_, atol=1e-8)
        np.testing.assert_allclose(one.open_scores_, each.open_scores_, atol=1e-8)
