"""Checkpoints of a sharded training: the tensors to keep, and how they come back."""

from __future__ import annotations

import torch
from torch import Tensor

from air_recsys.distributed.checkpoint import Checkpoints
from air_recsys.distributed.cuts import Cut
from air_recsys.distributed.objective import ShardedObjective
from air_recsys.training import GradientDescent, Record, Result, Trainee

_MOMENTS = ("exp_avg", "exp_avg_sq")


class ShardedCheckpointer:
    """Keeps a training in checkpoints of all ranks, every `every` epochs and after the last, and restores it."""

    def __init__(self, checkpoints: Checkpoints, every: int) -> None:
        self._checkpoints, self._every = checkpoints, every
        self._kept = 0

    def restore(self, trainee: Trainee, result: Result) -> int:
        """Return the epoch to begin with: that of the newest checkpoint, with everything as it was then, or 0."""
        path = self._checkpoints.latest()
        if path is None:
            return 0
        objective, optimizer = _sharded(trainee)
        course = self._checkpoints.course(path)
        state = _tensors(objective, optimizer)
        self._checkpoints.read(path, state)
        self._kept = course["epoch"]
        for tensor, _ in objective.named_parameters().values():
            optimizer.state[tensor]["step"].fill_(self._kept * len(objective.batches))
        for name, laplacian, _ in objective.sharded_graphs():
            laplacian.load_state({"logits": laplacian.logits, "neighbors": state[f"{name}_neighbors"][0]})
            for logits, rows in zip(laplacian.parts, laplacian.rows, strict=True):
                for moment in _MOMENTS:
                    _moment(optimizer, logits, moment).copy_(state[f"{name}_logits.{moment}"][0][rows])
                optimizer.state[logits]["step"].fill_(self._kept)
        result.records[:] = [Record._make(values) for values in course["records"]]
        return self._kept

    def keep(self, position: int, trainee: Trainee, result: Result, *, ends: bool) -> None:
        """Write a checkpoint where one is due: of the state at a position, before its record.

        A state that has left the finite numbers replaces none; the record that follows says so.
        """
        if position > self._kept and (position % self._every == 0 or ends):
            tensors = _tensors(*_sharded(trainee))
            if self._checkpoints.broken(tensors) is not None:
                return
            self._checkpoints.write(position, tensors, {"epoch": position, "records": result.records})
            self._kept = position


def _sharded(trainee: Trainee) -> tuple[ShardedObjective, torch.optim.Adam]:
    assert isinstance(trainee, GradientDescent)
    assert isinstance(trainee.objective, ShardedObjective)
    return trainee.objective, trainee.optimizer


def _tensors(objective: ShardedObjective, optimizer: torch.optim.Adam) -> dict[str, tuple[Tensor, Cut | None]]:
    """Return the own rows of everything that training changes, by name; moments of logits as copies."""
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
    """Return Adam's running mean of a tensor's gradients or of their squares, zero before the first step."""
    state = optimizer.state[tensor]
    if not state:
        step = torch.zeros((), dtype=torch.float32, device=tensor.device)
        state |= {"step": step, **{moment: torch.zeros_like(tensor) for moment in _MOMENTS}}
    return state[name]
