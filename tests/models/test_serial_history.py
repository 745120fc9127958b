"""Threads on one model have a serial history, and one that has none is found out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attacks.live import (
    OPERATIONS,
    Call,
    Swap,
    WatchedAIR,
    new_model,
    perform,
    prepared,
    threads_on_a_model,
    wrong_calls,
)

from air_recsys.exceptions import ParameterError
from air_recsys.models import AIR

SEED = 0


def test_a_few_hundred_operations_have_a_serial_history():
    rows, notes = threads_on_a_model(240, 4, SEED)
    assert [row["operation"] for row in rows] == list(OPERATIONS)
    assert sum(row["operations"] for row in rows) == 240
    assert sum(row["errors"] + row["wrong"] for row in rows) == 0
    assert notes == []


def test_errors_are_counted_and_shown(monkeypatch: pytest.MonkeyPatch):
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no lists today")

    monkeypatch.setattr(AIR, "recommend", fail)
    rows, notes = threads_on_a_model(60, 2, SEED)
    errors = {row["operation"]: row["errors"] for row in rows}
    assert errors["recommend"] == sum(errors.values()) > 0
    assert "no lists today" in notes[0]


@pytest.mark.parametrize("numbers", [(0, 1), (1, 0)])
def test_nothing_to_do_is_refused(numbers: tuple[int, int]):
    with pytest.raises(ParameterError):
        threads_on_a_model(*numbers, SEED)


# -------------------------------------------------------------------- histories that are none


def history(names: list[str], place: Path) -> tuple[list[Call], list[Swap]]:
    """Operations of one thread: each takes one second."""
    model = prepared(new_model(WatchedAIR), SEED)
    vars(model)["swaps"] = swaps = []
    states, calls = [Swap(-np.inf, -np.inf, model._state)], []
    for number, name in enumerate(names):
        answer = perform(model, name, number, SEED, place)
        calls.append(Call(number, name, number + 0.1, number + 0.9, answer, None))
        states += [Swap(number + 0.4, number + 0.5, swap.state) for swap in swaps]
        swaps.clear()
    return calls, states


def wrong(calls: list[Call], swaps: list[Swap], place: Path) -> dict[int, str]:
    return wrong_calls(calls, swaps, prepared(new_model(AIR), SEED), SEED, place)


NAMES = ["predict", "partial_fit", "several attributes", "fit", "recommend", "partial_fit", "save and load"]


def test_a_serial_history_is_one(tmp_path: Path):
    assert wrong(*history(NAMES, tmp_path), tmp_path) == {}


def test_a_write_that_was_lost_is_found(tmp_path: Path):
    calls, swaps = history(NAMES, tmp_path)
    found = wrong(calls, swaps[:1] + swaps[2:], tmp_path)
    assert found[1] == "it was lost"
    assert "answer of none" in found[2]


def test_an_answer_of_a_state_that_was_not_current_is_found(tmp_path: Path):
    calls, swaps = history(NAMES, tmp_path)
    early = calls[2]._replace(start=0.1, end=0.2)
    found = wrong([*calls[:2], early, *calls[3:]], swaps, tmp_path)
    assert found == {2: "the answer of none of 1 states that were current"}
    long = calls[2]._replace(start=0.1, end=1.45)  # while the write takes effect
    assert wrong([*calls[:2], long, *calls[3:]], swaps, tmp_path) == {}


def test_an_answer_of_no_state_is_found(tmp_path: Path):
    calls, swaps = history(NAMES, tmp_path)
    assert calls[0].answer is not None
    mixed = calls[0]._replace(answer=[calls[0].answer[0] + 0.01], end=100.0)
    assert wrong([mixed, *calls[1:]], swaps, tmp_path) == {0: "the answer of none of 4 states that were current"}


def test_a_write_beside_its_time_and_one_that_leaves_something_else_are_found(tmp_path: Path):
    calls, swaps = history(NAMES, tmp_path)
    late = [*swaps[:1], swaps[1]._replace(before=1.95, after=1.96), *swaps[2:]]
    assert wrong(calls, late, tmp_path)[1] == "it took effect while it did not run"
    state = swaps[1].state
    assert state is not None
    shifted = type(state)(state.data, state.factors._replace(user_biases=state.factors.user_biases + 1))
    changed = [*swaps[:1], swaps[1]._replace(state=shifted), *swaps[2:]]
    assert wrong(calls, changed, tmp_path)[1] == "it left another state than it leaves in one thread"
