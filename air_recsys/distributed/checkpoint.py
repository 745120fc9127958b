"""Checkpoints that are whole or absent, and that any number of ranks can read.

A checkpoint is a folder ``epoch-N`` of `torch.distributed.checkpoint` files, written by all ranks, and a file
``course.json``. It is written under another name and renamed when it is complete; until then the one before it stays.

torch's own index is a pickle, which can run any code when it is read. Here it is ``index.json``, and the tensors are
read by `torch.load` with ``weights_only=True``, so that no code in a checkpoint is run. The index holds its own digest
and one of every piece of a tensor, each of which is compared before it is read.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter, _StorageInfo
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor._shards_wrapper import LocalShardsWrapper
from torch.futures import Future

from air_recsys.distributed.group import Cut, Group
from air_recsys.exceptions import CheckpointError
from air_recsys.storage.digests import DamagedError, check_seal, digest_of, parse_sealed_json, to_sealed_json
from air_recsys.storage.held_files import HeldFile
from air_recsys.storage.reading import parse_json
from air_recsys.storage.writing import replace_file
from air_recsys.training.checkpoint import compare, hold_checkpoint

FORMAT = "air_recsys checkpoint"
FORMAT_VERSION = 3  # 2: the index of the tensors is no pickle; 3: parameters stand with their solver, and digests
_COURSE, _LOCK = "course.json", ".lock"


class Checkpoints:
    """The checkpoints of a training in a folder that all ranks see; it need not exist.

    A checkpoint has to have the same `fingerprint`, "data" and "parameters" as JSON holds them. All methods raise
    `CheckpointError` on all ranks: for a file in place of a folder, and for a checkpoint that is not whole, of another
    fingerprint, or with NaN or infinity.
    """

    def __init__(self, group: Group, folder: Path, fingerprint: dict[str, Any]) -> None:
        if folder.exists() and not folder.is_dir():
            raise CheckpointError(f"checkpoint must be a folder, found a file {folder}")
        self._group, self.folder, self._fingerprint = group, folder, fingerprint

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let no other training write to the folder while the block runs, which all ranks enter."""
        locks: list[HeldFile] = []
        self._first(self._hold, locks)
        try:
            yield
        finally:
            for lock in locks:
                lock.remove()

    def _hold(self, locks: list[HeldFile]) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(f"cannot write the checkpoint {self.folder}: {error.strerror}") from None
        locks.append(hold_checkpoint(self.folder, self.folder / _LOCK))

    def latest(self) -> Path | None:
        """The newest whole checkpoint that rank 0 sees."""
        folders = sorted(self.folder.glob("epoch-*")) if self._group.rank == 0 else []
        return self._group.of_first(folders[-1] if folders else None)

    def course(self, path: Path) -> dict[str, Any]:
        """The values that `write` was given beside the tensors."""
        try:
            text = (path / _COURSE).read_bytes()
            course = parse_json(text)
            if course["format"] != FORMAT or course["format_version"] != FORMAT_VERSION:
                raise ValueError(f"format {course['format']!r}, version {course['format_version']!r}")
            check_seal(text, _COURSE)
            compare(path, course["fingerprint"], self._fingerprint)
            return course
        except CheckpointError:
            raise
        except DamagedError as error:
            raise CheckpointError(f"{path} is damaged: {error}") from None
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{path} is no whole checkpoint that this process can read: {error}") from None

    def read(self, path: Path, tensors: dict[str, tuple[Tensor, Cut | None]]) -> None:
        """Fill the own rows of `tensors` from a checkpoint of any number of ranks."""
        try:
            with self._group.contact():
                load(self._sharded(tensors), storage_reader=Reader(path), process_group=self._group.handle)
        except (CheckpointException, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            damage = _damage(error)
            if damage is not None:
                raise CheckpointError(f"{path} is damaged: {damage}") from None
            raise CheckpointError(f"{path} is no whole checkpoint that this process can read: {error}") from None
        broken = self.broken(tensors)
        if broken is not None:
            raise CheckpointError(f"{path} holds NaN or infinity in {broken}")

    def broken(self, tensors: dict[str, tuple[Tensor, Cut | None]]) -> str | None:
        """The name of a tensor with NaN or infinity on any rank, None where there is none."""
        broken = [name for name, (tensor, _) in tensors.items() if not torch.isfinite(tensor).all()]
        everywhere = [name for names in self._group.of_all(broken) for name in names]
        return everywhere[0] if everywhere else None

    def write(self, epoch: int, tensors: dict[str, tuple[Tensor, Cut | None]], course: dict[str, Any]) -> None:
        """Write a checkpoint and then remove those before it.

        `tensors` are the own rows of each and the cut of its rows, None where every rank has all of it; `course` is a
        dict that JSON holds.
        """
        target = self.folder / f"epoch-{epoch:010d}"
        partial = self.folder / f".{target.name}.partial"
        try:
            self._first(_make_empty, partial)
            with self._group.contact():
                writer = Writer(partial)
                save(self._sharded(tensors), storage_writer=writer, process_group=self._group.handle)
            about = {"format": FORMAT, "format_version": FORMAT_VERSION, "fingerprint": self._fingerprint}
            self._first(_finish, partial, target, to_sealed_json(about | course))
        except (CheckpointException, OSError) as error:
            raise CheckpointError(f"cannot write the checkpoint {target}: {error}") from None

    def _first(self, work: Any, *arguments: Any) -> None:
        """Let rank 0 work and all others wait; all ranks raise its error."""
        failure = None
        if self._group.rank == 0:
            try:
                work(*arguments)
            except (OSError, CheckpointError) as error:
                failure = error
        failure = self._group.of_first(failure)
        if failure is not None:
            raise failure

    def _sharded(self, tensors: dict[str, tuple[Tensor, Cut | None]]) -> dict[str, Tensor]:
        mesh = DeviceMesh.from_group(self._group.handle, self._group.device.type)
        return {
            name: tensor if cut is None else _as_dtensor(tensor, cut, self._group.rank, mesh)
            for name, (tensor, cut) in tensors.items()
        }


def _damage(error: BaseException) -> DamagedError | None:
    """The error that says that a file is damaged, of any rank."""
    if isinstance(error, CheckpointException):
        return next((each for each, _ in error.failures.values() if isinstance(each, DamagedError)), None)
    return error if isinstance(error, DamagedError) else None


def _as_dtensor(own: Tensor, cut: Cut, rank: int, mesh: DeviceMesh) -> DTensor:
    """The rows of all ranks as one tensor; the wrapper allows uneven rows, which `Shard` alone does not."""
    shape = torch.Size((cut.n_rows, *own.shape[1:]))
    offset = (cut.starts[rank], *(0 for _ in own.shape[1:]))
    stride = torch.empty(shape, device="meta").stride()
    shards = LocalShardsWrapper([own], [offset])
    return DTensor.from_local(shards, mesh, [Shard(0)], run_check=False, shape=shape, stride=stride)


def _make_empty(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left_over in folder.parent.glob(".epoch-*"):
        shutil.rmtree(left_over)
    folder.mkdir()


def _finish(partial: Path, target: Path, course: bytes) -> None:
    replace_file(partial / _COURSE, course)
    older = list(target.parent.glob("epoch-*"))
    partial.rename(target)
    for folder in older:
        # Under another name, as a folder that is removed in part must not look like a whole one.
        gone = folder.with_name(f".{folder.name}.old")
        folder.rename(gone)
        shutil.rmtree(gone)


INDEX = "index.json"
_SUFFIX = ".distcp"


class Kept(NamedTuple):
    """Where a piece of a tensor lies, and the digest of its bytes."""

    place: _StorageInfo
    digest: str


class Writer(FileSystemWriter):
    """Writes tensors as torch does, and their types, shapes, places and digests as JSON."""

    def write_data(self, *args: Any, **kwargs: Any) -> Future[Any]:
        """Write the own tensors; the results have the digests of what lies in the files."""
        written = super().write_data(*args, **kwargs).value()
        folder, done = Path(self.path), Future()
        done.set_result(
            [replace(one, storage_data=Kept(one.storage_data, _digest(folder, one.storage_data))) for one in written]
        )
        return done

    def finish(self, metadata: Metadata, results: Any) -> None:
        """Write the index; called on one rank, after all tensors are written."""
        tensors = {name: _described(tensor) for name, tensor in metadata.state_dict_metadata.items()}
        places = [
            [one.index.fqn, one.index.offset, one.index.index, place.relative_path, place.offset, place.length, digest]
            for of_rank in results
            for one in of_rank
            for place, digest in [one.storage_data]
        ]
        replace_file(Path(self.path) / INDEX, to_sealed_json({"tensors": tensors, "places": places}))


class Reader(FileSystemReader):
    """Reads what `Writer` wrote, or raises `ValueError` for any damage of the index."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The index in torch's form."""
        folder = Path(self.path)
        try:
            index = parse_sealed_json((folder / INDEX).read_bytes(), INDEX)
            tensors: dict[str, Any] = {name: _tensor(entry) for name, entry in index["tensors"].items()}
            places = dict(_place(folder, *entry[:-1]) for entry in index["places"])
            digests = [entry[-1] for entry in index["places"]]
        except (TypeError, LookupError, AttributeError, OverflowError, RuntimeError) as error:
            raise ValueError(f"{INDEX} is no index of tensors: {error}") from None
        self._digests = dict(zip(places, digests, strict=True))
        return Metadata(tensors, storage_data=places, storage_meta=StorageMeta(load_id=self.load_id))

    def read_data(self, plan: Any, planner: Any) -> Future[None]:
        """Read the own tensors, each of whose pieces has to be as it was written."""
        for item in plan.items:
            place = self.storage_data[item.storage_index]
            if _digest(Path(self.path), place) != self._digests[item.storage_index]:
                raise DamagedError(f"tensor {item.storage_index.fqn} differs from its digest")
        return super().read_data(plan, planner)


def _digest(folder: Path, place: _StorageInfo) -> str:
    with (folder / place.relative_path).open("rb") as file:
        file.seek(place.offset)
        return digest_of(file.read(place.length))


def _described(tensor: Any) -> dict[str, Any]:
    if not isinstance(tensor, TensorStorageMetadata):
        raise TypeError(f"expected tensors only, found {type(tensor).__name__}")
    chunks = [[list(chunk.offsets), list(chunk.sizes)] for chunk in tensor.chunks]
    kind = str(tensor.properties.dtype).removeprefix("torch.")
    return {"dtype": kind, "size": list(tensor.size), "chunks": chunks}


def _tensor(entry: dict[str, Any]) -> TensorStorageMetadata:
    kind = getattr(torch, entry["dtype"])
    if not isinstance(kind, torch.dtype):
        raise ValueError(f"expected the type of a tensor, found {entry['dtype']!r}")
    chunks = [ChunkStorageMetadata(_size(offsets), _size(sizes)) for offsets, sizes in entry["chunks"]]
    return TensorStorageMetadata(TensorProperties(kind), _size(entry["size"]), chunks)


def _place(
    folder: Path, name: str, offset: list[int] | None, index: int | None, file: str, start: int, length: int
) -> tuple[MetadataIndex, _StorageInfo]:
    """The place of a shard of a tensor in a file of this folder."""
    if file != Path(file).name or not file.endswith(_SUFFIX):
        raise ValueError(f"expected a file *{_SUFFIX} of the checkpoint, found {file!r}")
    start, length = _size([start, length])
    if start + length > (folder / file).stat().st_size:
        raise ValueError(f"expected {length} bytes from byte {start} of {file}, found fewer")
    key = MetadataIndex(str(name), None if offset is None else _size(offset), None if index is None else int(index))
    return key, _StorageInfo(file, start, length)


def _size(values: Any) -> torch.Size:
    if any(type(value) is not int or not 0 <= value < 2**63 for value in values):
        raise ValueError(f"expected sizes, found {values!r}")
    return torch.Size(values)
