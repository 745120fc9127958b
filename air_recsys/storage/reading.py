"""Reading of foreign bytes: the size of the file limits what they unpack to, and no code in them runs."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from air_recsys.exceptions import DataError
from air_recsys.storage.validation import check_integer

_ROOM = 64 * 2**20  # bytes that a small file may unpack to
_RATIO = 100  # unpacked over packed size: 10 to 30 for tables and arrays, 1000 for a decompression bomb
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"  # how the files begin
_SHOWN = 5  # names in a message

AS_A_TABLE = "save it as CSV, or read it with pandas and give the table"
ARCHIVE_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, NotImplementedError, RuntimeError),
    *(ValueError, TypeError, LookupError, OverflowError, OSError),
)
"""Errors of `zipfile` for broken archives, its own included."""


def unpacked_limit(size: int) -> int:
    """Return how many bytes a packed file of `size` bytes may unpack to: 64 MiB and 100 times its size."""
    return _ROOM + _RATIO * check_integer("size", size)


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text; every fault of it is a `ValueError`."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("the JSON nests too deep") from None


@contextmanager
def unpacked(file: BinaryIO) -> Iterator[BinaryIO]:
    """Yield the content of an open file: unpacked where it is gzip, or a zip archive of one file, else as it is.

    A `ValueError` ends the reading beyond `unpacked_limit`.
    """
    start = file.read(len(_ZIP))
    file.seek(0)
    size = os.fstat(file.fileno()).st_size
    if start.startswith(_GZIP):
        with gzip.open(file, "rb") as packed:
            yield io.BufferedReader(_Bounded(packed, unpacked_limit(size)))  # pyright: ignore[reportReturnType]
    elif start == _ZIP:
        with zipfile.ZipFile(file) as archive, archive.open(_only_member(archive, size)) as packed:
            yield packed  # pyright: ignore[reportReturnType]
    else:
        yield file


def _only_member(archive: zipfile.ZipFile, size: int) -> zipfile.ZipInfo:
    check_archive(archive, size)
    members = [each for each in archive.infolist() if not each.is_dir() and not each.filename.startswith("__MACOSX/")]
    if any(each.filename == "xl/workbook.xml" for each in members):
        raise ValueError(f"an Excel workbook: {AS_A_TABLE}")
    if len(members) != 1:
        names = ", ".join(each.filename for each in members[:_SHOWN]) + ", ..." * (len(members) > _SHOWN)
        raise ValueError(f"expected an archive of one file, found {len(members)} ({names}): unpack it first")
    return members[0]


@contextmanager
def open_unpacked(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, see `unpacked`."""
    with path.open("rb") as file, unpacked(file) as content:
        yield content


def check_archive(archive: zipfile.ZipFile, size: int) -> None:
    """Raise `ValueError` where an archive of `size` bytes declares more than `unpacked_limit`, or odd packing.

    `zipfile` itself never unpacks more of a member than is declared.
    """
    declared, limit = sum(member.file_size for member in archive.infolist()), unpacked_limit(size)
    if declared > limit:
        raise ValueError(f"expected at most {limit:,} bytes once unpacked, found {declared:,}")
    odd = [member.filename for member in archive.infolist() if member.compress_type not in _METHODS]
    if odd:
        raise ValueError(f"expected members that are stored or deflated, found {odd[0]!r} packed otherwise")


def read_arrays(content: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of an ``.npz`` file; no pickle is read, and no array larger than its bytes.

    Every fault of the bytes is a `ValueError`.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_archive(archive, len(content))
            return {name.removesuffix(".npy"): _array(archive.read(name)) for name in archive.namelist()}
    except (*ARCHIVE_ERRORS, SyntaxError, tokenize.TokenError) as error:  # the last two from headers of arrays
        raise ValueError(str(error) or type(error).__name__) from None


def checked_csr(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]) -> sp.csr_array:
    """Return a sparse matrix whose indices lie inside of it; SciPy's own check accepts unsigned ones."""
    for name, array, kinds in (("data", data, "biuf"), ("indices", indices, "i"), ("indptr", indptr, "i")):
        if array.ndim != 1 or array.dtype.kind not in kinds:
            raise ValueError(f"expected a sparse matrix, found {name} of type {array.dtype} and shape {array.shape}")
    if indptr.size != shape[0] + 1 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(f"expected a sparse matrix of shape {shape}, found other starts of its rows")
    if not indptr[-1] == indices.size == data.size or not ((indices >= 0) & (indices < shape[1])).all():
        raise ValueError(f"expected a sparse matrix of shape {shape}, found other places of its values")
    return sp.csr_array((data, indices, indptr), shape=shape)


