"""Errors of predicted ratings, over the pairs given (not averaged user by user)."""

from __future__ import annotations

from typing import Any

import numpy as np

from air_recsys.exceptions import DataError
from air_recsys.metrics.checks import as_finite, check_pairs
from air_recsys.storage.validation import check_real, import_extra


def rmse(y_true: Any, y_pred: Any) -> float:
    r"""Return the root mean squared error.

    .. math:: \mathrm{RMSE} = \sqrt{\tfrac1n \sum_t (y_t - \hat y_t)^2}

    Parameters
    ----------
    y_true, y_pred : array_like of float, shape (n,)
        True and predicted ratings.

    Returns
    -------
    float
        In the unit of the ratings; 0 is perfect.

    Raises
    ------
    DataError
        For different lengths, no values, or NaN and infinite ones.

    Examples
    --------
    >>> rmse([3, 5], [3, 3])
    1.4142135623730951
    """
    from sklearn.metrics import root_mean_squared_error

    return float(root_mean_squared_error(*check_pairs(y_true, y_pred)))


def mae(y_true: Any, y_pred: Any) -> float:
    r"""Return the mean absolute error.

    .. math:: \mathrm{MAE} = \tfrac1n \sum_t |y_t - \hat y_t|

    Parameters, unit and errors are those of `rmse`.

    Examples
    --------
    >>> mae([3, 5], [3, 3])
    1.0
    """
    from sklearn.metrics import mean_absolute_error

    return float(mean_absolute_error(*check_pairs(y_true, y_pred)))


def nmae(y_true: Any, y_pred: Any, value_range: float | None = None) -> float:
    r"""Return the normalised mean absolute error: the mean absolute error divided by the range of the truth.

    .. math:: \mathrm{NMAE} = \frac{1}{n\,(y_{\max} - y_{\min})} \sum_t |y_t - \hat y_t|

    Parameters
    ----------
    y_true, y_pred : array_like of float, shape (n,)
        True and predicted values, in matrix completion those of the unobserved entries.
    value_range : float, optional
        :math:`y_{\max} - y_{\min}`, larger than 0. By default that of `y_true`. To compare with published tables
        give the range of the whole true matrix, the observed entries included.

    Returns
    -------
    float
        A share of the range; 0 is perfect.

    Raises
    ------
    DataError
        For different lengths, no values, NaN and infinite ones, or a constant truth without `value_range`.
    ParameterError
        For a `value_range` that is not a number > 0.

    Examples
    --------
    >>> nmae([1, 5, 3], [1, 3, 3])
    0.16666666666666666
    >>> nmae([3, 3], [3, 4], value_range=4)
    0.125

    Notes
    -----
    Li, Sun, Wang, Wang (SIAM J. Imaging Sciences 15(4), 2022) define NMAE by a squared norm. Their published numbers
    are the mean *absolute* error over the unobserved entries, divided by the range of the whole true matrix, as here.
    """
    truth, prediction = check_pairs(y_true, y_pred)
    width = float(np.ptp(truth)) if value_range is None else check_real("value_range", value_range, strict=True)
    if width == 0:
        raise DataError(
            f"expected y_true with at least two different values, found only {truth[0]:g}; pass value_range"
        )
    from sklearn.metrics import mean_absolute_error

    return float(mean_absolute_error(truth, prediction)) / width


def mse(y_true: Any, y_pred: Any) -> float:
    r"""Return the mean squared error, in the squared unit of the values; 0 is perfect.

    Parameters and errors are those of `air_recsys.metrics.rmse`.

    Examples
    --------
    >>> mse([5.0, 7.0], [5.0, 6.0])
    0.5
    """
    truth, prediction = check_pairs(y_true, y_pred)
    return float(np.square(truth - prediction).mean())


def concordance_index(y_true: Any, y_pred: Any) -> float:
    r"""Return the share of pairs of different true values that predictions put in the same order.

    .. math:: \mathrm{CI} = \frac{1}{Z} \sum_{y_s > y_t} h(\hat y_s - \hat y_t),\qquad h(x) = 1, \tfrac12, 0
        \text{ for } x > 0,\; x = 0,\; x < 0

    with Z the number of such pairs; 1/2 is chance, 1 perfect.

    Raises
    ------
    DataError
        For different lengths, no values, NaN and infinite ones, and true values that are all equal.

    Examples
    --------
    >>> round(concordance_index([5.0, 6.0, 7.0], [5.5, 5.5, 8.0]), 4)
    0.8333

    References
    ----------
    Gönen, Heller, Concordance probability and discriminatory power in proportional hazards regression, Biometrika 92,
    2005; Pahikkala et al., Toward more realistic drug-target interaction predictions, 2015.
    """
    from scipy.stats import kendalltau

    truth, prediction = check_pairs(y_true, y_pred)
    pairs, tied, alike = (_pairs(counts) for counts in ([truth.size], _counts(truth), _counts(prediction)))
    if tied == pairs:
        raise DataError("expected true values that differ, found one value")
    if alike == pairs:
        return 0.5
    found: Any = kendalltau(truth, prediction)  # tau-b: concordant less discordant pairs over this root
    tau = float(found.statistic)
    excess = tau * np.sqrt((pairs - tied) * (pairs - alike))
    return float(0.5 + excess / (2 * (pairs - tied)))


def modified_r_squared(y_true: Any, y_pred: Any) -> float:
    r"""Return :math:`r_m^2 = r^2 (1 - \sqrt{|r^4 - r_0^4|})`, as the evaluation of DeepDTA computes it.

    r is the correlation, and :math:`r_0^2` the coefficient of determination of the best line through the origin; above
    0.5 a model counts as acceptable.

    Raises
    ------
    DataError
        As `concordance_index`, and for predictions that are all equal.

    Examples
    --------
    >>> modified_r_squared([5.0, 6.0, 7.0], [5.0, 6.0, 7.0])
    1.0

    References
    ----------
    Roy et al., Some case studies on application of r_m^2 metrics, J. Computational Chemistry 34, 2013; Öztürk, Özgür,
    Ozkirimli, DeepDTA, Bioinformatics 34(17), 2018.
    """
    truth, prediction = check_pairs(y_true, y_pred)
    if np.ptp(truth) == 0 or np.ptp(prediction) == 0:
        raise DataError("expected true values, and predictions, that differ, found one value")
    squared = float(np.corrcoef(truth, prediction)[0, 1] ** 2)
    slope = truth @ prediction / (prediction @ prediction)
    of_line = 1 - np.square(truth - slope * prediction).sum() / np.square(truth - truth.mean()).sum()
    return float(squared * (1 - np.sqrt(abs(squared**2 - of_line**2))))


def _counts(values: np.ndarray) -> np.ndarray:
    return np.unique(values, return_counts=True)[1]


def _pairs(counts: Any) -> float:
    numbers = np.asarray(counts, dtype=np.float64)
    return float((numbers * (numbers - 1) / 2).sum())


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
