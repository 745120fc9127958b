"""Every reader of files of others, each with a small valid sample to be broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Loader:
    """A reader and what it reads.

    Parameters
    ----------
    form : str
        A key of `benchmarks.faults.mutations.FORMS`.
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
