r"""Traits of nodes, and names of communities by the traits that set their members apart from all other nodes.

A community of n members, among N nodes of which K have a trait, has k of them. With the trait spread at random, k
follows the hypergeometric distribution: the p-value is its tail :math:`P(X \ge k)`, times the number of pairs of a
community and a trait that are compared (Bonferroni). How much a trait is over-represented is its log-odds ratio

.. math:: \log \frac{(k + \frac12)(N - K - n + k + \frac12)}{(n - k + \frac12)(K - k + \frac12)}.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

LEVEL = 0.01  # largest corrected p-value of a trait that names a community
_LEAST_SHARE = 0.2  # of the members, who have such a trait
_MOST_TRAITS = 2
_MOST_MEMBERS = 2  # in a name, where no trait is left
_N_KNOWN = 5
_LEAST_HOLDERS = 3
_MOST_VALUES = 200  # of one column, the commonest
_FEW_NUMBERS = 8  # numbers of so few values are values; others fall into quarters
_CODE = 2  # letters, up to which a text says little without the name of its column
_YEARS = (1500, 2100)


class Fit(NamedTuple):
    """How much a trait is over-represented in a community."""

    trait: Trait
    share: float  # of the members
    share_of_all: float
    log_odds: float
    p_value: float  # corrected


def describe(labels: np.ndarray, traits: Sequence[Trait], names: Sequence[str], known: np.ndarray) -> pd.DataFrame:
    """One row for every community of `labels` >= 0, as `AnalysedGraph.describe_communities` has them.

    `names` are those of the nodes, and `known` tells how well people know each, the larger the better.
    """
    groups = np.unique(labels[labels >= 0])
    order = np.argsort(np.negative(known), kind="stable")
    shares = _shares(labels, traits)
    rows = []
    for group in groups.tolist():
        inside = labels == group
        best = [str(names[node]) for node in order[inside[order]][:_N_KNOWN].tolist()]
        common = [trait for trait, share in zip(traits, shares, strict=True) if share[group] >= _LEAST_SHARE]
        fits = _standing_out(inside, common, max(1, groups.size * len(traits)))
        name = " · ".join(each.trait.text for each in fits) or ", ".join(best[:_MOST_MEMBERS])
        rows.append({"community": group, "size": int(inside.sum()), "name": name} | _figures(fits) | {"members": best})
    _tell_apart(rows)
    columns = ["community", "size", "name", "trait", "share", "share_of_all", "log_odds", "p_value", "members"]
    return pd.DataFrame(rows, columns=columns)


def _shares(labels: np.ndarray, traits: Sequence[Trait]) -> list[np.ndarray]:
    """The share of the members of every community >= 0 with each trait, of those of whom it is known."""
    inside, most = labels >= 0, int(labels.max(initial=-1)) + 1

    def count(nodes: np.ndarray) -> np.ndarray:
        return np.bincount(labels[nodes & inside], minlength=most)

    return [count(trait.known & trait.holders) / np.maximum(count(trait.known), 1) for trait in traits]


def _standing_out(inside: np.ndarray, traits: Sequence[Trait], n_tests: int) -> list[Fit]:
    """The traits that name a community, of those that enough of it have, the least probable first."""
    fits = (fit(inside, trait, n_tests) for trait in traits)
    clear = [each for each in fits if each.p_value < LEVEL]
    ordered = sorted(clear, key=lambda each: (each.p_value, -each.log_odds))
    first = ordered[:1]
    return first + [each for each in ordered[1:] if _adds(each.trait, first[0].trait)][: _MOST_TRAITS - 1]


def _adds(trait: Trait, other: Trait) -> bool:
    """Whether a trait says more than another: they overlap, and neither holds the other."""
    both = int((trait.holders & other.holders).sum())
    return 0 < both < min(int(trait.holders.sum()), int(other.holders.sum()))


def fit(inside: np.ndarray, trait: Trait, n_tests: int) -> Fit:
    """How much a trait is over-represented among the nodes where `inside` is True, as one of `n_tests`."""
    from scipy.stats import hypergeom

    members, n_all = inside & trait.known, int(trait.known.sum())
    n, having, k = int(members.sum()), int(trait.holders.sum()), int((members & trait.holders).sum())
    odds = np.log((k + 0.5) * (n_all - having - n + k + 0.5) / ((n - k + 0.5) * (having - k + 0.5)))
    p_value = min(1.0, n_tests * float(hypergeom.sf(k - 1, n_all, having, n)))
    return Fit(trait, k / max(n, 1), having / max(n_all, 1), float(odds), p_value)


def _figures(fits: Sequence[Fit]) -> dict[str, Any]:
    if not fits:
        return {"trait": None, "share": np.nan, "share_of_all": np.nan, "log_odds": np.nan, "p_value": np.nan}
    first = fits[0]
    figures = {name: getattr(first, name) for name in ("share", "share_of_all", "log_odds", "p_value")}
    return {"trait": first.trait.text} | figures


def _tell_apart(rows: list[dict]) -> None:
    """Add the best known member to names that several communities have."""
    counts = Counter(row["name"] for row in rows)
    for row in rows:
        if counts[row["name"]] > 1:
            row["name"] += f": {row['members'][0]}"


class Trait(NamedTuple):
    """A property that some nodes have."""

    column: str
    text: str
    holders: np.ndarray  # (n,) of bool
    known: np.ndarray  # (n,) of bool, the nodes of which the column says anything


def traits_of(attributes: pd.DataFrame, label: str | None = None) -> list[Trait]:
    """The traits of a table of attributes with a row for every node.

    A text is its parts between "|", a list or set its entries, a flag the name of its column. A year is in its
    decade, too, and before others; other numbers of more than eight values fall into quarters. What fewer than three
    nodes have is no trait, nor what all of them have, nor the names of the nodes (the column `label`).
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
    """Values, many numbers of which are grouped: years with their decades, or quarters."""
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
    """Each year, its decade, and the ends of all decades that it lies before."""
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
