"""Files of `ImplicitRanker`: the library's own model file within NumPy's ``.npz``, which all of implicit has."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from air_recsys.adapters.implicit_files import bytes_of, write_archive
from air_recsys.exceptions import ModelFileError
from air_recsys.models import GraphRanker
from air_recsys.models.solvers import plain
from air_recsys.storage.reading import parse_json, read_arrays
from air_recsys.storage.tensor_files import DamagedError, check_seal

FORMAT = "air_recsys implicit ranker 1"

Restored = TypeVar("Restored")


def write(file: Any, parameters: dict[str, Any], model: GraphRanker | None) -> None:
    """Write the parameters, and what was trained, which has digests of its own."""
    arrays: dict[str, Any] = {}
    if model is not None:
        with tempfile.TemporaryDirectory() as folder:
            content = model.save(Path(folder) / "model.air").read_bytes()
        arrays["model"] = np.frombuffer(content, dtype=np.uint8)
    header = {"format": FORMAT, "parameters": {name: plain(value) for name, value in parameters.items()}}
    write_archive(file, arrays, header)


def read(file: Any, restore: Callable[[dict[str, Any], GraphRanker | None], Restored]) -> Restored:
    """Return `restore` of the parameters and the trained model in a file of `write`, or raise `ModelFileError`."""
    whole = bytes_of(file)
    try:
        arrays = read_arrays(whole)
        text = arrays.pop("header").item()
        header = parse_json(text)
        if header["format"] != FORMAT:
            raise ValueError(f"its format is {header['format']!r}, not {FORMAT!r}")
        check_seal(text.encode())
        return restore(header["parameters"], _model(arrays["model"]) if "model" in arrays else None)
    except ModelFileError:
        raise
    except DamagedError as error:
        raise ModelFileError(f"the file of ImplicitRanker is damaged: {error}") from None
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise ModelFileError(f"expected a file that ImplicitRanker.save wrote, found another: {error}") from None


def _model(content: np.ndarray) -> GraphRanker:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.air"
        path.write_bytes(content.tobytes())
        return GraphRanker.load(path)
