"""A model that several threads read and write at once: whether one thread after another would see the same.

The number of an operation decides what it asks or writes.
"""

from __future__ import annotations

import bisect
import copy
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from air_recsys.models import AIR
from air_recsys.models.state import FittedState
from air_recsys.storage.threads import torch_threads
from air_recsys.storage.validation import check_integer

Answer = list[np.ndarray]
Model = TypeVar("Model", bound=AIR)

_N_USERS, _N_ITEMS, _N_RATINGS = 60, 40, 600
_ASKED = 8  # users of a question


class Operation(NamedTuple):
    """An operation: how often it comes, and what it does; a write returns nothing."""

    share: float
    act: Callable[[AIR, int, np.random.Generator, Path], Answer]
    writes: bool = False


def new_model(kind: type[Model]) -> Model:
    """Return the model of the threads, not fitted."""
    return kind.for_ratings(n_factors=2, n_sweeps=4, pattern_features=5, random_state=0, device="cpu")


def prepared(model: Model, seed: int) -> Model:
    """Return a model, fitted as it is at the start."""
    return model.fit(_ratings(-1, _generator(seed, -1)))


def perform(model: AIR, name: str, number: int, seed: int, place: Path) -> Answer:
    """Do an operation and return its answer."""
    return OPERATIONS[name].act(model, number, _generator(seed, number), place)


def mark_of(number: int) -> str:
    """Return the user by which the state after a write is known."""
    return f"n{number}"


def _generator(seed: int, number: int) -> np.random.Generator:
    return np.random.default_rng([seed, number + 1])


