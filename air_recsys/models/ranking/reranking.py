r"""Lists one would show: the best items of long lists again, by what they are beside good.

With the rank of an item in a list of length L, :math:`g = 1 / \log_2(1 + \mathrm{rank})` and its novelty
:math:`h = -\log_2 p`, p the share of users who have it, both brought to 0..1 within the list, a list S takes the item
of the largest

.. math:: (1 - d - c)\,\big((1 - v)\,g_i + v\,h_i\big) - d \max_{j \in S} \frac{W_{ij}}{\sqrt{w_i w_j}}
          - c\, \mathrm{KL}\big(p_u \,\|\, 0.99\, q_{S + i} + 0.01\, p_u\big)

until it has n: maximal marginal relevance over the item graph with weights W, w_i the largest of item i, and shares
p_u of the groups among a user's items beside those of the list.

Sources: Carbonell, Goldstein, The Use of MMR, SIGIR 1998 (d); Steck, Calibrated recommendations, RecSys 2018 (c).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.columns import pair_columns
from air_recsys.exceptions import DataError, ParameterError, UnknownIdError
from air_recsys.graphs import SimilarityGraph
from air_recsys.metrics.catalogue import divergence_of_groups
from air_recsys.metrics.checks import Csr
from air_recsys.models.base import Recommender
from air_recsys.models.drug_target.model import DrugTargetAIR
from air_recsys.models.graph_ranker.inputs import interaction_pattern
from air_recsys.storage.validation import check_integer, check_real

CHOICE = 200  # items of a list that a shorter one is chosen from
_ENTRIES = 4_000_000  # numbers held at a time


def rerank(
    lists: pd.DataFrame,
    model: Recommender | DrugTargetAIR,
    n: int = 10,
    *,
    diversity: float = 0.0,
    novelty: float = 0.0,
    calibration: float = 0.0,
    groups: Any = None,
    per_group: int | None = None,
) -> pd.DataFrame:
    """The n items of each list that are good and, as far as asked for, unlike each other, rare, or of all groups.

    Parameters
    ----------
    lists : DataFrame
        What `recommend` returns, long enough to choose from: 100 or 200 items a user, the best first. Lists made
        elsewhere need the columns user and item.
    model : Recommender or DrugTargetAIR
        Fitted; its item graph says which items are alike, its training data who has what.
    n : int
        Most items of a list.
    diversity, novelty, calibration : float
        How much each counts, in 0..1: likeness to items before it (d), how few users have it (v), and the shares of
        groups among the user's own items (c); d + c is at most 1. With 0 everywhere the lists are the first n.
    groups : Series, mapping or DataFrame, optional
        Of each listed item: a label, such as a brand or a list of genres, by item id, or a table of 0 and 1 with a
        row per item and a column per group.
    per_group : int, optional
        Most items of a list that any one group has.

    Returns
    -------
    DataFrame
        The rows that are kept, with the columns of `lists` and new ranks from 1 on.

    Raises
    ------
    ParameterError
        For numbers out of range, and for `calibration` or `per_group` without `groups`.
    DataError
        For a table without the two columns, with an item twice in a list, and groups that lack listed items.
    UnknownIdError
        For items that the model does not know.

    Examples
    --------
    >>> from air_recsys import BiasModel
    >>> model = BiasModel().fit([[5.0, 4.0, 3.0, np.nan], [5.0, 4.0, 3.0, 1.0]])
    >>> lists = model.recommend(0, 4, exclude_seen=False)
    >>> colours = {0: "red", 1: "red", 2: "blue", 3: "blue"}
    >>> rerank(lists, model, 2, groups=colours, per_group=1)["item"].tolist()
    [0, 2]
    """
    wanted = _Wanted(n, diversity, novelty, calibration, per_group)
    wanted.check(groups)
    user, item = pair_columns(lists, getattr(model, "words_", ("user", "item")))
    data = model.interactions_
    columns = data.items.lookup(lists[item].to_numpy())
    if (columns < 0).any():
        raise UnknownIdError("item", lists[item][columns < 0].tolist(), "rerank knows the items of the model")
    of_list, users = pd.factorize(lists[user])
    items, rows = _by_lists(of_list, columns, len(users))  # (b, L) each
    if pd.Series(of_list * np.int64(data.n_items) + columns).duplicated().any():
        raise DataError("expected each item once in a list, found one that is there twice")
    shares, belongs = _shares(groups, data.item_ids, np.unique(columns))
    counts = np.bincount(data.item_index, minlength=data.n_items)
    places = data.users.lookup(np.asarray(users))
    own = interaction_pattern(data) @ shares if calibration else np.zeros((data.n_users, shares.shape[1]))
    facts = _Facts(_likeness(model, diversity), shares, belongs, -np.log2(np.maximum(counts, 1) / data.n_users))
    step = max(1, _ENTRIES // max(data.n_items, items.shape[1] * max(1, shares.shape[1])))
    kept = [np.empty(0, np.int64)]
    for start in range(0, len(users), step):
        block = slice(start, start + step)
        theirs = np.where(places[block, None] >= 0, own[places[block]], 0)  # (b, groups)
        chosen = _chosen(items[block], facts, theirs, wanted)  # (b, n)
        kept.append(np.where(chosen >= 0, np.take_along_axis(rows[block], chosen.clip(min=0), axis=1), -1).ravel())
    order = np.concatenate(kept)
    found = lists.iloc[order[order >= 0]].reset_index(drop=True)
    return found.assign(rank=found.groupby(user, sort=False).cumcount() + 1)


class _Wanted(NamedTuple):
    """How long lists are and what counts in them."""

    n: int
    diversity: float
    novelty: float
    calibration: float
    per_group: int | None

    def check(self, groups: Any) -> None:
        """Raise `ParameterError` for numbers out of range, and where they need groups that are not given."""
        check_integer("n", self.n, minimum=1)
        for name in ("diversity", "novelty", "calibration"):
            check_real(name, getattr(self, name), minimum=0, maximum=1)
        if (both := self.diversity + self.calibration) > 1:
            raise ParameterError(f"expected diversity + calibration of at most 1, found {both}")
        if self.per_group is not None:
            check_integer("per_group", self.per_group, minimum=1)
        if groups is None and (self.calibration or self.per_group is not None):
            raise ParameterError("calibration and per_group need groups, found None")


class _Facts(NamedTuple):
    """Of all items."""

    likeness: Csr | None  # W / sqrt(w w), (n_items, n_items)
    shares: np.ndarray  # of groups, (n_items, groups)
    belongs: np.ndarray  # of bool, (n_items, groups)
    novelty: np.ndarray  # in bits, (n_items,)


def _by_lists(of_list: np.ndarray, columns: np.ndarray, n_lists: int) -> tuple[np.ndarray, np.ndarray]:
    """The items of each list and their rows in the table, -1 where a list has ended, (b, L) each."""
    place = pd.Series(of_list).groupby(of_list).cumcount().to_numpy()
    items, rows = (np.full((n_lists, place.max(initial=-1) + 1), -1) for _ in range(2))
    items[of_list, place], rows[of_list, place] = columns, np.arange(columns.size)
    return items, rows


def _shares(groups: Any, item_ids: np.ndarray, listed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The shares of groups of each item, and whether it belongs to them, (n_items, groups) each."""
    if groups is None:
        return np.zeros((item_ids.size, 0)), np.zeros((item_ids.size, 0), dtype=bool)
    table = groups
    if not isinstance(groups, pd.DataFrame):
        labels = pd.Series(dict(groups) if isinstance(groups, Mapping) else groups).explode().dropna()
        table = pd.crosstab(labels.index, labels.to_numpy())
    belongs = table.reindex(item_ids)
    missing = belongs.index[listed][belongs.iloc[listed].isna().any(axis=1)]
    if len(missing):
        raise DataError(f"expected groups of all listed items, found none of {len(missing)}, such as {missing[0]!r}")
    weights = belongs.fillna(0).to_numpy(dtype=np.float64)
    if (weights < 0).any():
        raise DataError("expected groups of 0 or more, found less")
    return weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300), weights > 0


