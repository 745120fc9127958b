"""Model files: safetensors with the metadata as JSON. Nothing in a file is ever executed."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import scipy.sparse as sp
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from air_recsys.exceptions import DataError, ModelFileError
from air_recsys.graphs import SimilarityGraph
from air_recsys.interactions import Interactions
from air_recsys.models.file_checks import check_arrays, check_attributes, check_starts
from air_recsys.models.spread import PredictionSpread
from air_recsys.reading import checked_csr, parse_json
from air_recsys.writing import replace_file

if TYPE_CHECKING:
    from air_recsys.models.base import Recommender

FORMAT = "air_recsys model"
FORMAT_VERSION = 2  # 2: what standard deviations and new rows of a posterior need
_FACTORS = ("user_factors_", "item_factors_", "user_biases_", "item_biases_")
_COURSE = ("n_iter_", "stopped_by_", "device_")

Model = TypeVar("Model", bound="Recommender")
Restored = TypeVar("Restored")


class Contents(NamedTuple):
    """What a model file holds."""

    source: Path
    model: str  # the name of its class
    parameters: dict[str, Any]
    attributes: dict[str, Any]
    arrays: dict[str, np.ndarray]


def write(model: Recommender, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model; the file at `path` is replaced in one step once the new one is complete."""
    parameters = model._saved_parameters(model.interactions_)
    return write_contents(path, type(model), parameters, _attributes(model), _arrays(model))


def read(cls: type[Model], path: str | os.PathLike[str]) -> Model:
    """Read a model of class `cls` (or a subclass) that `write` wrote."""
    return read_contents(path, partial(_restore, cls))


def write_contents(
    path: str | os.PathLike[str],
    cls: type,
    parameters: Mapping[str, Any],
    attributes: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
) -> Path:
    """Write a model of any class: parameters and attributes that JSON can hold, and arrays."""
    target = Path(path)
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "model": cls.__name__,
        "parameters": json.dumps(parameters),
        "attributes": json.dumps(attributes),
    }
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    write_atomically(target, to_bytes(whole, metadata))
    return target


