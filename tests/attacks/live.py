"""A model that several threads read and write at once: whether one thread after another would see the same."""

from __future__ import annotations

import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from air_recsys.models import AIR
from air_recsys.nn.devices import torch_threads
from air_recsys.storage.validation import check_integer
from attacks.live_history import Call, Swap, wrong_calls
from attacks.live_operations import OPERATIONS, new_model, perform, prepared

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
