"""Models that fill in the whole matrix and know it afterwards by its singular vectors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import ParameterError
from air_recsys.graphs import SimilarityGraph
from air_recsys.models.base import Recommender
from air_recsys.models.state import Ending, Factors, FittedState
from air_recsys.models.statistics import TrainingStatistics


class Completion(NamedTuple):
    """What a model makes of a matrix with gaps."""

    matrix: np.ndarray  # (m, n), finite
    history: pd.DataFrame | None = None
    graphs: tuple[SimilarityGraph, ...] = ()
    ending: Ending = Ending()


def check_patch(patch: int, data: Interactions) -> None:
    """Raise `ParameterError` for patches that are larger than the picture."""
    if patch > min(data.n_users, data.n_items):
        raise ParameterError(
            f"patch must be at most the smaller side of the picture, {data.n_users} x {data.n_items} pixels, "
            f"found {patch}"
        )


class CompletedMatrix(Recommender):
    """Base of models that fill the gaps of a dense matrix; the observed entries stay as they are.

    A subclass gives `_complete`. Time and memory grow with n_users * n_items, rated or not; callbacks are not called.
    """

    def _fit(self, data: Interactions) -> FittedState:
        ratings, statistics = data.to_dense(), TrainingStatistics(data)  # (n_users, n_items)
        completion = self._complete(ratings, statistics)
        whole = np.where(np.isnan(ratings), completion.matrix, ratings)
        factors = exact_factors(whole, statistics.mean)
        history = pd.DataFrame() if completion.history is None else completion.history
        graphs = list(completion.graphs)
        return FittedState(data, factors, transform_graphs=graphs, history=history, ending=completion.ending)

    def _complete(self, ratings: np.ndarray, statistics: TrainingStatistics) -> Completion:
        """Return `ratings` (m, n), which are NaN where there is none, without gaps."""
        raise NotImplementedError


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
