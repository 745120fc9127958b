"""`Recommender`: the contract of every model, from the factors that each of them ends in."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from air_recsys.exceptions import DataError, DataWarning, NotFittedError, UnknownIdError
from air_recsys.graphs import SimilarityGraph
from air_recsys.interactions import Interactions, as_interactions
from air_recsys.metrics.ranking import top_k
from air_recsys.models import files
from air_recsys.models.ann import FaissItems
from air_recsys.models.spread import PredictionSpread
from air_recsys.models.statistics import TrainingStatistics
from air_recsys.models.top_items import as_queried_ids, check_list_length, recommendation_frame, top_items
from air_recsys.training import Callback
from air_recsys.validation import check_choice, check_integer

_BLOCK_ENTRIES = 16_000_000  # of lists in the making; scores have blocks of their own
FindBest = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]  # users to items and products + item biases, (b, n)


class Factors(NamedTuple):
    """What every model collapses to: score(u, i) = mean + b_u + c_i + p_u . q_i, in the unit of the ratings."""

    user_factors: np.ndarray  # (n_users, r)
    item_factors: np.ndarray  # (n_items, r)
    user_biases: np.ndarray  # (n_users,)
    item_biases: np.ndarray  # (n_items,)
    mean: float


class Recommender(BaseEstimator):
    """Base of all models: `fit` owns the contract, a subclass's `_fit` the mathematics.

    Attributes
    ----------
    user_factors_ : ndarray, shape (n_users, r)
    item_factors_ : ndarray, shape (n_items, r)
    user_biases_ : ndarray, shape (n_users,)
    item_biases_ : ndarray, shape (n_items,)
    global_mean_ : float
        The score of a pair is the sum of this mean, its two biases and the product of its two factors.
    user_graph_, item_graph_ : SimilarityGraph or None
        The learned graphs; None where the model learns none.
    transform_graphs_ : list of SimilarityGraph
        Graphs over other rows than users and items; mostly empty.
    history_ : DataFrame
        The course of training; empty where there was none.
    interactions_ : Interactions
        The training data.
    """

    _clips = False
    _takes_weights = False
    _spread: PredictionSpread | None = None  # where a model knows how far ratings spread around its scores

    # ---------------------------------------------------------------- fitting

    def fit(self, interactions: Any, *, callbacks: Iterable[Callback] = ()) -> Self:
        """Train on interactions and return the model.

        Parameters
        ----------
        interactions : Interactions, sparse matrix, DataFrame or ndarray
            Whatever `air_recsys.interactions.as_interactions` accepts.
        callbacks : iterable of callable
            Each is called with every `air_recsys.training.Record` of an iterative training; one that returns True
            stops it.

        Raises
        ------
        DataError, ParameterError
            Before any work, with what was expected and what was found.
        DivergenceError
            Where training left the finite numbers; the model then holds its last good state.
        """
        data = as_interactions(interactions)
        self._check_weights(data)
        self._check_parameters(data)
        _warn_if_constant(data, self._learns_from_constant())
        # A fit that fails leaves no half of two models.
        for name in (
            "_statistics",
            "_solvers",
            "user_similarities_",
            "item_similarities_",
            "global_mean_",
            "snapshots_",
            "n_iter_",
            "stopped_by_",
            "device_",
            "_spread",
        ):
            self.__dict__.pop(name, None)
        self.interactions_ = data
        self.user_graph_: SimilarityGraph | None = None
        self.item_graph_: SimilarityGraph | None = None
        self.transform_graphs_: list[SimilarityGraph] = []
        self.history_ = pd.DataFrame()
        self._fit(data, list(callbacks))
        return self

    def _check_parameters(self, data: Interactions) -> None:
        """Raise `ParameterError` where a parameter is out of range for `data`."""

    def _check_weights(self, data: Interactions) -> None:
        if data.weights is not None and not self._takes_weights:
            raise DataError(f"{type(self).__name__} knows no weights of ratings, found interactions with weights")

    def _learns_from_constant(self) -> bool:
        """Whether ratings that are all equal can teach this model anything."""
        return True

    def _fit(self, data: Interactions, callbacks: list[Callback]) -> None:
        raise NotImplementedError

    def _set_factors(self, factors: Factors) -> None:
        self.user_factors_ = np.ascontiguousarray(factors.user_factors)
        self.item_factors_ = np.ascontiguousarray(factors.item_factors)
        self.user_biases_, self.item_biases_ = factors.user_biases, factors.item_biases
        self.global_mean_ = float(factors.mean)

    def _check_fitted(self) -> None:
        if not hasattr(self, "global_mean_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")

    # ---------------------------------------------------------------- scores

    def predict(self, user_ids: Any, item_ids: Any, *, unknown: Literal["mean", "error"] = "mean") -> np.ndarray:
        """Return the score of each pair.

        Parameters
        ----------
        user_ids, item_ids : id or array_like of ids
            Pairs, position by position; a single id goes with all of the other side.
        unknown : {"mean", "error"}
            A pair with an id that was not in the training data gets the mean training rating of the side that is
            known (the mean of all ratings where neither is), or is an error.

        Returns
        -------
        ndarray of float64, shape (n,)

        Raises
        ------
        UnknownIdError
            With ``unknown="error"``.
        """
        self._check_fitted()
        check_choice("unknown", unknown, ("mean", "error"))
        users, items = self._pair_indices(user_ids, item_ids, unknown)
        known = (users >= 0) & (items >= 0)
        scores = np.empty(users.size)
        scores[known] = self._score_pairs(users[known], items[known])
        if not known.all():
            scores[~known] = self._fallback(users[~known], items[~known])
        return scores

    def _pair_indices(self, user_ids: Any, item_ids: Any, unknown: str) -> tuple[np.ndarray, np.ndarray]:
        users, items = self._lookup("user", user_ids, unknown), self._lookup("item", item_ids, unknown)
        if users.size != items.size and 1 not in (users.size, items.size):
            raise DataError(f"expected as many users as items, found {users.size} and {items.size}")
        users, items = np.broadcast_arrays(users, items)
        return users, items

    def _lookup(self, kind: str, ids: Any, unknown: str) -> np.ndarray:
        index = self.interactions_.users if kind == "user" else self.interactions_.items
        found = index.lookup(ids)
        if unknown == "error" and (found < 0).any():
            queried = np.atleast_1d(np.asarray(ids, dtype=object))
            raise UnknownIdError(kind, queried[found < 0].tolist(), "unknown='mean' predicts a mean instead")
        return found

    def _score_pairs(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        products = np.einsum("nr,nr->n", self.user_factors_[users], self.item_factors_[items])
        return self._clip(products + self.user_biases_[users] + self.item_biases_[items] + self.global_mean_)

    def _clip(self, scores: np.ndarray) -> np.ndarray:
        return scores.clip(*self._statistics.rating_range) if self._clips else scores

    def _fallback(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        known = self._statistics
        by_item = np.where(items >= 0, known.item_means[items], known.mean)
        return np.where(users >= 0, known.user_means[users], by_item)

    # ---------------------------------------------------------------- recommendations and similarities

    def recommend(self, user_ids: Any, n: int = 10, exclude_seen: bool = True, *, device: str = "cpu") -> pd.DataFrame:
        """Return the best n items of each user.

        Parameters
        ----------
        user_ids : id or array_like of ids
        n : int
            At most the number of items. Fewer rows come back for a user with fewer unseen items.
        exclude_seen : bool
            Leave out items that the user has rated.
        device : str
            Where to score and rank: "cpu", "cuda", "cuda:1", ..., or "auto".

        Returns
        -------
        DataFrame
            Columns user, item, score, rank (1 is best) and source: "model", or "popular" for a user who was not in
            the training data and gets the most rated items, scored by their mean rating. Items are ranked by scores
            before clipping, which makes ties; of equal ones the first in the training data comes first.

        Raises
        ------
        DeviceError
            Where a GPU is asked for and there is none.
        """

        def best(users: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            seen = self._statistics.seen[users] if exclude_seen else None
            factors = self.user_factors_[users], self.item_factors_
            return top_items(*factors, self.item_biases_, n, seen=seen, device=device)

        return self._recommend_with(best, user_ids, n)

    def _recommend_with(self, best: FindBest, user_ids: Any, n: int) -> pd.DataFrame:
        """Return the table of `recommend` from a search for the best items of known users."""
        self._check_fitted()
        check_list_length(n, self.interactions_.n_items)
        queried = as_queried_ids(user_ids)
        block = max(1, _BLOCK_ENTRIES // n)
        parts = [queried[start : start + block] for start in range(0, max(1, queried.size), block)]
        frames = [self._recommend_block(best, part, n) for part in parts]
        # An empty column has no type of its own and would spoil that of the others.
        return pd.concat([frame for frame in frames if not frame.empty] or frames[:1], ignore_index=True)

    def _recommend_block(self, best: FindBest, ids: np.ndarray, n: int) -> pd.DataFrame:
        users = self.interactions_.users.lookup(ids)
        known = users >= 0
        popular = top_k(self._statistics.item_counts[None], n)[0]  # (n,)
        items = np.tile(popular, (users.size, 1))  # (b, n)
        scores = self._statistics.item_means[items]
        items[known], found = best(users[known])
        offsets = self.user_biases_[users[known], None] + self.global_mean_
        scores[known] = self._clip(found.astype(np.float64) + offsets)
        return recommendation_frame(ids, self.interactions_.item_ids, items, scores, known)

    def to_faiss(self, metric: str = "inner_product", factory: str | None = None) -> FaissItems:
        """Return the items as a faiss index, for the nearest neighbours of users (needs the extra ``ann``).

        Parameters
        ----------
        metric : {"inner_product", "l2"}
            What the index compares by; the nearest items are the best ones either way, see
            `air_recsys.models.ann.FaissItems`.
        factory : str, optional
            What `faiss.index_factory` makes: "Flat" (exact, the default), "HNSW32", "IVF256,Flat", ...

        Raises
        ------
        ParameterError
            For an unknown metric, and for a factory that faiss refuses, such as one with more cells than items.
        MissingExtraError
            Where faiss is not installed.
        """
        self._check_fitted()
        return FaissItems(self, metric, factory)

    @cached_property
    def _statistics(self) -> TrainingStatistics:
        return TrainingStatistics(self.interactions_)

    @cached_property
    def user_similarities_(self) -> SimilarityGraph | None:
        """What `similar_users` looks at: the learned graph."""
        return self.user_graph_

    @cached_property
    def item_similarities_(self) -> SimilarityGraph | None:
        """What `similar_items` looks at: the learned graph."""
        return self.item_graph_

    def similar_users(self, user_id: Hashable, n: int = 10) -> pd.DataFrame:
        """Return the n users most alike to one: from the learned graph, else by the cosine of the factors."""
        self._check_fitted()
        return self._similar(self.user_similarities_, self.interactions_.users, self.user_factors_, user_id, n)

    def similar_items(self, item_id: Hashable, n: int = 10) -> pd.DataFrame:
        """Return the n items most alike to one: from the learned graph, else by the cosine of the factors."""
        self._check_fitted()
        return self._similar(self.item_similarities_, self.interactions_.items, self.item_factors_, item_id, n)

    @staticmethod
    def _similar(graph: SimilarityGraph | None, index: Any, factors: np.ndarray, id: Any, n: int) -> pd.DataFrame:
        if graph is not None:
            return graph.neighbors(id, n)
        check_integer("n", n, minimum=1)
        row = index.lookup([id])[0]
        if row < 0:
            raise UnknownIdError(index.kind, [id])
        norms = np.linalg.norm(factors, axis=1)
        cosine = factors @ factors[row] / np.maximum(norms * norms[row], np.finfo(np.float32).tiny)
        cosine[row] = -np.inf  # last, so never among all but one
        best = top_k(cosine[None], min(n, cosine.size))[0][: cosine.size - 1]
        return pd.DataFrame({index.kind: index.ids[best], "weight": cosine[best]})

    # ---------------------------------------------------------------- files

    def _saved_parameters(self, data: Interactions) -> dict[str, Any]:
        """Return the parameters of a model of `data` as JSON can hold them."""
        parameters: dict[str, Any] = self.get_params(deep=False)
        state = parameters.get("random_state")
        if state is not None and not isinstance(state, (int, np.integer)):
            parameters["random_state"] = None  # a generator's position is not part of a model
        return {name: value.item() if isinstance(value, np.generic) else value for name, value in parameters.items()}

    def _after_load(self) -> None:
        """Bring back what JSON could not hold."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to one file (safetensors with JSON metadata), replacing an older one at once.

        An interrupted save leaves the old file whole. Ids must be all integers or all strings on a side.
        """
        self._check_fitted()
        return files.write(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote; no code in the file is run.

        Raises
        ------
        ModelFileError
            Where the file is truncated, not a model, of another model class, or of a newer format.
        """
        return files.read(cls, path)


def _warn_if_constant(data: Interactions, learns: bool) -> None:
    if learns or data.ratings.min() != data.ratings.max():
        return
    warnings.warn(
        f"all {data.n_ratings} rating(s) equal {data.ratings[0]:g}: nothing tells good pairs from bad ones; for "
        "interactions that are only ever positive set unobserved_weight > 0",
        DataWarning,
        stacklevel=3,
    )
