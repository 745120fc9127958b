"""Errors of completed images."""

from __future__ import annotations

from typing import Any

import numpy as np

from air_recsys.exceptions import DataError
from air_recsys.validation import check_real, import_extra

SSIM_WINDOW = 11


def psnr(expected: Any, found: Any, *, hidden: Any = None, value_range: float = 1.0) -> float:
    r"""Return the peak signal-to-noise ratio (needs the extra ``images``).

    .. math:: \mathrm{PSNR} = 10 \log_{10} \frac{R^2}{\tfrac1n \sum_t (y_t - \hat y_t)^2}

    Parameters
    ----------
    expected, found : array_like of float, shape (height, width)
        The true image and the one to be judged.
    hidden : array_like of bool, shape (height, width), optional
        Only these pixels count, in completion those that were not given; by default all.
    value_range : float
        R, the largest possible minus the smallest possible value.

    Returns
    -------
    float
        In dB, more is better; infinite for equal images.

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
    with np.errstate(divide="ignore"):  # no error at all is infinitely good
        return float(ratio(truth, judged, data_range=span))


def ssim(expected: Any, found: Any, *, value_range: float = 1.0) -> float:
    r"""Return the mean structural similarity (needs the extra ``images``).

    .. math:: \mathrm{SSIM} = \frac{(2 \mu_x \mu_y + C_1)(2 \sigma_{xy} + C_2)}
        {(\mu_x^2 + \mu_y^2 + C_1)(\sigma_x^2 + \sigma_y^2 + C_2)}, \quad C_1 = (0.01 R)^2,\; C_2 = (0.03 R)^2

    with local means, variances and covariance under a Gaussian window of 11 x 11 pixels and standard deviation 1.5,
    averaged over all places where the window fits into the image.

    Parameters
    ----------
    expected, found : array_like of float, shape (height, width)
        The true image and the one to be judged, at least 11 x 11 pixels.
    value_range : float
        R, the largest possible minus the smallest possible value.

    Returns
    -------
    float
        At most 1, which equal images have.

    Raises
    ------
    DataError
        For shapes that differ or are too small, NaN and infinite values.
    ParameterError
        For a `value_range` that is not a number > 0.

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
    truth, judged = _as_image("expected", expected), _as_image("found", found)
    if truth.shape != judged.shape:
        raise DataError(f"expected two images of one shape, found {truth.shape} and {judged.shape}")
    return truth, judged


def _as_image(name: str, values: Any) -> np.ndarray:
    try:
        image = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"expected {name} as a 2-D array of numbers, found {type(values).__name__}") from None
    if image.ndim != 2 or image.size == 0:
        raise DataError(f"expected {name} as a 2-D array with at least one value, found shape {image.shape}")
    if not np.isfinite(image).all():
        raise DataError(f"expected finite numbers in {name}, found {(~np.isfinite(image)).sum()} NaN or infinite")
    return image


def _check_hidden(hidden: Any, shape: tuple[int, ...]) -> np.ndarray:
    counted = np.asarray(hidden)
    if counted.dtype != bool or counted.shape != shape:
        raise DataError(f"expected hidden as booleans of shape {shape}, found {counted.dtype} of {counted.shape}")
    if not counted.any():
        raise DataError("expected at least one hidden pixel, found none")
    return counted
