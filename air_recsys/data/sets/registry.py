"""The table of the data sets in ``registry.toml``: names, addresses, checksums and terms."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pandas as pd

from air_recsys.exceptions import DataFileError
from air_recsys.storage.validation import check_choice

REGISTRY_FILE = Path(__file__).with_name("registry.toml")


@dataclass(frozen=True)
class RemoteFile:
    """A file of a publisher: its address, checksum, and place in the folder of the data set.

    Parameters
    ----------
    path : str
        Path under the folder of the data set; for an archive, the name of the archive.
    url : str
        Address at the publisher's.
    sha256 : str
        Checksum in hexadecimal digits.
    unpack : str, optional
        For a zip archive, the folder inside of it whose files are taken.
    """

    path: str
    url: str
    sha256: str
    unpack: str | None = None


@dataclass(frozen=True)
class Dataset:
    """One data set of the registry.

    Parameters
    ----------
    name : str
        Name of the data set for `fetch`.
    title, terms, source : str
        A title, the terms of use, and the publisher's page.
    folder : str
        Where the files lie under the data root.
    users, items, ratings : int
        The published sizes.
    provides : tuple of str
        Paths under `folder` that are there once the set is complete.
    files : tuple of RemoteFile
        The files to download; empty where the publisher has no address for them.
    """

    name: str
    title: str
    folder: str
    users: int
    items: int
    ratings: int
    terms: str
    source: str
    provides: tuple[str, ...] = ()
    files: tuple[RemoteFile, ...] = ()

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
    """Read a registry file into data sets by name.

    Raises
    ------
    DataFileError
        If the file is no such table, or names a place outside of the data root.

    Examples
    --------
    >>> read_registry()["ml-100k"].title
    'MovieLens 100K'
    """
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
