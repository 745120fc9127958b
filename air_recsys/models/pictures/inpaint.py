"""Completion of an image: its pixels are the ratings that rows give to columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from air_recsys.data.images.files import as_pixels, check_mask
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.metrics import nmae, psnr, ssim
from air_recsys.metrics.rating import SSIM_WINDOW
from air_recsys.models import AIR, PNMC, PatchAIR, Recommender
from air_recsys.models.solvers import Adam


def inpaint(image: Any, observed: Any, model: Recommender) -> np.ndarray:
    """Fill the hidden pixels of an image with the predictions of a model of the observed ones.

    Parameters
    ----------
    image : array_like of float, shape (height, width)
        Brightness in [0, 1]. Values of hidden pixels are not read, they may be NaN.
    observed : array_like of bool, shape (height, width)
        True where a pixel may be used. Rows and columns may be hidden entirely.
    model : Recommender
        Only its parameters are used: a clone is trained, and the model does not change.

    Returns
    -------
    ndarray of float64, shape (height, width)
        The observed pixels exactly as given, the hidden ones as predicted, clipped to [0, 1].

    Raises
    ------
    DataError
        For an image that is not 2-D or has observed pixels outside [0, 1], or a mask as in `check_mask`.
    ParameterError
        For a model that is not a `Recommender`.

    Examples
    --------
    >>> from air_recsys import BiasModel
    >>> image = np.add.outer([0.1, 0.3, 0.5], [0.0, 0.2, 0.4])
    >>> observed = np.array([[True, True, True], [True, True, False], [True, True, True]])
    >>> inpaint(image, observed, BiasModel(bias_decay=0.0)).round(3)
    array([[0.1, 0.3, 0.5],
           [0.3, 0.5, 0.7],
           [0.5, 0.7, 0.9]])

    Source: Li, Sun, Wang, Wang, SIAM J. Imaging Sciences 15(4), 2022.
    """
    from sklearn.base import clone

    pixels = as_pixels(image)
    mask = check_mask(observed, pixels.shape)
    seen = pixels[mask]
    if not np.isfinite(seen).all():
        raise DataError(f"expected finite observed pixels, found {(~np.isfinite(seen)).sum()} NaN or infinite")
    if seen.min() < 0 or seen.max() > 1:
        raise DataError(f"expected observed pixels in [0, 1], found {seen.min():g}..{seen.max():g}")
    if not isinstance(model, Recommender):
        raise ParameterError(f"model must be a Recommender such as AIR.for_completion(), found {model!r}")
    fresh: Any = clone(model)
    fitted = fresh.fit(Interactions.from_dense(np.where(mask, pixels, np.nan)))
    completed = pixels.copy()
    for row in np.flatnonzero(~mask.all(axis=1)):  # row by row, to gather few factors at a time
        columns = np.flatnonzero(~mask[row])
        completed[row, columns] = fitted.predict(row, columns).clip(0, 1)
    return completed


def inpainting_errors(truth: Any, completed: Any, observed: Any) -> dict[str, float]:
    """Return how far a completed image is from the true one.

    Parameters
    ----------
    truth, completed : array_like of float, shape (height, width)
        Brightness in [0, 1].
    observed : array_like of bool, shape (height, width)
        True where `completed` was given.

    Returns
    -------
    dict of str to float
        "nmae" of the hidden pixels, over the range of the whole true image as in the paper's tables (NaN where that
        has a single brightness); "psnr" of the hidden pixels in dB; "ssim" of the whole image (NaN where it is smaller
        than the window of 11 x 11 pixels).

    Raises
    ------
    DataError
        For shapes that differ, values that are not finite, or a mask as in `check_mask`.

    Examples
    --------
    >>> errors = inpainting_errors([[0.0, 1.0]], [[0.0, 0.9]], [[True, False]])
    >>> {name: round(value, 6) for name, value in errors.items()}
    {'nmae': 0.1, 'psnr': 20.0, 'ssim': nan}
    """
    expected, judged = as_pixels(truth), as_pixels(completed)
    hidden = ~check_mask(observed, expected.shape)
    peak_ratio = psnr(expected, judged, hidden=hidden)
    width = float(np.ptp(expected))
    return {
        "nmae": nmae(expected[hidden], judged[hidden], value_range=width) if width > 0 else math.nan,
        "psnr": peak_ratio,
        "ssim": ssim(expected, judged) if min(expected.shape) >= SSIM_WINDOW else math.nan,
    }


_OF_ROWS: dict[str, Any] = {
    "learning_rate": 1e-2,
    "init_mean": 0.0,
    "init_std": 0.03,
    "n_epochs": 120,
    "exact_epochs": "auto",
    "tv_reg": 0.03,
}

MODELS: dict[str, Callable[[], Recommender]] = {
    "patches": PatchAIR,
    "rows": lambda: AIR(graph_neighbors=10, solver=Adam(**_OF_ROWS)),
    "pnmc": PNMC,
}
"""Models by name: AIR on overlapping patches, AIR on rows and columns with total variation, and PNMC."""


def model_for(observed: np.ndarray) -> Recommender:
    """`PatchAIR` where every patch has an observed pixel, else AIR on rows and columns with total variation.

    Parameters
    ----------
    observed : ndarray of bool, shape (height, width)

    Examples
    --------
    >>> observed = np.ones((40, 40), dtype=bool)
    >>> observed[5, 5:30] = False
    >>> type(model_for(observed)).__name__
    'PatchAIR'
    >>> observed[5:20, 5:30] = False
    >>> type(model_for(observed)).__name__
    'AIR'

    Source: the validation errors in docs/table1.md.
    """
    side = PatchAIR().patch
    if min(observed.shape) < side:
        return MODELS["rows"]()
    seen = sliding_window_view(observed, (side, side)).any(axis=(2, 3))
    return MODELS["patches" if seen.all() else "rows"]()
