"""What a system of a comparison answers: predicted ratings and lists of items, with the costs of its training."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.lists import Recommending
from air_recsys.evaluation.results.apart import MemoryWatch, Stopwatch, process_apart
from air_recsys.evaluation.systems import ask_ratings
from air_recsys.exceptions import DataError
from air_recsys.metrics.ranking import lists_of_scores
from air_recsys.models import GraphRanker, Recommender

_PAIRS = 500_000  # scored at a time
Call = Callable[..., Any]


class Question(NamedTuple):
    """What a trained system is asked for; no truth is in it."""

    pairs: tuple[np.ndarray, np.ndarray] | None  # ids of users and items, None where lists alone are compared
    users: np.ndarray  # positions of the users whose lists are asked for
    k: int


class Answer(NamedTuple):
    """The answer of a system.

    Attributes
    ----------
    predicted, deviation : ndarray, shape (n_pairs,), or None
        Ratings and their standard deviations, of systems that tell them.
    lists : ndarray of int, shape (n_users, k)
        Positions of items, -1 where no item is left.
    fit_seconds, answer_seconds : float
        Of the training, and of all answers.
    memory_gib : float
        What the training took beyond what the process held before.
    """

    predicted: np.ndarray | None
    deviation: np.ndarray | None
    lists: np.ndarray
    fit_seconds: float
    answer_seconds: float
    memory_gib: float


@contextmanager
def place_of_work(apart: bool, threads: int) -> Iterator[Call]:
    """Yield what calls a function with its arguments: in this process, or in a new one with so many threads."""
    if apart:
        with process_apart(threads) as call:
            yield call
    else:
        yield lambda function, *arguments: function(*arguments)


def answer(call: Call, train: Callable[[Interactions], Any], shown: Interactions, question: Question) -> Answer:
    """Train a system and, once that has ended, ask it.

    Parameters
    ----------
    call : callable
        As from `place_of_work`.
    train : callable
        ``train(shown)`` returns a model with `predict`, with `lists`, or with both.
    shown : Interactions
    question : Question

    Raises
    ------
    DataError
        If predicted ratings are not one finite number per pair.
    """
    fit_seconds, memory_gib = call(_train, train, shown)
    predicted, deviation, lists, answer_seconds = call(_ask, question)
    return Answer(predicted, deviation, lists, fit_seconds, answer_seconds, memory_gib)


class _Trained(threading.local):
    """Where a system works: its model and training data, between the training and the question."""

    held: tuple[Any, Interactions] | None = None


_trained = _Trained()


def _train(train: Callable[[Interactions], Any], shown: Interactions) -> tuple[float, float]:
    memory = MemoryWatch()
    with Stopwatch() as training:
        _trained.held = train(shown), shown
    return training.seconds, memory.peak_gib() - memory.before_gib


def _ask(question: Question) -> tuple[np.ndarray | None, np.ndarray | None, np.ndarray, float]:
    assert _trained.held is not None
    (model, shown), _trained.held = _trained.held, None
    predicted, deviation = None, None
    with Stopwatch() as answering:
        if question.pairs is not None and tells_ratings(model):
            predicted, deviation = ask_ratings(model, question.pairs)
            _check(predicted, question.pairs[0].size)
        lists = _lists(model, shown, question.users, min(question.k, shown.n_items))
    short = question.k - lists.shape[1]
    return predicted, deviation, np.pad(lists, ((0, 0), (0, short)), constant_values=-1), answering.seconds


def _check(predicted: np.ndarray, n_pairs: int) -> None:
    if predicted.shape != (n_pairs,) or not np.isfinite(predicted).all():
        n_finite = np.isfinite(predicted).sum()
        raise DataError(f"expected {n_pairs} finite ratings, found shape {predicted.shape}, {n_finite} finite")


def tells_ratings(model: Any) -> bool:
    """Return whether a model predicts ratings: scores of a `GraphRanker` are none."""
    return hasattr(model, "predict") and not isinstance(model, GraphRanker)


def _lists(model: Any, shown: Interactions, users: np.ndarray, k: int) -> np.ndarray:
    """Return the best unseen items of some users, (n_users, at most k): by the model's own lists, or by its scores."""
    if isinstance(model, Recommender):
        return Recommending(model).lists(users, k)
    if hasattr(model, "lists"):
        return np.asarray(model.lists(users, k))
    step = max(1, _PAIRS // shown.n_items)
    seen = shown.to_csr()

    def scores(some: np.ndarray) -> np.ndarray:
        user_ids, item_ids = np.repeat(shown.user_ids[some], shown.n_items), np.tile(shown.item_ids, some.size)
        return np.asarray(model.predict(user_ids, item_ids)).reshape(some.size, shown.n_items)

    blocks = [users[start : start + step] for start in range(0, users.size, step)]
    return np.concatenate([lists_of_scores(scores, seen, block, k) for block in blocks])
