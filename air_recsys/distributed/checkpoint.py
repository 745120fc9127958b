"""Checkpoints that are whole or absent, and that any number of ranks can read.

A checkpoint is a folder ``epoch-N`` of `torch.distributed.checkpoint` files, written by all ranks, and a file
``course.json``. It is written under another name and renamed when it is complete; until then the one before it stays.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor._shards_wrapper import LocalShardsWrapper

from air_recsys.distributed.checkpoint_files import Reader, Writer
from air_recsys.distributed.cuts import Cut
from air_recsys.distributed.group import Group
from air_recsys.exceptions import CheckpointError
from air_recsys.storage.held_files import HeldFile
from air_recsys.storage.reading import parse_json
from air_recsys.storage.tensor_files import DamagedError, check_seal, to_sealed_json
from air_recsys.storage.writing import replace_file
from air_recsys.training.checkpoint import compare
from air_recsys.training.held_checkpoint import hold_checkpoint

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
        """Return the newest whole checkpoint that rank 0 sees."""
        folders = sorted(self.folder.glob("epoch-*")) if self._group.rank == 0 else []
        return self._group.of_first(folders[-1] if folders else None)

    def course(self, path: Path) -> dict[str, Any]:
        """Return the values that `write` was given beside the tensors."""
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
        """Return the name of a tensor with NaN or infinity on any rank, None where there is none."""
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
    """Return what says that a file is damaged, of any rank."""
    if isinstance(error, CheckpointException):
        return next((each for each, _ in error.failures.values() if isinstance(each, DamagedError)), None)
    return error if isinstance(error, DamagedError) else None


def _as_dtensor(own: Tensor, cut: Cut, rank: int, mesh: DeviceMesh) -> DTensor:
    """Return the rows of all ranks as one tensor; the wrapper allows uneven rows, which `Shard` alone does not."""
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
