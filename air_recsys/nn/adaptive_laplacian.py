"""The adaptive Laplacian: a graph whose logits are trained together with the factors.

`DenseLaplacian` weighs all pairs of rows, `SparseLaplacian` each row's nearest ones, `FixedLaplacian` learns nothing
and keeps the graph that it was given, `JoinedLaplacian` is one beside a learned one. All have the methods of
`AdaptiveLaplacian`.

`points` and `weighted` are U and U G, or X and X at full width, shape (m, d); see `air_recsys.graphs.laplacian`. A
sparse graph can be cut into parts, ranges of rows of P; one part alone then stands for the whole energy, times the
number of parts.
"""

from __future__ import annotations

import itertools
import math
from typing import Protocol

import scipy.sparse as sp

from air_recsys.graphs.candidates import search_for
from air_recsys.graphs.laplacian import (
    ADJACENCIES,
    laplacian_product,
    softmin_rows,
    squared_distances,
    squared_norms,
)
from air_recsys.nn.pattern import Carry, edge_patterns, enter_edges, symmetric_graph, without_warning
from air_recsys.storage.lazy import Tensor, functional, torch

_SPARSE_BELOW = 0.05


class AdaptiveLaplacian(Protocol):
    """The methods of a graph in the objective, of which a graph that nothing changes inherits the last three.

    Attributes
    ----------
    parts : list of Tensor
        The logits, in the parts that are trained in turn; empty where nothing is learned.
    every : int
        The applications from one at which the logits are due to the next.
    """

    parts: list[Tensor]
    every: int = 1

    def apply(self, points: Tensor, weighted: Tensor, strength: float, part: int = 0) -> tuple[Tensor, Tensor]:
        """Return the energy and L @ points; write strength * dE/dlogits into the ``grad`` of the part's logits."""
        ...

    def adjacency(self) -> sp.csr_array:
        """Return the current graph, shape (m, m), symmetric with an empty diagonal."""
        ...

    def refresh(self, points: Tensor, weighted: Tensor) -> Carry | None:
        """Choose the edges anew; return what moves per-edge optimiser state to the new edges, if there is a choice."""
        return None

    def restart(self) -> None:
        """Give the few edges of a row the same weight."""

    def sharpen(self, points: Tensor, weighted: Tensor) -> None:
        """Move weight to the edges that are shorter than their row's weighted mean, see `sharpen_rows`."""

    def fixed(self) -> FixedLaplacian:
        """Return the present graph as one that stays."""
        logits = self.parts[0]
        return FixedLaplacian(self.adjacency(), dtype=logits.dtype, device=logits.device)

    def state(self) -> dict[str, Tensor]:
        """Return copies of the tensors that define the graph."""
        return {}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go back to a graph that `state` returned."""


_SHARPENING, _EQUAL = 0.2, 3e-3


def sharpen_rows(logits: Tensor, distances: Tensor, points: Tensor, weighted: Tensor) -> None:
    r"""Move the logits W of rows, in place, by a step that does not depend on the unit of the distances D.

    .. math:: W_{ij} \leftarrow W_{ij} - 0.2\, (e_i - D_{ij}) / (e_i + D_{ij} + 0.003\, \bar D), \qquad
        e_i = \sum_j P_{ij} D_{ij}

    These are the signs of AIR's gradient. With the mean distance of all pairs in the denominator, edges between rows
    that are equal but for rounding stay equal: else they would part, and groups with them.
    """
    mean = squared_norms(points, weighted).mean() - torch.dot(points.mean(0), weighted.mean(0))  # half of mean D
    short = (torch.softmax(-logits, dim=1) * distances).sum(dim=1, keepdim=True)  # e, (m, 1)
    floor = (2 * _EQUAL * mean).clamp(min=torch.finfo(logits.dtype).tiny)
    logits.sub_((short - distances).div_(distances + (short + floor)), alpha=_SHARPENING)


class DenseLaplacian(AdaptiveLaplacian):
    """All pairs of rows, under any of the three adjacencies.

    Parameters
    ----------
    size : int
        Number of rows m.
    adjacency : str
        A key of `air_recsys.graphs.laplacian.ADJACENCIES`.
    generator : torch.Generator
        Source of the starting logits, uniform in +-1/sqrt(m).
    dtype, device
    every : int
        The logits have a gradient at the first application and then at every `every`-th; in between the graph stays as
        it is, which saves its distances and its softmax.

    Attributes
    ----------
    logits : Tensor, shape (m, m)
    """

    def __init__(
        self,
        size: int,
        adjacency: str,
        *,
        generator: torch.Generator,
        dtype: torch.dtype,
        device: torch.device,
        every: int = 1,
    ) -> None:
        self._term = ADJACENCIES[adjacency]
        self.logits = _uniform_logits((size, size), size, generator, dtype, device)
        self.parts = [self.logits]
        self.every, self._applied = every, 0
        self._kept: Tensor | None = None  # the adjacency, until the logits are due again

    def apply(self, points: Tensor, weighted: Tensor, strength: float, part: int = 0) -> tuple[Tensor, Tensor]:
        """Return the energy and L @ points; write strength * dE/dlogits, if due, into ``logits.grad``."""
        self._applied += 1
        if self._kept is not None and self._applied % self.every != 1:
            self.logits.grad = None
            smoothed = laplacian_product(self._kept, points)
            return torch.sum(weighted * smoothed).clamp(min=0), smoothed
        term = self._term(self.logits, squared_distances(points, weighted))
        self.logits.grad = term.gradient.mul_(strength)
        self._kept = term.adjacency if self.every > 1 else None
        return term.energy, laplacian_product(term.adjacency, points)

    def adjacency(self) -> sp.csr_array:
        """Return the current graph, shape (m, m)."""
        return sp.csr_array(self._term(self.logits, torch.zeros_like(self.logits)).adjacency.cpu().numpy())

    def sharpen(self, points: Tensor, weighted: Tensor) -> None:
        """Move weight to the edges that are shorter than their row's weighted mean."""
        sharpen_rows(self.logits, squared_distances(points, weighted), points, weighted)

    def state(self) -> dict[str, Tensor]:
        """Return a copy of the logits, and of the graph that stays until they are due again."""
        kept = {} if self._kept is None else {"kept": self._kept, "applied": torch.tensor(self._applied)}
        return {"logits": self.logits.clone(), **kept}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go back to what `state` returned."""
        self.logits.copy_(state["logits"])
        kept, self._applied = state.get("kept"), int(state.get("applied", 0))
        self._kept = None if kept is None else kept.to(self.logits.device)


class SparseLaplacian(AdaptiveLaplacian):
    """The self-edge and the k nearest rows of every row, under the row softmin over those edges only.

    `refresh` replaces the neighbours by the rows that are nearest now (beyond 20,000 rows: by near ones, see
    `air_recsys.graphs.candidates`). An edge that survives keeps its logit; a new one enters at its row's
    largest logit, which is the least weight.

    Parameters
    ----------
    size, generator, dtype, device
        As in `DenseLaplacian`.
    n_neighbors : int
        k, 1 <= k <= m - 1. With k = m - 1 and equal logits this is `DenseLaplacian` with ``row_softmin``.
    n_parts : int
        Ranges of rows that are used one at a time.

    Attributes
    ----------
    neighbors : Tensor of int64, shape (m, k + 1)
        Column 0 is the row itself, the others ascend.
    logits : Tensor, shape (m, k + 1)
    parts : list of Tensor
        Views of the ranges of `logits`.
    """

    def __init__(
        self,
        size: int,
        n_neighbors: int,
        *,
        generator: torch.Generator,
        dtype: torch.dtype,
        device: torch.device,
        n_parts: int = 1,
    ) -> None:
        self.logits = _uniform_logits((size, n_neighbors + 1), size, generator, dtype, device)
        self.parts = [self.logits] if n_parts == 1 else list(self.logits.tensor_split(n_parts))
        ends = itertools.accumulate(map(len, self.parts), initial=0)
        self._rows = [slice(*pair) for pair in itertools.pairwise(ends)]
        ring = torch.arange(size, device=device)[:, None] + torch.arange(1, n_neighbors + 1, device=device)
        self._set_neighbors(ring.remainder(size).sort(dim=1).values)

    def apply(self, points: Tensor, weighted: Tensor, strength: float, part: int = 0) -> tuple[Tensor, Tensor]:
        """Return the energy and L @ points from the rows of a part, times the number of parts; write its gradient."""
        rows, pattern = self._rows[part], self._patterns[part]
        weights, energies, gradient = softmin_rows(self.parts[part], self._edge_distances(points, weighted, part))
        self.parts[part].grad = gradient.mul_(strength)
        energy = energies.sum() * (len(self.parts) / 2)
        values = weights[:, 1:].mul(len(self.parts) / 2).flatten()  # P / 2 without the self-edges
        with_one = functional.pad(points, (0, 1), value=1.0)  # (m, d + 1): the last column sums degrees
        smoothed = pattern.transpose_matmul(values, with_one[rows])
        smoothed[rows] += pattern.matmul(values, with_one)
        return energy, torch.addcmul(-smoothed[:, :-1], points, smoothed[:, -1:])

    def refresh(self, points: Tensor, weighted: Tensor) -> Carry:
        """Set the neighbours to the k nearest rows; return what moves per-edge state (m, k + 1), 0 for new edges."""
        old = self.neighbors
        self._set_neighbors(search_for(len(points))(points, weighted, old.shape[1] - 1))
        return enter_edges(self.logits, old, self.neighbors, self._rows)

    def restart(self) -> None:
        """Give the edges of a row the same weight."""
        self.logits.zero_()

    def sharpen(self, points: Tensor, weighted: Tensor) -> None:
        """Move weight to the edges that are shorter than their row's weighted mean; of a graph in one part."""
        sharpen_rows(self.logits, self._edge_distances(points, weighted, 0), points, weighted)

    def adjacency(self) -> sp.csr_array:
        """Return the current graph, shape (m, m); edges that no row chose are absent."""
        return symmetric_graph(torch.softmax(-self.logits, dim=1)[:, 1:] / 2, self.neighbors[:, 1:])

    def state(self) -> dict[str, Tensor]:
        """Return copies of neighbours and logits."""
        return {"logits": self.logits.clone(), "neighbors": self.neighbors.clone()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go back to the neighbours and logits of `state`."""
        neighbors = state["neighbors"]
        if neighbors.shape != self.neighbors.shape or not ((neighbors >= 0) & (neighbors < len(neighbors))).all():
            raise ValueError(f"expected the neighbours of {len(self.logits)} rows, found others")
        self._set_neighbors(neighbors[:, 1:].to(self.neighbors))
        self.logits.copy_(state["logits"])

    def _set_neighbors(self, others: Tensor) -> None:
        m = len(others)
        itself = torch.arange(m, device=others.device)[:, None]
        self.neighbors = torch.cat([itself, others], dim=1)
        self._patterns = edge_patterns(others, self._rows, m)

    def _edge_distances(self, points: Tensor, weighted: Tensor, part: int) -> Tensor:
        rows, pattern = self._rows[part], self._patterns[part]
        norms = squared_norms(points, weighted)  # (m,)
        products = pattern.sampled_product(points[rows], weighted)  # (edges,)
        distances = norms.index_select(0, pattern.columns).sub_(products, alpha=2).view(pattern.shape[0], -1)
        distances.add_(norms[rows, None]).clamp_(min=0)
        return functional.pad(distances, (1, 0))  # the self-edge has distance 0


class FixedLaplacian(AdaptiveLaplacian):
    """A graph that is given and stays, `adjacency` (m, m), symmetric with an empty diagonal: that of DMF + DE."""

    def __init__(self, adjacency: sp.csr_array, *, dtype: torch.dtype, device: torch.device) -> None:
        self._given = adjacency
        self.parts: list[Tensor] = []
        size = len(adjacency.indptr) - 1
        # A product with a sparse matrix is faster where few entries are stored.
        if adjacency.nnz < _SPARSE_BELOW * size**2:
            without_warning()
            ordered = adjacency.sorted_indices()
            entries = map(torch.from_numpy, (ordered.indptr, ordered.indices, ordered.data))
            self._weights = torch.sparse_csr_tensor(*entries, size=(size, size), dtype=dtype, device=device)
        else:
            self._weights = torch.as_tensor(adjacency.toarray(), dtype=dtype, device=device)
        ones = torch.ones(size, 1, dtype=dtype, device=device)
        self.degree = self._weights @ ones if self._weights.is_sparse_csr else self._weights.sum(1, keepdim=True)

    def product(self, points: Tensor) -> Tensor:
        """Return L @ points."""
        return self.degree * points - self._weights @ points

    def apply(self, points: Tensor, weighted: Tensor, strength: float, part: int = 0) -> tuple[Tensor, Tensor]:
        """Return the energy and L @ points."""
        smoothed = self.product(points)
        return torch.sum(weighted * smoothed).clamp(min=0), smoothed

    def fixed(self) -> FixedLaplacian:
        """Return the graph itself."""
        return self

    def adjacency(self) -> sp.csr_array:
        """Return the graph as given."""
        return self._given


class JoinedLaplacian(AdaptiveLaplacian):
    """The sum of a learned graph and, times `share`, a given one, of which the first alone is trained and shown."""

    def __init__(self, learned: AdaptiveLaplacian, given: FixedLaplacian, share: float) -> None:
        self._learned, self._given, self._share = learned, given, share
        self.parts = learned.parts
        self.adjacency, self.refresh = learned.adjacency, learned.refresh
        self.state, self.load_state = learned.state, learned.load_state
        self.restart, self.sharpen, self.every = learned.restart, learned.sharpen, learned.every

    def fixed(self) -> FixedLaplacian:
        """Return the sum of both as a graph that stays."""
        both, logits = self._learned.adjacency() + self._share * self._given.adjacency(), self.parts[0]
        return FixedLaplacian(sp.csr_array(both), dtype=logits.dtype, device=logits.device)

    def apply(self, points: Tensor, weighted: Tensor, strength: float, part: int = 0) -> tuple[Tensor, Tensor]:
        """Return the energy and L @ points of both; write the gradient of the part's logits."""
        energy, smoothed = self._learned.apply(points, weighted, strength, part)
        of_given, smoothed_by_given = self._given.apply(points, weighted, strength)
        return energy + self._share * of_given, smoothed.add(smoothed_by_given, alpha=self._share)


def _uniform_logits(
    shape: tuple[int, int], size: int, generator: torch.Generator, dtype: torch.dtype, device: torch.device
) -> Tensor:
    bound = 1 / math.sqrt(size)
    return torch.empty(shape, dtype=dtype).uniform_(-bound, bound, generator=generator).to(device)
