"""The best items on the GPU are those on the CPU; skipped where there is no GPU."""

import emulation
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from gpu_cases import needs_gpu

from air_recsys import AIR
from air_recsys.models.ranking.top_items import top_items

pytestmark = needs_gpu

N_USERS, N_ITEMS = 300, 200


def arrays(largest):
    """Factors of whole numbers: exact in any order of addition, with many ties."""
    rng = np.random.default_rng(0)
    shapes = (N_USERS, 8), (N_ITEMS, 8), (N_ITEMS,)
    return [rng.integers(-largest, largest + 1, shape).astype(np.float32) for shape in shapes]


def seen(share):
    return sp.csr_array(np.random.default_rng(1).random((N_USERS, N_ITEMS)) < share)


@pytest.mark.parametrize(
    ("largest", "share", "n"),
    [(0, 0.3, 10), (0, 0.99, N_ITEMS), (1, 0.0, N_ITEMS + 3), (1, 0.3, 1), (3, 0.99, 10), (3, 0.0, N_ITEMS)],
)
def test_lists_with_ties_are_the_same_to_the_bit(largest, share, n):
    for block_size in (7, None):
        options = {"seen": seen(share), "block_size": block_size}
        expected, best = top_items(*arrays(largest), n, **options)
        items, scores = top_items(*arrays(largest), n, device="cuda", **options)
        np.testing.assert_array_equal(items, expected)
        np.testing.assert_array_equal(scores, best)


@pytest.mark.order
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_kinds", [1, 30, 3000])
def test_copies_of_items_are_ranked_there_as_here_to_the_bit(dtype, n_kinds):
    rng = np.random.default_rng(3)
    kind = rng.integers(n_kinds, size=4000)
    users, items, offsets = (rng.normal(size=shape).astype(dtype) for shape in ((200, 33), (n_kinds, 33), n_kinds))
    found, expected = (
        top_items(users, items[kind], offsets[kind], 12, device=device, block_size=64) for device in ("cuda", "cpu")
    )
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


def test_memory_is_that_of_a_block():
    rng = np.random.default_rng(0)
    n_users, most = (20_000, 0.2e9) if emulation.is_on() else (100_000, 0.6e9)  # `topk` of a real one sorts
    factors = [rng.normal(size=shape).astype(np.float32) for shape in ((n_users, 4), (5_000, 4), (5_000,))]
    torch.cuda.reset_peak_memory_stats()
    top_items(*factors, 10, device="cuda")  # 20 KB of scores a user, in blocks of 67 MB
    assert torch.cuda.max_memory_allocated() < most


def test_a_model_recommends_there_what_it_recommends_here():
    ratings = np.where(seen(0.3).toarray(), np.random.default_rng(2).integers(1, 6, (N_USERS, N_ITEMS)), np.nan)
    model = AIR.for_completion(n_factors=4, n_epochs=20, dtype="float64", random_state=0, device="cpu").fit(ratings)
    users = [*range(N_USERS), -1]
    found, expected = (model.recommend(users, 7, device=device) for device in ("cuda", "cpu"))
    pd.testing.assert_frame_equal(found.drop(columns="score"), expected.drop(columns="score"))
    np.testing.assert_allclose(found["score"], expected["score"], rtol=1e-9)
