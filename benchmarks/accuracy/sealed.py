"""Tests without leaks: the process of a system holds neither the tested pairs while it trains, nor ever the truth."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.results.apart import MemoryWatch, ProcessEndedError, Stopwatch, process_apart
from air_recsys.exceptions import AirRecsysError

Pairs = tuple[Any, Any]  # ids of users and ids of items, one of each a pair


class LeakError(AirRecsysError):
    """A system would see what it is tested on."""


class Sealed(NamedTuple):
    """The answer of a system, and the costs of its training.

    Attributes
    ----------
    answer : object
        The value that `ask` returned.
    seconds, cpu_seconds : float
        Of the training alone: on the clock, and of all its threads together.
    before_gib, peak_gib : float
        Memory of the process before the training, its data included, and at the peak of the training.
    """

    answer: Any
    seconds: float
    cpu_seconds: float
    before_gib: float
    peak_gib: float

    def costs(self) -> dict[str, float]:
        """Return the columns of a table: both times, and the memory at the peak."""
        return {"seconds": self.seconds, "cpu_seconds": self.cpu_seconds, "peak_gib": self.peak_gib}


def rated_pairs(shown: Any) -> Pairs:
    """Return the user ids and the item ids of `Interactions`."""
    if not isinstance(shown, Interactions):
        raise LeakError(f"expected Interactions or pairs_of_shown, found {type(shown).__name__}")
    return shown.user_ids[shown.user_index], shown.item_ids[shown.item_index]


def bare_pairs(asked: Any) -> Pairs:
    """Return `asked`, which has to be user ids and item ids and nothing else."""
    if not isinstance(asked, tuple) or len(asked) != 2:
        raise LeakError(f"expected (user ids, item ids) without ratings, or pairs_of_asked, found {_form(asked)}")
    return asked


def timed_pairs(asked: Any) -> Pairs:
    """Return the ids of `asked`, which has to be user ids, item ids and times, and nothing else."""
    if not isinstance(asked, tuple) or len(asked) != 3:
        raise LeakError(f"expected (user ids, item ids, times) without ratings, found {_form(asked)}")
    return asked[:2]


def _form(asked: Any) -> str:
    return f"a tuple of {len(asked)}" if isinstance(asked, tuple) else type(asked).__name__


def run_sealed(
    train: Callable[[Any], Any],
    ask: Callable[[Any, Any], Any],
    shown: Any,
    asked: Any,
    *,
    pairs_of_shown: Callable[[Any], Pairs] = rated_pairs,
    pairs_of_asked: Callable[[Any], Pairs] = bare_pairs,
    threads: int = 1,
) -> Sealed:
    """Train a system in a new process and then ask it, there, for what it was not shown.

    The question reaches the process after the training has ended, and the truth never does: fitting, tuning and
    stopping have nothing but `shown`.

    Parameters
    ----------
    train : callable
        ``train(shown)`` returns a model. Found by its module and name, as pickle wants it (a `functools.partial` is
        welcome), and so is `ask`; the model itself stays in the process.
    ask : callable
        ``ask(model, asked)`` returns what comes back as the answer.
    shown : Interactions or object
        The training data.
    asked : tuple of (user ids, item ids), or object
        The pairs to predict, without their truth.
    pairs_of_shown, pairs_of_asked : callable
        Tell, here and not in that process, which (user, item) pairs the data show and which are tested; needed where
        `shown` is not `Interactions` or `asked` is not a tuple of two arrays of ids. For rankings, where only users
        are asked for, `pairs_of_asked` is to return the test pairs.

    Raises
    ------
    LeakError
        Before any work, where a tested pair is among those shown.
    ProcessEndedError
        Where the process of the system ends without an answer.

    Examples
    --------
    >>> from air_recsys.models import GlobalMean
    >>> shown = Interactions.from_dense([[5, 4], [3, np.nan]])
    >>> sealed = run_sealed(GlobalMean().fit, score_pairs, shown, (np.array([1]), np.array([1])))
    >>> sealed.answer
    array([4.])
    >>> run_sealed(GlobalMean().fit, score_pairs, shown, (np.array([0]), np.array([1])))
    Traceback (most recent call last):
    benchmarks.accuracy.sealed.LeakError: 1 of 1 tested pairs are among the training data, first (0, 1)
    """
    check_sealed(pairs_of_shown(shown), pairs_of_asked(asked))
    with process_apart(threads) as call:
        try:
            spent = call(_train, train, shown)
            return Sealed(call(_ask, ask, asked), *spent)
        except ProcessEndedError as error:
            raise ProcessEndedError(f"{_name(train)}: {error}") from error


def check_sealed(shown: Pairs, asked: Pairs) -> None:
    """Raise `LeakError` where a pair of `asked` is among those of `shown`."""
    trained, tested = (pd.MultiIndex.from_arrays([np.asarray(ids) for ids in pairs]) for pairs in (shown, asked))
    leaked = tested.to_numpy()[tested.isin(trained)]
    if len(leaked):
        raise LeakError(f"{len(leaked)} of {len(tested)} tested pairs are among the training data, first {leaked[0]}")


def score_pairs(model: Any, asked: Pairs) -> np.ndarray:
    """Return ``model.predict`` of the pairs asked for, shape (n_asked,)."""
    return np.asarray(model.predict(*asked))


_models: list[Any] = []  # of the sealed process: the model between its training and the question


def _train(train: Callable[[Any], Any], shown: Any) -> tuple[float, float, float, float]:
    memory = MemoryWatch()
    with Stopwatch() as training:
        _models[:] = [train(shown)]
    return training.seconds, training.cpu_seconds, memory.before_gib, memory.peak_gib()


def _ask(ask: Callable[[Any, Any], Any], asked: Any) -> Any:
    return ask(_models[0], asked)


def _name(function: Callable[..., Any]) -> str:
    if isinstance(function, partial):
        return f"{_name(function.func)}({', '.join(map(repr, function.args))})"
    return getattr(function, "__qualname__", type(function).__name__)
