"""`Recommender`: the contract of every model, from the factors that each of them ends in."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from air_recsys.exceptions import DataError, NotFittedError, UnknownIdError
from air_recsys.graphs import SimilarityGraph
from air_recsys.interactions import Interactions, as_interactions
from air_recsys.metrics.ranking import top_k
from air_recsys.models.ranking.faiss_items import FaissItems
from air_recsys.models.ranking.lists import recommend_with
from air_recsys.models.ranking.top_items import top_items
from air_recsys.models.state import Factors, FittedState
from air_recsys.models.storage.files import (
    FORMAT_VERSION,
    Contents,
    class_of,
    read_contents,
    state_from_contents,
    state_to_contents,
    write_contents,
)
from air_recsys.models.storage.old_versions import upgraded
from air_recsys.parameters import check_parameters
from air_recsys.solvers import plain
from air_recsys.training import Callback
from air_recsys.validation import check_choice, check_integer

_OF_TRAINING = ("n_iter_", "stopped_by_", "device_")  # what training left besides the state


class Recommender(BaseEstimator):
    """Base of all models: `fit` owns the contract, a subclass's `_fit` the mathematics.

    What was learned is one value, an `air_recsys.models.state.FittedState`, that is replaced in one step; the
    attributes read from it.
    """

    _clips = False
    _state: FittedState | None = None

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
        if data.weights is not None:
            raise DataError(f"{type(self).__name__} knows no weights of ratings, found interactions with weights")
        self.check(data)
        self._forget()
        self._state = self._fit(data)
        return self

    def _forget(self) -> None:
        """Drop all that an earlier fit has left: a fit that fails leaves no half of two models."""
        parameters = self.get_params(deep=False)
        for name in [name for name in vars(self) if name not in parameters]:
            delattr(self, name)

    def check(self, data: Interactions) -> None:
        """Raise `ParameterError` where `fit` on these interactions would, before any work."""
        if is_dataclass(self):
            check_parameters(self)

    def _fit(self, data: Interactions) -> FittedState:
        raise NotImplementedError

    # ---------------------------------------------------------------- what was learned

    def _fitted(self) -> FittedState:
        if self._state is None:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return self._state

    def check_fitted(self) -> None:
        """Raise `NotFittedError` before `fit`."""
        self._fitted()

    def __sklearn_is_fitted__(self) -> bool:
        return self._state is not None

    @property
    def interactions_(self) -> Interactions:
        """The training data."""
        return self._fitted().data

    @property
    def factors_(self) -> Factors:
        """Factors and biases of both sides, and the mean."""
        return self._fitted().factors

    @property
    def user_factors_(self) -> np.ndarray:
        """Factors p of the users, (n_users, r): a score is mean + b_u + c_i + p_u . q_i, as ratings are."""
        return self._fitted().factors.user_factors

    @property
    def item_factors_(self) -> np.ndarray:
        """Factors q of the items, (n_items, r)."""
        return self._fitted().factors.item_factors

    @property
    def user_biases_(self) -> np.ndarray:
        """Biases b of the users, (n_users,)."""
        return self._fitted().factors.user_biases

    @property
    def item_biases_(self) -> np.ndarray:
        """Biases c of the items, (n_items,)."""
        return self._fitted().factors.item_biases

    @property
    def global_mean_(self) -> float:
        """The mean that all scores have in common."""
        return self._fitted().factors.mean

    @property
    def user_graph_(self) -> SimilarityGraph | None:
        """The learned graph of the users; None where the model learns none. One with labels can take its place."""
        return self._fitted().user_graph

    @user_graph_.setter
    def user_graph_(self, graph: SimilarityGraph) -> None:
        self._state = self._fitted().with_graph("user", graph)

    @property
    def item_graph_(self) -> SimilarityGraph | None:
        """The learned graph of the items; None where the model learns none. One with labels can take its place."""
        return self._fitted().item_graph

    @item_graph_.setter
    def item_graph_(self, graph: SimilarityGraph) -> None:
        self._state = self._fitted().with_graph("item", graph)

    @property
    def transform_graphs_(self) -> list[SimilarityGraph]:
        """Graphs over other rows than users and items; mostly empty."""
        return self._fitted().transform_graphs

    @property
    def history_(self) -> pd.DataFrame:
        """The course of training; empty where there was none."""
        return self._fitted().history

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
        self._fitted()
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
        places = index.lookup(ids)
        if unknown == "error" and (places < 0).any():
            queried = np.atleast_1d(np.asarray(ids, dtype=object))
            raise UnknownIdError(kind, queried[places < 0].tolist(), "unknown='mean' predicts a mean instead")
        return places

    def _score_pairs(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        return self._fitted().scores(users, items, self._clips)

    def _fallback(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        statistics = self._fitted().statistics
        by_item = np.where(items >= 0, statistics.item_means[items], statistics.mean)
        return np.where(users >= 0, statistics.user_means[users], by_item)

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
        state = self._fitted()

        def best(users: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            seen = state.statistics.seen[users] if exclude_seen else None
            factors = state.factors.user_factors[users], state.factors.item_factors
            return top_items(*factors, state.factors.item_biases, n, seen=seen, device=device)

        return recommend_with(best, state, user_ids, n, clips=self._clips)

    def to_faiss(self, metric: str = "inner_product", factory: str | None = None) -> FaissItems:
        """Return the items as a faiss index, for the nearest neighbours of users (needs the extra ``ann``).

        Parameters
        ----------
        metric : {"inner_product", "l2"}
            What the index compares by; the nearest items are the best ones either way, see
            `air_recsys.models.ranking.faiss_items.FaissItems`.
        factory : str, optional
            What `faiss.index_factory` makes: "Flat" (exact, the default), "HNSW32", "IVF256,Flat", ...

        Raises
        ------
        ParameterError
            For an unknown metric, and for a factory that faiss refuses, such as one with more cells than items.
        MissingExtraError
            Where faiss is not installed.
        """
        return FaissItems(self._fitted(), metric, factory, clips=self._clips)

    @property
    def user_similarities_(self) -> SimilarityGraph | None:
        """What `similar_users` looks at: the learned graph."""
        return self.user_graph_

    @property
    def item_similarities_(self) -> SimilarityGraph | None:
        """What `similar_items` looks at: the learned graph."""
        return self.item_graph_

    def similar_users(self, user_id: Hashable, n: int = 10) -> pd.DataFrame:
        """Return the n users most alike to one: from the learned graph, else by the cosine of the factors."""
        return self._similar(self.user_similarities_, self.interactions_.users, self.user_factors_, user_id, n)

    def similar_items(self, item_id: Hashable, n: int = 10) -> pd.DataFrame:
        """Return the n items most alike to one: from the learned graph, else by the cosine of the factors."""
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

    def _saved_parameters(self) -> dict[str, Any]:
        """Return the parameters as JSON can hold them."""
        saved: dict[str, Any] = self.get_params(deep=False)
        state = saved.get("random_state")
        if state is not None and not isinstance(state, (int, np.integer)):
            saved["random_state"] = None  # a generator's position is not part of a model
        return {name: plain(value) for name, value in saved.items()}

    @classmethod
    def _from_saved(cls, parameters: dict[str, Any]) -> Self:
        """Return an unfitted model with the parameters of a file."""
        return cls(**parameters)

    def _restore(self, state: FittedState, arrays: Mapping[str, np.ndarray]) -> FittedState:
        """Return the state of a file, completed by what only this class knows of it."""
        return state

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to one file (safetensors with JSON metadata), replacing an older one at once.

        An interrupted save leaves the old file whole. Ids must be all integers or all strings on a side.
        """
        attributes, arrays = state_to_contents(self._fitted())
        attributes["course"] = {name: vars(self)[name] for name in _OF_TRAINING if name in vars(self)}
        return write_contents(path, type(self).__name__, self._saved_parameters(), attributes, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote; no code in the file is run.

        Raises
        ------
        ModelFileError
            Where the file is truncated, not a model, of another model class, or of a newer format.
        """
        return read_contents(path, cls._read)

    @classmethod
    def _read(cls, contents: Contents) -> Self:
        kind, parameters = class_of(cls, contents), contents.parameters
        if contents.version < FORMAT_VERSION:
            parameters = upgraded(contents.model, parameters, list(kind().get_params(deep=False)))
        model = kind._from_saved(parameters)
        state = state_from_contents(contents)
        for name, value in contents.attributes["course"].items():
            if name in _OF_TRAINING:
                setattr(model, name, value)
        model._state = model._restore(state, contents.arrays)
        return model
