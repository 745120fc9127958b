"""A sparse learned graph whose rows are shared out.

The energy is separable by rows of P, E = 1/2 sum_ij P_ij D_ij, so a rank weighs the edges of its own rows. It needs
the points of the other ranks at the ends of these edges, and sends them its terms of their rows of L @ points.

All ranks draw all numbers of a random start, a block at a time, from one seed: the start depends on neither the number
of ranks nor the cut, and no rank holds more than its own rows and a block.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import scipy.sparse as sp

from air_recsys.distributed.group import Cut, Group
from air_recsys.exceptions import CheckpointError
from air_recsys.graphs.candidates import nearest_among
from air_recsys.graphs.laplacian import softmin_rows, squared_norms
from air_recsys.nn.adaptive_laplacian import AdaptiveLaplacian
from air_recsys.nn.pattern import Carry, edge_patterns, enter_edges, symmetric_graph
from air_recsys.storage.lazy import Tensor, functional, torch

_BLOCK_ROWS = 1 << 16  # torch draws normal numbers 16 at a time, so blocks of 16 rows draw what one call would


class ShardedLaplacian(AdaptiveLaplacian):
    """The own rows of a `SparseLaplacian`, at the same start and with the same equations.

    Parameters
    ----------
    group : Group
    cut : Cut
        Of the m rows.
    n_neighbors, dtype
        As in `SparseLaplacian`.
    generator : torch.Generator
        In the same state on all ranks.
    n_parts : int
        Ranges of the m rows that are used one at a time, as in one process: a rank may own no row of some.

    Attributes
    ----------
    neighbors, logits : Tensor, shape (n_own, k + 1)
        The own rows of those of `SparseLaplacian`.
    rows : list of slice
        The own rows of each part.
    parts : list of Tensor
        Views of the own logits of each part.
    """

    def __init__(
        self,
        group: Group,
        cut: Cut,
        n_neighbors: int,
        *,
        generator: torch.Generator,
        dtype: torch.dtype,
        n_parts: int,
    ) -> None:
        self._group, self._cut, self._own = group, cut, cut.of(group.rank)
        drawn = uniform_rows(cut.n_rows, n_neighbors + 1, self._own, generator=generator, dtype=dtype)
        self.logits = drawn.to(group.device)
        self.rows = Cut.even(cut.n_rows, n_parts).within(self._own)
        self.parts = [self.logits[rows] for rows in self.rows]
        ring = self._itself() + torch.arange(1, n_neighbors + 1, device=group.device)
        self._set_neighbors(ring.remainder(cut.n_rows).sort(dim=1).values)

    def apply(self, points: Tensor, weighted: Tensor, strength: float, part: int = 0) -> tuple[Tensor, Tensor]:
        """The own share of the energy, and the own rows (n_own, d) of L @ points; writes strength * dE/dlogits.

        Both come from the rows of one part alone, times the number of parts. `points` are U of all rows, (m, d), and
        `weighted` U G of the own rows, (n_own, d).
        """
        norms = self._norms(points, weighted)
        with_one = functional.pad(points, (0, 1), value=1.0)  # (m, d + 1): the last column sums degrees
        if len(self.parts[part]):
            distances = self._edge_distances(points, norms, weighted, part)
            energy, partial = self._weigh(distances, with_one, strength, part)
        else:
            self.parts[part].grad = torch.zeros_like(self.parts[part])
            energy, partial = points.new_zeros(()), torch.zeros_like(with_one)
        total = self._group.scatter_sum(partial, self._cut)  # (n_own, d + 1)
        return energy, torch.addcmul(-total[:, :-1], points[self._own], total[:, -1:])

    def _weigh(self, distances: Tensor, with_one: Tensor, strength: float, part: int) -> tuple[Tensor, Tensor]:
        """The energy of the own edges of a part, and their terms of A @ (points, 1), shape (m, d + 1)."""
        rows, pattern, logits = self.rows[part], self._patterns[part], self.parts[part]
        weights, row_energy, gradient = softmin_rows(logits, distances)
        logits.grad = gradient.mul_(strength)
        values = weights[:, 1:].mul(len(self.parts) / 2).flatten()  # P / 2 without the self-edges
        of_all = slice(self._own.start + rows.start, self._own.start + rows.stop)
        partial = pattern.transpose_matmul(values, with_one[of_all])
        partial[of_all] += pattern.matmul(values, with_one)
        return row_energy.sum() * (len(self.parts) / 2), partial

    def refresh(self, points: Tensor, weighted: Tensor) -> Carry:
        """Set the neighbours to the k nearest of all rows; return what moves per-edge state, 0 for new edges."""
        old, norms = self.neighbors, self._norms(points, weighted)
        self._set_neighbors(nearest_among(weighted, points, norms, self._own.start, old.shape[1] - 1))
        return enter_edges(self.logits, old, self.neighbors, self.rows)

    def adjacency(self) -> sp.csr_array:
        """The graph of all ranks, shape (m, m), on every one of them."""
        own = torch.softmax(-self.logits, dim=1)[:, 1:] / 2, self.neighbors[:, 1:]
        return symmetric_graph(*(self._group.gather(tensor, self._cut) for tensor in own))

    def state(self) -> dict[str, Tensor]:
        """Copies of the own neighbours and logits."""
        return {"logits": self.logits.clone(), "neighbors": self.neighbors.clone()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go back to the neighbours and logits of `state`; raise `CheckpointError` for neighbours that are no rows."""
        neighbors = state["neighbors"]
        if neighbors.numel() and not 0 <= int(neighbors.min()) <= int(neighbors.max()) < self._cut.n_rows:
            raise CheckpointError(f"expected neighbours in 0..{self._cut.n_rows - 1}, found others in the checkpoint")
        self._set_neighbors(state["neighbors"][:, 1:])
        self.logits.copy_(state["logits"])

    def _itself(self) -> Tensor:
        return torch.arange(self._own.start, self._own.stop, device=self._group.device)[:, None]

    def _set_neighbors(self, others: Tensor) -> None:
        self.neighbors = torch.cat([self._itself(), others], dim=1)
        self._patterns = edge_patterns(others, self.rows, self._cut.n_rows)

    def _norms(self, points: Tensor, weighted: Tensor) -> Tensor:
        return self._group.gather(squared_norms(points[self._own], weighted), self._cut)  # (m,)

    def _edge_distances(self, points: Tensor, norms: Tensor, weighted: Tensor, part: int) -> Tensor:
        rows, pattern = self.rows[part], self._patterns[part]
        products = pattern.sampled_product(weighted[rows], points)  # (edges,)
        distances = norms.index_select(0, pattern.columns).sub_(products, alpha=2).view(pattern.shape[0], -1)
        distances.add_(norms[self._own][rows, None]).clamp_(min=0)
        return functional.pad(distances, (1, 0))  # the self-edge has distance 0


