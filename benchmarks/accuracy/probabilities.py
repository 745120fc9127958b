"""Probabilities of likes: how right they are, and how well they order the lists of different users."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from air_recsys import AIR
from air_recsys.metrics import calibration_error
from benchmarks.accuracy.ranking_data import RANKING_SETS
from benchmarks.harness import Found

_BINS = 15  # of equal numbers of pairs


def bench_probabilities(
    root: Path, seed: int, case: str, *, lengths: list[int], sampled: int, settings: dict[str, Any]
) -> Found:
    """Measure the probabilities of the items of all lists, and of all items of some users, on the test part."""
    fold = RANKING_SETS[case].fold(root, seed)
    how = {"validation": RANKING_SETS[case].validation, "random_state": seed, "device": "cpu"} | settings
    train = fold.train
    model = AIR.for_likes(**how).fit(train)
    test = fold.test.select(np.isin(fold.test.item_ids, train.item_ids)[fold.test.item_index])
    users, items = (
        train.users.lookup(test.user_ids)[test.user_index],
        train.items.lookup(test.item_ids)[test.item_index],
    )
    wanted = np.sort(users * train.n_items + items)
    lists = model.recommend(train.user_ids, max(lengths))
    probability = model.predict_proba(lists["user"], lists["item"])
    columns = train.items.lookup(lists["item"].to_numpy())
    taken = np.isin(train.users.lookup(lists["user"].to_numpy()) * train.n_items + columns, wanted)
    rows = []
    for length in lengths:
        listed = lists["rank"].to_numpy() <= length
        rows.append({"pairs": f"lists of {length}"} | _figures(taken[listed], probability[listed]))
    some = np.sort(np.random.default_rng(seed).choice(train.n_users, min(sampled, train.n_users), replace=False))
    known = train.to_csr()[some]
    found = np.concatenate([model.predict_proba(train.user_ids[[user]], train.item_ids) for user in some])
    true = np.isin((some[:, None] * train.n_items + np.arange(train.n_items)).ravel(), wanted)
    new = np.ones(found.size, dtype=bool)
    new[np.ravel_multi_index(known.nonzero(), known.shape)] = False
    rows.append({"pairs": f"all of {some.size} users"} | _figures(true[new], found[new]))
    first = lists["rank"].to_numpy() <= min(lengths)
    orders = {
        "probability": probability[first],
        "score": lists["score"].to_numpy()[first],
        "popularity": np.bincount(train.item_index, minlength=train.n_items)[columns[first]],
    }
    merged = [
        {"order": name}
        | {f"first {n}": taken[first][np.argsort(-values, kind="stable")[:n]].mean() for n in (1000, 10000)}
        for name, values in orders.items()
    ]
    return Found(rows, merged, set=RANKING_SETS[case].title, users=train.n_users, line=model.search_line_)


def _figures(taken: np.ndarray, probability: np.ndarray) -> dict[str, float]:
    share, errors = taken.mean(), taken - probability
    parts = np.array_split(errors[np.argsort(probability, kind="stable")], _BINS)
    return {
        "number": taken.size,
        "share taken": share,
        "mean probability": probability.mean(),
        "calibration error": calibration_error(taken, probability),
        "of equal bins": sum(abs(part.sum()) for part in parts) / taken.size,
        "Brier skill": 1 - (errors**2).mean() / (share * (1 - share)),
    }
