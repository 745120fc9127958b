"""Time, memory and test error of AIR beside Surprise, implicit, cmfrec and myFM, in one run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.data.sets.planted import make_planted_ratings
from air_recsys.evaluation.folds import Fold, holdout_folds
from air_recsys.evaluation.results.apart import Stopwatch, run_apart
from air_recsys.metrics import rmse
from air_recsys.models import AIR
from air_recsys.storage.validation import check_choice
from air_recsys.training import Record
from benchmarks.accuracy.ratings_data import SPLIT, movielens_split
from benchmarks.harness import Found, spent_on, told

Curve = list[tuple[float, float]]
"""Seconds and test RMSE along a training; nothing is chosen by it."""


class Trained(NamedTuple):
    """What a training cost, how often it went over all ratings, and its test error where it predicts ratings."""

    costs: dict[str, float]
    passes: int
    rmse: float = float("nan")
    curve: Curve | None = None


def bench_ratings(
    root: Path | None,
    threads: int,
    seed: int,
    *,
    settings: dict[str, Any],
    systems: list[str],
    gibbs_steps: int,
    planted: list[int],
) -> Found:
    """Train every system on one split, each in a process of its own, one after the other."""
    known = contenders(settings, threads, gibbs_steps)
    chosen = {name: known[check_choice("a system", name, known)] for name in systems or known}
    rows, curves, title = [], [], ""
    for name, (train, _) in tqdm(chosen.items(), unit="model", desc="speed ratings"):
        title, trained = run_apart(_trained, train, root, planted, seed, threads=threads)
        memory = {key: trained.costs[key] for key in ("before_gib", "peak_gib")}
        seconds = {key: trained.costs[key] for key in ("seconds", "cpu_seconds")}
        a_pass = {"passes": trained.passes, "cpu_seconds / pass": seconds["cpu_seconds"] / trained.passes}
        rows.append({"model": name, **seconds, **a_pass, "rmse": trained.rmse, **memory})
        curves += [{"model": name, "seconds": at, "rmse": error} for at, error in trained.curve or []]
    for row in rows:
        row["this / first"] = row["cpu_seconds"] / rows[0]["cpu_seconds"]
    notes = [f"{name}: {told_as}" for name, (_, told_as) in chosen.items()]
    return Found(rows, curves, notes=notes, title=title)


def contenders(settings: dict[str, Any], threads: int, gibbs_steps: int) -> dict[str, tuple[Callable[..., Any], str]]:
    """What trains each system, and its settings; cmfrec, which no extra installs, where it is there."""
    width = AIR.for_ratings(**settings).n_factors
    width = width if isinstance(width, int) else 40  # what the preset takes for MovieLens-1M
    myfm = partial(train_myfm, rank=20, n_steps=gibbs_steps)
    als = f"factors={width}, else defaults; predicts no ratings"
    found: dict[str, tuple[Callable[..., Any], str]] = {
        "AIR": (partial(train_air, settings=settings), f"AIR.for_ratings({told(settings)})"),
        "AIR adam": (partial(train_air, settings={"solver": "adam"}), 'AIR.for_ratings(solver="adam")'),
        "Surprise SVD": (partial(train_surprise, algorithm="SVD"), "defaults"),
        "Surprise SVD++": (partial(train_surprise, algorithm="SVDpp"), "defaults"),
        "implicit ALS": (partial(train_als, factors=width, threads=threads), als),
        "myFM": (myfm, f"rank 20, {gibbs_steps} Gibbs steps"),
    }
    if find_spec("cmfrec") is not None:
        for name, conjugate in (("cmfrec ALS, Cholesky", False), ("cmfrec ALS, CG", True)):
            train = partial(train_cmfrec, factors=width, conjugate=conjugate, threads=threads)
            found[name] = train, f"k={width}, use_cg={conjugate}"
    return found


def train_air(fold: Fold, settings: dict[str, Any]) -> Trained:
    """Train AIR; its looks at the test ratings are not timed and decide nothing."""
    model = AIR.for_ratings(**{"random_state": 0, "device": "cpu"} | settings)
    curve, looking = [], Stopwatch()
    test, limits = fold.test, (fold.train.ratings.min(), fold.train.ratings.max())

    def look(record: Record) -> None:
        seconds = record.seconds - looking.seconds
        with looking:
            users, items, user_biases, item_biases, mean = model.current_factors()
            scores = np.einsum("nr,nr->n", users[test.user_index], items[test.item_index])
            scores += user_biases[test.user_index] + item_biases[test.item_index] + mean
            curve.append((seconds, rmse(test.ratings, np.clip(scores, *limits) if model.clip else scores)))

    _, costs = spent_on(lambda: model.fit(fold.train, callbacks=[look]))
    costs["seconds"] -= looking.seconds
    costs["cpu_seconds"] -= looking.cpu_seconds
    return Trained(costs, model.n_iter_, _test_error(model, test), curve)


def train_surprise(fold: Fold, algorithm: str) -> Trained:
    """Train an algorithm of Surprise with its defaults; making its trainset is not timed."""
    from air_recsys.adapters.surprise_peer import SurpriseModel

    model = SurpriseModel(algorithm, random_state=0)
    # Some of its algorithms fail on users and items without ratings.
    trainset = Interactions.from_frame(fold.train.to_frame()).to_surprise()
    _, costs = spent_on(lambda: model.algorithm.fit(trainset))
    return Trained(costs, model.algorithm.n_epochs, _test_error(model, fold.test))


def train_als(fold: Fold, factors: int, threads: int) -> Trained:
    """Train implicit's ALS on the ratings as confidences: a yardstick of time, it predicts no ratings."""
    from air_recsys.adapters._implicit_input import as_implicit_reads
    from air_recsys.adapters.implicit_peer import AlternatingLeastSquares

    model = AlternatingLeastSquares(factors=factors, num_threads=threads, random_state=0)
    ratings = as_implicit_reads(fold.train.to_csr(), np.float32)
    _, costs = spent_on(lambda: model.fit(ratings, show_progress=False))
    return Trained(costs, model.iterations)


