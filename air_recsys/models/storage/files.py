"""Model files: safetensors with the metadata as JSON. Nothing in a file is ever executed."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import ModelFileError, ParameterError, quoted
from air_recsys.models.learned import Factors
from air_recsys.models.registered import classes_of, registered
from air_recsys.models.state import FittedState
from air_recsys.nn.devices import check_device_name
from air_recsys.nn.memory import readable
from air_recsys.storage.pickled import release
from air_recsys.storage.reading import parse_json
from air_recsys.storage.tensor_files import Chunk, DamagedError, TensorFile, tensor_chunks
from air_recsys.storage.validation import check_path
from air_recsys.storage.writing import is_file, is_folder, replace_file

_FIELDS: dict[str, type | tuple[type, ...]] = {
    "global_mean_": (int, float),
    "history_": list,
    "ending": dict,
    "transform_graphs": list,
    "features": dict,
    "rating_scale": list,
    "chosen": dict,
}
_OF_TRAINING: dict[str, type] = {"n_iter_": int, "stopped_by_": str, "device_": str}

LARGEST = float(np.finfo(np.float32).max) / 100
"""Of a rating: models compute in float32."""
FORMAT = "air_recsys model"
FORMAT_VERSION = 3
_FAULTS = (OSError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RuntimeError)

Restored = TypeVar("Restored")


class Contents(NamedTuple):
    """The contents of a model file."""

    source: Path
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
        named = {"format": FORMAT, "format_version": str(FORMAT_VERSION), "model": model, "release": release()}
        size = sum(array.nbytes for array in arrays.values()) + sum(map(len, texts.values()))
        check(_contents(target, named | texts, dict(arrays), size))
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
    """The model that `restore` makes of a file, read or mapped; whatever is amiss in it is a `ModelFileError`."""
    source = check_path("path", path)
    if not is_file(source):
        raise ModelFileError(f"expected a model file, found no file {source}")
    other = ""  # release of the library
    try:
        file = TensorFile.read(source, mapped=mapped)
        if file.metadata.get("release", release()) != release():
            by = quoted(file.metadata["release"])
            other = f"{source} was written by air_recsys {by}, which {release()!r} cannot read: "
        _check_version(source, file.metadata)
        file.verify(required=True)
        return restore(_contents(source, file.metadata, file.arrays, file.size))
    except ModelFileError as error:
        raise ModelFileError(f"{other}{error}") from None
    except DamagedError as error:
        raise ModelFileError(f"{source} is damaged: {error}") from None
    except MemoryError:
        size = readable(source.stat().st_size)
        raise ModelFileError(f"{source} of {size} does not fit into the memory of this process") from None
    except _FAULTS as error:
        raise ModelFileError(f"{other or f'{source} is not a whole air_recsys model file: '}{error}") from None


def _contents(place: Path, metadata: Mapping[str, str], arrays: dict[str, np.ndarray], size: int) -> Contents:
    check_arrays(arrays, size)
    parameters, attributes = (parse_json(metadata[name]) for name in ("parameters", "attributes"))
    return Contents(place, metadata["model"], parameters, attributes, arrays)


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


def _check_version(source: Path, metadata: dict[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        raise ModelFileError(f"{source} is not an air_recsys model file")
    version = metadata.get("format_version")
    if version != str(FORMAT_VERSION):
        raise ModelFileError(
            f"{source} holds a model of format version {version!r}, this library reads version {FORMAT_VERSION}: load "
            "it with the release of air_recsys that wrote it, or fit the model again"
        )


def class_of(cls: type[Restored], contents: Contents) -> type[Restored]:
    """The class of the model that a file holds: `cls`, a subclass, or one that an installed distribution registers."""
    try:
        return classes_of(cls).get(contents.model) or registered(contents.model, cls)
    except ParameterError as error:
        hint = f"air_recsys.load reads models of all classes that there are; {error}"
        raise ModelFileError(
            f"{contents.source} holds a model of class {contents.model}, expected {cls.__name__}: {hint}"
        ) from None


_FREE = "history_"  # prefix of arrays that may hold NaN: a validation error is NaN without held-out ratings
_MOST = 1e150  # of a number in them, which are drawn


def check_arrays(arrays: Mapping[str, np.ndarray], size: int) -> None:
    """Raise `ValueError` for arrays that no model has.

    All are finite numbers but for the history's. `size` is that of the file in bytes: an empty array has no more rows
    than this, so that no loop over them runs for ever.
    """
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise ValueError(f"expected numbers in {name}, found {array.dtype}")
        if max(array.shape, default=0) > size:
            raise ValueError(f"expected at most {size} rows in {name}, found shape {array.shape}")
        if not name.startswith(_FREE) and array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"expected finite numbers in {name}, found NaN or infinity")
        if name.startswith(_FREE) and (np.abs(array.astype(np.float64)) > _MOST).any():
            raise ValueError(f"expected numbers up to {_MOST:g} in {name}, found larger ones")


def check_starts(starts: np.ndarray, size: int) -> list[int]:
    """The place where each text of `size` bytes in all begins, and where the last one ends, as a list."""
    whole = starts.ndim == 1 and starts.dtype.kind in "iu" and starts.size > 0
    if not whole or starts[0] != 0 or starts[-1] != size or (starts[1:] < starts[:-1]).any():
        raise ValueError(f"expected the places of ids in {size} bytes, in their order, found others")
    return starts.tolist()


def check_shapes(data: Interactions, factors: Factors) -> None:
    """Raise `ValueError` where factors and biases are not those of as many users and items, of one width."""
    width = factors.user_factors.shape[-1]
    expected = ((data.n_users, width), (data.n_items, width), (data.n_users,), (data.n_items,))
    shapes = tuple(array.shape for array in factors.arrays())
    if shapes != expected:
        raise ValueError(f"expected factors of shapes {expected}, found {shapes}")


def check_state(state: FittedState) -> None:
    """Raise `ValueError` where a state that is to be written is not what a file can hold of one.

    That no pair is rated twice was seen when the interactions were made, and that numbers are finite `check_arrays`
    sees.
    """
    data = state.data
    check_shapes(data, state.factors)
    if not data.n_ratings:
        raise ValueError("expected at least one rating, found none")
    for kind, index, size in (("user", data.user_index, data.n_users), ("item", data.item_index, data.n_items)):
        if index.shape != (data.n_ratings,) or index.dtype.kind != "i":
            raise ValueError(f"expected {data.n_ratings} places of {kind}s, found {index.dtype} {index.shape}")
        if index.min() < 0 or index.max() >= size:
            raise ValueError(f"expected places of {kind}s in 0..{size - 1}, found {index.min()}..{index.max()}")
    for kind, graph, size in (("user", state.user_graph, data.n_users), ("item", state.item_graph, data.n_items)):
        if graph is not None and len(graph) != size:
            raise ValueError(f"expected a graph of {size} {kind}s, found one of {len(graph)}")


def check_attributes(attributes: Any) -> dict[str, Any]:
    """The attributes of a model file, or raise `ValueError` where one is absent or of another type."""
    if not isinstance(attributes, dict):
        raise ValueError(f"expected attributes by name, found {type(attributes).__name__}")
    for name, kind in _FIELDS.items():
        _check_type(name, attributes[name], kind)
    for name in attributes["ending"].keys() & _OF_TRAINING.keys():
        _check_type(name, attributes["ending"][name], _OF_TRAINING[name])
    check_device_name(attributes["ending"].get("device_") or "cpu")  # refuses what names none
    for name in attributes["history_"]:
        _check_type("a column of the history", name, str)
    for size in attributes["transform_graphs"]:
        _check_type("the size of a graph", size, int)
    if not abs(attributes["global_mean_"]) <= LARGEST:
        raise ValueError(f"expected a small, finite global_mean_, found {attributes['global_mean_']}")
    return attributes


def check_scale(scale: list[Any]) -> tuple[float, float]:
    """The smallest and the largest rating that `fit` saw."""
    numbers = all(type(each) in (int, float) for each in scale)
    if not numbers or len(scale) != 2 or not -math.inf < scale[0] <= scale[1] < math.inf:
        raise ValueError("expected the smallest and the largest rating as rating_scale, found others")
    return float(scale[0]), float(scale[1])


def _check_type(name: str, value: Any, kind: type | tuple[type, ...]) -> None:
    if isinstance(value, bool) or not isinstance(value, kind):
        raise ValueError(f"expected another type of {name}, found {type(value).__name__}")
