r"""A sparse learned graph that still feels all rows: what is not a neighbour is in one bucket with one logit.

Row i weighs itself, its k nearest rows N_i, and *all c = m - 1 - k other rows together*, by one softmin over k + 2
logits. The bucket's weight is spread evenly, :math:`q_i = P_{i,rest} / c` a row, and its distance is the mean over its
rows, which needs no list of them:

.. math:: D_{i,rest} = \tfrac1c\big(m |x_i|^2 + \sum_j |x_j|^2 - 2 x_i^\top \sum_j x_j - \sum_{j \in N_i} D_{ij}\big).

With P = V + q 1^T off the diagonal, V_ij = P_ij - q_i on the edges only, the Laplacian of (P + P^T)/2 is that of
(V + V^T)/2 plus a part of rank two:

.. math:: L X = L_V X + \tfrac12\big(m q * X + (1^\top q) X - q\, 1^\top X - 1\, q^\top X\big).

It costs what `SparseLaplacian` costs plus a few sums over rows. It stands here and not in `air_recsys.nn` because it
was measured and is on no data the best form: docs/sparse-graphs.md.
"""

from __future__ import annotations

import itertools
import math

import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn import functional

from air_recsys.graphs.adjacency import softmin_rows
from air_recsys.graphs.candidates import nearest_rows
from air_recsys.graphs.laplacian import squared_norms
from air_recsys.nn.edges import Carry, edge_patterns, positions, symmetric_graph


class RestBucketLaplacian:
    """The self-edge, the k nearest rows, and one bucket for all other rows, under the row softmin over these.

    `refresh` replaces the neighbours by the rows that are nearest now. No weight changes sharply: a row that enters
    takes its share of the bucket along, one that leaves gives its weight to the bucket, and their sum stays.

    Parameters
    ----------
    size : int
        Number of rows m >= 3.
    n_neighbors : int
        k, 1 <= k <= m - 2.
    generator : torch.Generator
        Source of the starting logits, uniform in +-1/sqrt(m); the bucket's is less by log(c), so that it weighs c
        rows.
    dtype : torch.dtype
    device : torch.device
    n_parts : int
        As in `air_recsys.nn.adaptive_laplacian.SparseLaplacian`.

    Attributes
    ----------
    neighbors : Tensor of int64, shape (m, k)
        Ascending in every row.
    logits : Tensor, shape (m, k + 2)
        Columns: the row itself, its neighbours, the bucket.
    parts : list of Tensor
        Views of ranges of `logits`.
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
        bound = 1 / math.sqrt(size)
        logits = torch.empty(size, n_neighbors + 2, dtype=dtype).uniform_(-bound, bound, generator=generator)
        self.n_rest = size - 1 - n_neighbors
        logits[:, -1] -= math.log(self.n_rest)
        self.logits = logits.to(device)
        self.parts = [self.logits] if n_parts == 1 else list(self.logits.tensor_split(n_parts))
        ends = itertools.accumulate((len(part) for part in self.parts), initial=0)
        self._rows = [slice(*pair) for pair in itertools.pairwise(ends)]
        ring = torch.arange(size, device=device)[:, None] + torch.arange(1, n_neighbors + 1, device=device)
        self._set_neighbors(ring.remainder(size).sort(dim=1).values)

    def apply(self, points: Tensor, weighted: Tensor, strength: float, part: int = 0) -> tuple[Tensor, Tensor]:
        """Return the energy and L @ points (m, d); write strength * dE/dlogits into the ``grad`` of the part's logits.

        Both come from the rows of that part alone, times the number of parts.
        """
        rows, pattern, n_parts = self._rows[part], self._patterns[part], len(self.parts)
        weights, row_energy, gradient = softmin_rows(self.parts[part], self._distances(points, weighted, part))
        self.parts[part].grad = gradient.mul_(strength)
        weights.mul_(n_parts / 2)
        share = weights[:, -1] / self.n_rest  # q / 2
        values = (weights[:, 1:-1] - share[:, None]).flatten()  # V / 2
        with_one = functional.pad(points, (0, 1), value=1.0)  # (m, d + 1): the last column sums degrees
        joined = pattern.transpose_matmul(values, with_one[rows])
        joined += share @ with_one[rows]
        joined[rows] += pattern.matmul(values, with_one).addr_(share, with_one.sum(dim=0))
        return row_energy.sum() * (n_parts / 2), torch.addcmul(-joined[:, :-1], points, joined[:, -1:])

    def refresh(self, points: Tensor, weighted: Tensor) -> Carry:
        """Take the k nearest rows as neighbours; return what moves per-edge state (m, k + 2) along, 0 for new."""
        old, edges, k = self.neighbors, self.logits[:, 1:-1], self.neighbors.shape[1]
        self._set_neighbors(nearest_rows(points, weighted, k))
        source, survives = positions(old, self.neighbors)  # (m, k)
        stays = positions(self.neighbors, old)[1]  # (m, k)
        entry = self.logits[:, -1:] + math.log(self.n_rest)  # (m, 1), of one row in the bucket
        left = torch.logsumexp((-edges).masked_fill(stays, -math.inf), dim=1)  # (m,)
        n_kept = self.n_rest - (~survives).sum(dim=1)  # rows that stay in the bucket
        kept = torch.log(n_kept.clamp(min=0).to(left.dtype)) - entry[:, 0]
        edges.copy_(torch.where(survives, edges.gather(1, source), entry))
        self.logits[:, -1] = -torch.logaddexp(left, kept)

        def carry(state: Tensor, part: int = 0) -> Tensor:
            rows = self._rows[part]
            moved = state[:, 1:-1].gather(1, source[rows]).mul_(survives[rows])
            return torch.cat([state[:, :1], moved, state[:, -1:]], dim=1)

        return carry

    def adjacency(self) -> sp.csr_array:
        """Return the edges of the current graph, shape (m, m), without what the buckets spread over all rows."""
        return symmetric_graph(torch.softmax(-self.logits, dim=1)[:, 1:-1] / 2, self.neighbors)

    def state(self) -> dict[str, Tensor]:
        """Return copies of neighbours and logits."""
        return {"logits": self.logits.clone(), "neighbors": self.neighbors.clone()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go back to the neighbours and logits of `state`."""
        self._set_neighbors(state["neighbors"])
        self.logits.copy_(state["logits"])

    def _set_neighbors(self, neighbors: Tensor) -> None:
        self.neighbors, self._patterns = neighbors, edge_patterns(neighbors, self._rows, len(neighbors))

    def _distances(self, points: Tensor, weighted: Tensor, part: int) -> Tensor:
        """Return the distances of the row itself (0), of its neighbours, and the mean one of the rest, (b, k + 2)."""
        rows, pattern, m = self._rows[part], self._patterns[part], len(points)
        norms = squared_norms(points, weighted)  # (m,)
        products = pattern.sampled_product(points[rows], weighted)  # (edges,)
        near = norms[self.neighbors[rows]].sub_(products.view(pattern.shape[0], -1), alpha=2)
        near.add_(norms[rows, None]).clamp_(min=0)
        far = m * norms[rows] + norms.sum() - 2 * (points[rows] @ weighted.sum(dim=0)) - near.sum(dim=1)
        rest = far.clamp_(min=0).div_(self.n_rest)
        return torch.cat([torch.zeros_like(rest)[:, None], near, rest[:, None]], dim=1)
