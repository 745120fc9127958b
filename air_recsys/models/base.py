"""`Recommender`: the contract of every model, from the factors that each of them ends in."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd

from air_recsys.data.doubts import doubts_about_span
from air_recsys.data.ids import asked_ids
from air_recsys.data.interactions import Interactions, as_interactions
from air_recsys.data.scales import told_of_test
from air_recsys.exceptions import DataError, DataWarning, UnansweredError
from air_recsys.metrics import rmse
from air_recsys.models.forgetting import Left, left_of
from air_recsys.models.pairs import Unknown, asked_pairs, fallback_scores, pair_indices, pairs_of, prediction_table
from air_recsys.models.ranking.allowed import Allowed, allowed_items, list_length
from air_recsys.models.ranking.faiss_items import FaissItems
from air_recsys.models.ranking.lists import best_items_of, best_rated, recommend_with
from air_recsys.models.ratings import Clip
from air_recsys.models.similar import KnowsSimilarities
from air_recsys.models.state import FittedState, lock_of
from air_recsys.models.storage.contents import check_kept
from air_recsys.models.storage.saved import SavedModel
from air_recsys.nn.devices import gpu_of
from air_recsys.storage.lazy import torch
from air_recsys.storage.threads import threads
from air_recsys.storage.validation import check_choice
from air_recsys.training import Callback, check_callbacks

_UNANSWERED = {
    "explain": "no reasons of a score",
    "feature_effects": "no effects of features",
    "fold_in": "no equations of a new user's row",
    "memory_plan": "no plan of its memory",
    "partial_fit": "no equations of a new row",
    "predict_interval": "no deviations of its scores",
    "predict_proba": "no probabilities of ratings",
    "uncertainty": "no deviations of its scores",
}


class SaysWhatItLacks:
    """Base class of models: a question of all models that this one does not answer is an error with the reason."""

    unanswered: ClassVar[Mapping[str, str]] = _UNANSWERED

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in self.unanswered:
                raise UnansweredError(
                    f"{type(self).__name__} has {self.unanswered[name]}, so no {name}; docs/capabilities.md names "
                    "models that have one"
                )
            return super().__getattr__(name)  # type: ignore[misc]  # that of `Estimator`, which raises what a property raised


class Recommender(SaysWhatItLacks, KnowsSimilarities, SavedModel):
    """Base class of all models: `fit` keeps the contract, and `learn` of a subclass does the mathematics.

    The fitted state is one value, an `air_recsys.models.state.FittedState`, which is replaced in one step. The
    attributes read from it.

    Several threads may use one model. A method reads the state once, so later writes do not affect its result. `fit`,
    `partial_fit` and assignments of graphs wait for each other. To read several attributes or results of the same
    state, make a shallow copy, ``copy.copy(model)``: it shares the arrays and never changes.
    """

    reads_features: ClassVar[bool] = False  # of users and items, and no given graphs
    n_threads: int | None = None  # as many as there are

    @property
    def clips(self) -> Clip:
        """The limit of scores, see `air_recsys.models.ratings.limited`."""
        return False

    def fit(self, interactions: Any, y: None = None, *, callbacks: Iterable[Callback] = ()) -> Self:
        """Train on interactions and return the model.

        Parameters
        ----------
        interactions : Interactions, sparse matrix, DataFrame or ndarray
            Anything that `air_recsys.data.interactions.as_interactions` accepts.
        y : None
            Ratings are a column of the table; pipelines of scikit-learn pass None.
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
        check_no_y(y)
        check_callbacks(callbacks)
        data = self.checked_data(interactions)
        with lock_of(self):
            self._state = self.learn(data)
        return self

    def checked_data(self, interactions: Any) -> Interactions:
        """The interactions that `fit` was given, or an error where it cannot train on them."""
        data = self.as_data(interactions)
        if data.weights is not None and "weight" not in self.columns_read:
            raise DataError(f"{type(self).__name__} knows no weights of ratings, found interactions with weights")
        if any(data.has_places) or (any(data.n_features) and not self.reads_features):
            kinds = "no given similarities" if self.reads_features else "no features and no similarities"
            raise DataError(f"{type(self).__name__} reads {kinds} of users and items, found interactions with some")
        self.check(data)
        check_kept(data, stacklevel=4)
        return data

    @property
    def columns_read(self) -> tuple[str, ...]:
        """The columns "timestamp", "weight" and "relation" of a table, as far as the model reads them."""
        return ()

    def as_data(self, interactions: Any, **how: Any) -> Interactions:
        """The interactions that the model was given; `how` goes to `as_interactions`."""
        data = as_interactions(interactions, reads=self.columns_read, **how)
        if data.kinds is not None:
            raise DataError(f"{type(self).__name__} knows no kinds of events, found some: AIR.for_likes(target=) does")
        for doubt in doubts_about_span(data.ratings):
            warnings.warn(doubt, DataWarning, stacklevel=4)
        return data

    def check(self, data: Interactions) -> None:
        """Raise `ParameterError` where `fit` on these interactions would, before any work."""
        self.check_parameters()

    def learn(self, data: Interactions) -> FittedState:
        """The state that the model learns from checked interactions."""
        raise NotImplementedError

    def forget(self, *, users: Any = None, items: Any = None, pairs: Any = None) -> Self:
        """Remove users, items or pairs from the model, without a training, and return it.

        They leave data, times, weights, features, factors, equations, graphs, counts and means, and so files that are
        written from then on. What the training made of them in others stays until the next `fit`: the factors of items
        and of users who lose no rating, priors, edges, changes over time, the scale, means of features. Errors on
        hidden ratings go, and are measured anew when `predict` needs them.

        Users who lose ratings are solved again from what is left, as `partial_fit` does it; those without any stay, as
        users without ratings, and so do items. Items that came by `partial_fit` and lose ratings are solved again, and
        then their users. So without users who came later the model is what it was before them. Of likes, users are
        what their items make them, the regression and the factors of the items of `fit` stay, and if an item that came
        later loses a like, all such items are made again. Models without `partial_fit` are fitted again.

        Parameters
        ----------
        users, items : id or iterable of ids, optional
        pairs : DataFrame, Interactions, or iterable of (user, item), optional
            Of a table the columns user and item count.

        Raises
        ------
        DataError, UnknownIdError
            Before any change: for unknown ids, pairs that are not there, nothing to forget, and if no rating is left.

        Examples
        --------
        >>> from air_recsys import BiasModel
        >>> model = BiasModel().fit([[5.0, 3.0], [4.0, np.nan], [1.0, 2.0]])
        >>> model.forget(users=2, pairs=[(0, 1)]).interactions_.to_frame().values.tolist()
        [[0.0, 0.0, 5.0], [1.0, 0.0, 4.0]]
        """
        with lock_of(self):
            state = self._fitted()
            state.check_whole()
            return self.take_state(self.without(state, left_of(state.data, users, items, pairs)))

    def without(self, state: FittedState, left: Left) -> FittedState:
        """A state of what is left: learned from that anew."""
        self.check(left.data)
        return self.learn(left.data)

    def predict(self, user_ids: Any, item_ids: Any = None, *, unknown: Unknown = "warn") -> np.ndarray:
        """The score of each pair.

        Parameters
        ----------
        user_ids, item_ids : id or iterable of ids
            Pairs, position by position; a single id goes with all of the other side. A table with the columns user and
            item may stand for both, as `cross_val_predict` of scikit-learn gives it.
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
        return self.predicted_scores(state, *pair_indices(state, *asked_pairs(user_ids, item_ids), unknown))

    def predict_table(self, user_ids: Any, item_ids: Any, *, unknown: Unknown = "warn") -> pd.DataFrame:
        """The score of each pair and its source.

        Parameters
        ----------
        user_ids, item_ids, unknown
            As in `predict`.

        Returns
        -------
        DataFrame
            Columns user, item, score and source: "model", or for an unknown id "user mean", "item mean" or "mean".

        Examples
        --------
        >>> from air_recsys import BiasModel
        >>> model = BiasModel().fit([[5.0, 3.0], [4.0, 1.0]])
        >>> model.predict_table([0, 7], 1, unknown="mean")["source"].tolist()
        ['model', 'item mean']
        """
        state, asked = self._fitted(), asked_pairs(user_ids, item_ids)
        pairs = pair_indices(state, *asked, unknown)
        return prediction_table(*asked, pairs, score=self.predicted_scores(state, *pairs))

    def predicted_scores(
        self, state: FittedState, users: np.ndarray, items: np.ndarray, times: np.ndarray | None = None
    ) -> np.ndarray:
        """The score of each pair of indices, -1 for unknown ids, at a time where given."""
        known = (users >= 0) & (items >= 0)
        scores = np.empty(users.size)
        times = None if times is None else times[known]
        scores[known] = self.score_pairs(state, users[known], items[known], times)
        if not known.all():
            scores[~known] = self.unknown_scores(state, users[~known], items[~known])
        return scores

    def unknown_scores(self, state: FittedState, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The score of each pair of indices of which one at least is -1, for an unknown id."""
        return fallback_scores(state, users, items)

    def score_pairs(
        self, state: FittedState, users: np.ndarray, items: np.ndarray, times: np.ndarray | None = None
    ) -> np.ndarray:
        """The score of each pair of known indices, at a time where given."""
        return state.scores(users, items, self.clips, times)

    def score(self, test: Any, y: None = None) -> float:
        """Minus the RMSE of predictions for other ratings, so larger is better.

        `cross_val_score` and `GridSearchCV` of scikit-learn call this method. They split rows, so pass them a table
        with one rating per row, and no y.

        Parameters
        ----------
        test : Interactions, DataFrame, sparse matrix or ndarray
            Ratings with the ids of the training data; a matrix has its rows and columns. Pairs with an unknown id
            count, with the mean of `predict`. A model with ``time="drift"`` reads the timestamps.
        y : None
            As in `fit`.

        Returns
        -------
        float
            At most 0, in the unit of the ratings.

        Examples
        --------
        >>> import pandas as pd
        >>> from sklearn.model_selection import GridSearchCV
        >>> from air_recsys import BiasModel
        >>> ratings = pd.DataFrame({"user": [1, 2, 3] * 2, "item": [7] * 3 + [8] * 3, "rating": [5, 4, 5, 3, 2, 3]})
        >>> BiasModel(bias_decay=1e9).fit(ratings).score(ratings) > -1.2
        True
        >>> GridSearchCV(BiasModel(), {"bias_decay": [0.1, 1e9]}, cv=3).fit(ratings).best_params_
        {'bias_decay': 0.1}
        """
        check_no_y(y)
        state, data = self._fitted(), self.as_data(test, allow_negative=True)
        users, items, times = pairs_of(state, data, test)
        unknown, told = np.count_nonzero((users < 0) | (items < 0)), told_of_test(data.ratings, state.rating_scale)
        if unknown > users.size / 2:
            told = f"{unknown} of {users.size} pairs have an unknown user or item and count with means: shuffle folds"
        if told:
            warnings.warn(told, DataWarning, stacklevel=2)
        return -rmse(np.zeros(users.size), data.misses(self.predicted_scores(state, users, items, times)))

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
        """The best n items of each user.

        Parameters
        ----------
        user_ids : id or iterable of ids
        n : int
            Length of a list; a user with fewer items left gets fewer rows.
        exclude_seen : bool
            Leave out items that the user has rated.
        items : id, iterable of ids, mapping, DataFrame or SciPy sparse, optional
            Candidates, such as the items in stock; by default all items. Each user has its own by a mapping from user
            ids to item ids, a table with the columns user and item, or a matrix with a row for each of `user_ids` and
            a column per item; a user without any gets no rows.
        exclude : id, iterable of ids, mapping, DataFrame or SciPy sparse, optional
            Items that are not recommended, to nobody or, likewise, to single users.
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
            For an unknown item in `items` or `exclude`, and a user there who is neither known nor asked for.
        DeviceError
            If a GPU is requested and there is none.

        Examples
        --------
        >>> from air_recsys import BiasModel
        >>> ratings = [[5.0, 3.0, 1.0, np.nan], [4.0, np.nan, 2.0, 5.0]]
        >>> BiasModel().fit(ratings).recommend(1, exclude_seen=False, exclude=[3, 0])["item"].tolist()
        [1, 2]
        >>> own = {0: [3], 1: [0, 1]}
        >>> BiasModel().fit(ratings).recommend([0, 1], exclude_seen=False, items=own)[["user", "item"]].values.tolist()
        [[0, 3], [1, 0], [1, 1]]
        """
        check_choice("exclude_seen", exclude_seen, (True, False))
        state, place = self._fitted(), gpu_of(device)
        asked = asked_ids(user_ids, "user")
        allowed = allowed_items(state.data.items, items, exclude, state.data.users, asked)
        return self.by_rating(state, asked, n, exclude_seen, allowed, place)

    def by_rating(
        self,
        state: FittedState,
        asked: np.ndarray,
        n: int,
        exclude_seen: bool,
        allowed: Allowed,
        place: torch.device | None,
    ) -> pd.DataFrame:
        """The lists of `recommend` by scores."""
        length = list_length(n, allowed.n_left)
        best = partial(best_items_of, state, n=length, exclude_seen=exclude_seen, device=place, allowed=allowed)
        popular = partial(best_rated, state, length)
        how: dict[str, Any] = {"allowed": allowed, "clips": self.clips, "popular": popular, "stacklevel": 4}
        with threads(self.n_threads):
            return recommend_with(best, state, asked, length, **how)

    def to_faiss(self, metric: str = "inner_product", factory: str | None = None) -> FaissItems:
        """The items as a faiss index, for the items of the highest scores of users (needs the extra ``ann``).

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
        return FaissItems(self._fitted(), metric, factory, clips=self.clips)


def check_no_y(y: Any) -> None:
    """Raise `DataError` for ratings beside their pairs, as scikit-learn has targets beside samples."""
    if y is not None:
        raise DataError("expected ratings as a column of the table and no y, found a y: X.assign(rating=y) is a table")
