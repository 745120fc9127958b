"""`KNN`: gaps filled from the nearest rows or columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from air_recsys.models.pictures.completed import CompletedMatrix, Completion
from air_recsys.models.statistics import TrainingStatistics
from air_recsys.storage.validation import choice, integer


@dataclass(eq=False, repr=False)
class KNN(CompletedMatrix):
    r"""A missing rating is the mean of the nearest users that have rated the item (or of the nearest items).

    Two users are as far from each other as the ratings that both gave, scaled up to all items:

    .. math:: d(u, v)^2 = \frac{n}{|\Omega_u \cap \Omega_v|} \sum_{i \in \Omega_u \cap \Omega_v} (r_{ui} - r_{vi})^2

    A pair gets the mean rating of the item where no one who rated it shares an item with the user, and the mean of all
    ratings where nobody rated it; for ``axis="items"`` with users and items exchanged. Given ratings stay as they are.

    Parameters
    ----------
    n_neighbors : int
        How many of those that have the rating are averaged; at most all of them.
    weights : {"distance", "uniform"}
        Whether a neighbor counts by 1 / d or all count alike.
    axis : {"users", "items"}
        Where neighbors are looked for: among the rows or among the columns.

    Raises
    ------
    ParameterError
        At `fit`, for a parameter out of its range.

    Notes
    -----
    The filled matrix is held whole: memory is that of n_users * n_items numbers.

    Source: Troyanskaya et al., Missing value estimation methods for DNA microarrays, Bioinformatics 17(6), 2001
    (KNNimpute), by `sklearn.impute.KNNImputer`.

    Examples
    --------
    >>> ratings = np.array([[5.0, 1.0, np.nan], [5.0, 1.0, 4.0], [1.0, 5.0, 2.0]])
    >>> KNN(n_neighbors=1).fit(ratings).predict(0, 2).round(9)
    array([4.])
    """

    n_neighbors: int = integer(10, minimum=1)
    weights: str = choice("distance", ("distance", "uniform"))
    axis: str = choice("users", ("users", "items"))

    def _complete(self, ratings: np.ndarray, statistics: TrainingStatistics) -> Completion:
        by_rows = self.axis == "users"
        filled = self._impute(ratings if by_rows else ratings.T, statistics.mean)
        return Completion(filled if by_rows else filled.T)

    def _impute(self, rows: np.ndarray, mean: float) -> np.ndarray:
        """Fill a matrix (m, n) from its nearest rows."""
        from sklearn.impute import KNNImputer

        imputer = KNNImputer(n_neighbors=self.n_neighbors, weights=self.weights, keep_empty_features=True)
        empty = np.isnan(rows).all(axis=0)  # (n,); the imputer makes zeros of these
        return np.where(empty, mean, imputer.fit_transform(rows))
