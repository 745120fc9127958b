"""The command ``inpaint``."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from air_recsys.cli import options, paths
from air_recsys.exceptions import DataError, ParameterError

if TYPE_CHECKING:
    import numpy as np


class Model(StrEnum):
    """What can complete an image: keys of `air_recsys.images.MODELS`, and the choice among them."""

    AUTO = "auto"
    PATCHES = "patches"
    ROWS = "rows"
    PNMC = "pnmc"


def inpaint(
    image: Annotated[Path, typer.Argument(help="Image with hidden pixels; colours become grey.")],
    out: Annotated[
        Path,
        typer.Option("--out", callback=paths.writable, help="Where to write the completed image: a PNG or JPEG file."),
    ],
    mask: Annotated[Path | None, typer.Option(help="Image whose pure white pixels are the observed ones.")] = None,
    missing: Annotated[
        float | None, typer.Option(help="Instead of --mask: the share of pixels to hide at random.")
    ] = None,
    truth: Annotated[Path | None, typer.Option(help="With --mask: the whole image, to measure errors.")] = None,
    size: Annotated[int | None, typer.Option(min=1, help="Resize all images to SIZE x SIZE pixels.")] = None,
    model: Annotated[
        Model, typer.Option(help="Model that completes the image; auto chooses by the size of the holes.")
    ] = Model.AUTO,
    settings: Annotated[list[str] | None, options.pairs("--set", "A parameter of the model; may be repeated.")] = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    json_file: options.JsonFile = None,
) -> None:
    """Fill the hidden pixels of an image, and measure the error if the truth is known."""
    from air_recsys import images
    from air_recsys.evaluation.results import format_number
    from air_recsys.models.presets import routed
    from air_recsys.storage.validation import import_extra

    images.check_image_path(out)
    for module in ("PIL.Image", "skimage.metrics"):
        import_extra(module, "images")
    pixels = images.load_image(image, size)
    observed = _observed(mask, missing, size, seed, pixels)
    whole = _truth(truth, missing, size, pixels)
    chosen = images.model_for(observed) if model is Model.AUTO else images.MODELS[model.value]()
    chosen.set_params(**routed(chosen, options.parse_values(settings)))
    run = {"random_state": seed, "device": device, "verbose": True}
    chosen.set_params(**{name: value for name, value in run.items() if name in chosen.get_params()})
    height, width = pixels.shape
    share = 1 - float(observed.mean())
    typer.echo(f"{height} x {width} pixels, {share:.1%} hidden, completed by {type(chosen).__name__}")
    start = time.perf_counter()
    completed = images.inpaint(pixels, observed, chosen)
    figures = {"height": height, "width": width, "hidden": share, "seconds": time.perf_counter() - start}
    typer.echo(f"completed in {figures['seconds']:.1f} s")
    images.save_image(out, completed)
    if whole is not None:
        errors = images.inpainting_errors(whole, completed, observed)
        nmae, psnr, ssim = (format_number(errors[name]) for name in ("nmae", "psnr", "ssim"))
        typer.echo(f"hidden pixels: NMAE {nmae}, PSNR {psnr} dB; whole image: SSIM {ssim}")
        figures |= errors
    typer.echo(f"wrote {out}")
    options.write_figures(json_file, figures)


def _observed(mask: Path | None, missing: float | None, size: int | None, seed: int, pixels: np.ndarray) -> np.ndarray:
    from air_recsys import images

    if mask is not None and missing is None:
        observed = images.load_mask(mask, size)
    elif missing is not None and mask is None:
        observed = images.random_mask(pixels.shape, missing, seed)
    else:
        raise ParameterError(f"expected either --mask or --missing, found {'neither' if mask is None else 'both'}")
    return images.check_mask(observed, pixels.shape)


def _truth(truth: Path | None, missing: float | None, size: int | None, pixels: np.ndarray) -> np.ndarray | None:
    from air_recsys import images

    if truth is None:
        return None if missing is None else pixels
    if missing is not None:
        options.refuse_unread("--missing, where the image is the truth,", "--truth")
    whole = images.load_image(truth, size)
    if whole.shape != pixels.shape:
        raise DataError(f"expected a truth of the image's size, {pixels.shape}, found {whole.shape}")
    return whole
