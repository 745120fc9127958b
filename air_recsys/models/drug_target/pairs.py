"""Recorded pairs of drugs and targets: a wide table, a long table, or a container that `Interactions` reads."""

from __future__ import annotations

import re
import warnings
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.columns import qualifies, time_column
from air_recsys.data.described.tables import texts_of
from air_recsys.data.frames import as_pandas
from air_recsys.data.ids import IdIndex
from air_recsys.data.interactions import Interactions, as_interactions
from air_recsys.data.readers.pairs_file import TARGETS
from air_recsys.exceptions import DataError, DataWarning, ParameterError, UnknownIdError, quoted

Words = tuple[str, str]  # what the rows and the columns are called
WORDS = ("drug", "target")
_TAKEN = {"probability", "deviation", "highest", "score", "rank", "known", "recorded_zero", "interaction", "counts"}
_TAKEN |= {"weight"}
_VALUES = ("interaction", "value", "label", "rating")
_SHOWN = 3
_FORMS = (
    "; a wide table has the names of the drugs in its index (table.set_index), a long one has columns that are named "
    "drug and target (in the shell --drug-column and --target-column take others)"
)
_OF_TARGETS = re.compile(  # KEGG, UniProt, Ensembl, and sequences
    r"(hsa|mmu|rno):?\d+|([OPQ]\d[A-Z\d]{3}\d|[A-NR-Z]\d([A-Z][A-Z\d]{2}\d){1,2})(-\d+)?|ENS[A-Z]*[GP]\d+"
    r"|(?=.*[DEGHKLMQRTVWY])[A-Z]{20,}"
)
_MOST = 0.9  # of the names of a side
_STACKLEVEL = 4  # of a warning: the caller of a fit


def checked_words(drug: Any, target: Any) -> Words:
    """Return what the rows and the columns of a table are called."""
    for name, word in (("drug", drug), ("target", target)):
        if not isinstance(word, str) or not word.strip() or word in _TAKEN:
            raise ParameterError(f"expected {name} as a word for the {name}s that no other column has, found {word!r}")
    if drug == target:
        raise ParameterError(f"expected two words for drugs and targets, found {drug!r} for both")
    return drug, target


def names_by_id(names: Mapping[Any, str] | pd.Series | None, data: Interactions) -> dict[Any, str]:
    """What people call drugs and targets, by the ids of the data; a file of both may have numbers as text."""
    if names is None:
        return {}
    known = {str(id): id for ids in (data.user_ids, data.item_ids) for id in ids.tolist()}
    texts = {known.get(str(id), id): text for id, text in texts_of("names", names).items()}
    if not texts.keys() & known.values():
        raise DataError(
            f"expected names of ids such as {data.user_ids.item(0)!r}, found others: {next(iter(texts))!r}"
        )
    return texts


def called(id: Hashable, names: Mapping[Any, str]) -> str:
    """What people call a drug or a target, with its id behind it where it has a name."""
    return f"{names[id]} ({id})" if id in names else str(id)


def columns_of(words: Words, ids: tuple[np.ndarray, np.ndarray], names: Mapping[Any, str]) -> dict[str, Any]:
    """Columns of ids by the words for drugs and targets, and behind them of names where some are known."""
    found = dict(zip(words, ids, strict=True))
    if not names:
        return found
    return found | {f"{word}_name": [names.get(id, "") for id in own.tolist()] for word, own in found.items()}


def as_pairs(given: Any, words: Words = WORDS, *, timed: bool = False) -> Interactions:
    """Return recorded pairs, drugs as users and targets as items.

    Parameters
    ----------
    given : DataFrame, Interactions, SciPy sparse or array
        A table is long if it has the columns drug and target (or user and item), in upper or lower case: one pair per
        row, with its value in the column interaction, value, label or rating, and its weight in the column weight.
        Without the first all pairs interact. Any other table is wide: one row per drug, named by the index, and one
        column per target; NaN if nothing is recorded. Other containers are read as by `Interactions.from_csr` and
        `Interactions.from_dense`.
    timed : bool
        Whether to read when pairs were found, from a column such as year, date or timestamp.
    """
    given = as_pandas(given)
    if not isinstance(given, pd.DataFrame):
        return as_interactions(given)
    names: dict[Any, Any] = {str(name).strip().casefold(): name for name in given.columns}
    names |= {name: name for name in given.columns}  # the one that is written so goes first
    sides = next((side for side in (words, ("user", "item")) if side[0] in names and side[1] in names), None)
    if sides is None:
        _tell_other_words(given, names, words)
        return _wide(given)
    return _long(given, names, *sides, timed=timed)


