"""Files that were changed on purpose and carry right digests all the same, as their authors could write them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

BLANK = "0" * 64


def tensor_bytes(arrays: dict[str, Any], metadata: dict[str, str]) -> bytes:
    """A safetensors file with the digests of its content; what they are is told here anew."""
    plain = {name: text for name, text in metadata.items() if name not in ("digest", "digests")}
    content = save({name: np.array(array, order="C") for name, array in arrays.items()}, plain)
    end = 8 + int.from_bytes(content[:8], "little")
    header, body = json.loads(content[8:end]), content[end:]
    offsets = {name: entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"}
    digests = {name: hashlib.sha256(body[low:high]).hexdigest() for name, (low, high) in offsets.items()}
    header["__metadata__"] = {**plain, "digests": json.dumps(digests), "digest": BLANK}
    text = json.dumps(header, separators=(",", ":")).encode()
    text = sealed_text(text + b" " * (-len(text) % 8))
    return len(text).to_bytes(8, "little") + text + body


def sealed_text(text: bytes) -> bytes:
    """A JSON text with its own digest in the place of 64 zeros."""
    return text.replace(f'"digest":"{BLANK}"'.encode(), f'"digest":"{hashlib.sha256(text).hexdigest()}"'.encode())


def sealed_json(content: dict[str, Any]) -> bytes:
    """A mapping as JSON with its own digest."""
    return sealed_text(json.dumps(content | {"digest": BLANK}, separators=(",", ":")).encode())


def parts_of(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Metadata and arrays of a safetensors file."""
    with safe_open(path, framework="numpy") as file:
        return file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, not a dict


def rewrite(path: Path, metadata: Any = None, arrays: Any = None, drop: Any = ()) -> None:
    """Write a model file or a checkpoint again with parts of it changed, and with right digests."""
    texts, tensors = parts_of(path)
    kept = {name: array for name, array in (tensors | (arrays or {})).items() if name not in drop}
    path.write_bytes(tensor_bytes(kept, {n: t for n, t in (texts | (metadata or {})).items() if n not in drop}))
