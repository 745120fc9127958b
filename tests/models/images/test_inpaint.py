"""Masks hide what they say; a completed image keeps what was observed, and has what a model predicts elsewhere."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from air_recsys import AIR, DMF, BiasModel, GlobalMean, Interactions
from air_recsys.exceptions import DataError, NotFittedError, ParameterError
from air_recsys.images import (
    PAPER_PATCHES,
    check_mask,
    inpaint,
    inpainting_errors,
    load_mask,
    load_test_image,
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


SHAPE = r"(shape must be a pair|height must be|width must be)"
SHAPES = [(3,), (3, 3, 3), 3, (0, 3), (3, -1), (3, 2.5), "33"]
OUTSIDE = r"patches must be .* inside the image of 8 x 7 pixels, found"
PATCHES = [(2, 2, 0, 1), (3, 2, 0, 1), (0, 1, 1, 1), (0, 9, 0, 1), (0, 1, 0, 8), (0, 1, 2), (0, 1, 0, 1, 0)]
EDGES = [(-1, 1, 0, 1), (0, 1, 0, 1.5), (0, 1, 0, "1")]


@pytest.mark.parametrize(
    ("make", "wrong", "message"),
    [
        (lambda missing: random_mask((3, 3), missing, 0), [-0.1, 1.1, float("nan"), "0.3", None], "missing must be a"),
        (lambda shape: random_mask(shape, 0.5, 0), SHAPES, SHAPE),
        (lambda shape: patch_mask(shape, []), SHAPES, SHAPE),
        (lambda patch: patch_mask((8, 7), [(0, 8, 0, 7), patch]), PATCHES, OUTSIDE),
        (lambda patch: patch_mask((8, 7), [patch]), EDGES, "an edge of a patch must be"),
        (patch_mask, [(100, 100)], r"100 x 100 pixels, found \(70, 100, 150, 190\)"),
    ],
)
def test_shares_shapes_and_patches_that_are_none(make, wrong, message):
    for each in wrong:
        with pytest.raises(ParameterError, match=message):
            make(each)


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


# ---------------------------------------------------------------- completion

SMOOTH = np.add.outer(np.linspace(0, 0.6, 14), np.linspace(0, 0.4, 10))  # rows and columns as biases
SHORT = {"n_epochs": 30, "init_std": 0.1, "device": "cpu", "random_state": 0}


MODELS = {
    "AIR": AIR.for_completion(**SHORT),
    "AIR-sparse": AIR.for_interactions(**SHORT),
    "AIR-ratings": AIR.for_ratings(solver="adam", **SHORT),
    "DMF": DMF(**SHORT),
    "BiasModel": BiasModel(),
    "GlobalMean": GlobalMean(),
}


def mask_with_a_hidden_row_and_column(shape=SMOOTH.shape):
    mask = random_mask(shape, 0.3, 0)
    mask[4], mask[:, 7] = False, False
    return mask


@pytest.mark.parametrize("name", ["AIR", "AIR-ratings", "BiasModel"])
def test_observed_pixels_stay_and_hidden_ones_are_predicted(name):
    model, mask = MODELS[name], random_mask(SMOOTH.shape, 0.3, 0)
    completed = inpaint(SMOOTH, mask, model)
    np.testing.assert_array_equal(completed[mask], SMOOTH[mask])
    fitted = type(model)(**model.get_params(deep=False)).fit(Interactions.from_dense(np.where(mask, SMOOTH, np.nan)))
    rows, columns = np.nonzero(~mask)
    np.testing.assert_allclose(completed[~mask], fitted.predict(rows, columns).clip(0, 1), rtol=1e-6)


@pytest.mark.parametrize("name", ["AIR-sparse", "DMF", "GlobalMean"])
def test_rows_and_columns_may_be_hidden_entirely(name):
    mask = mask_with_a_hidden_row_and_column()
    completed = inpaint(SMOOTH, mask, MODELS[name])
    assert completed.shape == SMOOTH.shape
    assert completed.dtype == np.float64
    assert np.isfinite(completed).all()
    np.testing.assert_array_equal(completed[mask], SMOOTH[mask])


def test_known_answers():
    for edge in (0, -1):
        mask = np.ones(SMOOTH.shape, dtype=bool)
        mask[edge] = mask[:, edge] = False
        completed = inpaint(SMOOTH, mask, GlobalMean())
        np.testing.assert_allclose(completed[~mask], SMOOTH[mask].mean())
    mask = random_mask(SMOOTH.shape, 0.4, 1)
    np.testing.assert_allclose(inpaint(SMOOTH, mask, BiasModel(bias_decay=1e-9)), SMOOTH, atol=1e-6)


@settings(max_examples=20)
@given(st.integers(1, 8), st.integers(2, 8), st.integers(0, 999))
def test_hidden_pixels_are_not_looked_at(height, width, seed):
    rng = np.random.default_rng(seed)
    image, mask = rng.random((height, width)), rng.random((height, width)) < 0.5
    mask[0, 0], mask[0, 1] = True, False
    first = inpaint(image, mask, BiasModel())
    for garbage in (np.nan, 7.0, -np.inf, 1 - image):
        np.testing.assert_array_equal(inpaint(np.where(mask, image, garbage), mask, BiasModel()), first)
    np.testing.assert_array_equal(inpaint(image.T, mask.T, BiasModel()).T.round(6), first.round(6))


def test_the_model_and_the_image_stay_as_they_were():
    image, mask = SMOOTH.copy(), mask_with_a_hidden_row_and_column()
    model, fitted = GlobalMean(), GlobalMean().fit(np.array([[1.0, np.nan]]))
    inpaint(image, mask, model)
    inpaint(image, mask, fitted)
    np.testing.assert_array_equal(image, SMOOTH)
    with pytest.raises(NotFittedError):
        model.predict(0, 0)
    assert fitted.predict(0, 0) == 1


class Wild(GlobalMean):
    """Predicts far beyond what can be seen."""

    def predict(self, user_ids, item_ids, *, unknown="mean"):
        return np.where(np.asarray(item_ids) % 2, 7.0, -7.0)


def test_predictions_are_clipped():
    completed = inpaint(SMOOTH, mask_with_a_hidden_row_and_column(), Wild())
    assert (completed[4] == np.arange(10) % 2).all()


GOOD = random_mask(SMOOTH.shape, 0.3, 0)


@pytest.mark.parametrize(
    ("image", "mask", "message"),
    [
        (SMOOTH * 255, GOOD, r"observed pixels in \[0, 1\], found 0\.\.255"),
        (SMOOTH - 0.5, GOOD, r"observed pixels in \[0, 1\], found -0\.5\.\.0\.5"),
        (np.where(GOOD, np.nan, SMOOTH), GOOD, "finite observed pixels, found .* NaN"),
        (SMOOTH[0], GOOD, r"shape \(height, width\), found shape \(10,\)"),
        (SMOOTH, GOOD.T, "14 x 10 pixels, found 10 x 14"),
        (SMOOTH, GOOD | True, "hides nothing"),
        (SMOOTH, GOOD & False, "hides everything"),
    ],
)
def test_bad_input(image, mask, message):
    with pytest.raises(DataError, match=message):
        inpaint(image, mask, Wild())
    for model in (None, "AIR", AIR, object()):
        with pytest.raises(ParameterError, match="model must be a Recommender"):
            inpaint(SMOOTH, GOOD, model)


# ---------------------------------------------------------------- errors


def test_the_errors_are_those_of_their_definitions_or_nan():
    rng = np.random.default_rng(0)
    truth = rng.random((15, 12)) * 0.8
    mask = random_mask(truth.shape, 0.3, 0)
    found = np.where(mask, truth, rng.random(truth.shape))
    errors, difference = inpainting_errors(truth, found, mask), (truth - found)[~mask]
    assert list(errors) == ["nmae", "psnr", "ssim"]
    assert errors["nmae"] == pytest.approx(np.abs(difference).mean() / np.ptp(truth))
    assert errors["psnr"] == pytest.approx(-10 * math.log10((difference**2).mean()))
    assert -1 <= errors["ssim"] < 1
    assert math.isnan(inpainting_errors(np.ones((20, 20)), np.ones((20, 20)), np.eye(20) > 0)["nmae"])
    assert math.isnan(inpainting_errors(SMOOTH, SMOOTH, GOOD)["ssim"])  # 10 columns


# ---------------------------------------------------------------- the paper's images


@pytest.mark.data
@pytest.mark.parametrize("hide", ["random", "texture"])
def test_air_learns_an_image(data_root, hide):
    size = 40
    image = load_test_image(data_root, "cameraman", size)
    mask = random_mask(image.shape, 0.3, 0) if hide == "random" else texture_mask(data_root, size)
    errors = {
        name: inpainting_errors(image, inpaint(image, mask, model), mask)
        for name, model in {
            # A larger start and steps, for the preset leaves its flat start only after some 3,000 epochs.
            "AIR": AIR.for_completion(n_epochs=1500, learning_rate=3e-3, init_std=0.03, device="cpu", random_state=0),
            "BiasModel": BiasModel(),
            "GlobalMean": GlobalMean(),
        }.items()
    }
    assert errors["AIR"]["nmae"] < errors["BiasModel"]["nmae"] < errors["GlobalMean"]["nmae"]
    assert errors["AIR"]["ssim"] > errors["BiasModel"]["ssim"]
