"""GF-CF and Turbo-CF, written from their papers and programs: filters of the products of the items."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds

from air_recsys.graphs.cooccurrence import scaled
from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.regression import MOST_EXACT
from benchmarks.accuracy.peers.autoencoders import DenseScores


class GFCF(DenseScores):
    r"""The sum of two filters, :math:`r_u \tilde R^T \tilde R + w\, r_u D^{-1/2} V V^T D^{1/2}`.

    :math:`\tilde R` is the pattern of interactions, rows and columns divided by the roots of their numbers of
    interactions, D the numbers of the items, V the leading right singular vectors of :math:`\tilde R`.

    Source: Shen et al., How Powerful is Graph Convolution for Recommendation?, CIKM 2021, and its program.

    Parameters
    ----------
    n_factors : int
        Singular vectors; fewer than there are users or items.
    weight : float
        Of the second filter.
    random_state : int
        Of the search for singular vectors.

    Examples
    --------
    >>> from air_recsys import Interactions
    >>> data = Interactions.from_dense([[1, 1, np.nan], [1, 1, np.nan], [np.nan, 1, 1], [1, np.nan, np.nan]])
    >>> GFCF(n_factors=2).fit(data).lists(np.array([3]), 1).tolist()
    [[1]]
    """

    def __init__(self, n_factors: int = 256, weight: float = 0.3, random_state: int = 0) -> None:
        self.n_factors, self.weight, self.random_state = n_factors, weight, random_state

    def _train(self) -> None:
        self.even = sp.csr_array(scaled(self.pattern, 0.5, 0.5))
        self.even_columns = sp.csr_array(self.even.T)
        self.counts = np.maximum(self.pattern.sum(axis=0), 1).astype(np.float32)[:, None]  # (n_items, 1)
        least = min(self.counts.size, self.pattern.indptr.size - 1)
        start = np.random.default_rng(self.random_state).standard_normal(least).astype(np.float32)
        svd: Any = svds(self.even, min(self.n_factors, least - 1), v0=start)
        self.vectors = svd[2]  # (r, n_items)

    def _scores(self, rows: Csr) -> np.ndarray:
        own = np.ascontiguousarray(rows.toarray().T)  # (n_items, b)
        low = self.vectors.T @ (self.vectors @ (own * self.counts**-0.5))
        return (self.even_columns @ (self.even @ own) + np.float32(self.weight) * low * self.counts**0.5).T


class TurboCF(DenseScores):
    r"""A polynomial of the products of the items, each raised to a power: no matrix is decomposed.

    .. math:: P = (Q^T Q)^{\circ s}, \quad Q = D_u^{-a} R D_i^{a - 1}, \qquad r P \;\text{ or }\; r (2 P - P^2)

    with the pattern R, the numbers of interactions :math:`D_u` of the users and :math:`D_i` of the items, and the
    power s of each entry.

    Source: Park, Shin, Shin, Turbo-CF: Matrix Decomposition-Free Graph Filtering for Fast Recommendation, SIGIR 2024,
    and its program.

    Parameters
    ----------
    exponent, power : float
        a and s.
    order : {1, 2}
        Of the polynomial.

    Examples
    --------
    >>> from air_recsys import Interactions
    >>> data = Interactions.from_dense([[1, 1, np.nan], [1, 1, np.nan], [np.nan, 1, 1], [1, np.nan, np.nan]])
    >>> TurboCF().fit(data).lists(np.array([3]), 1).tolist()
    [[1]]
    """

    def __init__(self, exponent: float = 0.6, power: float = 1.0, order: int = 1) -> None:
        self.exponent, self.power, self.order = exponent, power, order

    def _train(self) -> None:
        even = sp.csr_array(scaled(self.pattern, self.exponent, 1 - self.exponent))
        products: Csr = sp.csr_array(even.T @ even)
        products.data **= np.float32(self.power)
        few = products.shape[0] <= MOST_EXACT  # most of them have users in common
        self.products: Any = products.toarray() if few else products  # P, (n_items, n_items)

    def _scores(self, rows: Csr) -> np.ndarray:
        once = rows @ self.products
        once = once.toarray() if sp.issparse(once) else once
        return once if self.order == 1 else 2 * once - (self.products @ once.T).T  # P is symmetric
