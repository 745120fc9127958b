"""`IterativeSVD`: gaps filled by a truncated singular value decomposition, again and again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.models.pictures.completed import CompletedMatrix, Completion
from air_recsys.models.state import Ending
from air_recsys.models.statistics import TrainingStatistics
from air_recsys.storage.validation import RandomState, as_generator, integer, real


@dataclass(eq=False, repr=False)
class IterativeSVD(CompletedMatrix):
    r"""Missing ratings are those of the best matrix of low rank, which is found from its own last answer.

    Starting from the mean rating of each item, with :math:`T_k` the truncation to the k largest singular values,

    .. math:: X_{t+1} = P_\Omega(Y) + P_{\bar\Omega}(T_k(X_t))

    until :math:`\|X_{t+1} - X_t\| \le \varepsilon \|X_t\|` (Frobenius norms). Given ratings stay as they are.

    Parameters
    ----------
    rank : int
        k; at most all singular values are taken.
    n_iterations : int
        Most decompositions.
    tolerance : float
        :math:`\varepsilon`; 0 always goes on to `n_iterations` unless nothing changes at all.
    random_state : int, RandomState, Generator or None
        Source of the randomized decomposition; the same seed gives the same model.

    Attributes
    ----------
    history_ : DataFrame
        One row per decomposition: iteration (from 1) and change, :math:`\|X_{t+1} - X_t\| / \|X_t\|`.
    n_iter_ : int
        Number of decompositions.
    stopped_by_ : str
        "tolerance" or "n_iterations".

    Raises
    ------
    ParameterError
        At `fit`, for a parameter out of its range.

    Notes
    -----
    The filled matrix is held whole: memory is that of n_users * n_items numbers. The source regresses each row on the
    k leading singular vectors, over its observed entries; here, as in later programs, the truncation itself fills it.

    Source: Troyanskaya et al., Missing value estimation methods for DNA microarrays, Bioinformatics 17(6), 2001
    (SVDimpute).

    Examples
    --------
    >>> ratings = np.outer([1.0, 2.0, 3.0, 2.0], [1.0, 0.5, 1.5])
    >>> ratings[2, 1] = np.nan  # 1.5
    >>> IterativeSVD(rank=1, random_state=0).fit(ratings).predict(2, 1).round(3)
    array([1.5])
    """

    rank: int = integer(10, minimum=1)
    n_iterations: int = integer(200, minimum=1)
    tolerance: float = real(1e-5)
    random_state: RandomState = None

    def check(self, data: Interactions) -> None:
        """Raise `ParameterError` where `fit` on these interactions would, before any work."""
        super().check(data)
        as_generator(self.random_state)

    def _complete(self, ratings: np.ndarray, statistics: TrainingStatistics) -> Completion:
        missing = np.isnan(ratings)
        # One seed for all decompositions: with fresh ones the iteration would not come to rest.
        seed = int(as_generator(self.random_state).integers(2**31))
        rank = min(self.rank, *ratings.shape)
        filled, changes = np.where(missing, statistics.item_means, ratings), []  # (m, n)
        stopped_by = "n_iterations"
        for _ in range(self.n_iterations):
            update = (_truncate(filled, rank, seed) - filled)[missing]
            changes.append(float(np.linalg.norm(update) / (np.linalg.norm(filled) or 1.0)))
            filled[missing] += update
            if changes[-1] <= self.tolerance:
                stopped_by = "tolerance"
                break
        history = pd.DataFrame({"iteration": np.arange(1, len(changes) + 1), "change": changes})
        return Completion(filled, history, ending=Ending(len(changes), stopped_by))


def _truncate(matrix: np.ndarray, rank: int, seed: int) -> np.ndarray:
    """Return the nearest matrix of a rank, shape (m, n)."""
    from sklearn.utils.extmath import randomized_svd

    left, values, right = randomized_svd(matrix, rank, random_state=seed)  # (m, k), (k,), (k, n)
    return (left * values) @ right
