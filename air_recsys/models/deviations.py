"""Predictions with standard deviations, for models with a posterior."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from air_recsys.models.base import Recommender
from air_recsys.models.pairs import pair_indices


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
    ) -> np.ndarray: ...

    @overload
    def predict(
        self, user_ids: Any, item_ids: Any, *, unknown: Literal["mean", "error"] = "mean", return_std: Literal[True]
    ) -> tuple[np.ndarray, np.ndarray]: ...

    def predict(
        self,
        user_ids: Any,
        item_ids: Any,
        *,
        unknown: Literal["mean", "error"] = "mean",
        return_std: bool = False,
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Return the score of each pair, and with `return_std` the standard deviation of a new rating of it.

        Parameters
        ----------
        user_ids, item_ids, unknown
            As in `Recommender.predict`.
        return_std : bool
            Of the rating itself, its noise included: 1.645 of them on both sides are meant to hold 90 % of ratings.
            A pair with an unknown id gets the standard deviation of all training ratings.

        Raises
        ------
        NotFittedError
            With `return_std`, where `solver` left no posterior.

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
        if not return_std:
            return super().predict(user_ids, item_ids, unknown=unknown)
        state = self._fitted()
        users, items = pair_indices(state, user_ids, item_ids, unknown)
        assert state.equations is not None
        known, deviations = (users >= 0) & (items >= 0), np.full(users.size, state.data.ratings.std())
        deviations[known] = state.equations.deviations(users[known], items[known])
        return self._predicted(state, users, items), deviations
