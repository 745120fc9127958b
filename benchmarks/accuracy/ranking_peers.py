"""EASE and RDLAE, written from their papers, to stand beside the library's ranker."""

from __future__ import annotations

from typing import Self

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.metrics.checks import Csr
from air_recsys.metrics.ranking import lists_of_scores
from benchmarks.accuracy.ridge_inverse import ridge_inverse


class DenseScores:
    """Lists from scores of blocks of users, made of the items that they have seen, which are left out."""

    pattern: sp.csr_array

    def fit(self, interactions: Interactions) -> Self:
        """Train on the pattern of some interactions."""
        self.pattern = sp.csr_array(interactions.to_csr(), dtype=np.float32, copy=True)
        self.pattern.data[:] = 1
        self._train()
        return self

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """Return the best n unseen items of some users, by positions; (b, n), or fewer; -1 where none is left."""
        return lists_of_scores(lambda some: self._scores(self.pattern[some]), self.pattern, users, n)

    def lists_of_new(self, rows: Csr, n: int) -> np.ndarray:
        """Return those of new users with these items, (b, n_items)."""
        return lists_of_scores(lambda some: self._scores(rows[some]), rows, np.arange(rows.shape[0]), n)

    def _train(self) -> None:
        raise NotImplementedError

    def _scores(self, rows: Csr) -> np.ndarray:
        raise NotImplementedError


class EASE(DenseScores):
    r"""The linear model :math:`X B` of least :math:`|X - X B|^2 + \lambda |B|^2` with a zero diagonal.

    With :math:`C = (X^T X + \lambda I)^{-1}` it is :math:`B = I - C\, \mathrm{diag}(1 / C_{jj})`. C is a
    `ridge_inverse`: of all pairs of items or, where there are fewer, of users.

    Source: Steck, Embarrassingly Shallow Autoencoders for Sparse Data, WWW 2019.

    Parameters
    ----------
    decay : float
        Lambda, positive.

    Examples
    --------
    >>> data = Interactions.from_dense([[1, 1, np.nan], [1, 1, np.nan], [np.nan, 1, 1], [1, np.nan, np.nan]])
    >>> EASE(1.0).fit(data).lists(np.array([3]), 1).tolist()
    [[1]]
    """

    def __init__(self, decay: float) -> None:
        self.decay = decay

    def _train(self) -> None:
        penalties = self._penalties(np.asarray(self.pattern.sum(axis=0), dtype=np.float32))
        self.inverse = ridge_inverse(self.pattern, penalties)
        self.columns = self._columns(self.inverse.diagonal(), penalties)

    def _penalties(self, counts: np.ndarray) -> np.ndarray:
        """Return what is added to the diagonal of the products of the items, (n_items,)."""
        return np.full(counts.size, self.decay, dtype=np.float32)

    def _columns(self, diagonal: np.ndarray, penalties: np.ndarray) -> np.ndarray:
        """Return what the columns of C are multiplied by, (n_items,)."""
        return 1 / diagonal

    def _scores(self, rows: Csr) -> np.ndarray:
        return rows.toarray() - self.inverse.times(rows) * self.columns


class RDLAE(EASE):
    r"""EASE trained on interactions that are dropped at random, its diagonal limited and not zero.

    .. math:: C = (X^T X + \mathrm{diag}(g))^{-1}, \quad g = \lambda + \tfrac{p}{1 - p} n_i, \quad
              B = I - C\, \mathrm{diag}(g + m)

    with :math:`m_j = (1 - x) / C_{jj} - g_j` where :math:`1 - g_j C_{jj} > x`, else 0.

    Source: Moon, Kim, Lee, It's Enough: Relaxing Diagonal Constraints in Linear Autoencoders for Recommendation,
    SIGIR 2023.

    Parameters
    ----------
    decay, dropout, limit : float
        Lambda, p in 0..1, and x.

    Examples
    --------
    >>> data = Interactions.from_dense([[1, 1, np.nan], [1, 1, np.nan], [np.nan, 1, 1], [1, np.nan, np.nan]])
    >>> RDLAE(1.0, 0.2, 0.1).fit(data).lists(np.array([3]), 1).tolist()
    [[1]]
    """

    def __init__(self, decay: float, dropout: float, limit: float) -> None:
        super().__init__(decay)
        self.dropout, self.limit = dropout, limit

    def _penalties(self, counts: np.ndarray) -> np.ndarray:
        return (self.decay + self.dropout / (1 - self.dropout) * counts).astype(np.float32)

    def _columns(self, diagonal: np.ndarray, penalties: np.ndarray) -> np.ndarray:
        return np.where(1 - penalties * diagonal > self.limit, (1 - self.limit) / diagonal, penalties)
