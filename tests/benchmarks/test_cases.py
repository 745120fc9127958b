"""What a recipe hides, shows and asks for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reproduction_cases import M, N, small_case, small_recipe, small_texture, use_small_cases

from air_recsys.exceptions import DataError, DataFileError, ParameterError
from benchmarks.paper.cases import Case, load_case, observed_entries, validation_entries

SHAPES = st.tuples(st.integers(5, 40), st.integers(5, 40))
SHARES = st.floats(0.05, 0.9)


def observed(shape, missing, seed, truth=None, **changes):
    """The observed entries of a random mask on some matrix."""
    case = Case(np.zeros(shape) if truth is None else truth)
    return observed_entries(small_recipe(missing=missing, **changes), case, "nowhere", seed)


@settings(max_examples=40)
@given(SHAPES, SHARES, st.integers(0, 2**31), st.integers(0, 2**31))
def test_random_masks_depend_on_shape_share_and_seed_alone(shape, missing, seed, other):
    first = observed(shape, missing, seed)
    assert first.shape == shape
    assert first.dtype == bool
    truth = np.random.default_rng(other).random(shape)
    changes = {"row": "other", "title": "other", "data": "baboon", "keep": ("graphs",), "seeds": (other,)}
    np.testing.assert_array_equal(observed(shape, missing, seed, truth, **changes), first)


def test_random_masks_change_with_the_seed_and_have_the_share():
    first, second = (observed((200, 200), 0.3, seed) for seed in (0, 1))
    assert (first != second).any()
    assert first.mean() == pytest.approx(0.7, abs=0.02)
    assert (observed((200, 200), 0.5, 0) <= first).all()  # more is hidden beside the same


@settings(max_examples=40)
@given(SHAPES, SHARES, SHARES, st.integers(0, 2**31), st.sampled_from(["random", "patch", "texture"]))
def test_validation_entries_are_observed_and_come_again(shape, missing, share, seed, mask):
    recipe = small_recipe(mask=mask)
    shown = np.random.default_rng(seed).random(shape) >= missing
    asked = validation_entries(recipe, shown, share, seed)
    assert asked.shape == shape
    assert asked.dtype == bool
    assert not (asked & ~shown).any()
    np.testing.assert_array_equal(validation_entries(recipe, shown, share, seed), asked)


@pytest.mark.parametrize("mask", ["patch", "texture"])
def test_other_validation_entries_are_the_hidden_ones_moved(mask):
    shown = np.ones((240, 240), dtype=bool)
    shown[70:100, 150:190] = False
    asked = validation_entries(small_recipe(mask=mask), shown, 0.1, 0)
    expected = np.zeros_like(shown)
    expected[107:137, 211:240], expected[107:137, 0:11] = True, True  # around the edge
    np.testing.assert_array_equal(asked, expected)
    assert not (asked & ~shown).any()
    np.testing.assert_array_equal(validation_entries(small_recipe(mask=mask), shown, 0.5, 7), asked)


@pytest.mark.parametrize("share", [0.0, -0.1, 0.95, float("nan"), "half"])
def test_shares_of_validation_out_of_range(share):
    with pytest.raises(ParameterError, match=r"validation must be a number > 0 and <= 0\.9"):
        validation_entries(small_recipe(), np.ones((5, 5), dtype=bool), share, 0)


def test_masks_of_pictures_do_not_depend_on_the_seed(monkeypatch, tmp_path):
    use_small_cases(monkeypatch)
    for mask in ("patch", "texture"):
        masks = [observed_entries(small_recipe(mask=mask), small_case("barbara"), tmp_path, seed) for seed in (0, 1)]
        np.testing.assert_array_equal(*masks)
        assert masks[0].shape == (M, N)
        assert 0 < masks[0].mean() < 1
    np.testing.assert_array_equal(masks[0], small_texture())


def test_a_mask_of_pictures_on_what_is_none():
    with pytest.raises(ParameterError, match="expected the mask 'random' for what is no picture, found 'patch'"):
        observed_entries(small_recipe(mask="patch"), small_case("ic"), "nowhere", 0)


def test_rank_5_needs_no_data_and_has_rank_5(tmp_path):
    first, again = (load_case("rank-5", tmp_path / "none").truth for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert first.shape == (100, 100)
    assert np.linalg.matrix_rank(first) == 5


@pytest.mark.parametrize(
    ("data", "file"),
    [
        ("barbara", "Barbara.jpg"),
        ("baboon", "baboon.bmp"),
        ("syn-netflix", "synthetic_netflix.mat"),
        ("ic", "ic_admat_dgc.txt"),
        ("gpcr", "gpcr_admat_dgc.txt"),
    ],
)
def test_a_missing_file_is_named(data, file, tmp_path):
    with pytest.raises((DataError, DataFileError), match=f"expected the file '[^']*{file}'.*found none; ."):
        load_case(data, tmp_path)


@pytest.mark.data
@pytest.mark.parametrize(
    ("data", "shape", "values"),
    [
        ("barbara", (240, 240), (0, 1)),
        ("baboon", (240, 240), (0, 1)),
        ("syn-netflix", (150, 200), (1, 5)),
        ("ic", (210, 204), (0, 1)),
        ("gpcr", (223, 95), (0, 1)),
    ],
)
def test_the_real_matrices(data, shape, values, data_root):
    case = load_case(data, data_root)
    assert case.truth.shape == shape
    assert np.isfinite(case.truth).all()
    assert values[0] <= case.truth.min() < case.truth.max() <= values[1]
    assert case.picture is (data in ("barbara", "baboon"))
    assert (case.groups is not None) is (data == "syn-netflix")
    for graph, size in zip(case.side or (), case.truth.shape, strict=False):
        weights = graph.toarray()
        assert weights.shape == (size, size)
        np.testing.assert_array_equal(weights, weights.T)
        assert (np.diag(weights) == 0).all()
        assert 0 <= weights.min() < weights.max()
    if case.groups is not None:
        assert [len(np.unique(groups)) for groups in case.groups] == [15, 12]
    if case.picture:
        for mask in ("patch", "texture"):
            recipe = small_recipe(data=data, mask=mask)
            shown = observed_entries(recipe, case, data_root, 0)
            asked = validation_entries(recipe, shown, 0.1, 0)
            assert 0 < asked.sum() <= (~shown).sum()
            assert not (asked & ~shown).any()
