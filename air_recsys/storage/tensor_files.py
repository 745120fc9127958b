"""Tensor files, the form of models and checkpoints: safetensors, the same bytes for the same content, with digests.

The format is that of the safetensors library, which reads these files, too: eight bytes with the length of a JSON
text, that text, and the tensors one behind the other. The header holds a digest of each tensor (``"digests"``) and one
of itself (``"digest"``), so that together they cover every byte of the file. Files are read and not mapped, unless the
caller says that nobody else writes to them: a file that is rewritten in place does no harm to what was read.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from air_recsys.storage.reading import parse_json

DIGESTS = "digests"
_LONGEST = 100_000_000  # bytes of a header that safetensors reads
_UNIT = 8  # bytes that the tensors begin at a multiple of
_TYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
}
_NUMBERS = {kind: np.dtype(name).newbyteorder("<") for name, kind in _TYPES.items()}
_LARGE, _THREADS = 2**20, 2  # bytes from which on, and by how many threads, digests are computed side by side

Chunk = bytes | np.ndarray
Forms = Iterator[tuple[str, list[int], np.dtype]]


class TensorFile:
    """A tensor file that was read into memory, once, or is mapped into it; its bytes are not checked yet.

    Parameters
    ----------
    stream : binary file
        At its begin.
    size : int
        Bytes in it.
    mapped : bool
        Let the arrays be those of a file on disk, which processes share, in place of copies. Nobody may shorten or
        overwrite the file as long as they are used. What is written to the arrays stays with the process.

    Attributes
    ----------
    metadata : dict
        The texts of the header, as they stand there.
    arrays : dict of str to ndarray
    size : int

    Raises
    ------
    ValueError
        If header and tensors do not fit each other, or not the file.
    """

    def __init__(self, stream: BinaryIO, size: int, *, mapped: bool = False) -> None:
        length = int.from_bytes(stream.read(_UNIT), "little")
        if not 0 < length <= min(_LONGEST, size - _UNIT):
            raise ValueError("found no header of tensors")
        self.size, self._text = size, stream.read(length)
        header: dict[str, Any] = dict(parse_json(self._text))
        self.metadata: dict[str, Any] = dict(header.pop("__metadata__", None) or {})
        forms, taken = _forms(header, size - _UNIT - length), _viewed if mapped else _read
        self.arrays = dict(taken(forms, stream))

    @classmethod
    def read(cls, path: Path, *, mapped: bool = False) -> TensorFile:
        """Read a file, or map it."""
        with path.open("rb") as stream:
            return cls(stream, os.fstat(stream.fileno()).st_size, mapped=mapped)

    def verify(self, *, required: bool) -> None:
        """Raise `DamagedError` where a byte is not what was written, and where the digests `required` are absent."""
        if not required and not {DIGEST, DIGESTS} & self.metadata.keys():
            return
        check_seal(self._text)
        written = parse_json(self.metadata[DIGESTS])
        for name, digest in _digests(self.arrays).items():
            if written.get(name) != digest:
                raise DamagedError(f"tensor {name} differs from its digest")


def header_of(path: Path) -> bytes:
    """Return the text of a header, unchecked; of another file its first bytes, whatever they are."""
    with path.open("rb") as stream:
        start = stream.read(_UNIT)
        return start + stream.read(min(_LONGEST, int.from_bytes(start, "little")))


def tensor_chunks(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> list[Chunk]:
    """Return a tensor file as pieces to be written one behind the other, the arrays themselves among them."""
    whole = {name: _stored(array) for name, array in arrays.items()}
    # The largest numbers come first, so that each lies at a multiple of its size.
    names = sorted(whole, key=lambda name: (-whole[name].dtype.itemsize, name))
    texts = {**metadata, DIGESTS: json.dumps(_digests(whole), sort_keys=True), DIGEST: BLANK}
    header: dict[str, Any] = {"__metadata__": texts}
    end = 0
    for name in names:
        array, start = whole[name], end
        end += array.nbytes
        header[name] = {"dtype": _type_of(name, array), "shape": list(array.shape), "data_offsets": [start, end]}
    text = compact_json(header)
    text = sealed(text + b" " * (-len(text) % _UNIT))
    return [len(text).to_bytes(_UNIT, "little"), text, *(whole[name] for name in names)]


def _forms(header: Mapping[str, Any], size: int) -> Iterator[tuple[str, list[int], np.dtype]]:
    """Yield name, shape and type of the tensors of a header, in the order in which they fill `size` bytes."""
    end = 0
    for name, tensor in sorted(header.items(), key=lambda entry: entry[1]["data_offsets"]):
        if tensor["dtype"] not in _NUMBERS:
            raise ValueError(f"expected numbers in {name}, found {tensor['dtype']}")
        (start, stop), shape, kind = tensor["data_offsets"], tensor["shape"], _NUMBERS[tensor["dtype"]]
        whole = all(type(number) is int and number >= 0 for number in (start, stop, *shape))
        if not whole or start != end or math.prod(shape) * kind.itemsize != stop - start or stop > size:
            raise ValueError(f"expected tensors one behind the other in {size} bytes, found another {name}")
        if max(shape, default=0) > size + len(header):
            raise ValueError(f"expected at most {size} rows in {name}, found shape {shape}")
        end = stop
        yield name, shape, kind
    if end != size:
        raise ValueError(f"expected tensors of {size} bytes, found {end}")


def _read(forms: Forms, stream: BinaryIO) -> Iterator[tuple[str, np.ndarray]]:
    for name, shape, kind in forms:
        array = np.empty(shape, kind)
        buffer: Any = array.reshape(-1).view(np.uint8)
        if array.nbytes and stream.readinto(buffer) != array.nbytes:  # type: ignore[attr-defined]
            raise ValueError("the file ends within its tensors")
        yield name, array


def _viewed(forms: Forms, stream: BinaryIO) -> Iterator[tuple[str, np.ndarray]]:
    place, whole = stream.tell(), mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
    for name, shape, kind in forms:
        array = np.ndarray(shape, kind, buffer=whole, offset=place)
        place += array.nbytes
        yield name, np.require(array, requirements="A")  # files of other writers may have no places for their numbers


def _digests(arrays: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Return the digest of each array, large ones side by side."""
    if sum(array.nbytes for array in arrays.values()) < _LARGE:
        return {name: digest_of(array) for name, array in arrays.items()}
    names = sorted(arrays, key=lambda name: -arrays[name].nbytes)
    with ThreadPoolExecutor(_THREADS) as pool:
        return dict(zip(names, pool.map(lambda name: digest_of(arrays[name]), names), strict=True))


