"""What a recipe hides, shows and asks for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reproduction_cases import small_recipe

from benchmarks.paper.cases import Case, load_case, observed_entries, validation_entries

SHAPES = st.tuples(st.integers(5, 40), st.integers(5, 40))
SHARES = st.floats(0.05, 0.9)


def observed(shape, missing, seed, truth=None, **changes):
    """The observed entries of a random mask on some matrix."""
    case = Case(np.zeros(shape) if truth is None else truth)
    return observed_entries(small_recipe(missing=missing, **changes), case, "nowhere", seed)


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
