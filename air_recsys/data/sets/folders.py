"""Search for the data root and for the files of a data set under it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import platformdirs

from air_recsys.data.sets.registry import get_dataset
from air_recsys.exceptions import DataFileError

DATA_VARIABLE = "AIR_RECSYS_DATA"
SHARED_FOLDER = Path("../shared/data")


def download_folder() -> Path:
    """Return where `fetch` puts data sets by default: AIR_RECSYS_DATA, else the user's cache folder."""
    named = os.environ.get(DATA_VARIABLE)
    return Path(named).expanduser() if named else platformdirs.user_cache_path("air-recsys")


def data_root(path: str | Path | None = None) -> Path:
    """Find the folder that holds the data sets.

    The first of these that is given: `path`; the environment variable AIR_RECSYS_DATA; the folder
    ``../shared/data`` beside the current one, if it exists; the cache folder of `fetch`, if it exists.

    Parameters
    ----------
    path : str or Path, optional
        The folder, where the caller knows it.

    Returns
    -------
    Path
        An existing folder.

    Raises
    ------
    DataFileError
        If the named folder does not exist, or none is named and none of the defaults exists.

    Examples
    --------
    >>> data_root(".").is_dir()
    True
    """
    named = os.environ.get(DATA_VARIABLE)
    if path is not None:
        return _existing(Path(path).expanduser(), "path")
    if named:
        return _existing(Path(named).expanduser(), DATA_VARIABLE)
    for folder in (SHARED_FOLDER, download_folder()):
        if folder.is_dir():
            return folder
    raise DataFileError(
        f"expected a folder with data sets, found neither {SHARED_FOLDER} nor {download_folder()}; pass the folder, "
        f"set the environment variable {DATA_VARIABLE}, or run `air-recsys datasets fetch NAME`"
    )


def _existing(folder: Path, origin: str) -> Path:
    if not folder.is_dir():
        raise DataFileError(f"expected {origin} to name a folder with data sets, found no folder {str(folder)!r}")
    return folder


def find_file(root: str | Path, dataset: str, names: Sequence[str]) -> Path:
    """Find a file of a data set in its folder or in any folder above.

    Parameters
    ----------
    root : str or Path
        The folder that holds the file, or one above it: for ``dti/davis`` that is ``davis`` or ``dti`` or the
        data root.
    dataset : str
        Name in the registry.
    names : sequence of str
        Possible names of the file, best first.

    Raises
    ------
    DataFileError
        With the file expected, the folder looked in and how to get it.
    """
    entry = get_dataset(dataset)
    base = Path(root).expanduser()
    folders = PurePosixPath(entry.folder).parts
    for start in range(len(folders), -1, -1):
        for name in names:
            candidate = base.joinpath(*folders[start:], name)
            if candidate.is_file():
                return candidate
    expected = " or ".join(repr(name) for name in names)
    state = "" if base.is_dir() else ", which is not a folder"
    raise DataFileError(
        f"expected the file {expected} of {entry.title} in {str(base)!r}{state} (or in its folder {entry.folder!r}), "
        f"found none; {entry.how_to_get}"
    )
