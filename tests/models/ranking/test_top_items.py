"""The best items of many users: all scores and the rule of ties are the judges, memory is that of a block."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import MODELS, USERS, fitted, frame, with_factors

from air_recsys import GlobalMean
from air_recsys.exceptions import DataError, DeviceError, ParameterError
from air_recsys.models import GraphRanker
from air_recsys.models.ranking import catalogue
from air_recsys.models.ranking.ties import TOLERANCE, best_of
from air_recsys.models.ranking.top_items import top_items


def fails(error, message):
    return pytest.raises(error, match=re.escape(message))


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def by_the_rule(scores: np.ndarray, n: int, tolerance: float) -> tuple[list[int], list[float]]:
    """Return the first n of some scores, in plain Python; -inf is left out."""
    order = sorted(np.flatnonzero(np.isfinite(scores)), key=lambda item: -scores[item])
    tied: list[list[int]] = []
    for item in order:
        if tied and scores[tied[-1][-1]] - scores[item] <= tolerance:
            tied[-1].append(int(item))
        else:
            tied.append([int(item)])
    items = [item for tie in tied for item in sorted(tie)][:n]
    shown = [float(scores[tie[0]]) for tie in tied for _ in tie][:n]
    return items + [-1] * (n - len(items)), shown + [-np.inf] * (n - len(shown))


def judged(
    users: np.ndarray, items: np.ndarray, offsets: np.ndarray, n: int, seen: Any = False
) -> tuple[np.ndarray, ...]:
    """Return lists and scores by all scores in extended precision, (b, n) each."""
    wide = [array.astype(np.longdouble) for array in (users, items, offsets)]
    scores = np.where(seen, -np.inf, (wide[0][:, None] * wide[1]).sum(axis=2) + wide[2]).astype(np.float64)
    reach = np.abs(users).astype(float) @ np.abs(items).astype(float).max(axis=0) + np.abs(offsets).max()
    rows = [by_the_rule(row, n, TOLERANCE * float(size)) for row, size in zip(scores, reach, strict=True)]
    return tuple(np.array([row[part] for row in rows]).reshape(-1, n) for part in (0, 1))


def copies(seed: int, n_users: int, n_items: int, width: int, n_kinds: int, dtype: Any) -> list[np.ndarray]:
    """Factors and offsets of users, and of items each of which is one of some kinds."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(n_kinds, size=n_items)
    users, items, offsets = (rng.normal(size=shape) for shape in ((n_users, width), (n_kinds, width), n_kinds))
    return [array.astype(dtype) for array in (users, items[kind], offsets[kind])]


# -------------------------------------------------------------------- the rule of ties


@settings(max_examples=150)
@given(
    st.lists(st.one_of(st.integers(0, 12), st.just(-np.inf)), min_size=1, max_size=30),
    st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    st.data(),
)
def test_ties_are_chained_and_settled_before_the_cut(values, tolerance, data):
    scores = np.array(values, dtype=float)
    n = data.draw(st.integers(1, len(values)))
    items, shown = best_of(scores[None], n, tolerance / TOLERANCE)
    assert (items[0].tolist(), shown[0].tolist()) == by_the_rule(scores, n, tolerance)


def test_a_tie_longer_than_a_few_steps_is_followed_to_its_end():
    scores = np.arange(40.0, 0.0, -1.0)[None]
    scores = np.concatenate([scores, scores[:, ::-1]])
    items, shown = best_of(scores, 3, 1 / TOLERANCE)
    assert items.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert (shown == 40).all()
    assert best_of(scores, 3, 0.5 / TOLERANCE)[0].tolist() == [[0, 1, 2], [39, 38, 37]]


def test_rows_of_one_block_have_tolerances_of_their_own(blocks_of):
    scores = np.tile([1.0, 2.0, 3.0], (3, 1))
    expected = [[2, 1], [0, 1], [2, 1]]
    reach = np.array([0.5, 1.0, np.inf]) / TOLERANCE
    assert best_of(scores, 2, reach)[0].tolist() == expected  # where there is no bound nothing but equal scores ties
    blocks_of(1)
    assert best_of(scores, 2, reach)[0].tolist() == expected


# -------------------------------------------------------------------- lists from factors


