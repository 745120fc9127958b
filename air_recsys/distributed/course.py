"""A training that can be interrupted: what has to be kept of it, and how it goes on."""

from __future__ import annotations

import torch
from torch import Tensor

from air_recsys.distributed.checkpoint import Checkpoints
from air_recsys.distributed.cuts import Cut
from air_recsys.distributed.objective import ShardedObjective
from air_recsys.training import Record, Result

_MOMENTS = ("exp_avg", "exp_avg_sq")


class Course:
    """Keeps a training in checkpoints and brings it back.

    Parameters
    ----------
    checkpoints : Checkpoints
    objective : ShardedObjective
    every : int
        Epochs between two checkpoints; the last one has one as well.
    """

    def __init__(self, checkpoints: Checkpoints, objective: ShardedObjective, every: int) -> None:
        self._checkpoints, self._objective, self._every = checkpoints, objective, every
        self._kept = 0

    def begin(self, optimizer: torch.optim.Adam, result: Result) -> int:
        """Return the epoch to begin with: that of the newest checkpoint, with everything as it was then, or 0."""
        path = self._checkpoints.latest()
        if path is None:
            return 0
        course = self._checkpoints.course(path)
        state = self._tensors(optimizer)
        self._checkpoints.read(path, state)
        self._kept = course["epoch"]
        for tensor, _ in self._objective.named_parameters().values():
            optimizer.state[tensor]["step"].fill_(self._kept * len(self._objective.batches))
        for name, laplacian, _ in self._objective.sharded_graphs():
            laplacian.load_state({"logits": laplacian.logits, "neighbors": state[f"{name}_neighbors"][0]})
            for part, rows in zip(laplacian.parts, laplacian.rows, strict=True):
                for moment in _MOMENTS:
                    _moment(optimizer, part, moment).copy_(state[f"{name}_logits.{moment}"][0][rows])
                optimizer.state[part]["step"].fill_(self._kept)
        result.records[:] = [Record._make(values) for values in course["records"]]
        return self._kept

    def reach(self, epoch: int, optimizer: torch.optim.Adam, result: Result, *, ends: bool) -> None:
        """Write a checkpoint where one is due: of the state before step `epoch` and before its record."""
        if epoch > self._kept and (epoch % self._every == 0 or ends):
            self._checkpoints.write(epoch, self._tensors(optimizer), {"epoch": epoch, "records": result.records})
            self._kept = epoch

    def _tensors(self, optimizer: torch.optim.Adam) -> dict[str, tuple[Tensor, Cut | None]]:
        """Return the own rows of everything that training changes, by name; moments of logits as copies."""
        kept = self._objective.named_parameters()
        for name, (tensor, cut) in list(kept.items()):
            kept |= {f"{name}.{moment}": (_moment(optimizer, tensor, moment), cut) for moment in _MOMENTS}
        for name, laplacian, cut in self._objective.sharded_graphs():
            kept |= {f"{name}_neighbors": (laplacian.neighbors, cut), f"{name}_logits": (laplacian.logits, cut)}
            for moment in _MOMENTS:
                parts = [_moment(optimizer, part, moment) for part in laplacian.parts]
                kept[f"{name}_logits.{moment}"] = torch.cat(parts), cut
        return kept


def _moment(optimizer: torch.optim.Adam, tensor: Tensor, name: str) -> Tensor:
    """Return Adam's running mean of a tensor's gradients or of their squares, zero before the first step."""
    state = optimizer.state[tensor]
    if not state:
        step = torch.zeros((), dtype=torch.float32, device=tensor.device)
        state |= {"step": step, **{moment: torch.zeros_like(tensor) for moment in _MOMENTS}}
    return state[name]
