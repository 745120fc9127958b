"""The adaptive Laplacian: a graph whose logits are trained together with the factors.

`DenseLaplacian` weighs all pairs of rows, `SparseLaplacian` each row's nearest ones, `FixedLaplacian` learns nothing
and keeps the graph that it was given. All are used alike:

* ``apply(points, weighted, strength)`` returns the energy and L @ points, and writes the logits' gradient,
* ``refresh(points, weighted)`` lets a graph choose its edges anew and returns what carries per-edge state along,
* ``adjacency()`` returns the graph as a SciPy matrix.

`points` and `weighted` are U and U G, or X and X at full width; see `air_recsys.graphs.laplacian`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn import functional

from air_recsys.graphs.adjacency import ADJACENCIES, softmin_rows
from air_recsys.graphs.candidates import nearest_rows
from air_recsys.graphs.laplacian import laplacian_product, squared_distances, squared_norms
from air_recsys.nn.pattern import SparsePattern

Carry = Callable[[Tensor], Tensor]
_SPARSE_BELOW = 0.05


class AdaptiveLaplacian(Protocol):
    """What the objective asks of a learned graph."""

    @property
    def logits(self) -> Tensor | None:
        """What is trained; None where nothing is learned."""
        ...

    def apply(self, points: Tensor, weighted: Tensor, strength: float) -> tuple[Tensor, Tensor]:
        """Return the energy and L @ points; write strength * dE/dlogits into ``logits.grad``."""
        ...

    def refresh(self, points: Tensor, weighted: Tensor) -> Carry | None:
        """Choose the edges anew; return what moves per-edge optimiser state to the new edges."""
        ...

    def adjacency(self) -> sp.csr_array:
        """Return the current graph, shape (m, m), symmetric with an empty diagonal."""
        ...

    def state(self) -> dict[str, Tensor]:
        """Return copies of the tensors that define the graph."""
        ...

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go back to a graph that `state` returned."""
        ...


