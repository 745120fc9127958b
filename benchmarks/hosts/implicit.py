"""ImplicitAIR beside implicit's ALS at equal settings: ranking, and the time of the top 10 of all users."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.results import ResultTable
from air_recsys.splits import user_holdout
from benchmarks.hosts.timing import median_seconds

_LIKED = 4.0
LIST_LENGTH = 10
_SETTINGS = ((0.01, 1.0), (10.0, 1.0), (30.0, 4.0))  # regularization, alpha


def bench_implicit(data: Interactions, *, factors: int = 64, seed: int = 0, rounds: int = 9) -> ResultTable:
    """Train both on the same likes with the same settings, rank the rest, and time `recommend` for all users.

    Parameters
    ----------
    data : Interactions
        Ratings; those of 4 and more are likes, a fifth of each user's is held out.
    seed : int
        Of the split and of both models.
    rounds : int
        Rounds of timing, the two in turn; the median counts.
    """
    train, test = likes(data, seed)
    rows, first = [], {}
    for regularization, alpha in _SETTINGS:
        setting = {"factors": factors, "regularization": regularization, "alpha": alpha, "iterations": 15}
        for name, make in makers().items():
            model, measures = trained(partial(make, **setting), train, test, seed)
            rows.append({"model": name} | measures | setting)
            first.setdefault(name, model)
    n_users, n_items = train.get_shape()
    return ResultTable(
        "In implicit, equal settings",
        f"{n_users} users, {n_items} items; {train.nnz} likes (ratings >= {_LIKED:g}) to train on, {test.nnz} held "
        f"out, seed {seed}; {factors} factors, the first setting is ALS's default; processor seconds of fit. No "
        "setting was chosen on the held-out likes",
        rows,
        [_times(first, train, rounds)],
    )


def likes(data: Interactions, seed: int) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return the likes to train on and those held out, a fifth of each user's, as implicit wants them."""
    high = data.select(data.ratings >= _LIKED)
    liked = Interactions(high.user_index, high.item_index, np.ones(high.n_ratings), high.user_ids, high.item_ids)
    return divided(liked, seed)


def ndcg_of_users(model: Any, train: sp.csr_matrix, test: sp.csr_matrix) -> np.ndarray:
    """Return implicit's NDCG at 10 of each user with held-out likes; their mean is that of its evaluation."""
    held_out = np.diff(test.indptr)
    users = np.flatnonzero(held_out)
    items, _ = model.recommend(users, train[users], N=LIST_LENGTH)
    hits = test[np.repeat(users, items.shape[1]), items.ravel()].reshape(items.shape) > 0
    gains = 1 / np.log2(np.arange(LIST_LENGTH) + 2)
    return hits @ gains[: items.shape[1]] / np.cumsum(gains)[np.minimum(held_out[users], LIST_LENGTH) - 1]


def makers() -> dict[str, Callable[..., Any]]:
    """Return both models by name, each to be called with its parameters."""
    from air_recsys.adapters.implicit import ImplicitAIR
    from air_recsys.adapters.implicit_peer import alternating_least_squares

    return {"implicit ALS": alternating_least_squares, "ImplicitAIR": partial(ImplicitAIR, device="cpu")}


def list_makers() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return implicit's BPR and our ranker, which share no settings with the others."""
    from air_recsys.adapters.implicit import ImplicitRanker
    from air_recsys.adapters.implicit_peer import bayesian_ranking

    return bayesian_ranking, partial(ImplicitRanker, device="cpu")


def divided(liked: Interactions, seed: int) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return the likes to train on and a fifth of each user's, as implicit wants them."""
    from air_recsys.adapters._implicit_input import as_implicit_reads

    split = user_holdout(liked, 0.2, random_state=seed)
    train, test = (as_implicit_reads(liked.select(mask).to_csr(), np.float32) for mask in split)
    return train, test


def trained(
    make: Callable[..., Any], train: sp.csr_matrix, test: sp.csr_matrix, seed: int
) -> tuple[Any, dict[str, float]]:
    """Return a model, trained, with the processor seconds of that and its measures on the held-out likes."""
    from air_recsys.adapters.implicit_peer import ranking_metrics

    model = make(random_state=seed)
    start = time.process_time()
    model.fit(train, show_progress=False)
    row = {"fit_seconds": time.process_time() - start}
    measures = ranking_metrics(model, train, test, LIST_LENGTH)
    return model, row | {f"{key}_at_{LIST_LENGTH}": measures[key] for key in ("precision", "map", "ndcg")}


def _times(models: dict[str, Any], train: sp.csr_matrix, rounds: int) -> str:
    users = np.arange(train.get_shape()[0])
    medians = median_seconds(
        {name: lambda m=model: m.recommend(users, train, N=LIST_LENGTH) for name, model in models.items()}, rounds
    )
    times = ", ".join(f"{name} {1e3 * seconds:.0f} ms" for name, seconds in medians.items())
    ratio = medians["ImplicitAIR"] / medians["implicit ALS"]
    what = f"top {LIST_LENGTH} of all users, their likes left out, median of {rounds} rounds in turn"
    return f"{what}: {times}; ratio {ratio:.2f}"
