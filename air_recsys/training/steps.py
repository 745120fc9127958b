"""One optimiser step: launched kernel by kernel, or replayed as CUDA graphs; and the state of Adam from a file."""

from __future__ import annotations

from collections.abc import Mapping

from air_recsys.nn.captured import MOST_ENTRIES, Replayed
from air_recsys.nn.objective import Objective
from air_recsys.storage.lazy import Tensor, torch


def make_stepper(objective: Objective, groups: list[dict], learning_rate: float) -> PlainSteps:
    """The stepper of `objective`: a CUDA graph where launching the kernels is what costs, plain steps elsewhere.

    A step on a batch has to be a series of kernels that stays the same.
    """
    on_gpu = objective.model_parameters()[0].is_cuda
    few = max(len(batch.values) for batch in objective.batches) <= MOST_ENTRIES
    same = not objective.terms and all(graph.every == 1 for graph in objective.laplacians)
    return (CapturedSteps if on_gpu and few and same else PlainSteps)(objective, groups, learning_rate)


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

    def forget(self, *, for_good: bool = False) -> None:
        """Take note that tensors of objective or optimiser have been replaced; or, `for_good`, are at every step."""

    def evaluate_all(self) -> Tensor:
        """The terms of the objective, (6,); with one batch the gradients of the next step are there too."""
        return torch.stack(self._objective.evaluate_all())


class CapturedSteps(PlainSteps):
    """The same, as two CUDA graphs for each batch, evaluation and update: a small step is all launches otherwise."""

    def __init__(self, objective: Objective, groups: list[dict], learning_rate: float) -> None:
        self._objective = objective
        self._stream = torch.cuda.Stream(objective.model_parameters()[0].device)
        rates = (learning_rate * group["rate"] for group in groups)
        self._rates = [torch.tensor(rate, device=self._stream.device) for rate in rates]
        tensors = [group | {"lr": rate} for group, rate in zip(groups, self._rates, strict=True)]
        self.optimizer = torch.optim.Adam(tensors, fused=True, capturable=True)
        self._trained: list[list[Tensor]] = [[] for _ in objective.batches]  # tensors with a gradient
        self._graphs = self._new_graphs(known=False)

    def _new_graphs(self, *, known: bool) -> list[tuple[Replayed, Replayed]]:
        """Evaluation and update of each batch."""
        pool = torch.cuda.graph_pool_handle()  # a batch replays its two graphs one after the other
        return [
            (Replayed(self._stream, pool=pool, known=known), Replayed(self._stream, pool=pool, known=True))
            for _ in self._objective.batches
        ]

    def forget(self, *, for_good: bool = False) -> None:
        """Capture anew, or no more."""
        graphs = [each for pair in self._graphs for each in pair]
        if for_good or any(each.is_dropped for each in graphs):
            for each in graphs:
                each.drop()
        else:
            self._graphs = self._new_graphs(known=all(each.is_graph for each in graphs))

    def step(self, batch: int, rate: float, *, evaluated: bool) -> None:
        """Step along the gradients of a batch, which are there already if `evaluated`."""
        for tensor, group in zip(self._rates, self.optimizer.param_groups, strict=True):
            tensor.fill_(rate * group["rate"])
        evaluation, update = self._graphs[batch]
        if not evaluated:
            self._evaluate(batch)
        if evaluation.is_graph:  # its gradients stand in the same memory every time
            update(self._update, self._moving)
        else:
            self.optimizer.step()
        if update.is_dropped:
            evaluation.drop()

    def evaluate_all(self) -> Tensor:
        """The terms of the objective; with one batch the gradients of the next step are there too."""
        return super().evaluate_all() if len(self._graphs) > 1 else self._evaluate(0)

    def _evaluate(self, batch: int) -> Tensor:
        """The terms of a batch, in the memory that its next evaluation writes to."""
        parameters = self._objective.parameters()

        def run() -> list[Tensor]:
            terms = torch.stack(self._objective.evaluate(batch))
            self._trained[batch] = [tensor for tensor in parameters if tensor.grad is not None]
            return [terms, *(tensor.grad for tensor in self._trained[batch] if tensor.grad is not None)]

        terms, *gradients = self._graphs[batch][0](run)
        for tensor in parameters:
            tensor.grad = None
        for tensor, gradient in zip(self._trained[batch], gradients, strict=True):
            tensor.grad = gradient
        return terms

    def _update(self) -> list[Tensor]:
        self.optimizer.step()
        return []

    def _moving(self) -> list[Tensor]:
        """The tensors that an update changes."""
        states = [self.optimizer.state[tensor] for tensor in self._objective.parameters()]
        return [*self._objective.parameters(), *(moment for state in states for moment in state.values())]


def moments_of(moments: Mapping[str, Tensor], tensor: Tensor) -> dict[str, Tensor]:
    """Adam's state of a tensor, on its device."""
    step, *running = (moments[name] for name in ("step", "exp_avg", "exp_avg_sq"))
    if step.shape != () or any((mean.shape, mean.dtype) != (tensor.shape, tensor.dtype) for mean in running):
        raise ValueError(f"expected moments of a tensor of shape {tuple(tensor.shape)} and {tensor.dtype}")
    return {name: moment.to(tensor.device) for name, moment in moments.items()}
