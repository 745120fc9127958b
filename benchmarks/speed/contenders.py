"""Rating models that are timed beside each other: each trains on one split and says how long it took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.folds import Fold
from air_recsys.evaluation.results.apart import MemoryWatch, Stopwatch
from air_recsys.metrics import rmse
from air_recsys.models import AIR
from air_recsys.training import Record


@dataclass(frozen=True)
class Outcome:
    """The cost and the error of a training.

    Attributes
    ----------
    seconds, cpu_seconds : float
        Of the training alone: on the clock, and of all threads together, which a busy machine changes less.
    passes : int
        Over all ratings: sweeps, iterations, epochs or Gibbs steps.
    rmse : float
        On the test ratings; NaN where the model predicts no ratings.
    curve : list of (float, float)
        Seconds and test RMSE along the training; nothing was chosen by it.
    """

    seconds: float
    cpu_seconds: float
    passes: int
    rmse: float = float("nan")
    curve: list[tuple[float, float]] = field(default_factory=list)


def measure(contender: Callable[..., Outcome], load: Callable[[], Fold], *arguments: Any) -> dict[str, Any]:
    """Load a split, run one contender on it, and return its outcome and the memory that this took, in GiB."""
    fold = load()
    memory = MemoryWatch()
    outcome = contender(fold, *arguments)
    return {"outcome": outcome, "before_gib": memory.before_gib, "peak_gib": memory.peak_gib()}


def train_air(fold: Fold, settings: dict[str, Any]) -> Outcome:
    """Train `AIR.for_ratings(**settings)`; its looks at the test ratings are not timed and decide nothing."""
    model = AIR.for_ratings(**{"random_state": 0, "device": "cpu"} | settings)
    curve: list[tuple[float, float]] = []
    training, looking = Stopwatch(), Stopwatch()
    test, limits = fold.test, (fold.train.ratings.min(), fold.train.ratings.max())

    def look(record: Record) -> None:
        seconds = record.seconds - looking.seconds
        with looking:
            users, items, user_biases, item_biases, mean = model.current_factors()
            scores = np.einsum("nr,nr->n", users[test.user_index], items[test.item_index])
            scores += user_biases[test.user_index] + item_biases[test.item_index] + mean
            curve.append((seconds, rmse(test.ratings, np.clip(scores, *limits) if model.clip else scores)))

    with training:
        model.fit(fold.train, callbacks=[look])
    spent = training.seconds - looking.seconds, training.cpu_seconds - looking.cpu_seconds
    return Outcome(*spent, model.n_iter_, _test_error(model, test), curve)


def train_surprise(fold: Fold, algorithm: str) -> Outcome:
    """Train an algorithm of Surprise with its defaults; making its trainset is not timed."""
    from air_recsys.adapters.surprise_peer import SurpriseModel

    model = SurpriseModel(algorithm, random_state=0)
    # Some of its algorithms fail on users and items without ratings.
    trainset = Interactions.from_frame(fold.train.to_frame()).to_surprise()
    with Stopwatch() as training:
        model.algorithm.fit(trainset)
    passes = model.algorithm.n_epochs  # those timed here are trained by epochs
    return Outcome(training.seconds, training.cpu_seconds, passes, _test_error(model, fold.test))


def train_als(fold: Fold, factors: int, threads: int) -> Outcome:
    """Train implicit's ALS on the ratings as confidences: a yardstick of time, it predicts no ratings."""
    from air_recsys.adapters._implicit_input import as_implicit_reads
    from air_recsys.adapters.implicit_peer import alternating_least_squares

    model = alternating_least_squares(factors=factors, num_threads=threads, random_state=0)
    ratings = as_implicit_reads(fold.train.to_csr(), np.float32)
    with Stopwatch() as training:
        model.fit(ratings, show_progress=False)
    return Outcome(training.seconds, training.cpu_seconds, model.iterations)


def train_cmfrec(fold: Fold, factors: int, conjugate: bool, threads: int) -> Outcome:
    """Train cmfrec's ALS with biases, its defaults but for the width: by Cholesky factors, or conjugate gradients."""
    from cmfrec import CMF  # pyright: ignore[reportMissingImports]  # no extra has it: it needs a compiler

    model = CMF(k=factors, use_cg=conjugate, nthreads=threads, verbose=False, random_state=0)
    frame = fold.train.to_frame().set_axis(["UserId", "ItemId", "Rating"], axis=1)
    with Stopwatch() as training:
        model.fit(frame)
    return Outcome(training.seconds, training.cpu_seconds, model.niter, _test_error(model, fold.test))


def train_myfm(fold: Fold, rank: int, n_steps: int) -> Outcome:
    """Train myFM's Bayesian matrix factorization."""
    from air_recsys.adapters.myfm_peer import MyFMModel

    model = MyFMModel(rank, n_steps)
    with Stopwatch() as training:
        model.fit(fold.train)
    return Outcome(training.seconds, training.cpu_seconds, n_steps, _test_error(model, fold.test))


def _test_error(model: Any, test: Interactions) -> float:
    users, items = test.user_ids[test.user_index], test.item_ids[test.item_index]
    return rmse(test.ratings, model.predict(users, items))
