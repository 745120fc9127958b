"""Whether the calls of several threads have a serial history; see `attacks.live`."""

from __future__ import annotations

import bisect
import copy
from pathlib import Path
from typing import NamedTuple

import numpy as np

from air_recsys.models import AIR
from air_recsys.models.state import FittedState
from attacks.live_operations import OPERATIONS, Answer, mark_of, perform

_ROUNDING = 1e-6  # relative; a state that is no part of the history is much further off


class Call(NamedTuple):
    """An operation of a thread: when it ran, and what it returned or raised."""

    number: int
    name: str
    start: float
    end: float
    answer: Answer | None
    error: str | None


class Swap(NamedTuple):
    """A state that a model was given, and the moments before and after."""

    before: float
    after: float
    state: FittedState | None


def wrong_calls(calls: list[Call], swaps: list[Swap], model: AIR, seed: int, place: Path) -> dict[int, str]:
    """Return what is wrong with calls, by their numbers.

    Parameters
    ----------
    calls : list of Call
        In the order of their numbers.
    swaps : list of Swap
        All states of the model of the threads, in their order; the first is that of the start.
    model : AIR
        In the state of the start.
    seed : int
    place : Path
        A folder for files.
    """
    wrong, models = _replayed(calls, swaps, model, seed, place)
    befores, afters = [swap.before for swap in swaps], [swap.after for swap in swaps]
    for call in calls:
        if OPERATIONS[call.name].writes or call.answer is None:
            continue
        # A state is current from before its own swap, at the earliest, to after the next one.
        first = bisect.bisect_left(afters, call.start, lo=1) - 1
        last = bisect.bisect_right(befores, call.end)
        current = models[first:last]
        if not any(_same(call.answer, perform(each, call.name, call.number, seed, place)) for each in current):
            wrong[call.number] = f"the answer of none of {len(current)} states that were current"
    return wrong


def _replayed(
    calls: list[Call], swaps: list[Swap], model: AIR, seed: int, place: Path
) -> tuple[dict[int, str], list[AIR]]:
    """Do the writes once more in the order of their swaps; return what is wrong, and the models of the states."""
    writes = {mark_of(call.number): call for call in calls if OPERATIONS[call.name].writes and call.error is None}
    wrong: dict[int, str] = {}
    models, known = [copy.copy(model)], set(_users(swaps[0]))
    for swap in swaps[1:]:
        users = set(_users(swap))
        new = [mark for mark in users - known if mark in writes]
        known = users
        call = writes.pop(new[0]) if len(new) == 1 else None
        if call is None:
            models.append(models[-1])  # a write that raised or was there before: its call is among the lost ones
            continue
        perform(model, call.name, call.number, seed, place)
        models.append(copy.copy(model))
        if not call.start <= swap.before <= swap.after <= call.end:
            wrong[call.number] = "it took effect while it did not run"
        elif not _same(_contents(swap.state), _contents(model._state)):
            wrong[call.number] = "it left another state than it leaves in one thread"
    return wrong | {call.number: "it was lost" for call in writes.values()}, models


def _users(swap: Swap) -> list[str]:
    assert swap.state is not None
    return swap.state.data.user_ids.tolist()


def _contents(state: FittedState | None) -> Answer:
    assert state is not None
    data = state.data
    return [data.user_ids, data.item_ids, data.user_index, data.item_index, data.ratings, *state.factors.arrays()]


def _same(first: Answer, second: Answer) -> bool:
    return len(first) == len(second) and all(map(_same_array, first, second))


def _same_array(first: np.ndarray, second: np.ndarray) -> bool:
    if first.shape != second.shape:
        return False
    if first.dtype.kind != "f":
        return bool((first == second).all())
    size = max(1.0, float(np.abs(second).max(initial=0)))
    return bool((np.abs(first - second) <= _ROUNDING * size).all())
