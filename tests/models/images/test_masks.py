"""Masks: True is observed; each kind hides what it says, and a mask that cannot be used is told apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from air_recsys.exceptions import DataError, ParameterError
from air_recsys.images import (
    PAPER_PATCHES,
    check_mask,
    load_mask,
    patch_mask,
    random_mask,
    save_image,
    texture_mask,
)

seeds = st.integers(0, 2**32)


# ---------------------------------------------------------------- random


@given(st.floats(0, 1), seeds)
def test_the_hidden_share_is_as_asked(missing, seed):
    mask = random_mask((40, 60), missing, seed)
    assert mask.dtype == bool
    assert mask.shape == (40, 60)
    deviation = np.sqrt(missing * (1 - missing) * mask.size)
    assert abs((~mask).sum() - missing * mask.size) <= 6 * deviation + 10  # 10 for the skewed tails


@given(st.floats(0, 1), st.floats(0, 1), seeds)
def test_with_one_seed_more_missing_hides_the_same_and_more(first, second, seed):
    fewer, more = (random_mask((7, 5), share, seed) for share in sorted((first, second)))
    assert not (more & ~fewer).any()


def test_the_ends_hide_nothing_and_everything_and_a_generator_moves_on():
    assert random_mask((9, 9), 0.0, 0).all()
    assert not random_mask((9, 9), 1.0, 0).any()
    rng = np.random.default_rng(0)
    first, second = random_mask((9, 9), 0.5, rng), random_mask((9, 9), 0.5, rng)
    np.testing.assert_array_equal(first, random_mask((9, 9), 0.5, 0))
    assert (first != second).any()


# ---------------------------------------------------------------- patches


def test_the_papers_patches():
    mask = patch_mask((240, 240))
    hidden = np.zeros((240, 240), dtype=bool)
    hidden[70:100, 150:190] = hidden[200:230, 200:230] = True
    np.testing.assert_array_equal(mask, ~hidden)
    assert len(PAPER_PATCHES) == 2


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3), st.integers(0, 4), st.integers(1, 3)), max_size=4))
def test_a_pixel_is_hidden_where_a_box_holds_it(corners):
    boxes = [(top, top + height, left, left + width) for top, height, left, width in corners]
    mask = patch_mask((8, 7), boxes)
    for row, column in np.ndindex(8, 7):
        inside = any(top <= row < bottom and left <= column < right for top, bottom, left, right in boxes)
        assert mask[row, column] != inside


SHARES = [-0.1, 1.1, float("nan"), "0.3", None]
SHAPE = r"(shape must be a pair|height must be|width must be)"
SHAPES = [(3,), (3, 3, 3), 3, (0, 3), (3, -1), (3, 2.5), "33"]
PATCHES = [(2, 2, 0, 1), (3, 2, 0, 1), (0, 1, 1, 1), (0, 9, 0, 1), (0, 1, 0, 8), (0, 1, 2), (0, 1, 0, 1, 0)]
EDGES = [(-1, 1, 0, 1), (0, 1, 0, 1.5), (0, 1, 0, "1")]
OUTSIDE = r"patches must be .* inside the image of 8 x 7 pixels, found"


@pytest.mark.parametrize(
    ("make", "wrong", "message"),
    [
        *(
            (lambda value: random_mask((3, 3), value, 0), value, "missing must be a number >= 0 and <= 1")
            for value in SHARES
        ),
        *((lambda value: random_mask(value, 0.5, 0), value, SHAPE) for value in SHAPES),
        *((lambda value: patch_mask(value, []), value, SHAPE) for value in SHAPES),
        *((lambda value: patch_mask((8, 7), [(0, 8, 0, 7), value]), value, OUTSIDE) for value in PATCHES),
        *((lambda value: patch_mask((8, 7), [value]), value, "an edge of a patch must be") for value in EDGES),
        (patch_mask, (100, 100), r"100 x 100 pixels, found \(70, 100, 150, 190\)"),
    ],
)
def test_shares_shapes_and_patches_that_are_none(make, wrong, message):
    with pytest.raises(ParameterError, match=message):
        make(wrong)


# ---------------------------------------------------------------- files


def test_only_pure_white_is_observed_and_a_missing_texture_says_where_it_is_from(tmp_path):
    file = save_image(tmp_path / "a.png", np.array([[255, 254], [128, 0]]) / 255)
    np.testing.assert_array_equal(load_mask(file), [[True, False], [False, False]])
    with pytest.raises(DataError, match=r"mask\.png.* found none; .*github\.com/lizhemin15/AIR-Net"):
        texture_mask(tmp_path)


@given(seed=seeds, size=st.integers(1, 30))
def test_resizing_keeps_observed_only_what_is_white_all_round(tmp_path_factory, seed, size):
    mask = random_mask((12, 12), 0.2, seed)
    file = save_image(tmp_path_factory.mktemp("mask") / "a.png", mask)
    found = load_mask(file, size)
    places = ((np.arange(size) + 0.5) * 12 / size - 0.5).clip(0, 11)
    rows = columns = np.floor(places + 1e-9).astype(int)
    white = mask[np.ix_(rows, columns)]  # the nearest pixel above and to the left takes part in the sample
    assert not (found & ~white & (np.minimum.outer(1 - places % 1, 1 - places % 1) > 0.1)).any()
    assert load_mask(file, 12).tolist() == mask.tolist()


@pytest.mark.data
def test_the_papers_texture_and_letters(data_root):
    mask = texture_mask(data_root)
    assert mask.shape == (240, 240)
    assert mask.mean() == pytest.approx(0.905, abs=5e-4)
    check_mask(mask, (240, 240))
    smaller = texture_mask(data_root, size=100)
    assert smaller.shape == (100, 100)
    assert smaller.mean() < mask.mean()  # what is partly hidden is hidden
    file = data_root / "images" / "masks" / "text_mask.png"
    assert load_mask(file).mean() == pytest.approx(0.9, abs=5e-3)
    assert load_mask(file, 240).mean() == pytest.approx(0.85, abs=5e-3)


# ---------------------------------------------------------------- checks


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones((4, 5), dtype=bool), "hides nothing of 4 x 5 pixels"),
        (np.zeros((4, 5), dtype=bool), "hides everything of 4 x 5 pixels"),
        (np.eye(4, dtype=bool), "the image's size, 4 x 5 pixels, found 4 x 4"),
        (np.ones(20, dtype=bool), "4 x 5 pixels, found 20"),
        (np.eye(4, 5), "booleans .* found float64"),
        (np.eye(4, 5, dtype=np.uint8) * 255, "booleans .* found uint8"),
    ],
)
def test_masks_that_cannot_be_used(mask, message):
    with pytest.raises(DataError, match=message):
        check_mask(mask, (4, 5))
    good = np.eye(4, 5, dtype=bool)
    assert check_mask(good, (4, 5)) is good
