"""Peers that read the order of a user's items in the way that a `GraphRanker` does: later items count more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.lists import NewUsersLister
from air_recsys.exceptions import DataError
from air_recsys.models.graph_ranker.hidden import HiddenPart, latest_of_rows
from air_recsys.models.graph_ranker.inputs import interaction_pattern, interaction_times, with_half_life
from air_recsys.models.graph_ranker.selection import TIMES
from benchmarks.accuracy.ranking_search import hidden_ndcg

HALF_LIVES = TIMES["user_half_life"]
"""Those that a `GraphRanker` tries: numbers of later items with which an item counts half; 0: all count alike."""


class HalfLives:
    """A ranker that makes the lists of its users from their items as if they were new ones: later items count more.

    The half-life makes the best lists, by NDCG, on the hidden latest fifth of each user's items. The training of the
    ranker reads no order.

    Parameters
    ----------
    train : callable
        Returns the trained ranker.
    seed : int
        Of the users whose lists are compared, and of what has the same time.

    Attributes
    ----------
    settings_ : dict
        Those that the ranker has chosen, and "half_life".
    figures_ : dict of float to float
        NDCG by the half-life.

    Examples
    --------
    >>> from benchmarks.accuracy.ranking_peers import EASE
    >>> users, steps = np.divmod(np.arange(64), 4)
    >>> items = (users + steps) % 8  # four steps on a ring
    >>> data = Interactions(users, items, np.ones(64), range(16), range(8), timestamps=steps)
    >>> model = HalfLives(EASE(1.0).fit).fit(data)
    >>> model.lists(np.array([0]), 1).tolist(), model.settings_  # 0, 1, 2, 3, and now 4 rather than 7
    ([[4]], {'half_life': 1.0})
    """

    def __init__(self, train: Callable[[Interactions], NewUsersLister], seed: int = 0) -> None:
        self.train, self.seed = train, seed

    def fit(self, interactions: Interactions) -> Self:
        """Choose the half-life, and train the ranker on all that is shown."""
        pattern, times = interaction_pattern(interactions), interaction_times(interactions)
        if times is None:
            raise DataError("expected interactions with timestamps that differ, found none")
        part = latest_of_rows(pattern, times, self.seed)
        trial = self.train(_shown(part, interactions))
        self.figures_: dict[float, float] = {}
        for half_life in HALF_LIVES:
            own = with_half_life(part.shown, part.times, half_life)
            self.figures_[half_life] = hidden_ndcg(trial, part.hidden, own, self.seed)
        best = max(self.figures_, key=self.figures_.__getitem__)
        self._ranker, self._own = self.train(interactions), with_half_life(pattern, times, best)
        self.settings_: dict[str, Any] = {**getattr(self._ranker, "settings_", {}), "half_life": best}
        return self

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """Return the best n unseen items of some users, by positions; (b, n), or fewer; -1 where none is left."""
        return self._ranker.lists_of_new(self._own[users], n)


def _shown(part: HiddenPart, data: Interactions) -> Interactions:
    assert part.times is not None
    times = part.times.tocoo()
    ones = np.ones(times.nnz)
    return Interactions(times.row, times.col, ones, data.user_ids, data.item_ids, timestamps=times.data)
