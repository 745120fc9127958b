"""Ways to break a file: bytes at random, and the structure that its format has."""

from __future__ import annotations

import copy
import gzip
import io
import json
import zipfile
from collections.abc import Callable
from random import Random
from typing import Any

from attacks.reseal import resealed_header, resealed_json, resealed_members

Mutation = Callable[[bytes, Random], bytes]

_NUMBERS = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1, 10**12)
_WORDS = (
    *b"nan inf -1 0 1e400 1_0 0x10 None \" ' , | :: { ../x /etc/passwd <script>".split(),
    *(b"", b"\0", b"\r", b"\n", b"\t", b" ", b"\xff\xfe", "é".encode(), "١".encode()),
    b"\xed\xa0\x80",  # a lone surrogate
    *(b"9" * 30, b"9" * 5000, b"[" * 2000, b"(" * 3000, b"x" * 3000),
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 10**12, 2**63, 10**400, -0.5, 1e308, float("nan"), float("inf"), "", "x", "7"),
    *("nan", "../x", "<script>", "\ud800", [], {}, [[]], [1, 2, 3], {"a": 1}, "x" * 2000, [10**12, 0], "float32"),
)
_PLACES = (
    *(b"\xff" * 8, b"\0" * 8, b"\xff" * 7 + b"\x7f", b"\0\0\x80\x7f" * 2),
    b"\0" * 6 + b"\xf0\x7f",
    b"\1" + b"\0" * 7,
)
_DTYPES = ("BOOL", "U8", "I8", "I16", "U16", "F16", "BF16", "I32", "U32", "F32", "F64", "I64", "U64", "C64", "F8_E4M3")
_WITH_DIGESTS = 0.8  # share of the files that get right digests again: else the checks behind those would see none
_NAMES = ("../x", "/etc/x", "C:\\x", "a/../../x", "..\\..\\x", "", ".", "x" * 300, "nul\0l", "content", "header.npy")


