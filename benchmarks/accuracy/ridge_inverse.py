r"""The inverse of the products of all items plus penalties, :math:`C = (X^T X + \mathrm{diag}(g))^{-1}`, in two forms.

Of few items C itself is held. Of fewer users than items, with :math:`Z = (I + X G^{-1} X^T)^{-1} X G^{-1}`,

.. math:: C = G^{-1} - G^{-1} X^T Z

and Z is all that is held: n_users x n_items numbers, n_users^3 operations.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.regression import inverted


class RidgeInverse(Protocol):
    """What a linear model of items needs of C."""

    def diagonal(self) -> np.ndarray:
        """Return the diagonal, (n_items,)."""
        ...

    def times(self, rows: Csr) -> np.ndarray:
        """Return rows (b, n_items) times C."""
        ...


def ridge_inverse(pattern: sp.csr_array, penalties: np.ndarray) -> RidgeInverse:
    """Return C for a pattern X (n_users, n_items) and positive penalties g (n_items,), in single precision.

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
        gram = np.asfortranarray((pattern.T @ pattern).toarray())
        gram.flat[:: len(gram) + 1] += penalties
        self._inverse = inverted(gram)

    def diagonal(self) -> np.ndarray:
        """Return the diagonal, (n_items,)."""
        return self._inverse.diagonal()

    def times(self, rows: Csr) -> np.ndarray:
        """Return rows (b, n_items) times C."""
        return np.asarray(rows @ self._inverse)


class ByUsers:
    """Z of the module; the inverse of the users is made in double precision, as the diagonal is a small difference."""

    def __init__(self, pattern: sp.csr_array, penalties: np.ndarray) -> None:
        self._even = sp.csr_array(pattern.astype(np.float64) / penalties)  # X G^-1
        self._pattern, self._penalties = pattern, penalties
        products = np.asfortranarray((self._even @ pattern.T).toarray())  # (n_users, n_users)
        products.flat[:: len(products) + 1] += 1
        smooth: Any = self._even.T @ inverted(products)
        self._diagonal = np.asarray(1 / penalties - self._even.T.multiply(smooth).sum(axis=1), dtype=np.float32)
        self._smooth = np.ascontiguousarray(smooth.T, dtype=np.float32)  # Z

    def diagonal(self) -> np.ndarray:
        """Return the diagonal, (n_items,)."""
        return self._diagonal

    def times(self, rows: Csr) -> np.ndarray:
        """Return rows (b, n_items) times C."""
        even = sp.csr_array(rows / self._penalties)
        return even.toarray() - (even @ self._pattern.T).toarray() @ self._smooth
