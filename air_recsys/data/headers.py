"""Headers of tables of ratings: which column is which, and whether a table is long or wide."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

_USUAL = {
    "user": {"user", "users", "userid", "uid", "username", "customer", "customerid", "reader", "readerid"},
    "item": {"item", "items", "itemid", "iid", "movie", "movieid", "film", "filmid", "book", "bookid", "isbn"}
    | {"product", "productid", "song", "songid", "track", "trackid", "artist", "artistid", "game", "gameid"},
    "rating": {"rating", "ratings", "score", "stars", "grade", "value"},
}
"""Names of columns, in small letters without signs, by what they hold."""

_OF_LONG = set.union(*_USUAL.values(), {"timestamp", "time", "date", "weight"})


def named_column(name: Hashable, header: Sequence[Hashable]) -> Hashable | None:
    """Return the column of that name: as it is written, else in other cases; None where there is not exactly one.

    Examples
    --------
    >>> named_column("user", ["User", "Item"]), named_column("user", ["User", "USER"])
    ('User', None)
    """
    if name in header:
        return name if list(header).count(name) == 1 else None
    alike = [each for each in header if str(each).casefold() == str(name).casefold()]
    return alike[0] if len(alike) == 1 else None


def hint_at_columns(absent: Mapping[str, Hashable], header: Sequence[Hashable]) -> str:
    """Return how to name the columns that are probably meant, as the end of a message; nothing where none is known.

    Parameters
    ----------
    absent : mapping of str to hashable
        By "user", "item" and "rating", the names that the header lacks.
    header : sequence of hashable

    Examples
    --------
    >>> hint_at_columns({"item": "item"}, ["user", "movieId", "rating"])
    "; is item='movieId' meant, for Interactions.from_frame and read_ratings (in the shell --item-column movieId)?"
    """
    meant = {role: _likely(role, header) for role in absent if role in _USUAL}
    found = {role: names[0] for role, names in meant.items() if len(names) == 1}
    if not found:
        return ""
    python = ", ".join(f"{role}={name!r}" for role, name in found.items())
    shell = " ".join(f"--{role}-column {name}" for role, name in found.items())
    return f"; is {python} meant, for Interactions.from_frame and read_ratings (in the shell {shell})?"


def column_of_item_ids(header: Sequence[Hashable]) -> Hashable | None:
    """Return the column of ids in a table about items: "id", else a usual name of a column of items; None without one.

    Of several usual names it is one that ends in "id", and of these the first.

    Examples
    --------
    >>> column_of_item_ids(["title", "ID"]), column_of_item_ids(["movie", "movieId"]), column_of_item_ids(["title"])
    ('ID', 'movieId', None)
    """
    if (name := named_column("id", header)) is not None:
        return name
    likely = sorted(_likely("item", header), key=lambda each: not _plain(each).endswith("id"))
    return likely[0] if likely else None


def may_be_wide(header: Sequence[Hashable]) -> bool:
    """Return whether names can be those of a wide table: ids of users, then an item a column.

    Examples
    --------
    >>> may_be_wide(["reader", "Emma", "Dracula"]), may_be_wide(["userId", "movieId", "rating"])
    (True, False)
    """
    others = [_plain(name) for name in header[1:]]
    first = any(_likely(role, header[:1]) for role in ("item", "rating"))
    return bool(others) and not first and not _OF_LONG.intersection(others)


def wide_frame(frame: pd.DataFrame) -> pd.DataFrame | None:
    """Return a frame whose index holds users and whose columns are items, or None where it is no such table.

    Users stand in the index, or in the first column where that is text or has a name of users. A table of numbers may
    also be one of ratings under other names. So with them in the index it is wide only where that or the columns are
    named or not counted, or where two columns lack values, as ids do not.

    Examples
    --------
    >>> wide_frame(pd.DataFrame({"x": [5, None], "y": [2, 1]}, ["ann", "bob"])).shape
    (2, 2)
    >>> wide_frame(pd.DataFrame({"who": ["ann", "ann"], "what": [7, 8], "how": [5, 3]})) is None
    True
    """
    names = list(frame.columns)
    if frame.empty or not frame.columns.is_unique or not may_be_wide(names):
        return None
    first = pd.Series(frame[names[0]])
    if not _is_number(first) or _likely("user", names[:1]):
        rest = frame.drop(columns=names[0])
        is_wide = not first.hasnans and first.is_unique and _are_numbers(rest)
        return rest.set_axis(first, axis=0) if is_wide else None
    axes = frame.index, frame.columns
    labelled = any(axis.name is not None for axis in axes) or axes[0].dtype.kind not in "iu"
    is_wide = labelled or axes[1].dtype.kind in "iu" or frame.isna().any().sum() > 1
    return frame if is_wide and axes[0].is_unique and _are_numbers(frame) else None


def are_user_names(header: Sequence[Hashable]) -> bool:
    """Return whether all names are usual ones of a column of users, an empty one or "id" included.

    Examples
    --------
    >>> are_user_names(["User ID"]), are_user_names([""]), are_user_names(["196"])
    (True, True, False)
    """
    return all(_plain(name) in _USUAL["user"] | {"", "id"} for name in header)


def looks_like_values(fields: Iterable[str]) -> bool:
    """Return whether fields of the first line of a file are numbers, all of them.

    Examples
    --------
    >>> looks_like_values(["196", "242", "-3.5"]), looks_like_values(["x", "3"])
    (True, False)
    """
    return all(each.replace(".", "", 1).lstrip("+-").isdigit() for each in fields)


def _likely(role: str, header: Sequence[Hashable]) -> list[Hashable]:
    return [name for name in header if _plain(name) in _USUAL[role]]


def _plain(name: Hashable) -> str:
    return "".join(sign for sign in str(name).casefold() if sign.isalnum())


def _are_numbers(frame: pd.DataFrame) -> bool:
    return all(_is_number(pd.Series(column)) for _, column in frame.items())


def _is_number(column: pd.Series) -> bool:
    if column.dtype.kind in "biuf":
        return True
    return column.dtype == object and all(isinstance(each, int | float | np.number) for each in column.dropna())
