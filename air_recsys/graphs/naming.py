r"""Names of communities, by what sets their members apart from all other nodes.

A community of n members, among N nodes of which K have a trait, has k of them. With the trait spread at random, k
follows the hypergeometric distribution: the p-value is its tail :math:`P(X \ge k)`, times the number of pairs of a
community and a trait that are compared (Bonferroni). How much a trait is over-represented is its log-odds ratio

.. math:: \log \frac{(k + \frac12)(N - K - n + k + \frac12)}{(n - k + \frac12)(K - k + \frac12)}.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import hypergeom

from air_recsys.graphs.traits import Trait

LEVEL = 0.01  # largest corrected p-value of a trait that names a community
_LEAST_SHARE = 0.2  # of the members, who have such a trait
_MOST_TRAITS = 2
_MOST_MEMBERS = 2  # in a name, where no trait is left
_N_KNOWN = 5


class Fit(NamedTuple):
    """How much a trait is over-represented in a community."""

    trait: Trait
    share: float  # of the members
    share_of_all: float
    log_odds: float
    p_value: float  # corrected


def describe(labels: np.ndarray, traits: Sequence[Trait], names: Sequence[str], known: np.ndarray) -> pd.DataFrame:
    """Return one row for every community of `labels` >= 0: its size, its name, and what the name rests on.

    Parameters
    ----------
    labels : ndarray of int, shape (n,)
    traits : sequence of Trait
    names : sequence of str, shape (n,)
        Of the nodes.
    known : ndarray, shape (n,)
        The larger, the better people know a node.

    Returns
    -------
    DataFrame
        community, size, name, trait (None where none stands out), share, share_of_all, log_odds, p_value (of that
        trait, NaN without one), and members, the names of the best known.

    Examples
    --------
    >>> war = Trait("genre", "War", np.arange(12) < 6, np.ones(12, dtype=bool))
    >>> table = describe(np.repeat([0, 1], 6), [war], [*"abcdefghijkl"], np.arange(12))
    >>> table[["name", "log_odds", "p_value"]].round(4).to_dict("records")
    [{'name': 'War', 'log_odds': 5.1299, 'p_value': 0.0022}, {'name': 'l, k', 'log_odds': nan, 'p_value': nan}]
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
    """Return which share of the members of every community >= 0 has each trait, of those of whom it is known."""
    inside, most = labels >= 0, int(labels.max(initial=-1)) + 1

    def count(nodes: np.ndarray) -> np.ndarray:
        return np.bincount(labels[nodes & inside], minlength=most)

    return [count(trait.known & trait.holders) / np.maximum(count(trait.known), 1) for trait in traits]


def _standing_out(inside: np.ndarray, traits: Sequence[Trait], n_tests: int) -> list[Fit]:
    """Return the traits that name a community, of those that enough of it have, the least probable first."""
    fits = (fit(inside, trait, n_tests) for trait in traits)
    clear = [each for each in fits if each.p_value < LEVEL]
    ordered = sorted(clear, key=lambda each: (each.p_value, -each.log_odds))
    first = ordered[:1]
    return first + [each for each in ordered[1:] if _adds(each.trait, first[0].trait)][: _MOST_TRAITS - 1]


def _adds(trait: Trait, other: Trait) -> bool:
    """Return whether a trait says more than another: they overlap, and neither holds the other."""
    both = int((trait.holders & other.holders).sum())
    return 0 < both < min(int(trait.holders.sum()), int(other.holders.sum()))


def fit(inside: np.ndarray, trait: Trait, n_tests: int) -> Fit:
    """Return how much a trait is over-represented among the nodes where `inside` is True, as one of `n_tests`."""
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
