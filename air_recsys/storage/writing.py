"""Writing of files that are complete or absent."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np

from air_recsys.exceptions import ParameterError
from air_recsys.storage.held_files import HeldError, HeldFile, remove_free

Chunk = bytes | memoryview | np.ndarray
_TOKEN = "[0-9a-f]{16}"
_LONGEST = 200  # bytes of a name that stands in the names of files beside it


def is_folder(path: Path) -> bool:
    """Return whether there is a folder; False for a name that none can have, too, such as one that is too long."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_file(path: Path) -> bool:
    """Return whether there is a file; False for a name that none can have, too."""
    try:
        return path.is_file()
    except OSError:
        return False


def check_folder(path: str | os.PathLike[str]) -> Path:
    """The path of a file to write, or `ParameterError` where its folder does not exist."""
    target = Path(path)
    if not target.parent.is_dir():
        raise ParameterError(f"expected an existing folder for {target.name}, found no {target.parent}")
    return target


def real_place(target: Path) -> Path:
    """Return where a file lies: what a symbolic link leads to."""
    return Path(os.path.realpath(target))


def beside(place: Path, ending: str) -> Path:
    """Return a hidden file beside another, by whose name it is found again, however long that is."""
    name = place.name
    if len(os.fsencode(name)) > _LONGEST:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()[:32]
    return place.with_name(f".{name}.{ending}")


def remove_leftovers(target: Path) -> None:
    """Remove the temporary files beside `target` of processes that were killed in `replace_file`.

    A temporary file that a live process or thread is writing is held, see `air_recsys.storage.held_files`, and stays.
    """
    place = real_place(target)
    pattern = re.compile(re.escape(beside(place, "").name) + _TOKEN)
    with suppress(OSError):  # of a folder that is not there or shows no names
        for path in place.parent.iterdir():
            if pattern.fullmatch(path.name):
                remove_free(path)


def replace_file(target: Path, content: bytes | Iterable[Chunk]) -> None:
    """Write `content` beside `target` and move it there, so no reader sees an incomplete file.

    A file that is replaced hands on its permissions, and a symbolic link stays: what it leads to is replaced. What
    killed processes have left behind is removed first.

    Raises
    ------
    OSError
        With the path of `target`; what stood there before still does.
    """
    try:
        _replace(real_place(target), [content] if isinstance(content, bytes) else content)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(target)) from None


def _replace(place: Path, content: Iterable[Chunk]) -> None:
    mode = _mode(place)
    remove_leftovers(place)
    temporary = _temporary(place, 0o666 if mode is None else mode | stat.S_IWUSR)
    try:
        for chunk in content:
            temporary.stream.write(chunk)  # pyright: ignore[reportArgumentType]  # an array is a buffer
        temporary.stream.flush()
        os.fsync(temporary.stream.fileno())
        if mode is not None:
            temporary.path.chmod(mode)
        temporary.move(place)
    except BaseException:
        temporary.remove()
        raise


def _temporary(place: Path, mode: int) -> HeldFile:
    while True:
        try:
            return HeldFile(beside(place, secrets.token_hex(8)), mode)
        except HeldError:
            continue


def _mode(place: Path) -> int | None:
    """Return the permissions of the file at a place, None where there is none."""
    try:
        found = place.lstat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(place))
    if not stat.S_ISREG(found):  # a device, a pipe, or a link that leads to itself
        raise OSError(errno.EINVAL, "not a regular file", str(place))
    return stat.S_IMODE(found)
