"""The table of the data sets in ``registry.toml``: names, addresses, checksums and terms."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pandas as pd

from air_recsys.exceptions import DataFileError
from air_recsys.storage.validation import check_choice

REGISTRY_FILE = Path(__file__).with_name("registry.toml")


@dataclass(frozen=True)
class RemoteFile:
    """A file of a publisher: its address, checksum, and place in the folder of the data set."""

    path: str  # under the folder of the data set; of an archive, its name
    url: str
    sha256: str  # in hexadecimal digits
    unpack: str | None = None  # of a zip archive, the folder inside of it whose files are taken


@dataclass(frozen=True)
class Dataset:
    """One data set of the registry."""

    name: str  # for `fetch`
    title: str
    folder: str  # under the data root
    users: int
    items: int
    ratings: int
    terms: str  # of use
    source: str  # the publisher's page
    provides: tuple[str, ...] = ()  # paths under `folder` that are there once the set is complete
    files: tuple[RemoteFile, ...] = ()  # to download; none where the publisher has no address for them

    @property
    def fetchable(self) -> bool:
        """Whether `fetch` can download the set."""
        return bool(self.files)

    @property
    def how_to_get(self) -> str:
        """The way to get the set, as the end of a sentence."""
        if self.fetchable:
            return f"get it with `air-recsys datasets fetch {self.name}`"
        return f"get it from {self.source}"


def read_registry(path: Path = REGISTRY_FILE) -> dict[str, Dataset]:
    """Read a registry file into data sets by name."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        return {name: _dataset(name, table) for name, table in tables.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DataFileError(f"{path}: expected a registry of data sets, found: {error}") from None


def _dataset(name: str, table: dict) -> Dataset:
    files = tuple(RemoteFile(**file) for file in table.pop("files", ()))
    provides = tuple(table.pop("provides", ())) or tuple(file.path for file in files)
    dataset = Dataset(name=name, files=files, provides=provides, **table)
    for place in (dataset.folder, *provides, *(file.path for file in files)):
        path = PurePosixPath(place.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or ":" in place:
            raise ValueError(f"{name} has the place {place!r}, which is outside of the data root")
    return dataset


def get_dataset(name: str) -> Dataset:
    """Return one data set of the registry, or raise `ParameterError` that lists the names."""
    registry = read_registry()
    return registry[check_choice("name", name, registry.keys())]


def available() -> pd.DataFrame:
    """List the data sets that the loaders know.

    Returns
    -------
    DataFrame
        One row per data set, indexed by the name that `fetch` takes, with the columns `title`, `users`, `items`,
        `ratings`, `fetchable` (whether `fetch` can download it), `terms` (of use) and `source` (the publisher's
        page).

    Examples
    --------
    >>> available().loc["ml-100k", ["users", "items", "ratings"]].tolist()
    [943, 1682, 100000]
    """
    columns = ["title", "users", "items", "ratings", "fetchable", "terms", "source"]
    registry = read_registry()
    rows = [[getattr(dataset, column) for column in columns] for dataset in registry.values()]
    return pd.DataFrame(rows, columns=columns, index=pd.Index(registry, name="name"))


DATA_VARIABLE = "AIR_RECSYS_DATA"
SHARED_FOLDER = Path("../shared/data")


def download_folder() -> Path:
    """Return where `fetch` puts data sets by default: AIR_RECSYS_DATA, else the user's cache folder."""
    named = os.environ.get(DATA_VARIABLE)
    if named:
        return Path(named).expanduser()
    import platformdirs

    return platformdirs.user_cache_path("air-recsys")


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
    """Find a file of a data set, by the best of its possible names, in its folder or in any folder above."""
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
