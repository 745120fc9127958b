"""Files of `ImplicitAIR`: NumPy's ``.npz``, as in all of implicit, without pickles and with digests."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from air_recsys.adapters.implicit_targets import CHOSEN, Targets, check_settings
from air_recsys.digests import DIGEST, DamagedError, check_seal, digest_of, to_sealed_json
from air_recsys.exceptions import ModelFileError
from air_recsys.graphs import SimilarityGraph
from air_recsys.reading import checked_csr, parse_json, read_arrays
from air_recsys.solvers import plain
from air_recsys.validation import check_path, check_real
from air_recsys.writing import replace_file

FORMAT = "air_recsys implicit 2"  # 2: digests
_WITHOUT_DIGESTS = "air_recsys implicit 1"
_ARRAYS = ("user_factors", "item_factors", "_user_penalty", "_item_penalty")
_COUNTS = ("_user_counts", "_item_counts")  # of `Targets`
_GRAPHS = ("user_graph_", "item_graph_")
_CSR = ("data", "indices", "indptr")

Restored = TypeVar("Restored")


class Learned(NamedTuple):
    """The results of a training, None before `fit`."""

    user_factors: np.ndarray | None
    item_factors: np.ndarray | None
    user_penalty: np.ndarray | None
    item_penalty: np.ndarray | None
    user_graph: SimilarityGraph | None
    item_graph: SimilarityGraph | None
    settings: dict[str, Any] | None
    targets: Targets | None  # None also for targets of 1


def write(file: Any, parameters: dict[str, Any], learned: Learned) -> None:
    """Write a model, fitted or not; a file at a path is replaced in one step, by none that `read` would refuse.

    Raises
    ------
    ModelFileError
        For factors that are not finite numbers, and where a file cannot be written.
    """
    arrays: dict[str, Any] = {name: array for name, array in zip(_ARRAYS, learned, strict=False) if array is not None}
    for name, graph in zip(_GRAPHS, (learned.user_graph, learned.item_graph), strict=True):
        if graph is not None:
            matrix = graph.to_scipy()
            arrays |= {f"{name}{entry}": getattr(matrix, entry) for entry in _CSR}
    if learned.targets is not None:
        arrays |= dict(zip(_COUNTS, (learned.targets.users, learned.targets.items), strict=True))
    values = {name: plain(value) for name, value in parameters.items()} | {"dtype": parameters["dtype"].name}
    if not isinstance(values["random_state"], int):
        values["random_state"] = None  # the position of a generator is not stored
    try:
        _check(arrays)
    except ValueError as error:
        raise ModelFileError(f"cannot save the model, it would not load: {error}") from None
    chosen = {"settings": learned.settings, "unit": None if learned.targets is None else learned.targets.unit}
    header = {"format": FORMAT, "parameters": values, "digests": digests_of(arrays)} | chosen
    content = io.BytesIO()
    np.savez(content, **arrays, header=np.array(to_sealed_json(header).decode()))
    if hasattr(file, "write"):
        file.write(content.getvalue())
        return
    target = _npz(file)
    try:
        replace_file(target, content.getvalue())
    except OSError as error:
        raise ModelFileError(f"cannot write {target}: {error.strerror or error}") from None


def read(file: Any, restore: Callable[[dict[str, Any], Learned], Restored]) -> Restored:
    """Return `restore` of the parameters and results in a file of `write`, or raise `ModelFileError`."""
    whole = file.read() if hasattr(file, "read") else _npz(file).read_bytes()
    try:
        arrays = read_arrays(whole)
        text = arrays.pop("header").item()
        header = parse_json(text)
        if header["format"] not in (FORMAT, _WITHOUT_DIGESTS):
            raise ValueError(f"its format is {header['format']!r}, not {FORMAT!r}")
        if header["format"] == FORMAT or DIGEST in header:
            check_seal(text.encode())
            _compare(digests_of(arrays), header["digests"])
        _check(arrays)
        users, items, user_penalty, item_penalty = (arrays.get(name) for name in _ARRAYS)
        graphs = _graph(arrays, "user_graph_"), _graph(arrays, "item_graph_")
        chosen = _settings(header, users is not None), _targets(header, arrays)
        return restore(header["parameters"], Learned(users, items, user_penalty, item_penalty, *graphs, *chosen))
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


def _settings(header: dict[str, Any], is_fitted: bool) -> dict[str, Any] | None:
    """Return the settings of a training; files of earlier releases have them as parameters alone."""
    if not is_fitted:
        return None
    settings = header.get("settings") or {name: header["parameters"][name] for name in CHOSEN}
    check_settings(settings, auto=False)
    return settings


def _targets(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Targets | None:
    if header.get("unit") is None:
        return None
    return Targets(check_real("unit", header["unit"], strict=True), *(arrays[name] for name in _COUNTS))


def _graph(arrays: dict[str, np.ndarray], name: str) -> SimilarityGraph | None:
    if f"{name}data" not in arrays:
        return None
    size = len(arrays[f"{name}indptr"]) - 1
    data, indices, indptr = (arrays[f"{name}{entry}"] for entry in _CSR)
    return SimilarityGraph(checked_csr(data, indices, indptr, (size, size)), range(size), name.removesuffix("_graph_"))


def _check(arrays: dict[str, np.ndarray]) -> None:
    """Raise `ValueError` where factors and penalties are not finite numbers of one width."""
    for name in _ARRAYS:
        array = arrays.get(name)
        if array is not None and (array.dtype.kind != "f" or array.ndim != 2 or not np.isfinite(array).all()):
            raise ValueError(f"expected a finite matrix {name}, found {array.dtype} of shape {array.shape}")
    if len({array.shape[-1] for name in _ARRAYS if (array := arrays.get(name)) is not None}) > 1:
        raise ValueError("expected factors and penalties of one width, found several")
    for name, factors in zip(_COUNTS, _ARRAYS, strict=False):
        counts, rows = arrays.get(name), arrays.get(factors)
        if counts is not None and (rows is None or counts.shape != (len(rows),) or not (counts >= 1).all()):
            raise ValueError(f"expected {name} >= 1, one for each of {factors}, found shape {counts.shape}")
    for factors, graph in (("user_factors", "user_graph_"), ("item_factors", "item_graph_")):
        rows, ends = arrays.get(factors), arrays.get(f"{graph}indptr")
        if rows is not None and ends is not None and len(ends) != len(rows) + 1:
            raise ValueError(f"expected {graph} of {len(rows)} nodes, found {len(ends) - 1}")


def _npz(path: str | os.PathLike[str]) -> Path:
    target = check_path("path", path)
    return target if target.suffix == ".npz" else target.with_name(f"{target.name}.npz")
