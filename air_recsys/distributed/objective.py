"""The objective of AIR at factor width, its rows and columns shared out over ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from air_recsys.distributed.group import Cut, Group
from air_recsys.distributed.laplacian import ShardedLaplacian
from air_recsys.nn.adaptive_laplacian import AdaptiveLaplacian
from air_recsys.nn.factorization import DeepFactorization
from air_recsys.nn.objective import Evaluation, FactorWidthObjective, Graph, Objective, Observations, Penalties
from air_recsys.storage.lazy import Tensor


class GivenFactorization(DeepFactorization):
    """A deep factorization of given factors W0, W1 ... W(L-2), W(L-1)^T."""

    def __init__(self, weights: list[Tensor]) -> None:
        self.weights = weights


class ShardedFactorization(GivenFactorization):
    """The own rows of the first and of the last factor; those between are the same on all ranks.

    The shapes of `weights` are (n_own_rows, width), (width, width) ..., (n_own_columns, width).
    """

    def __init__(self, group: Group, weights: list[Tensor]) -> None:
        super().__init__(weights)
        self._group = group

    def backward(self, grad_left: Tensor, grad_right: Tensor) -> None:
        """Write the gradient of every factor, given those of the own rows of U and V."""
        super().backward(grad_left, grad_right)
        shared = self.weights[1:-1]
        if shared:
            gradients = self._group.sum(*(weight.grad for weight in shared if weight.grad is not None))
            for weight, gradient in zip(shared, gradients, strict=True):
                weight.grad = gradient


class ShardedObjective(Objective):
    """The sums of `FactorWidthObjective`, with the ratings, factors, biases and graphs of the own rows.

    A rank holds the ratings of its own rows. V is gathered, and U too where the rows have a graph; the gradients of
    columns that a rank does not own are summed at their owners. Terms are those of all ranks, on every rank.

    Parameters
    ----------
    group : Group
    cuts : tuple of Cut
        Of the m rows and of the n columns.
    batches : sequence of Observations
        Of the own rows and all n columns.
    factorization, row_graph, column_graph, biases, penalties
        As in `air_recsys.nn.objective.Objective`, of the own rows and columns.
    """

    def __init__(
        self,
        group: Group,
        cuts: tuple[Cut, Cut],
        batches: Sequence[Observations],
        factorization: ShardedFactorization,
        row_graph: Graph | None,
        column_graph: Graph | None,
        biases: tuple[Tensor, Tensor] | None,
        penalties: Penalties,
    ) -> None:
        super().__init__(batches, factorization, row_graph, column_graph, biases, penalties)
        self.group, self.cuts = group, cuts
        self.size = cuts[0].n_rows * cuts[1].n_rows  # m n of all ranks

    def whole(self) -> Objective:
        """An objective with the factors and biases of all ranks, on every one of them."""
        rows, columns = self.cuts
        left, right = self.factorization.factors()
        factors = [self.group.gather(left, rows), self.group.gather(right, columns)]
        biases = None
        if self.biases is not None:
            biases = self.group.gather(self.biases[0], rows), self.group.gather(self.biases[1], columns)
        return Objective(self.batches, GivenFactorization(factors), self.row_graph, self.column_graph, biases)

    def named_parameters(self) -> dict[str, tuple[Tensor, Cut | None]]:
        """Factors and biases by name, with the cut of their rows; None where every rank has all."""
        first, *between, last = self.factorization.weights
        rows, columns = self.cuts
        named: dict[str, tuple[Tensor, Cut | None]] = {"first_factor": (first, rows), "last_factor": (last, columns)}
        named |= {f"factor_{level}": (weight, None) for level, weight in enumerate(between, 1)}
        if self.biases is not None:
            named |= {"row_biases": (self.biases[0], rows), "column_biases": (self.biases[1], columns)}
        return named

    def sharded_graphs(self) -> Iterator[tuple[str, ShardedLaplacian, Cut]]:
        """Each graph with its name and its cut."""
        for name, graph, cut in zip(("row", "column"), (self.row_graph, self.column_graph), self.cuts, strict=True):
            if graph is not None:
                assert isinstance(graph.laplacian, ShardedLaplacian)
                yield name, graph.laplacian, cut

    def _evaluate(self, left: Tensor, right: Tensor, batch: int) -> Evaluation:
        everyone = self._everyone(left, right)
        fit, *gradients = self._data_term(left, everyone[1], batch)
        own, grams = (left, right), self._grams(left, right)
        shares = [
            self._add_energy(graph, own[side], everyone[side], grams[1 - side], gradients[side], batch)
            for side, graph in enumerate((self.row_graph, self.column_graph))
        ]
        energies, inner = zip(*shares, strict=True)
        fit, row_energy, column_energy, *inner = self.group.sum(fit, *energies, *inner)
        for side, graph in enumerate((self.row_graph, self.column_graph)):
            if graph is not None:
                gradients[1 - side].addmm_(own[1 - side], inner[side], alpha=2 * graph.strength)
        return Evaluation(fit, (row_energy, column_energy), fit.new_zeros(()), (gradients[0], gradients[1]))

    def _metric_rows(self, left: Tensor, right: Tensor) -> Iterator[tuple[AdaptiveLaplacian, Tensor, Tensor]]:
        everyone, grams = self._everyone(left, right), self._grams(left, right)
        if self.row_graph is not None:
            yield self.row_graph.laplacian, everyone[0], left @ grams[1]
        if self.column_graph is not None:
            yield self.column_graph.laplacian, everyone[1], right @ grams[0]

    def _everyone(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """U and V of all ranks; the own U where the rows have no graph, which alone needs the others."""
        gathered = left if self.row_graph is None else self.group.gather(left, self.cuts[0])
        return gathered, self.group.gather(right, self.cuts[1])

    def _grams(self, left: Tensor, right: Tensor) -> Sequence[Tensor]:
        """U^T U and V^T V where there are graphs."""
        if not self.graphs:
            return left.new_zeros(0), right.new_zeros(0)
        return self.group.sum(left.T @ left, right.T @ right)

    def _data_term(self, left: Tensor, right: Tensor, batch: int) -> tuple[Tensor, Tensor, Tensor]:
        """The own rows' share of the error, and its gradients in the own rows and columns.

        `right` is V of all ranks. The gradients of the biases are written.
        """
        biases, columns = self.biases, self.cuts[1]
        if biases is not None:
            biases = biases[0], self.group.gather(biases[1], columns)
        seen = Penalties(unobserved_weight=self.penalties.unobserved_weight)
        term = FactorWidthObjective(self.batches, GivenFactorization([left, right]), biases=biases, penalties=seen)
        term.size = self.size
        fit = term.evaluate(batch).fit * self.size
        if biases is not None and self.biases is not None:
            self.biases[1].grad = self.group.scatter_sum(_gradient(biases[1]), columns)
        return fit, _gradient(left), self.group.scatter_sum(_gradient(right), columns)

    def _add_energy(
        self, graph: Graph | None, own: Tensor, everyone: Tensor, gram: Tensor, gradient: Tensor, batch: int
    ) -> tuple[Tensor, Tensor]:
        """The own rows' share of E(X; A) and of P^T L P; adds the gradient in the own rows of P."""
        if graph is None:
            return own.new_zeros(()), own.new_zeros(0)
        energy, smoothed = graph.laplacian.apply(everyone, own @ gram, graph.strength, batch)
        gradient.addmm_(smoothed, gram, alpha=2 * graph.strength)
        return energy, own.T @ smoothed

    def _decay(self) -> Tensor:
        total, shared = super()._decay(), self.factorization.weights[1:-1]
        repeated = sum((weight.square().sum() for weight in shared), total.new_zeros(()))
        repeated = repeated * (self.penalties.weight_decay / self.size)  # of the factors that every rank has
        return self.group.sum(total - repeated)[0] + repeated


def _gradient(tensor: Tensor) -> Tensor:
    assert tensor.grad is not None
    return tensor.grad
