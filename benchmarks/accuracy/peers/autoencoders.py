"""EASE and RDLAE, written from their papers, to stand beside the library's ranker."""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
import scipy.sparse as sp
import torch

from air_recsys.data.interactions import Interactions
from air_recsys.metrics.checks import Csr
from air_recsys.metrics.ranking import lists_of_scores
from air_recsys.nn.inverse import inverted


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
        """The best n unseen items of some users, by positions; (b, n), or fewer; -1 where none is left."""
        return lists_of_scores(lambda some: self._scores(self.pattern[some]), self.pattern, users, n)

    def lists_of_new(self, rows: Csr, n: int) -> np.ndarray:
        """Those of new users with these items, (b, n_items)."""
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
        """What is added to the diagonal of the products of the items, (n_items,)."""
        return np.full(counts.size, self.decay, dtype=np.float32)

    def _columns(self, diagonal: np.ndarray, penalties: np.ndarray) -> np.ndarray:
        """What the columns of C are multiplied by, (n_items,)."""
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


class RidgeInverse(Protocol):
    """What a linear model of items needs of C."""

    def diagonal(self) -> np.ndarray:
        """The diagonal, (n_items,)."""
        ...

    def times(self, rows: Csr) -> np.ndarray:
        """Rows (b, n_items) times C."""
        ...


def ridge_inverse(pattern: sp.csr_array, penalties: np.ndarray) -> RidgeInverse:
    r"""The inverse :math:`C = (X^T X + \mathrm{diag}(g))^{-1}` of a pattern X (n_users, n_items), in single precision.

    The penalties g, (n_items,), are positive. Of few items C itself is held. Of fewer users than items, with
    :math:`Z = (I + X G^{-1} X^T)^{-1} X G^{-1}`, it is :math:`C = G^{-1} - G^{-1} X^T Z`, and Z is all that is held:
    n_users x n_items numbers, n_users^3 operations.

    Examples
    --------
    >>> x = sp.csr_array([[1.0, 1.0, 0.0]], dtype=np.float32)
    >>> found = ridge_inverse(x, np.ones(3, dtype=np.float32))
    >>> found.diagonal().round(4), found.times(x).round(4)
    (array([0.6667, 0.6667, 1.    ], dtype=float32), array([[0.3333, 0.3333, 0.    ]], dtype=float32))
    """
    n_users, n_items = pattern.shape  # pyright: ignore[reportGeneralTypeIssues]
    return ByUsers(pattern, penalties) if n_users < n_items else ByItems(pattern, penalties)


class ByItems:
    """C itself, inverted in place: 4 n_items^2 bytes, n_items^3 operations."""

    def __init__(self, pattern: sp.csr_array, penalties: np.ndarray) -> None:
        gram = (pattern.T @ pattern).toarray()
        gram.flat[:: len(gram) + 1] += penalties
        self._inverse = inverted(torch.from_numpy(gram)).numpy()

    def diagonal(self) -> np.ndarray:
        """The diagonal, (n_items,)."""
        return self._inverse.diagonal()

    def times(self, rows: Csr) -> np.ndarray:
        """Rows (b, n_items) times C."""
        return np.asarray(rows @ self._inverse)


class ByUsers:
    """Z of `ridge_inverse`, by an inverse of the users in double precision: the diagonal is a small difference."""

    def __init__(self, pattern: sp.csr_array, penalties: np.ndarray) -> None:
        self._even = sp.csr_array(pattern.astype(np.float64) / penalties)  # X G^-1
        self._pattern, self._penalties = pattern, penalties
        products = (self._even @ pattern.T).toarray()  # (n_users, n_users)
        products.flat[:: len(products) + 1] += 1
        smooth: Any = self._even.T @ inverted(torch.from_numpy(products)).numpy()
        self._diagonal = np.asarray(1 / penalties - self._even.T.multiply(smooth).sum(axis=1), dtype=np.float32)
        self._smooth = np.ascontiguousarray(smooth.T, dtype=np.float32)  # Z

    def diagonal(self) -> np.ndarray:
        """The diagonal, (n_items,)."""
        return self._diagonal

    def times(self, rows: Csr) -> np.ndarray:
        """Rows (b, n_items) times C."""
        even = sp.csr_array(rows / self._penalties)
        return even.toarray() - (even @ self._pattern.T).toarray() @ self._smooth
