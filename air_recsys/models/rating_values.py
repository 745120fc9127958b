r"""The values that ratings take, such as 1 to 5 stars, and how probable each of them is.

User u gives the value :math:`v_k` with probability

.. math:: p_k \propto h_{uk}\,\big[\Phi((c_k - m) / s) - \Phi((c_{k-1} - m) / s)\big]

for the score m of the pair and the standard deviation s of a new rating of it, with thresholds c between the values
and habits h of the users: some hardly ever give the best value, whatever the item. Both follow from the training
ratings, each of them compared with the posterior of all others: without the rating y a Gaussian posterior has

.. math:: m_- = y - \frac{y - m}{1 - \ell},\qquad s_-^2 = \frac{\sigma^2}{1 - \ell},\qquad
    \ell = \frac{s^2 - \sigma^2}{\sigma^2}

with the variance :math:`\sigma^2` of the noise. The thresholds are those with which each value is as frequent as it
was. The habit of a user is the number of its ratings with a value, divided by the expected number, both with 40
ratings of an average user added.

Sources: McCullagh, Regression models for ordinal data, JRSS B 42, 1980 (thresholds); Cook, Weisberg, Residuals and
influence in regression, 1982 (one rating left out).
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from scipy.special import ndtr

from air_recsys.exceptions import DataError
from air_recsys.models.state import FittedState

MOST_VALUES = 101
_COUNTS = 40.0  # ratings of an average user in each habit; 20 to 80 are alike, see benchmarks/reports/accuracy.md
_MOST_LEVERAGE = 0.8
_MOST_RATINGS = 2**20  # that thresholds and habits are made of
_BLOCK = 2**16  # pairs
_HALVINGS = 60
_SEED = 0


class RatingValues(NamedTuple):
    """The numbers that the probabilities of values follow from."""

    values: np.ndarray  # (k,), in ascending order
    thresholds: np.ndarray  # (k - 1,), between them, on the scale of the scores
    habits: np.ndarray  # (n_users, k), of the users; 1 is average
    shares: np.ndarray  # (k,), how often each value was given

    @classmethod
    def of(cls, state: FittedState) -> Self:
        """The values of a model with a posterior; of new rows alone new users have habits, the rest is of training."""
        values, trained = checked_values(state), state.trained
        if trained is not None:
            known = trained.once("rating values", lambda: cls.of(trained))
            if state.alone == "item":
                return known
            every = np.arange(state.data.n_ratings)
            return known._replace(habits=_habits(state, every, _without_each(state, every), known))
        data, rng = state.data, np.random.default_rng(_SEED)
        some = np.arange(data.n_ratings)
        if some.size > _MOST_RATINGS:
            some = np.sort(rng.choice(some.size, _MOST_RATINGS, replace=False))
        given, judged = np.searchsorted(values, data.ratings[some]), _without_each(state, some)
        shares = np.bincount(given, minlength=values.size) / given.size
        average = cls(values, _thresholds(*judged, shares), np.ones((data.n_users, values.size)), shares)
        return average._replace(habits=_habits(state, some, judged, average))

    def probabilities(self, scores: np.ndarray, deviations: np.ndarray, users: np.ndarray) -> np.ndarray:
        """The probability of each value for pairs with these scores and deviations, (n, k).

        `users` are their indices, -1 where the habit is not known.
        """
        found = np.empty((scores.size, self.values.size))
        for start in range(0, scores.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            habits = np.where(users[block, None] >= 0, self.habits[users[block]], 1.0)
            weighted = habits * _probabilities(scores[block], deviations[block], self.thresholds)
            found[block] = weighted / weighted.sum(axis=1, keepdims=True)
        return found


def checked_values(state: FittedState) -> np.ndarray:
    """The values of the training ratings, or raise `DataError` where they are too many to be values."""
    origin = state.origin
    origin.data.check_measured()
    values = origin.once("values of ratings", lambda: np.unique(origin.data.ratings))
    if values.size > MOST_VALUES:
        raise DataError(
            f"expected ratings of at most {MOST_VALUES} values, found {values.size}: a rating is a number then, "
            "with the deviation of predict(..., return_std=True)"
        )
    return values


def _habits(
    state: FittedState, some: np.ndarray, judged: tuple[np.ndarray, np.ndarray], average: RatingValues
) -> np.ndarray:
    """The habits of all users, (n_users, k), from some ratings and what all others tell of each."""
    data, (values, thresholds, _, shares) = state.data, average
    scores, deviations = judged
    users, given = data.user_index[some], np.searchsorted(values, data.ratings[some]).clip(max=values.size - 1)
    counts, expected = (np.zeros((data.n_users, values.size)) for _ in range(2))
    np.add.at(counts, (users, given), 1.0)
    for start in range(0, users.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        np.add.at(expected, users[block], _probabilities(scores[block], deviations[block], thresholds))
    added = _COUNTS * shares
    return (counts + added) / (expected + added)


def _without_each(state: FittedState, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Score and deviation of some training ratings, (n,), as all other ratings tell them."""
    data, equations = state.data, state.equations
    assert equations is not None
    scores, deviations = np.empty(some.size), np.empty(some.size)
    for start in range(0, some.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        place = some[block]
        pairs, ratings = (data.user_index[place], data.item_index[place]), data.ratings[place]
        times = None if state.drift is None or data.timestamps is None else data.timestamps[place].astype(np.float64)
        found = state.factor_scores(*pairs, times)
        single = equations.noise(*pairs)
        noise = single if data.weights is None else single / data.weights[place]
        spread = np.square(equations.deviations(*pairs, times)) - single
        rest = 1 - np.clip(spread / noise, 0.0, _MOST_LEVERAGE)
        scores[block], deviations[block] = ratings - (ratings - found) / rest, np.sqrt(noise / rest)
    return scores, deviations


def _thresholds(scores: np.ndarray, deviations: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The thresholds with which values have these shares, by halving."""
    wanted = shares.cumsum()[:-1]
    far = 10 * deviations.max()
    low, high = np.full(wanted.size, scores.min() - far), np.full(wanted.size, scores.max() + far)
    every = max(1, scores.size // _BLOCK)  # as many as settle them
    scores, deviations = scores[::every], deviations[::every]
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = np.array([ndtr((each - scores) / deviations).mean() for each in middle])
        low, high = np.where(below < wanted, middle, low), np.where(below < wanted, high, middle)
    return (low + high) / 2


def _probabilities(scores: np.ndarray, deviations: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """The probabilities of values without habits, (n, k), none of them 0."""
    below = ndtr((thresholds - scores[:, None]) / deviations[:, None])
    ends = np.zeros((scores.size, 1)), np.ones((scores.size, 1))
    return np.diff(np.hstack([ends[0], below, ends[1]]), axis=1).clip(min=np.finfo(float).tiny)