class DenseLaplacian:
    """All pairs of rows, under any of the three adjacencies.

    Parameters
    ----------
    size : int
        Number of rows m.
    adjacency : str
        A key of `air_recsys.graphs.adjacency.ADJACENCIES`.
    generator : torch.Generator
        Source of the starting logits, uniform in +-1/sqrt(m).
    dtype : torch.dtype
    device : torch.device

    Attributes
    ----------
    logits : Tensor, shape (m, m)
    """

    def __init__(
        self, size: int, adjacency: str, *, generator: torch.Generator, dtype: torch.dtype, device: torch.device
    ) -> None:
        self._term = ADJACENCIES[adjacency]
        self.logits = _uniform_logits((size, size), size, generator, dtype, device)

    def apply(self, points: Tensor, weighted: Tensor, strength: float) -> tuple[Tensor, Tensor]:
        """Return the energy and L @ points (m, d); write strength * dE/dlogits into ``logits.grad``."""
        term = self._term(self.logits, squared_distances(points, weighted))
        self.logits.grad = term.gradient.mul_(strength)
        return term.energy, laplacian_product(term.adjacency, points)

    def refresh(self, points: Tensor, weighted: Tensor) -> Carry | None:
        """Keep all pairs: a dense graph has no edges to choose."""
        return None

    def adjacency(self) -> sp.csr_array:
        """Return the current graph, shape (m, m)."""
        term = self._term(self.logits, torch.zeros_like(self.logits))
        return sp.csr_array(term.adjacency.cpu().numpy())

    def state(self) -> dict[str, Tensor]:
        """Return a copy of the logits."""
        return {"logits": self.logits.clone()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go back to the logits of `state`."""
        self.logits.copy_(state["logits"])


class SparseLaplacian:
    """The self-edge and the k nearest rows of every row, under the row softmin over those edges only.

    `refresh` replaces the neighbours by the rows that are nearest now. An edge that survives keeps its logit; a new
    one enters at its row's largest logit, which is the least weight, and has to earn its place.

    Parameters
    ----------
    size : int
        Number of rows m.
    n_neighbors : int
        k, 1 <= k <= m - 1. With k = m - 1 and equal logits this is `DenseLaplacian` with ``row_softmin``.
    generator, dtype, device
        As in `DenseLaplacian`.

    Attributes
    ----------
    neighbors : Tensor of int64, shape (m, k + 1)
        Column 0 is the row itself, the others ascend.
    logits : Tensor, shape (m, k + 1)
    """

    def __init__(
        self, size: int, n_neighbors: int, *, generator: torch.Generator, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.logits = _uniform_logits((size, n_neighbors + 1), size, generator, dtype, device)
        ring = torch.arange(size, device=device)[:, None] + torch.arange(1, n_neighbors + 1, device=device)
        self._set_neighbors(ring.remainder(size).sort(dim=1).values)

    def apply(self, points: Tensor, weighted: Tensor, strength: float) -> tuple[Tensor, Tensor]:
        """Return the energy and L @ points (m, d); write strength * dE/dlogits into ``logits.grad``."""
        weights, row_energy, gradient = softmin_rows(self.logits, self._edge_distances(points, weighted))
        self.logits.grad = gradient.mul_(strength)
        values = self._edge_weights(weights)  # P / 2 without the self-edges
        pattern = self._pattern
        degree = pattern.row_sum(values).add_(pattern.column_sum(values))  # (m,)
        smoothed = degree[:, None] * points
        smoothed -= pattern.matmul(values, points)
        smoothed -= pattern.transpose_matmul(values, points)
        return row_energy.sum() / 2, smoothed

    def refresh(self, points: Tensor, weighted: Tensor) -> Carry:
        """Take the k nearest rows as neighbours; return what moves per-edge state (m, k + 1) along, 0 for new."""
        old, n_neighbors = self.neighbors, self.neighbors.shape[1] - 1
        self._set_neighbors(nearest_rows(points, weighted, n_neighbors))
        source, survives = _positions(old, self.neighbors)

        def carry(state: Tensor) -> Tensor:
            return state.gather(1, source).mul_(survives)

        entry = self.logits.max(dim=1, keepdim=True).values  # (m, 1)
        self.logits.copy_(torch.where(survives, self.logits.gather(1, source), entry))
        return carry

    def adjacency(self) -> sp.csr_array:
        """Return the current graph, shape (m, m); edges that no row chose are absent."""
        values = self._edge_weights(torch.softmax(-self.logits, dim=1)).cpu().numpy()
        starts, columns = self._pattern.row_starts.cpu().numpy(), self._pattern.columns.cpu().numpy()
        half = sp.csr_array((values, columns, starts), shape=self._pattern.shape)
        return sp.csr_array(half + half.T)

    def state(self) -> dict[str, Tensor]:
        """Return copies of neighbours and logits."""
        return {"logits": self.logits.clone(), "neighbors": self.neighbors.clone()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go back to the neighbours and logits of `state`."""
        self._set_neighbors(state["neighbors"][:, 1:])
        self.logits.copy_(state["logits"])

    def _set_neighbors(self, others: Tensor) -> None:
        m, k = others.shape
        itself = torch.arange(m, device=others.device)[:, None]
        self.neighbors = torch.cat([itself, others], dim=1)
        self._pattern = SparsePattern(torch.arange(0, m * k + 1, k, device=others.device), others.flatten(), m)

    def _edge_distances(self, points: Tensor, weighted: Tensor) -> Tensor:
        m, k = self.neighbors.shape[0], self.neighbors.shape[1] - 1
        norms = squared_norms(points, weighted)  # (m,)
        products = self._pattern.sampled_product(points, weighted).view(m, k)
        distances = (norms[:, None] + norms[self.neighbors[:, 1:]]).sub_(products, alpha=2).clamp_(min=0)
        return functional.pad(distances, (1, 0))  # the self-edge has distance 0

    def _edge_weights(self, weights: Tensor) -> Tensor:
        return weights[:, 1:].mul(0.5).flatten()


class FixedLaplacian:
    """A graph that is given and stays: the Dirichlet energy of DMF + DE.

    Parameters
    ----------
    adjacency : sparse array, shape (m, m)
        Symmetric with an empty diagonal.
    dtype : torch.dtype
    device : torch.device
    """

    logits = None

    def __init__(self, adjacency: sp.csr_array, *, dtype: torch.dtype, device: torch.device) -> None:
        self._given = adjacency
        dense = torch.as_tensor(adjacency.toarray(), dtype=dtype, device=device)
        # A product with a sparse matrix pays off where few entries are stored.
        self._weights = dense.to_sparse_csr() if adjacency.nnz < _SPARSE_BELOW * dense.numel() else dense
        self._degree = dense.sum(dim=1, keepdim=True)  # (m, 1)

    def apply(self, points: Tensor, weighted: Tensor, strength: float) -> tuple[Tensor, Tensor]:
        """Return the energy and L @ points (m, d)."""
        smoothed = self._degree * points - self._weights @ points
        return torch.sum(weighted * smoothed).clamp(min=0), smoothed

    def refresh(self, points: Tensor, weighted: Tensor) -> Carry | None:
        """Keep the graph."""
        return None

    def adjacency(self) -> sp.csr_array:
        """Return the graph as given."""
        return self._given

    def state(self) -> dict[str, Tensor]:
        """Return nothing: nothing changes."""
        return {}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Do nothing: nothing has changed."""


def _uniform_logits(
    shape: tuple[int, int], size: int, generator: torch.Generator, dtype: torch.dtype, device: torch.device
) -> Tensor:
    bound = 1 / math.sqrt(size)
    return torch.empty(shape, dtype=dtype).uniform_(-bound, bound, generator=generator).to(device)


def _positions(old: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    """Find each entry of `new` in the same row of `old`; column 0 (the row itself) stays where it is."""
    found = torch.searchsorted(old[:, 1:].contiguous(), new[:, 1:].contiguous())  # (m, k)
    found = functional.pad(found.clamp_(max=old.shape[1] - 2).add_(1), (1, 0))
    return found, old.gather(1, found) == new
