"""Checks of the columns of a table of ratings."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.scales import found_below_zero, hint_at_scale
from air_recsys.exceptions import DataError, DataWarning, quoted

_STACKLEVEL = 6  # of a warning: the caller of a model's fit


def index_type(size: int) -> type[np.signedinteger]:
    """Return the type of positions in 0..size - 1: 32 bits where they are enough."""
    return np.int32 if size <= 2**31 else np.int64


def as_array(values: Any, name: str) -> np.ndarray:
    """Return values as an array, or raise `DataError` for what NumPy cannot read, and for masked ones.

    A tensor that requires a gradient, or is on a GPU, cannot be read.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise DataError(f"expected {name} without masked values, found {np.ma.count_masked(values)}")
    try:
        return np.asarray(values)
    except ValueError:  # rows of different lengths
        return np.asarray(values, dtype=object)
    except (TypeError, RuntimeError) as error:
        raise DataError(f"expected {name} as an array, found a {type(values).__name__}: {error}") from None


def as_index(values: Any, size: int, kind: str, *, copy: bool = True) -> np.ndarray:
    """Return positions in 0..size - 1 as int32, or int64 where that is too small, shape (n,)."""
    index = as_array(values, f"{kind} indices")
    if index.ndim != 1 or index.dtype.kind not in "iu":
        raise DataError(f"{kind} indices must be a 1-D array of integers, found {index.dtype} {index.shape}")
    if index.size and (index.min() < 0 or index.max() >= size):
        raise DataError(f"{kind} indices must lie in 0..{size - 1}, found {index.min()}..{index.max()}")
    return index.astype(index_type(size), copy=copy)


def as_float(values: Any, name: str = "ratings") -> np.ndarray:
    """Return real numbers as float64, of any shape, NaN where a masked array has none."""
    masked = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    array = as_array(np.ma.getdata(values) if masked is not None else values, name)
    try:
        if array.dtype.kind in "cmM":
            raise TypeError("NumPy converts complex numbers and dates to real numbers")
        if array.dtype.kind in "OU" and any("_" in each for each in array.flat if isinstance(each, str)):
            raise ValueError("Python reads 1_0 as 10")
        real = array.astype(np.float64)
        if masked is not None:
            real[masked] = np.nan
        return real
    except (TypeError, ValueError):
        objects = np.ravel(np.asarray(values, dtype=object))
        other = next((value for value in objects if not _is_number(value)), "dates")
        raise DataError(f"{name} must be numbers, found {other!r}") from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return "_" not in str(value)


def _require(holds: np.ndarray, values: np.ndarray, expected: str, others: str, hint: str = "") -> None:
    rows = np.flatnonzero(~holds)
    if rows.size:
        first = f"the first in row {rows[0]}: {values[rows[0]]:g}"
        raise DataError(f"{expected}, found {rows.size} {others}, {first}{hint}")


def narrowed(numbers: np.ndarray) -> np.ndarray:
    """Return finite numbers as float32 where each of them is one, else as they are."""
    with np.errstate(over="ignore", under="ignore"):
        half = numbers.astype(np.float32)
    return half if np.array_equal(half, numbers) else numbers


def as_ratings(values: Any, size: int, allow_negative: bool | None, *, copy: bool = True) -> np.ndarray:
    """Return finite ratings, shape (size,), as float32 where that loses nothing, else as float64.

    None for `allow_negative` takes negative ones with a warning where they are part of the scale.
    """
    kind = values.dtype.type if type(values) is np.ndarray else None
    ratings = values.astype(kind, copy=copy) if kind in (np.float32, np.float64) else as_float(values)
    if ratings.shape != (size,):
        raise DataError(f"expected one rating for each of {size} pairs, found shape {ratings.shape}")
    _require(np.isfinite(ratings), ratings, "ratings must be finite", "NaN or infinite", "; drop those rows")
    if not allow_negative and (ratings < 0).any():
        if allow_negative is None and found_below_zero(ratings):
            warnings.warn(
                f"ratings below 0 are taken as part of the scale: state {hint_at_scale(ratings)} where it is that",
                DataWarning,
                stacklevel=_STACKLEVEL,
            )
            return ratings if ratings.dtype == np.float32 else narrowed(ratings)
        hint = f"; if these are no code for missing, state {hint_at_scale(ratings)}, or pass allow_negative=True"
        _require(ratings >= 0, ratings, "ratings must be >= 0", "negative", f"{hint} (in the shell --negative)")
    return ratings if ratings.dtype == np.float32 else narrowed(ratings)


