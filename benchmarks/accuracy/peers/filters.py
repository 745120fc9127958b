"""GF-CF, BSPM, ChebyCF and Turbo-CF, written from their papers and programs: filters of the products of the items."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds

from air_recsys.graphs.cooccurrence import scaled
from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.regression import MOST_EXACT, chebyshev_coefficients
from benchmarks.accuracy.peers.autoencoders import DenseScores

_CHEBYSHEV_DEGREE = 8


class Filter(DenseScores):
    r"""Steps with :math:`P = \tilde R^T \tilde R` and an ideal low-pass filter, of the items of a block of users.

    :math:`\tilde R` is the pattern of interactions, rows and columns divided by the roots of their numbers of
    interactions, D the numbers of the items, V the leading right singular vectors of :math:`\tilde R`.
    """

    def __init__(self, n_factors: int, weight: float, random_state: int) -> None:
        self.n_factors, self.weight, self.random_state = n_factors, weight, random_state

    def _train(self) -> None:
        self.even = sp.csr_array(scaled(self.pattern, 0.5, 0.5))
        self.even_columns = sp.csr_array(self.even.T)
        self.counts = np.maximum(self.pattern.sum(axis=0), 1).astype(np.float32)[:, None]  # (n_items, 1)
        least = min(self.counts.size, self.pattern.indptr.size - 1)
        start = np.random.default_rng(self.random_state).standard_normal(least).astype(np.float32)
        svd: Any = svds(self.even, min(self.n_factors, least - 1), v0=start)
        self.vectors = svd[2]  # (r, n_items)

    def _own(self, rows: Csr) -> np.ndarray:
        """The items of a block of users, (n_items, b)."""
        return np.ascontiguousarray(rows.toarray().T)

    def _step(self, block: np.ndarray) -> np.ndarray:
        """P times a block (n_items, b)."""
        return self.even_columns @ (self.even @ block)

    def _ideal(self, block: np.ndarray, exponent: float = 0.5) -> np.ndarray:
        """The weighted D^b V V^T D^-b times a block (n_items, b)."""
        low = self.vectors.T @ (self.vectors @ (block * self.counts**-exponent))
        return np.float32(self.weight) * low * self.counts**exponent


class GFCF(Filter):
    r"""The sum of two filters, :math:`r_u \tilde R^T \tilde R + w\, r_u D^{-1/2} V V^T D^{1/2}`.

    `Filter` has the notation.

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
        super().__init__(n_factors, weight, random_state)

    def _scores(self, rows: Csr) -> np.ndarray:
        own = self._own(rows)
        return (self._step(own) + self._ideal(own)).T


class BSPM(Filter):
    r"""Blurring and sharpening: :math:`y = r P + w\, r D^{-1/2} V V^T D^{1/2}`, then a polynomial of P.

    With ``sharpening`` h the scores are :math:`y \sum_{j \le 4} (-h P)^j / j!`, the four steps of one Runge-Kutta
    integration; with h None those of the paper's other setting, :math:`(r P + y - 1.2\, y P) / 2`.

    Source: Choi, Hong, Park, Cho, Blurring-Sharpening Process Models for Collaborative Filtering, SIGIR 2023, and its
    program.

    Parameters
    ----------
    n_factors, weight, random_state
        As in `GFCF`.
    sharpening : float, optional

    Examples
    --------
    >>> from air_recsys import Interactions
    >>> data = Interactions.from_dense([[1, 1, np.nan], [1, 1, np.nan], [np.nan, 1, 1], [1, np.nan, np.nan]])
    >>> BSPM(2, 0.3).fit(data).lists(np.array([3]), 1).tolist()
    [[1]]
    """

    def __init__(
        self, n_factors: int = 384, weight: float = 0.3, sharpening: float | None = None, random_state: int = 0
    ) -> None:
        super().__init__(n_factors, weight, random_state)
        self.sharpening = sharpening

    def _scores(self, rows: Csr) -> np.ndarray:
        own = self._own(rows)
        blurred = self._step(own)
        smooth = blurred + self._ideal(own)
        if self.sharpening is None:
            return ((blurred + smooth - np.float32(1.2) * self._step(smooth)) / 2).T
        total = term = smooth
        for j in range(1, 5):
            term = self._step(term) * np.float32(-self.sharpening / j)
            total = total + term
        return total.T


class ChebyCF(Filter):
    r"""A Chebyshev filter of :math:`L = I - P` with an ideal part, between powers of the items' degrees.

    .. math:: s = \Big(\sum_{j \le 8} c_j T_j(2 L - I)\, r' + w\, r' V V^T\Big) D^b, \qquad r' = r D^{-b}

    with c the Chebyshev interpolation of :math:`h(x) = (1 - \mathrm{sgn}(x) |x|^p) / 2` on -1..1.

    Source: Kim, Choe, Yoo, Lee, Graph Spectral Filtering with Chebyshev Interpolation for Recommendation, SIGIR 2025,
    and its program.

    Parameters
    ----------
    n_factors, weight, random_state
        As in `GFCF`.
    power, exponent : float
        p and b.

    Examples
    --------
    >>> from air_recsys import Interactions
    >>> data = Interactions.from_dense([[1, 1, np.nan], [1, 1, np.nan], [np.nan, 1, 1], [1, np.nan, np.nan]])
    >>> ChebyCF(2).fit(data).lists(np.array([3]), 1).tolist()
    [[1]]
    """

    def __init__(
        self,
        n_factors: int = 512,
        weight: float = 0.2,
        power: float = 1.5,
        exponent: float = 0.4,
        random_state: int = 0,
    ) -> None:
        super().__init__(n_factors, weight, random_state)
        self.power, self.exponent = power, exponent

    def _scores(self, rows: Csr) -> np.ndarray:
        own = self._own(rows)
        coefficients = chebyshev_coefficients(
            lambda x: (1 - np.sign(x) * np.abs(x) ** self.power) / 2, _CHEBYSHEV_DEGREE
        )
        before = own * self.counts**-self.exponent
        now = before - 2 * self._step(before)
        total = coefficients[0] * before + coefficients[1] * now
        for coefficient in coefficients[2:]:
            before, now = now, 2 * (now - 2 * self._step(now)) - before
            total += coefficient * now
        return (total * self.counts**self.exponent + self._ideal(own, self.exponent)).T


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
