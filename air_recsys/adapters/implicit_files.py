"""Files of `ImplicitAIR`: NumPy's ``.npz``, as all of implicit, without pickles."""

from __future__ import annotations

import inspect
import io
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from air_recsys.exceptions import ModelFileError
from air_recsys.graphs import SimilarityGraph
from air_recsys.reading import checked_csr, parse_json, read_arrays
from air_recsys.writing import replace_file

if TYPE_CHECKING:
    from air_recsys.adapters.implicit import ImplicitAIR

FORMAT = "air_recsys implicit 1"
_ARRAYS = ("user_factors", "item_factors", "_user_penalty", "_item_penalty")
_GRAPHS = ("user_graph_", "item_graph_")
_CSR = ("data", "indices", "indptr")

Model = TypeVar("Model", bound="ImplicitAIR")


def write(model: ImplicitAIR, file: Any) -> None:
    """Write a model, fitted or not; a file that is named is replaced in one step."""
    arrays: dict[str, Any] = _arrays(model)
    arrays["header"] = json.dumps({"format": FORMAT, "parameters": _parameters(model)})
    content = io.BytesIO()
    np.savez(content, **arrays)
    if hasattr(file, "write"):
        file.write(content.getvalue())
    else:
        replace_file(_npz(file), content.getvalue())


def read(cls: type[Model], file: Any) -> Model:
    """Read what `write` wrote, or raise `ModelFileError`."""
    whole = file.read() if hasattr(file, "read") else _npz(file).read_bytes()
    try:
        arrays = read_arrays(whole)
        header = parse_json(arrays.pop("header").item())
        if header["format"] != FORMAT:
            raise ValueError(f"its format is {header['format']!r}, not {FORMAT!r}")
        model = cls(**header["parameters"])
        _restore(model, arrays)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
        raise ModelFileError(f"expected a file that ImplicitAIR.save wrote, found another: {error}") from None
    return model


def _parameters(model: ImplicitAIR) -> dict[str, Any]:
    """Return what the constructor takes, as JSON can hold it."""
    values = {name: getattr(model, name) for name in inspect.signature(type(model)).parameters}
    values["dtype"] = model.dtype.name
    if not isinstance(model.random_state, int | np.integer):
        values["random_state"] = None  # a generator's position is not part of a model
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}


def _arrays(model: ImplicitAIR) -> dict[str, np.ndarray]:
    arrays = {name: getattr(model, name) for name in _ARRAYS if getattr(model, name) is not None}
    for name in _GRAPHS:
        graph: SimilarityGraph | None = getattr(model, name)
        if graph is not None:
            matrix = graph.to_scipy()
            arrays |= {f"{name}{part}": getattr(matrix, part) for part in _CSR}
    return arrays


def _restore(model: ImplicitAIR, arrays: dict[str, np.ndarray]) -> None:
    _check(arrays)
    for name in _ARRAYS:
        setattr(model, name, arrays.get(name))
    for name in _GRAPHS:
        if f"{name}data" in arrays:
            size = len(arrays[f"{name}indptr"]) - 1
            data, indices, indptr = (arrays[f"{name}{part}"] for part in _CSR)
            matrix = checked_csr(data, indices, indptr, (size, size))
            setattr(model, name, SimilarityGraph(matrix, range(size), name.removesuffix("_graph_")))


def _check(arrays: dict[str, np.ndarray]) -> None:
    """Raise `ValueError` where factors and penalties are not finite numbers of one width."""
    for name in _ARRAYS:
        array = arrays.get(name)
        if array is not None and (array.dtype.kind != "f" or array.ndim != 2 or not np.isfinite(array).all()):
            raise ValueError(f"expected a finite matrix {name}, found {array.dtype} of shape {array.shape}")
    if len({array.shape[-1] for name in _ARRAYS if (array := arrays.get(name)) is not None}) > 1:
        raise ValueError("expected factors and penalties of one width, found several")
    for factors, graph in (("user_factors", "user_graph_"), ("item_factors", "item_graph_")):
        rows, ends = arrays.get(factors), arrays.get(f"{graph}indptr")
        if rows is not None and ends is not None and len(ends) != len(rows) + 1:
            raise ValueError(f"expected {graph} of {len(rows)} nodes, found {len(ends) - 1}")


def _npz(path: str | os.PathLike[str]) -> Path:
    target = Path(path)
    return target if target.suffix == ".npz" else target.with_name(f"{target.name}.npz")
