r"""Why a `GraphRanker` gives a user an item: what each item of the user adds to the score.

Regression and item graph are sums over the user's items, and so are their parts of a score. The factors' part is
:math:`e^{c/\tau}` of a cosine :math:`c = \sum_j c_j`, over its length. It is told in the ratio of the :math:`c_j`,
beside what a cosine of 0 would give,

.. math:: e^{c/\tau} = 1 + \sum_j \frac{c_j}{c} \big(e^{c/\tau} - 1\big)

which are the contributions along the straight line from no items to these (Aumann and Shapley).

Source: Sundararajan, Taly, Yan, Axiomatic Attribution for Deep Networks, ICML 2017.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.metrics.checks import Csr
from air_recsys.models.explain import Labels, check_labels, label_of
from air_recsys.models.graph_ranker.factors import FactorTerm
from air_recsys.models.graph_ranker.ranker_state import RankerState
from air_recsys.models.graph_ranker.smoothings import Smoothing, Term, blend, lengths_of
from air_recsys.storage.markup import card, card_table
from air_recsys.storage.validation import check_integer

_COLUMNS = {"regression": "regression", "factor": "factors", "item": "item_graph"}


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
        Sums over all items of the user, by term; "no_items", what the factors give an item that is like none of them;
        "user_graph", what similar users say. They add up to the score.
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
        """Return the sum of the parts, which is the score up to rounding."""
        return sum(self.parts.values())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        rows = self.items.astype(object).where(self.items.notna(), None)
        return {
            "user": _plain(self.user),
            "item": _plain(self.item),
            "label": self.label,
            "score": self.score,
            "parts": self.parts,
            "items": [{str(name): _plain(value) for name, value in row.items()} for row in rows.to_dict("records")],
            "n_items": self.n_items,
        }

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the parts of the score, and what each item adds."""
        named = self.item if self.label is None else self.label
        parts = card_table("Parts", ["part", "adds"], [(each.replace("_", " "), v) for each, v in self.parts.items()])
        rows = zip(self.items["label"], self.items["contribution"].tolist(), strict=True)
        return card(
            f"User {self.user}, {named}: {self.score:.4g}", {}, parts, card_table("Items", ["item", "adds"], rows)
        )

    def __str__(self) -> str:
        named = self.item if self.label is None else f"{self.item} ({self.label})"
        summands = ", ".join(f"{name.replace('_', ' ')} {value:+.4f}" for name, value in self.parts.items())
        head = f"user {self.user}, item {named}: score {self.score:.4f} = {summands}"
        shown = self.items if self.label is not None else self.items.drop(columns="label")
        what = f"what the {self.n_items} items of the user add"
        what += "" if len(shown) == self.n_items else f", the first {len(shown)}"
        return "\n".join([head, "", f"{what}:", shown.to_string(index=False, float_format="{:+.4f}".format)])


def explain(
    ranker: RankerState,
    terms: Mapping[str, Term],
    pair: tuple[Hashable, Hashable],
    places: tuple[int, Csr],
    n: int,
    labels: Labels | None,
) -> ListExplanation:
    """Return why a user is given an item.

    Parameters
    ----------
    ranker : RankerState
    terms : mapping
        Those of trained or of new users.
    pair : tuple of hashable
        The ids of the user and of the item.
    places : tuple of int and csr_array, shape (1, n_items)
        The position of the user in the terms, and how much each of its items counts.
    n : int
        Most rows.
    labels : mapping or Series, optional
        Item id to name.
    """
    check_integer("n", n, minimum=1)
    names, weights, data = check_labels(labels), ranker.settings.weights, ranker.fitted.data
    user, own = places
    item = data.items.place(pair[1])
    table, rest = contributions(terms, weights, ranker.sources, own, user, item)
    parts = dict(zip(map(str, table), table.to_numpy().sum(axis=0).tolist(), strict=True)) | rest
    table["contribution"] = table.sum(axis=1)
    table = table.sort_values("contribution", ascending=False, kind="stable").head(n)
    ids = data.item_ids[table.index.to_numpy(dtype=np.int64)]
    table.insert(0, "item", ids)
    table.insert(1, "label", [label_of(names, each) for each in ids])
    score = float(blend(terms, weights, np.array([user]), data.n_items)[0, item])
    found = table.reset_index(drop=True)
    return ListExplanation(*pair, label_of(names, pair[1]), score, found, parts, own.nnz)


def contributions(
    terms: Mapping[str, Term], weights: Mapping[str, float], sources: np.ndarray, own: Csr, user: int, item: int
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return what each of a user's items adds to a score by term, one row per item, and what no item adds.

    Parameters
    ----------
    terms, weights : mapping
        By name.
    sources : ndarray, shape (n_items, r)
        Of the factors.
    own : csr_array, shape (1, n_items)
        How much each item of the user counts.
    user, item : int
        Positions in the terms.
    """
    columns: dict[str, np.ndarray] = {}
    rest: dict[str, float] = {}
    for name, weight in weights.items():
        term = terms[name]
        if isinstance(term, FactorTerm):
            columns["factors"], rest["no_items"] = _of_factors(term, sources, own, user, item, weight)
        elif name == "user":
            rest["user_graph"] = weight * float(term.scores(np.array([user]))[0, item])
        else:
            assert isinstance(term, Smoothing)
            columns[_COLUMNS[name]] = _of_product(term, own.indices, user, item, weight)
    return pd.DataFrame(columns, index=own.indices), rest


def _of_product(term: Smoothing, own: np.ndarray, user: int, item: int, weight: float) -> np.ndarray:
    left = np.zeros(term.left.shape[1])
    row = term.left[[user]]
    left[row.indices] = row.data
    right: Any = term.right[own]
    column = right[:, item] if isinstance(right, np.ndarray) else right[:, [item]].toarray()[:, 0]
    length = lengths_of(term.product(np.array([user])))[0, 0]
    return weight * left[own] * column / length


def _of_factors(
    term: FactorTerm, sources: np.ndarray, own: Csr, user: int, item: int, weight: float
) -> tuple[np.ndarray, float]:
    """Return what each item adds, and what remains for a cosine of 0."""
    parts = sources[own.indices].astype(np.float64) * own.data[:, None]
    length = max(float(np.linalg.norm(parts.sum(axis=0))), np.finfo(np.float32).tiny)
    cosines = parts @ term.items.factors[item].astype(np.float64) / length
    score = weight * float(term.scores(np.array([user]))[0, item])
    if not term.temperature:
        total = cosines.sum()
        return cosines * (score / total if total else 0.0), 0.0
    total = float(cosines.sum()) / term.temperature
    floor = score * np.exp(-total)
    # (e^t - 1) / t, which is 1 at 0
    return floor * (np.expm1(total) / total if total else 1.0) * cosines / term.temperature, float(floor)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
