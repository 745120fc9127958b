"""Lists again: what diversity, novelty and calibration cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys import AIR, rerank
from air_recsys.datasets import load_movielens_genres
from air_recsys.metrics import coverage, intra_list_diversity, miscalibration, ndcg_at_k, novelty
from benchmarks.accuracy.ranking_data import RANKING_SETS
from benchmarks.harness import Found

_N = 10
_WISHES = ("diversity", "novelty", "calibration")


def bench_reranking(
    root: Path, seed: int, case: str, *, amounts: list[float], length: int, settings: dict[str, Any]
) -> Found:
    """Measure lists of ten, chosen from longer ones, on the test part."""
    fold = RANKING_SETS[case].load(root)
    how = {"validation": RANKING_SETS[case].validation, "random_state": seed, "device": "cpu"} | settings
    train = fold.train
    model = AIR.for_likes(**how).fit(train)
    genres = load_movielens_genres(root / case, "1m" if case == "ml-1m" else "100k").reindex(train.item_ids)
    lists, seen = model.recommend(train.user_ids, length), train.to_csr()
    test = fold.test.select(np.isin(fold.test.item_ids, train.item_ids)[fold.test.item_index])
    columns = train.items.lookup(test.item_ids)[test.item_index]
    wanted = train.users.lookup(test.user_ids)[test.user_index], columns
    hidden = sp.csr_array((np.ones(columns.size), wanted), shape=(train.n_users, train.n_items))
    rows = []
    for wish, amount in [("none", 0.0)] + [(wish, amount) for wish in _WISHES for amount in amounts]:
        asked: dict[str, Any] = {} if wish == "none" else {wish: amount}
        found = rerank(lists, model, _N, groups=genres, **asked)
        items = np.full((train.n_users, _N), -1)
        users = train.users.lookup(found["user"].to_numpy())
        items[users, found["rank"] - 1] = train.items.lookup(found["item"].to_numpy())
        rows.append(
            {
                "asked for": wish,
                "amount": amount,
                "ndcg@10": ndcg_at_k(items, hidden, _N),
                "coverage": coverage(items, train.n_items),
                "diversity": intra_list_diversity(items, seen),
                "novelty": novelty(items, seen),
                "miscalibration of genres": miscalibration(items, seen, genres.to_numpy(dtype=float)),
            }
        )
    return Found(rows, set=RANKING_SETS[case].title, users=train.n_users, line=model.search_line_)
