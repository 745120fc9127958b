"""`Recommender`: the contract of every model, from the factors that each of them ends in."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr

from air_recsys.data.interactions import Interactions, as_interactions
from air_recsys.exceptions import DataError, NotFittedError
from air_recsys.graphs import SimilarityGraph
from air_recsys.metrics import rmse
from air_recsys.models.alike import KnowsSimilarities
from air_recsys.models.card import model_card
from air_recsys.models.locks import lock_of
from air_recsys.models.pairs import Unknown, fallback_scores, pair_indices, prediction_table
from air_recsys.models.ranking.candidates import allowed_items, list_length
from air_recsys.models.ranking.faiss_items import FaissItems
from air_recsys.models.ranking.lists import best_items_of, best_rated, recommend_with
from air_recsys.models.scoring import pairs_of
from air_recsys.models.solvers import plain
from air_recsys.models.state import Ending, Factors, FittedState
from air_recsys.models.storage.checks import check_attributes, check_state
from air_recsys.models.storage.files import (
    FORMAT_VERSION,
    Contents,
    class_of,
    read_contents,
    saving,
    state_from_contents,
    state_to_contents,
    write_contents,
)
from air_recsys.models.storage.old_versions import upgraded
from air_recsys.models.storage.snapshots import snapshots_from_contents, snapshots_to_contents
from air_recsys.nn.devices import resolve_device
from air_recsys.storage.validation import check_integer, check_parameters
from air_recsys.training import Callback, check_callbacks

_OF_TRAINING = ("n_iter", "stopped_by", "device")  # what a file holds of the ending


class Recommender(KnowsSimilarities, BaseEstimator):
    """Base class of all models: `fit` keeps the contract, and `_fit` of a subclass does the mathematics.

    The fitted state is one value, an `air_recsys.models.state.FittedState`, which is replaced in one step. The
    attributes read from it.

    Several threads may use one model. A method reads the state once, so later writes do not affect its result. `fit`,
    `partial_fit` and assignments of graphs wait for each other. To read several attributes or results of the same
    state, make a shallow copy, ``copy.copy(model)``: it shares the arrays and never changes.
    """

    _clips = False
    _not_copied: ClassVar[tuple[str, ...]] = ("_lock",)

    # ---------------------------------------------------------------- fitting

    def fit(self, interactions: Any, *, callbacks: Iterable[Callback] = ()) -> Self:
        """Train on interactions and return the model.

        Parameters
        ----------
        interactions : Interactions, sparse matrix, DataFrame or ndarray
            Anything that `air_recsys.data.interactions.as_interactions` accepts.
        callbacks : iterable of callable
            Functions that are called with each `air_recsys.training.Record` of an iterative training. If one returns
            True, the training stops.

        Raises
        ------
        DataError, ParameterError
            Before any work; the message says what was expected and what was found.
        DivergenceError
            If the training diverges to NaN or infinity; the model then holds its last finite state.

        Notes
        -----
        A fitted model keeps its old state, and answers from it, until the new training ends. If the training fails
        with another error, the old state stays. Other threads that write wait until then.
        """
        check_callbacks(callbacks)
        data = self._checked_data(interactions)
        with lock_of(self):
            self._state = self._fit(data)
        return self

    def _checked_data(self, interactions: Any) -> Interactions:
        """Return what `fit` was given as interactions, or raise where it cannot train on them."""
        data = self._as_data(interactions)
        if data.weights is not None:
            raise DataError(f"{type(self).__name__} knows no weights of ratings, found interactions with weights")
        if any(data.n_features):
            raise DataError(
                f"{type(self).__name__} reads no features and no similarities of users and items, found interactions "
                "with some"
            )
        self.check(data)
        return data

    def _as_data(self, interactions: Any) -> Interactions:
        """Return what `fit` was given as interactions."""
        return as_interactions(interactions)

    def check(self, data: Interactions) -> None:
        """Raise `ParameterError` where `fit` on these interactions would, before any work."""
        self._check_parameters()

    def _check_parameters(self) -> None:
        """Raise `ParameterError` for a parameter that is out of its range, whatever the data and the machine."""
        if is_dataclass(self):
            check_parameters(self)
        state = getattr(self, "random_state", None)
        if not isinstance(state, np.random.Generator | np.random.RandomState | None):
            check_integer("random_state", state)

    def _fit(self, data: Interactions) -> FittedState:
        raise NotImplementedError

    # ---------------------------------------------------------------- what was learned

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {name: value for name, value in dict(state).items() if name not in self._not_copied}

    def _fitted(self) -> FittedState:
        """Return the state of this moment; a method asks once, since the next one may be another."""
        state = self._state
        if state is None:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return state

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
    def rating_scale_(self) -> tuple[float, float]:
        """Lowest and highest rating: the stated scale, else the range of the ratings in `fit`."""
        return self._fitted().rating_scale

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
        """The mean that is part of every score."""
        return self._fitted().factors.mean

    @property
    def transform_graphs_(self) -> list[SimilarityGraph]:
        """Graphs over other rows than users and items; mostly empty."""
        return self._fitted().transform_graphs

    @property
    def history_(self) -> pd.DataFrame:
        """The course of the training, a row per record; empty for models without an iterative training."""
        return self._fitted().history

    @property
    def n_iter_(self) -> int:
        """Number of training steps of the kept state; only for models that are trained in steps."""
        return self._of_ending("n_iter")

    @property
    def stopped_by_(self) -> str:
        """Why the training ended; only for models that are trained in steps."""
        return self._of_ending("stopped_by")

    def _of_ending(self, name: str) -> Any:
        value = getattr(self._fitted().ending, name)
        if value is None:
            raise AttributeError(f"this {type(self).__name__} has no {name}_")
        return value

    def _repr_html_inner(self) -> str:  # what scikit-learn's `_repr_html_` hands on
        """Return what a notebook shows: of a fitted model what was read and learned, else scikit-learn's diagram."""
        state = self._state
        if state is None:
            return estimator_html_repr(self)
        return model_card(repr(self), state, getattr(self, "search_line_", ""))

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return text, and HTML unless scikit-learn is set to ``display="text"``; notebooks look here first."""
        shown = {"text/plain": repr(self)}
        return shown | ({"text/html": self._repr_html_inner()} if get_config()["display"] == "diagram" else {})

    # ---------------------------------------------------------------- scores

    def predict(self, user_ids: Any, item_ids: Any, *, unknown: Unknown = "warn") -> np.ndarray:
        """Return the score of each pair.

        Parameters
        ----------
        user_ids, item_ids : id or array_like of ids
            Pairs, position by position; a single id goes with all of the other side.
        unknown : {"warn", "mean", "error"}
            A pair with an id that is not in the training data gets the mean rating of its known side, or of all
            ratings if both ids are unknown. "warn" warns with the number of such pairs and the nearest known ids, and
            raises an error if no id of a side is known. "mean" does not warn. "error" raises an error for any unknown
            id.

        Returns
        -------
        ndarray of float64, shape (n,)

        Raises
        ------
        UnknownIdError
            With ``unknown="error"``, and with "warn" if all ids of a side are unknown.

        See Also
        --------
        predict_table : Also returns the source of each score.
        """
        state = self._fitted()
        return self._predicted(state, *pair_indices(state, user_ids, item_ids, unknown))

    def predict_table(self, user_ids: Any, item_ids: Any, *, unknown: Unknown = "warn") -> pd.DataFrame:
        """Return the score of each pair and its source.

        Parameters
        ----------
        user_ids, item_ids, unknown
            As in `predict`.

        Returns
        -------
        DataFrame
            Columns user, item, score and source: "model", or for an unknown id "user mean", "item mean" or "mean".

        Raises
        ------
        UnknownIdError
            As `predict` does.

        Examples
        --------
        >>> from air_recsys import BiasModel
        >>> model = BiasModel().fit([[5.0, 3.0], [4.0, 1.0]])
        >>> model.predict_table([0, 7], 1, unknown="mean")["source"].tolist()
        ['model', 'item mean']
        """
        state = self._fitted()
        pairs = pair_indices(state, user_ids, item_ids, unknown)
        return prediction_table(state, user_ids, item_ids, pairs, score=self._predicted(state, *pairs))

    def _predicted(
        self, state: FittedState, users: np.ndarray, items: np.ndarray, times: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the score of each pair of indices, -1 for unknown ids, at a time where given."""
        known = (users >= 0) & (items >= 0)
        scores = np.empty(users.size)
        times = None if times is None else times[known]
        scores[known] = self._score_pairs(state, users[known], items[known], times)
        if not known.all():
            scores[~known] = fallback_scores(state, users[~known], items[~known])
        return scores

    def _score_pairs(
        self, state: FittedState, users: np.ndarray, items: np.ndarray, times: np.ndarray | None = None
    ) -> np.ndarray:
        return state.scores(users, items, self._clips, times)

    def score(self, test: Any, y: None = None) -> float:
        """Return minus the RMSE of predictions for other ratings, so larger is better.

        `cross_val_score` and `GridSearchCV` of scikit-learn call this method. They split rows, so pass them a table
        with one rating per row, and no y.

        Parameters
        ----------
        test : Interactions, DataFrame, sparse matrix or ndarray
            Ratings with the ids of the training data. Pairs with an unknown id count, with the mean that `predict`
            returns. A model with ``time="drift"`` reads the timestamps of Interactions.
        y : None
            Ignored; scikit-learn passes it.

        Returns
        -------
        float
            At most 0, in the unit of the ratings.

        Examples
        --------
        >>> import pandas as pd
        >>> from sklearn.model_selection import GridSearchCV
        >>> from air_recsys import BiasModel
        >>> ratings = pd.DataFrame({"user": [1, 1, 2, 2, 3, 3], "item": [7, 8] * 3, "rating": [5, 3, 4, 2, 5, 3]})
        >>> BiasModel(bias_decay=1e9).fit(ratings).score(ratings) > -1.2
        True
        >>> GridSearchCV(BiasModel(), {"bias_decay": [0.1, 1e9]}, cv=3).fit(ratings).best_params_
        {'bias_decay': 0.1}
        """
        state, data = self._fitted(), as_interactions(test, allow_negative=True)
        return -rmse(data.ratings, self._predicted(state, *pairs_of(state, data)))

    # ---------------------------------------------------------------- recommendations

    def recommend(
        self,
        user_ids: Any,
        n: int = 10,
        exclude_seen: bool = True,
        *,
        items: Any = None,
        exclude: Any = None,
        device: str = "cpu",
    ) -> pd.DataFrame:
        """Return the best n items of each user.

        Parameters
        ----------
        user_ids : id or array_like of ids
        n : int
            Length of a list; a user with fewer items left gets fewer rows.
        exclude_seen : bool
            Leave out items that the user has rated.
        items : id, array_like or set of ids, optional
            Candidates, such as the items in stock; by default all items.
        exclude : id, array_like or set of ids, optional
            Items that are never recommended.
        device : str
            Where to score and rank: "cpu", "cuda", "cuda:1", ..., or "auto".

        Returns
        -------
        DataFrame
            Columns user, item, score, rank (1 is best) and source. The source is "model", or "popular" for a user who
            is not in the training data. Such a user gets the items with the highest damped mean rating: five ratings
            of the overall mean are added to each item, and of equal means the one with more ratings comes first. Items
            are ranked by their scores before clipping. If scores are equal up to rounding, the item that is first in
            the training data comes first, see `air_recsys.models.ranking.ties`.

        Raises
        ------
        UnknownIdError
            For an unknown id in `items` or `exclude`.
        DeviceError
            If a GPU is requested and there is none.

        Examples
        --------
        >>> from air_recsys import BiasModel
        >>> ratings = [[5.0, 3.0, 1.0, np.nan], [4.0, np.nan, 2.0, 5.0]]
        >>> BiasModel().fit(ratings).recommend(1, exclude_seen=False, exclude=[3, 0])["item"].tolist()
        [1, 2]
        """
        state, place = self._fitted(), resolve_device(device)
        allowed = allowed_items(state.data.items, items, exclude)
        length = list_length(n, state.data.n_items, allowed)
        best = partial(best_items_of, state, n=length, exclude_seen=exclude_seen, device=place, allowed=allowed)
        popular = partial(best_rated, state, length, allowed)
        return recommend_with(best, state, user_ids, length, clips=self._clips, popular=popular)

    def to_faiss(self, metric: str = "inner_product", factory: str | None = None) -> FaissItems:
        """Return the items as a faiss index, for the nearest neighbours of users (needs the extra ``ann``).

        Parameters
        ----------
        metric : {"inner_product", "l2"}
            How the index compares vectors. With both the nearest items are the best ones, see
            `air_recsys.models.ranking.faiss_items.FaissItems`.
        factory : str, optional
            What `faiss.index_factory` makes: "Flat" (exact, the default), "HNSW32", "IVF256,Flat", ...

        Raises
        ------
        ParameterError
            For an unknown metric, and for a factory that faiss refuses, such as one with more cells than items.
        MissingExtraError
            If faiss is not installed.
        """
        return FaissItems(self._fitted(), metric, factory, clips=self._clips)

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

        If the save is interrupted, or if `load` would refuse the file, the old file stays unchanged. The ids of a side
        must be all integers or all strings. The new file has the permissions of the old one; a symbolic link stays a
        link.

        Raises
        ------
        DataError
            For ids of other kinds.
        ModelFileError
            If the file cannot be written, or could not be loaded; the message says what was expected and found.
        """
        state = self._fitted()
        with saving(path):
            check_state(state)
        attributes, arrays = state_to_contents(state)
        ending = {name: getattr(state.ending, name) for name in _OF_TRAINING}
        attributes["course"] = {f"{name}_": value for name, value in ending.items() if value is not None}
        if state.ending.snapshots:
            with saving(path):
                attributes["snapshots"], kept = snapshots_to_contents(state.ending.snapshots, state.data)
            arrays |= kept

        def check(contents: Contents) -> None:
            check_attributes(contents.attributes)
            self._unfitted(contents)._restore(state, contents.arrays)

        return write_contents(path, type(self).__name__, self._saved_parameters(), attributes, arrays, check)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, mapped: bool = False) -> Self:
        """Read a model that `save` wrote; no code in the file is run.

        Parameters
        ----------
        path : path
        mapped : bool
            Map the large arrays from the file instead of copying them; processes on one machine then share them. The
            file must not be shortened or overwritten while the model is in use; `save` is safe, as it replaces the
            file.

        Raises
        ------
        ModelFileError
            If the file is truncated, damaged, not a model, of another model class or of a newer format, or if it has
            values that no model has, such as parameters out of range.
        """
        return read_contents(path, cls._read, mapped=mapped)

    @classmethod
    def _unfitted(cls, contents: Contents) -> Self:
        """Return the model of a file without what it has learned, its parameters checked."""
        kind, parameters = class_of(cls, contents), contents.parameters
        if contents.version < FORMAT_VERSION:
            parameters = upgraded(contents.model, parameters, list(kind().get_params(deep=False)))
        model = kind._from_saved(parameters)
        model._check_parameters()
        return model

    @classmethod
    def _read(cls, contents: Contents) -> Self:
        model = cls._unfitted(contents)
        state = state_from_contents(contents)
        course = contents.attributes["course"]
        kept = snapshots_from_contents(contents.attributes.get("snapshots", []), contents.arrays, state.data)
        of_course = {name: course[f"{name}_"] for name in _OF_TRAINING if f"{name}_" in course}
        ending = Ending(**of_course, snapshots=kept)
        model._state = model._restore(replace(state, ending=ending), contents.arrays)
        return model
