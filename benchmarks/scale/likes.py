"""Planted likes by size: `AIR.for_likes` with the lists of all users, and `DrugTargetAIR` on them as interactions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.dti import DrugTargetAIR
from air_recsys.evaluation.results.apart import run_apart
from air_recsys.metrics import average_precision
from air_recsys.metrics.at_k import recall_at_k
from air_recsys.models import AIR
from air_recsys.models.graph_ranker.ranker import GraphRanker
from benchmarks.harness import Found, check_settings, spent_on

_GROUPS = 200  # of users and of items
_WITHIN = 0.6  # of the likes of a user that are of its group
_TAIL, _HEAD = 0.8, 10  # popularity of the item at place k: (k + head)^-tail
_TESTED = 5000  # users with hidden likes
_LENGTH = 20
_ASKED = 50_000  # users of one call
_HIDDEN = 0.05  # of the interactions
_RANKED = 500  # drugs whose pairs are ranked


def bench_likes(
    threads: int,
    seed: int,
    *,
    n_users: int,
    n_items: int,
    n_likes: int,
    shares: list[float],
    settings: dict[str, Any],
) -> Found:
    """Train `AIR.for_likes` on shares of the users, a process each, and make the lists of all of them."""
    check_settings(AIR.for_likes(), settings)
    sizes = [(round(n_users * share), n_items, round(n_likes * share)) for share in shares]
    rows = [
        run_apart(measured_likes, size, settings, seed, threads=threads)
        for size in tqdm(sizes, unit="size", desc="scale likes")
    ]
    return Found(rows)


def measured_likes(size: tuple[int, int, int], settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Make the likes, train, list, and return the row of this size."""
    shown, users, hidden = _hidden_likes(planted_likes(*size, seed), seed)
    data = Interactions.from_csr(shown)
    model = AIR.for_likes(**{"random_state": seed, "device": "cpu"} | settings)
    _, training = spent_on(lambda: model.fit(data))
    lists, listing = spent_on(lambda: _lists(model, data))
    assert shown.shape is not None
    popular = np.argsort(-np.bincount(shown.indices, minlength=shown.shape[1]), kind="stable")
    seen = shown[users].toarray() > 0
    by_popularity = np.stack([popular[~row[popular]][:_LENGTH] for row in seen])
    return {
        "n_users": size[0],
        "n_items": size[1],
        "n_likes": int(shown.nnz),
        "fit_seconds": training["seconds"],
        "lists_seconds": listing["seconds"],
        "data_gib": training["before_gib"],
        "peak_gib": max(training["peak_gib"], listing["peak_gib"]),
        "recall_at_20": recall_at_k(lists[users].astype(np.int64), hidden, _LENGTH),
        "popularity": recall_at_k(by_popularity, hidden, _LENGTH),
        "chosen": model.search_line_,
    }


def bench_drug_targets(
    threads: int,
    seed: int,
    *,
    n_drugs: int,
    n_targets: int,
    n_interactions: int,
    shares: list[float],
    lists: bool,
    settings: dict[str, Any],
) -> Found:
    """Fit shares of planted interactions, all other pairs zeros, each in a process of its own.

    Measured are hidden interactions among the pairs of some drugs that are not shown.
    """
    check_settings(DrugTargetAIR(), settings)
    sizes = [(round(n_drugs * share), n_targets, round(n_interactions * share)) for share in shares]
    rows = [
        run_apart(measured_drug_targets, size, settings, lists, seed, threads=threads)
        for size in tqdm(sizes, unit="size", desc="scale drug-targets")
    ]
    return Found(rows)