def as_weights(values: Any, size: int) -> np.ndarray:
    """Return finite weights >= 0 as float64, shape (size,)."""
    weights = as_float(values, "weights")
    if weights.shape != (size,):
        raise DataError(f"expected one weight for each of {size} ratings, found shape {weights.shape}")
    _require(np.isfinite(weights) & (weights >= 0), weights, "weights must be finite and >= 0", "others")
    if size and not weights.any():
        raise DataError("expected at least one weight > 0, found only zeros")
    return weights


_RELATIONS = {"=": 0, "==": 0, "~": 0, ">": 1, ">=": 1, ">>": 1, "<": -1, "<=": -1, "<<": -1}


def as_relations(values: Any, size: int) -> np.ndarray | None:
    """Return relations as int8, shape (size,): 0 for measured, 1 for above, -1 for below; None where all are 0.

    Spaces and quotes around a sign do not count, as files of ChEMBL have them.
    """
    array = as_array(values, "relations")
    if array.shape != (size,):
        raise DataError(f"expected one relation for each of {size} ratings, found shape {array.shape}")
    if array.dtype.kind in "iu":
        codes, known = array, np.isin(array, (-1, 0, 1))
    else:
        signs = pd.Series(array, dtype=object).map(lambda sign: _RELATIONS.get(str(sign).strip(" '\"")))
        codes, known = signs.fillna(0).to_numpy(), signs.notna().to_numpy()
    if not known.all():
        row = int(np.argmin(known))
        raise DataError(
            f"expected the relations {', '.join(_RELATIONS)}, found {np.count_nonzero(~known)} others, the first in "
            f"row {row}: {array[row]!r}"
        )
    found = codes.astype(np.int8)
    return found if found.any() else None


def has_limits(values: Any) -> bool:
    """Whether some of a column are a relation < or >, or texts with one in front; numbers are not looked at.

    Examples
    --------
    >>> has_limits(["=", "'<'"]), has_limits(["> 5", 3]), has_limits([4.5, 3.0])
    (True, True, False)
    """
    column = pd.Series(values)
    if pd.api.types.is_numeric_dtype(column):
        return False
    return bool(column.astype(str).str.contains(r"^[ '\"]*[<>]", regex=True).any())


