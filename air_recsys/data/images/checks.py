"""Checks of images and masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from air_recsys.exceptions import DataError


def as_pixels(image: Any) -> np.ndarray:
    """Return an image as a float64 array (height, width), or raise `DataError`; NaN is allowed."""
    try:
        pixels = np.asarray(image, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"expected an image as a 2-D array of numbers, found {type(image).__name__}") from None
    if pixels.ndim != 2 or pixels.size == 0:
        raise DataError(f"expected an image of shape (height, width), found shape {pixels.shape}")
    return pixels


def check_mask(mask: Any, shape: tuple[int, int]) -> np.ndarray:
    """Return a mask that fits an image and hides some of its pixels, or raise `DataError`.

    Parameters
    ----------
    mask : array_like of bool, shape (height, width)
        True = observed.
    shape : (int, int)
        Height and width of the image.

    Returns
    -------
    ndarray of bool, shape (height, width)

    Raises
    ------
    DataError
        For numbers instead of booleans, another size than the image's, or a mask that hides nothing or everything.

    Examples
    --------
    >>> check_mask([[True, False]], (1, 2))
    array([[ True, False]])
    """
    observed = np.asarray(mask)
    if observed.dtype != bool:
        raise DataError(f"expected a mask of booleans (True = observed), found {observed.dtype}")
    if observed.shape != tuple(shape):
        raise DataError(f"expected a mask of the image's size, {times(shape)} pixels, found {times(observed.shape)}")
    if observed.all():
        raise DataError(f"expected a mask with hidden pixels, found one that hides nothing of {times(shape)} pixels")
    if not observed.any():
        raise DataError(
            f"expected a mask with observed pixels, found one that hides everything of {times(shape)} pixels"
        )
    return observed


def times(shape: tuple[int, ...]) -> str:
    """Return a shape in the usual notation.

    Examples
    --------
    >>> times((240, 320))
    '240 x 320'
    """
    return " x ".join(map(str, shape))
