"""Model files: safetensors with the metadata as JSON. Nothing in a file is ever executed."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.features import Encoding, Features
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, ModelFileError
from air_recsys.graphs import SimilarityGraph
from air_recsys.models.chosen import Chosen
from air_recsys.models.state import Factors, FittedState
from air_recsys.models.storage.checks import check_arrays, check_attributes, check_scale, check_shapes, check_starts
from air_recsys.storage.reading import checked_csr, parse_json
from air_recsys.storage.tensor_files import Chunk, DamagedError, TensorFile, tensor_chunks
from air_recsys.storage.validation import check_path
from air_recsys.storage.writing import is_file, is_folder, replace_file

FORMAT = "air_recsys model"
FORMAT_VERSION = 3  # 2: what deviations and new rows need; 3: parameters stand with their solver, and digests
_FIRST_WITH_DIGESTS = 3
_FAULTS = (OSError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RuntimeError)
_FACTORS = ("user_factors_", "item_factors_", "user_biases_", "item_biases_")

Restored = TypeVar("Restored")


class Contents(NamedTuple):
    """What a model file holds."""

    source: Path
    version: int
    model: str  # the name of its class
    parameters: dict[str, Any]
    attributes: dict[str, Any]
    arrays: dict[str, np.ndarray]


def write_contents(
    path: str | os.PathLike[str],
    model: str,
    parameters: Mapping[str, Any],
    attributes: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    check: Callable[[Contents], Any],
) -> Path:
    """Write a model of the class of that name: parameters and attributes that JSON can hold, and arrays.

    What is to be written goes through the checks of `read_contents`, and through `check`, which stands for its
    `restore`: a file that would not load replaces none.
    """
    target = check_path("path", path)
    _check_place(target)
    with saving(target):
        texts = {"parameters": json.dumps(parameters), "attributes": json.dumps(attributes)}
        named = {"format": FORMAT, "format_version": str(FORMAT_VERSION), "model": model}
        size = sum(array.nbytes for array in arrays.values()) + sum(map(len, texts.values()))
        check(_contents(target, FORMAT_VERSION, named | texts, dict(arrays), size))
        chunks = tensor_chunks(arrays, named | texts)
    write_atomically(target, chunks)
    return target


@contextmanager
def saving(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what fails in a check of what is to be written into a `ModelFileError`."""
    try:
        yield
    except _FAULTS as error:
        raise ModelFileError(f"cannot save the model to {path}, it would not load: {error}") from None


def read_contents(
    path: str | os.PathLike[str], restore: Callable[[Contents], Restored], *, mapped: bool = False
) -> Restored:
    """Return what `restore` makes of a model file, read or mapped; whatever is amiss in it is a `ModelFileError`."""
    source = check_path("path", path)
    if not is_file(source):
        raise ModelFileError(f"expected a model file, found no file {source}")
    try:
        file = TensorFile.read(source, mapped=mapped)
        version = _version(source, file.metadata)
        file.verify(required=version >= _FIRST_WITH_DIGESTS)
        return restore(_contents(source, version, file.metadata, file.arrays, file.size))
    except ModelFileError:
        raise
    except DamagedError as error:
        raise ModelFileError(f"{source} is damaged: {error}") from None
    except _FAULTS as error:
        raise ModelFileError(f"{source} is not a whole air_recsys model file: {error}") from None


def _contents(
    place: Path, version: int, metadata: Mapping[str, str], arrays: dict[str, np.ndarray], size: int
) -> Contents:
    check_arrays(arrays, size)
    parameters, attributes = (parse_json(metadata[name]) for name in ("parameters", "attributes"))
    return Contents(place, version, metadata["model"], parameters, attributes, arrays)


def write_atomically(target: Path, content: bytes | Iterable[Chunk]) -> None:
    """Replace a model file in one step, or raise `ModelFileError` where it cannot stand."""
    _check_place(target)
    try:
        replace_file(target, content)
    except (OSError, ValueError) as error:  # a ValueError for a path with a null byte
        raise ModelFileError(f"cannot write {target}: {getattr(error, 'strerror', None) or error}") from None


