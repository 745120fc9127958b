"""Models that fill in the whole matrix and know it afterwards by its singular vectors."""

from __future__ import annotations

import numpy as np

from air_recsys.interactions import Interactions
from air_recsys.models.base import Factors, Recommender
from air_recsys.training import Callback


class CompletedMatrix(Recommender):
    """Base of models that fill the gaps of a dense matrix; the observed entries stay as they are.

    A subclass gives `_complete`. Time and memory grow with n_users * n_items, rated or not; callbacks are not called.
    """

    def _fit(self, data: Interactions, callbacks: list[Callback]) -> None:
        ratings = data.to_dense()  # (n_users, n_items)
        completed = np.where(np.isnan(ratings), self._complete(ratings), ratings)
        self._set_factors(exact_factors(completed, self._statistics.mean))

    def _complete(self, ratings: np.ndarray) -> np.ndarray:
        """Return a finite matrix of the shape of `ratings`, which is NaN where there is no rating."""
        raise NotImplementedError

    def _means_in_gaps(self, ratings: np.ndarray) -> np.ndarray:
        """Return `ratings` with the mean of the item in each gap, that of all ratings for an item without any."""
        return np.where(np.isnan(ratings), self._statistics.item_means, ratings)


def exact_factors(matrix: np.ndarray, mean: float) -> Factors:
    r"""Return a matrix as factors: :math:`X - \mu = U S V^\top` by its thin singular value decomposition.

    Users get :math:`U S^{1/2}` and items :math:`V S^{1/2}`; the product is exact to rounding.

    Parameters
    ----------
    matrix : ndarray of float64, shape (n_users, n_items)
        Finite.
    mean : float
        :math:`\mu`, what all scores have in common and similarities should not see.

    Examples
    --------
    >>> factors = exact_factors(np.array([[1.0, 2.0], [3.0, 6.0], [5.0, 1.0]]), mean=3.0)
    >>> (factors.user_factors @ factors.item_factors.T + factors.mean).round(12)
    array([[1., 2.],
           [3., 6.],
           [5., 1.]])
    """
    left, values, right = np.linalg.svd(matrix - mean, full_matrices=False)  # (m, r), (r,), (r, n)
    roots = np.sqrt(values)
    n_users, n_items = matrix.shape
    return Factors(left * roots, right.T * roots, np.zeros(n_users), np.zeros(n_items), mean)