def normal_rows(
    n_rows: int, width: int, rows: slice, *, mean: float, std: float, generator: torch.Generator, dtype: torch.dtype
) -> Tensor:
    """`rows` of an array (n_rows, width) of draws from N(mean, std^2)."""
    return _rows(n_rows, width, rows, dtype, lambda block: block.normal_(mean, std, generator=generator))


def uniform_rows(n_rows: int, width: int, rows: slice, *, generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    """`rows` of an array (n_rows, width) of draws from +-1/sqrt(n_rows): the start of logits."""
    bound = 1 / math.sqrt(n_rows)
    return _rows(n_rows, width, rows, dtype, lambda block: block.uniform_(-bound, bound, generator=generator))


def _rows(n_rows: int, width: int, rows: slice, dtype: torch.dtype, fill: Callable[[Tensor], Tensor]) -> Tensor:
    own = torch.empty(rows.stop - rows.start, width, dtype=dtype)
    n_blocks = max(1, n_rows // _BLOCK_ROWS)
    for number in range(n_blocks):
        start = number * _BLOCK_ROWS
        stop = n_rows if number == n_blocks - 1 else start + _BLOCK_ROWS
        block = fill(torch.empty(stop - start, width, dtype=dtype))
        first, last = max(start, rows.start), min(stop, rows.stop)
        if first < last:
            own[first - rows.start : last - rows.start] = block[first - start : last - start]
    return own