def _ratings(number: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return ratings of all users and items; the one by whom a state is known has rated the first two items."""
    drawn = rng.choice(_N_USERS * _N_ITEMS, _N_RATINGS, replace=False)
    each = np.arange(_N_USERS) * _N_ITEMS + np.arange(_N_USERS) % _N_ITEMS  # so that none is without any
    pairs = np.union1d(drawn, each)
    users = [f"u{pair // _N_ITEMS}" for pair in pairs] + [mark_of(number)] * 2
    items = [f"i{pair % _N_ITEMS}" for pair in pairs] + ["i0", "i1"]
    # Both ends of the scale are there whatever the draw.
    return pd.DataFrame({"user": users, "item": items, "rating": [*rng.integers(1, 6, pairs.size).tolist(), 1, 5]})


def _users(number: int, rng: np.random.Generator) -> list[str]:
    """Return users of the start, and some that a write may have brought in by now."""
    known = [f"u{user}" for user in rng.integers(_N_USERS, size=_ASKED // 2)]
    return known + [mark_of(max(-1, number - int(back))) for back in rng.integers(80, size=_ASKED // 2)]


def _items(rng: np.random.Generator) -> list[str]:
    return [f"i{item}" for item in rng.choice(_N_ITEMS, _ASKED, replace=False)]


def _predict(model: AIR, number: int, rng: np.random.Generator, place: Path) -> Answer:
    return [model.predict(_users(number, rng), _items(rng), unknown="mean")]


def _deviations(model: AIR, number: int, rng: np.random.Generator, place: Path) -> Answer:
    return list(model.predict(_users(number, rng), _items(rng), unknown="mean", return_std=True))


def _recommend(model: AIR, number: int, rng: np.random.Generator, place: Path) -> Answer:
    table = model.recommend(_users(number, rng), 5)
    return [table[name].to_numpy() for name in ("user", "item", "score", "source")]


def _similar(model: AIR, number: int, rng: np.random.Generator, place: Path) -> Answer:
    table = model.similar_items(_items(rng)[0], 5)
    return [table["item"].to_numpy(), table["weight"].to_numpy()]


def _fold_in(model: AIR, number: int, rng: np.random.Generator, place: Path) -> Answer:
    folded = model.fold_in(_new_ratings(number, rng, []))
    return [folded.user_factors_, folded.user_biases_]


def _explain(model: AIR, number: int, rng: np.random.Generator, place: Path) -> Answer:
    told = model.explain(f"u{rng.integers(_N_USERS)}", _items(rng)[0])
    return [np.array([told.score, told.total()]), told.items["contribution"].to_numpy()]


def _several(model: AIR, number: int, rng: np.random.Generator, place: Path) -> Answer:
    """Several attributes of one state, by a shallow copy."""
    now = copy.copy(model)
    return [now.interactions_.user_ids, now.user_factors_, now.item_biases_, np.array([now.n_iter_])]


def _save(model: AIR, number: int, rng: np.random.Generator, place: Path) -> Answer:
    path = place / f"{number}.air"
    loaded = AIR.load(model.save(path))
    path.unlink()
    scores = loaded.predict(_users(number, rng), _items(rng), unknown="mean")
    return [loaded.interactions_.user_ids, loaded.user_factors_, np.array([loaded.n_iter_]), scores]


def _partial_fit(model: AIR, number: int, rng: np.random.Generator, place: Path) -> Answer:
    model.partial_fit(_new_ratings(number, rng, [f"new{number}"] if number % 4 == 0 else []))
    return []


def _fit(model: AIR, number: int, rng: np.random.Generator, place: Path) -> Answer:
    last = int(rng.integers(2, 5))
    model.fit(_ratings(number, rng), callbacks=[lambda record: record.epoch >= last])
    return []


def _new_ratings(number: int, rng: np.random.Generator, new_items: list[str]) -> pd.DataFrame:
    items = _items(rng)[:5] + new_items
    return pd.DataFrame({"user": mark_of(number), "item": items, "rating": rng.integers(1, 6, len(items))})


OPERATIONS: dict[str, Operation] = {
    "predict": Operation(0.3, _predict),
    "predict with deviations": Operation(0.1, _deviations),
    "recommend": Operation(0.2, _recommend),
    "similar_items": Operation(0.08, _similar),
    "fold_in": Operation(0.08, _fold_in),
    "explain": Operation(0.05, _explain),
    "several attributes": Operation(0.05, _several),
    "save and load": Operation(0.03, _save),
    "partial_fit": Operation(0.1, _partial_fit, writes=True),
    "fit": Operation(0.01, _fit, writes=True),
}


# -------------------------------------------------------------------- the history

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

    The calls are in the order of their numbers, the swaps in theirs, that of the start first, and the model is in the
    state of the start; `place` is a folder for files.
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
    models, known = [copy.copy(model)], set(_users_of(swaps[0]))
    for swap in swaps[1:]:
        users = set(_users_of(swap))
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


def _users_of(swap: Swap) -> list[str]:
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


# -------------------------------------------------------------------- the threads

_SHOWN = 5  # errors and wrong answers that are kept
_SWITCH = 1e-5  # seconds after which another thread may run; by default 5e-3


@dataclass(eq=False, repr=False)
class WatchedAIR(AIR):
    """A model that notes each state it is given, with the moments before and after."""

    def __setattr__(self, name: str, value: Any) -> None:
        before = time.perf_counter()
        super().__setattr__(name, value)
        if name == "_state" and "swaps" in vars(self):
            vars(self)["swaps"].append(Swap(before, time.perf_counter(), value))


def threads_on_a_model(n_operations: int, n_threads: int, seed: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Let threads read and write one model, and compare every answer with those of a history in one thread.

    The writes, in the order in which they took effect, are done again by one thread. A write has to be there once, to
    have taken effect while it ran, and to have left what it leaves there. A read has to give the answer of a state
    that was current at some moment while it ran: so the history is linearizable. A row an operation: how many, errors
    (an operation raised) and wrong (an answer of no state, a write that was lost or left something else).
    """
    check_integer("n_operations", n_operations, minimum=1)
    check_integer("n_threads", n_threads, minimum=1)
    chances = np.array([each.share for each in OPERATIONS.values()])
    drawn = np.random.default_rng(seed).choice(list(OPERATIONS), n_operations, p=chances / chances.sum()).tolist()
    with tempfile.TemporaryDirectory() as folder, torch_threads(1), _many_switches():
        place = Path(folder)
        model = prepared(new_model(WatchedAIR), seed)
        vars(model)["swaps"] = [Swap(-np.inf, -np.inf, model._state)]
        calls = _run(model, drawn, n_threads, seed, place)
        wrong = wrong_calls(calls, vars(model)["swaps"], prepared(new_model(AIR), seed), seed, place)
    rows = [_row(name, [call for call in calls if call.name == name], wrong) for name in OPERATIONS]
    errors = {call.number: call.error for call in calls if call.error is not None}
    shown = sorted((errors | wrong).items())[:_SHOWN]
    return rows, [f"operation {number}, {drawn[number]}: {text}" for number, text in shown]


def _row(name: str, calls: list[Call], wrong: dict[int, str]) -> dict[str, Any]:
    errors = sum(call.error is not None for call in calls)
    return {
        "operation": name,
        "operations": len(calls),
        "errors": errors,
        "wrong": sum(call.number in wrong for call in calls),
    }


def _run(model: AIR, names: list[str], n_threads: int, seed: int, place: Path) -> list[Call]:
    """Do all operations, dealt out to the threads; return them in the order of their numbers."""
    calls: list[Call] = []
    together = threading.Barrier(n_threads)

    def work(first: int) -> None:
        together.wait()
        for number in range(first, len(names), n_threads):
            calls.append(_called(model, names[number], number, seed, place))

    threads = [threading.Thread(target=work, args=(first,)) for first in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(calls, key=lambda call: call.number)


def _called(model: AIR, name: str, number: int, seed: int, place: Path) -> Call:
    answer, error, start = None, None, time.perf_counter()
    try:
        answer = perform(model, name, number, seed, place)
    except Exception:
        error = traceback.format_exc(limit=-3)
    return Call(number, name, start, time.perf_counter(), answer, error)


@contextmanager
def _many_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
