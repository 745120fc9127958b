"""Masks: which pixels of an image are observed (True) and which are hidden (False)."""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np

from air_recsys.data.images.files import find_test_file, read_grey, times
from air_recsys.exceptions import ParameterError
from air_recsys.storage.validation import RandomState, as_generator, check_integer, check_real

Patch = tuple[int, int, int, int]

PAPER_PATCHES: tuple[Patch, ...] = ((70, 100, 150, 190), (200, 230, 200, 230))
"""The boxes that the paper hides in its images of 240 x 240 pixels."""


def random_mask(shape: tuple[int, int], missing: float, random_state: RandomState = None) -> np.ndarray:
    """Hide each pixel with the same probability, independently of all others.

    Parameters
    ----------
    shape : (int, int)
        Height and width.
    missing : float
        Probability in [0, 1] that a pixel is hidden.
    random_state : int, RandomState, Generator or None
        The same seed gives the same mask; a larger `missing` hides the same pixels and more.

    Returns
    -------
    ndarray of bool, shape (height, width)

    Examples
    --------
    >>> random_mask((100, 100), missing=0.3, random_state=0).mean().round(2)
    np.float64(0.7)
    """
    size, share = _check_shape(shape), check_real("missing", missing, maximum=1.0)
    return as_generator(random_state).random(size) >= share


def patch_mask(shape: tuple[int, int], patches: Iterable[Patch] = PAPER_PATCHES) -> np.ndarray:
    """Hide whole boxes.

    Parameters
    ----------
    shape : (int, int)
        Height and width.
    patches : iterable of (int, int, int, int)
        Boxes (row_start, row_stop, column_start, column_stop), half-open, not empty, inside the image; by default the
        paper's, for 240 x 240 pixels.

    Returns
    -------
    ndarray of bool, shape (height, width)

    Examples
    --------
    >>> patch_mask((3, 4), [(0, 2, 1, 3)]).astype(int)
    array([[1, 0, 0, 1],
           [1, 0, 0, 1],
           [1, 1, 1, 1]])
    >>> int((~patch_mask((240, 240))).sum())
    2100
    """
    size = _check_shape(shape)
    mask = np.ones(size, dtype=bool)
    for patch in patches:
        top, bottom, left, right = _check_patch(patch, size)
        mask[top:bottom, left:right] = False
    return mask


def load_mask(path: str | os.PathLike[str], size: int | None = None) -> np.ndarray:
    """Read a mask from an image file: pure white is observed, anything darker is hidden (needs ``images``).

    Parameters
    ----------
    path : str or path
        A file as for `load_image`.
    size : int, optional
        Resize to this height and width, as `load_image` does; only pure white stays observed, so hidden areas grow at
        their edges.

    Returns
    -------
    ndarray of bool, shape (height, width) or (size, size)

    Raises
    ------
    DataError
        As `load_image`. The use of the mask checks what it hides, by `check_mask`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from air_recsys.images import save_image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_mask(save_image(Path(folder) / "mask.png", [[1.0, 0.99, 0.0]]))
    array([[ True, False, False]])
    """
    return read_grey(path, size) == 255


def texture_mask(root: str | os.PathLike[str], size: int = 240) -> np.ndarray:
    """Load the mask of scattered texture that the paper uses (needs the extra ``images``).

    Parameters
    ----------
    root : str or path
        Folder of the data sets, with the file ``images/masks/mask.png``; if it is missing, a `DataError` says where to
        get it.
    size : int
        Height and width; the file has 240 x 240 pixels, of which 90.5 % are observed.

    Returns
    -------
    ndarray of bool, shape (size, size)

    Examples
    --------
    >>> from air_recsys.datasets import data_root
    >>> texture_mask(data_root()).shape  # doctest: +SKIP
    (240, 240)
    """
    return load_mask(find_test_file(root, "masks/mask.png", "masks/mask.png"), size)


def _check_shape(shape: tuple[int, int]) -> tuple[int, int]:
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise ParameterError(f"shape must be a pair (height, width), found {shape!r}")
    return check_integer("height", shape[0], minimum=1), check_integer("width", shape[1], minimum=1)


def _check_patch(patch: Patch, shape: tuple[int, int]) -> list[int]:
    edges = [check_integer("an edge of a patch", edge) for edge in patch]
    if len(edges) != 4 or not (edges[0] < edges[1] <= shape[0] and edges[2] < edges[3] <= shape[1]):
        raise ParameterError(
            "patches must be (row_start, row_stop, column_start, column_stop), not empty and inside the image of "
            f"{times(shape)} pixels, found {tuple(patch)!r}"
        )
    return edges
