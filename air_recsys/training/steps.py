"""One optimiser step: launched kernel by kernel, or replayed as one CUDA graph."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from air_recsys.nn.adaptive_laplacian import DenseLaplacian, FixedLaplacian
from air_recsys.nn.objective import FullWidthObjective, Objective

_WARM_UP = 3  # plain steps before a capture: the optimiser's state and the libraries' workspaces have to be there


class Stepper(Protocol):
    """What the loop asks of a step."""

    optimizer: torch.optim.Adam

    def step(self, batch: int, rate: float, *, evaluated: bool) -> None:
        """Step along the gradients of a batch, which are there already if `evaluated`."""
        ...


def make_stepper(objective: Objective, groups: list[dict], learning_rate: float) -> Stepper:
    """Return what steps `objective`: a CUDA graph where launching the kernels is what costs, plain steps elsewhere.

    Parameters
    ----------
    objective : Objective
    groups : list of dict
        "params" and "rate", a multiple of the learning rate in force.
    learning_rate : float
        Before any schedule.
    """
    if _can_be_captured(objective):
        return CapturedSteps(objective, groups, learning_rate)
    return PlainSteps(objective, groups, learning_rate)


class PlainSteps:
    """Evaluate the objective, then let Adam step."""

    def __init__(self, objective: Objective, groups: list[dict], learning_rate: float) -> None:
        self._objective = objective
        self.optimizer = torch.optim.Adam(groups, lr=learning_rate, fused=True)

    def step(self, batch: int, rate: float, *, evaluated: bool) -> None:
        """Step along the gradients of a batch."""
        if not evaluated:
            self._objective.evaluate(batch)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["rate"]
        self.optimizer.step()


class CapturedSteps:
    """The same, as one CUDA graph: a small step is all launches otherwise.

    The first steps are plain ones; then evaluation and optimiser are captured once and replayed.
    """

    def __init__(self, objective: Objective, groups: list[dict], learning_rate: float) -> None:
        self._objective = objective
        device = objective.model_parameters()[0].device
        self._rates = [torch.tensor(learning_rate * group["rate"], device=device) for group in groups]
        tensors = [group | {"lr": rate} for group, rate in zip(groups, self._rates, strict=True)]
        self.optimizer = torch.optim.Adam(tensors, fused=True, capturable=True)
        self._stream = torch.cuda.Stream(device)
        self._plain_steps, self._graph = 0, None

    def step(self, batch: int, rate: float, *, evaluated: bool) -> None:
        """Step along the gradients; `evaluated` ones are used where they are, in a plain step."""
        self._set_rate(rate)
        if evaluated or self._plain_steps < _WARM_UP:
            self._plain_step(evaluated)
            return
        if self._graph is None:
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):  # captured, not run
                self._objective.evaluate()
                self.optimizer.step()
        self._graph.replay()

    def _plain_step(self, evaluated: bool) -> None:
        self._plain_steps += not evaluated
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            if not evaluated:
                self._objective.evaluate()
            self.optimizer.step()
        torch.cuda.current_stream().wait_stream(self._stream)

    def _set_rate(self, rate: float) -> None:
        for tensor, group in zip(self._rates, self.optimizer.param_groups, strict=True):
            tensor.fill_(rate * group["rate"])


def _can_be_captured(objective: Objective) -> bool:
    """Whether a step is a fixed series of dense kernels: full width, graphs of all pairs, alike every time."""
    tensors: list[Tensor] = objective.model_parameters()
    dense = all(
        isinstance(laplacian, FixedLaplacian) or (isinstance(laplacian, DenseLaplacian) and laplacian.every == 1)
        for laplacian in objective.laplacians
    )
    return tensors[0].is_cuda and isinstance(objective, FullWidthObjective) and dense and not objective.terms
