"""Predictions with standard deviations, intervals and probabilities of rating values.

They are those of a posterior, or, for models without one, those of errors on hidden ratings
(`air_recsys.models.spread`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from statistics import NormalDist
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import pandas as pd
from scipy.special import ndtr

from air_recsys.exceptions import NotFittedError
from air_recsys.models.base import Recommender
from air_recsys.models.pairs import Unknown, asked_pairs, fallback_scores, pair_indices, prediction_table, times_of
from air_recsys.models.ranking.allowed import allowed_items, list_length
from air_recsys.models.ranking.lists import best_items_of, list_scores
from air_recsys.models.rating_values import RatingValues, checked_values
from air_recsys.models.ratings import limited
from air_recsys.models.rows import SIDES, Side
from air_recsys.models.spread import Spread
from air_recsys.models.state import FittedState, lock_of
from air_recsys.storage.validation import check_choice, check_real

HIGHEST_LEVEL = 0.9999


class BestItems(NamedTuple):
    """The best items of a user, best first."""

    items: np.ndarray  # (n,), ids
    scores: np.ndarray  # (n,)
    deviations: np.ndarray | None  # (n,), of a new rating of each; None where the model knows none
    liking: np.ndarray | None = None  # (n,), the probability of a like of each, where lists go by it


class PredictsDeviations(Recommender):
    """A recommender that can return the standard deviation of new ratings around its scores."""

    @property
    def knows_deviations_(self) -> bool:
        """Whether deviations are known without measuring them first, see `predict`."""
        return self._fitted().knows_deviations

    def measured(self, state: FittedState) -> Spread:
        """The errors on hidden ratings of a model without a posterior."""
        raise NotFittedError(f"deviations need a posterior or errors on hidden ratings, found a {type(self).__name__}")

    def _measured(self, state: FittedState) -> FittedState:
        """A fitted state with what deviations follow from: of the present one, measured when first asked for."""
        if state.knows_deviations:
            return state
        with lock_of(self):
            present = self._fitted()
            if not present.knows_deviations:
                known = present.origin
                self._state = present = replace(present, spread=known.once("spread", lambda: self.measured(known)))
            return replace(state, spread=present.spread)

    @property
    def rating_values_(self) -> np.ndarray:
        """The values of the training ratings in ascending order: the columns of `predict_proba`."""
        return checked_values(self._fitted()).copy()

    def uncertainty(self, side: Side = "item") -> pd.Series:
        """The uncertainty of the scores of each item, or user.

        The posterior variance of the score of a pair, averaged over all users (of each item; over all items, of each
        user), and the root of that: the standard deviation of a score around the true one. The noise of ratings is no
        part of it, nor what a time adds; so it is smaller than the deviations of `predict`, which are those of
        ratings. Of models of draws (``solver="langevin"``) the average is over at most 2,000 of the other side,
        evenly spaced.

        Parameters
        ----------
        side : {"item", "user"}

        Returns
        -------
        Series of float64
            By id, in the unit of the ratings.

        Raises
        ------
        NotFittedError
            Where `solver` left no posterior.

        Examples
        --------
        >>> from air_recsys import AIR
        >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
        >>> ratings[1:, 0] = np.nan
        >>> model = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(ratings)
        >>> uncertainty = model.uncertainty("item")
        >>> bool(uncertainty[0] > uncertainty[1])  # one rating, and six
        True
        """
        check_choice("side", side, SIDES)
        state = self._fitted()
        if state.equations is None:
            raise NotFittedError(f"uncertainty needs a posterior, found none in this {type(self).__name__}")
        ids = state.data.item_ids if side == "item" else state.data.user_ids
        return pd.Series(state.equations.uncertainties(side), index=pd.Index(ids, name=side), name="uncertainty")

    @overload
    def predict(
        self,
        user_ids: Any,
        item_ids: Any = None,
        *,
        unknown: Unknown = "warn",
        return_std: Literal[False] = False,
        timestamps: Any = None,
    ) -> np.ndarray: ...

    @overload
    def predict(
        self,
        user_ids: Any,
        item_ids: Any = None,
        *,
        unknown: Unknown = "warn",
        return_std: Literal[True],
        timestamps: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]: ...

    def predict(
        self,
        user_ids: Any,
        item_ids: Any = None,
        *,
        unknown: Unknown = "warn",
        return_std: bool = False,
        timestamps: Any = None,
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The score of each pair, and with `return_std` also the standard deviation of a new rating.

        Parameters
        ----------
        user_ids, item_ids, unknown
            As in `Recommender.predict`.
        return_std : bool
            Also return the standard deviation of a new rating, its noise included. A pair with an unknown id gets that
            of all training ratings. A model without a posterior measures its errors when it is first asked: it trains
            once more, without a tenth of the ratings, see `air_recsys.models.spread`. Files keep what it measured.
        timestamps : array_like, optional
            Time of each rating, in the unit of the training, for models with ``time="drift"``. A single value applies
            to all pairs. Without timestamps a score is for no particular time, and the deviation includes the variance
            over time.

        Raises
        ------
        DataError
            With `return_std`, for a model without a posterior of fewer than 100 ratings. For timestamps in another
            unit than that of the training, and for a model without times.

        Examples
        --------
        >>> from air_recsys import AIR
        >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
        >>> ratings[0, 0] = np.nan
        >>> model = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(ratings)
        >>> scores, deviations = model.predict([0, 1], [0, 1], return_std=True)
        >>> bool((deviations > 0).all())
        True
        """
        state, pairs, times = self._asked(user_ids, item_ids, unknown, timestamps, measured=return_std)
        scores = self.predicted_scores(state, *pairs, times)
        return (scores, self._deviations(state, *pairs, times, scores)) if return_std else scores

    def predict_table(
        self, user_ids: Any, item_ids: Any, *, unknown: Unknown = "warn", timestamps: Any = None
    ) -> pd.DataFrame:
        """The score of each pair, its standard deviation if the model has one, and their source.

        Parameters
        ----------
        user_ids, item_ids, unknown, timestamps
            As in `predict`.

        Returns
        -------
        DataFrame
            Columns user, item, score, deviation where `knows_deviations_`, and source as in
            `Recommender.predict_table`.

        Examples
        --------
        >>> from air_recsys import AIR
        >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
        >>> ratings[0, 0] = np.nan
        >>> model = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(ratings)
        >>> model.predict_table([0, 1], [0, 99], unknown="mean")[["item", "source"]]
           item     source
        0     0      model
        1    99  user mean
        """
        asked = asked_pairs(user_ids, item_ids)
        state, pairs, times = self._asked(*asked, unknown, timestamps)
        columns = {"score": self.predicted_scores(state, *pairs, times)}
        if state.knows_deviations:
            columns["deviation"] = self._deviations(state, *pairs, times, columns["score"])
        return prediction_table(*asked, pairs, **columns)

    def predict_interval(
        self,
        user_ids: Any,
        item_ids: Any,
        level: float = 0.9,
        *,
        unknown: Unknown = "warn",
        timestamps: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The ends of an interval for a new rating of each pair, with a given probability.

        With a posterior the interval is that of a normal distribution around the score before `clip`, with the
        standard deviation of a new rating. Without one it reaches as far as the errors on hidden ratings with like
        deviations, see `predict`. If the model clips, both ends are limited to the range of the ratings.

        Parameters
        ----------
        user_ids, item_ids, unknown, timestamps
            As in `predict`.
        level : float
            Probability of the interval, above 0 and at most 0.9999.

        Returns
        -------
        low, high : ndarray of float64, shape (n,)

        Raises
        ------
        DataError
            As in `predict` with deviations.
        ParameterError
            For a level out of range.

        Examples
        --------
        >>> from air_recsys import AIR
        >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
        >>> ratings[0, 0] = np.nan
        >>> model = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(ratings)
        >>> low, high = model.predict_interval(0, [0, 1, 4])
        >>> bool((low >= 1).all()), bool((low < high).all()), bool((high <= 5).all())
        (True, True, True)
        """
        check_real("level", level, maximum=HIGHEST_LEVEL, strict=True)
        state, pairs, times = self._asked(user_ids, item_ids, unknown, timestamps, measured=True)
        scores, known = self._central(state, *pairs, times), (pairs[0] >= 0) & (pairs[1] >= 0)
        deviations = self._deviations(state, *pairs, times, scores)
        reach = NormalDist().inv_cdf((1 + level) / 2) * deviations
        if state.spread is not None:
            reach[known] = state.spread.reach(deviations[known], level)
        scale = state.rating_scale
        low, high = (limited(scores + side * reach, self.clips, scale, binary=False) for side in (-1, 1))
        return low, high

    def predict_proba(
        self,
        user_ids: Any,
        item_ids: Any,
        *,
        unknown: Unknown = "warn",
        timestamps: Any = None,
    ) -> np.ndarray:
        """The probability of each value of `rating_values_` for a new rating of each pair.

        See `air_recsys.models.rating_values` for the definition; the first call after a training estimates thresholds
        and habits. Without a posterior they are those of hidden ratings with like scores, see `predict` and
        `air_recsys.models.spread`. The mean, ``predict_proba(...) @ rating_values_``, is a prediction that accounts
        for the scale and the habits of the users; unlike a score it is not a sum of parts.

        Parameters
        ----------
        user_ids, item_ids, unknown, timestamps
            As in `predict`.

        Returns
        -------
        ndarray of float64, shape (n, k)
            Rows add up to 1.

        Raises
        ------
        DataError
            If the training ratings have more than 101 values, and as in `predict` with deviations.

        Examples
        --------
        >>> from air_recsys import AIR
        >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
        >>> ratings[0, 0] = np.nan
        >>> model = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(ratings)
        >>> model.rating_values_
        array([1., 2., 4., 5.])
        >>> model.predict_proba(0, 0).argmax(axis=1)
        array([3])
        """
        each = checked_values(self._fitted())
        state, (users, items), times = self._asked(user_ids, item_ids, unknown, timestamps, measured=True)
        scores = self._central(state, users, items, times)
        if state.spread is not None:
            return state.spread.probabilities(scores, each)
        values, known = state.once("rating values", lambda: RatingValues.of(state)), (users >= 0) & (items >= 0)
        deviations = self._deviations(state, users, items, times, scores)
        return values.probabilities(scores, deviations, np.where(known, users, -1))

    def predict_above(
        self, user_ids: Any, item_ids: Any, threshold: float, *, unknown: Unknown = "warn", timestamps: Any = None
    ) -> np.ndarray:
        """The probability that a new rating of each pair is above a threshold, as of a pKd that counts as active.

        By the normal distribution of `predict_interval`, noise included.

        Parameters
        ----------
        user_ids, item_ids, unknown, timestamps
            As in `predict`.
        threshold : float
            In the unit of the ratings: 6 for a pKd of 1 uM.

        Returns
        -------
        ndarray of float64, shape (n,)

        Examples
        --------
        >>> from air_recsys import AIR
        >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
        >>> model = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(ratings)
        >>> (model.predict_above(0, [0, 4], 3) > 0.5).tolist()
        [True, False]
        """
        check_real("threshold", threshold, minimum=-np.inf)
        state, pairs, times = self._asked(user_ids, item_ids, unknown, timestamps, measured=True)
        scores = self._central(state, *pairs, times)
        return ndtr((scores - threshold) / self._deviations(state, *pairs, times, scores))

    def best_items(
        self, user_id: Hashable, n: int = 10, exclude_seen: bool = True, *, items: Any = None, exclude: Any = None
    ) -> BestItems:
        """The best n items of one known user with scores and deviations: `recommend` without its table.

        A service asks for one list at a time, and making a table of it takes as long as finding it.

        Parameters
        ----------
        user_id : hashable
        n, exclude_seen, items, exclude
            As in `recommend`.

        Returns
        -------
        BestItems
            Item ids, scores, and standard deviations of new ratings where the model knows them.

        Raises
        ------
        UnknownIdError
            For an id that the model does not know.

        Examples
        --------
        >>> from air_recsys import AIR
        >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
        >>> ratings[0, :5] = np.nan
        >>> model = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(ratings)
        >>> best = model.best_items(0, 4, exclude=[7])
        >>> sorted(best.items.tolist()), best.deviations.shape
        ([0, 1, 2, 3], (4,))
        """
        state = self._fitted()
        user = np.array([state.data.users.place(user_id)])
        allowed = allowed_items(state.data.items, items, exclude, state.data.users, user_id)
        length, place = list_length(n, allowed.n_left), np.zeros(1, dtype=np.int64)
        found, products = best_items_of(
            state, user, place, n=length, exclude_seen=exclude_seen, device=None, allowed=allowed
        )
        places = found[0, : np.count_nonzero(found[0] >= 0)]
        scores = list_scores(state, user, products[:, : places.size], self.clips)[0]
        deviations = None
        if state.knows_deviations:
            deviations = self._deviations(state, np.repeat(user, places.size), places, None, scores)
        return BestItems(state.data.item_ids[places], scores, deviations)

    def _asked(
        self, user_ids: Any, item_ids: Any, unknown: Unknown, timestamps: Any, *, measured: bool = False
    ) -> tuple[FittedState, tuple[np.ndarray, np.ndarray], np.ndarray | None]:
        """The state of this moment, the positions of the pairs, and the times that they are asked for."""
        state = self._fitted()
        pairs = pair_indices(state, *asked_pairs(user_ids, item_ids), unknown, stacklevel=4)
        times = times_of(state, timestamps, pairs[0].size)
        return self._measured(state) if measured else state, pairs, times

    def _deviations(
        self, state: FittedState, users: np.ndarray, items: np.ndarray, times: np.ndarray | None, scores: np.ndarray
    ) -> np.ndarray:
        """The standard deviation of a new rating of each scored pair; of all training ratings for unknown ids."""
        known, found = (users >= 0) & (items >= 0), np.full(users.size, state.origin.data.ratings.std())
        users, items = users[known], items[known]
        if state.spread is not None:
            found[known] = state.spread.deviations(state.facts(users, items, scores[known]))
        else:
            found[known] = state.deviations(users, items, None if times is None else times[known])
        return found

    def _central(
        self, state: FittedState, users: np.ndarray, items: np.ndarray, times: np.ndarray | None
    ) -> np.ndarray:
        """What deviations are around: scores as predicted, or, with a posterior, before they are limited."""
        if state.spread is not None:
            return self.predicted_scores(state, users, items, times)
        known, scores = (users >= 0) & (items >= 0), np.empty(users.size)
        scores[known] = state.scores(users[known], items[known], False, None if times is None else times[known])
        scores[~known] = fallback_scores(state, users[~known], items[~known])
        return scores
