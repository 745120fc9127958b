"""Ties: one order by a rule, whatever computes the scores, for how many users at a time and by how many threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from model_cases import MODELS, fitted, with_factors

from air_recsys import AIR, BiasModel, Interactions
from air_recsys.models import GraphRanker
from air_recsys.models.ranking import catalogue
from air_recsys.models.ranking import top_items as module
from air_recsys.models.ranking.ties import TOLERANCE, best_of
from air_recsys.models.ranking.top_items import top_items

pytestmark = pytest.mark.order


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


def judged(users: np.ndarray, items: np.ndarray, offsets: np.ndarray, n: int, seen: np.ndarray) -> tuple[Any, Any]:
    """Return lists and scores by all scores in extended precision, (b, n) each."""
    wide = [array.astype(np.longdouble) for array in (users, items, offsets)]
    scores = np.where(seen, -np.inf, (wide[0][:, None] * wide[1]).sum(axis=2) + wide[2]).astype(np.float64)
    reach = np.abs(users).astype(float) @ np.abs(items).astype(float).max(axis=0) + np.abs(offsets).max()
    rows = [by_the_rule(row, n, TOLERANCE * float(size)) for row, size in zip(scores, reach, strict=True)]
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows])


def copies(seed: int, n_users: int, n_items: int, width: int, n_kinds: int, dtype: Any) -> list[np.ndarray]:
    """Factors and offsets of users, and of items each of which is one of some kinds."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(n_kinds, size=n_items)
    users, items, offsets = (rng.normal(size=shape) for shape in ((n_users, width), (n_kinds, width), n_kinds))
    return [array.astype(dtype) for array in (users, items[kind], offsets[kind])]


# -------------------------------------------------------------------- the rule


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


