"""PSNR and SSIM: their definitions computed once more, and laws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import convolve2d

from air_recsys.exceptions import DataError, ParameterError
from air_recsys.metrics import psnr, rmse, ssim


def pair(seed, shape=(14, 17)):
    rng = np.random.default_rng(seed)
    return rng.random(shape), rng.random(shape)


def reference_ssim(x, y, span):
    """The definition of Wang et al.: windows that fit into the image, Gaussian weights that sum to 1."""
    line = np.exp(-(np.arange(-5, 6) ** 2) / (2 * 1.5**2))
    window = np.outer(line, line) / line.sum() ** 2

    def local(values):
        return convolve2d(values, window, mode="valid")

    mean_x, mean_y = local(x), local(y)
    var_x, var_y = local(x * x) - mean_x**2, local(y * y) - mean_y**2
    covariance = local(x * y) - mean_x * mean_y
    c1, c2 = (0.01 * span) ** 2, (0.03 * span) ** 2
    ratio = (2 * mean_x * mean_y + c1) * (2 * covariance + c2)
    return (ratio / ((mean_x**2 + mean_y**2 + c1) * (var_x + var_y + c2))).mean()


seeds, spans = st.integers(0, 999), st.floats(0.1, 300)


@given(seeds, spans)
def test_psnr_is_the_mean_squared_error_in_decibel(seed, span):
    x, y = pair(seed)
    assert psnr(x, y, value_range=span) == pytest.approx(20 * math.log10(span / rmse(x.ravel(), y.ravel())))


@given(seeds)
def test_psnr_counts_the_hidden_pixels_only(seed):
    x, y = pair(seed)
    hidden = np.random.default_rng(seed).random(x.shape) < 0.3
    elsewhere = np.where(hidden, y, 1e3)
    assert psnr(x, elsewhere, hidden=hidden) == psnr(x, y, hidden=hidden)
    assert psnr(x, np.where(hidden, y, x), hidden=hidden) < psnr(x, np.where(hidden, y, x))
    assert psnr(x, y, hidden=np.ones(x.shape, dtype=bool)) == pytest.approx(psnr(x, y))


@given(seeds, spans)
def test_ssim_is_the_definition(seed, span):
    x, y = pair(seed)
    assert ssim(x, y, value_range=span) == pytest.approx(reference_ssim(x, y, span), abs=1e-10)


@pytest.mark.parametrize("metric", [psnr, ssim])
@given(seed=seeds, scale=spans)
def test_laws_of_both(metric, seed, scale):
    x, y = pair(seed)
    found = metric(x, y)
    assert metric(y, x) == pytest.approx(found)
    assert metric(x.T, y.T) == pytest.approx(found)
    assert metric(x * scale, y * scale, value_range=scale) == pytest.approx(found)
    assert metric(x, (x + y) / 2) > found


X, Y = pair(0)


def test_equal_images():
    x, _ = pair(0)
    assert psnr(x, x) == math.inf
    assert ssim(x, x) == pytest.approx(1)
    assert ssim(np.ones((11, 11)), np.ones((11, 11))) == pytest.approx(1)


@pytest.mark.parametrize(
    ("expected", "found", "message"),
    [
        (X, Y.T, r"two images of one shape, found \(14, 17\) and \(17, 14\)"),
        (X.ravel(), Y.ravel(), r"expected as a 2-D array .* found shape \(238,\)"),
        (X, np.zeros((0, 3)), r"found as a 2-D array .* found shape \(0, 3\)"),
        (X, np.where(Y > 0.5, np.nan, Y), "finite numbers in found"),
        ("grey", Y, "expected as a 2-D array of numbers, found str"),
    ],
)
def test_bad_images_and_ranges(expected, found, message):
    for metric in (psnr, ssim):
        with pytest.raises(DataError, match=message):
            metric(expected, found)
        for span in (0, math.nan, "1"):
            with pytest.raises(ParameterError, match="value_range must be a number > 0"):
                metric(X, Y, value_range=span)
    with pytest.raises(DataError, match=r"at least 11 x 11 pixels, found \(10, 17\)"):
        ssim(X[:10], Y[:10])


@pytest.mark.parametrize(
    ("hidden", "message"),
    [
        (np.zeros(X.shape, dtype=bool), "at least one hidden pixel, found none"),
        (np.ones((3, 3), dtype=bool), r"booleans of shape \(14, 17\), found bool of \(3, 3\)"),
        (np.ones(X.shape), "found float64"),
    ],
)
def test_bad_hidden_pixels(hidden, message):
    with pytest.raises(DataError, match=message):
        psnr(X, Y, hidden=hidden)
