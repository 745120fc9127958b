"""Checkpoint files of one process: nested states as safetensors. Nothing in a file is ever executed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from air_recsys.exceptions import CheckpointError
from air_recsys.storage.reading import checked_csr, parse_json
from air_recsys.storage.tensor_files import DamagedError, TensorFile, header_of, tensor_chunks
from air_recsys.storage.writing import is_file, is_folder, replace_file
from air_recsys.training import checkpoint_version_1, checkpoint_version_2

FORMAT = "air_recsys training"
# 2: parameters stand with their solver, all solvers have one form of state, and digests; 3: packed covariances
FORMAT_VERSION = 3
Upgrade = Callable[[int, dict[str, Any]], dict[str, Any]]
"""Brings the "parameters" of a fingerprint of an older version, which it is given first, into the present form."""
_ARRAY, _MATRIX, _TENSOR = "array", "matrix", "tensor"


class CheckpointFile:
    """The file with the state of a training, complete or absent.

    A state is built of dictionaries with text keys, lists, tuples (which come back as lists), numbers, text, None,
    tensors, arrays and sparse CSR arrays.

    Parameters
    ----------
    path : path
        The file; its folder exists.
    fingerprint : mapping
        What a training that goes on from it has to agree with: "data" and "parameters", as JSON holds them.

    Raises
    ------
    CheckpointError
        If no file can stand at `path`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = CheckpointFile(Path(folder) / "run.ckpt", {"data": "d", "parameters": {"depth": 3}})
    ...     file.write({"epoch": 7, "logits": torch.zeros(2)})
    ...     file.read()
    {'epoch': 7, 'logits': tensor([0., 0.])}
    """

    def __init__(self, path: str | os.PathLike[str], fingerprint: Mapping[str, Any]) -> None:
        self.path, self._fingerprint = Path(path), fingerprint
        if is_folder(self.path):
            raise CheckpointError(f"a checkpoint is a file, found the folder {self.path}")
        if not is_folder(self.path.parent):
            raise CheckpointError(f"cannot write {self.path.name}: there is no folder {self.path.parent}")

    def check_replaceable(self) -> None:
        """Raise `CheckpointError` where a file stands at the path that is neither empty nor a checkpoint."""
        try:
            text = header_of(self.path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise CheckpointError(f"cannot write the checkpoint {self.path}: {error.strerror}") from None
        if text and FORMAT.encode() not in text:
            expected = "expected no file, or an older checkpoint to replace"
            raise CheckpointError(f"{expected}, found another file at {self.path}; give another path")

    def write(self, state: Mapping[str, Any]) -> None:
        """Replace the checkpoint in one step.

        Raises
        ------
        CheckpointError
            If the file cannot be written; the old file stays.
        """
        tensors: dict[str, np.ndarray] = {}
        metadata = {
            "format": FORMAT,
            "format_version": str(FORMAT_VERSION),
            "fingerprint": json.dumps(self._fingerprint),
            "state": json.dumps(_packed(state, tensors)),
        }
        try:
            for name, array in tensors.items():
                _check_finite(name, array)
            replace_file(self.path, tensor_chunks(tensors, metadata))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise CheckpointError(f"cannot write the checkpoint {self.path}: {reason}") from None

    def read(self, upgrade: Upgrade | None = None) -> dict[str, Any]:
        """Return what `write` was given.

        Parameters
        ----------
        upgrade : callable, optional
            For files of older versions; those of version 1 are refused without it.

        Raises
        ------
        CheckpointError
            If the file is not a complete checkpoint, or belongs to other data or parameters.
        """
        if not is_file(self.path):
            raise CheckpointError(f"expected a checkpoint, found no file {self.path}")
        try:
            file = TensorFile.read(self.path)
            metadata = file.metadata
            version = _version(metadata, upgrade)
            file.verify(required=version > 1)
            written = parse_json(metadata["fingerprint"])
            parameters = written["parameters"]
            if version < FORMAT_VERSION and upgrade is not None:
                written |= {"parameters": upgrade(version, dict(parameters))}
            compare(self.path, written, self._fingerprint)
            state = _unpacked(parse_json(metadata["state"]), file.arrays)
            state = checkpoint_version_1.upgraded(state, parameters) if version == 1 else state
            state = checkpoint_version_2.upgraded(state) if version < FORMAT_VERSION else state
        except CheckpointError:  # of another training, which is not a broken file
            raise
        except DamagedError as error:
            raise CheckpointError(f"{self.path} is damaged: {error}") from None
        except (OSError, LookupError, ValueError, TypeError, AttributeError, RuntimeError) as error:
            raise CheckpointError(f"{self.path} is no whole checkpoint that this release can read: {error}") from None
        if not isinstance(state, dict):
            raise CheckpointError(f"{self.path} is no whole checkpoint that this release can read: found no state")
        return state


def compare(path: Path, written: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Raise `CheckpointError` where a checkpoint was written for other data or with other parameters."""
    hint = "give another path, or remove this one to start anew"
    if written["data"] != own["data"]:
        raise CheckpointError(f"{path} was written for other data (users, items, ratings or weights differ); {hint}")
    before, now = written["parameters"], own["parameters"]
    for name in before | now:
        if before.get(name) != now.get(name):
            raise CheckpointError(
                f"{path} was written with {name}={before.get(name)!r}, found {name}={now.get(name)!r}; {hint}"
            )


