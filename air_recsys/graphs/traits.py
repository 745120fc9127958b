"""What nodes have in common: traits, yes or no for every node, from a table of attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

_LEAST_HOLDERS = 3
_MOST_VALUES = 200  # of one column, the commonest
_FEW_NUMBERS = 8  # numbers of so few values are values; others fall into quarters
_CODE = 2  # letters, up to which a text says little without the name of its column
_YEARS = (1500, 2100)


class Trait(NamedTuple):
    """A property that some nodes have."""

    column: str
    text: str
    holders: np.ndarray  # (n,) of bool
    known: np.ndarray  # (n,) of bool, the nodes of which the column says anything


def traits_of(attributes: pd.DataFrame, label: str | None = None) -> list[Trait]:
    """Return the traits of a table of attributes with a row for every node.

    A text is its parts between "|", a list or set its entries, a flag the name of its column. A year is in its
    decade, too, and before others; other numbers of more than eight values fall into quarters. What fewer than three
    nodes have is no trait, nor what all of them have, nor the names of the nodes (the column `label`).

    Examples
    --------
    >>> films = pd.DataFrame({"genres": ["War|Drama", "War", "War", "Drama"], "year": [1990, 1991, 1999, 1971]})
    >>> [(trait.text, trait.holders.tolist()) for trait in traits_of(films)]
    [('War', [True, True, True, False]), ('1990s', [True, True, True, False])]
    """
    found: list[Trait] = []
    for name, column in attributes.items():
        if name != label:
            found += _of_column(str(name), column)
    return found


def _of_column(name: str, column: pd.Series) -> Iterator[Trait]:
    known = np.asarray(column.notna(), dtype=bool)
    values = [_texts(name, value) for value in _grouped(name, column.loc[known]).tolist()]
    rows = np.repeat(np.flatnonzero(known), [len(texts) for texts in values])
    codes, texts = pd.factorize(np.array([text for texts in values for text in texts], dtype=object))
    counts = np.bincount(codes, minlength=len(texts))
    common = np.flatnonzero((counts >= _LEAST_HOLDERS) & (counts < known.sum()))
    by_code = rows[np.argsort(codes, kind="stable")]
    ends = np.cumsum(counts)
    for code in common[np.argsort(np.negative(counts[common]), kind="stable")][:_MOST_VALUES].tolist():
        holders = np.zeros(known.size, dtype=bool)
        holders[by_code[ends[code] - counts[code] : ends[code]]] = True
        yield Trait(name, str(texts[code]), holders, known)


def _grouped(name: str, values: pd.Series) -> pd.Series:
    """Return what stands for many numbers: years with their decades, or quarters. Other values stay as they are."""
    if not pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values) or not len(values):
        return values
    numbers = values.to_numpy(dtype=np.float64)
    whole = bool((numbers == np.round(numbers)).all())
    if whole and numbers.min() >= _YEARS[0] and numbers.max() <= _YEARS[1]:
        return pd.Series(_spans_of_years(numbers.astype(np.int64)), dtype=object)
    if np.unique(numbers).size <= _FEW_NUMBERS:
        return pd.Series([f"{name} {number:g}" for number in numbers], dtype=object)
    edges = np.unique(np.quantile(numbers, [0, 0.25, 0.5, 0.75, 1]))
    texts = [f"{name} {low:.4g} to {high:.4g}" for low, high in pairwise(edges.tolist())]
    return pd.Series(np.array(texts, dtype=object)[np.searchsorted(edges[1:-1], numbers)], dtype=object)


def _spans_of_years(years: np.ndarray) -> list[list[str]]:
    """Return each year, its decade, and the ends of all decades that it lies before."""
    decades = np.unique(years // 10 * 10).tolist()
    before = {decade: [f"before {later}" for later in decades[2:] if later > decade] for decade in decades}
    return [[str(year), f"{year // 10 * 10}s", *before[year // 10 * 10]] for year in years.tolist()]


def _texts(name: str, value: Any) -> set[str]:
    if isinstance(value, (bool, np.bool_)):
        return {name} if value else set()
    if isinstance(value, str):
        parts = {part.strip() for part in value.split("|")}
        return {part if len(part) > _CODE else f"{name} {part}" for part in parts if part}
    if isinstance(value, Iterable):
        return {str(part) for part in value}
    return {str(value)}
