"""Images from and to files."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from air_recsys.exceptions import DataError, ParameterError
from air_recsys.storage.validation import check_choice, check_integer, import_extra
from air_recsys.storage.writing import check_folder, replace_file

_FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}
_TEST_IMAGES = {"barbara": "Barbara.jpg", "baboon": "baboon.bmp", "cameraman": "Cameraman.jpg"}
_JPEG_QUALITY = 95  # Pillow's default of 75 alters the observed pixels visibly


def load_image(path: str | os.PathLike[str], size: int | None = None) -> np.ndarray:
    r"""Read an image file as brightness (needs the extra ``images``).

    Brightness is :math:`(0.299 R + 0.587 G + 0.114 B) / 255`, rounded to a multiple of 1/255.

    Parameters
    ----------
    path : str or path
        A PNG, JPEG, BMP, GIF, TIFF, WebP or PPM file, with up to 8 bits a colour and no transparent pixels; it is
        rotated as its metadata say.
    size : int, optional
        Resize to this height and width of any proportions: each colour is sampled bilinearly at the new pixel
        centres :math:`(i + \tfrac12)\,s - \tfrac12` (s the old over the new size, clipped to the image), without
        smoothing before, and rounded.

    Returns
    -------
    ndarray of float64, shape (height, width) or (size, size)
        In [0, 1].

    Raises
    ------
    DataError
        For a file that is missing, empty, no image, damaged, suspiciously large, transparent, or of more than 8 bits.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = save_image(Path(folder) / "grey.png", [[0.0, 0.2], [0.4, 1.0]])
    ...     load_image(file), load_image(file, size=1)
    (array([[0. , 0.2], [0.4, 1. ]]), array([[0.4]]))

    Notes
    -----
    The same steps as in the program of Li, Sun, Wang, Wang (SIAM J. Imaging Sciences 15(4), 2022), which calls OpenCV;
    OpenCV interpolates with rounded weights, so a resized pixel may differ by 1/255.
    """
    return read_grey(path, size) / 255.0


def load_test_image(root: str | os.PathLike[str], name: str, size: int = 240) -> np.ndarray:
    """Load one of the paper's test images (needs the extra ``images``).

    Parameters
    ----------
    root : str or path
        Folder of the data sets, with the files in its folder ``images``; if one is missing, a `DataError` says where
        to get it.
    name : {"barbara", "baboon", "cameraman"}
    size : int
        Height and width.

    Returns
    -------
    ndarray of float64, shape (size, size)
        As of `load_image`.

    Examples
    --------
    >>> from air_recsys.datasets import data_root
    >>> load_test_image(data_root(), "barbara").shape  # doctest: +SKIP
    (240, 240)
    """
    check_choice("name", name, list(_TEST_IMAGES))
    file = find_test_file(root, _TEST_IMAGES[name], f"train_pics/{_TEST_IMAGES[name]}")
    return load_image(file, size)


def find_test_file(root: str | os.PathLike[str], name: str, origin: str) -> Path:
    """Return a file of the folder ``images`` under `root`, or say where in the authors' repository it is."""
    file = Path(root).expanduser() / "images" / name
    if not file.is_file():
        raise DataError(
            f"expected the file {str(file)!r}, found none; it is {origin} of "
            "https://github.com/lizhemin15/AIR-Net, copy it there"
        )
    return file


def save_image(path: str | os.PathLike[str], image: Any) -> Path:
    """Write an image as 8-bit grey, replacing an older file at once (needs the extra ``images``).

    An interrupted write leaves the old file unchanged.

    Parameters
    ----------
    path : str or path
        Its suffix decides the format: ``.png``, which keeps every pixel, or ``.jpg`` and ``.jpeg``.
    image : array_like of float, shape (height, width)
        Brightness; clipped to [0, 1] and rounded to a multiple of 1/255.

    Returns
    -------
    Path

    Raises
    ------
    DataError
        For anything but a 2-D array of finite numbers.
    ParameterError
        For another suffix, or a folder that does not exist.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_image(Path(folder) / "black.png", np.zeros((2, 3))).name
    'black.png'
    """
    target, pixels = check_image_path(path), as_pixels(image)
    if not np.isfinite(pixels).all():
        raise DataError(f"expected finite brightness, found {(~np.isfinite(pixels)).sum()} NaN or infinite pixel(s)")
    levels = np.floor(pixels.clip(0, 1) * 255 + 0.5).astype(np.uint8)
    content = io.BytesIO()
    picture = import_extra("PIL.Image", "images").fromarray(levels)
    picture.save(content, format=_FORMATS[target.suffix.lower()], quality=_JPEG_QUALITY)
    replace_file(target, content.getvalue())
    return target


