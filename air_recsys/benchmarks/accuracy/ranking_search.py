"""Settings of peers, chosen as a `GraphRanker` chooses its own: on a hidden part of what they are shown."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from statistics import geometric_mean
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from air_recsys.evaluation.lists import Lister
from air_recsys.interactions import Interactions
from air_recsys.metrics import ndcg_at_k
from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.smoothings import interaction_pattern
from air_recsys.models.graph_ranker.times.hidden_parts import hidden_parts
from air_recsys.models.graph_ranker.times.recency import interaction_times
from air_recsys.splits import user_holdout

_SHARE, _LENGTH = 0.2, 20


class Chosen:
    """A ranker with the settings that make the best lists on a hidden part of what it is shown.

    The lists are of 20 items and are compared by NDCG, over all users with hidden items. With the best settings the
    ranker is trained once more, on all that is shown.

    Parameters
    ----------
    make : callable
        ``make(**settings)`` returns a ranker.
    grid : mapping of str to sequence
        The values of each setting; all combinations are tried.
    seed : int
        Of what is hidden.
    validation : {"random", "last", "time"}
        What is hidden: a random fifth of each user's items, or the parts in time of a `GraphRanker` with this
        parameter, over which the geometric mean is taken.

    Attributes
    ----------
    settings_ : dict
        The settings chosen.
    figures_ : list of float
        NDCG of all combinations, in the order of `itertools.product`.
    """

    def __init__(
        self, make: Callable[..., Any], grid: Mapping[str, Sequence[Any]], seed: int = 0, validation: str = "random"
    ) -> None:
        self.make, self.grid, self.seed, self.validation = make, grid, seed, validation

    def fit(self, interactions: Interactions) -> Self:
        """Choose the settings and train with them."""
        parts = self._parts(interactions)
        combinations = [dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())]
        self.figures_ = [self._figure(settings, parts) for settings in combinations]
        self.settings_ = combinations[int(np.argmax(self.figures_))]
        self._ranker = self.make(**self.settings_)
        self._ranker.fit(interactions)
        return self

    def _parts(self, data: Interactions) -> list[tuple[Interactions, Interactions]]:
        if self.validation == "random":
            split = user_holdout(data, _SHARE, self.seed)
            return [(data.select(split.train), data.select(split.test))]
        parts = hidden_parts(interaction_pattern(data), interaction_times(data), self.validation, self.seed)
        ids = data.user_ids, data.item_ids
        return [(Interactions.from_csr(each.shown, *ids), Interactions.from_csr(each.hidden, *ids)) for each in parts]

    def _figure(self, settings: dict[str, Any], parts: list[tuple[Interactions, Interactions]]) -> float:
        return geometric_mean([_ndcg(self.make(**settings), *part) for part in parts])

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """Return the best n unseen items of some users, all by their positions; shape (b, n)."""
        return self._ranker.lists(users, n)

    def lists_of_new(self, rows: Csr, n: int) -> np.ndarray:
        """Return those of new users with these items, (b, n_items)."""
        return self._ranker.lists_of_new(rows, n)


def _ndcg(ranker: Lister, shown: Interactions, hidden: Interactions) -> float:
    ranker.fit(shown)
    users = np.unique(hidden.user_index)
    return ndcg_at_k(ranker.lists(users, _LENGTH), sp.csr_array(hidden.to_csr())[users], _LENGTH)