def of_bytes(content: bytes, rng: Random) -> bytes:
    """Flip, cut, repeat, insert or overwrite a few bytes."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at, to = rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)
        low, high = min(at, to), max(at, to)
        way = rng.randrange(7)
        if way == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif way == 1 and at < len(data):
            data[at] = rng.randrange(256)
        elif way == 2:
            del data[low : rng.choice((high, low + 1, len(data)))]
        elif way == 3:
            data[low:low] = data[low : min(high, low + 200)]
        elif way == 4:
            data[at:at] = rng.choice(_WORDS)
        elif way == 5:
            number = rng.choice(_NUMBERS).to_bytes(8, "little")[: rng.choice((2, 4, 8))]
            data[at : at + len(number)] = number
        elif way == 6:
            data[low : low + 1000] = data[high : high + 1000]
    return bytes(data)


def of_text(content: bytes, rng: Random) -> bytes:
    """Change, drop, repeat or swap words and lines."""
    lines = content.split(b"\n")
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(lines))
        way = rng.randrange(6)
        if way == 0:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif way == 1 and len(lines) > 1:
            del lines[at]
        elif way == 2:
            lines[at] = rng.choice(_WORDS)
        else:
            separator = rng.choice([sign for sign in (b",", b"\t", b"|", b"::", b" ") if sign in lines[at]] or [b","])
            words = lines[at].split(separator)
            words[rng.randrange(len(words))] = rng.choice(_WORDS)
            lines[at] = rng.choice((separator, separator, b",")).join(words)
    return b"\n".join(lines)


def of_value(value: Any, rng: Random) -> Any:
    """Change one place of a value that JSON can hold: another value, another name, one less, one twice."""
    if not value or not isinstance(value, dict | list) or rng.random() < 0.15:
        return copy.deepcopy(rng.choice(_VALUES))
    changed = copy.copy(value)
    key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
    way = rng.randrange(8)
    if way == 0:
        del changed[key]
    elif way == 1 and isinstance(changed, list):
        changed.insert(key, changed[key])
    elif way == 1 and isinstance(changed, dict):
        changed[rng.choice(("", "x", "..", f"{key}_"))] = changed[key]
    else:
        changed[key] = of_value(changed[key], rng)
    return changed


def of_json(content: bytes, rng: Random) -> bytes:
    """Change the value that a JSON text holds."""
    if rng.random() < 0.02:
        return b"[" * 100_000
    value = of_value(json.loads(content), rng)
    return (resealed_json(value) if rng.random() < _WITH_DIGESTS else None) or json.dumps(value).encode()


def of_safetensors(content: bytes, rng: Random) -> bytes:
    """Change the header of a safetensors file, or the JSON texts in it, or numbers of its tensors."""
    end = 8 + int.from_bytes(content[:8], "little")
    header, body = json.loads(content[8:end]), bytearray(content[end:])
    names = [name for name in header if name != "__metadata__"]
    way = rng.randrange(5)
    if way == 0:
        texts = header["__metadata__"]
        name = rng.choice([name for name, text in texts.items() if text[:1] in "[{"])
        texts[name] = json.dumps(of_value(json.loads(texts[name]), rng))
    elif way == 1 and names:
        tensor = header[rng.choice(names)]
        tensor[rng.choice(("dtype", "shape"))] = rng.choice(_DTYPES)
        tensor["shape"] = _reshaped(tensor["data_offsets"], rng)
        tensor["dtype"] = tensor["dtype"] if rng.random() < 0.5 else rng.choice(_DTYPES)
    elif way == 2 and names:
        one, other = rng.choice(names), rng.choice(names)
        header[one], header[other] = header[other], header[one]
    elif way == 3 and names:
        low, high = header[rng.choice(names)]["data_offsets"]
        body[low:high] = _overwritten(bytes(body[low:high]), rng)
    else:
        header = of_value(header, rng)
    text = json.dumps(header).encode()
    if rng.random() < _WITH_DIGESTS:
        text = resealed_header(header, bytes(body)) or text
    return len(text).to_bytes(8, "little") + text + bytes(body)


def of_zip(content: bytes, rng: Random) -> bytes:
    """Write a zip archive again with members changed, renamed, left out or twice."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(member.filename, archive.read(member)) for member in archive.infolist()]
    at = rng.randrange(len(members))
    name, data = members[at]
    way = rng.randrange(5)
    if way == 0:
        members[at] = rng.choice(_NAMES), data
    elif way == 1:
        del members[at]
    elif way == 2:
        members.append((rng.choice(members)[0], data))
    else:
        members[at] = name, of_bytes(data, rng) if rng.random() < 0.6 else of_text(data, rng)
    if rng.random() < _WITH_DIGESTS:
        members = resealed_members(members)
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))) as new:
        for name, data in members:
            new.writestr(zipfile.ZipInfo(name or "x"), data)
    return whole.getvalue()


def of_gzip(content: bytes, rng: Random) -> bytes:
    """Change the text in a gzip file."""
    return gzip.compress(of_text(gzip.decompress(content), rng), 1, mtime=0)


def _reshaped(offsets: list[int], rng: Random) -> list[int]:
    size = offsets[1] - offsets[0]
    shapes = [size // 8], [size // 4], [size], [10**12, 0], [0, 10**12], [], [1, size // 4], [size // 8, 1, 1]
    return rng.choice(shapes)


def _overwritten(data: bytes, rng: Random) -> bytes:
    number = rng.choice(_PLACES)
    if rng.random() < 0.3:
        return (number * (len(data) // 8 + 1))[: len(data)]
    at = rng.randrange(0, max(1, len(data) - 7), 4)
    return bytes(data[:at]) + number[: len(data) - at] + bytes(data[at + 8 :])


FORMS: dict[str, Mutation] = {
    "text": of_text,
    "json": of_json,
    "safetensors": of_safetensors,
    "zip": of_zip,
    "gzip": of_gzip,
    "bytes": of_bytes,
}


def mutated(content: bytes, form: str, rng: Random) -> bytes:
    r"""Return a broken copy of a valid file: two in three by its format, the others by bytes.

    Examples
    --------
    >>> mutated(b"a,b\n1,2", "text", Random(0)) == mutated(b"a,b\n1,2", "text", Random(0)) != b"a,b\n1,2"
    True
    """
    if rng.random() < 0.35:
        return of_bytes(content, rng)
    changed = FORMS[form](content, rng)
    return of_bytes(changed, rng) if rng.random() < 0.1 else changed
