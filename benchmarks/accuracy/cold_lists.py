"""Lists of items without likes, and for users without likes, by features: of GraphRanker and of peers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.datasets import load_movielens
from air_recsys.exceptions import ParameterError
from air_recsys.metrics import recall_at_k, user_measures
from air_recsys.metrics.checks import Csr
from air_recsys.metrics.ranking import top_k
from air_recsys.models import GraphRanker
from air_recsys.splits import user_holdout
from air_recsys.storage.validation import check_choice
from benchmarks.accuracy.graph_residuals import HIDDEN
from benchmarks.accuracy.peers.described import ContentNeighbors, HybridFactors
from benchmarks.accuracy.ranking_data import RANKING_SETS, alike
from benchmarks.accuracy.ratings_data import VARIANTS, known_tables
from benchmarks.harness import Found

_LENGTH, _SHARE = 20, 0.1
Makers = dict[str, list[Callable[[], Any]]]
_PEERS: Makers = {
    "LightFM's model": [lambda rate=rate: HybridFactors(rate) for rate in (0.02, 0.05)],
    "content kNN": [lambda k=k: ContentNeighbors(k) for k in (20, 50, 100, 200)],
}


class _Draw(NamedTuple):
    """Items that are hidden whole, and a hidden fifth of each user's other likes."""

    known: Interactions  # without the hidden items
    shown: Csr  # the same over all items
    of_known: Csr  # test likes of other items
    of_hidden: Csr
    hidden: np.ndarray  # the positions of the hidden items

    @classmethod
    def of(cls, data: Interactions, seed: int) -> _Draw:
        """The draw of a seed."""
        hidden = np.sort(np.random.RandomState(seed).permutation(data.n_items)[: round(_SHARE * data.n_items)])
        others = data.select(~np.isin(data.item_index, hidden))
        split = user_holdout(others, 0.2, seed)
        train = others.select(split.train)
        parts = others.select(split.test), data.select(np.isin(data.item_index, hidden))
        known = train.over(np.arange(data.n_users), np.unique(train.item_index))
        of_known, of_hidden = map(_csr, parts)
        return cls(known, _csr(train), of_known, of_hidden, hidden)


def bench_cold_lists(
    root: Path,
    seed: int,
    case: str,
    *,
    systems: list[str],
    draws: int,
    hidden: list[str],
    validation: bool,
    new_users: bool,
    settings: dict[str, Any],
) -> Found:
    """Measure lists of hidden items, of all items, and of hidden users, by features: means over draws.

    Settings of peers are those with the best recall on a further tenth of the items, hidden from the training.
    """
    if validation or new_users:
        raise ParameterError("expected neither validation nor new_users: items and users are hidden whole")
    peers = {check_choice("systems", name, list(_PEERS)): _PEERS[name] for name in systems or _PEERS}
    name = case.removesuffix("-cold")
    tables, single = known_tables(name, root), []
    data = alike(load_movielens(root, VARIANTS[name]))
    data = Interactions(data.user_index, data.item_index, data.ratings, data.users, data.items)
    for told, draw in itertools.product(hidden or HIDDEN, range(seed, seed + draws)):
        side, columns = HIDDEN[check_choice("hidden", told, list(HIDDEN))]
        ranker = GraphRanker(**{"random_state": draw, "device": "cpu"} | settings)
        if side == "item":
            found = _of_items(ranker, _Draw.of(data, draw), data, pd.DataFrame(tables["item"][columns]), peers)
        else:
            found = _of_users(ranker, data, pd.DataFrame(tables["user"][columns]), draw)
        single += [{"hidden": told, "measure": measure} | figures for measure, figures in found.items()]
    rows: list[dict[str, Any]] = []
    for _, group in pd.DataFrame(single).groupby(["hidden", "measure"], sort=False):
        means = group.drop(columns=["hidden", "measure"]).mean().dropna().to_dict()
        rows.append(group.iloc[0][["hidden", "measure"]].to_dict() | means)
    return Found(rows, title=RANKING_SETS[name].title)


