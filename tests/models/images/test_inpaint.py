"""A completed image keeps what was observed, and holds what a fresh model predicts elsewhere."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from air_recsys import AIR, DMF, BiasModel, GlobalMean, Interactions
from air_recsys.exceptions import DataError, NotFittedError, ParameterError
from air_recsys.images import inpaint, inpainting_errors, load_test_image, random_mask, texture_mask

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


def test_the_errors_are_those_of_their_definitions():
    rng = np.random.default_rng(0)
    truth = rng.random((15, 12)) * 0.8
    mask = random_mask(truth.shape, 0.3, 0)
    found = np.where(mask, truth, rng.random(truth.shape))
    errors, difference = inpainting_errors(truth, found, mask), (truth - found)[~mask]
    assert list(errors) == ["nmae", "psnr", "ssim"]
    assert errors["nmae"] == pytest.approx(np.abs(difference).mean() / np.ptp(truth))
    assert errors["psnr"] == pytest.approx(-10 * math.log10((difference**2).mean()))
    assert -1 <= errors["ssim"] < 1


def test_errors_of_the_perfect_completion_and_those_that_are_not_defined():
    errors = inpainting_errors(SMOOTH.repeat(2, axis=1), SMOOTH.repeat(2, axis=1), GOOD.repeat(2, axis=1))
    assert errors == {"nmae": 0, "psnr": math.inf, "ssim": pytest.approx(1)}
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
