"""Digests in files: they tell a damaged file from a whole one, whichever bit has changed.

A digest guards against accidents. It is no signature: whoever writes a file can write its digest, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from air_recsys.storage.reading import parse_json

DIGEST = "digest"
BLANK = "0" * 64
"""What stands in the place of a text's own digest while that is computed."""
_FIELD = f'"{DIGEST}":"'.encode()


class DamagedError(ValueError):
    """Content that is not what its digest says."""


def digest_of(*parts: bytes | memoryview | np.ndarray) -> str:
    """Return the SHA-256 of bytes and contiguous arrays, one behind the other, as 64 hexadecimal digits.

    Examples
    --------
    >>> digest_of(b"ab", b"c") == digest_of(b"abc") != digest_of(b"abd")
    True
    """
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(part)  # pyright: ignore[reportArgumentType]  # an array is a buffer
    return hashed.hexdigest()


def sealed(text: bytes) -> bytes:
    """Return a JSON text with its digest in its field ``"digest"``, which is `BLANK` before.

    Examples
    --------
    >>> text = sealed(('{"a":1,"digest":"' + BLANK + '"}').encode())
    >>> check_seal(text)
    >>> check_seal(text.replace(b"1", b"3", 1))
    Traceback (most recent call last):
    air_recsys.storage.digests.DamagedError: the header differs from its digest
    """
    start, stop = _place(text)
    return text[:start] + digest_of(text).encode() + text[stop:]


def check_seal(text: bytes, name: str = "the header") -> None:
    """Raise `DamagedError` where a text of `sealed` has changed, or has no digest."""
    start, stop = _place(text, name)
    if digest_of(text[:start], BLANK.encode(), text[stop:]).encode() != text[start:stop]:
        raise DamagedError(f"{name} differs from its digest")


def to_sealed_json(content: Mapping[str, Any]) -> bytes:
    """Return a mapping as JSON with its digest; equal mappings give equal bytes."""
    return sealed(compact_json({**content, DIGEST: BLANK}))


def parse_sealed_json(text: bytes, name: str) -> Any:
    """Return what `to_sealed_json` was given, and its digest; `name` is that of the text, for messages.

    Examples
    --------
    >>> parse_sealed_json(to_sealed_json({"epoch": 3}), "course.json")["epoch"]
    3
    """
    check_seal(text, name)
    return parse_json(text)


def compact_json(value: Any) -> bytes:
    """Return a value as JSON, its keys in order."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _place(text: bytes, name: str = "the header") -> tuple[int, int]:
    """Return where the digest in a text begins and ends."""
    start = text.find(_FIELD) + len(_FIELD)
    if text.count(_FIELD) != 1 or text[start + len(BLANK) : start + len(BLANK) + 1] != b'"':
        raise DamagedError(f"{name} holds no digest")
    return start, start + len(BLANK)
