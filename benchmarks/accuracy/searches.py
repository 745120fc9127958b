"""Settings of peers, chosen as a `GraphRanker` chooses its own: on a hidden part of what they are shown."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import geometric_mean
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError
from air_recsys.metrics.at_k import graded_ndcg
from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.hidden import HiddenPart, gains_of, hidden_parts, latest_of_rows
from air_recsys.models.graph_ranker.inputs import interaction_pattern, interaction_times, with_half_life
from air_recsys.models.graph_ranker.selection import TIMES
from air_recsys.splits import user_holdout

_SHARE, _LENGTH, _MOST_USERS = 0.2, 20, 5000
Grid = Mapping[str, Sequence[Any]]
"""Values of settings, by their names."""

HALF_LIVES = TIMES["user_half_life"]
"""Those that a `GraphRanker` tries: numbers of later items with which an item counts half; 0: all count alike."""


class Lister(Protocol):
    """A model that makes lists of items for users, all by their positions in the training data."""

    def fit(self, interactions: Interactions) -> Any:
        """Train."""
        ...

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """The best n unseen items, shape (b, n) or fewer columns; -1 where none is left."""
        ...


class NewUsersLister(Lister, Protocol):
    """A `Lister` that makes lists for users whom it was not trained on, too."""

    def lists_of_new(self, rows: Csr, n: int) -> np.ndarray:
        """The best n unseen items of users with these items, (b, n_items) and 1 each, as `lists` does."""
        ...


class _Part(NamedTuple):
    """What a setting is tried on: rows of `hidden` are users shown, or new ones of whom these items are given."""

    shown: Interactions
    hidden: Csr
    given: Csr | None = None

    def ndcg(self, ranker: Any, seed: int) -> float:
        """That of the lists of a ranker trained on what is shown; hidden items gain by their values."""
        gains = gains_of(self.hidden, sp.csr_array(self.shown.to_csr()))
        return hidden_ndcg(ranker, gains, self.given, seed)


class Selection:
    """A ranker with the settings that make the best lists on a hidden part of what it is shown.

    All combinations of a grid are tried. From the best one the search goes on by single steps along the ladders,
    one setting at a time, until no step gains: what it chooses lies at an edge only where the ladder ends. The lists
    are of 20 items and are compared by NDCG, over all users with hidden items, or 5000 of them drawn at random. With
    the best settings the ranker is trained once more, on all that is shown.

    Parameters
    ----------
    make : callable
        ``make(**settings)`` returns a ranker.
    grid : mapping of str to sequence
        The values of each setting.
    ladders : mapping of str to sequence, optional
        More values of some settings, ascending, with those of the grid.
    seed : int
        Of what is hidden, and of the users.
    validation : {"random", "users", "last", "time"}
        What is hidden: a random fifth of each user's items, that of users held out, or the parts in time of a
        `GraphRanker` with this parameter, over which the geometric mean is taken.

    Attributes
    ----------
    settings_ : dict
        The settings chosen.
    edges_ : list of str
        The names of those of them that a ladder ends at.
    figures_ : dict of tuple to float
        NDCG of all settings that were tried, in their order, by their values in the order of the grid.
    """

    def __init__(
        self,
        make: Callable[..., Any],
        grid: Grid,
        ladders: Grid | None = None,
        seed: int = 0,
        validation: str = "random",
    ) -> None:
        self.make, self.grid, self.ladders, self.seed, self.validation = make, grid, ladders or {}, seed, validation

    def fit(self, interactions: Interactions) -> Self:
        """Choose the settings and train with them."""
        parts = self._parts(interactions)
        self.figures_: dict[tuple[Any, ...], float] = {}
        for values in itertools.product(*self.grid.values()):
            self._try(values, parts)
        while any(self._try(values, parts) for values in self._steps()):
            pass
        self.settings_ = dict(zip(self.grid, self._best(), strict=True))
        ends = {name: (self.ladders[name][0], self.ladders[name][-1]) for name in self.grid if name in self.ladders}
        self.edges_ = [name for name in ends if self.settings_[name] in ends[name]]
        self._ranker = self.again()
        self._ranker.fit(interactions)
        return self

    def again(self) -> Any:
        """An untrained ranker with the settings chosen."""
        return self.make(**self.settings_)

    def _best(self) -> tuple[Any, ...]:
        return max(self.figures_, key=self.figures_.__getitem__)

    def _steps(self) -> Iterator[tuple[Any, ...]]:
        """Yield the settings beside the best ones that were not tried, one step along each ladder."""
        best = self._best()
        for place, name in enumerate(self.grid):
            ladder = self.ladders.get(name, ())
            for step in (1, -1) if ladder else ():
                rung = ladder.index(best[place]) + step
                if 0 <= rung < len(ladder):
                    values = (*best[:place], ladder[rung], *best[place + 1 :])
                    if values not in self.figures_:
                        yield values

    def _try(self, values: tuple[Any, ...], parts: list[_Part]) -> bool:
        """Measure some settings, and return whether they are better than all before."""
        before = max(self.figures_.values(), default=-np.inf)
        self.figures_[values] = self._figure(dict(zip(self.grid, values, strict=True)), parts)
        return self.figures_[values] > before

    def _parts(self, data: Interactions) -> list[_Part]:
        if self.validation == "random":
            split = user_holdout(data, _SHARE, self.seed)
            return [_Part(data.select(split.train), sp.csr_array(data.select(split.test).to_csr()))]
        pattern = interaction_pattern(data)
        if self.validation == "users":
            alike, *_ = hidden_parts(pattern, None, "users", self.seed)
            return [_Part(Interactions.from_csr(alike.shown, item_ids=data.item_ids), alike.hidden, alike.given)]
        parts = hidden_parts(pattern, interaction_times(data), self.validation, self.seed)
        ids = data.user_ids, data.item_ids
        return [_Part(Interactions.from_csr(each.shown, *ids), each.hidden) for each in parts]

    def _figure(self, settings: dict[str, Any], parts: list[_Part]) -> float:
        figures = [part.ndcg(self.make(**settings).fit(part.shown), self.seed) for part in parts]
        return geometric_mean(figures) if all(figures) else 0.0

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """The best n unseen items of some users, all by their positions; shape (b, n)."""
        return self._ranker.lists(users, n)

    def lists_of_new(self, rows: Csr, n: int) -> np.ndarray:
        """Those of new users with these items, (b, n_items)."""
        return self._ranker.lists_of_new(rows, n)


def hidden_ndcg(ranker: Any, hidden: Csr, given: Csr | None, seed: int) -> float:
    """NDCG of lists of 20 items for the users with hidden ones, by their gains, or for 5000 of them drawn at random.

    Lists are of trained users, or of new ones with the items given, (n_users, n_items).
    """
    users = np.flatnonzero(np.diff(hidden.indptr))
    if users.size > _MOST_USERS:
        users = np.sort(np.random.default_rng(seed).choice(users, _MOST_USERS, replace=False))
    n = min(_LENGTH, hidden.shape[1])
    lists = ranker.lists(users, n) if given is None else ranker.lists_of_new(given[users], n)
    return float(graded_ndcg(lists, hidden[users]).mean())


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
    >>> from benchmarks.accuracy.peers.autoencoders import EASE
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
        """The best n unseen items of some users, by positions; (b, n), or fewer; -1 where none is left."""
        return self._ranker.lists_of_new(self._own[users], n)


def _shown(part: HiddenPart, data: Interactions) -> Interactions:
    assert part.times is not None
    times = part.times.tocoo()
    ones = np.ones(times.nnz)
    return Interactions(times.row, times.col, ones, data.user_ids, data.item_ids, timestamps=times.data)