@pytest.mark.order
@settings(max_examples=150)
@given(
    st.integers(0, 2**32),
    st.sampled_from([(4, 1), (4, 5), (20, 60), (4, 300), (0, 5)]),
    st.integers(1, 300),
    st.integers(0, 5),
    st.integers(1, 30),
    st.sampled_from([np.float32, np.float64, np.int64]),
    st.sampled_from([0.0, 0.5, 0.99]),
)
def test_lists_are_those_of_all_scores_in_extended_precision(seed, sizes, n_items, width, n, dtype, share):
    """Whole numbers are exact in every order of addition, and rich in ties."""
    n_users, n_kinds = sizes
    arrays = copies(seed, n_users, n_items, width, n_kinds, dtype)
    seen = np.random.default_rng(seed).random((n_users, n_items)) < share
    hidden, before = sp.csr_array(seen), [array.copy() for array in arrays]
    items, scores = top_items(*arrays, n, seen=hidden, block_size=3)
    expected = judged(*arrays, n, seen)
    np.testing.assert_array_equal(items, expected[0])
    np.testing.assert_allclose(scores, expected[1], rtol=1e-5 if dtype is np.float32 else 1e-9, atol=1e-6)
    assert (items.dtype, scores.dtype) == (np.int64, np.result_type(dtype, np.float32))
    assert_same(arrays, before)  # the arguments stay as they were
    assert hidden.nnz == seen.sum()


@pytest.mark.order
@pytest.mark.parametrize(
    ("dtype", "n_kinds"), [(np.float32, 1), (np.float64, 40), (np.float32, 700), (np.float64, 5000)]
)
def test_batches_blocks_and_threads_change_no_bit(dtype, n_kinds):
    users, items, offsets = copies(0, 50, 2000, 33, n_kinds, dtype)
    seen = sp.csr_array(np.random.default_rng(0).random((50, 2000)) < 0.1)
    expected = top_items(users, items, offsets, 12, seen=seen)
    np.testing.assert_array_equal(expected[0], judged(users, items, offsets, 12, seen.toarray())[0])
    for block_size in (1, 7, 64):
        assert_same(top_items(users, items, offsets, 12, seen=seen, block_size=block_size), expected)
    alone = [top_items(users[[row]], items, offsets, 12, seen=seen[[row]]) for row in range(50)]
    assert_same([np.concatenate(column) for column in zip(*alone, strict=True)], expected)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            assert_same(top_items(users, items, offsets, 12, seen=seen), expected)
    finally:
        torch.set_num_threads(before)


@pytest.mark.order
@pytest.mark.parametrize(("n_kinds", "n"), [(1, 40), (30, 10), (600, 1)])
def test_noise_of_the_size_of_rounding_changes_no_list(n_kinds, n):
    users, items, offsets = copies(1, 30, 1000, 20, n_kinds, np.float64)
    expected, scores = top_items(users, items, offsets, n)
    rng = np.random.default_rng(2)
    for _ in range(5):
        noisy = [array * (1 + 1e-15 * rng.uniform(-1, 1, array.shape)) for array in (users, items, offsets)]
        found, others = top_items(*noisy, n)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_allclose(others, scores, rtol=0, atol=1e-12)


@pytest.mark.order
@pytest.mark.parametrize(("copies_of_each", "bits"), [(1, 20), (5, 30), (50, 20), (1000, 30)])
def test_scores_that_the_fast_product_cannot_tell_apart_are_told(copies_of_each, bits):
    """Single precision holds 24 bits: the offsets differ by less, and are turned into factors of two coordinates."""
    steps = np.repeat(np.random.default_rng(0).permutation(2000 // copies_of_each), copies_of_each)
    items = np.stack([np.full(2000, 1.0), steps * 2.0**-bits], axis=1).astype(np.float32)
    users = np.array([[1, 1], [1, -1], [1000, 3]], dtype=np.float32)
    found, _ = top_items(users, items, np.zeros(2000, np.float32), 10)
    np.testing.assert_array_equal(found, judged(users, items, np.zeros(2000), 10)[0])


@pytest.mark.order
def test_a_product_of_less_precision_makes_the_same_lists():
    """As torch gives it to who asks for it."""
    users, items, offsets = copies(4, 20, 1500, 16, 900, np.float32)
    expected = top_items(users, items, offsets, 10)
    try:
        for precision in ("high", "medium"):
            torch.set_float32_matmul_precision(precision)
            assert_same(top_items(users, items, offsets, 10), expected)
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e18, 1e30])
def test_factors_whose_products_leave_single_precision_rank_by_double(scale):
    users, items, offsets = copies(5, 6, 400, 5, 200, np.float32)
    users, items, offsets = users * np.float32(scale), items * np.float32(scale), 0 * offsets
    found, scores = top_items(users, items, offsets, 8)
    np.testing.assert_array_equal(found, judged(users, items, offsets, 8)[0])
    assert not np.isnan(scores).any()


