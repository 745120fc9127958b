"""The ratings of the users and of the items that a rank owns, and what all ranks know of the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from air_recsys.data.columns import narrowed
from air_recsys.data.interactions import Interactions
from air_recsys.distributed.group import Cut, Group
from air_recsys.nn.posterior.entries import Entries
from air_recsys.storage.lazy import torch


class Moments(NamedTuple):
    """Figures of all ratings."""

    n: int
    mean: float
    deviation: float
    low: float
    high: float


def moments_of(group: Group, own: np.ndarray) -> Moments:
    """The figures of the ratings of all ranks from those of each, none of which is without any."""
    sizes, totals, lows, highs = zip(
        *group.of_all((own.size, float(own.sum()), float(own.min()), float(own.max()))), strict=True
    )
    mean = sum(totals) / sum(sizes)
    squares = sum(group.of_all(float(np.square(own - mean).sum())))
    return Moments(sum(sizes), mean, (squares / sum(sizes)) ** 0.5, min(lows), max(highs))


class OwnSide(NamedTuple):
    """The ratings of the own rows of one side, those of row i at ``starts[i]:starts[i + 1]``."""

    cut: Cut
    starts: np.ndarray  # (n_own + 1,)
    partners: np.ndarray  # (nnz,), ascending within a row
    ratings: np.ndarray  # (nnz,)
    degrees: np.ndarray  # (n,), the numbers of ratings of all rows

    @classmethod
    def sorted(
        cls,
        cut: Cut,
        rank: int,
        index: np.ndarray,
        partners: np.ndarray,
        ratings: np.ndarray,
        degrees: np.ndarray,
    ) -> Self:
        """Ratings in the order of their rows `index`, all of which the rank owns; partners ascend already."""
        order = np.argsort(index, kind="stable")
        starts = np.concatenate([[0], np.cumsum(degrees[cut.of(rank)])])
        return cls(cut, starts, partners[order], ratings[order], degrees)

    def entries(
        self, transform: Callable[[np.ndarray], np.ndarray], dtype: torch.dtype, device: torch.device
    ) -> Entries:
        """The ratings as entries, values transformed."""
        kind = torch.int32 if max(self.partners.size, self.degrees.size) < 2**31 else torch.int64
        starts, partners = (torch.as_tensor(part).to(device, kind) for part in (self.starts, self.partners))
        values = torch.as_tensor(transform(self.ratings.astype(np.float64))).to(device, dtype)
        return Entries(starts, partners, values, None)


@dataclass(frozen=True)
class TableExtent:
    """The sizes of a table of ratings, an `air_recsys.data.interactions.Extent`."""

    n_users: int
    n_items: int
    n_ratings: int

    has_weights = False
    n_features = (0, 0)
    has_places = (False, False)

    @property
    def n_rated(self) -> tuple[int, int]:
        """All users and items: a table has only those that have a rating."""
        return self.n_users, self.n_items


class OwnRatings(NamedTuple):
    """The part of shared ratings that a rank holds."""

    rows: Interactions  # of the own users, with the ids of all users and items
    sides: tuple[OwnSide, OwnSide]  # by user and by item
    moments: Moments
    digest: str  # of all ratings, the same on all ranks

    @property
    def extent(self) -> TableExtent:
        """The sizes of the ratings of all ranks."""
        return TableExtent(self.rows.n_users, self.rows.n_items, self.moments.n)

    @property
    def n_held(self) -> int:
        """Ratings of the side of which this rank holds more."""
        return max(side.ratings.size for side in self.sides)

    def gathered(self, group: Group) -> Interactions | None:
        """All ratings on rank 0, and None on the others."""
        users, items = self.rows.user_index, self.rows.item_index
        ratings = of_one_width(group, self.rows.ratings)
        users, items, ratings = (_collected(group, column) for column in (users, items, ratings))
        if group.rank:
            return None
        ids = self.rows.user_ids, self.rows.item_ids
        return Interactions(users, items, ratings, *ids, allow_negative=True, copy=False)


def _collected(group: Group, column: np.ndarray) -> np.ndarray | None:
    whole = group.collect(torch.as_tensor(column))
    return None if whole is None else whole.numpy()


def of_one_width(group: Group, ratings: np.ndarray) -> np.ndarray:
    """Ratings in 32 bits where those of all ranks are such numbers, else in 64."""
    own = narrowed(ratings)
    return own if all(group.of_all(own.dtype == np.float32)) else own.astype(np.float64, copy=False)
