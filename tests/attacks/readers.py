"""Readers of files of others, each with a small valid sample, and the folder in which it is broken."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from attacks.mutations import mutated


@dataclass(frozen=True)
class Loader:
    """A reader and what it reads.

    Parameters
    ----------
    form : str
        A key of `attacks.mutations.FORMS`.
    make : callable
        Writes valid files into a folder.
    load : callable
        Reads that folder, and uses what it has read.
    share : float
        How many inputs it gets, beside the others; slow readers get fewer.
    """

    name: str
    form: str
    make: Callable[[Path], Any]
    load: Callable[[Path], Any]
    share: float = 1.0


class Workplace:
    """Valid files of a reader, which has to read them once.

    Parameters
    ----------
    folder : Path
        Emptied first.
    seed : int
        Of all inputs: the input of a number is the same in every process.
    """

    def __init__(self, reader: Loader, folder: Path, seed: int) -> None:
        self._reader, self._folder, self._seed = reader, folder, seed
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        reader.make(folder)
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        self._valid = {path: path.read_bytes() for path in files}
        self._broken: Path | None = None
        self._places = set(folder.rglob("*"))
        with warnings.catch_warnings(action="ignore"):
            reader.load(folder)
        self.tidy()

    def broken(self, number: int) -> Path:
        """Return the folder with one of its files broken."""
        rng = Random(f"{self._seed}/{self._reader.name}/{number}")
        victim = rng.choice(list(self._valid))
        if self._broken is not None and self._broken != victim:
            self._broken.write_bytes(self._valid[self._broken])
        self._broken = victim
        with warnings.catch_warnings(action="ignore"):  # of zipfile, about names that stand twice
            victim.write_bytes(mutated(self._valid[victim], self._form(victim), rng))
        return self._folder

    def _form(self, path: Path) -> str:
        if path.suffix == ".json":
            return "json"
        return "bytes" if self._reader.form == "json" else self._reader.form

    def tidy(self) -> None:
        """Remove what a reader wrote."""
        for path in self._folder.iterdir():
            if path not in self._places:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def all_readers() -> dict[str, Loader]:
    """The readers of the package by name, those of all extras among them.

    Raises
    ------
    MissingExtraError
        Where an extra of the readers is not installed.
    """
    from attacks import model_loaders, table_loaders

    return {loader.name: loader for loader in (*model_loaders.loaders(), *table_loaders.loaders())}
