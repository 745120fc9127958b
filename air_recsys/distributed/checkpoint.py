"""Checkpoints that are whole or absent, and that any number of ranks can read.

A checkpoint is a folder ``epoch-N`` with a file of each rank, of the form of those of one process: its own rows, and
the cuts of all. It is written under another name and renamed when it is complete; until then the one before it stays.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from air_recsys.distributed.group import Cut, Group
from air_recsys.exceptions import CheckpointError
from air_recsys.storage.held_files import HeldFile
from air_recsys.storage.lazy import Tensor, torch
from air_recsys.training.checkpoint import CheckpointFile, hold_checkpoint

_LOCK = ".lock"

Tensors = Mapping[str, tuple[Tensor, Cut | None]]
"""The own rows of each tensor and the cut of its rows, None where every rank has all of it."""
Overlap = tuple[slice, slice]
"""Rows that this rank needs and a file holds: among the own ones, and among those of the file."""


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

        def hold() -> None:
            self.folder.mkdir(parents=True, exist_ok=True)
            locks.append(hold_checkpoint(self.folder, self.folder / _LOCK))

        self._first(hold)
        try:
            yield
        finally:
            for lock in locks:
                lock.remove()

    def latest(self) -> Path | None:
        """The newest whole checkpoint that rank 0 sees."""
        folders = sorted(self.folder.glob("epoch-*")) if self._group.rank == 0 else []
        return self._group.of_first(folders[-1] if folders else None)

    def read(self, path: Path, tensors: Tensors) -> dict[str, Any]:
        """Fill the own rows of `tensors` from a checkpoint of any number of ranks, and return what else it holds."""
        return self._group.together(lambda: self._read(path, tensors))

    def broken(self, tensors: Tensors) -> str | None:
        """The name of a tensor with NaN or infinity on any rank, None where there is none."""
        broken = [name for name, (tensor, _) in tensors.items() if not torch.isfinite(tensor).all()]
        everywhere = [name for names in self._group.of_all(broken) for name in names]
        return everywhere[0] if everywhere else None

    def write(self, epoch: int, tensors: Tensors, further: dict[str, Any]) -> None:
        """Write a checkpoint and then remove those before it; `further` is a dict that JSON holds."""
        target = self.folder / f"epoch-{epoch:010d}"
        partial = self.folder / f".{target.name}.partial"
        state = {
            "cuts": {name: None if cut is None else cut.starts for name, (_, cut) in tensors.items()},
            "tensors": {name: tensor for name, (tensor, _) in tensors.items()},
            "further": further,
        }
        self._first(lambda: _make_empty(partial))
        self._group.together(lambda: self._file(partial, self._group.rank).write(state))
        self._first(lambda: _finish(partial, target))

    def _read(self, path: Path, tensors: Tensors) -> dict[str, Any]:
        state = self._file(path, 0).read()
        try:
            n_ranks = len(list(path.glob("rank-*")))
            for rank in range(n_ranks):
                overlaps = {
                    name: _overlap(cut, state["cuts"][name], rank, self._group.rank, n_ranks)
                    for name, (_, cut) in tensors.items()
                }
                if any(overlaps.values()):
                    part = state if rank == 0 else self._file(path, rank).read()
                    _fill(tensors, overlaps, part["tensors"])
            return dict(state["further"])
        except CheckpointError:  # of a file, which says what it is
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError) as error:
            raise CheckpointError(f"{path} is no whole checkpoint that this process can read: {error}") from None

    def _file(self, folder: Path, rank: int) -> CheckpointFile:
        return CheckpointFile(folder / f"rank-{rank:05d}.ckpt", self._fingerprint)

    def _first(self, work: Callable[[], None]) -> None:
        """Let rank 0 work and all others wait; all ranks raise its error."""

        def own() -> None:
            try:
                if self._group.rank == 0:
                    work()
            except OSError as error:
                raise CheckpointError(
                    f"cannot write the checkpoint {self.folder}: {error.strerror or error}"
                ) from None

        self._group.together(own)


def _overlap(cut: Cut | None, written: Any, rank: int, own_rank: int, n_ranks: int) -> Overlap | None:
    """The rows of a tensor that this rank takes from the file of a rank, whose cut was `written`; None for no rows."""
    if cut is None:
        return (slice(None), slice(None)) if rank == 0 else None
    before = Cut(tuple(written))
    if len(before.starts) != n_ranks + 1 or before.n_rows != cut.n_rows or min(before.sizes) < 1:
        raise ValueError(f"expected {cut.n_rows} rows of {n_ranks} ranks, found the cut {before.starts}")
    own, theirs = cut.of(own_rank), before.of(rank)
    start, stop = max(own.start, theirs.start), min(own.stop, theirs.stop)
    if start >= stop:
        return None
    return slice(start - own.start, stop - own.start), slice(start - theirs.start, stop - theirs.start)


def _fill(tensors: Tensors, overlaps: Mapping[str, Overlap | None], part: Mapping[str, Tensor]) -> None:
    """Copy the rows of a file that this rank needs into its own ones."""
    for name, overlap in overlaps.items():
        if overlap is not None:
            own, found = tensors[name][0][overlap[0]], part[name][overlap[1]]
            if (own.shape, own.dtype) != (found.shape, found.dtype):
                raise ValueError(f"expected {name} of shape {tuple(own.shape)}, found {tuple(found.shape)}")
            own.copy_(found)


def _make_empty(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left_over in folder.parent.glob(".epoch-*"):
        shutil.rmtree(left_over)
    folder.mkdir()


def _finish(partial: Path, target: Path) -> None:
    older = list(target.parent.glob("epoch-*"))
    partial.rename(target)
    for folder in older:
        # Under another name, as a folder that is removed in part must not look like a whole one.
        gone = folder.with_name(f".{folder.name}.old")
        folder.rename(gone)
        shutil.rmtree(gone)
