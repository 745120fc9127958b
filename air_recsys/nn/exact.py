r"""Epochs that complete the matrix exactly: graphs by its distances, and the X that minimises the objective with them.

While the graphs stay, AIR's objective at full width is a quadratic form of X, whose minimum solves

.. math:: C \circ X + m n\, (\eta_r L_r X + \eta_c X L_c) + T X = C \circ Y

with the weights C of observed entries (0 elsewhere) and the form T of a total variation. Conjugate gradients solve it
from the X before, so a few products are enough.
"""

from __future__ import annotations

from air_recsys.nn.objective import FullWidthObjective, Graph, Objective
from air_recsys.nn.terms import Quadratic, TotalVariation
from air_recsys.storage.lazy import Tensor, torch

_PRODUCTS = 10


def exact_epoch(objective: Objective, *, first: bool) -> None:
    """Sharpen the graphs, the first time from equal weights, and complete X with them."""
    assert isinstance(objective, FullWidthObjective)
    objective.sharpen_graphs(anew=first)
    left, right = objective.factorization.factors()
    objective.factorization.hold(completed_exactly(objective, left @ right.T))


def completed_exactly(objective: FullWidthObjective, start: Tensor, n_products: int = _PRODUCTS) -> Tensor:
    """The X (m, n) that minimises the objective with its present graphs, by so many steps from a start."""
    targets, weights = objective.dense
    varying = [term for term in objective.terms if isinstance(term, TotalVariation)]
    sides = enumerate((objective.row_graph, objective.column_graph))
    forms = [_graph_form(graph, objective.size, side) for side, graph in sides if graph is not None]
    forms += [term.near(start) for term in varying]

    def product(matrix: Tensor) -> Tensor:
        total = weights * matrix
        for form in forms:
            total += form.product(matrix)
        return total

    diagonal = weights.clone()
    for form in forms:
        diagonal += form.diagonal
    return _solved(Quadratic(product, diagonal), weights * targets, start, n_products)


def _graph_form(graph: Graph, size: int, side: int) -> Quadratic:
    laplacian, strength = graph.laplacian.fixed(), graph.strength * size
    if side == 0:
        return Quadratic(lambda matrix: laplacian.product(matrix).mul_(strength), strength * laplacian.degree)
    return Quadratic(
        lambda matrix: laplacian.product(matrix.T.contiguous()).mul_(strength).T, strength * laplacian.degree.T
    )


def _solved(form: Quadratic, right: Tensor, start: Tensor, n_products: int) -> Tensor:
    """Conjugate gradients, scaled by the diagonal."""
    solution, smallest = start.clone(), torch.finfo(start.dtype).tiny
    inverse = form.diagonal.clamp(min=smallest).reciprocal()
    residual = right - form.product(solution)
    scaled = inverse * residual
    direction, length = scaled.clone(), _dot(residual, scaled)
    for _ in range(n_products):
        if not length > smallest:
            break
        along = form.product(direction)
        step = length / _dot(direction, along)
        solution.addcmul_(direction, step)
        residual.addcmul_(along, step, value=-1)
        scaled = inverse * residual
        before, length = length, _dot(residual, scaled)
        direction.mul_(length / before).add_(scaled)
    return solution


def _dot(first: Tensor, second: Tensor) -> Tensor:
    return (first * second).sum(dim=1).sum()  # row by row: the same with any number of threads
