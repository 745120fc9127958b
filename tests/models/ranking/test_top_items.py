"""The best items of many users: the naive dense ranking is the judge, ties and memory included."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import ITEMS, MODELS, USERS, dense, frame

from air_recsys import GlobalMean
from air_recsys.exceptions import DataError, DeviceError, ParameterError
from air_recsys.models.ranking import top_items as module
from air_recsys.models.ranking.top_items import top_items

pytestmark = pytest.mark.order

BLOCKS = (1, 7, None)


def fails(error, message):
    return pytest.raises(error, match=re.escape(message))


def naive(users, items, offsets, n, seen=None):
    """All scores in a dense array, sorted by score and then by index."""
    scores = (np.asarray(users) @ np.asarray(items).T + np.asarray(offsets)).astype(float)
    if seen is not None:
        scores = np.where(seen, -np.inf, scores)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :n]
    best = np.take_along_axis(scores, order, axis=1)
    padding = [(0, 0), (0, n - order.shape[1])]
    order = np.pad(np.where(np.isneginf(best), -1, order), padding, constant_values=-1)
    return order, np.pad(best, padding, constant_values=-np.inf)


def random_factors(n_users=50, n_items=40, width=6, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (n_users, width), (n_items, width), (n_items,)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def as_seen(mask):
    return sp.csr_array(mask)


@st.composite
def whole_numbers(draw):
    """Factors of small whole numbers, exact in every order of addition and rich in ties, with a mask."""
    n_users, n_items, width = (draw(st.integers(low, high)) for low, high in ((0, 20), (1, 25), (0, 4)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    largest = draw(st.integers(0, 4))
    shapes = (n_users, width), (n_items, width), (n_items,)
    arrays = [rng.integers(-largest, largest + 1, shape) for shape in shapes]
    mask = rng.random((n_users, n_items)) < draw(st.sampled_from([0.0, 0.3, 0.9, 1.0]))
    return arrays, mask, draw(st.integers(1, n_items + 3))


@settings(max_examples=150)
@given(whole_numbers(), st.sampled_from(BLOCKS), st.sampled_from([np.float32, np.float64, np.int64]), st.booleans())
def test_the_naive_ranking_comes_out(case, block_size, dtype, masked):
    arrays, mask, n = case
    seen = mask if masked else None
    expected, best = naive(*arrays, n, seen)
    found = [array.astype(dtype) for array in arrays]
    items, scores = top_items(*found, n, seen=None if seen is None else as_seen(seen), block_size=block_size)
    assert items.dtype == np.int64
    np.testing.assert_array_equal(items, expected)
    np.testing.assert_array_equal(scores, best)


@pytest.mark.parametrize("block_size", BLOCKS)
@pytest.mark.parametrize("width", [1, 6, 64])
def test_real_factors_rank_as_in_the_naive_ranking(block_size, width):
    arrays = random_factors(width=width)
    mask = np.random.default_rng(1).random((50, 40)) < 0.3
    expected, best = naive(*arrays, 10, mask)
    items, scores = top_items(*arrays, 10, seen=as_seen(mask), block_size=block_size)
    np.testing.assert_array_equal(items, expected)
    np.testing.assert_allclose(scores, best, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_have_the_type_of_the_factors(dtype):
    _, scores = top_items(*random_factors(dtype=dtype), 3)
    assert scores.dtype == dtype


def test_views_and_arrays_that_cannot_be_written_to_are_taken():
    arrays = random_factors()
    users, items, offsets = arrays
    views: list[Any] = [np.asfortranarray(users)[::-1], items.T.copy().T, np.repeat(offsets, 2)[::2]]
    for taken in (views, [view.copy() for view in views]):
        for array in taken:
            array.flags.writeable = False
        expected, best = naive(views[0], items, offsets, 5)
        found, scores = top_items(*taken, 5)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_allclose(scores, best, rtol=1e-12)
    np.testing.assert_array_equal(top_items(*(array.tolist() for array in arrays), 5)[0], naive(*arrays, 5)[0])


def test_stored_zeros_and_any_sparse_format_hide_items():
    users, items, offsets = np.ones((2, 1)), np.array([[3.0], [2.0], [1.0]]), np.zeros(3)
    stored = sp.coo_array((np.zeros(2), ([0, 0], [0, 1])), shape=(2, 3))
    for seen in (stored, stored.tocsc(), sp.csr_matrix(stored)):
        found, scores = top_items(users, items, offsets, 2, seen=seen)
        np.testing.assert_array_equal(found, [[2, -1], [0, 1]])
        np.testing.assert_array_equal(scores, [[1, -np.inf], [3, 2]])


def test_the_arguments_stay_as_they_were():
    arrays, seen = random_factors(), as_seen(np.eye(50, 40, dtype=bool))
    before = [array.copy() for array in arrays], seen.copy()
    top_items(*arrays, 5, seen=seen)
    for array, old in zip(arrays, before[0], strict=True):
        np.testing.assert_array_equal(array, old)
    assert (seen != before[1]).nnz == 0


# -------------------------------------------------------------------- memory


def block_shapes(monkeypatch):
    """Record the shape of every array of scores."""
    shapes, hide = [], module._hide

    def spy(scores, seen, start=0):
        shapes.append(tuple(scores.shape))
        return hide(scores, seen, start)

    monkeypatch.setattr(module, "_hide", spy)
    return shapes


def test_blocks_have_the_size_asked_for(monkeypatch):
    shapes = block_shapes(monkeypatch)
    top_items(*random_factors(), 3, block_size=20)
    assert shapes == [(20, 40), (20, 40), (10, 40)]


def test_default_blocks_stay_in_the_cache_of_a_processor(monkeypatch):
    shapes, rng = block_shapes(monkeypatch), np.random.default_rng(0)
    top_items(rng.normal(size=(12_000, 2)), rng.normal(size=(100, 2)), np.zeros(100), 3)
    assert max(shapes) == (2**20 // 100, 100)
    shapes.clear()
    top_items(rng.normal(size=(100, 2)), rng.normal(size=(20_000, 2)), np.zeros(20_000), 3)
    assert max(shapes) == (64, 20_000)  # no fewer rows than a product is worth


# -------------------------------------------------------------------- bad input


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
        ({"seen": np.ones((2, 3))}, DataError, "expected seen as a SciPy sparse matrix"),
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
        top_items(*random_factors(), 3, device="cuda")
    for asked in (USERS, "nobody", []):
        with fails(DeviceError, message):
            GlobalMean().fit(frame()).recommend(asked, 3, device="cuda")


# -------------------------------------------------------------------- through a model


@pytest.mark.parametrize("name", ["AIR-ratings", "DMF", "BiasModel", "GlobalMean"])
@pytest.mark.parametrize("exclude_seen", [True, False])
def test_a_model_recommends_by_the_naive_ranking(name, exclude_seen):
    model = MODELS[name]().fit(dense())
    n_users, n_items = dense().shape
    mask = ~np.isnan(dense()) if exclude_seen else None
    factors = model.user_factors_.astype(float), model.item_factors_.astype(float), model.item_biases_
    expected, _ = naive(*factors, n_items, mask)
    found = model.recommend(range(n_users), n_items, exclude_seen)
    for user in range(n_users):
        own = found[found["user"] == user]
        assert own["item"].tolist() == expected[user][expected[user] >= 0].tolist()
        np.testing.assert_allclose(own["score"], model.predict(user, own["item"]), rtol=1e-5, atol=1e-6)


def test_scores_that_tie_come_in_the_order_of_the_items():
    found = GlobalMean().fit(frame()).recommend(USERS, 4, exclude_seen=False)
    assert found["item"].tolist() == ITEMS[:4] * len(USERS)


def test_users_of_any_type_of_id_are_named_as_they_were_asked_for():
    table = frame()
    named = table.assign(user=[(int(user[1:]), "x") for user in table["user"]])
    expected = GlobalMean().fit(table).recommend([USERS[2], "nobody", USERS[1], USERS[2]], 2)
    found = GlobalMean().fit(named).recommend([(2, "x"), "nobody", (1, "x"), (2, "x")], 2)
    assert found["user"].tolist() == [(2, "x")] * 2 + ["nobody"] * 2 + [(1, "x")] * 2 + [(2, "x")] * 2
    pd.testing.assert_frame_equal(found.drop(columns="user"), expected.drop(columns="user"))
