"""Files of implicit's recommenders: NumPy's ``.npz``, as in all of implicit, without pickles and with digests."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from air_recsys.exceptions import ModelFileError
from air_recsys.models.solvers import plain
from air_recsys.storage.reading import parse_json, read_arrays
from air_recsys.storage.tensor_files import DamagedError, check_seal, digest_of, to_sealed_json
from air_recsys.storage.validation import check_path
from air_recsys.storage.writing import replace_file

FORMAT = "air_recsys implicit 1"
Arrays = dict[str, np.ndarray]
Restored = TypeVar("Restored")


def write(file: Any, model: str, parameters: dict[str, Any], arrays: Arrays, learned: dict[str, Any]) -> None:
    """Write a model to a binary file, or in one step to a path.

    To a path without ".npz" that is added. Positions of generators are not stored.
    """
    values = {name: plain(value) for name, value in parameters.items()}
    if not isinstance(values["random_state"], int):
        values["random_state"] = None
    header = {"format": FORMAT, "model": model, "parameters": values, "digests": digests_of(arrays)} | learned
    content = io.BytesIO()
    named: dict[str, Any] = {"header": np.array(to_sealed_json(header).decode()), **arrays}
    np.savez(content, **named)
    if hasattr(file, "write"):
        file.write(content.getvalue())
        return
    target = _npz(file)
    try:
        replace_file(target, content.getvalue())
    except OSError as error:
        raise ModelFileError(f"cannot write {target}: {error.strerror or error}") from None


def read(file: Any, model: str, restore: Callable[[dict[str, Any], Arrays], Restored]) -> Restored:
    """`restore` of the header and the arrays in a file of `write`, or raise `ModelFileError`."""
    whole = file.read() if hasattr(file, "read") else _npz(file).read_bytes()
    try:
        arrays = read_arrays(whole)
        text = arrays.pop("header").item()
        header = parse_json(text)
        if (header["format"], header["model"]) != (FORMAT, model):
            raise ValueError(f"its format is {header['format']!r} of {header['model']!r}, not {FORMAT!r} of {model!r}")
        check_seal(text.encode())
        _compare(digests_of(arrays), header["digests"])
        return restore(header, arrays)
    except ModelFileError:
        raise
    except DamagedError as error:
        raise ModelFileError(f"the file of {model} is damaged: {error}") from None
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise ModelFileError(f"expected a file that {model}.save wrote, found another: {error}") from None


def digests_of(arrays: Mapping[str, np.ndarray]) -> dict[str, str]:
    """The digest of each array, of its type and shape too."""
    forms = {name: f"{array.dtype.str} {array.shape}".encode() for name, array in arrays.items()}
    return {name: digest_of(forms[name], np.ascontiguousarray(array)) for name, array in arrays.items()}


def _compare(found: Mapping[str, str], written: Mapping[str, str]) -> None:
    for name in [*found, *written]:
        if found.get(name) != written.get(name):
            raise DamagedError(f"array {name} differs from its digest")


def _npz(path: str | os.PathLike[str]) -> Path:
    target = check_path("path", path)
    return target if target.suffix == ".npz" else target.with_name(f"{target.name}.npz")
