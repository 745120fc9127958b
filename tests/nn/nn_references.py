"""The mathematics of `air_recsys.nn` once more, plainly, in a form that autograd can differentiate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from air_recsys.nn.adaptive_laplacian import FixedLaplacian, SparseLaplacian
from air_recsys.nn.build import Settings, build_objective, observations
from air_recsys.nn.objective import Objective, Observations

F64 = torch.float64
CPU = torch.device("cpu")


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def close(found: Any, expected: Any, tolerance: float = 1e-12) -> None:
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def row_softmin(logits: Tensor) -> Tensor:
    weights = torch.softmax(-logits, dim=1)
    return (weights + weights.T) / 2


ADJACENCY: dict[str, Callable[[Tensor], Tensor]] = {
    "row_softmin": row_softmin,
    "global_sum": lambda logits: (torch.exp(logits) + torch.exp(logits).T) / torch.exp(logits).sum(),
    "global_product": lambda logits: torch.exp(logits + logits.T) / torch.exp(logits).sum(),
}


def graph_energy(laplacian: Any, name: str, logits: Tensor | None, rows: Tensor) -> Tensor:
    """tr(X^T L X) for the rows of X, of a dense or a sparse graph."""
    if isinstance(laplacian, FixedLaplacian):
        full = torch.as_tensor(laplacian.adjacency().toarray())
    elif isinstance(laplacian, SparseLaplacian):
        weights = torch.softmax(-logits, dim=1)
        full = rows.new_zeros(len(rows), len(rows)).scatter(1, laplacian.neighbors, weights)
        full = (full + full.T) / 2
    else:
        full = ADJACENCY[name](logits)
    adjacency = full * (1 - torch.eye(len(rows), dtype=rows.dtype))
    return torch.trace(rows.T @ (torch.diag(adjacency.sum(dim=1)) - adjacency) @ rows)


def autograd_objective(objective: Objective, settings: Settings) -> tuple[dict[str, float], list[Tensor]]:
    """The terms of F as the module's docstring writes them, and the gradient of every parameter."""
    leaves = [parameter.detach().clone().requires_grad_() for parameter in objective.parameters()]
    weights, rest = leaves[: settings.depth], leaves[settings.depth :]
    completed = weights[0]
    for weight in weights[1:-1]:
        completed = completed @ weight
    completed = completed @ weights[-1].T  # X, (m, n)
    biases, logits = (rest[:2], rest[2:]) if settings.biases else ([], rest)
    predicted = completed + biases[0][:, None] + biases[1] if biases else completed
    targets, observed = dense(objective.batches[0])
    penalties = settings.penalties
    confidence = objective.batches[0].weights
    squared = (predicted - targets)[observed].square()  # row-major, as the observations are
    fit = squared.sum() if confidence is None else (confidence * squared).sum()
    fit = (fit + penalties.unobserved_weight * predicted[~observed].square().sum()) / targets.numel()
    squares = penalties.weight_decay * sum((weight.square().sum() for weight in weights), torch.zeros((), dtype=F64))
    squares = squares + penalties.bias_decay * sum(bias.square().sum() for bias in biases)
    energies = {"row_energy": torch.zeros((), dtype=F64), "column_energy": torch.zeros((), dtype=F64)}
    graphs = (("row_energy", objective.row_graph, completed), ("column_energy", objective.column_graph, completed.T))
    total = fit + squares / targets.numel()
    for name, graph, rows in graphs:
        if graph is not None:
            own = logits.pop(0) if graph.laplacian.parts else None
            energies[name] = graph_energy(graph.laplacian, settings.adjacency, own, rows)
            total = total + graph.strength * energies[name]
    further = torch.zeros((), dtype=F64)
    for term, (transform, strength, _) in zip(objective.terms, settings.transforms, strict=False):
        own_energy = graph_energy(term.laplacian, settings.adjacency, logits.pop(0), transform(completed))
        further = further + strength * own_energy
    variation = completed.diff(dim=0).abs().sum() + completed.diff(dim=1).abs().sum()
    further = further + settings.tv_strength * variation / targets.numel()
    total = total + further
    total.backward()
    terms = {"fit": fit, **energies, "decay": squares / targets.numel(), "further": further, "objective": total}
    gradients = [leaf.grad if leaf.grad is not None else torch.zeros_like(leaf) for leaf in leaves]
    return {name: float(value.detach()) for name, value in terms.items()}, gradients


def dense(observed: Observations) -> tuple[Tensor, Tensor]:
    """Targets with 0 where there are none, and which entries are observed, (m, n) each."""
    pattern, values = observed.pattern, observed.values
    rows = torch.arange(pattern.shape[0]).repeat_interleave(pattern.row_starts.diff())
    targets, mask = torch.zeros(pattern.shape, dtype=values.dtype), torch.zeros(pattern.shape, dtype=torch.bool)
    targets[rows, pattern.columns] = values
    mask[rows, pattern.columns] = True
    return targets, mask


def random_observations(m: int, n: int, seed: int = 0, density: float = 0.5, dtype: torch.dtype = F64) -> Observations:
    """Observed entries in +-1; the last row and the last column are empty."""
    rng = np.random.default_rng(seed)
    mask = rng.random((m, n)) < density
    mask[0, 0], mask[m - 1], mask[:, n - 1] = True, False, False
    rows, columns = np.nonzero(mask)
    ratings = sp.csr_array((rng.uniform(-1, 1, rows.size), (rows, columns)), shape=(m, n))
    return observations(ratings, lambda values: values, dtype, CPU)


def gradient_of(parameter: Tensor) -> Tensor:
    """A copy of the gradient that was written last."""
    assert parameter.grad is not None
    return parameter.grad.clone()


def random_objective(observed: Observations, settings: Settings, seed: int = 0) -> Objective:
    """An objective at a point where no gradient is small: spread logits, biases and nearest neighbours."""
    objective = build_objective(observed, settings, np.random.default_rng(seed))
    generator = torch.Generator().manual_seed(seed)
    objective.refresh_graphs()
    for tensor in [*objective.logits(), *(objective.biases or ())]:
        tensor.normal_(generator=generator)
    return objective
