"""One optimiser step: launched kernel by kernel, or replayed as one CUDA graph; and the state of Adam from a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from air_recsys.nn.adaptive_laplacian import DenseLaplacian, FixedLaplacian
from air_recsys.nn.objective import FullWidthObjective, Objective
from air_recsys.storage.lazy import Tensor, torch

Result = TypeVar("Result")
_WARM_UP = 3  # plain runs before a capture: the optimiser's state and the libraries' workspaces have to be there


def make_stepper(objective: Objective, groups: list[dict], learning_rate: float) -> PlainSteps:
    """The stepper of `objective`: a CUDA graph where launching the kernels is what costs, plain steps elsewhere."""
    if _can_be_captured(objective):
        return CapturedSteps(objective, groups, learning_rate)
    return PlainSteps(objective, groups, learning_rate)


class PlainSteps:
    """Steps of Adam on an objective, launched kernel by kernel."""

    def __init__(self, objective: Objective, groups: list[dict], learning_rate: float) -> None:
        self._objective = objective
        self.optimizer = torch.optim.Adam(groups, lr=learning_rate, fused=True)

    def step(self, batch: int, rate: float, *, evaluated: bool) -> None:
        """Step along the gradients of a batch, which are there already if `evaluated`."""
        if not evaluated:
            self._objective.evaluate(batch)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["rate"]
        self.optimizer.step()

    def evaluate_all(self) -> Tensor:
        """The terms of the objective, (6,); with one batch the gradients of the next step are there too."""
        return torch.stack(self._objective.evaluate_all())


class CapturedSteps(PlainSteps):
    """The same, as two CUDA graphs, evaluation and update: a small step is all launches otherwise."""

    def __init__(self, objective: Objective, groups: list[dict], learning_rate: float) -> None:
        device = objective.model_parameters()[0].device
        self._rates = [torch.tensor(learning_rate * group["rate"], device=device) for group in groups]
        tensors = [group | {"lr": rate} for group, rate in zip(groups, self._rates, strict=True)]
        self.optimizer = torch.optim.Adam(tensors, fused=True, capturable=True)
        stream = torch.cuda.Stream(device)
        self._evaluate = _Replayed(lambda: torch.stack(objective.evaluate_all()), stream)
        self._update = _Replayed(self.optimizer.step, stream)

    def step(self, batch: int, rate: float, *, evaluated: bool) -> None:
        """Step along the gradients."""
        for tensor, group in zip(self._rates, self.optimizer.param_groups, strict=True):
            tensor.fill_(rate * group["rate"])
        if not evaluated:
            self._evaluate()
        self._update()

    def evaluate_all(self) -> Tensor:
        """The terms of the objective, in the memory that the next evaluation writes to."""
        return self._evaluate()


class _Replayed(Generic[Result]):
    """Kernels that are the same every time: launched one by one a few times, then captured once and replayed.

    All is work of one device, which need not be the current one: a graph holds only what its own stream is given.
    """

    def __init__(self, run: Callable[[], Result], stream: torch.cuda.Stream) -> None:
        self._run, self._stream = run, stream
        self._plain_runs = 0
        self._captured: tuple[torch.cuda.CUDAGraph, Result] | None = None

    def __call__(self) -> Result:
        """Run the kernels, and return what `run` returned: of a replay the same tensors every time."""
        with torch.cuda.device(self._stream.device):
            if self._plain_runs < _WARM_UP:
                return self._run_plainly()
            if self._captured is None:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, stream=self._stream):  # captured, not run
                    result = self._run()
                self._captured = graph, result
            graph, result = self._captured
            graph.replay()
            return result

    def _run_plainly(self) -> Result:
        self._plain_runs += 1
        current = torch.cuda.current_stream()
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            result = self._run()
        current.wait_stream(self._stream)
        return result


def _can_be_captured(objective: Objective) -> bool:
    """Whether a step is a fixed series of dense kernels: full width, graphs of all pairs, the same every time."""
    tensors: list[Tensor] = objective.model_parameters()
    dense = all(
        isinstance(laplacian, FixedLaplacian) or (isinstance(laplacian, DenseLaplacian) and laplacian.every == 1)
        for laplacian in objective.laplacians
    )
    return tensors[0].is_cuda and isinstance(objective, FullWidthObjective) and dense and not objective.terms


def moments_of(moments: Mapping[str, Tensor], tensor: Tensor) -> dict[str, Tensor]:
    """Adam's state of a tensor, on its device."""
    step, *running = (moments[name] for name in ("step", "exp_avg", "exp_avg_sq"))
    if step.shape != () or any((mean.shape, mean.dtype) != (tensor.shape, tensor.dtype) for mean in running):
        raise ValueError(f"expected moments of a tensor of shape {tuple(tensor.shape)} and {tensor.dtype}")
    return {name: moment.to(tensor.device) for name, moment in moments.items()}
