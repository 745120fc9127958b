"""Baselines: the mean rating, and the mean with biases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from air_recsys.data.interactions import Interactions
from air_recsys.models.base import Recommender
from air_recsys.models.state import Factors, FittedState
from air_recsys.storage.validation import real


class GlobalMean(Recommender):
    """Every pair gets the mean of the training ratings.

    Examples
    --------
    >>> import numpy as np
    >>> GlobalMean().fit(np.array([[1.0, np.nan], [2.0, 3.0]])).predict(0, 1)
    array([2.])
    """

    def _fit(self, data: Interactions) -> FittedState:
        return _without_factors(data, np.zeros(data.n_users), np.zeros(data.n_items), data.ratings.mean())


@dataclass(eq=False, repr=False)
class BiasModel(Recommender):
    r"""Every pair gets the mean rating plus a bias of its user and a bias of its item.

    The biases minimise :math:`\sum_{ui} (r_{ui} - \mu - b_u - c_i)^2 + \lambda (\|b\|^2 + \|c\|^2)` exactly.

    Parameters
    ----------
    bias_decay : float
        :math:`\lambda`, in ratings: the bias of a user with that many ratings is half of its mean deviation.

    Source: Koren, Factor in the Neighbors, TKDD 4(1), 2010, section 2.1.
    """

    bias_decay: float = real(5.0)

    def _fit(self, data: Interactions) -> FittedState:
        mean = data.ratings.mean()
        rows = np.arange(data.n_ratings)
        ones = np.ones(data.n_ratings)
        users = sp.csr_array((ones, (rows, data.user_index)), shape=(data.n_ratings, data.n_users))
        items = sp.csr_array((ones, (rows, data.item_index)), shape=(data.n_ratings, data.n_items))
        design = sp.hstack([users, items], format="csr")
        # lsmr is damped by sqrt(lambda), and returns the smallest solution where lambda is 0.
        biases = scipy.sparse.linalg.lsmr(design, data.ratings - mean, damp=np.sqrt(self.bias_decay), atol=1e-9)[0]
        return _without_factors(data, biases[: data.n_users], biases[data.n_users :], mean)


def _without_factors(data: Interactions, user_biases: np.ndarray, item_biases: np.ndarray, mean: Any) -> FittedState:
    nothing = np.zeros((user_biases.size, 0)), np.zeros((item_biases.size, 0))
    return FittedState(data, Factors(*nothing, user_biases, item_biases, float(mean)))
