"""EASE and RDLAE, written from their papers, to stand beside the library's ranker."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from air_recsys.interactions import Interactions
from air_recsys.metrics.checks import Csr
from air_recsys.metrics.ranking import lists_of_scores
from air_recsys.models.graph_ranker.regression import inverted


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

    Its matrix of all pairs of items is inverted in place: 4 n_items^2 bytes, n_items^3 operations.

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
        self.weights = self._inverse(np.float32(self.decay))
        self.weights /= -self.weights.diagonal().copy()
        self.weights.flat[:: len(self.weights) + 1] = 0

    def _inverse(self, penalties: Any) -> np.ndarray:
        """Return the inverse of the products of the items plus penalties on their diagonal, in place."""
        gram = np.asfortranarray((self.pattern.T @ self.pattern).toarray())  # (n_items, n_items)
        gram.flat[:: len(gram) + 1] += penalties
        return inverted(gram)

    def _scores(self, rows: Csr) -> np.ndarray:
        return np.asarray(rows @ self.weights)


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

    def _train(self) -> None:
        counts = self.pattern.sum(axis=0)
        penalties = np.float32(self.decay + self.dropout / (1 - self.dropout) * counts)  # (n_items,)
        inverse = self._inverse(penalties)
        diagonal = inverse.diagonal()
        limited = 1 - penalties * diagonal > self.limit
        self.weights = inverse * -np.where(limited, (1 - self.limit) / diagonal, penalties)
        self.weights.flat[:: len(inverse) + 1] += 1
