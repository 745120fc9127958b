"""Download of data sets from their publishers: checked against their checksums, complete or not at all."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import tomllib
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd
from tqdm import tqdm

from air_recsys.data.sets.files import download_folder
from air_recsys.exceptions import DataFileError
from air_recsys.storage.reading import ARCHIVE_ERRORS, check_archive
from air_recsys.storage.validation import check_choice

_TIMEOUT = 30  # seconds without an answer
_CHUNK = 2**16  # bytes


def fetch(
    name: str, destination: str | Path | None = None, *, base_url: str | None = None, progress: bool = True
) -> Path:
    """Download a data set from its publisher, unless the folder already has it.

    Every file is compared with the checksum of the registry. The files move into place when all of them are downloaded
    and checked, so a failed download leaves nothing behind. Existing files are kept. The terms of use are those of the
    publisher (see `available`).

    Parameters
    ----------
    name : str
        A name that `available` lists as fetchable.
    destination : str or Path, optional
        The data root, under which the set gets its folder. By default the environment variable AIR_RECSYS_DATA,
        else the user's cache folder.
    base_url : str, optional
        Address of a mirror that has the files under their names in the registry.
    progress : bool
        Show a progress bar per file on standard error.

    Returns
    -------
    Path
        The folder of the set, which its loader takes.

    Raises
    ------
    DataFileError
        If the set has no address, the publisher cannot be reached or does not have the file, the checksum is
        wrong, or the folder cannot be written.
    ParameterError
        If the name is unknown.

    Examples
    --------
    >>> from air_recsys.datasets import fetch, load_movielens
    >>> load_movielens(fetch("ml-100k")).n_ratings  # doctest: +SKIP
    100000
    """
    root = download_folder() if destination is None else Path(destination).expanduser()
    return fetch_dataset(get_dataset(name), root, base_url=base_url, progress=progress)


def fetch_dataset(dataset: Dataset, root: Path, *, base_url: str | None = None, progress: bool = True) -> Path:
    """Download a data set of any registry; as `fetch`."""
    folder = root / dataset.folder
    if all((folder / path).is_file() for path in dataset.provides):
        return folder
    if not dataset.fetchable:
        raise DataFileError(f"{dataset.title} has no address to download from; {dataset.how_to_get}")
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root, prefix=".fetch-") as staging:
            for file in dataset.files:
                _stage(file, folder, Path(staging), base_url, progress)
            _install(dataset, Path(staging, "files"), folder)
    except OSError as error:
        raise DataFileError(f"{dataset.name}: expected a folder to write to, found: {error}") from None
    return folder


def _stage(file: RemoteFile, folder: Path, staging: Path, base_url: str | None, progress: bool) -> None:
    """Put the checked file, or the content of the archive, under ``staging/files``."""
    if file.unpack is None and (folder / file.path).is_file():
        return
    target = staging / ("files" if file.unpack is None else "archives") / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    url = file.url if base_url is None else f"{base_url.rstrip('/')}/{file.path}"
    _download(url, target, progress)
    with target.open("rb") as content:
        checksum = hashlib.file_digest(content, "sha256").hexdigest()
    if checksum != file.sha256:
        raise DataFileError(f"{url}: expected the sha256 checksum {file.sha256}, found {checksum}; nothing was kept")
    if file.unpack is not None:
        unpack(target, file.unpack, staging / "files")


def _download(url: str, target: Path, progress: bool) -> None:
    with warnings.catch_warnings():  # about its progress bars in notebooks without widgets
        warnings.simplefilter("ignore")
        import pooch
    bar: Any = tqdm(desc=target.name, unit="B", unit_scale=True, total=0) if progress else False
    downloader = pooch.HTTPDownloader(progressbar=bar, chunk_size=_CHUNK, timeout=_TIMEOUT)
    try:
        downloader(url, str(target), None)
    except OSError as error:  # the errors of requests are OSErrors
        raise DataFileError(f"could not download {url}: {_reason(error)}") from None
    finally:
        if bar:
            bar.close()


def _reason(error: OSError) -> str:
    if error.errno is not None:  # of the local disk; the errors of requests have no number
        return str(error)
    response = getattr(error, "response", None)
    if response is not None:
        return f"the server answered {response.status_code} {response.reason}"
    return f"no connection, or one that broke ({type(error).__name__}); check the network and try again"


def unpack(archive: Path, member_folder: str, target: Path) -> None:
    """Unpack the files of one folder of a zip archive."""
    try:
        with zipfile.ZipFile(archive) as content:
            check_archive(content, archive.stat().st_size)
            for member in content.infolist():
                name = PurePosixPath(member.filename.replace("\\", "/"))
                if name.is_absolute() or ".." in name.parts or any(":" in folder for folder in name.parts[:1]):
                    raise DataFileError(
                        f"{archive.name}: expected files inside of the archive's folder, found {member.filename!r}"
                    )
                if not member.is_dir() and name.is_relative_to(member_folder):
                    _extract(content, member, target / name.relative_to(member_folder))
    except DataFileError:
        raise
    except ARCHIVE_ERRORS as error:
        raise DataFileError(f"{archive.name}: expected a zip archive, found: {error}") from None


def _extract(content: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with content.open(member) as source, target.open("wb") as copy:
        shutil.copyfileobj(source, copy)


def _install(dataset: Dataset, staged: Path, folder: Path) -> None:
    """Move staged files to their places if the set is then complete; existing files are kept."""
    absent = [path for path in dataset.provides if not (staged / path).is_file() and not (folder / path).is_file()]
    if absent:
        raise DataFileError(f"{dataset.name}: expected the file(s) {absent} in the download, found none")
    for source in sorted(path for path in staged.rglob("*") if path.is_file()):
        target = folder / source.relative_to(staged)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            source.replace(target)


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