def read_contents(path: str | os.PathLike[str], restore: Callable[[Contents], Restored]) -> Restored:
    """Return what `restore` makes of a model file; whatever is amiss in it is a `ModelFileError`."""
    source = Path(path)
    if not source.is_file():
        raise ModelFileError(f"expected a model file, found no file {source}")
    try:
        with safe_open(source, framework="numpy") as file:
            metadata = file.metadata() or {}
            _check_header(source, metadata)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, not a dict
        check_arrays(arrays, source.stat().st_size)
        parameters, attributes = (parse_json(metadata[name]) for name in ("parameters", "attributes"))
        return restore(Contents(source, metadata["model"], parameters, attributes, arrays))
    except ModelFileError:
        raise
    except (SafetensorError, OSError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
        raise ModelFileError(f"{source} is not a whole air_recsys model file: {error}") from None


def write_atomically(target: Path, content: bytes) -> None:
    """Replace a model file in one step, or raise `ModelFileError` where it cannot stand."""
    if not target.parent.is_dir():
        raise ModelFileError(f"cannot write {target.name}: there is no folder {target.parent}")
    if target.is_dir():
        raise ModelFileError(f"cannot write {target.name}: it is a folder")
    replace_file(target, content)


def _attributes(model: Recommender) -> dict[str, Any]:
    present = {name: getattr(model, name) for name in _COURSE if hasattr(model, name)}
    return {
        "global_mean_": model.global_mean_,
        "history_": list(model.history_.columns),
        "course": present,
        "transform_graphs": [len(graph) for graph in model.transform_graphs_],
    }


def _arrays(model: Recommender) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {
        **interactions_to_arrays(model.interactions_),
        **{name: getattr(model, name) for name in _FACTORS},
        **{f"history_{name}": model.history_[name].to_numpy() for name in model.history_.columns},
    }
    if model._spread is not None:
        arrays |= model._spread.to_arrays()
    further = {f"transform_{number}_": graph for number, graph in enumerate(model.transform_graphs_)}
    for name, graph in {"user_graph_": model.user_graph_, "item_graph_": model.item_graph_, **further}.items():
        if graph is not None:
            arrays |= graph_to_arrays(name, graph)
    return arrays


def interactions_to_arrays(data: Interactions) -> dict[str, np.ndarray]:
    """Return interactions as arrays of a model file; raise `DataError` for ids that it cannot hold."""
    arrays = {
        "user_index": data.user_index,
        "item_index": data.item_index,
        "ratings": data.ratings,
        **_ids_to_arrays("user_ids", data.user_ids),
        **_ids_to_arrays("item_ids", data.item_ids),
    }
    return arrays if data.weights is None else arrays | {"weights": data.weights}


def interactions_from_arrays(arrays: Mapping[str, np.ndarray]) -> Interactions:
    """Return what `interactions_to_arrays` was given."""
    return Interactions(
        arrays["user_index"],
        arrays["item_index"],
        arrays["ratings"],
        _ids_from_arrays("user_ids", arrays),
        _ids_from_arrays("item_ids", arrays),
        weights=arrays.get("weights"),
        allow_negative=True,
    )


def graph_to_arrays(name: str, graph: SimilarityGraph) -> dict[str, np.ndarray]:
    """Return a graph as arrays of a model file, all of a name that begins with `name`."""
    matrix = graph.to_scipy()
    return {f"{name}data": matrix.data, f"{name}indices": matrix.indices, f"{name}indptr": matrix.indptr}


def graph_from_arrays(
    name: str, kind: str, ids: np.ndarray, arrays: Mapping[str, np.ndarray]
) -> SimilarityGraph | None:
    """Return what `graph_to_arrays` was given, None where there is no graph of that name."""
    if f"{name}data" not in arrays:
        return None
    return SimilarityGraph(_adjacency(name, ids.size, arrays), ids, kind)


def _ids_to_arrays(name: str, ids: np.ndarray) -> dict[str, np.ndarray]:
    if ids.dtype != object:
        return {name: ids}
    if not all(isinstance(value, str) for value in ids):
        found = next(type(value).__name__ for value in ids if not isinstance(value, str))
        raise DataError(f"a model file holds ids that are all integers or all strings, found a {found} in {name}")
    try:
        encoded = [value.encode() for value in ids]
    except UnicodeEncodeError as error:
        raise DataError(f"expected ids that UTF-8 can hold, found {error.object!r} in {name}") from None
    starts = np.cumsum([0, *map(len, encoded)])
    return {f"{name}_text": np.frombuffer(b"".join(encoded), dtype=np.uint8), f"{name}_starts": starts}


def _ids_from_arrays(name: str, arrays: Mapping[str, np.ndarray]) -> Iterable[Any]:
    if name in arrays:
        return arrays[name]
    text = arrays[f"{name}_text"].tobytes()
    starts = check_starts(arrays[f"{name}_starts"], len(text))
    return [text[low:high].decode() for low, high in itertools.pairwise(starts)]


def _check_header(source: Path, metadata: dict[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        raise ModelFileError(f"{source} is not an air_recsys model file")
    version = metadata.get("format_version", "")
    if not version.isdecimal() or int(version) > FORMAT_VERSION:
        raise ModelFileError(
            f"{source} has format version {version!r}, this release reads up to {FORMAT_VERSION}: upgrade air_recsys"
        )


def unfitted(cls: type[Restored], contents: Contents) -> Restored:
    """Return a model with the parameters of a file, of class `cls` or of a subclass, whichever the file holds."""
    known = {kind.__name__: kind for kind in [cls, *_subclasses(cls)]}
    if contents.model not in known:
        raise ModelFileError(f"{contents.source} holds a model of class {contents.model}, expected {cls.__name__}")
    return known[contents.model](**contents.parameters)


def _restore(cls: type[Model], contents: Contents) -> Model:
    model, attributes, arrays = unfitted(cls, contents), check_attributes(contents.attributes), contents.arrays
    model.interactions_ = interactions_from_arrays(arrays)
    for name in _FACTORS:
        setattr(model, name, arrays[name])
    model.global_mean_ = float(attributes["global_mean_"])
    for name in _COURSE:
        if name in attributes["course"]:
            setattr(model, name, attributes["course"][name])
    model.history_ = pd.DataFrame({name: arrays[f"history_{name}"] for name in attributes["history_"]})
    model.user_graph_ = graph_from_arrays("user_graph_", "user", model.interactions_.user_ids, arrays)
    model.item_graph_ = graph_from_arrays("item_graph_", "item", model.interactions_.item_ids, arrays)
    model.transform_graphs_ = [
        SimilarityGraph(_adjacency(f"transform_{number}_", size, arrays), range(size))
        for number, size in enumerate(attributes["transform_graphs"])
    ]
    _check_shapes(contents.source, model)
    model._spread = PredictionSpread.from_arrays(arrays, (model.interactions_.n_users, model.interactions_.n_items))
    model._after_load()
    return model


def _check_shapes(source: Path, model: Recommender) -> None:
    data, width = model.interactions_, model.user_factors_.shape[-1]
    expected = ((data.n_users, width), (data.n_items, width), (data.n_users,), (data.n_items,))
    found = tuple(getattr(model, name).shape for name in _FACTORS)
    if found != expected:
        raise ModelFileError(f"{source} is inconsistent: expected factors of shapes {expected}, found {found}")


def _adjacency(name: str, size: int, arrays: Mapping[str, np.ndarray]) -> sp.csr_array:
    data, indices, indptr = (arrays[f"{name}{part}"] for part in ("data", "indices", "indptr"))
    return checked_csr(data, indices, indptr, (size, size))


def _subclasses(cls: type) -> list[type]:
    return [kind for child in cls.__subclasses__() for kind in (child, *_subclasses(child))]