def checked_sparse(name: str, matrix: Any) -> Any:
    """Return a sparse matrix of a caller whose arrays fit each other and its shape: compiled code trusts them.

    Values are not looked at, but for the zeros that fill blocks of BSR: they go. Duplicates stay, and nothing is
    copied where the matrix is CSR, CSC or COO already, unless its type is a small one: sums of repeated pairs are
    beyond it. What is no such matrix is a `DataError`.
    """
    if not sp.issparse(matrix) or matrix.ndim != 2:
        row = f" of {matrix.ndim} dimension(s): matrix[[row]] keeps two" if sp.issparse(matrix) else ""
        raise DataError(f"expected {name} as a 2-D SciPy sparse matrix, found {type(matrix).__name__}{row}")
    try:
        checked = _checked_by_format(matrix)
        return checked.astype(_roomy(checked.dtype), copy=False)
    except (ValueError, TypeError, AttributeError, LookupError, OverflowError) as error:
        fault = str(error).removeprefix("expected a sparse matrix")
        whole = fault != str(error)
        raise DataError(f"expected {name} as a sparse matrix{fault if whole else f', found {fault}'}") from None


def _roomy(kind: np.dtype) -> np.dtype:
    """Return the type of integers in which sums of a few of a type have room, else the same one, in native order."""
    return np.dtype(np.int32) if kind.kind in "iu" and kind.itemsize < 4 else kind.newbyteorder("=")


def _checked_by_format(matrix: Any) -> Any:
    form, (n_rows, n_columns) = matrix.format, matrix.shape
    if form == "csr":
        return _checked_compressed(matrix, (n_rows, n_columns))
    if form == "csc":
        rows = _checked_compressed(matrix, (n_columns, n_rows))
        return sp.csc_array((rows.data, rows.indices, rows.indptr), shape=matrix.shape)
    if form == "bsr":
        height, width = matrix.blocksize
        blocks = np.arange(len(matrix.data))
        checked_csr(blocks, matrix.indices, matrix.indptr, (n_rows // height, n_columns // width))
    coo = matrix.tocoo()
    if form == "bsr":
        coo.eliminate_zeros()
    data, rows, columns = (np.asarray(array) for array in (coo.data, coo.row, coo.col))
    for array, size in ((rows, n_rows), (columns, n_columns)):
        checked_csr(data, array, np.array([0, array.size]), (1, size))
    return sp.coo_array((data, (rows, columns)), shape=matrix.shape)


def _checked_compressed(matrix: Any, shape: tuple[int, int]) -> sp.csr_array:
    data, indices, indptr = (np.asarray(array) for array in (matrix.data, matrix.indices, matrix.indptr))
    stored = int(indptr[-1]) if indptr.size else 0  # beyond that lies room for more
    if min(data.size, indices.size) < stored:
        raise ValueError(f"expected a sparse matrix, found {data.size} values and {indices.size} places of {stored}")
    return checked_csr(data[:stored], indices[:stored], indptr, shape)


def _array(content: bytes) -> np.ndarray:
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"expected arrays of version 1.0 or 2.0, found {version}")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, kind = read(stream)
    if kind.hasobject or kind.fields is not None or not kind.itemsize:
        raise ValueError(f"expected arrays of numbers or text, found {kind}")
    values = content[stream.tell() :]
    if math.prod(shape) * kind.itemsize != len(values) or max(shape, default=0) > len(content):
        raise ValueError(f"expected {len(values):,} bytes of values, found {kind} of shape {shape}")
    array = np.frombuffer(values, kind) if values else np.empty(0, kind)
    return array.reshape(shape, order="F" if by_columns else "C").copy()


class _Bounded(io.RawIOBase):
    """A stream that raises a `ValueError` beyond `limit` bytes."""

    def __init__(self, source: Any, limit: int) -> None:
        self._source, self._limit, self._left = source, limit, limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._source.read(len(buffer))
        self._left -= len(chunk)
        if self._left < 0:
            raise ValueError(f"expected at most {self._limit:,} bytes once unpacked, found more")
        buffer[: len(chunk)] = chunk
        return len(chunk)
