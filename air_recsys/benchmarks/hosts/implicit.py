"""ImplicitAIR beside implicit's ALS: ranking, and the time of the top 10 of all users."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.benchmarks.hosts.timing import median_seconds
from air_recsys.interactions import Interactions
from air_recsys.results import ResultTable
from air_recsys.splits import user_holdout

_LIKED = 4.0
_N = 10
_SETTINGS = ((0.01, 1.0), (10.0, 1.0), (30.0, 4.0))  # regularization, alpha


def bench_implicit(data: Interactions, *, factors: int = 64, seed: int = 0, rounds: int = 9) -> ResultTable:
    """Train both on the same likes with the same factors, rank the rest, and time `recommend` for all users.

    Parameters
    ----------
    data : Interactions
        Ratings; those of 4 and more are likes, a fifth of each user's is held out.
    seed : int
        Of the split and of both models.
    rounds : int
        Rounds of timing, the two in turn; the median counts.
    """
    from air_recsys.adapters.implicit import ImplicitAIR
    from air_recsys.adapters.implicit_peer import alternating_least_squares, ranking_metrics

    train, test = likes(data, seed)
    makers: dict[str, Callable[..., Any]] = {
        "implicit ALS": alternating_least_squares,
        "ImplicitAIR": partial(ImplicitAIR, device="cpu"),
    }
    rows, first = [], {}
    for regularization, alpha in _SETTINGS:
        setting = {"regularization": regularization, "alpha": alpha}
        for name, make in makers.items():
            model = make(factors=factors, random_state=seed, **setting)
            start = time.perf_counter()
            model.fit(train, show_progress=False)
            row = {"model": name} | setting | {"fit_seconds": time.perf_counter() - start}
            measures = ranking_metrics(model, train, test, _N)
            rows.append(row | {f"{key}_at_{_N}": measures[key] for key in ("precision", "map", "ndcg")})
            first.setdefault(name, model)
    n_users, n_items = train.get_shape()
    users = np.arange(n_users)
    medians = median_seconds(
        {name: lambda m=model: m.recommend(users, train, N=_N) for name, model in first.items()}, rounds
    )
    times = ", ".join(f"{name} {1e3 * seconds:.0f} ms" for name, seconds in medians.items())
    times += f"; ratio {medians['ImplicitAIR'] / medians['implicit ALS']:.2f}"
    return ResultTable(
        "In implicit",
        f"{n_users} users, {n_items} items; {train.nnz} likes (ratings >= {_LIKED:g}) to train on, {test.nnz} held "
        f"out, seed {seed}; {factors} factors, the first setting is the default of both; no setting was chosen on "
        "these held-out likes",
        rows,
        [f"top {_N} of all users, their likes left out, median of {rounds} rounds in turn: {times}"],
    )


def likes(data: Interactions, seed: int) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return the likes to train on and those held out, a fifth of each user's, as implicit wants them."""
    from air_recsys.adapters.implicit_split import as_implicit_reads

    high = data.select(data.ratings >= _LIKED)
    liked = Interactions(high.user_index, high.item_index, np.ones(high.n_ratings), high.user_ids, high.item_ids)
    split = user_holdout(liked, 0.2, random_state=seed)
    train, test = (as_implicit_reads(liked.select(mask).to_csr(), np.float32) for mask in split)
    return train, test
