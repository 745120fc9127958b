r"""The graphs of a posterior: nodes are similar by the part of the pattern that ratings use, and by residuals.

A row is :math:`x_i = W^\top f_i + r_i` (`posterior`). Its position consists of two vectors. In the first, each
singular vector of the pattern is one direction, with the weight that it has in the rows; the second is the conditional
mean of the residual r. Lengths are those of the prior's metric :math:`S^{-1}`, without biases:

.. math::
    D_{ij} = \rho \sum_k |w_k|^2 (f_{ik} - f_{jk})^2 + (1 - \rho)\, |r_i - r_j|^2,

with :math:`w_k` the rows of W and :math:`\rho` the first vector's share of the squared length of all rows, which is
small for a pattern without information. Positions are scaled to unit length, as a row's length is mostly how many
entries it has.

The graph is AIR's: logits descend the Dirichlet energy of the positions, one plain step per sweep, so each step sees
another state of the posterior. Adam's steps, which are about equal for all logits, would lose the order of distances.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn import functional

from air_recsys.graphs.candidates import Search, nearest_among
from air_recsys.graphs.laplacian import squared_norms
from air_recsys.nn.adaptive_laplacian import DenseLaplacian, SparseLaplacian
from air_recsys.nn.posterior.exchange import Exchange
from air_recsys.nn.posterior.prior import RowPrior
from air_recsys.nn.posterior.state import Stateful

_TRAVEL = 1.0  # sum of the step sizes, in movements of the logit of an edge of average energy at the start


def positions(prior: RowPrior, mean: Tensor) -> Tensor:
    """The positions of rows, unit vectors, or 0 for rows without information; shape (m, k - 2 + r).

    The last two features of the prior, the degree and the constant, do not count. `mean` (m, r + 1) are conditional
    means. Of a precision that is not positive definite they are NaN.
    """
    covariance = torch.linalg.inv_ex(prior.precision).inverse[:-1, :-1]
    root, failed = torch.linalg.cholesky_ex(torch.linalg.inv_ex(covariance).inverse)  # (r, r)
    root = torch.where(failed > 0, torch.nan, root)
    lengths = (prior.weights[:-2, :-1] @ root).norm(dim=1)  # |w_k|, (k - 2,)
    pattern = prior.features[:, :-2] * lengths  # (m, k - 2)
    rest = (mean.to(torch.float64) - prior.mean())[:, :-1] @ root  # (m, r)
    sizes = torch.stack([pattern.square().sum(), rest.square().sum()])
    shares = (sizes / sizes.sum().clamp(min=torch.finfo(torch.float64).tiny)).sqrt()
    return functional.normalize(torch.cat([shares[0] * pattern, shares[1] * rest], dim=1)).to(mean.dtype)


def shared_search(exchange: Exchange, side: int) -> Search:
    """A search for the nearest rows of a side, in which each process searches those of its own rows."""

    def nearest(points: Tensor, weighted: Tensor, k: int) -> Tensor:
        own, norms = exchange.own(side, len(points)), squared_norms(points, weighted)
        return exchange.all_rows(side, nearest_among(points[own], weighted, norms, own.start, k))

    return nearest


class RowGraph(Stateful):
    """The graph of one side, learned along the sweeps.

    Parameters
    ----------
    counts : Tensor, shape (m,)
        Entries of each row, m >= 2; rows without any stay isolated.
    n_neighbors : int, optional
        Edges a row; None weighs all pairs.
    adjacency : str
        A key of `air_recsys.graphs.laplacian.ADJACENCIES`; with `n_neighbors` "row_softmin".
    n_steps : int
        Of the whole training.
    refresh : int
        Steps between two choices of a sparse graph's edges.
    search : Search, optional
        Finds the edges, see `SparseLaplacian`.

    Examples
    --------
    >>> graph = RowGraph(torch.ones(4), 1, "row_softmin", n_steps=5, refresh=5)
    >>> points = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.0, 1.0]])
    >>> energies = [graph.step(points) for _ in range(5)]
    >>> energies == sorted(energies, reverse=True)
    True
    >>> graph.adjacency().toarray().round(2)
    array([[0.  , 0.07, 0.  , 0.  ],
           [0.07, 0.  , 0.  , 0.  ],
           [0.  , 0.  , 0.  , 0.5 ],
           [0.  , 0.  , 0.5 , 0.  ]], dtype=float32)
    """

    _STATE = ("_unit", "_done")

    def __init__(
        self,
        counts: Tensor,
        n_neighbors: int | None,
        adjacency: str,
        n_steps: int,
        refresh: int,
        search: Search | None = None,
    ) -> None:
        m, generator = len(counts), torch.Generator()
        place = {"generator": generator, "dtype": counts.dtype, "device": counts.device}
        self._laplacian = (
            DenseLaplacian(m, adjacency, **place)
            if n_neighbors is None
            else SparseLaplacian(m, min(n_neighbors, m - 1), search=search, **place)
        )
        self._laplacian.logits.zero_()
        self._has_entries = (counts > 0).cpu().numpy()
        self._rate, self._refresh, self._done = _TRAVEL / max(n_steps, 1), refresh, 0
        self._unit = torch.zeros((), dtype=torch.float64, device=counts.device)  # energy of the first step

    @property
    def is_due(self) -> bool:
        """Whether the next step chooses the edges anew, for which `points` have to be finite."""
        return self._done % self._refresh == 0

    def step(self, points: Tensor) -> Tensor:
        """Move the logits a step down the energy of rows at `points` (m, d), and return it, ()."""
        if self.is_due:
            self._laplacian.refresh(points, points)
        self._done += 1
        energy = self._laplacian.weigh(points, points, 1.0)
        self._unit = torch.where(self._unit == 0, energy.to(torch.float64), self._unit)
        logits = self._laplacian.logits
        if logits.grad is not None:
            rate = torch.where(self._unit > 0, self._rate * logits.numel() / self._unit, 0.0)
            logits.sub_(logits.grad.mul_(rate))
        logits.grad = None
        return energy

    def state(self) -> dict[str, Any]:
        """The values that steps change."""
        return {"laplacian": self._laplacian.state(), **super().state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go back to what `state` returned."""
        self._laplacian.load_state(state["laplacian"])
        super().load_state(state)

    def adjacency(self) -> sp.csr_array:
        """The current graph, shape (m, m), symmetric with an empty diagonal."""
        graph = self._laplacian.adjacency()
        kept = sp.diags_array(self._has_entries.astype(graph.dtype))
        return sp.csr_array(kept @ graph @ kept)


class EdgelessGraph(Stateful):
    """The graph of rows that nothing tells apart: rows without factors, of which no singular vector is seen.

    Examples
    --------
    >>> EdgelessGraph(3).adjacency().nnz
    0
    """

    _STATE = ()
    is_due = False

    def __init__(self, m: int) -> None:
        self._m = m

    def step(self, points: Tensor) -> Tensor:
        """The energy, which is 0."""
        return points.new_zeros(())

    def adjacency(self) -> sp.csr_array:
        """The graph, shape (m, m), without edges."""
        return sp.csr_array((self._m, self._m), dtype=np.float32)
