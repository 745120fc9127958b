"""Conversion of ids of any hashable type to indices and back."""

from __future__ import annotations

import difflib
import html
import re
import unicodedata
import warnings
from collections.abc import Hashable, Iterable, Mapping, Set
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.columns import index_type
from air_recsys.data.frames import as_pandas
from air_recsys.exceptions import DataError, DataWarning, UnknownIdError, quoted

_MOST_COMPARED = 20_000  # names: part of a second
_DENSE = 0.5  # share of their range that numbers of rows have


def as_id_array(ids: Iterable[Hashable]) -> np.ndarray:
    """Return ids as a 1-D array: int64 where all are integers, else of objects.

    Floating point numbers that are all whole, as pandas makes of integers beside a missing one, are integers.
    """
    if isinstance(ids, np.ma.MaskedArray):
        ids = ids.tolist()  # None where an id is masked
    values = list(ids) if not isinstance(ids, (np.ndarray, pd.Series, pd.Index)) else ids
    try:
        array = np.asarray(values)
    except ValueError:  # tuples of different lengths, or bytes beside strings
        array = np.empty(0, dtype=object)
    if array.ndim == 1 and (array.dtype.kind == "i" or (array.dtype.kind == "u" and array.max(initial=0) < 2**63)):
        return array.astype(np.int64)
    if array.ndim == 1 and array.dtype.kind == "f" and _are_whole(array):
        return array.astype(np.int64)
    objects = values if isinstance(values, list) else array.tolist()
    return np.fromiter(objects, dtype=object, count=len(objects))


def integer_of(text: str) -> int | None:
    """Return the integer that a text is, written as Python writes it; None for "+10", "010", "1_0" and other text.

    Examples
    --------
    >>> integer_of("10"), integer_of("-3"), integer_of("010"), integer_of("ten")
    (10, -3, None, None)
    """
    try:
        number = int(text)
    except ValueError:
        return None
    return number if str(number) == text else None


