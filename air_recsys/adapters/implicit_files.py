"""Files of `ImplicitAIR`: NumPy's ``.npz``, as in all of implicit, without pickles and with digests."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from air_recsys.adapters.implicit_softmax import SoftmaxRows
from air_recsys.adapters.implicit_squared import SquaredRows
from air_recsys.adapters.implicit_targets import CHOSEN, Targets, check_settings
from air_recsys.exceptions import ModelFileError
from air_recsys.graphs import SimilarityGraph
from air_recsys.models.solvers import plain
from air_recsys.storage.reading import checked_csr, parse_json, read_arrays
from air_recsys.storage.tensor_files import DIGEST, DamagedError, check_seal, digest_of, to_sealed_json
from air_recsys.storage.validation import check_integer, check_path, check_real
from air_recsys.storage.writing import replace_file

FORMAT = "air_recsys implicit 3"  # 2: digests; 3: softmax
_WITHOUT_DIGESTS = "air_recsys implicit 1"
_SQUARED_ALONE = (_WITHOUT_DIGESTS, "air_recsys implicit 2")
_FACTORS = ("user_factors", "item_factors")
_PENALTIES = ("_user_penalty", "_item_penalty")
_COUNTS = ("_user_counts", "_item_counts")  # of `Targets`
_SOFTMAX = ("_sources", "_target_map", "_source_map")
_GRAPHS = ("user", "item")
_CSR = ("data", "indices", "indptr")

Restored = TypeVar("Restored")


class Learned(NamedTuple):
    """The results of a training, None before `fit`."""

    user_factors: np.ndarray | None
    item_factors: np.ndarray | None
    graphs: dict[str, SimilarityGraph]  # of "user" and "item", as far as they are learned
    settings: dict[str, Any] | None
    rows: SoftmaxRows | SquaredRows | None


def write(file: Any, parameters: dict[str, Any], learned: Learned) -> None:
    """Write a model, fitted or not; a file at a path is replaced in one step, by none that `read` would refuse.

    Raises
    ------
    ModelFileError
        For factors that are not finite numbers, and where a file cannot be written.
    """
    arrays: dict[str, Any] = _arrays_of(learned)
    values = {name: plain(value) for name, value in parameters.items()} | {"dtype": parameters["dtype"].name}
    if not isinstance(values["random_state"], int):
        values["random_state"] = None  # the position of a generator is not stored
    try:
        _check(arrays)
    except ValueError as error:
        raise ModelFileError(f"cannot save the model, it would not load: {error}") from None
    targets = learned.rows.targets if isinstance(learned.rows, SquaredRows) else None
    chosen = {"settings": learned.settings, "unit": None if targets is None else targets.unit}
    write_archive(file, arrays, {"format": FORMAT, "parameters": values, "digests": digests_of(arrays)} | chosen)


def write_archive(file: Any, arrays: dict[str, Any], header: dict[str, Any]) -> None:
    """Write arrays and a header with its digest to a binary file, or in one step to a path, as ``.npz``."""
    content = io.BytesIO()
    np.savez(content, header=np.array(to_sealed_json(header).decode()), **arrays)
    if hasattr(file, "write"):
        file.write(content.getvalue())
        return
    target = _npz(file)
    try:
        replace_file(target, content.getvalue())
    except OSError as error:
        raise ModelFileError(f"cannot write {target}: {error.strerror or error}") from None


def bytes_of(file: Any) -> bytes:
    """Return the content of a binary file, or of the ``.npz`` at a path."""
    return file.read() if hasattr(file, "read") else _npz(file).read_bytes()


def _arrays_of(learned: Learned) -> dict[str, np.ndarray]:
    """Return the arrays of a file by name."""
    rows = learned.rows
    arrays = dict(zip(_FACTORS, learned[:2], strict=True))
    if isinstance(rows, SoftmaxRows):
        arrays |= dict(zip(_SOFTMAX, rows, strict=True))
    elif rows is not None:
        arrays |= dict(zip(_PENALTIES, (rows.user_penalty, rows.item_penalty), strict=True))
        if rows.targets is not None:
            arrays |= dict(zip(_COUNTS, (rows.targets.users, rows.targets.items), strict=True))
    for kind, graph in learned.graphs.items():
        matrix = graph.to_scipy()
        arrays |= {f"{kind}_graph_{entry}": getattr(matrix, entry) for entry in _CSR}
    return {name: array for name, array in arrays.items() if array is not None}


def read(file: Any, restore: Callable[[dict[str, Any], Learned], Restored]) -> Restored:
    """Return `restore` of the parameters and results in a file of `write`, or raise `ModelFileError`."""
    whole = bytes_of(file)
    try:
        arrays = read_arrays(whole)
        text = arrays.pop("header").item()
        header = parse_json(text)
        if header["format"] not in (FORMAT, *_SQUARED_ALONE):
            raise ValueError(f"its format is {header['format']!r}, not {FORMAT!r}")
        parameters = header["parameters"] | ({"loss": "squared"} if header["format"] in _SQUARED_ALONE else {})
        if header["format"] != _WITHOUT_DIGESTS or DIGEST in header:
            check_seal(text.encode())
            _compare(digests_of(arrays), header["digests"])
        _check(arrays)
        graphs = {kind: _graph(arrays, kind) for kind in _GRAPHS if f"{kind}_graph_data" in arrays}
        users, items = (arrays.get(name) for name in _FACTORS)
        rows = None if users is None else _rows(header, arrays)
        settings = None if rows is None else _settings(header, rows)
        return restore(parameters, Learned(users, items, graphs, settings, rows))
    except DamagedError as error:
        raise ModelFileError(f"the file of ImplicitAIR is damaged: {error}") from None
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise ModelFileError(f"expected a file that ImplicitAIR.save wrote, found another: {error}") from None


def digests_of(arrays: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Return the digest of each array, of its type and shape too."""
    forms = {name: f"{array.dtype.str} {array.shape}".encode() for name, array in arrays.items()}
    return {name: digest_of(forms[name], np.ascontiguousarray(array)) for name, array in arrays.items()}