def test_offsets_of_infinity_leave_out_or_come_first():
    users, items = np.ones((2, 1), np.float32), np.arange(300, dtype=np.float32)[:, None] / 7
    offsets = np.zeros(300, np.float32)
    offsets[[299, 5]], offsets[[7, 3]] = -np.inf, np.inf
    assert top_items(users, items, offsets, 4)[0].tolist() == [[3, 7, 298, 297]] * 2
    everything, scores = top_items(users, items, np.full(300, -np.inf, np.float32), 4)
    assert (everything == -1).all()
    assert np.isneginf(scores).all()


def test_candidates_suffice_for_ordinary_factors(monkeypatch):
    """Scoring all items again in double precision is for ties; otherwise lists would take many times as long."""
    monkeypatch.setattr(catalogue.Catalogue, "exact_of_all", lambda *_: pytest.fail("scored all items again"))
    for n, n_kinds in ((10, 5000), (100, 5000), (10, 1000)):  # five copies of each item
        top_items(*copies(0, 300, 5000, 40, n_kinds, np.float32), n)


def test_a_large_job_and_ties_of_all_items_need_the_memory_of_a_block():
    """Users x items are 400 MB of scores; where all tie, 320 MB of them in double precision."""
    pytest.importorskip("resource", reason="needs Unix")
    code = """
import resource
import numpy as np, torch
from air_recsys.models.ranking.top_items import top_items
torch.set_num_threads(1)

def grown(users, items, offsets):
    top_items(users[:200], items, offsets, 10)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lists, _ = top_items(users, items, offsets, 10)
    return lists, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

rng = np.random.default_rng(0)
_, large = grown(*(rng.normal(size=shape).astype("f4") for shape in ((25_000, 4), (4_000, 4), (4_000,))))
lists, tied = grown(*(np.zeros(shape, "f4") for shape in ((2_000, 2), (20_000, 2), 20_000)))
assert (lists == np.arange(10)).all()
print(large, tied)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    large, tied = (int(grown) * (1 if sys.platform == "darwin" else 1024) for grown in run.stdout.split())  # bytes
    lists = 25_000 * 10 * (8 + 4)
    assert large < lists + 50e6
    assert tied < 120e6


# -------------------------------------------------------------------- ties in the lists of models


@pytest.mark.order
@pytest.mark.parametrize("name", ["AIR-ratings", "AIR-variational", "DMF", "BiasModel"])
def test_copies_of_items_are_recommended_in_their_order(name):
    model = fitted(MODELS[name])
    kind = np.arange(9) % 3
    item_factors, item_biases = model.item_factors_[kind], model.item_biases_[kind]
    with_factors(model, model.factors_._replace(item_factors=item_factors, item_biases=item_biases))
    users, items = model.interactions_.user_ids, model.interactions_.item_ids
    together = model.recommend(users, 9, exclude_seen=False)
    for user in users:
        own = together[together["user"] == user].reset_index(drop=True)
        pd.testing.assert_frame_equal(model.recommend(user, 9, exclude_seen=False), own, check_exact=True)
        places = np.searchsorted(items, own["item"].to_numpy()).reshape(3, -1)
        assert (np.diff(places, axis=1) == 3).all()


@pytest.mark.order
def test_cosines_of_copies_come_in_their_order():
    model: Any = fitted(MODELS["DMF"])
    lengths = 2.0 ** np.arange(9, dtype=np.float32)
    factors = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)[np.arange(9) % 3]
    with_factors(model, model.factors_._replace(item_factors=factors * lengths[:, None]))
    items = model.interactions_.item_ids
    for place in range(9):
        found = model.similar_items(items[place], 8)
        others = np.searchsorted(items, found["item"].to_numpy())
        alike = [other for other in range(place % 3, 9, 3) if other != place]
        assert others[:2].tolist() == alike
        assert (np.diff(others[2:].reshape(2, 3), axis=1) == 3).all()


@pytest.mark.order
@pytest.mark.parametrize("weights", [{}, {"factor_weight": 0.0}])
def test_a_ranker_says_the_same_to_one_user_and_to_many(weights):
    """Users of three groups; each item has a copy, with the same users, a hundred places later."""
    rng = np.random.default_rng(0)
    half = rng.random((60, 100)) < np.where(np.arange(60)[:, None] % 3 == np.arange(100) % 3, 0.4, 0.02)
    data = sp.csr_array(np.hstack([half, half]).astype(float))
    model = GraphRanker(n_factors=8, n_steps=50, settings=weights).fit(data)
    together = model.recommend(range(60), 30)
    alone = pd.concat([model.recommend(user, 30) for user in range(60)], ignore_index=True)
    pd.testing.assert_frame_equal(together.drop(columns="score"), alone.drop(columns="score"))
    # Factors are divided by lengths in single precision, which depend on who else is asked for.
    np.testing.assert_allclose(together["score"], alone["score"], rtol=0, atol=1e-13 if weights else 1e-6)
    folded = model.fold_in(data).recommend(range(60), 30)
    for user in (0, 7, 59):
        own = model.fold_in(data[[user]]).recommend(0, 30)
        assert own["item"].tolist() == folded["item"][folded["user"] == user].tolist()
    if weights:  # sums in one order: copies tie, and the first comes first
        own = together[together["user"] == 0]["item"].to_numpy()
        assert (own[1::2] - own[::2] == 100).all()


# -------------------------------------------------------------------- what is taken


def test_views_lists_and_arrays_that_cannot_be_written_to_are_taken():
    users, items, offsets = copies(0, 50, 40, 6, 40, np.float64)
    views: list[Any] = [np.asfortranarray(users)[::-1], items.T.copy().T, np.repeat(offsets, 2)[::2]]
    expected = top_items(users[::-1].copy(), items, offsets, 5)
    for taken in (views, [view.copy() for view in views]):
        for array in taken:
            array.flags.writeable = False
        assert_same(top_items(*taken, 5), expected)
    assert_same(top_items(*(array.tolist() for array in views), 5), expected)


def test_stored_zeros_and_any_sparse_format_hide_items():
    users, items, offsets = np.ones((2, 1)), np.array([[3.0], [2.0], [1.0]]), np.zeros(3)
    stored = sp.coo_array((np.zeros(2), ([0, 0], [0, 1])), shape=(2, 3))
    for seen in (stored, stored.tocsc(), sp.csr_matrix(stored)):
        found = top_items(users, items, offsets, 2, seen=seen)
        assert_same(found, ([[2, -1], [0, 1]], [[1, -np.inf], [3, 2]]))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"n": 0}, ParameterError, "n must be an integer >= 1, found 0"),
        ({"n": 2.5}, ParameterError, "n must be an integer >= 1, found 2.5"),
        ({"block_size": 0}, ParameterError, "block_size must be an integer >= 1, found 0"),
        ({"device": "gpu"}, ParameterError, "device must be 'auto', 'cpu', 'cuda' or 'cuda:N', found 'gpu'"),
        ({"item_factors": np.ones((3, 5))}, DataError, "found shapes (2, 4), (3, 5) and (3,)"),
        ({"item_offsets": np.ones(2)}, DataError, "found shapes (2, 4), (3, 4) and (2,)"),
        ({"user_factors": np.ones(4)}, DataError, "found shapes (4,), (3, 4) and (3,)"),
        ({"seen": np.ones((2, 3))}, DataError, "expected seen as a 2-D SciPy sparse matrix"),
        ({"seen": sp.csr_array((3, 3))}, DataError, "expected seen with 2 users, found 3"),
        ({"user_factors": np.full((2, 4), np.nan)}, DataError, "expected scores without NaN"),
        ({"user_factors": [[1, -1, 0, 0], [np.inf, -np.inf, 0, 0]]}, DataError, "expected scores without NaN"),
    ],
)
def test_bad_input_is_refused(change, error, message):
    arguments: dict[str, Any] = {"user_factors": np.ones((2, 4)), "item_factors": np.ones((3, 4))}
    with fails(error, message):
        top_items(**arguments | {"item_offsets": np.ones(3), "n": 2} | change)


def test_a_gpu_that_is_not_there_is_an_error(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    message = "device='cuda' was asked for, found 0 CUDA device(s)"
    with fails(DeviceError, message):
        top_items(np.ones((2, 4)), np.ones((3, 4)), np.ones(3), 3, device="cuda")
    for asked in (USERS, "nobody", []):
        with fails(DeviceError, message):
            GlobalMean().fit(frame()).recommend(asked, 3, device="cuda")
