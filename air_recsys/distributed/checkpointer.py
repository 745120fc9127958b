"""The keepers of a training over ranks: of the own rows of each, or of the whole state that all of them hold."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from air_recsys.distributed.checkpoint import Checkpoints
from air_recsys.distributed.group import Cut, Group
from air_recsys.distributed.objective import ShardedObjective
from air_recsys.storage.lazy import Tensor, torch
from air_recsys.training import GradientDescent, Record, Result, Trainer
from air_recsys.training.checkpointer import FileCheckpointer

_MOMENTS = ("exp_avg", "exp_avg_sq")
FILE = "sweeps.ckpt"


class ShardedCheckpointer:
    """Keeps a training in checkpoints of all ranks, every `every` epochs and after the last, and restores it."""

    def __init__(self, checkpoints: Checkpoints, every: int) -> None:
        self._checkpoints, self._every = checkpoints, every
        self._kept = 0

    def restore(self, trainer: Trainer, result: Result) -> int:
        """The epoch to begin with: that of the newest checkpoint, with everything as it was then, or 0."""
        path = self._checkpoints.latest()
        if path is None:
            return 0
        objective, optimizer = _sharded(trainer)
        state = _tensors(objective, optimizer)
        further = self._checkpoints.read(path, state)
        self._kept = further["epoch"]
        for tensor, _ in objective.named_parameters().values():
            optimizer.state[tensor]["step"].fill_(self._kept * len(objective.batches))
        for name, laplacian, _ in objective.sharded_graphs():
            laplacian.load_state({"logits": laplacian.logits, "neighbors": state[f"{name}_neighbors"][0]})
            for logits, rows in zip(laplacian.parts, laplacian.rows, strict=True):
                for moment in _MOMENTS:
                    _moment(optimizer, logits, moment).copy_(state[f"{name}_logits.{moment}"][0][rows])
                optimizer.state[logits]["step"].fill_(self._kept)
        result.records[:] = [Record._make(values) for values in further["records"]]
        return self._kept

    def keep(self, position: int, trainer: Trainer, result: Result, *, ends: bool) -> None:
        """Write a checkpoint where one is due: of the state at a position, before its record.

        A state that has left the finite numbers replaces none; the record that follows says so.
        """
        if position > self._kept and (position % self._every == 0 or ends):
            tensors = _tensors(*_sharded(trainer))
            if self._checkpoints.broken(tensors) is not None:
                return
            self._checkpoints.write(position, tensors, {"epoch": position, "records": result.records})
            self._kept = position


def _sharded(trainer: Trainer) -> tuple[ShardedObjective, torch.optim.Adam]:
    assert isinstance(trainer, GradientDescent)
    assert isinstance(trainer.objective, ShardedObjective)
    return trainer.objective, trainer.optimizer


def _tensors(objective: ShardedObjective, optimizer: torch.optim.Adam) -> dict[str, tuple[Tensor, Cut | None]]:
    """The own rows of everything that training changes, by name; moments of logits as copies."""
    kept = objective.named_parameters()
    for name, (tensor, cut) in list(kept.items()):
        kept |= {f"{name}.{moment}": (_moment(optimizer, tensor, moment), cut) for moment in _MOMENTS}
    for name, laplacian, cut in objective.sharded_graphs():
        kept |= {f"{name}_neighbors": (laplacian.neighbors, cut), f"{name}_logits": (laplacian.logits, cut)}
        for moment in _MOMENTS:
            moments = [_moment(optimizer, logits, moment) for logits in laplacian.parts]
            kept[f"{name}_logits.{moment}"] = torch.cat(moments), cut
    return kept


def _moment(optimizer: torch.optim.Adam, tensor: Tensor, name: str) -> Tensor:
    """Adam's running mean of a tensor's gradients or of their squares, zero before the first step."""
    state = optimizer.state[tensor]
    if not state:
        step = torch.zeros((), dtype=torch.float32, device=tensor.device)
        state |= {"step": step, **{moment: torch.zeros_like(tensor) for moment in _MOMENTS}}
    return state[name]


class SweepCheckpointer(FileCheckpointer):
    """Keeps a training in ``sweeps.ckpt`` of a folder, every `every` sweeps and after the last, and restores it.

    Each rank holds the whole state: rank 0 writes the file and all ranks read it, however many there are. All methods
    raise `CheckpointError` on all ranks where one of them fails.
    """

    def __init__(self, group: Group, folder: Path, fingerprint: dict[str, Any], every: int) -> None:
        self._group, file = group, folder / FILE
        before = group.of_first(file if file.exists() else None)
        own = file if group.rank == 0 else None
        group.together(partial(super().__init__, fingerprint, own, every, before))

    def restore(self, trainer: Trainer, result: Result) -> int:
        """The sweep to begin with, everything being as it was then."""
        return self._group.together(partial(super().restore, trainer, result))

    def keep(self, position: int, trainer: Trainer, result: Result, *, ends: bool) -> None:
        """Let rank 0 write the state at a position, where it is due."""
        if ends or position % self.every == 0:
            self._group.together(partial(super().keep, position, trainer, result, ends=ends))
