"""The nodes of a graph: their ids, attributes and names."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.ids import IdIndex, close_names
from air_recsys.exceptions import DataError, UnknownIdError
from air_recsys.storage.validation import check_choice

_SUGGESTIONS = 3


class Nodes:
    """Ids in a fixed order, with a table of attributes and a column of names.

    Parameters and errors are those of `air_recsys.SimilarityGraph`. Ids are distinct; rows of other ids in the table
    of attributes are left out.
    """

    def __init__(
        self, ids: Iterable[Hashable], kind: str, attributes: pd.DataFrame | None = None, label: str | None = None
    ) -> None:
        self.index = IdIndex(ids, kind)
        self.kind = kind
        self.attributes = self._aligned(attributes)
        self.label = None if label is None else check_choice("label", label, self.attributes.columns.tolist())

    @property
    def ids(self) -> np.ndarray:
        """Ids in row order, shape (n,)."""
        return self.index.ids

    def labels(self) -> np.ndarray:
        """The name of every node as text, its id where the label column has no value; shape (n,)."""
        names: list[Any] = self.ids.tolist()
        if self.label is not None:
            column = self.attributes[self.label]
            names = np.where(column.isna(), self.ids.astype(object), column.astype(object)).tolist()
        return np.fromiter(map(str, names), dtype=object)

    def series(self, values: np.ndarray, name: str) -> pd.Series:
        """One value per node as a Series indexed by id."""
        return pd.Series(values, index=self._pandas_index(), name=name)

    def take(self, rows: np.ndarray) -> Nodes:
        """The nodes of some rows, in that order."""
        return Nodes(self.ids[rows], self.kind, self.attributes.iloc[rows], self.label)

    def row(self, id: Hashable) -> int:
        """The row of a node; see `rows`."""
        return int(self.rows([id])[0])

    def rows(self, ids: Sequence[Hashable] | np.ndarray) -> np.ndarray:
        """The rows of several nodes, or `UnknownIdError` with the ids whose text or label is nearest."""
        rows = self.index.lookup(ids)
        if (rows < 0).any():
            unknown = [id for id, row in zip(ids, rows.tolist(), strict=True) if row < 0]
            raise UnknownIdError(self.kind, unknown, self._hint(unknown[0]))
        return rows

    def _hint(self, id: Hashable) -> str:
        """A hint at the ids nearest to an unknown one, by their own text and by their labels."""
        if not len(self.index):
            return "the graph has no nodes"
        labels, ids = self.labels().tolist(), self.ids.tolist()
        names = {name.casefold(): row for row, name in enumerate(labels)}
        names |= {str(own).casefold(): row for row, own in enumerate(ids)}
        close = close_names(str(id).casefold(), names, _SUGGESTIONS)
        rows = dict.fromkeys(names[name] for name in close) or range(min(_SUGGESTIONS, len(ids)))
        shown = [repr(ids[row]) + ("" if self.label is None else f" ({labels[row]!r})") for row in rows]
        return f"{'the nearest are' if close else 'none is near; the ids are such as'} {', '.join(shown)}"

    def _pandas_index(self) -> pd.Index:
        try:
            return pd.Index(self.ids, name=self.kind)
        except UnicodeEncodeError as error:
            raise DataError(f"expected ids that UTF-8 can hold, found {error.object!r}") from None

    def _aligned(self, attributes: pd.DataFrame | None) -> pd.DataFrame:
        index = self._pandas_index()
        if attributes is None:
            return pd.DataFrame(index=index)
        if not isinstance(attributes, pd.DataFrame):
            raise DataError(f"expected a DataFrame of attributes, found {type(attributes).__name__}")
        table = attributes.set_index(self.kind) if self.kind in attributes.columns else attributes
        if not table.columns.map(str).is_unique:
            raise DataError(f"expected distinct columns of attributes, found {table.columns.tolist()}")
        rows = IdIndex(table.index, self.kind).lookup(self.ids)
        if len(rows) and len(table) and (rows < 0).all():
            raise DataError(
                f"expected attributes of some of the {self.kind}s, found none: the table's ids are such as "
                f"{table.index.tolist()[0]!r}, the graph's such as {self.ids.tolist()[0]!r}"
            )
        return table.reset_index(drop=True).reindex(rows).set_axis(index)
