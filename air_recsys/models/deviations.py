"""Predictions with standard deviations, for models with a posterior."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from air_recsys.models.base import Recommender
from air_recsys.models.pairs import pair_indices, times_of


class PredictsDeviations(Recommender):
    """A recommender that may know the standard deviation of new ratings around its scores."""

    @property
    def knows_deviations_(self) -> bool:
        """Whether `predict` can be asked with `return_std`."""
        equations = self._fitted().equations
        return equations is not None and equations.knows_deviations

    @overload
    def predict(
        self,
        user_ids: Any,
        item_ids: Any,
        *,
        unknown: Literal["mean", "error"] = "mean",
        return_std: Literal[False] = False,
        timestamps: Any = None,
    ) -> np.ndarray: ...

    @overload
    def predict(
        self,
        user_ids: Any,
        item_ids: Any,
        *,
        unknown: Literal["mean", "error"] = "mean",
        return_std: Literal[True],
        timestamps: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]: ...

    def predict(
        self,
        user_ids: Any,
        item_ids: Any,
        *,
        unknown: Literal["mean", "error"] = "mean",
        return_std: bool = False,
        timestamps: Any = None,
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Return the score of each pair, and with `return_std` the standard deviation of a new rating of it.

        Parameters
        ----------
        user_ids, item_ids, unknown
            As in `Recommender.predict`.
        return_std : bool
            Of the rating itself, its noise included: 1.645 of them on both sides are meant to hold 90 % of ratings.
            A pair with an unknown id gets the standard deviation of all training ratings.
        timestamps : array_like, optional
            When each rating is given, in the unit of the training, for models with ``time="drift"``: a single one is
            that of all pairs. Without them a score is that of no special time, and deviations hold what times do.

        Raises
        ------
        NotFittedError
            With `return_std`, where `solver` left no posterior.
        DataError
            For timestamps of another unit than the training's, and where the model knows nothing of time.

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
        state = self._fitted()
        users, items = pair_indices(state, user_ids, item_ids, unknown)
        times = times_of(state, timestamps, users.size)
        scores = self._predicted(state, users, items, times)
        if not return_std:
            return scores
        assert state.equations is not None
        known, deviations = (users >= 0) & (items >= 0), np.full(users.size, state.data.ratings.std())
        deviations[known] = state.equations.deviations(
            users[known], items[known], None if times is None else times[known]
        )
        return scores, deviations