def _check_place(target: Path) -> None:
    if not is_folder(target.parent):
        raise ModelFileError(f"cannot write {target.name}: there is no folder {target.parent}")
    if is_folder(target):
        raise ModelFileError(f"cannot write {target.name}: it is a folder")


def state_to_contents(state: FittedState) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the attributes and the arrays of a model file that hold a fitted state."""
    factors, history = state.factors, state.history
    arrays: dict[str, np.ndarray] = {
        **interactions_to_arrays(state.data),
        **dict(zip(_FACTORS, factors.arrays(), strict=True)),
        **{f"history_{name}": history[name].to_numpy() for name in history.columns},
    }
    if isinstance(state.item_weights, np.ndarray):
        arrays["item_weights"] = state.item_weights
    elif state.item_weights is not None:
        arrays |= matrix_to_arrays("item_weights_", state.item_weights)
    if state.source_factors is not None:
        arrays["source_factors"] = state.source_factors
    if state.equations is not None:
        arrays |= state.equations.to_arrays()
    reads_times = state.drift is not None or state.source_factors is not None
    if reads_times and state.data.timestamps is not None:
        arrays["timestamps"] = state.data.timestamps
    others = {f"transform_{number}_": graph for number, graph in enumerate(state.transform_graphs)}
    for name, graph in {"user_graph_": state.user_graph, "item_graph_": state.item_graph, **others}.items():
        if graph is not None:
            arrays |= graph_to_arrays(name, graph)
    attributes = {
        "global_mean_": factors.mean,
        "rating_scale": list(state.rating_scale),
        "history_": list(history.columns),
        "transform_graphs": [len(graph) for graph in state.transform_graphs],
        "chosen": state.chosen.to_json(),
        "features": features_to_json(state.data),
    }
    return attributes, arrays


def state_from_contents(contents: Contents) -> FittedState:
    """Return what `state_to_contents` was given, but for the equations of rows."""
    attributes, arrays = check_attributes(contents.attributes), contents.arrays
    data = interactions_from_arrays(arrays, attributes["features"])
    users, items, user_biases, item_biases = (arrays[name] for name in _FACTORS)
    factors = Factors(users, items, user_biases, item_biases, float(attributes["global_mean_"]))
    check_shapes(data, factors)
    return FittedState(
        data,
        factors,
        graph_from_arrays("user_graph_", "user", data.user_ids, arrays),
        graph_from_arrays("item_graph_", "item", data.item_ids, arrays),
        [
            SimilarityGraph(_adjacency(f"transform_{number}_", size, arrays), range(size))
            for number, size in enumerate(attributes["transform_graphs"])
        ],
        pd.DataFrame({name: arrays[f"history_{name}"] for name in attributes["history_"]}),
        scale=check_scale(attributes.get("rating_scale")),
        chosen=Chosen.from_json(attributes["chosen"]) if "chosen" in attributes else Chosen(),
        item_weights=_item_weights(data.n_items, arrays),
        source_factors=_source_factors(items.shape, arrays),
    )


def interactions_to_arrays(data: Interactions) -> dict[str, np.ndarray]:
    """Return interactions as arrays of a model file; raise `DataError` for ids that it cannot hold."""
    arrays = {
        "user_index": data.user_index,
        "item_index": data.item_index,
        "ratings": data.ratings,
        **_ids_to_arrays("user_ids", data.user_ids),
        **_ids_to_arrays("item_ids", data.item_ids),
    }
    known = {f"{side}_features": features.values for side, features in _features_of(data).items()}
    known |= {f"{side}_places": each.places for side, each in _features_of(data).items() if each.places.size}
    return arrays | known | ({} if data.weights is None else {"weights": data.weights})


def features_to_json(data: Interactions) -> dict[str, Any]:
    """Return by side how tables become the features of interactions, as JSON holds it."""
    return {side: features.encoding.to_json() for side, features in _features_of(data).items()}


def _features_of(data: Interactions) -> dict[str, Features]:
    sides = {"user": data.user_features, "item": data.item_features}
    return {side: features for side, features in sides.items() if features is not None}


def interactions_from_arrays(
    arrays: Mapping[str, np.ndarray], encodings: Mapping[str, Any] | None = None
) -> Interactions:
    """Return what `interactions_to_arrays` and `features_to_json` were given."""
    data = Interactions(
        arrays["user_index"],
        arrays["item_index"],
        arrays["ratings"],
        _ids_from_arrays("user_ids", arrays),
        _ids_from_arrays("item_ids", arrays),
        timestamps=arrays.get("timestamps"),
        weights=arrays.get("weights"),
        allow_negative=True,
        copy=False,
    )
    for side, size in (("user", data.n_users), ("item", data.n_items)):
        if side in (encodings or {}):
            places = arrays.get(f"{side}_places", np.empty((size, 0), np.float32))
            features = Features(Encoding.from_json((encodings or {})[side]), arrays[f"{side}_features"], places)
            if len(features.values) != size:
                raise ValueError(f"expected features of {size} {side}s, found those of {len(features.values)}")
            setattr(data, f"{side}_features", features)
    return data


def graph_to_arrays(name: str, graph: SimilarityGraph) -> dict[str, np.ndarray]:
    """Return a graph as arrays of a model file, all of a name that begins with `name`."""
    return matrix_to_arrays(name, graph.to_scipy())


def matrix_to_arrays(name: str, matrix: sp.csr_array) -> dict[str, np.ndarray]:
    """Return a sparse matrix as arrays of a model file, all of a name that begins with `name`."""
    return {f"{name}data": matrix.data, f"{name}indices": matrix.indices, f"{name}indptr": matrix.indptr}


def graph_from_arrays(
    name: str, kind: str, ids: np.ndarray, arrays: Mapping[str, np.ndarray]
) -> SimilarityGraph | None:
    """Return what `graph_to_arrays` was given, None where there is no graph of that name."""
    if f"{name}data" not in arrays:
        return None
    return SimilarityGraph.taking(_adjacency(name, ids.size, arrays), ids, kind)


def _ids_to_arrays(name: str, ids: np.ndarray) -> dict[str, np.ndarray]:
    if ids.dtype != object:
        return {name: ids}
    if not all(isinstance(value, str) for value in ids):
        kind = next(type(value).__name__ for value in ids if not isinstance(value, str))
        raise DataError(
            f"a model file holds ids that are all integers or all strings, found a {kind} in {name}; give others as "
            "text"
        )
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


def _version(source: Path, metadata: dict[str, str]) -> int:
    if metadata.get("format") != FORMAT:
        raise ModelFileError(f"{source} is not an air_recsys model file")
    version = metadata.get("format_version", "")
    if not version.isdecimal() or int(version) > FORMAT_VERSION:
        raise ModelFileError(
            f"{source} has format version {version!r}, this release reads up to {FORMAT_VERSION}: upgrade air_recsys"
        )
    return int(version)


def class_of(cls: type[Restored], contents: Contents) -> type[Restored]:
    """Return the class of the model that a file holds: `cls` or a subclass."""
    by_name = {kind.__name__: kind for kind in [cls, *_subclasses(cls)]}
    if contents.model not in by_name:
        raise ModelFileError(f"{contents.source} holds a model of class {contents.model}, expected {cls.__name__}")
    return by_name[contents.model]


def _adjacency(name: str, size: int, arrays: Mapping[str, np.ndarray]) -> sp.csr_array:
    data, indices, indptr = (arrays[f"{name}{array}"] for array in ("data", "indices", "indptr"))
    return checked_csr(data, indices, indptr, (size, size))


def _item_weights(size: int, arrays: Mapping[str, np.ndarray]) -> sp.csr_array | np.ndarray | None:
    if "item_weights_data" in arrays:
        return _adjacency("item_weights_", size, arrays)
    dense = arrays.get("item_weights")
    if dense is not None and dense.shape != (size, size):
        raise ValueError(f"expected weights of {size} x {size} items, found shape {dense.shape}")
    return dense


def _source_factors(shape: tuple[int, ...], arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
    sources = arrays.get("source_factors")
    if sources is not None and sources.shape != shape:
        raise ValueError(f"expected source factors of shape {shape}, found {sources.shape}")
    return sources


def _subclasses(cls: type) -> list[type]:
    return [kind for child in cls.__subclasses__() for kind in (child, *_subclasses(child))]
