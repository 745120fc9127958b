r"""The objective of AIR and its gradient, written by hand.

.. math::
    F = \frac{1}{mn}\Big(\sum_{(i,j)\in\Omega} c_{ij} (\hat y_{ij} - y_{ij})^2
        + \omega \sum_{(i,j)\notin\Omega} \hat y_{ij}^2
        + \lambda \sum_l \|W_l\|^2 + \lambda_b (\|b\|^2 + \|c\|^2)\Big)
        + \eta_r E(X; A_r) + \eta_c E(X^\top; A_c) + \sum_i R_i(X)

with :math:`X = U V^\top` a deep factorization, :math:`\hat y_{ij} = x_{ij} + b_i + c_j` and weights c (1 where none
are given). The energies are those of X alone. Two forms compute the same F: `FullWidthObjective` holds X itself,
`FactorWidthObjective` never forms an m x n array and has no further terms R_i (`air_recsys.nn.terms`).

Source: the paper's objective in the normalisation behind its published tables (the mean over all m n entries).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import NamedTuple

from air_recsys.nn.adaptive_laplacian import AdaptiveLaplacian
from air_recsys.nn.devices import fast_products
from air_recsys.nn.factorization import DeepFactorization
from air_recsys.nn.pattern import SparsePattern
from air_recsys.nn.terms import Term, TransformedEnergy
from air_recsys.storage.lazy import Tensor, torch

State = list[Tensor | dict[str, Tensor]]
"""Copies of the model parameters, then the state of each graph."""


class Observations(NamedTuple):
    """Observed entries in row-major order."""

    pattern: SparsePattern
    values: Tensor  # (nnz,)
    weights: Tensor | None = None  # (nnz,), c; all 1 where None


class Graph(NamedTuple):
    """A learned graph and the strength eta of its energy."""

    laplacian: AdaptiveLaplacian
    strength: float


class Terms(NamedTuple):
    """The terms of F at one point; each a scalar tensor."""

    fit: Tensor  # data term, divided by m n
    row_energy: Tensor  # E(X; A_r)
    column_energy: Tensor  # E(X^T; A_c)
    decay: Tensor  # weight decay, divided by m n
    further: Tensor  # sum of the further terms
    objective: Tensor  # F


class Penalties(NamedTuple):
    """Weights of the terms that need no graph, in units of squared ratings."""

    weight_decay: float = 0.0  # lambda
    bias_decay: float = 0.0  # lambda_b
    unobserved_weight: float = 0.0  # omega


class Evaluation(NamedTuple):
    """The terms and gradients that each of the two forms computes."""

    fit: Tensor  # summed (and weighted) squared error
    energies: tuple[Tensor, Tensor]
    further: Tensor
    gradients: tuple[Tensor, Tensor]  # dF/dU (m, r), dF/dV (n, r)


_NO_PENALTIES = Penalties()


class Objective:
    """The base of both forms: parameters, weight decay, and the sum of the terms.

    Parameters
    ----------
    batches : sequence of Observations
        All observed entries in one batch, or random subsets of them of one shape, which are used in turn.
    factorization : DeepFactorization
    row_graph, column_graph : Graph, optional
    biases : tuple of Tensor, optional
        b (m,) and c (n,), trained with the factors.
    penalties : Penalties
    terms : sequence of Term
        Further terms R_i; at full width only.
    """

    def __init__(
        self,
        batches: Sequence[Observations],
        factorization: DeepFactorization,
        row_graph: Graph | None = None,
        column_graph: Graph | None = None,
        biases: tuple[Tensor, Tensor] | None = None,
        penalties: Penalties = _NO_PENALTIES,
        terms: Sequence[Term] = (),
    ) -> None:
        self.batches, self.factorization = batches, factorization
        self.row_graph, self.column_graph = row_graph, column_graph
        self.biases, self.penalties, self.terms = biases, penalties, terms
        self.size = batches[0].pattern.shape[0] * batches[0].pattern.shape[1]  # m n

    @property
    def graphs(self) -> list[Graph]:
        """The graphs that are there, rows before columns."""
        return [graph for graph in (self.row_graph, self.column_graph) if graph is not None]

    def model_parameters(self) -> list[Tensor]:
        """Return the trained tensors that predictions depend on: factors and biases."""
        return [*self.factorization.weights, *(self.biases or ())]

    @property
    def laplacians(self) -> list[AdaptiveLaplacian]:
        """The graphs of rows, columns and further terms, as far as they are there."""
        return [
            *(graph.laplacian for graph in self.graphs),
            *(term.laplacian for term in self.terms if isinstance(term, TransformedEnergy)),
        ]

    def logits(self) -> list[Tensor]:
        """Return the logits of all learned graphs, rows before columns before further terms, part by part."""
        return [logits for laplacian in self.laplacians for logits in laplacian.parts]

    def parameters(self) -> list[Tensor]:
        """Return all trained tensors: factors, biases, logits."""
        return [*self.model_parameters(), *self.logits()]

    def evaluate(self, batch: int = 0) -> Terms:
        """Return the terms of F at the current parameters and write every parameter's gradient.

        With several batches both are estimates from one of them and from the same part of each graph; the mean over
        all batches is exact. Logits of other parts have no gradient.
        """
        left, right = self.factorization.factors()  # (m, r), (n, r)
        for logits in self.logits():
            logits.grad = None
        fit, energies, further, gradients = self._evaluate(left, right, batch)
        self.factorization.backward(*gradients)
        decay = self._decay()
        fit = fit / self.size
        objective = fit + decay + further
        for graph, energy in zip((self.row_graph, self.column_graph), energies, strict=True):
            objective = objective if graph is None else objective + graph.strength * energy
        return Terms(fit, *energies, decay, further, objective)

    def evaluate_all(self) -> Terms:
        """Return the terms of F at the current parameters, from all batches."""
        each = [torch.stack(self.evaluate(batch)) for batch in range(len(self.batches))]
        return Terms._make(torch.stack(each).mean(dim=0))

    def refresh_graphs(self) -> list[tuple[Tensor, Callable[[Tensor], Tensor]]]:
        """Choose the edges of all graphs anew; return (logits, carry) for the parts of those with a choice."""
        carried = []
        for laplacian, points, weighted in self._metric_rows(*self.factorization.factors()):
            carry = laplacian.refresh(points, weighted)
            if carry is not None:
                carried += [(logits, partial(carry, part=part)) for part, logits in enumerate(laplacian.parts)]
        return carried

    def sharpen_graphs(self, *, anew: bool) -> None:
        """Choose the edges of all graphs and move weight to the shorter ones, from equal weights if `anew`."""
        for laplacian, points, weighted in self._metric_rows(*self.factorization.factors()):
            laplacian.refresh(points, weighted)
            if anew:
                laplacian.restart()
            laplacian.sharpen(points, weighted)

    def predict_pairs(self, pattern: SparsePattern) -> Tensor:
        """Return the predictions at the positions of `pattern`, shape (nnz,)."""
        return pattern.sampled_product(*self._with_biases(*self.factorization.factors()))

    def state(self) -> State:
        """Return copies of everything that training changes."""
        plain = self.model_parameters()
        return [*(tensor.clone() for tensor in plain), *(laplacian.state() for laplacian in self.laplacians)]

    def load_state(self, state: State) -> None:
        """Go back to what `state` returned, or raise `ValueError` for other types and shapes, as from a file."""
        plain = self.model_parameters()
        for tensor, saved in zip(plain, state[: len(plain)], strict=True):
            if not isinstance(saved, torch.Tensor) or saved.shape != tensor.shape:
                raise ValueError(f"expected a tensor of shape {tuple(tensor.shape)}")
            tensor.copy_(saved)
        for laplacian, saved in zip(self.laplacians, state[len(plain) :], strict=True):
            if not isinstance(saved, dict):
                raise ValueError("expected the state of a graph by names")
            laplacian.load_state(saved)

    def _evaluate(self, left: Tensor, right: Tensor, batch: int) -> Evaluation:
        """Return the terms of F and dF/dU and dF/dV; write the biases' gradients."""
        raise NotImplementedError

    def _metric_rows(self, left: Tensor, right: Tensor) -> Iterator[tuple[AdaptiveLaplacian, Tensor, Tensor]]:
        """Yield every graph with the (points, weighted) of its rows."""
        raise NotImplementedError

    def _decay(self) -> Tensor:
        """Return the weight decay and add its gradients."""
        total = self.batches[0].values.new_zeros(())
        decays = [self.penalties.weight_decay] * len(self.factorization.weights) + [self.penalties.bias_decay] * 2
        for tensor, decay in zip(self.model_parameters(), decays, strict=False):
            if decay > 0:
                scale = decay / self.size
                total = total + scale * tensor.square().sum()
                assert tensor.grad is not None
                tensor.grad.add_(tensor, alpha=2 * scale)
        return total

    def _with_biases(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """Return (U, b, 1) and (V, 1, c), whose products are the predictions."""
        if self.biases is None:
            return left, right
        rows, columns = (bias[:, None] for bias in self.biases)
        left = torch.cat([left, rows, torch.ones_like(rows)], dim=1)  # (m, r + 2)
        return left, torch.cat([right, torch.ones_like(columns), columns], dim=1)  # (n, r + 2)


class FactorWidthObjective(Objective):
    """F from the factors alone: data by gather and scatter on the observed pairs, energies through Gram matrices.

    With G_V = V^T V the row energy is tr(G_V U^T L_r U); its gradients are 2 (L_r U) G_V in U and 2 V (U^T L_r U)
    in V. Columns likewise, with the roles exchanged.
    """

    def _evaluate(self, left: Tensor, right: Tensor, batch: int) -> Evaluation:
        grams = left.T @ left, right.T @ right  # (r, r) each
        fit, grad_left, grad_right = self._data_term(left, right, grams, batch)
        row_energy = _add_energy(self.row_graph, left, right, grams[1], grad_left, grad_right, batch)
        column_energy = _add_energy(self.column_graph, right, left, grams[0], grad_right, grad_left, batch)
        return Evaluation(fit, (row_energy, column_energy), fit.new_zeros(()), (grad_left, grad_right))

    def _metric_rows(self, left: Tensor, right: Tensor) -> Iterator[tuple[AdaptiveLaplacian, Tensor, Tensor]]:
        if self.row_graph is not None:
            yield self.row_graph.laplacian, left, left @ (right.T @ right)
        if self.column_graph is not None:
            yield self.column_graph.laplacian, right, right @ (left.T @ left)

    def _data_term(
        self, left: Tensor, right: Tensor, grams: tuple[Tensor, Tensor], batch: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        pattern, targets, weights = self.batches[batch]
        share, unobserved = 1 / len(self.batches), self.penalties.unobserved_weight
        rows, columns = self._with_biases(left, right)
        error = pattern.sampled_product(rows, columns, minus=targets)  # (nnz,)
        residual = error if weights is None else error * weights
        fit = torch.dot(residual, error) / share
        if unobserved > 0:
            # The sum over all pairs is tr(G_U G_V), less that over the observed ones.
            products = error + targets
            fit = fit + unobserved * (torch.sum(grams[0] * grams[1]) - torch.dot(products, products) / share)
            residual = residual.sub_(products, alpha=unobserved)
        residual = residual.mul_(2 / (self.size * share))
        grad_rows = pattern.matmul(residual, columns)
        grad_columns = pattern.transpose_matmul(residual, rows)
        if self.biases is not None:
            self.biases[0].grad, self.biases[1].grad = grad_rows[:, -2].clone(), grad_columns[:, -1].clone()
            grad_rows, grad_columns = grad_rows[:, :-2].contiguous(), grad_columns[:, :-2].contiguous()
        if unobserved > 0:
            grad_rows.addmm_(left, grams[1], alpha=2 * unobserved / self.size)
            grad_columns.addmm_(right, grams[0], alpha=2 * unobserved / self.size)
        return fit, grad_rows, grad_columns


class FullWidthObjective(Objective):
    """F with X held as a dense matrix: the paper's setting, and the faster one where the width is min(m, n)."""

    def evaluate(self, batch: int = 0) -> Terms:
        """Return the terms of F at the current parameters and write every parameter's gradient."""
        with fast_products(self.dense[0]):
            return super().evaluate(batch)

    @cached_property
    def dense(self) -> tuple[Tensor, Tensor]:
        """Return targets and weights of all entries, (m, n) each."""
        pattern, values, observed = self.batches[0]
        targets = values.new_zeros(pattern.shape)
        targets[pattern.rows, pattern.columns] = values
        weights = values.new_full(pattern.shape, self.penalties.unobserved_weight)
        weights[pattern.rows, pattern.columns] = torch.ones_like(values) if observed is None else observed
        return targets, weights

    def _evaluate(self, left: Tensor, right: Tensor, batch: int) -> Evaluation:
        completed = left @ right.T  # X, (m, n)
        targets, weights = self.dense
        residual = completed - targets
        if self.biases is not None:
            residual += self.biases[0][:, None]
            residual += self.biases[1]
        gradient = residual * weights
        fit = torch.sum(residual.mul_(gradient))
        gradient.mul_(2 / self.size)
        if self.biases is not None:
            self.biases[0].grad, self.biases[1].grad = gradient.sum(1), gradient.sum(0)
        row_energy = _add_full_energy(self.row_graph, completed, gradient)
        column_energy = _add_full_energy(self.column_graph, completed.T, gradient.T)
        further = fit.new_zeros(())
        for term in self.terms:
            further = further + term.add(completed, gradient)
        return Evaluation(fit, (row_energy, column_energy), further, (gradient @ right, gradient.T @ left))

    def _metric_rows(self, left: Tensor, right: Tensor) -> Iterator[tuple[AdaptiveLaplacian, Tensor, Tensor]]:
        completed = left @ right.T
        for graph, rows in ((self.row_graph, completed), (self.column_graph, completed.T)):
            if graph is not None:
                points = rows.contiguous()
                yield graph.laplacian, points, points
        for term in self.terms:
            if isinstance(term, TransformedEnergy):
                points = term.rows(completed).contiguous()
                yield term.laplacian, points, points


def _add_energy(
    graph: Graph | None,
    points: Tensor,
    others: Tensor,
    gram: Tensor,
    grad_points: Tensor,
    grad_others: Tensor,
    batch: int,
) -> Tensor:
    """Return tr(G P^T L P) and add its gradients in P (m, r) and in the others (n, r), G = others^T others."""
    if graph is None:
        return points.new_zeros(())
    energy, smoothed = graph.laplacian.apply(points, points @ gram, graph.strength, batch)
    grad_points.addmm_(smoothed, gram, alpha=2 * graph.strength)
    grad_others.addmm_(others, points.T @ smoothed, alpha=2 * graph.strength)
    return energy


def _add_full_energy(graph: Graph | None, rows: Tensor, gradient: Tensor) -> Tensor:
    """Return E(X; A) and add its gradient 2 eta L X, for the rows of X (m, n)."""
    if graph is None:
        return rows.new_zeros(())
    energy, smoothed = graph.laplacian.apply(rows, rows, graph.strength)
    gradient.add_(smoothed, alpha=2 * graph.strength)
    return energy