def _likeness(model: Recommender | DrugTargetAIR, diversity: float) -> Csr | None:
    """The weights of the item graph, 1 for the nearest of both, (n_items, n_items)."""
    if not diversity:
        return None
    graph: SimilarityGraph | None = getattr(model, "item_graph_", None)
    if graph is None:
        raise ParameterError(f"diversity needs the item graph of a model, {type(model).__name__} has none")
    weights = sp.csr_array(graph.to_scipy(), dtype=np.float64)
    largest = np.maximum(weights.max(axis=1).toarray().ravel(), 1e-300) ** -0.5
    return sp.csr_array(sp.diags_array(largest) @ weights @ sp.diags_array(largest))


def _chosen(items: np.ndarray, facts: _Facts, own: np.ndarray, wanted: _Wanted) -> np.ndarray:
    """The positions in some lists of the items taken, in turn, -1 where none is left; (b, n)."""
    rows, filled = np.arange(len(items)), items >= 0
    gains = _within(np.broadcast_to(1 / np.log2(np.arange(2.0, items.shape[1] + 2)), items.shape), filled)
    gains = (1 - wanted.novelty) * gains + wanted.novelty * _within(facts.novelty[items], filled)
    weight = 1 - wanted.diversity - wanted.calibration
    shares, belongs = facts.shares[items], facts.belongs[items]  # (b, L, groups)
    own = own / np.maximum(own.sum(axis=1, keepdims=True), 1e-300)
    nearest, listed = np.zeros(items.shape), np.zeros(own.shape)
    numbers, left = np.zeros(own.shape, dtype=np.int64), filled.copy()
    chosen = np.full((len(items), wanted.n), -1)
    for place in range(min(wanted.n, items.shape[1])):
        values = weight * gains - wanted.diversity * nearest
        if wanted.calibration:
            of_lists = listed[:, None] + shares
            of_lists /= np.maximum(of_lists.sum(axis=2, keepdims=True), 1e-300)
            values -= wanted.calibration * divergence_of_groups(own[:, None], of_lists)
        allowed = (
            left if wanted.per_group is None else left & ~(belongs & (numbers >= wanted.per_group)[:, None]).any(2)
        )
        best = np.where(allowed, values, -np.inf).argmax(axis=1)
        some = allowed[rows, best]
        chosen[some, place] = best[some]
        left[rows, best] &= ~some
        taken = items[rows, best]
        listed += shares[rows, best] * some[:, None]
        numbers += belongs[rows, best] & some[:, None]
        if facts.likeness is not None:
            alike = np.take_along_axis(facts.likeness[taken].toarray(), items.clip(min=0), axis=1)
            np.maximum(nearest, alike, out=nearest)
    return chosen


def _within(values: np.ndarray, filled: np.ndarray) -> np.ndarray:
    """Values brought to 0..1 within each list; 1 where all are equal."""
    least = np.where(filled, values, np.inf).min(axis=1, keepdims=True, initial=np.inf)
    most = np.where(filled, values, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
    span = most - least
    with np.errstate(invalid="ignore"):
        return np.where(span > 0, (values - least) / np.where(span > 0, span, 1), 1.0)
