"""Checkpoint files: nested states as safetensors, which one training holds. Nothing in a file is ever executed."""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from air_recsys.exceptions import CheckpointError
from air_recsys.storage.held_files import HeldError, HeldFile, hold
from air_recsys.storage.lazy import torch
from air_recsys.storage.reading import checked_csr, parse_json
from air_recsys.storage.tensor_files import DamagedError, TensorFile, header_of, tensor_chunks
from air_recsys.storage.validation import check_integer, check_path
from air_recsys.storage.writing import beside, is_file, is_folder, real_place, remove_leftovers, replace_file

FORMAT = "air_recsys training"
FORMAT_VERSION = 3
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

    def read(self) -> dict[str, Any]:
        """The state that `write` was given."""
        if not is_file(self.path):
            raise CheckpointError(f"expected a checkpoint, found no file {self.path}")
        try:
            file = TensorFile.read(self.path)
            found = file.metadata.get("format"), file.metadata.get("format_version")
            if found != (FORMAT, str(FORMAT_VERSION)):
                expected = f"expected {FORMAT!r}, version {FORMAT_VERSION}"
                raise ValueError(f"format {found[0]!r}, version {found[1]!r}, {expected}")
            file.verify(required=True)
            compare(self.path, parse_json(file.metadata["fingerprint"]), self._fingerprint)
            state = _unpacked(parse_json(file.metadata["state"]), file.arrays)
        except CheckpointError:  # of another training, which is not a broken file
            raise
        except DamagedError as error:
            raise CheckpointError(f"{self.path} is damaged: {error}") from None
        except MemoryError:
            raise CheckpointError(f"{self.path} does not fit into the memory of this process") from None
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


@contextmanager
def of_this_training() -> Iterator[None]:
    """Turn what fails in a state of something else into a `CheckpointError`."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError) as error:
        raise CheckpointError(f"the checkpoint holds no state of this training: {error}") from None


def _packed(value: Any, tensors: dict[str, np.ndarray]) -> Any:
    """`value` as JSON holds it, its tensors and arrays put into `tensors` under the names that stand there.

    The order of their axes in memory is kept, since the rounding of a product depends on it.
    """
    if isinstance(value, Mapping):
        return {"": {name: _packed(entry, tensors) for name, entry in value.items()}}
    if isinstance(value, list | tuple):
        return [_packed(entry, tensors) for entry in value]
    if isinstance(value, torch.Tensor | np.ndarray):
        name = str(len(tensors))
        tensor = value if isinstance(value, torch.Tensor) else torch.from_numpy(np.array(value))
        order = sorted(range(tensor.ndim), key=lambda axis: -tensor.stride(axis))
        tensors[name] = tensor.detach().cpu().permute(order).contiguous().numpy()
        return {_TENSOR if isinstance(value, torch.Tensor) else _ARRAY: [name, order]}
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


class HeldCheckpoint:
    """The file for the states of a training, and the state that is read at its start.

    A training holds its file until `close`, or until its process ends: another one is refused.

    Parameters
    ----------
    fingerprint : mapping
        What a training that goes on from the file has to agree with, see `CheckpointFile`.
    checkpoint : path, optional
        File for the state of the training; None keeps none.
    every : int
        Positions between two states.
    resume_from : path, optional
        File to go on from; it is read here, before any work.

    Attributes
    ----------
    file : CheckpointFile or None
    state : dict or None
        What `resume_from` holds.

    Raises
    ------
    ParameterError
        For `every` below 1.
    CheckpointError
        If a file cannot be read or written, belongs to other data or parameters, or if another training writes to it.
    """

    def __init__(
        self,
        fingerprint: Mapping[str, Any],
        checkpoint: str | os.PathLike[str] | None = None,
        every: int = 50,
        resume_from: str | os.PathLike[str] | None = None,
    ) -> None:
        self.every = check_integer("every", every, minimum=1)
        self.state: dict[str, Any] | None = None
        self.file: CheckpointFile | None = None
        if checkpoint is not None:
            self.file = CheckpointFile(checkpoint, fingerprint)
            self._release = weakref.finalize(self, hold_checkpoint(self.file.path).remove)
        try:
            if resume_from is not None:
                self.state = CheckpointFile(resume_from, fingerprint).read()
            if self.file is not None:
                self.file.check_replaceable()
                remove_leftovers(self.file.path)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let other trainings have the file."""
        if self.file is not None:
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_paths(**paths: Any) -> None:
    """Raise `ParameterError` where one of these is neither None nor a path."""
    for name, path in paths.items():
        if path is not None:
            check_path(name, path)


def hold_checkpoint(path: Path, lock: Path | None = None) -> HeldFile:
    """Hold the lock file of a checkpoint, by default beside it.

    Raises
    ------
    CheckpointError
        If another training holds it, in another process or in another thread, or where it cannot be made.
    """
    try:
        return hold(lock or beside(real_place(path), "lock"))
    except HeldError as error:
        holder = "" if error.args[0] is None else f" (process {error.args[0]})"
        raise CheckpointError(f"another training{holder} writes to {path}; give another path") from None
    except (OSError, ValueError) as error:  # a ValueError for a path with a null byte
        reason = getattr(error, "strerror", None) or error
        raise CheckpointError(f"cannot write the checkpoint {path}: {reason}") from None
