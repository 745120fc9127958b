"""One experiment: systems are trained on what a fold shows, and then asked for what it hides."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.elsewhere import MadeElsewhere
from air_recsys.evaluation.folds import Fold, NewUsersFold, given_rows, users_asked
from air_recsys.evaluation.lists import lists_of, lists_of_new_users
from air_recsys.evaluation.results.apart import MemoryWatch, ProcessEndedError, Stopwatch, process_apart
from air_recsys.evaluation.system import System
from air_recsys.exceptions import AirRecsysError, DataError
from air_recsys.metrics.checks import Csr
from air_recsys.models import GraphRanker, Recommender
from air_recsys.models.graph_ranker.inputs import interaction_pattern
from air_recsys.storage.progress import messages_beside, progress_bar

Pairs = tuple[Any, Any]  # ids of users and ids of items, one of each a pair
Call = Callable[..., Any]
Place = Callable[[], AbstractContextManager[Call]]


class LeakError(AirRecsysError):
    """A system would see what it is tested on."""


class Question(NamedTuple):
    """What a trained system is asked for; no truth is in it."""

    pairs: tuple[np.ndarray, ...] | None = None  # ids of users and of items, and times; None: lists alone
    users: np.ndarray | None = None  # positions of the users whose lists are asked for; None: ratings alone
    given: Csr | None = None  # 1 for each item given of new users, (b, n_items), in place of `users`
    k: int = 0  # length of the lists

    @property
    def n_lists(self) -> int:
        """The number of the users whose lists are asked for."""
        return 0 if self.users is None else self.users.size


class Answer(NamedTuple):
    """The answer of a system.

    Attributes
    ----------
    predicted, deviation : ndarray, shape (n_pairs,), or None
        Ratings and their standard deviations, of systems that tell them.
    """

    predicted: np.ndarray | None
    deviation: np.ndarray | None
    lists: np.ndarray | None  # (n_users, k), positions of items, -1 where none is left


class Costs(NamedTuple):
    """What a training cost, and how long the answers took."""

    seconds: float  # of the training alone: on the clock, and of all its threads together
    cpu_seconds: float
    before_gib: float  # memory of the process before the training, its data included, and at the peak of the training
    peak_gib: float
    answer_seconds: float  # of all answers

    def of_training(self) -> dict[str, float]:
        """The columns of a table: both times, and the memory at the peak."""
        return {"seconds": self.seconds, "cpu_seconds": self.cpu_seconds, "peak_gib": self.peak_gib}


def ask(model: Any, shown: Interactions, question: Question) -> Answer:
    """The ratings and the lists that a trained model is asked for."""
    predicted, deviation, lists = None, None, None
    made = isinstance(model, MadeElsewhere)
    # Scores of a `GraphRanker` are no ratings.
    rates = model.rated if made else hasattr(model, "predict") and not isinstance(model, GraphRanker)
    if question.pairs is not None and rates:
        predicted, deviation = ask_ratings(model, question.pairs)
        _check(predicted, len(question.pairs[0]))
    k = min(question.k, shown.n_items)
    if question.users is not None and not (made and rates):  # ratings of some pairs rank no whole catalogue
        lists = lists_of(model, shown, question.users, k)
    elif question.given is not None:
        lists = lists_of_new_users(model, question.given, k)
    if lists is not None:
        lists = np.pad(lists, ((0, 0), (0, question.k - lists.shape[1])), constant_values=-1)
    return Answer(predicted, deviation, lists)


def ask_ratings(model: Any, asked: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray | None]:
    """Predicted ratings, shape (n_asked,), and their standard deviations where a model samples.

    A model that knows of time is asked for the times of the pairs.
    """
    how = way_of_asking(model, asked)
    if not getattr(model, "knows_deviations_", False):
        return np.asarray(model.predict(*asked[:2], **how)), None
    mean, deviation = model.predict(*asked[:2], return_std=True, **how)
    return np.asarray(mean), np.asarray(deviation)


def way_of_asking(model: Any, asked: tuple[Any, ...]) -> dict[str, Any]:
    """The arguments beside the ids of pairs: their times, which come after the ids, for a model that knows of time.

    A model of this library answers pairs with unknown ids without a warning.
    """
    knows_time = getattr(model, "drift_", None) is not None or getattr(model, "dates", False)
    times = {"timestamps": asked[2]} if knows_time and len(asked) == 3 else {}
    return times | ({"unknown": "mean"} if isinstance(model, Recommender) else {})


def _check(predicted: np.ndarray, n_pairs: int) -> None:
    if predicted.shape != (n_pairs,) or not np.isfinite(predicted).all():
        n_finite = np.isfinite(predicted).sum()
        raise DataError(f"expected {n_pairs} finite ratings, found shape {predicted.shape}, {n_finite} finite")


@dataclass(frozen=True, eq=False)
class Task:
    """What is asked on a fold, and the truth that the systems never see.

    Attributes
    ----------
    relevant : csr_array, shape (n_asked_users, n_items), or None
        1 for a relevant test item of the users whose lists are asked for.
    ask : callable
        ``ask(model, shown, question)`` returns the answer, in the process of the system.
    """

    fold: Fold | NewUsersFold
    question: Question
    relevant: Csr | None = None
    threshold: float | None = None  # the least rating of a relevant item, None where all test items are relevant
    ask: Callable[[Any, Any, Question], Any] = ask

    @classmethod
    def of_ratings(cls, fold: Fold, *, timed: bool = False, ask: Callable[[Any, Any, Question], Any] = ask) -> Self:
        """The test pairs of a fold, with `timed` at their times."""
        times = (fold.test.timestamps,) if timed and fold.test.timestamps is not None else ()
        return cls(fold, Question((*rated_pairs(fold.test), *times)), ask=ask)

    @classmethod
    def of_lists(cls, fold: Fold | NewUsersFold, k: int, ask: Callable[[Any, Any, Question], Any] = ask) -> Self:
        """Lists of k items of all users with test items, all of which are relevant."""
        users = users_asked(fold)
        question = Question(users=users, k=k) if isinstance(fold, Fold) else Question(given=given_rows(fold), k=k)
        return cls(fold, question, interaction_pattern(fold.test)[users], ask=ask)

    def sealed(self) -> Self:
        """The same task; raises `LeakError` where a pair that is tested is among those shown."""
        check_sealed(rated_pairs(self.fold.train), rated_pairs(self.fold.test))
        return self


class Trial(NamedTuple):
    """A system on a task: its answer, and the costs."""

    system: str
    task: Task
    answer: Any
    costs: Costs


def here() -> AbstractContextManager[Call]:
    """A place of work within this process."""
    return nullcontext(lambda function, *arguments: function(*arguments))


def trials(
    systems: Mapping[str, System],
    tasks: Sequence[Task],
    *,
    place: Place = here,
    each_apart: bool = False,
    title: str = "evaluate",
    progress: bool = True,
    failed: dict[str, Exception] | None = None,
) -> Iterator[Trial]:
    """Train every system on every task and, once that has ended, ask it.

    The question reaches a system after the training has ended, and the truth never does: fitting, tuning and stopping
    have nothing but what is shown.

    Parameters
    ----------
    place : callable
        Returns the context of a place of work, whose value calls a function with its arguments: `here`, or a new
        process, as from `process_place`.
    each_apart : bool
        Whether each training has a place of its own, and not each system one for all tasks.
    title : str
        Of the progress bar.
    progress : bool
        Whether it is shown.
    failed : dict, optional
        Takes systems that raise an error, which are left out then; without it the error is raised.
    """
    with progress_bar(progress, total=len(systems) * len(tasks), unit="fit", desc=title) as bar, messages_beside(bar):
        for name, system in systems.items():
            bar.set_postfix_str(name)
            rounds = [[task] for task in tasks] if each_apart else [tasks]
            try:
                yield from [trial for some in rounds for trial in _worked(name, system, some, place, bar.update)]
            except Exception as error:  # of another library: the other systems go on
                if failed is None and isinstance(error, ProcessEndedError):
                    raise ProcessEndedError(f"{name}: {error}") from error
                if failed is None:
                    raise
                bar.update(len(tasks) - bar.n % len(tasks))
                failed[name] = error


def task_by_task(found: Iterable[Trial], tasks: Sequence[Task]) -> list[Trial]:
    """Trials with those of each task together, in the order of the tasks."""
    every = list(found)
    return [trial for task in tasks for trial in every if trial.task is task]


def process_place(threads: int) -> Place:
    """A place of work in a new process with so many threads."""
    return partial(process_apart, threads)


def _worked(
    name: str, system: System, tasks: Sequence[Task], place: Place, done: Callable[[], Any]
) -> Iterator[Trial]:
    with (place if system.elsewhere is None else here)() as call:
        for task in tasks:
            spent = call(_train, system.train, task.fold.train)
            answer, seconds = call(_ask, task.ask, task.question)
            costs = Costs(*spent, answer_seconds=seconds)
            yield Trial(name, task, answer, costs if system.elsewhere is None else Costs(*[np.nan] * len(costs)))
            done()


def told_of_elsewhere(systems: Mapping[str, System], tasks: Sequence[Task]) -> list[str]:
    """A line for each doubt about answers made elsewhere; `DataError` where they are not what a task asks for."""
    lines, question = [], tasks[0].question
    for name, made in ((name, system.elsewhere) for name, system in systems.items()):
        if made is None:
            continue
        if (question.pairs if made.rated else question.users) is None:
            wanted = "lists, with a column rank or score" if made.rated else "ratings, with a column rating"
            raise DataError(f"{name}: expected {wanted}, found {made!r}")
        if len(tasks) > 1 and not made.rated:
            raise DataError(f"{name}: expected a single training part for lists made elsewhere, found {len(tasks)}")
        for task in tasks:
            test, fitted = task.fold.test, made.fit(task.fold.train)
            if made.rated:
                fitted.predict(*rated_pairs(test))
            elif task.question.users is not None:
                lines += [f"{name}: {doubt}" for doubt in fitted.doubts(test, task.question.users, question.k)]
    return lines


class _Trained(threading.local):
    """Where a system works: its model and training data, between the training and the question."""

    held: tuple[Any, Interactions] | None = None


_trained = _Trained()


def _train(train: Callable[[Interactions], Any], shown: Interactions) -> tuple[float, float, float, float]:
    memory = MemoryWatch()
    with Stopwatch() as training:
        _trained.held = train(shown), shown
    return training.seconds, training.cpu_seconds, memory.before_gib, memory.peak_gib()


def _ask(ask: Callable[[Any, Any, Question], Any], question: Question) -> tuple[Any, float]:
    assert _trained.held is not None
    (model, shown), _trained.held = _trained.held, None
    with Stopwatch() as answering:
        answer = ask(model, shown, question)
    return answer, answering.seconds


def rated_pairs(data: Interactions) -> Pairs:
    """The user ids and the item ids of interactions."""
    return data.user_ids[data.user_index], data.item_ids[data.item_index]


def check_sealed(shown: Pairs, asked: Pairs) -> None:
    """Raise `LeakError` where a pair of `asked` is among those of `shown`."""
    trained, tested = (pd.MultiIndex.from_arrays([np.asarray(ids) for ids in pairs]) for pairs in (shown, asked))
    leaked = tested.to_numpy()[tested.isin(trained)]
    if len(leaked):
        raise LeakError(f"{len(leaked)} of {len(tested)} tested pairs are among the training data, first {leaked[0]}")