def _version(metadata: Mapping[str, str], upgrade: Upgrade | None) -> int:
    version = metadata.get("format_version")
    readable = [str(known) for known in range(1 if upgrade else 2, FORMAT_VERSION + 1)]
    if metadata.get("format") != FORMAT or version not in readable:
        described = f"format {metadata.get('format')!r}, version {version!r}"
        raise ValueError(f"{described}, expected {FORMAT!r}, version {FORMAT_VERSION}")
    return int(version)


@contextmanager
def of_this_training() -> Iterator[None]:
    """Turn what fails in a state of something else into a `CheckpointError`."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError) as error:
        raise CheckpointError(f"the checkpoint holds no state of this training: {error}") from None


def _packed(value: Any, tensors: dict[str, np.ndarray]) -> Any:
    """Return `value` as JSON holds it, its tensors and arrays put into `tensors` under the names that stand there.

    The order of their axes in memory is kept, since the rounding of a product depends on it.
    """
    if isinstance(value, Mapping):
        return {"": {name: _packed(entry, tensors) for name, entry in value.items()}}
    if isinstance(value, list | tuple):
        return [_packed(entry, tensors) for entry in value]
    if isinstance(value, Tensor | np.ndarray):
        name = str(len(tensors))
        tensor = value if isinstance(value, Tensor) else torch.from_numpy(np.array(value))
        order = sorted(range(tensor.ndim), key=lambda axis: -tensor.stride(axis))
        tensors[name] = tensor.detach().cpu().permute(order).contiguous().numpy()
        return {_TENSOR if isinstance(value, Tensor) else _ARRAY: [name, order]}
    if isinstance(value, sp.csr_array):
        return {_MATRIX: _packed([value.data, value.indices, value.indptr, value.shape], tensors)}
    return value.item() if isinstance(value, np.generic) else value


def _unpacked(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if isinstance(value, list):
        return [_unpacked(entry, arrays) for entry in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "":
        return {name: _unpacked(entry, arrays) for name, entry in content.items()}
    if kind == _MATRIX:
        data, indices, indptr, shape = _unpacked(content, arrays)
        return checked_csr(data, indices, indptr, tuple(shape))
    name, order = content
    _check_finite(name, arrays[name])
    tensor = torch.from_numpy(arrays[name]).permute([order.index(axis) for axis in range(len(order))])
    return tensor if kind == _TENSOR else tensor.numpy()


def _check_finite(name: str, array: np.ndarray) -> None:
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"found NaN or infinity in tensor {name}")
