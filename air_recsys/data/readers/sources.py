"""Files of text as UTF-8 without a byte order mark, whatever their packing and encoding; lines have a limit."""

from __future__ import annotations

import codecs
import io
import os
import re
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

from air_recsys.exceptions import AirRecsysError, DataFileError, ParameterError, quoted
from air_recsys.storage.reading import ARCHIVE_ERRORS, AS_A_TABLE, unpacked

ONE_SIGN = "\x1f"
"""The unit separator of ASCII. It stands for a separator of two signs, which parsers do not know."""

_FOREIGN = (
    (rb"\xd0\xcf\x11\xe0", "an Excel workbook"),
    (rb"\xfd7zXZ|BZh\d1AY|\x28\xb5\x2f\xfd|.{257}ustar", "a file packed by xz, bzip2, zstd or tar"),
    (rb"\x80[\x02-\x05]|\x93NUMPY|SQLite format 3|ARROW1\0|\x89HDF", "a file of pickle, NumPy, SQLite, Feather, HDF5"),
    (rb"\s*<(!doctype|html|\?xml)", "a page of HTML or XML"),
    (rb'\s*(\[\s*)?\{\s*"', "JSON"),
)
_MOST_OF_A_LINE = 4 * 2**20  # bytes: a header of 100,000 items has two million
_AT_ONCE = 1 << 16
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


def check_encoding(encoding: str | None) -> None:
    """Raise `ParameterError` where an encoding is none of text."""
    try:
        if encoding is not None:
            "a".encode(encoding)
    except (LookupError, TypeError, ValueError):
        raise ParameterError(
            f"encoding must be one of text, such as utf-8, latin-1 or utf-16, found {encoding!r}"
        ) from None


@contextmanager
def regular(path: str | Path) -> Iterator[Path]:
    """Yield a file that can be read again and again: the same one, or a copy of standard input ("-") or of a pipe."""
    if not isinstance(path, str | os.PathLike):
        raise DataFileError(f"expected the path of one file, found {type(path).__name__} {quoted(path)}")
    file = Path(path).expanduser()
    if str(path) != "-" and not _is_pipe(file):
        yield file
        return
    name = "standard input" if str(path) == "-" else str(file)
    with tempfile.TemporaryDirectory(prefix="air-recsys-") as folder:
        copy = Path(folder, Path(name).name)
        with copy.open("wb") as target:
            if str(path) == "-":
                if sys.stdin.isatty():
                    sys.stderr.write("reading the standard input; Ctrl-D ends it\n")
                shutil.copyfileobj(sys.stdin.buffer, target)
            else:
                with file.open("rb") as source:
                    shutil.copyfileobj(source, target)
        try:
            yield copy
        except AirRecsysError as error:
            error.args = tuple(str(each).replace(str(copy), name) for each in error.args)
            raise


def _is_pipe(file: Path) -> bool:
    try:
        return stat.S_ISFIFO(file.stat().st_mode)
    except OSError:
        return False


@contextmanager
def open_lines(path: Path, encoding: str | None = None, separator: str | None = None) -> Iterator[Lines]:
    """Open a file of text as UTF-8; a separator of two signs comes as `ONE_SIGN`."""
    with path.open("rb") as file, unpacked(file) as content:
        yield Lines(file, content, encoding, separator if separator and len(separator) > 1 else None)


@contextmanager
def open_text(path: Path, encoding: str | None = None) -> Iterator[TextIO]:
    """Open a file of text; what cannot be read raises `DataFileError`, also while it is read."""
    try:
        with open_lines(path, encoding) as lines:
            yield io.TextIOWrapper(io.BufferedReader(lines), encoding="utf-8", newline="")
    except UnicodeError as error:
        raise undecodable(path, encoding, error) from None
    except AirRecsysError:
        raise
    except (zlib.error, *ARCHIVE_ERRORS) as error:
        raise DataFileError(f"{path}: expected a readable file, found: {error}") from None


class UndecodableError(DataFileError):
    """Text of another encoding than the expected one."""


def undecodable(path: Path, encoding: str | None, error: UnicodeError) -> UndecodableError:
    """Return the error for text of another encoding than the expected one, with one to try."""
    found = "bytes that are none"
    if isinstance(error, UnicodeDecodeError):
        found = f"byte 0x{error.object[error.start]:02x}"
    hint = "" if encoding else "; is it encoding='latin-1' (in the shell --encoding latin-1)?"
    return UndecodableError(f"{path}: expected text encoded in {encoding or 'utf-8'}, found {found}{hint}")


class Lines(io.RawIOBase):
    """The bytes of a text in UTF-8, which counts its lines; a `ValueError` ends a line that is too long.

    `lacks_end` says whether the file ends within its last line.
    """

    def __init__(self, file: BinaryIO, content: BinaryIO, encoding: str | None, doubled: str | None) -> None:
        self._file, self._content, self._doubled = file, content, doubled
        start = content.read(264)  # as many bytes as tell what a file is
        for form, what in _FOREIGN:
            if re.match(form, start, re.DOTALL | re.IGNORECASE):
                raise DataFileError(f"{file.name}: expected text or Parquet, found {what}: {AS_A_TABLE}")
        marked = next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)
        is_utf8 = (encoding is None and marked is None) or _is_utf8(encoding)
        self._decoder = None if is_utf8 else codecs.getincrementaldecoder(encoding or str(marked))()
        self._start = start.removeprefix(codecs.BOM_UTF8) if is_utf8 else start
        self._ready, self._carried, self._at_end = b"", b"", False
        self.n_lines, self._length, self.lacks_end = 0, 0, False

    def readable(self) -> bool:
        """Return True."""
        return True

    def passed(self) -> int:
        """Return how many bytes of the file have been read, packed as they lie there."""
        return self._file.tell()

    def readinto(self, buffer: memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Read some bytes into a buffer and return their number, 0 at the end."""
        while not self._ready and not self._at_end:
            self._ready = self._next()
        part, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)

    def _next(self) -> bytes:
        chunk = self._start or self._content.read(_AT_ONCE)
        self._start, self._at_end = b"", not chunk
        if self._decoder is not None:
            chunk = self._decoder.decode(chunk, final=self._at_end).encode()
        chunk = self._single(chunk)
        self._count(chunk)
        return chunk

    def _single(self, chunk: bytes) -> bytes:
        """Return a chunk with one sign for each separator of two; its last sign may be the first of one."""
        if self._doubled is None:
            return chunk
        pair = self._doubled.encode()
        whole = (self._carried + chunk).replace(pair, ONE_SIGN.encode())
        self._carried = b"" if self._at_end or not whole.endswith(pair[:1]) else pair[:1]
        return whole[: len(whole) - len(self._carried)]

    def _count(self, chunk: bytes) -> None:
        n_ends = chunk.count(b"\n")
        self._length += chunk.find(b"\n") if n_ends else len(chunk)
        if self._length > _MOST_OF_A_LINE:
            found = f"more in line {self.n_lines + 1}"
            raise ValueError(f"expected at most {_MOST_OF_A_LINE:,} bytes in a line, found {found}")
        self.n_lines += n_ends
        if n_ends:
            self._length = len(chunk) - chunk.rfind(b"\n") - 1
        self.lacks_end = self._at_end and self._length > 0
        if self.lacks_end:
            self.n_lines, self._length = self.n_lines + 1, 0  # the last line has no end


def _is_utf8(encoding: str | None) -> bool:
    return encoding is not None and codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")
