"""The jobs of a worker on one piece of a table: lists of items, or scores of pairs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import compress
from typing import Protocol

import numpy as np

from air_recsys.data.readers.ratings_parquet import plain_type
from air_recsys.distributed.parquet import ids_of
from air_recsys.models import Recommender
from air_recsys.storage.validation import needs_extra

with needs_extra("distributed"):
    import pyarrow as pa


class Job(Protocol):
    """The work of a worker, which can be pickled."""

    @property
    def columns(self) -> list[str] | None:
        """The columns that it reads; None stands for all."""
        ...

    def score(self, model: Recommender, table: pa.Table) -> tuple[pa.Table, int]:
        """Return the table to write, and how many rows of the one that was read have an unknown id."""
        ...


@dataclass(frozen=True)
class RecommendJob:
    """The best n items of each user."""

    user: str  # the column with the ids
    n: int
    exclude_seen: bool
    skip: bool  # leave unknown users out
    items: tuple[Hashable, ...] | None  # that may be recommended; None stands for all
    exclude: tuple[Hashable, ...] | None  # that may not
    schema: pa.Schema  # of the lists, so that files without a row have it too; see `list_schema`

    @property
    def columns(self) -> list[str]:
        """The users."""
        return [self.user]

    def score(self, model: Recommender, table: pa.Table) -> tuple[pa.Table, int]:
        """Return the lists one below the other, and the number of unknown users."""
        users = ids_of(table[self.user])
        trained = model.interactions_.users.lookup(users) >= 0
        asked = list(compress(users, trained)) if self.skip else users
        items, exclude = (None if ids is None else list(ids) for ids in (self.items, self.exclude))
        lists = model.recommend(asked, self.n, self.exclude_seen, items=items, exclude=exclude)
        return pa.Table.from_pandas(lists, self.schema, preserve_index=False), int((~trained).sum())


@dataclass(frozen=True)
class PredictJob:
    """The score of each pair, beside all columns of the table; `user` and `item` are those with ids."""

    user: str
    item: str

    @property
    def columns(self) -> None:
        """All."""
        return

    def score(self, model: Recommender, table: pa.Table) -> tuple[pa.Table, int]:
        """Return the table with the column score, and the number of pairs with an unknown id."""
        users, items = ids_of(table[self.user]), ids_of(table[self.item])
        scores = pa.array(model.predict(users, items, unknown="mean"), pa.float64())
        data = model.interactions_
        unknown = (data.users.lookup(users) < 0) | (data.items.lookup(items) < 0)
        return table.append_column("score", scores), int(unknown.sum())


def list_schema(user_type: pa.DataType, item_ids: np.ndarray) -> pa.Schema:
    """Return the columns of `Recommender.recommend`, with users in the type that was read.

    Examples
    --------
    >>> list_schema(pa.int32(), np.array(["x", "y"], dtype=object)).types[:3]
    [DataType(int32), DataType(string), DataType(double)]
    """
    items = pa.string() if item_ids.dtype == object else pa.int64()
    columns = {"user": plain_type(user_type), "item": items, "score": pa.float64(), "rank": pa.int64()}
    return pa.schema([*columns.items(), ("source", pa.string())])
