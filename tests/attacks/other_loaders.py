"""Readers of archives, registries, pictures and studies."""

from __future__ import annotations

import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from air_recsys.data.sets.fetching import unpack
from air_recsys.data.sets.registry import read_registry
from air_recsys.evaluation.tuning.storage import open_study, storage_url
from air_recsys.images import load_image, load_mask
from air_recsys.storage.validation import import_extra
from attacks.readers import Loader

_REGISTRY = """[toy]
title = "Toy"
folder = "toy"
users = 1
items = 2
ratings = 3
terms = "free"
source = "https://example.org"
provides = ["toy.data"]

[[toy.files]]
path = "toy.zip"
url = "https://example.org/toy.zip"
sha256 = "00"
unpack = "toy"
"""


def loaders() -> list[Loader]:
    """Return the readers of this module."""
    pictures = [
        Loader(f"image, {suffix.upper()}", "bytes", partial(_write_image, suffix), partial(_read_image, suffix), 0.5)
        for suffix in ("png", "jpg", "bmp", "gif", "tiff", "webp", "ppm")
    ]
    return [
        Loader("archive of a data set", "zip", _write_archive, _unpack),
        Loader("registry of data sets", "text", _write_registry, lambda folder: read_registry(folder / "r.toml")),
        *pictures,
        Loader("study of a search", "bytes", _write_study, _study, 0.02),
    ]


def _write_image(suffix: str, folder: Path) -> None:
    levels = (np.arange(48).reshape(6, 8) * 5).astype(np.uint8)
    import_extra("PIL.Image", "images").fromarray(levels).save(folder / f"a.{suffix}")


def _read_image(suffix: str, folder: Path) -> None:
    load_image(folder / f"a.{suffix}")
    load_mask(folder / f"a.{suffix}", 4)


def _write_archive(folder: Path) -> None:
    with zipfile.ZipFile(folder / "toy.zip", "w") as archive:
        for name in ("toy/toy.data", "toy/more/a.txt", "other.txt"):
            archive.writestr(zipfile.ZipInfo(name), b"1\t2\t3\n" * 9)


def _unpack(folder: Path) -> None:
    """Unpack two folders deep, and raise `AssertionError` for a file anywhere else."""
    inner = folder / "outer" / "inner"
    inner.mkdir(parents=True)
    try:
        unpack(folder / "toy.zip", "toy", inner)
    finally:
        strays = [path for path in folder.rglob("*") if inner not in (path, *path.parents)]
        if {path.name for path in strays} != {"toy.zip", "outer"}:
            raise AssertionError(f"found files outside of the archive's folder: {strays}")


def _write_registry(folder: Path) -> None:
    (folder / "r.toml").write_text(_REGISTRY, encoding="utf-8")


def _write_study(folder: Path) -> None:
    study = _study(folder)
    trial = study.ask()
    trial.suggest_int("depth", 2, 3)
    study.tell(trial, 0.5)


def _study(folder: Path) -> Any:
    search = {"data": "d", "space": {"depth": [2, 3]}}
    return open_study(storage_url(folder / "study.db"), "search", "minimize", search)