@settings(max_examples=150)
@given(
    st.integers(0, 2**32),
    st.sampled_from([1, 5, 60, 300]),
    st.integers(1, 300),
    st.integers(0, 5),
    st.integers(1, 30),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([0.0, 0.5, 0.99]),
)
def test_lists_are_those_of_all_scores_in_extended_precision(seed, n_kinds, n_items, width, n, dtype, share):
    arrays = copies(seed, 4, n_items, width, n_kinds, dtype)
    seen = np.random.default_rng(seed).random((4, n_items)) < share
    expected = judged(*arrays, n, seen)
    items, scores = top_items(*arrays, n, seen=sp.csr_array(seen), block_size=3)
    np.testing.assert_array_equal(items, expected[0])
    np.testing.assert_allclose(scores, expected[1], rtol=1e-5 if dtype is np.float32 else 1e-9, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_kinds", [1, 40, 700, 5000])
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


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n_kinds", [1, 30, 600])
@pytest.mark.parametrize("n", [1, 10, 40])
def test_noise_of_the_size_of_rounding_changes_no_list(n_kinds, n):
    users, items, offsets = copies(1, 30, 1000, 20, n_kinds, np.float64)
    expected, scores = top_items(users, items, offsets, n)
    rng = np.random.default_rng(2)
    for _ in range(5):
        noisy = [array * (1 + 1e-15 * rng.uniform(-1, 1, array.shape)) for array in (users, items, offsets)]
        found, others = top_items(*noisy, n)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_allclose(others, scores, rtol=0, atol=1e-12)


@pytest.mark.parametrize("copies_of_each", [1, 5, 50, 1000])
@pytest.mark.parametrize("bits", [20, 30])
def test_scores_that_the_fast_product_cannot_tell_apart_are_told(copies_of_each, bits):
    """Single precision holds 24 bits: the offsets differ by less, and are turned into factors of two coordinates."""
    steps = np.repeat(np.random.default_rng(0).permutation(2000 // copies_of_each), copies_of_each)
    items = np.stack([np.full(2000, 1.0), steps * 2.0**-bits], axis=1).astype(np.float32)
    users = np.array([[1, 1], [1, -1], [1000, 3]], dtype=np.float32)
    found, _ = top_items(users, items, np.zeros(2000, np.float32), 10)
    expected, _ = judged(users, items, np.zeros(2000), 10, np.zeros((3, 2000), dtype=bool))
    np.testing.assert_array_equal(found, expected)


def test_the_bound_of_the_fast_product_holds():
    """What decides whether a list is sure, for products of one sign and for such that cancel."""
    rng = np.random.default_rng(0)
    for width in (1, 7, 64, 300):
        for scale in (1e-30, 1.0, 1e15):
            users, items = (rng.normal(size=(n, width)).astype(np.float32) for n in (20, 500))
            users *= np.float32(scale)
            for factors in (items, np.abs(items)):
                items_of = catalogue.Catalogue(factors, np.zeros(500, np.float32), torch.device("cpu"))
                own = torch.from_numpy(users)
                error = items_of.error(items_of.reach(own))[:, None]
                near = items_of.approximate(own, torch.empty(20, 500)).double()
                assert ((near - items_of.exact_of_all(own)).abs() <= error).all()
                assert (items_of.exact_of_all(own).abs() <= items_of.reach(own)[:, None] * (1 + 1e-12)).all()


def test_both_ways_to_exact_scores_agree_to_the_bit(monkeypatch):
    users, items, offsets = (torch.from_numpy(array) for array in copies(3, 9, 700, 37, 700, np.float64))
    whole = catalogue.Catalogue(items.numpy(), offsets.numpy(), torch.device("cpu"))
    chosen = torch.from_numpy(np.random.default_rng(0).integers(700, size=(9, 50)))
    expected = whole.exact_of_all(users)
    for products in (1, 1000, 2**20):
        monkeypatch.setattr(whole, "_products", products)
        assert torch.equal(whole.exact_of_all(users), expected)
        assert torch.equal(whole.exact(users, chosen), expected.gather(1, chosen))


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
    expected, _ = judged(users, items, offsets, 8, np.zeros((6, 400), dtype=bool))
    np.testing.assert_array_equal(found, expected)
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
    for n in (10, 100):
        top_items(*copies(0, 300, 5000, 40, 5000, np.float32), n)
    top_items(*copies(0, 300, 5000, 40, 1000, np.float32), 10)  # five copies of each item
    assert module._WIDER > 1


# -------------------------------------------------------------------- models


def with_copies(model: Any) -> Any:
    """A fitted model with as many items that are copies of few, biases included."""
    factors = model.factors_
    kind = np.arange(len(factors.item_factors)) % 3
    return with_factors(
        model, factors._replace(item_factors=factors.item_factors[kind], item_biases=factors.item_biases[kind])
    )


@pytest.mark.parametrize("name", ["AIR-ratings", "AIR-variational", "DMF", "BiasModel"])
def test_copies_of_items_are_recommended_in_their_order(name):
    model = with_copies(fitted(MODELS[name]))
    users, items = model.interactions_.user_ids, model.interactions_.item_ids
    together = model.recommend(users, items.size, exclude_seen=False)
    for user in users:
        own = together[together["user"] == user].reset_index(drop=True)
        pd.testing.assert_frame_equal(model.recommend(user, items.size, exclude_seen=False), own)
        places = np.searchsorted(items, own["item"].to_numpy()).reshape(3, -1)
        assert (np.diff(places, axis=1) == 3).all()


@pytest.mark.parametrize("metric", ["inner_product", "l2"])
def test_an_exact_index_orders_copies_as_recommend_does(metric):
    pairs = np.arange(20), np.arange(20)
    data = Interactions(*pairs, np.ones(20), range(20), range(600))
    model: Any = BiasModel().fit(data)
    users, items, offsets = copies(0, 20, 600, 6, 10, np.float64)
    with_factors(model, model.factors_._replace(user_factors=users, item_factors=items, item_biases=offsets))
    found, expected = (ask(range(20), 15) for ask in (model.to_faiss(metric).search, model.recommend))
    pd.testing.assert_frame_equal(found, expected)


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


def planted() -> Interactions:
    """Users of three groups; each item has a copy, with the same users, a hundred places later."""
    rng = np.random.default_rng(0)
    chance = np.where(np.arange(60)[:, None] % 3 == np.arange(100) % 3, 0.4, 0.02)
    half = rng.random((60, 100)) < chance
    return Interactions.from_csr(sp.csr_array(np.hstack([half, half]).astype(float)))


@pytest.mark.parametrize("weights", [{}, {"factor_weight": 0.0}])
def test_a_ranker_says_the_same_to_one_user_and_to_many(weights, monkeypatch):
    data = planted()
    model = GraphRanker(n_factors=8, settings=weights).fit(data)
    together = model.recommend(data.user_ids, 30)
    alone = pd.concat([model.recommend(user, 30) for user in data.user_ids], ignore_index=True)
    pd.testing.assert_frame_equal(together.drop(columns="score"), alone.drop(columns="score"))
    # Factors are divided by lengths in single precision, which depend on who else is asked for.
    exact = weights == {"factor_weight": 0.0}
    np.testing.assert_allclose(together["score"], alone["score"], rtol=0, atol=1e-13 if exact else 1e-6)
    folded = model.fold_in(sp.csr_array(data.to_csr())).recommend(30)
    for user in (0, 7, 59):
        own = model.fold_in(sp.csr_array(data.to_csr()[[user]])).recommend(30)
        assert own["item"].tolist() == folded["item"][folded["user"] == user].tolist()
    if weights == {"factor_weight": 0.0}:  # sums in one order: copies tie, and the first comes first
        own = together[together["user"] == 0]["item"].to_numpy()
        assert (own[1::2] - own[::2] == 100).all()


def test_an_air_model_of_single_precision_says_the_same_to_one_user_and_to_many():
    data = planted()
    ratings = np.random.default_rng(0).integers(1, 6, data.n_ratings)
    rated = Interactions(data.user_index, data.item_index, ratings, data.user_ids, data.item_ids)
    model = AIR.for_ratings(solver="adam", n_epochs=20, n_factors=4, random_state=0, device="cpu").fit(rated)
    users = model.interactions_.user_ids
    together = model.recommend(users, 50)
    alone = pd.concat([model.recommend(user, 50) for user in users], ignore_index=True)
    pd.testing.assert_frame_equal(together, alone, check_exact=True)
