"""`Recommender`: the contract of every model, from the factors that each of them ends in."""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from air_recsys.exceptions import DataError, DataWarning, NotFittedError, ParameterError, UnknownIdError
from air_recsys.graphs import SimilarityGraph
from air_recsys.interactions import Interactions, as_interactions
from air_recsys.metrics.ranking import top_k
from air_recsys.models import files
from air_recsys.models.statistics import TrainingStatistics
from air_recsys.training import Callback
from air_recsys.validation import check_choice, check_integer

_BLOCK_ENTRIES = 16_000_000


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
        for name in ("_statistics", "global_mean_", "snapshots_", "n_iter_", "stopped_by_", "device_"):
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

    def _score_block(self, users: np.ndarray) -> np.ndarray:
        """Return the scores of all items for some users, shape (n, n_items), unclipped: clipping makes ties."""
        products = self.user_factors_[users] @ self.item_factors_.T
        return products + self.user_biases_[users, None] + self.item_biases_ + self.global_mean_

    def _clip(self, scores: np.ndarray) -> np.ndarray:
        return scores.clip(*self._statistics.rating_range) if self._clips else scores

    def _fallback(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        known = self._statistics
        by_item = np.where(items >= 0, known.item_means[items], known.mean)
        return np.where(users >= 0, known.user_means[users], by_item)

    # ---------------------------------------------------------------- recommendations and similarities

    def recommend(self, user_ids: Any, n: int = 10, exclude_seen: bool = True) -> pd.DataFrame:
        """Return the best n items of each user.

        Parameters
        ----------
        user_ids : id or array_like of ids
        n : int
            At most the number of items. Fewer rows come back for a user with fewer unseen items.
        exclude_seen : bool
            Leave out items that the user has rated.

        Returns
        -------
        DataFrame
            Columns user, item, score, rank (1 is best) and source: "model", or "popular" for a user who was not in
            the training data and gets the most rated items, scored by their mean rating.
        """
        self._check_fitted()
        n_items = self.interactions_.n_items
        if check_integer("n", n, minimum=1) > n_items:
            raise ParameterError(f"n must be at most the number of items, {n_items}, found {n}")
        queried = [user_ids] if np.ndim(user_ids) == 0 else list(user_ids)
        indices = self.interactions_.users.lookup(queried)
        block = max(1, _BLOCK_ENTRIES // n_items)
        frames = []
        for start in range(0, len(queried), block):
            part = slice(start, start + block)
            frames.append(self._recommend_block(queried[part], indices[part], n, exclude_seen))
        if not frames:
            return pd.DataFrame(columns=["user", "item", "score", "rank", "source"])
        # An empty column has no type of its own and would spoil that of the others.
        return pd.concat([frame for frame in frames if not frame.empty] or frames[:1], ignore_index=True)

    def _recommend_block(self, ids: list, users: np.ndarray, n: int, exclude_seen: bool) -> pd.DataFrame:
        known = users >= 0
        ranking = np.tile(self._statistics.item_counts.astype(np.float64), (users.size, 1))  # (b, n_items)
        ranking[known] = self._score_block(users[known])
        if exclude_seen:
            seen = self._statistics.seen[users[known]].tocoo()
            ranking[np.flatnonzero(known)[seen.row], seen.col] = -np.inf
        best = top_k(ranking, n)  # (b, n), seen items last
        rows, ranks = np.nonzero(~np.isneginf(np.take_along_axis(ranking, best, axis=1)))
        items = best[rows, ranks]
        shown = np.empty(len(ids), dtype=object)
        shown[:] = ids
        return pd.DataFrame(
            {
                "user": shown[rows].tolist(),
                "item": self.interactions_.item_ids[items],
                "score": np.where(known[rows], self._clip(ranking[rows, items]), self._statistics.item_means[items]),
                "rank": ranks + 1,
                "source": np.where(known[rows], "model", "popular"),
            }
        )

    @cached_property
    def _statistics(self) -> TrainingStatistics:
        return TrainingStatistics(self.interactions_)

    def similar_users(self, user_id: Hashable, n: int = 10) -> pd.DataFrame:
        """Return the n users most alike to one: from the learned graph, else by the cosine of the factors."""
        self._check_fitted()
        return self._similar(self.user_graph_, self.interactions_.users, self.user_factors_, user_id, n)

    def similar_items(self, item_id: Hashable, n: int = 10) -> pd.DataFrame:
        """Return the n items most alike to one: from the learned graph, else by the cosine of the factors."""
        self._check_fitted()
        return self._similar(self.item_graph_, self.interactions_.items, self.item_factors_, item_id, n)

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

    def _saved_parameters(self) -> dict[str, Any]:
        """Return the parameters as JSON can hold them."""
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