def train_cmfrec(fold: Fold, factors: int, conjugate: bool, threads: int) -> Trained:
    """Train cmfrec's ALS with biases, its defaults but for the width: by Cholesky factors, or conjugate gradients."""
    from cmfrec import CMF  # pyright: ignore[reportMissingImports]  # no extra has it: it needs a compiler

    model = CMF(k=factors, use_cg=conjugate, nthreads=threads, verbose=False, random_state=0)
    frame = fold.train.to_frame().set_axis(["UserId", "ItemId", "Rating"], axis=1)
    _, costs = spent_on(lambda: model.fit(frame))
    return Trained(costs, model.niter, _test_error(model, fold.test))


def train_myfm(fold: Fold, rank: int, n_steps: int) -> Trained:
    """Train myFM's Bayesian matrix factorization."""
    from air_recsys.adapters.myfm_peer import MyFMModel

    model = MyFMModel(rank, n_steps)
    _, costs = spent_on(lambda: model.fit(fold.train))
    return Trained(costs, n_steps, _test_error(model, fold.test))


def _trained(
    train: Callable[[Fold], Trained], root: Path | None, planted: list[int], seed: int
) -> tuple[str, Trained]:
    fold, title = split_of(root, planted, seed)
    return title, train(fold)


def _test_error(model: Any, test: Interactions) -> float:
    users, items = test.user_ids[test.user_index], test.item_ids[test.item_index]
    return rmse(test.ratings, model.predict(users, items))


def planted_split(n_users: int, n_items: int, n_ratings: int, seed: int) -> Fold:
    """Planted ratings, and a random tenth of them held out."""
    data = make_planted_ratings(n_users, n_items, n_ratings, random_state=seed).interactions
    return holdout_folds(data, 0.1, seed)[0]


def split_of(root: Path | None, planted: list[int], seed: int) -> tuple[Fold, str]:
    """The split of a case and where it comes from: planted of so many users, items and ratings, or MovieLens-1M."""
    if planted:
        n_users, n_items, n_ratings = planted
        title = f"{n_ratings} planted ratings of {n_users} users and {n_items} items, a random tenth held out"
        return planted_split(n_users, n_items, n_ratings, seed), title
    assert root is not None
    return movielens_split(root), SPLIT