def _tell_other_words(table: pd.DataFrame, names: dict[Any, Any], words: Words) -> None:
    """Raise an error for a long table of which one side has another name."""
    texts = [name for name in table.columns if not pd.api.types.is_numeric_dtype(table[name])]
    for own, other in ((0, 1), (1, 0)):
        others = [name for name in texts if name != names.get(words[own])]
        if words[own] in names and others:
            found = f"expected the columns {words[own]} and {words[other]}, found {words[own]} and {quoted(others)}"
            way = f"fit(..., {WORDS[other]}={others[0]!r}) (in the shell --{WORDS[other]}-column)"
            raise DataError(f"{found}: of one pair a row, {way} says which has the {words[other]}s")


def with_ids(data: Interactions, drug_ids: np.ndarray, target_ids: np.ndarray) -> Interactions:
    """Return the pairs with further drugs and targets, of which nothing is recorded.

    Examples
    --------
    >>> pairs = as_pairs(pd.DataFrame({"t1": [1, 0]}, index=["a", "b"]))
    >>> with_ids(pairs, np.array(["b", "c"]), np.array([])).user_ids.tolist()
    ['a', 'b', 'c']
    """
    sides = [index.joined(ids) for index, ids in ((data.users, drug_ids), (data.items, target_ids))]
    if [len(index) for index in sides] == [data.n_users, data.n_items]:
        return data
    return data.among(*sides)


def check_new(axis: int, new: Interactions | None, data: Interactions, known: Sequence[IdIndex]) -> None:
    """Raise an error unless drugs alone (axis 0), or targets, are new in data, and of all new pairs."""
    (own, own_ids), (other, other_ids) = list(zip(known, (data.user_ids, data.item_ids), strict=True))[:: 1 - 2 * axis]
    if len(other_ids) > len(other):
        unknown = other_ids[len(other) :].tolist()
        raise UnknownIdError(other.kind, unknown, f"partial_fit takes in new ones together with new {own.kind}s")
    given = own_ids[:0] if new is None else (new.user_ids, new.item_ids)[axis]
    again = given[own.lookup(given) >= 0].tolist()
    if again or len(own_ids) == len(own):
        found = f"known ones, such as {quoted(again[0])}" if again else "none"
        raise DataError(f"expected only new {own.kind}s, found {found}: partial_fit takes in pairs of known ones")


def new_alone(data: Interactions, own: tuple[slice, slice]) -> Interactions:
    """Return the pairs of the last drugs, or targets, which may be none."""
    kept = (data.user_index >= own[0].start) & (data.item_index >= own[1].start)
    places = data.user_index[kept] - own[0].start, data.item_index[kept] - own[1].start
    weights, ids = data.weights, (data.user_ids[own[0]], data.item_ids[own[1]])
    weights = None if weights is None else weights[kept]
    return Interactions(*places, data.ratings[kept], *ids, weights=weights, empty=True)


def with_zeros(data: Interactions) -> Interactions:
    """Return the pairs with all others as zeros, where interactions alone are recorded; else the same pairs.

    Examples
    --------
    >>> with_zeros(as_pairs(pd.DataFrame({"drug": ["a", "b"], "target": ["t", "u"]}))).ratings.tolist()
    [1.0, 0.0, 0.0, 1.0]
    """
    if data.n_ratings == 0 or not data.ratings.all():
        return data
    return Interactions.from_dense(np.nan_to_num(data.to_dense()), data.user_ids, data.item_ids)


def without_evidence(data: Interactions, similarities: Sequence[np.ndarray | None]) -> str:
    """Return a warning of drugs and targets of which neither a pair nor a similarity is known; "" without any."""
    places = (("drug", data.users, data.user_index), ("target", data.items, data.item_index))
    parts = []
    for (kind, index, used), similarity in zip(places, similarities, strict=True):
        idle = np.flatnonzero(np.bincount(used, minlength=len(index)) == 0)
        if similarity is None and idle.size:
            parts.append(f"{idle.size} {kind}(s) have no recorded pair, {quoted(index.ids[idle[:_SHOWN]].tolist())}")
    told = " and ".join(parts)
    return told and f"{told}, and no similarity is given: their scores say nothing"