def _compare(found: Mapping[str, str], written: Mapping[str, str]) -> None:
    for name in [*found, *written]:
        if found.get(name) != written.get(name):
            raise DamagedError(f"array {name} differs from its digest")


def _rows(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> SoftmaxRows | SquaredRows:
    if _SOFTMAX[0] in arrays:
        return SoftmaxRows(*(arrays[name] for name in _SOFTMAX))
    alpha = (header.get("settings") or header["parameters"])["alpha"]
    user_penalty, item_penalty = (arrays[name] for name in _PENALTIES)
    return SquaredRows(alpha, user_penalty, item_penalty, _targets(header, arrays))


def _settings(header: dict[str, Any], rows: SoftmaxRows | SquaredRows) -> dict[str, Any]:
    """Return the settings of a training; files of earlier releases have them as parameters alone."""
    settings = header.get("settings") or {name: header["parameters"][name] for name in CHOSEN}
    if isinstance(rows, SoftmaxRows):
        check_integer("factors", settings["factors"], minimum=1)
        check_real("temperature", settings["temperature"], strict=True)
    else:
        check_settings(settings, auto=False)
    return settings


def _targets(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Targets | None:
    if header.get("unit") is None:
        return None
    return Targets(check_real("unit", header["unit"], strict=True), *(arrays[name] for name in _COUNTS))


def _graph(arrays: dict[str, np.ndarray], kind: str) -> SimilarityGraph:
    data, indices, indptr = (arrays[f"{kind}_graph_{entry}"] for entry in _CSR)
    size = len(indptr) - 1
    return SimilarityGraph(checked_csr(data, indices, indptr, (size, size)), range(size), kind)


def _check(arrays: dict[str, np.ndarray]) -> None:
    """Raise `ValueError` where factors, and what solves for others, are not finite numbers that fit each other."""
    for name in (*_FACTORS, *_PENALTIES, *_SOFTMAX):
        array = arrays.get(name)
        if array is not None and (array.dtype.kind != "f" or array.ndim != 2 or not np.isfinite(array).all()):
            raise ValueError(f"expected a finite matrix {name}, found {array.dtype} of shape {array.shape}")
    widths = {arrays[name].shape[-1] for name in (*_FACTORS, *_PENALTIES, *_SOFTMAX) if name in arrays}
    if len(widths) > 1:
        raise ValueError("expected factors, and what solves for others, of one width, found several")
    for name, factors in zip(_COUNTS, _FACTORS, strict=True):
        counts, rows = arrays.get(name), arrays.get(factors)
        if counts is not None and (rows is None or counts.shape != (len(rows),) or not (counts >= 1).all()):
            raise ValueError(f"expected {name} >= 1, one for each of {factors}, found shape {counts.shape}")
    for kind, factors in zip(_GRAPHS, _FACTORS, strict=True):
        rows, ends = arrays.get(factors), arrays.get(f"{kind}_graph_indptr")
        if rows is not None and ends is not None and len(ends) != len(rows) + 1:
            raise ValueError(f"expected {kind}_graph_ of {len(rows)} nodes, found {len(ends) - 1}")
    if _SOFTMAX[0] in arrays:
        n, width = arrays["item_factors"].shape
        for name, rows in zip(_SOFTMAX, (n, width + 1, width + 1), strict=True):
            if len(arrays[name]) != rows:
                raise ValueError(f"expected {rows} rows of {name}, found {len(arrays[name])}")


def _npz(path: str | os.PathLike[str]) -> Path:
    target = check_path("path", path)
    return target if target.suffix == ".npz" else target.with_name(f"{target.name}.npz")
