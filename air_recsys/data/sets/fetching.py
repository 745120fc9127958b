"""Download of data sets from their publishers: checked against their checksums, complete or not at all."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import warnings
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

from tqdm import tqdm

from air_recsys.data.sets.registry import Dataset, RemoteFile, download_folder, get_dataset
from air_recsys.exceptions import DataFileError
from air_recsys.storage.reading import ARCHIVE_ERRORS, check_archive

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
    """Download a file; `pooch.retrieve` would log, and name neither the address nor the reason of a failure."""
    with warnings.catch_warnings(action="ignore"):  # about its progress bars in notebooks without widgets
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
                    place = target / name.relative_to(member_folder)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    with content.open(member) as source, place.open("wb") as copy:
                        shutil.copyfileobj(source, copy)
    except DataFileError:
        raise
    except ARCHIVE_ERRORS as error:
        raise DataFileError(f"{archive.name}: expected a zip archive, found: {error}") from None


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