def _stored(array: np.ndarray) -> np.ndarray:
    """Return an array as it lies in the file: by rows, the lowest byte of a number first."""
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def _type_of(name: str, array: np.ndarray) -> str:
    if array.dtype.name not in _TYPES:
        raise ValueError(f"expected numbers in {name}, found {array.dtype}")
    return _TYPES[array.dtype.name]


DIGEST = "digest"
BLANK = "0" * 64
"""What stands in the place of a text's own digest while that is computed."""
_FIELD = f'"{DIGEST}":"'.encode()


class DamagedError(ValueError):
    """Content that is not what its digest says."""


def digest_of(*parts: bytes | memoryview | np.ndarray) -> str:
    """Return the SHA-256 of bytes and contiguous arrays, one behind the other, as 64 hexadecimal digits."""
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(part)  # pyright: ignore[reportArgumentType]  # an array is a buffer
    return hashed.hexdigest()


def sealed(text: bytes) -> bytes:
    """Return a JSON text with its digest in its field ``"digest"``, which is `BLANK` before."""
    start, stop = _place(text)
    return text[:start] + digest_of(text).encode() + text[stop:]


def check_seal(text: bytes) -> None:
    """Raise `DamagedError` where a text of `sealed` has changed, or has no digest."""
    start, stop = _place(text)
    if digest_of(text[:start], BLANK.encode(), text[stop:]).encode() != text[start:stop]:
        raise DamagedError("the header differs from its digest")


def to_sealed_json(content: Mapping[str, Any]) -> bytes:
    """Return a mapping as JSON with its digest; equal mappings give equal bytes."""
    return sealed(compact_json({**content, DIGEST: BLANK}))


def compact_json(value: Any) -> bytes:
    """Return a value as JSON, its keys in order."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _place(text: bytes) -> tuple[int, int]:
    """Return where the digest in a text begins and ends."""
    start = text.find(_FIELD) + len(_FIELD)
    if text.count(_FIELD) != 1 or text[start + len(BLANK) : start + len(BLANK) + 1] != b'"':
        raise DamagedError("the header holds no digest")
    return start, start + len(BLANK)
