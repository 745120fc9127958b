"""Model files: safetensors with the metadata as JSON. Nothing in a file is ever executed."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd
import scipy.sparse as sp
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from air_recsys.exceptions import DataError, ModelFileError
from air_recsys.graphs import SimilarityGraph
from air_recsys.interactions import Interactions
from air_recsys.models.spread import PredictionSpread
from air_recsys.writing import replace_file

if TYPE_CHECKING:
    from air_recsys.models.base import Recommender

FORMAT = "air_recsys model"
FORMAT_VERSION = 2  # 2: what standard deviations and new rows of a posterior need
_FACTORS = ("user_factors_", "item_factors_", "user_biases_", "item_biases_")
_COURSE = ("n_iter_", "stopped_by_", "device_")

Model = TypeVar("Model", bound="Recommender")


def write(model: Recommender, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model; the file at `path` is replaced in one step once the new one is complete."""
    target = Path(path)
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "model": type(model).__name__,
        "parameters": json.dumps(model._saved_parameters()),
        "attributes": json.dumps(_attributes(model)),
    }
    write_atomically(target, to_bytes(_arrays(model), metadata))
    return target


def read(cls: type[Model], path: str | os.PathLike[str]) -> Model:
    """Read a model of class `cls` (or a subclass) that `write` wrote."""
    source = Path(path)
    if not source.is_file():
        raise ModelFileError(f"expected a model file, found no file {source}")
    try:
        with safe_open(source, framework="numpy") as file:
            metadata = file.metadata() or {}
            _check_header(source, metadata)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, not a dict
        return _restore(cls, source, metadata, arrays)
    except ModelFileError:
        raise
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, IndexError) as error:
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
    data = model.interactions_
    arrays: dict[str, np.ndarray] = {
        "user_index": data.user_index,
        "item_index": data.item_index,
        "ratings": data.ratings,
        **{name: getattr(model, name) for name in _FACTORS},
        **_ids_to_arrays("user_ids", data.user_ids),
        **_ids_to_arrays("item_ids", data.item_ids),
        **{f"history_{name}": model.history_[name].to_numpy() for name in model.history_.columns},
    }
    if data.weights is not None:
        arrays["weights"] = data.weights
    if model._spread is not None:
        arrays |= model._spread.to_arrays()
    further = {f"transform_{number}_": graph for number, graph in enumerate(model.transform_graphs_)}
    for name, graph in {"user_graph_": model.user_graph_, "item_graph_": model.item_graph_, **further}.items():
        if graph is not None:
            matrix = graph.to_scipy()
            arrays |= {
                f"{name}data": matrix.data,
                f"{name}indices": matrix.indices,
                f"{name}indptr": matrix.indptr,
            }
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _ids_to_arrays(name: str, ids: np.ndarray) -> dict[str, np.ndarray]:
    if ids.dtype != object:
        return {name: ids}
    if not all(isinstance(value, str) for value in ids):
        found = next(type(value).__name__ for value in ids if not isinstance(value, str))
        raise DataError(f"a model file holds ids that are all integers or all strings, found a {found} in {name}")
    encoded = [value.encode() for value in ids]
    starts = np.cumsum([0, *map(len, encoded)])
    return {f"{name}_text": np.frombuffer(b"".join(encoded), dtype=np.uint8), f"{name}_starts": starts}


def _ids_from_arrays(name: str, arrays: dict[str, np.ndarray]) -> Iterable[Any]:
    if name in arrays:
        return arrays[name]
    text, starts = arrays[f"{name}_text"].tobytes(), arrays[f"{name}_starts"].tolist()
    return [text[low:high].decode() for low, high in itertools.pairwise(starts)]


def _check_header(source: Path, metadata: dict[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        raise ModelFileError(f"{source} is not an air_recsys model file")
    version = metadata.get("format_version", "")
    if not version.isdecimal() or int(version) > FORMAT_VERSION:
        raise ModelFileError(
            f"{source} has format version {version!r}, this release reads up to {FORMAT_VERSION}: upgrade air_recsys"
        )


def _restore(cls: type[Model], source: Path, metadata: dict[str, str], arrays: dict[str, np.ndarray]) -> Model:
    known = {kind.__name__: kind for kind in [cls, *_subclasses(cls)]}
    if metadata["model"] not in known:
        raise ModelFileError(f"{source} holds a model of class {metadata['model']}, expected {cls.__name__}")
    model = known[metadata["model"]](**json.loads(metadata["parameters"]))
    attributes = json.loads(metadata["attributes"])
    model.interactions_ = Interactions(
        arrays["user_index"],
        arrays["item_index"],
        arrays["ratings"],
        _ids_from_arrays("user_ids", arrays),
        _ids_from_arrays("item_ids", arrays),
        weights=arrays.get("weights"),
        allow_negative=True,
    )
    for name in _FACTORS:
        setattr(model, name, arrays[name])
    model.global_mean_ = float(attributes["global_mean_"])
    for name in _COURSE:
        if name in attributes["course"]:
            setattr(model, name, attributes["course"][name])
    model.history_ = pd.DataFrame({name: arrays[f"history_{name}"] for name in attributes["history_"]})
    model.user_graph_ = _graph("user_graph_", "user", model.interactions_.user_ids, arrays)
    model.item_graph_ = _graph("item_graph_", "item", model.interactions_.item_ids, arrays)
    model.transform_graphs_ = [
        SimilarityGraph(_adjacency(f"transform_{number}_", int(size), arrays), range(int(size)))
        for number, size in enumerate(attributes.get("transform_graphs", ()))
    ]
    _check_shapes(source, model)
    model._spread = PredictionSpread.from_arrays(arrays)
    model._after_load()
    return model


def _check_shapes(source: Path, model: Recommender) -> None:
    data, width = model.interactions_, model.user_factors_.shape[-1]
    expected = ((data.n_users, width), (data.n_items, width), (data.n_users,), (data.n_items,))
    found = tuple(getattr(model, name).shape for name in _FACTORS)
    if found != expected:
        raise ModelFileError(f"{source} is inconsistent: expected factors of shapes {expected}, found {found}")


def _graph(name: str, kind: str, ids: np.ndarray, arrays: dict[str, np.ndarray]) -> SimilarityGraph | None:
    if f"{name}data" not in arrays:
        return None
    return SimilarityGraph(_adjacency(name, ids.size, arrays), ids, kind)


def _adjacency(name: str, size: int, arrays: dict[str, np.ndarray]) -> sp.csr_array:
    matrix = sp.csr_array(tuple(arrays[f"{name}{part}"] for part in ("data", "indices", "indptr")), shape=(size, size))
    matrix.check_format(full_check=True)
    return matrix


def _subclasses(cls: type) -> list[type]:
    return [kind for child in cls.__subclasses__() for kind in (child, *_subclasses(child))]
