r"""Why a `GraphRanker` gives a user an item: what each item of the user adds to the score.

The regression is a sum over the user's items, and so is its part of a score. The factors' part is
:math:`e^{c/\tau}` of a cosine :math:`c = \sum_j c_j`, over its length. It is told in the ratio of the :math:`c_j`,
beside what a cosine of 0 would give,

.. math:: e^{c/\tau} = 1 + \sum_j \frac{c_j}{c} \big(e^{c/\tau} - 1\big)

which are the contributions along the straight line from no items to these (Aumann and Shapley).

Source: Sundararajan, Taly, Yan, Axiomatic Attribution for Deep Networks, ICML 2017.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.metrics.checks import Csr
from air_recsys.models.explain import Labels, check_labels, label_of
from air_recsys.models.explanation import as_plain, plain_rows
from air_recsys.models.graph_ranker.scorers import FactorScorer, ProductScorer, WeightedScorers, lengths_of
from air_recsys.models.reasons import prose_of_list
from air_recsys.storage.markup import card, card_table, element
from air_recsys.storage.validation import check_integer


@dataclass(frozen=True)
class ListExplanation:
    """What a score of a `GraphRanker` is made of.

    Attributes
    ----------
    user, item : hashable
    label : str or None
        Name of the item.
    score : float
    items : DataFrame
        Items of the user, those that add most first: item, label, a column for each term that counts, and
        contribution, their sum.
    parts : dict of str to float
        Sums over all items of the user, by term; "no_items", what the factors give an item that is like none of them.
        They add up to the score.
    n_items : int
        Items of the user, of which `items` has the first.
    """

    user: Hashable
    item: Hashable
    label: str | None
    score: float
    items: pd.DataFrame
    parts: dict[str, float]
    n_items: int

    def total(self) -> float:
        """The sum of the parts, which is the score up to rounding."""
        return sum(self.parts.values())

    def prose(self) -> str:
        """The reasons in sentences: the items that add most, with their shares of the score, and what others add."""
        return prose_of_list(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""
        return {
            "user": as_plain(self.user),
            "item": as_plain(self.item),
            "label": self.label,
            "score": self.score,
            "parts": self.parts,
            "items": plain_rows(self.items),
            "n_items": self.n_items,
        }

    def _repr_html_(self) -> str:
        """What a notebook shows: the parts of the score, and what each item adds."""
        named = self.item if self.label is None else self.label
        parts = card_table("Parts", ["part", "adds"], [(each.replace("_", " "), v) for each, v in self.parts.items()])
        rows = zip(self.items["label"], self.items["contribution"].tolist(), strict=True)
        told = element("p", self.prose().replace("\n", " "), style="margin:.4em 0;max-width:45em")
        items = card_table("Items", ["item", "adds"], rows)
        return card(f"User {self.user}, {named}: {self.score:.4g}", {}, told, parts, items)

    def __str__(self) -> str:
        named = self.item if self.label is None else f"{self.item} ({self.label})"
        summands = ", ".join(f"{name.replace('_', ' ')} {value:+.4f}" for name, value in self.parts.items())
        head = f"user {self.user}, item {named}: score {self.score:.4f} = {summands}"
        shown = self.items if self.label is not None else self.items.drop(columns="label")
        what = f"what the {self.n_items} items of the user add"
        what += "" if len(shown) == self.n_items else f", the first {len(shown)}"
        return "\n".join(
            [head, "", self.prose(), "", f"{what}:", shown.to_string(index=False, float_format="{:+.4f}".format)]
        )


def explain(
    scorers: WeightedScorers,
    item_ids: np.ndarray,
    pair: tuple[Hashable, Hashable],
    places: tuple[int, int, Csr],
    n: int,
    labels: Labels | None,
) -> ListExplanation:
    """Why a user, trained or new, is given an item.

    `places` holds the positions of user and item in the scorers, and how much each item of the user counts,
    (1, n_items).
    """
    check_integer("n", n, minimum=1)
    names = check_labels(labels, item_ids)
    user, item, own = places
    n_own, parts_of_item = own.nnz, (np.array([item]), np.ones(1))
    if scorers.cold is not None:
        item_ids, parts_of_item = item_ids[scorers.cold.known], scorers.cold.parts(item)
        own = sp.csr_array(own[:, scorers.cold.known])
    table, rest = contributions(scorers, own, user, *parts_of_item)
    parts = dict(zip(map(str, table), table.to_numpy().sum(axis=0).tolist(), strict=True)) | rest
    table["contribution"] = table.sum(axis=1)
    table = table.sort_values("contribution", ascending=False, kind="stable").head(n)
    ids = item_ids[table.index.to_numpy(dtype=np.int64)]
    table.insert(0, "item", ids)
    table.insert(1, "label", [label_of(names, each) for each in ids])
    score = float(scorers.scores(np.array([user]))[0, item])
    found = table.reset_index(drop=True)
    return ListExplanation(*pair, label_of(names, pair[1]), score, found, parts, n_own)


def contributions(
    scorers: WeightedScorers, own: Csr, user: int, items: np.ndarray, shares: np.ndarray
) -> tuple[pd.DataFrame, dict[str, float]]:
    """What each of a user's items adds to a weighted sum of scores by term, one row per item, and what no item adds.

    `items` and `shares`, (k,), are those of the sum.
    """
    columns: dict[str, np.ndarray] = {}
    rest: dict[str, float] = {}
    for name, weight in scorers.weights.items():
        scorer = scorers.scorers[name]
        if isinstance(scorer, FactorScorer):
            groups = [
                _of_factors(scorer, counting, user, some, weight * parts)
                for counting, some, parts in _for_others(scorer, own, user, items, shares)
            ]
            columns["factors"] = np.sum([parts for parts, _ in groups], axis=0)
            rest["no_items"] = sum(own_part for _, own_part in groups)
        else:
            each = [
                _of_regression(scorer, own.indices, user, some, weight * parts) * (counting.data != 0)
                for counting, some, parts in _for_others(scorer, own, user, items, shares)
            ]
            columns["regression"] = np.sum(each, axis=0)
    return pd.DataFrame(columns, index=own.indices), rest


def _for_others(
    scorer: FactorScorer | ProductScorer, own: Csr, user: int, items: np.ndarray, shares: np.ndarray
) -> Iterator[tuple[Csr, np.ndarray, np.ndarray]]:
    """How much the items of a user count for some items, which do not count for themselves where lists may hold them.

    Yield those for which all count alike together, with their shares, then each other.
    """
    own_alone = np.zeros(items.size, dtype=bool)
    if scorer.beside is not None:
        own_alone = np.isin(items, scorer.beside[[user]].indices)
    if not own_alone.all():
        yield own, items[~own_alone], shares[~own_alone]
    for place in np.flatnonzero(own_alone):
        others = np.where(own.indices == items[place], 0, own.data)
        yield sp.csr_array((others, own.indices, own.indptr), shape=own.shape), items[[place]], shares[[place]]


def _of_regression(
    scorer: ProductScorer, own: np.ndarray, user: int, items: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    left = np.zeros(scorer.own.shape[1])
    row = scorer.left(np.array([user]))
    left[row.indices] = row.data
    right: Any = scorer.right.rows(own)[:, items]
    columns = right if isinstance(right, np.ndarray) else right.toarray()
    length = lengths_of(scorer.products(np.array([user])))[0, 0]
    return left[own] * (columns @ weights) / length


def _of_factors(
    scorer: FactorScorer, own: Csr, user: int, items: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, float]:
    """What each item adds, and what remains for a cosine of 0."""
    parts = scorer.sources[own.indices].astype(np.float64) * own.data[:, None]
    length = max(float(np.linalg.norm(parts.sum(axis=0))), np.finfo(np.float32).tiny)
    cosines = parts @ scorer.items.factors[items].astype(np.float64).T / length  # (n_own, k)
    totals = cosines.sum(axis=0) / scorer.temperature
    floors = weights * scorer.scores(np.array([user]))[0, items] * np.exp(-totals)
    # (e^t - 1) / t, which is 1 at 0
    ratios = np.divide(np.expm1(totals), totals, out=np.ones_like(totals), where=totals != 0)
    return cosines @ (floors * ratios) / scorer.temperature, float(floors.sum())
