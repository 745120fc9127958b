"""Errors of completed images."""

from __future__ import annotations

from typing import Any

import numpy as np

from air_recsys.exceptions import DataError
from air_recsys.metrics.checks import as_finite
from air_recsys.storage.validation import check_real, import_extra

SSIM_WINDOW = 11


def psnr(expected: Any, found: Any, *, hidden: Any = None, value_range: float = 1.0) -> float:
    r"""Return the peak signal-to-noise ratio (needs the extra ``images``).

    .. math:: \mathrm{PSNR} = 10 \log_{10} \frac{R^2}{\tfrac1n \sum_t (y_t - \hat y_t)^2}

    Parameters
    ----------
    expected, found : array_like of float, shape (height, width)
        The true image and the completed one.
    hidden : array_like of bool, shape (height, width), optional
        The pixels that count, in completion the unobserved ones; by default all.
    value_range : float
        R, the largest possible minus the smallest possible value.

    Returns
    -------
    float
        In dB, higher is better; infinite for equal images.

    Raises
    ------
    DataError
        For shapes that differ, NaN and infinite values, or `hidden` without any pixel.
    ParameterError
        For a `value_range` that is not a number > 0.

    Examples
    --------
    >>> round(psnr([[0.0, 1.0]], [[0.0, 0.9]], hidden=[[False, True]]), 6)
    20.0
    """
    truth, judged = _check_images(expected, found)
    span = check_real("value_range", value_range, strict=True)
    if hidden is not None:
        counted = _check_hidden(hidden, truth.shape)
        truth, judged = truth[counted], judged[counted]  # (n_hidden,)
    ratio = import_extra("skimage.metrics", "images").peak_signal_noise_ratio
    with np.errstate(divide="ignore"):  # equal images have an infinite ratio
        return float(ratio(truth, judged, data_range=span))


def ssim(expected: Any, found: Any, *, value_range: float = 1.0) -> float:
    r"""Return the mean structural similarity (needs the extra ``images``).

    .. math:: \mathrm{SSIM} = \frac{(2 \mu_x \mu_y + C_1)(2 \sigma_{xy} + C_2)}
        {(\mu_x^2 + \mu_y^2 + C_1)(\sigma_x^2 + \sigma_y^2 + C_2)}, \quad C_1 = (0.01 R)^2,\; C_2 = (0.03 R)^2

    with local means, variances and covariance under a Gaussian window of 11 x 11 pixels and standard deviation 1.5,
    averaged over all places where the window fits into the image.

    Parameters and errors are those of `psnr`, and images smaller than the window are a `DataError`. The value is at
    most 1, that of equal images.

    Examples
    --------
    >>> image = np.linspace(0, 1, 144).reshape(12, 12)
    >>> round(ssim(image, image), 6), ssim(image, image[::-1]) < 0.5
    (1.0, True)

    Source: Wang, Bovik, Sheikh, Simoncelli, IEEE Transactions on Image Processing 13(4), 2004.
    """
    truth, judged = _check_images(expected, found)
    span = check_real("value_range", value_range, strict=True)
    if min(truth.shape) < SSIM_WINDOW:
        raise DataError(f"expected images of at least {SSIM_WINDOW} x {SSIM_WINDOW} pixels, found {truth.shape}")
    similarity = import_extra("skimage.metrics", "images").structural_similarity
    window = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False}
    return float(similarity(truth, judged, data_range=span, **window))


def _check_images(expected: Any, found: Any) -> tuple[np.ndarray, np.ndarray]:
    truth, judged = as_finite("expected", expected, 2), as_finite("found", found, 2)
    if truth.shape != judged.shape:
        raise DataError(f"expected two images of one shape, found {truth.shape} and {judged.shape}")
    return truth, judged


def _check_hidden(hidden: Any, shape: tuple[int, ...]) -> np.ndarray:
    counted = np.asarray(hidden)
    if counted.dtype != bool or counted.shape != shape:
        raise DataError(f"expected hidden as booleans of shape {shape}, found {counted.dtype} of {counted.shape}")
    if not counted.any():
        raise DataError("expected at least one hidden pixel, found none")
    return counted