def measured_drug_targets(
    size: tuple[int, int, int], settings: dict[str, Any], lists: bool, seed: int
) -> dict[str, Any]:
    """Make the interactions, fit, and return the row of this size."""
    made = planted_likes(*size, seed)
    hide = np.random.default_rng(seed).random(made.nnz) < _HIDDEN
    shown, hidden = _entries(made, ~hide), _entries(made, hide)
    data = Interactions.from_csr(shown)
    model, fitting = spent_on(lambda: DrugTargetAIR(**settings).fit(data))
    row = {"n_drugs": size[0], "n_targets": size[1], "n_interactions": int(shown.nnz)}
    row |= {"fit_seconds": fitting["seconds"]}
    peak = fitting["peak_gib"]
    if lists:
        _, listing = spent_on(lambda: model.new_interactions(50))
        row["list_seconds"], peak = listing["seconds"], max(peak, listing["peak_gib"])
    row |= {"data_gib": fitting["before_gib"], "peak_gib": peak}
    drugs = np.random.default_rng(seed).choice(size[0], min(_RANKED, size[0]), replace=False)
    open_pairs, truth = shown[drugs].toarray() == 0, hidden[drugs].toarray() > 0
    counts = np.outer(np.diff(shown.indptr)[drugs] + 1, np.bincount(shown.indices, minlength=size[1]) + 1)
    measured = {"average_precision": model.scores_[drugs], "by_counts": counts}
    return row | {name: average_precision(truth[open_pairs], of[open_pairs]) for name, of in measured.items()}


def planted_likes(n_users: int, n_items: int, n_likes: int, seed: int) -> sp.csr_array:
    """Likes of users and items in groups, about as many as asked for where few are repeated: those are one.

    Examples
    --------
    >>> likes = planted_likes(300, 400, 6000, 0)
    >>> likes.shape, 3000 < likes.nnz <= 6900, set(likes.data.tolist())
    ((300, 400), True, {1.0})
    """
    rng = np.random.default_rng(seed)
    popularity = (np.arange(n_items) + _HEAD) ** -_TAIL
    groups, own = rng.integers(_GROUPS, size=n_items), rng.integers(_GROUPS, size=n_users)
    users = rng.integers(n_users, size=int(1.15 * n_likes), dtype=np.int64)
    items = _drawn(popularity, users.size, rng)
    within = np.flatnonzero(rng.random(users.size) < _WITHIN)
    within = within[np.argsort(own[users[within]], kind="stable")]
    starts = np.searchsorted(own[users[within]], np.arange(_GROUPS + 1))
    for group in range(_GROUPS):
        members, places = np.flatnonzero(groups == group), within[starts[group] : starts[group + 1]]
        if members.size:
            items[places] = members[_drawn(popularity[members], places.size, rng)]
    pairs = np.unique(users * n_items + items)
    ones = np.ones(pairs.size, dtype=np.float32)
    return sp.csr_array((ones, np.divmod(pairs, n_items)), shape=(n_users, n_items))


def _drawn(shares: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    """Positions drawn with chances that follow shares."""
    ends = np.cumsum(shares / shares.sum())
    return np.minimum(np.searchsorted(ends, rng.random(number)), shares.size - 1)


def _hidden_likes(likes: sp.csr_array, seed: int) -> tuple[sp.csr_array, np.ndarray, sp.csr_array]:
    """The likes to train on, some users, and their hidden likes, one row each of them."""
    rng = np.random.default_rng(seed)
    able = np.flatnonzero(np.diff(likes.indptr) >= 5)
    users = np.sort(rng.choice(able, min(_TESTED, able.size), replace=False))
    of_users = np.isin(likes.nonzero()[0], users)
    hide = np.zeros(likes.nnz, dtype=bool)
    hide[of_users] = rng.random(int(of_users.sum())) < 0.2
    return _entries(likes, ~hide), users, _entries(likes, hide)[users]


def _lists(model: GraphRanker, data: Interactions) -> np.ndarray:
    """The items of the best lists of all users, (n_users, length)."""
    lists = np.empty((data.n_users, _LENGTH), dtype=np.int32)
    for begin in tqdm(range(0, data.n_users, _ASKED), unit="block", desc="lists", leave=False):
        asked = data.user_ids[begin : begin + _ASKED]
        lists[begin : begin + _ASKED] = model.recommend(asked, _LENGTH)["item"].to_numpy().reshape(-1, _LENGTH)
    return lists


def _entries(matrix: sp.csr_array, chosen: np.ndarray) -> sp.csr_array:
    """The chosen entries of a matrix, in a matrix of its shape."""
    rows, columns = matrix.nonzero()
    return sp.csr_array((matrix.data[chosen], (rows[chosen], columns[chosen])), shape=matrix.shape)
