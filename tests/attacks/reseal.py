"""Right digests for files that were changed on purpose, as whoever writes a hostile file can write them.

Each function returns None, or leaves things as they are, where what was changed is too broken for digests.
"""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import suppress
from typing import Any

import numpy as np

from air_recsys.storage.reading import read_arrays
from air_recsys.storage.tensor_files import BLANK, DIGEST, DIGESTS, compact_json, digest_of, sealed, to_sealed_json

_FAULTS = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, OSError, RecursionError)


def resealed_header(header: dict[str, Any], body: bytes) -> bytes | None:
    """Return the header of a tensor file with the digests of its tensors."""
    with suppress(*_FAULTS):
        texts, content = header["__metadata__"], memoryview(body)
        if DIGEST not in texts:
            return None
        offsets = {name: entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"}
        digests = {name: digest_of(content[low:high]) for name, (low, high) in offsets.items()}
        whole = header | {"__metadata__": texts | {DIGESTS: json.dumps(digests), DIGEST: BLANK}}
        return sealed(compact_json(whole))
    return None


def resealed_json(content: Any) -> bytes | None:
    """Return a JSON file with its own digest."""
    with suppress(*_FAULTS):
        return to_sealed_json(content) if DIGEST in content else None
    return None


def resealed_members(members: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Return the members of an ``.npz`` file of `ImplicitAIR` with the digests of its arrays."""
    from air_recsys.adapters._implicit_files import digests_of

    with suppress(*_FAULTS):
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as whole:
            for name, data in members:
                whole.writestr(zipfile.ZipInfo(name), data)
        arrays = read_arrays(archive.getvalue())
        header = json.loads(arrays.pop("header").item())
        text, stream = to_sealed_json(header | {DIGESTS: digests_of(arrays)}), io.BytesIO()
        np.save(stream, np.array(text.decode()))
        return [(name, stream.getvalue() if name == "header.npy" else data) for name, data in members]
    return members