def _long(table: pd.DataFrame, names: dict[str, Any], drug: str, target: str, *, timed: bool) -> Interactions:
    values = [names[name] for name in _VALUES if name in names]
    weight = [names[name] for name in ("weight",) if name in names]
    read = [names[drug], names[target], *values, *weight]
    time = time_column(list(table.columns))
    others = [name for name in table.columns if name not in (*read, time)]
    numbers = [name for name in others if pd.api.types.is_numeric_dtype(table[name])]
    if len(values) > 1 or (not values and numbers):
        raise DataError(
            f"expected one column of values named {', '.join(_VALUES[:-1])} or {_VALUES[-1]}, or none where all pairs "
            f"interact, found {quoted(values or numbers)}: rename it, or drop it (in the shell --value-column)"
        )
    unread = [
        name for name in others if not values or qualifies(name) or re.search("drug|target", str(name).casefold())
    ]
    if unread:
        meaning = "" if values else ", all of which interact"
        told = f"reads pairs of {quoted(read[0])} and {quoted(read[1])}{meaning}, but does not read {quoted(unread)}"
        warnings.warn(told, DataWarning, stacklevel=_STACKLEVEL)
    if values and pd.api.types.is_bool_dtype(table[values[0]]):
        table = table.assign(**{str(values[0]): table[values[0]].astype(float)})
    roles = dict(zip(("user", "item", "rating", "weight"), (*read[:2], *(values or [None]), *weight), strict=False))
    if timed and time is not None:
        read, roles = [*read, time], roles | {"timestamp": time}
    taken: Any = partial(Interactions.from_frame, table[read], **roles, allow_negative=True)
    data = taken(duplicates="first")
    if data.n_ratings < len(table):
        apart = np.flatnonzero(taken(duplicates="mean").ratings != data.ratings)
        if apart.size:
            pair = data.to_frame().iloc[apart[0]]
            raise DataError(
                f"expected one value for each pair, found {apart.size} pairs with several, the first of "
                f"{pair['user']!r} and {pair['item']!r}: keep one row of each"
            )
        told = f"{len(table) - data.n_ratings} rows repeat a pair and its value: each counts once"
        warnings.warn(told, DataWarning, stacklevel=_STACKLEVEL)
    return data


def _wide(table: pd.DataFrame) -> Interactions:
    if table.empty:
        raise DataError(f"expected one row per drug and one column per target, found a table of shape {table.shape}")
    for kind, labels in (("drug", table.index), ("target", table.columns)):
        twice = labels[labels.duplicated()].unique()
        if len(twice):
            raise DataError(
                f"expected each {kind} once, found {len(twice)} of them again: {quoted(list(twice[:_SHOWN]))}{_FORMS}"
            )
    _tell_transposed(table)
    return Interactions.from_dense(_labels(table), table.index, table.columns)


def _labels(table: pd.DataFrame) -> np.ndarray:
    """Return a wide table of 0 and 1, NaN where nothing is recorded, (n_drugs, n_targets)."""
    values = table.apply(pd.to_numeric, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    strange = np.argwhere(np.where(np.isnan(values), table.notna(), ~np.isin(values, (0, 1))))
    if strange.size:
        row, column = strange[0]
        found = quoted(table.astype(object).iat[row, column])
        raise DataError(
            f"expected 1 for pairs that interact and 0 for others, found {found} for the drug {table.index[row]!r} and"
            f" the target {table.columns[column]!r}: of affinities take a threshold, or AIR.for_ratings{_FORMS}"
        )
    return values


def _tell_transposed(table: pd.DataFrame) -> None:
    """Warn where the rows have names of targets, and the columns have not."""
    rows, columns = (
        np.mean([_OF_TARGETS.fullmatch(str(label)) is not None for label in labels])
        for labels in (table.index, table.columns)
    )
    if str(table.index.name).casefold() in TARGETS or rows > _MOST > 1 - _MOST > columns:
        told = f"the rows look like targets, such as {quoted(table.index[0])}, and are taken as drugs: if they are"
        told += " targets, pass table.T (in the shell --transpose)"
        warnings.warn(told, DataWarning, stacklevel=_STACKLEVEL + 1)