def split_signs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers, of which texts may have a relation in front, as float64, and the relations as `as_relations`.

    Examples
    --------
    >>> numbers, relations = split_signs(np.array(["> 10000", 0.5, "<1e3"], dtype=object))
    >>> numbers.tolist(), relations.tolist()
    ([10000.0, 0.5, 1000.0], [1, 0, -1])
    """
    relations = np.zeros(len(values), np.int8)
    if values.dtype.kind not in "OUT":
        return as_float(values), relations
    parts = pd.Series(values, dtype=object).astype("string").str.extract(r"^\s*([<>=~]*)\s*(.*?)\s*$")
    numbers = as_float(parts[1].replace("", pd.NA).to_numpy(dtype=object, na_value=np.nan))
    found = as_relations(parts[0].fillna("").replace("", "=").to_numpy(dtype=object), len(values))
    return numbers, relations if found is None else found


def joined_relations(signs: np.ndarray | None, column: Any, size: int) -> np.ndarray | None:
    """Return the relations of a column, or those before the values where there is none; both must agree."""
    if column is None:
        return signs
    found = as_relations(column, size)
    if signs is not None:
        told = np.zeros(size, np.int8) if found is None else found
        if (wrong := np.flatnonzero((signs != 0) & (signs != told))).size:
            raise DataError(
                f"expected signs of values as the relations say, found others in rows {quoted(wrong.tolist())}"
            )
    return found


def as_timestamps(values: Any, size: int, *, copy: bool = True) -> np.ndarray:
    """Return times as int64 (nanoseconds for dates, also those of texts in ISO 8601) or float64, shape (size,)."""
    array = as_array(values, "timestamps")
    if array.shape != (size,):
        raise DataError(f"timestamps must be {size} finite numbers or dates, found shape {array.shape}")
    column = pd.Series(array, copy=False).infer_objects()  # dates with a time zone come as objects
    if pd.api.types.is_string_dtype(column.dtype) and not _are_numbers_as_text(column):
        texts, (column, broken) = column, dates_of(column)
        if broken is not None:
            found = f"{quoted(texts.iloc[broken])} in row {broken}"
            raise DataError(f"timestamps must be finite numbers or dates in ISO 8601, found {found}")
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        missing, times = column.isna().to_numpy(), _nanoseconds(column)
    else:
        times = array.astype(np.int64, copy=copy) if array.dtype.kind == "i" else as_float(array, "timestamps")
        missing = ~np.isfinite(times) | (times == _NO_DATE)
        if array.dtype in (np.float16, np.float32) and size and np.abs(times).max() > _EXACT:
            told = f"timestamps in {array.dtype} beyond {_EXACT:,} are rounded: read them as integers or float64"
            warnings.warn(told, DataWarning, stacklevel=_STACKLEVEL)
    if missing.any():
        raise DataError(
            f"timestamps must be finite numbers or dates, found {missing.sum()} missing, the first in row "
            f"{missing.argmax()}"
        )
    return times


_NO_DATE = np.iinfo(np.int64).min  # the integer that NumPy makes of a missing date
_EXACT = 2**24  # the largest integer up to which float32 has all
_OFFSET = re.compile(r"\d{2}:\d{2}.*(?:Z|[+-]\d{2}:?\d{2})$", re.IGNORECASE)


def _are_numbers_as_text(column: pd.Series) -> bool:
    return bool(pd.Series(pd.to_numeric(column, errors="coerce")).notna().all())


def dates_of(texts: pd.Series) -> tuple[pd.Series, int | None]:
    """Return texts in ISO 8601, or dates of any type, as dates, and the first row that is none; None where all are.

    Warn where some texts have an offset from UTC and others none, which are then those of UTC.
    """
    if texts.dtype.kind != "M":
        texts = texts.astype(str)  # also of `datetime.date`
        n_offsets = int(texts.str.contains(_OFFSET, na=False).sum())
        if 0 < n_offsets < len(texts):
            told = f"{n_offsets} of {len(texts)} dates have an offset from UTC, the others are taken as in UTC"
            warnings.warn(told, DataWarning, stacklevel=_STACKLEVEL)
    dates = pd.to_datetime(texts, format="ISO8601", utc=True, errors="coerce").dt.tz_localize(None)
    broken = np.flatnonzero(dates.isna())
    return dates, int(broken[0]) if broken.size else None


def _nanoseconds(column: pd.Series) -> np.ndarray:
    try:
        return pd.DatetimeIndex(column).as_unit("ns").asi8
    except pd.errors.OutOfBoundsDatetime as error:
        raise DataError(f"timestamps must lie in the years 1677 to 2262, found {error}") from None


def ids_or_range(ids: Iterable[Hashable] | None, size: int, kind: str) -> Iterable[Hashable]:
    """Return ids, one a row or column of a matrix; their numbers where none are given."""
    if ids is None:
        return np.arange(size)
    chosen = ids if isinstance(ids, Mapping | Set) else list(ids)  # `IdIndex` refuses the former
    if len(chosen) != size:
        raise DataError(
            f"expected {size} {kind} ids, one per matrix {'row' if kind == 'user' else 'column'}, found {len(chosen)}"
        )
    return chosen


_USUAL = {
    "user": {"user", "users", "userid", "uid", "username", "customer", "customerid", "reader", "readerid"},
    "item": {"item", "items", "itemid", "iid", "movie", "movieid", "film", "filmid", "book", "bookid", "isbn"}
    | {"product", "productid", "song", "songid", "track", "trackid", "artist", "artistid", "game", "gameid"},
    "rating": {"rating", "ratings", "score", "stars", "grade", "value", "feedback"},
    "timestamp": {"timestamp", "timestamps", "time", "date", "datetime", "unixtime"},
    "weight": {"weight", "weights", "confidence"},
    "relation": {"relation", "relations", "standardrelation"},
    "kind": {"kind", "event", "eventtype", "behavior", "behaviour", "behaviortype", "actiontype"},
}
"""Names of columns, in small letters without signs, by what they hold."""

_OF_LONG = set.union(*_USUAL.values())
_AMOUNTS = {"plays", "playcount", "count", "counts", "n", "hours", "minutes", "clicks", "views", "listens", "quantity"}
_TYPES = (":token", ":float", ":token_seq", ":float_seq")  # behind the names in files of RecBole
_QUALIFIES = re.compile(
    "relation|qualifier|operator|units?|scale|max|min|out|currency|sign|polarity|negative|disliked?|standard|organism|"
    "species|assay|endpoint|activity|validity|mutation|mutant|variant|split|folds?|train|test|holdout|partition|"
    "(sub)?set|status|deleted|removed|cancell?ed|returned|refunded|(in)?active|(in)?valid|(en|dis)abled|ignored?|"
    "excluded?|outlier|spam|bot|fake|fraud|imputed|predicted|synthetic|simulated|n|num|number|counts?|votes|std|sd|"
    "stderr|variance|importance|propensity|weights?"
)
_NEUTRAL = re.compile(
    "is|was|has|of|at|by|date|type|value|col|column|index|row|item|user|order|event|comment|data|ratings?|reviews?|sample"
)
"""Words of names of columns that qualify a rating or its row, and words that may stand beside these."""
_OF_FORMS = frozenset("#'\"{}[]")  # signs of comments, quotes and JSON: such a name was not split as it is written
UNNAMED = "Unnamed: "  # begins the names that pandas makes for columns without one, such as a saved index
_LONGEST = 100  # signs of a name of a column that has a meaning


def named_column(name: Hashable, header: Sequence[Hashable]) -> Hashable | None:
    """Return the column of that name: as it is written, else in other cases; None where there is not exactly one."""
    if name in header:
        return name if list(header).count(name) == 1 else None
    alike = [each for each in header if str(each).casefold() == str(name).casefold()]
    return alike[0] if len(alike) == 1 else None


def usual_column(role: str, name: Hashable, header: Sequence[Hashable]) -> Hashable | None:
    """Return the column of that name, as `named_column`, or else the one column with a usual name of its role.

    The latter is only looked for where `name` is the role itself, and so the default.

    Examples
    --------
    >>> usual_column("item", "item", ["userId", "movieId"]), usual_column("item", "film", ["userId", "movieId"])
    ('movieId', None)
    """
    found = named_column(name, header)
    if found is not None or name != role or name in header:
        return found
    likely = _likely(role, header)
    return likely[0] if len(likely) == 1 else None


def amount_column(header: Sequence[Hashable]) -> Hashable | None:
    """Return the column that says how much there is of each row: of weights, else the one of counts, hours, ...

    Examples
    --------
    >>> amount_column(["user", "item", "plays"]), amount_column(["user", "item", "plays", "hours"])
    ('plays', None)
    """
    named = usual_column("weight", "weight", header)
    amounts = [name for name in header if _plain(name) in _AMOUNTS]
    return amounts[0] if named is None and len(amounts) == 1 else named


_YEARS = {"year", "documentyear", "publicationyear"}


def time_column(header: Sequence[Hashable]) -> Hashable | None:
    """Return the column that says when a pair was found: of times or dates, else of years.

    Examples
    --------
    >>> time_column(["drug", "target", "Document Year"])
    'Document Year'
    """
    years = [name for name in header if _plain(name) in _YEARS]
    named = usual_column("timestamp", "timestamp", header)
    return years[0] if named is None and len(years) == 1 else named


_MOST_KINDS = 20  # of events


def told_kinds(table: pd.DataFrame) -> Hashable | None:
    """Return the column of the kinds of events; None where there is none, or where all values are equal or many."""
    name = usual_column("kind", "kind", list(table.columns))
    return name if name is not None and 1 < len(table[[name]].drop_duplicates()) <= _MOST_KINDS else None


def checked_kinds(column: pd.Series, target: Hashable, *, has_ratings: bool) -> np.ndarray:
    """Return the kind of each event as text, or raise `DataError` for missing ones, and where no target is named."""
    missing = np.flatnonzero(column.isna())
    if missing.size:
        raise DataError(f"expected a kind of each event, found {missing.size} missing, the first in row {missing[0]}")
    kinds = column.astype(str).to_numpy(dtype=object)
    names = np.unique(kinds).tolist()
    if target is None:
        raise DataError(
            f"expected the kind of events that lists are for, found {quoted(names)} in the column "
            f"{quoted(column.name)}: name it, as in AIR.for_likes(target={names[0]!r}) (in the shell --target "
            f"{names[0]}), or drop the column, and all events count alike"
        )
    if has_ratings:
        raise DataError(
            f"expected events of the kinds {quoted(names)} without ratings, found ratings: drop these, or name them "
            "weight where they say how much"
        )
    return kinds


def pair_columns(table: pd.DataFrame, words: tuple[str, str] = ("user", "item")) -> tuple[Hashable, Hashable]:
    """Return the columns of users and of items of a table of pairs, see `usual_column`; `DataError` without these.

    A model that has other words for them, as drug and target, takes these too.
    """
    header = list(table.columns)
    user, item = (
        word if word in header else usual_column(role, role, header)
        for role, word in zip(("user", "item"), words, strict=True)
    )
    if user is None or item is None:
        raise DataError(f"expected a table with the columns user and item, found {quoted(header)}")
    return user, item


def tell_columns(
    asked: Mapping[str, Hashable | None],
    found: Mapping[str, Hashable | None],
    header: Sequence[Hashable],
    stacklevel: int,
) -> None:
    """Warn, in one line, of columns that are read by another name than asked for, and of such that are not read.

    The former may also have a name of the other side. The latter are times, weights, what qualifies a value or a row,
    and further columns with a usual name of a role; where there are no ratings all others, but for ratings: a caller
    may expect them to count. `asked` and `found` are names by role; a role that has None has no column. One column in
    two roles is a `DataError`.
    """
    columns = {role: name for role, name in found.items() if name is not None}
    roles = {name: role for role, name in columns.items() if role != "weight"}
    if twice := [role for role, name in columns.items() if roles.get(name, role) not in (role, "weight")]:
        again = columns[twice[0]]
        raise DataError(
            f"expected a column of its own for each role, found {quoted(again)} as {twice[0]} and {roles[again]}"
        )
    other = [
        f"{quoted(name)} as {role}"
        for role, name in columns.items()
        if str(name).casefold() != str(asked[role]).casefold() or (role in _OTHER and _likely(_OTHER[role], [name]))
    ]
    unread = [name for name in header if name not in columns.values()]
    hints = {
        name: hint
        for role, (usual, hint) in _READ_BY.items()
        for name in unread
        if role not in columns and _plain(name) in usual
    }
    said = [f"{quoted(name)} ({hint})" for name, hint in hints.items()]
    said += [quoted(name) for name in unread if name not in hints and _is_expected(name, columns)]
    parts = [f"columns read: {', '.join(other)}"] if other else []
    parts += [f"columns not read: {', '.join(said)}"] if said else []
    if parts:
        warnings.warn("; ".join(parts), DataWarning, stacklevel=stacklevel)


_OTHER = {"user": "item", "item": "user"}
_READ_BY = {
    "rating": (_AMOUNTS, "rating= or --rating-column reads it, where there are ratings"),
    "timestamp": (_USUAL["timestamp"], "timestamp= or --timestamp-column reads it"),
    "weight": (_USUAL["weight"], "weight= of Interactions.from_frame reads it"),
    "relation": (_USUAL["relation"], "relation= of Interactions.from_frame reads it"),
    "kind": (_USUAL["kind"], "target= of AIR.for_likes, or --target, reads it"),
}
"""By role, names of columns that a caller may expect to be read, and what reads them."""


def _is_expected(name: Hashable, columns: Mapping[str, Hashable]) -> bool:
    """Return whether a caller may expect another column beside those of roles to be read."""
    if any(str(name).casefold() == str(read).casefold() for read in columns.values()):
        return True
    if name == "" or str(name).startswith(UNNAMED):
        return False
    plain = _plain(name)
    has_twin = any(role in columns and _likely(role, [name]) for role in ("user", "item", "rating"))
    is_told = any(plain in _USUAL[role] for role in ("rating", "timestamp", "weight", "kind"))
    return has_twin or qualifies(name) or ("rating" not in columns and not is_told)


_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def qualifies(name: Hashable) -> bool:
    """Return whether a name is that of a column that says what a value means, or what its row is for.

    Examples
    --------
    >>> qualifies("isTest"), qualifies("standard_units"), qualifies("marital_status"), qualifies("review_text")
    (True, True, False, False)
    """
    words = map(str.casefold, _WORD.findall(str(name)[:_LONGEST]))
    others = [word for word in words if not _NEUTRAL.fullmatch(word)]
    return bool(others) and all(map(_QUALIFIES.fullmatch, others))


def hint_at_columns(absent: Mapping[str, Hashable], header: Sequence[Hashable]) -> str:
    """Return how to name the columns that are probably meant, as the end of a message; nothing where none is known."""
    twice = [name for name in absent.values() if list(header).count(name) > 1]
    if twice:
        return f"; {quoted(twice[0])} stands there {list(header).count(twice[0])} times"
    meant = {role: _likely(role, header) for role in absent if role in ("user", "item", "rating")}
    found = {role: names[0] for role, names in meant.items() if len(names) == 1}
    if not found:
        return ""
    python = ", ".join(f"{role}={name!r}" for role, name in found.items())
    shell = " ".join(f"--{role}-column {name}" for role, name in found.items())
    return f"; is {python} meant, for Interactions.from_frame and read_ratings (in the shell {shell})?"


def column_of_ids(role: str, header: Sequence[Hashable]) -> Hashable | None:
    """Return the column of ids in a table about users or items; None without one.

    It has the name of its role ("user" or "item"), else "id", else a usual one. Of several usual names it is one that
    ends in "id", and of these the first.

    Examples
    --------
    >>> column_of_ids("item", ["title", "ID"]), column_of_ids("item", ["movie", "movieId"])
    ('ID', 'movieId')
    """
    for own in (role, "id"):
        if (name := named_column(own, header)) is not None:
            return name
    likely = sorted(_likely(role, header), key=lambda each: not _plain(each).endswith("id"))
    return likely[0] if likely else None


def without_index(table: pd.DataFrame, what: str, stacklevel: int) -> pd.DataFrame:
    """Return a table without the columns that pandas makes of an index, and warn of them."""
    named = [name for name in ("index", "level_0") if name in table.columns]
    numbers = [name for name in named if np.array_equal(table[name], range(len(table)))]
    names = [name for name in table.columns if str(name).startswith(UNNAMED) or name in numbers]
    if names:
        told = f"{what} without a name, or of row numbers, are left out: {quoted(names)}"
        warnings.warn(told, DataWarning, stacklevel=stacklevel + 1)
    return table.drop(columns=names)


def may_be_wide(header: Sequence[Hashable]) -> bool:
    """Return whether names can be those of a wide table: ids of users, then an item a column."""
    others = [_plain(name) for name in header[1:]]
    first = any(_likely(role, header[:1]) for role in ("item", "rating"))
    return bool(others) and not first and not _OF_LONG.intersection(others)


def wide_frame(frame: pd.DataFrame) -> pd.DataFrame | None:
    """Return a frame whose index holds users and whose columns are items, or None where it is no such table.

    Users stand in the index, or in the first column where that is text, has a name of users, or none. A table of
    numbers may also be one of ratings under other names. So with them in the index it is wide only where that or the
    columns are named or not counted, or where two columns lack values, as ids do not.
    """
    names = list(frame.columns)
    if frame.empty or not frame.columns.is_unique or not may_be_wide(names):
        return None
    first = pd.Series(frame[names[0]])
    if not _holds_numbers(first) or _likely("user", names[:1]) or str(names[0]).startswith(UNNAMED):
        rest = frame.drop(columns=names[0])
        is_wide = not first.hasnans and first.is_unique and _are_numbers(rest)
        return rest.set_axis(first, axis=0) if is_wide else None
    axes = frame.index, frame.columns
    labelled = any(axis.name is not None for axis in axes) or axes[0].dtype.kind not in "iu"
    is_wide = labelled or axes[1].dtype.kind in "iu" or frame.isna().any().sum() > 1
    return frame if is_wide and axes[0].is_unique and _are_numbers(frame) else None


FEW_COLUMNS, _FEW_ROWS = 8, 5


def check_not_long(columns: Sequence[Any], mend: str) -> None:
    """Raise `DataError` where the columns of a wide table look like users, items and ratings in one row each.

    They do where they are few and full, two of them repeat their values and hardly any pair of those, and a third one
    has numbers below theirs: ratings, unlike ids, are small.
    """
    arrays = [np.asarray(column) for column in columns]
    if not 3 <= len(arrays) <= FEW_COLUMNS or arrays[0].size < _FEW_ROWS:
        return
    if any(array.dtype.kind not in "iufb" or not np.isfinite(array).all() for array in arrays):
        return
    highest = [float(np.abs(array).max()) for array in arrays]
    ids = [place for place, array in enumerate(arrays) if _repeats_integers(array)]
    for first, second in itertools.combinations(ids, 2):
        others = [height for place, height in enumerate(highest) if place not in (first, second)]
        is_above = max(highest[first], highest[second]) > 2 * min(others)
        if is_above and _n_pairs(arrays[first], arrays[second]) > 0.99 * arrays[0].size:
            raise DataError(
                f"expected one user per row and one item per column, found {len(arrays)} columns that look like one "
                f"rating per row, with the ids in columns {first + 1} and {second + 1}: {mend}"
            )


def _repeats_integers(array: np.ndarray) -> bool:
    whole = array.dtype.kind in "iu" or bool((array == np.trunc(array)).all())
    return whole and np.unique(array).size < array.size


def _n_pairs(first: np.ndarray, second: np.ndarray) -> int:
    return len(pd.DataFrame({"first": first, "second": second}).drop_duplicates())


def check_axes(frame: pd.DataFrame) -> None:
    """Raise `DataError` where an axis of a wide table has levels, or is called as that of the other side."""
    rows, columns = list(frame.index.names), list(frame.columns.names)
    has_levels = len(rows) + len(columns) > 2
    if has_levels or _likely("item", rows) or _likely("user", columns):
        mend = "frame.droplevel(0, axis=1) or frame.reset_index()" if has_levels else "transpose it, frame.T"
        found = f"rows called {quoted(rows)} and columns called {quoted(columns)}"
        raise DataError(f"expected one user per row and one item per column, found {found}: {mend}")


def are_user_names(header: Sequence[Hashable]) -> bool:
    """Return whether all names are usual ones of a column of users, an empty one or "id" included."""
    return all(_plain(name) in _USUAL["user"] | {"", "id"} for name in header)


def looks_like_values(fields: Iterable[str]) -> bool:
    """Return whether fields of the first line of a file are numbers, all of them."""
    return all(each.replace(".", "", 1).lstrip("+-").isdigit() for each in fields)


def _likely(role: str, header: Sequence[Hashable]) -> list[Hashable]:
    return [name for name in header if _plain(name) in _USUAL[role] and not _OF_FORMS.intersection(str(name))]


def _plain(name: Hashable) -> str:
    text = str(name)[: _LONGEST + 1].casefold()
    whole = next((text.removesuffix(kind) for kind in _TYPES if text.endswith(kind)), text)
    return "".join(sign for sign in whole if sign.isalnum())


def _are_numbers(frame: pd.DataFrame) -> bool:
    return all(_holds_numbers(pd.Series(column)) for _, column in frame.items())


def _holds_numbers(column: pd.Series) -> bool:
    if column.dtype.kind in "biuf":
        return True
    return column.dtype == object and all(isinstance(each, int | float | np.number) for each in column.dropna())
