"""Baselines: the mean rating, and the mean with biases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
import scipy.sparse.linalg

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import ParameterError
from air_recsys.graphs import SimilarityGraph
from air_recsys.models.base import Recommender
from air_recsys.models.learned import Ending, Factors
from air_recsys.models.ratings import TrainingStatistics
from air_recsys.models.state import FittedState
from air_recsys.storage.validation import RandomState, as_generator, choice, integer, real


class GlobalMean(Recommender):
    """Every pair gets the mean of the training ratings.

    Examples
    --------
    >>> import numpy as np
    >>> GlobalMean().fit(np.array([[1.0, np.nan], [2.0, 3.0]])).predict(0, 1)
    array([2.])
    """

    def learn(self, data: Interactions) -> FittedState:
        """The state that the model learns from checked interactions."""
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

    def learn(self, data: Interactions) -> FittedState:
        """The state that the model learns from checked interactions."""
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


class Completion(NamedTuple):
    """A matrix without gaps, and what was learned beside it."""

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

    def learn(self, data: Interactions) -> FittedState:
        """The state that the model learns from checked interactions."""
        ratings, statistics = data.to_dense(), TrainingStatistics(data)  # (n_users, n_items)
        completion = self.complete(ratings, statistics)
        whole = np.where(np.isnan(ratings), completion.matrix, ratings)
        factors = exact_factors(whole, statistics.mean)
        history = pd.DataFrame() if completion.history is None else completion.history
        graphs = list(completion.graphs)
        return FittedState(data, factors, transform_graphs=graphs, history=history, ending=completion.ending)

    def complete(self, ratings: np.ndarray, statistics: TrainingStatistics) -> Completion:
        """`ratings` (m, n), which are NaN where there is none, without gaps."""
        raise NotImplementedError


def exact_factors(matrix: np.ndarray, mean: float) -> Factors:
    r"""A matrix as factors: :math:`X - \mu = U S V^\top` by its thin singular value decomposition.

    Users get :math:`U S^{1/2}` and items :math:`V S^{1/2}`; the product is exact to rounding.

    The mean :math:`\mu` is what all scores have in common and similarities should not see.
    """
    left, values, right = np.linalg.svd(matrix - mean, full_matrices=False)  # (m, r), (r,), (r, n)
    roots = np.sqrt(values)
    n_users, n_items = matrix.shape
    return Factors(left * roots, right.T * roots, np.zeros(n_users), np.zeros(n_items), mean)


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

    def complete(self, ratings: np.ndarray, statistics: TrainingStatistics) -> Completion:
        """The matrix without gaps."""
        from sklearn.impute import KNNImputer

        by_rows = self.axis == "users"
        rows = ratings if by_rows else ratings.T
        imputer = KNNImputer(n_neighbors=self.n_neighbors, weights=self.weights, keep_empty_features=True)
        empty = np.isnan(rows).all(axis=0)  # (n,); the imputer makes zeros of these
        filled = np.where(empty, statistics.mean, imputer.fit_transform(rows))
        return Completion(filled if by_rows else filled.T)


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

    def complete(self, ratings: np.ndarray, statistics: TrainingStatistics) -> Completion:
        """The matrix without gaps."""
        from sklearn.utils.extmath import randomized_svd

        missing = np.isnan(ratings)
        # One seed for all decompositions: with fresh ones the iteration would not come to rest.
        seed = int(as_generator(self.random_state).integers(2**31))
        rank = min(self.rank, *ratings.shape)
        filled, changes = np.where(missing, statistics.item_means, ratings), []  # (m, n)
        stopped_by = "n_iterations"
        for _ in range(self.n_iterations):
            left, values, right = randomized_svd(filled, rank, random_state=seed)  # (m, k), (k,), (k, n)
            update = ((left * values) @ right - filled)[missing]
            changes.append(float(np.linalg.norm(update) / (np.linalg.norm(filled) or 1.0)))
            filled[missing] += update
            if changes[-1] <= self.tolerance:
                stopped_by = "tolerance"
                break
        history = pd.DataFrame({"iteration": np.arange(1, len(changes) + 1), "change": changes})
        return Completion(filled, history, ending=Ending(len(changes), stopped_by))
