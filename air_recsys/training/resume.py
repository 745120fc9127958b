"""A training of one process that can be interrupted: what has to be kept of it, and how it goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from air_recsys.nn.objective import Objective
from air_recsys.training.checkpoint import of_this_training
from air_recsys.training.result import Record, Remembered, Result

Write = Callable[[dict[str, Any]], None]
"""Keeps a state: `air_recsys.training.checkpoint.CheckpointFile.write`, perhaps with more beside it."""


class SavedCourse:
    """Hands the state of a training on, and brings one back: from then on all goes as if it had never stopped.

    Parameters
    ----------
    objective : Objective
        As it was before its first step.
    write : callable, optional
        Takes each state; None keeps none.
    every : int
        Epochs between two states; the last epoch, interrupted or not, has one as well.
    state : dict, optional
        To go on from.
    """

    def __init__(
        self, objective: Objective, write: Write | None = None, every: int = 1, state: dict[str, Any] | None = None
    ) -> None:
        self._objective, self._write, self._every, self._state = objective, write, every, state
        self._kept = 0

    def begin(self, optimizer: torch.optim.Adam, result: Result) -> int:
        """Return the epoch to begin with, everything being as it was then.

        Raises
        ------
        CheckpointError
            Where the state is not one of such a training.
        """
        state, self._state = self._state, None
        if state is None:
            return 0
        with of_this_training():
            self._load(state, optimizer, result)
        return self._kept

    def _load(self, state: dict[str, Any], optimizer: torch.optim.Adam, result: Result) -> None:
        for tensor, moments in zip(_trained(optimizer), state["optimizer"], strict=True):
            optimizer.state[tensor] = _moments(moments, tensor)
        result.records[:] = [Record(int(epoch), *map(float, rest)) for epoch, *rest in state["records"]]
        result.snapshots |= {int(epoch): list(graphs) for epoch, graphs in state["snapshots"]}
        result.remembered = _remembered(**state["remembered"])
        for looked_back_at in (result.remembered.last_good, result.remembered.best):
            self._objective.load_state(looked_back_at[1])  # shows that it can be gone back to
        self._objective.load_state(state["objective"])
        self._kept = int(state["epoch"])

    def reach(self, epoch: int, optimizer: torch.optim.Adam, result: Result, *, ends: bool) -> None:
        """Hand on the state before step `epoch` and before its record, where it is due."""
        if self._write is None or epoch <= self._kept or not (ends or epoch % self._every == 0):
            return
        assert result.remembered is not None
        self._write(
            {
                "epoch": epoch,
                "objective": self._objective.state(),
                "optimizer": [dict(optimizer.state[tensor]) for tensor in _trained(optimizer)],
                "records": result.records,
                "snapshots": list(result.snapshots.items()),
                "remembered": vars(result.remembered),
            }
        )
        self._kept = epoch


def _trained(optimizer: torch.optim.Adam) -> list[torch.Tensor]:
    return [tensor for group in optimizer.param_groups for tensor in group["params"]]


def _moments(found: dict[str, torch.Tensor], tensor: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return Adam's state of a tensor, on its device."""
    step, *running = (found[name] for name in ("step", "exp_avg", "exp_avg_sq"))
    if step.shape != () or any((part.shape, part.dtype) != (tensor.shape, tensor.dtype) for part in running):
        raise ValueError(f"expected moments of a tensor of shape {tuple(tensor.shape)} and {tensor.dtype}")
    return {name: moment.to(tensor.device) for name, moment in found.items()}


def _remembered(last_good: Any, best: Any, best_rmse: float, previous_objective: float) -> Remembered:
    last_good, best = ((int(epoch), state) for epoch, state in (last_good, best))
    return Remembered(last_good, best, float(best_rmse), float(previous_objective))
