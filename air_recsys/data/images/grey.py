"""Reading of image files of the common kinds as 8-bit grey."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np

from air_recsys.exceptions import DataError
from air_recsys.storage.validation import check_integer, import_extra

# Formats of pixels only: for others, such as EPS, Pillow starts another program.
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
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
            with pillow.open(path, formats=_FORMATS) as image:
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