def _of_items(
    ranker: GraphRanker,
    draw: _Draw,
    data: Interactions,
    films: pd.DataFrame,
    peers: dict[str, list[Callable[[], Any]]],
) -> dict[str, dict[str, float]]:
    table = _of_ids(films, data.item_ids)
    model = ranker.fit(draw.known, item_features=table)
    without = GraphRanker(**ranker.get_params()).fit(draw.known)
    features = model.interactions_.item_features
    assert features is not None
    values = features.values[model.interactions_.items.lookup(data.item_ids)]
    lists = _lists(model, data, items=data.item_ids[draw.hidden])
    figures = {"GraphRanker": _recall(lists, draw.of_hidden)}
    for name, makers in peers.items():
        chosen = makers[int(np.argmax([_recall_inside(make, draw, values) for make in makers]))]()
        scores = chosen.fit(draw.shown[:, _liked(draw.shown)], values[_liked(draw.shown)]).scores(values[draw.hidden])
        figures[name] = _recall(draw.hidden[top_k(scores, _LENGTH)], draw.of_hidden)
    figures["chance"] = min(1.0, _LENGTH / draw.hidden.size)
    both = {"GraphRanker": _lists(model, data), "without features": _lists(without, data)}
    whole = sp.csr_array(draw.of_known + draw.of_hidden)
    return {
        "recall@20 of hidden items": figures,
        "NDCG@20 of the others": {name: _ndcg(each, draw.of_known) for name, each in both.items()},
        "NDCG@20 of all": {name: _ndcg(each, whole) for name, each in both.items()},
    }


def _recall_inside(make: Callable[[], Any], draw: _Draw, values: np.ndarray) -> float:
    liked = _liked(draw.shown)
    out = np.random.RandomState(0).permutation(liked)[: round(_SHARE * liked.size)]
    left = np.setdiff1d(liked, out)
    scores = make().fit(draw.shown[:, left], values[left]).scores(values[out])
    return _recall(top_k(scores, _LENGTH), sp.csr_array(draw.shown[:, out]))


def _of_users(ranker: GraphRanker, data: Interactions, people: pd.DataFrame, seed: int) -> dict[str, dict[str, float]]:
    hidden = np.random.RandomState(seed).permutation(data.n_users)[: round(_SHARE * data.n_users)]
    is_hidden = np.isin(data.user_index, hidden)
    known = data.select(~is_hidden)
    shown = known.over(np.unique(known.user_index), np.arange(data.n_items))
    table = _of_ids(people, data.user_ids)
    test = _csr(data.select(is_hidden))
    lists = {"GraphRanker": _lists(ranker.fit(shown, user_features=table), data, hidden)}
    popular = np.bincount(shown.item_index, minlength=data.n_items)
    lists["popularity"] = np.tile(np.argsort(-popular, kind="stable")[:_LENGTH], (data.n_users, 1))
    return {
        "NDCG@20": {name: _ndcg(each, test) for name, each in lists.items()},
        "recall@20": {name: _recall(each, test) for name, each in lists.items()},
    }


def _lists(model: GraphRanker, data: Interactions, users: np.ndarray | None = None, **how: Any) -> np.ndarray:
    """Lists of 20 by the positions of the data, (n_users, 20); -1 where none was asked for or is left."""
    asked = data.user_ids if users is None else data.user_ids[users]
    table = model.recommend(asked, _LENGTH, **how)
    found = np.full((data.n_users, _LENGTH), -1)
    rows, places = data.users.lookup(table["user"].to_numpy()), table["rank"].to_numpy() - 1
    found[rows, places] = data.items.lookup(table["item"].to_numpy())
    return found


def _recall(lists: np.ndarray, test: Csr) -> float:
    users = np.flatnonzero(np.diff(test.indptr))
    return float(recall_at_k(lists[users], sp.csr_array(test[users]), _LENGTH))


def _ndcg(lists: np.ndarray, test: Csr) -> float:
    users = np.flatnonzero(np.diff(test.indptr))
    return float(user_measures(lists[users], sp.csr_array(test[users]), _LENGTH)["ndcg_at_k"].mean())


def _of_ids(table: pd.DataFrame, ids: np.ndarray) -> pd.DataFrame:
    """The rows of some ids, indexed by these and not by row numbers."""
    return table.reindex(ids).set_axis(pd.Index(ids))


def _liked(likes: Csr) -> np.ndarray:
    return np.unique(likes.indices)


def _csr(data: Interactions) -> Csr:
    ones, pairs = np.ones(data.n_ratings, np.float32), (data.user_index, data.item_index)
    return sp.csr_array((ones, pairs), shape=(data.n_users, data.n_items))