def check_image_path(path: str | os.PathLike[str]) -> Path:
    """Return the path to write an image to, or raise `ParameterError`.

    Examples
    --------
    >>> check_image_path("completed.png").suffix
    '.png'
    """
    target = Path(path)
    if target.suffix.lower() not in _FORMATS:
        raise ParameterError(f"expected a name that ends in one of {', '.join(_FORMATS)}, found {target.name!r}")
    if target.is_dir():
        raise ParameterError(f"expected a file to write to, found the folder {target}")
    return check_folder(target)


# Formats of pixels only: for others, such as EPS, Pillow starts another program.
_READ_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
_MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr")
_MOST_PIXELS = 2**25  # a few bytes of a GIF can declare any number of pixels
_WEIGHTS = (299, 587, 114)  # of red, green and blue, in thousandths
_OPAQUE = 255


def read_grey(path: str | os.PathLike[str], size: int | None = None) -> np.ndarray:
    """Return a file's image as uint8, shape (height, width), or (size, size) where resized.

    Resizing comes first and rounds each colour, then the colours are weighed: the order of the authors' program.
    Errors are those of `load_image`.
    """
    if size is not None:
        check_integer("size", size, minimum=1)
    colours = _read_colours(Path(path))  # (height, width, 3)
    if size is not None and colours.shape[:2] != (size, size):
        colours = _resize(colours, size)  # (size, size, 3)
    red, green, blue = (weight * colours[..., place].astype(np.uint32) for place, weight in enumerate(_WEIGHTS))
    return ((red + green + blue + 500) // 1000).astype(np.uint8)


def _read_colours(path: Path) -> np.ndarray:
    """Return red, green and blue as uint8, shape (height, width, 3)."""
    if not path.is_file():
        raise DataError(f"expected an image file, found no file {str(path)!r}")
    pillow, operations = import_extra("PIL.Image", "images"), import_extra("PIL.ImageOps", "images")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pillow.DecompressionBombWarning)
            with pillow.open(path, formats=_READ_FORMATS) as image:
                if image.width * image.height > _MOST_PIXELS:
                    raise ValueError(f"{image.width:,} x {image.height:,} pixels, more than {_MOST_PIXELS:,}")
                mode = image.mode
                upright = operations.exif_transpose(image)
    except Exception as error:  # decoders raise nearly every class of error on broken files
        reason = str(error) or type(error).__name__
        raise DataError(f"expected an image that can be read in {path}, found: {reason}") from None
    if mode not in _MODES:
        raise DataError(f"expected an image of at most 8 bits a colour, found {path} with mode {mode!r}")
    if mode in ("CMYK", "YCbCr"):
        upright = upright.convert("RGB")
    colours = np.asarray(upright.convert("RGBA"))  # (height, width, 4)
    if colours[..., 3].min() < _OPAQUE:
        raise DataError(f"expected an opaque image, found transparent pixels in {path}; put it on a background first")
    return colours[..., :3]


def _resize(colours: np.ndarray, size: int) -> np.ndarray:
    """Sample bilinearly at pixel centres, without smoothing before, as OpenCV does by default."""
    resize = import_extra("skimage.transform", "images").resize
    sampled = resize(
        colours.astype(np.float64), (size, size), order=1, mode="edge", anti_aliasing=False, preserve_range=True
    )
    return np.floor(sampled + 0.5).astype(np.uint8)


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