def text_beside(ids: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return ids as text where they are integers and others are not."""
    return ids.astype(str).astype(object) if others.dtype == object and ids.dtype != object else ids


def alike(ids: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return ids as text beside others that are text, and texts of integers as these beside integers.

    Examples
    --------
    >>> alike(np.array(["7", "x"], dtype=object), np.array([7, 8])).tolist()
    [7, 'x']
    """
    ids = text_beside(ids, others)
    if ids.dtype != object or others.dtype == object:
        return ids
    numbers = [integer_of(each) if isinstance(each, str) else None for each in ids.tolist()]
    return as_id_array([each if n is None else n for each, n in zip(ids.tolist(), numbers, strict=True)])


def asked_ids(ids: Any, kind: str) -> np.ndarray:
    """Return one id, or the ids of any iterable, a set in its order, as a 1-D array; `DataError` for a table of more.

    Text and bytes are one id. A mapping is none.

    Examples
    --------
    >>> asked_ids("ann", "user"), asked_ids({3, 1}, "user"), asked_ids(map(str, [3, 1]), "user")
    (array(['ann'], dtype=object), array([1, 3]), array(['3', '1'], dtype=object))
    """
    if isinstance(ids, Mapping):
        raise DataError(f"expected a {kind} id or several, found a {type(ids).__name__}")
    ids = as_pandas(ids)
    if isinstance(ids, pd.DataFrame):
        if ids.shape[1] != 1:
            raise DataError(f"expected {kind} ids in one column, found the columns {quoted(list(ids.columns))}")
        return as_id_array(ids.iloc[:, 0])
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        return as_id_array([ids])
    if isinstance(ids, set | frozenset):
        return rank_ids(as_id_array(list(ids)))[0]
    if isinstance(ids, np.ndarray) or hasattr(ids, "__array__"):
        array = ids if isinstance(ids, np.ma.MaskedArray | pd.Series | pd.Index) else np.asarray(ids)
        if array.ndim > 1:
            raise DataError(f"expected {kind} ids in one row, found an array of shape {array.shape}")
        return as_id_array(array if array.ndim else [array.item()])
    return as_id_array(ids if isinstance(ids, list | tuple) else list(ids))


def folded_text(text: str) -> str:
    """Return what remains of an id without case, blanks, leading zeros and forms of Unicode and HTML."""
    text = html.unescape(text)
    plain = plain_text(text if text.isascii() else unicodedata.normalize("NFKC", text)).casefold()
    return plain.lstrip("0") if plain.isdigit() else plain


def plain_text(text: str) -> str:
    """Return an id without blanks that cannot be seen, in one form of Unicode."""
    text = text if text.isascii() else unicodedata.normalize("NFC", re.sub("[\u200b\ufeff]", "", text))
    return " ".join(text.split())


def _are_whole(numbers: np.ndarray) -> bool:
    """Return whether floating point numbers are integers, none of which may have been rounded."""
    exact = 2.0 ** (np.finfo(numbers.dtype).nmant + 1)
    return numbers.size > 0 and bool(((numbers == np.trunc(numbers)) & (np.abs(numbers) < exact)).all())


def encode_ids(values: Any, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Encode a column of ids as indices into its distinct ids.

    Ids are sorted where they can be compared, so the order of the rows does not matter; otherwise they are in order of
    appearance.

    Parameters
    ----------
    values : array_like, shape (n_ratings,)
        One id per rating.
    kind : str
        "user" or "item", for messages.

    Returns
    -------
    indices : ndarray of int32, or int64 where that is too small, shape (n_ratings,)
    ids : ndarray, shape (n_distinct,)

    Raises
    ------
    DataError
        If an id is missing (None or NaN).
    """
    array = as_id_array(values)
    missing = np.flatnonzero(pd.isna(array)) if array.dtype == object else np.empty(0, dtype=int)
    if missing.size:
        raise DataError(
            f"every rating needs its {kind} id, found {missing.size} without one, the first in row {missing[0]}"
        )
    try:
        indices, ids = pd.factorize(array)
    except TypeError:
        raise _unhashable(array, kind) from None
    ids, rank = rank_ids(as_id_array(ids))
    return rank[indices], ids


def rank_ids(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct ids in their order, as they are where they cannot be compared, and the new place of each."""
    try:
        order = np.argsort(ids, kind="stable")
    except TypeError:
        order = np.arange(ids.size)
    rank = np.empty(ids.size, index_type(ids.size))
    rank[order] = np.arange(ids.size)
    return ids[order], rank


def close_names(name: str, names: Iterable[str], n: int = 3, likeness: float = 0.5) -> list[str]:
    """Return the names that are nearest to one, by `difflib`, the nearest first.

    Of more than 20,000 names only those with the same first character are compared.
    """
    compared = list(names)
    if len(compared) > _MOST_COMPARED:
        compared = [each for each in compared if each[:1] == name[:1]][:_MOST_COMPARED]
    return difflib.get_close_matches(name, compared, n, likeness)


class IdIndex:
    """A fixed sequence of distinct ids with the index of each."""

    def __init__(self, ids: Iterable[Hashable], kind: str) -> None:
        if isinstance(ids, Mapping | Set):
            raise DataError(f"expected {kind} ids in the order of the rows, found a {type(ids).__name__}: give a list")
        self.ids = as_id_array(ids)
        self.kind = kind
        if self.ids.dtype == object and not _all_hashable(self.ids):
            raise _unhashable(self.ids, kind)
        self._index = pd.Index(self.ids, dtype=self.ids.dtype)
        if not self._index.is_unique:  # which builds the table of `lookup` before a second thread can ask for it
            repeated = self.ids[self._index.duplicated()].tolist()[0]
            raise DataError(f"{kind} ids must be distinct, found {repeated!r} twice")

    def __len__(self) -> int:
        return self.ids.size

    def __reduce__(self) -> tuple[type[IdIndex], tuple[np.ndarray, str]]:
        # pandas would leave its table out, and build it at the first lookup, where threads can meet.
        return type(self), (self.ids, self.kind)

    def check_shared(self, ids: np.ndarray, content: str) -> None:
        """Raise `DataError` where all ids that come with some content, such as "features", are unknown.

        Warn where integers without gaps, as row numbers are, miss those of the data by one, or where those of the
        data are such numbers and miss these, which have most of their range.
        """
        known, has_numbers = self.ids, ids.size and ids.dtype.kind in "iu" and self.ids.dtype != object
        is_numbered = has_numbers and known.min() in (0, 1) and known.size == np.ptp(known) + 1
        share = np.unique(ids).size / (np.ptp(ids) + 1) if has_numbers else 0
        if share == 1 or (is_numbered and share > _DENSE):
            low, high = ids.min(), ids.max()
            if (known.max() == high + 1 and known.min() > low) or (known.min() == low - 1 and known.max() < high):
                told = f"those of the data in {known.min()}..{known.max()}: are they off by one, or numbered anew?"
                warnings.warn(f"ids of the {content} lie in {low}..{high}, {told}", DataWarning, stacklevel=6)
        if (self.lookup(ids) < 0).all():
            raise DataError(
                f"expected {content} of {self.kind}s of the data, found none: their ids are such as "
                f"{quoted(self.ids.tolist()[0])}, those of the {content} such as {quoted(ids.tolist()[0])}"
            )

    def nearest(self, id: Hashable) -> list[Any]:
        """Return up to three ids whose text is nearest to that of an unknown one, the nearest first."""
        ids = {str(each).casefold(): each for each in self.ids.tolist()}
        return [ids[name] for name in close_names(str(id).casefold(), ids)]

    def joined(self, ids: np.ndarray) -> IdIndex:
        """Return an index that has other ids after its own, or `UnknownIdError` for "5" beside 5 and 5 beside "5"."""
        new = ids[self.lookup(ids) < 0]
        swapped = self.lookup([integer_of(each) if isinstance(each, str) else str(each) for each in new.tolist()])
        self.check_type(new[swapped >= 0])
        if not new.size:
            return self
        whole = IdIndex([*self.ids.tolist(), *new.tolist()], self.kind)
        if "by_folded_text" in vars(self):
            vars(whole)["by_folded_text"] = self.by_folded_text | IdIndex(new, self.kind).by_folded_text
        return whole

    @cached_property
    def by_folded_text(self) -> dict[str, str]:
        """The last of the ids that are text, by what `folded_text` leaves of it."""
        return {folded_text(each): each for each in self.ids.tolist() if isinstance(each, str)}

    def lookup(self, ids: Any) -> np.ndarray:
        """Return the index of each id, -1 for an unknown one; shape (n,).

        `ids` is one id or any iterable of ids, see `asked_ids`; an id that cannot be hashed, such as a list, is a
        `DataError`.
        """
        queried = asked_ids(ids, self.kind)
        if queried.dtype != self.ids.dtype:
            queried = queried.astype(object)
        try:
            return self._index.get_indexer(pd.Index(queried, dtype=queried.dtype)).astype(np.int64)
        except TypeError:
            raise _unhashable(queried, self.kind) from None

    def places(self, ids: Any, hint: str = "leave it out") -> np.ndarray:
        """Return the index of each id, or raise `UnknownIdError` with a hint for the caller; `ids` as in `lookup`."""
        queried = asked_ids(ids, self.kind)
        self.check_type(queried)
        places = self.lookup(queried)
        if (places < 0).any():
            raise UnknownIdError(self.kind, queried[places < 0].tolist(), hint)
        return places

    def check_type(self, ids: np.ndarray, *, all_of_them: bool = False) -> None:
        """Raise `UnknownIdError` for text where all ids are integers, and for integers where all are text.

        With `all_of_them` only where none of those asked for is of the type of the ids.
        """
        if self.ids.dtype != object:
            others = [each for each in ids.tolist() if isinstance(each, str)] if ids.dtype == object else []
        elif self._are_texts:
            others = [each for each in ids.tolist() if isinstance(each, int | np.integer)]
        else:
            others = []
        if others and (not all_of_them or len(others) == ids.size):
            types = ("text", "integers") if self.ids.dtype == object else ("integers", "text")
            known = f"its ids are {types[0]}, such as {quoted(self.ids.tolist()[0])}, and these are {types[1]}"
            raise UnknownIdError(self.kind, list(dict.fromkeys(others)), known)

    @cached_property
    def _are_texts(self) -> bool:
        return all(isinstance(each, str) for each in self.ids.tolist())

    def place(self, id: Hashable) -> int:
        """Return the index of one id, or raise `UnknownIdError`."""
        return int(self.places([id], "")[0])


def _all_hashable(ids: Iterable[Any]) -> bool:
    try:
        for each in ids:
            hash(each)
    except TypeError:
        return False
    return True


def _unhashable(ids: np.ndarray, kind: str) -> DataError:
    """Return the error for ids of which one cannot be hashed."""
    found = next(each for each in ids.tolist() if not _all_hashable([each]))
    return DataError(f"expected {kind} ids that can be hashed, as numbers or text, found {quoted(found)}")
