"""A model that several threads use at once: readers see one state, no write is lost, and a save holds one state."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
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
from model_cases import CPU
from sklearn.base import clone

from air_recsys import AIR
from air_recsys.data.ids import IdIndex
from air_recsys.exceptions import DataError, NotFittedError, ParameterError
from air_recsys.models import BiasModel
from air_recsys.models.state import FittedState, lock_of
from air_recsys.storage.threads import torch_threads


def table(seed: int = 0, n_users: int = 30, n_items: int = 20) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows, columns = np.nonzero(rng.random((n_users, n_items)) < 0.6)
    names = [f"u{row}" for row in rows], [f"i{column}" for column in columns]
    return pd.DataFrame({"user": names[0], "item": names[1], "rating": rng.integers(1, 6, rows.size)})


def pickled(model: AIR) -> AIR:
    return pickle.loads(pickle.dumps(model))


def new(user: str, items: tuple[str, ...] = ("i0", "i1")) -> pd.DataFrame:
    return pd.DataFrame({"user": user, "item": items, "rating": [5, 1, *[3] * (len(items) - 2)]})


@pytest.fixture(scope="module")
def trained() -> AIR:
    return AIR.for_ratings(**CPU, n_factors=2, n_sweeps=3, pattern_features=5).fit(table())


@pytest.fixture
def model(trained: AIR) -> AIR:
    return copy.copy(trained)


@pytest.fixture(autouse=True)
def many_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(works: list[Callable[[], Any]]) -> None:
    """Run each in a thread of its own, all at once, and raise the first error."""
    errors: list[BaseException] = []
    together = threading.Barrier(len(works))

    def guarded(work: Callable[[], Any]) -> None:
        together.wait()
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def added(model: AIR, first: int, count: int) -> None:
    for number in range(first, first + count):
        model.partial_fit(new(f"n{number}", ("i0", "i1", f"new{number}")))


# -------------------------------------------------------------------- the reproductions


@pytest.mark.parametrize("options", [{}, {"solver": "adam", "n_epochs": 20}], ids=["variational", "adam"])
def test_of_forty_users_that_eight_threads_add_all_are_kept(options):
    made = AIR.for_ratings(**CPU, n_factors=2, **options).fit(table())
    in_threads([lambda first=first: added(made, 5 * first, 5) for first in range(8)])
    assert {f"n{number}" for number in range(40)} <= set(made.interactions_.user_ids)
    assert {f"new{number}" for number in range(40)} <= set(made.interactions_.item_ids)
    assert len(made.user_factors_) == made.interactions_.n_users == 70


def test_readers_beside_a_writer_get_answers_and_files_that_hold_one_state(model, tmp_path):
    done = threading.Event()

    def write() -> None:
        try:
            added(model, 0, 40)
        finally:
            done.set()

    def save() -> None:
        loaded = AIR.load(model.save(tmp_path / f"{threading.get_ident()}.air"))
        users = loaded.interactions_.user_ids.tolist()
        assert users[30:] == [f"n{added}" for added in range(len(users) - 30)]
        assert np.isfinite(loaded.predict(users[-1], loaded.interactions_.item_ids)).all()

    def read(*asks: Callable[[], Any]) -> None:
        while not done.is_set():
            for ask in asks:
                ask()

    # What else they may ask: `test_operations_of_several_threads_have_a_serial_history`.
    of_copies = (lambda: copy.deepcopy(model).predict("u0", "i0"), lambda: pickled(model).predict("u0", "i0"))
    in_threads(
        [write, lambda: read(save), lambda: read(save, lambda: model.similar_users("u0")), lambda: read(*of_copies)]
    )


def test_readers_see_the_old_model_until_a_refit_ends_and_a_write_beside_it_goes_into_the_new_one(model):
    old, seen, threads, scores = model.interactions_, [], [], model.predict("u0", "i0")

    def look(record) -> None:
        in_threads([lambda: seen.append((model.interactions_, model.predict("u0", "i0")))])
        if not threads:
            threads.append(threading.Thread(target=lambda: model.partial_fit(new("eve"))))
            threads[0].start()

    model.fit(table(1), callbacks=[look])
    threads[0].join()
    assert len(seen) == 3
    for data, score in seen:
        assert data is old
        np.testing.assert_array_equal(score, scores)
    assert set(model.interactions_.user_ids) == {*table(1)["user"], "eve"}


def test_a_new_graph_beside_new_ratings_loses_none(model):
    titles = pd.DataFrame({"item": ["i0"], "title": ["Plums"]})

    def label() -> None:
        for _ in range(20):
            try:
                model.item_graph_ = model.item_graph_.with_attributes(titles, label="title")
            except DataError:  # an item has come meanwhile
                continue

    in_threads([lambda: added(model, 0, 15), label])
    assert model.interactions_.n_users == 45
    assert len(model.item_graph_) == model.interactions_.n_items == 35


# -------------------------------------------------------------------- one state


def test_what_threads_compute_at_the_same_time_is_computed_whole(trained):
    state: FittedState = copy.copy(trained._fitted())
    found: list[Any] = []
    in_threads([lambda: found.append(state.once("number", object)) for _ in range(8)])
    assert len(set(map(id, found))) == 1
    assert state.once("nothing", lambda: None) is None
    sums: list[Any] = []
    in_threads([lambda: sums.append(state.statistics.seen.sum()) for _ in range(8)])
    assert len(set(sums)) == 1


def through_joblib(model: AIR, path: Path) -> AIR:
    joblib.dump(model, path)
    return joblib.load(path)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickled, through_joblib])
def test_copies_and_pickles_have_what_was_learned_and_a_lock_of_their_own(model, again, tmp_path):
    model.partial_fit(new("joe"))
    model.recommend("u0", 3)
    with lock_of(model):
        copied: AIR = again(model, tmp_path / "model.joblib") if again is through_joblib else again(model)
    assert lock_of(copied) is not lock_of(model)
    assert_same_scores(copied, model)
    before = copy.copy(model)
    assert_same_scores(copied.partial_fit(new("eve")), model.partial_fit(new("eve")))
    assert (before.interactions_.n_users, model.interactions_.n_users) == (31, 32)  # the state of its moment
    fresh: Any = clone(model)
    with pytest.raises(NotFittedError):
        fresh.predict("u0", "i0")


def assert_same_scores(first: AIR, second: AIR) -> None:
    assert first.interactions_.user_ids.tolist() == second.interactions_.user_ids.tolist()
    np.testing.assert_array_equal(first.user_factors_, second.user_factors_)
    assert (first.n_iter_, first.stopped_by_, first.device_) == (second.n_iter_, second.stopped_by_, second.device_)


def test_a_copy_that_a_callback_makes_is_one_of_what_was_learned_before(model):
    copies = []
    model.fit(table(1), callbacks=[lambda record: copies.append(copy.deepcopy(model))])
    assert copies[0].interactions_.user_ids.tolist() == sorted(set(table()["user"]))
    with pytest.raises(NotFittedError, match="current_factors is for callbacks"):
        copies[0].current_factors()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_writes_and_computes_though_it_lacks_the_threads_of_its_parent(model):
    held, end = threading.Event(), threading.Event()

    def hold() -> None:
        with lock_of(model):
            held.set()
            end.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    with torch_threads(2):
        torch.ones(1000, 1000).exp()
        child = os.fork()
        if child == 0:  # pragma: no cover
            signal.alarm(20)
            torch.ones(1000, 1000).exp()
            with lock_of(model):
                os._exit(7)
    status = os.waitpid(child, 0)[1]
    end.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 7


@pytest.mark.parametrize("solver", ["adam", "variational"])
def test_the_default_device_of_torch_does_not_matter(solver):
    first, second = (AIR.for_ratings(solver=solver, n_factors=2, random_state=0, device="cpu") for _ in range(2))
    first.fit(table())
    with torch.device("meta"):
        np.testing.assert_array_equal(second.fit(table()).item_factors_, first.item_factors_)


def test_ids_that_were_pickled_are_looked_up_by_threads():
    ids = np.random.default_rng(0).permutation(200_000)
    for _ in range(3):
        index = pickle.loads(pickle.dumps(IdIndex(ids, "user")))
        found: list[np.ndarray] = []
        in_threads([lambda index=index, found=found: found.append(index.lookup(ids[-5:])) for _ in range(8)])
        assert all(places.tolist() == list(range(199_995, 200_000)) for places in found)


def test_callbacks_and_paths_that_are_none_are_refused_before_any_work(model):
    before = model.interactions_
    for callbacks in ([5], 5, [print, "text"]):
        for made in (model, BiasModel()):
            with pytest.raises(ParameterError, match="callbacks must be"):
                made.fit(table(1), callbacks=callbacks)
    for path in (None, 5, b"model.air"):
        for act in (AIR.load, model.save):
            with pytest.raises(ParameterError, match="path must be a string or a Path"):
                act(path)
        if path is not None:
            with pytest.raises(ParameterError, match="checkpoint must be a string or a Path"):
                model.fit(table(), checkpoint=path)
    with pytest.raises(ParameterError, match="every must be"):
        model.fit(table(), checkpoint="run.ckpt", every=0)
    assert model.interactions_ is before


# -------------------------------------------------------------------- a serial history, and histories that are none

SEED = 0


@pytest.mark.parametrize(("n_operations", "n_threads", "seed"), [(240, 4, 0), (60, 2, 1), (60, 2, 2), (60, 3, 3)])
def test_operations_of_several_threads_have_a_serial_history(n_operations, n_threads, seed):
    rows, notes = threads_on_a_model(n_operations, n_threads, seed)
    assert [row["operation"] for row in rows] == list(OPERATIONS)
    assert sum(row["operations"] for row in rows) == n_operations
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
    for numbers in ((0, 1), (1, 0)):
        with pytest.raises(ParameterError):
            threads_on_a_model(*numbers, SEED)


NAMES = ["predict", "partial_fit", "several attributes", "fit", "recommend", "partial_fit", "save and load"]


def history(place: Path) -> tuple[list[Call], list[Swap]]:
    """Operations of one thread: each takes one second."""
    model = prepared(new_model(WatchedAIR), SEED)
    vars(model)["swaps"] = swaps = []
    states, calls = [Swap(-np.inf, -np.inf, model._state)], []
    for number, name in enumerate(NAMES):
        answer = perform(model, name, number, SEED, place)
        calls.append(Call(number, name, number + 0.1, number + 0.9, answer, None))
        states += [Swap(number + 0.4, number + 0.5, swap.state) for swap in swaps]
        swaps.clear()
    return calls, states


def test_writes_that_were_lost_and_answers_of_no_state_that_was_current_are_found(tmp_path: Path):
    calls, swaps = history(tmp_path)

    def wrong(changed: dict[int, Call], swaps: list[Swap] = swaps) -> dict[int, str]:
        told = [changed.get(number, call) for number, call in enumerate(calls)]
        return wrong_calls(told, swaps, prepared(new_model(AIR), SEED), SEED, tmp_path)

    assert wrong({}) == {}
    lost = wrong({}, swaps[:1] + swaps[2:])
    assert lost[1] == "it was lost"
    assert "answer of none" in lost[2]
    early = calls[2]._replace(start=0.1, end=0.2)
    assert wrong({2: early}) == {2: "the answer of none of 1 states that were current"}
    while_the_write_takes_effect = calls[2]._replace(start=0.1, end=1.45)
    assert wrong({2: while_the_write_takes_effect}) == {}
    assert calls[0].answer is not None
    mixed = calls[0]._replace(answer=[calls[0].answer[0] + 0.01], end=100.0)
    assert wrong({0: mixed}) == {0: "the answer of none of 4 states that were current"}
    late = [*swaps[:1], swaps[1]._replace(before=1.95, after=1.96), *swaps[2:]]
    assert wrong({}, late)[1] == "it took effect while it did not run"
    state = swaps[1].state
    assert state is not None
    shifted = type(state)(state.data, state.factors._replace(user_biases=state.factors.user_biases + 1))
    other = [*swaps[:1], swaps[1]._replace(state=shifted), *swaps[2:]]
    assert wrong({}, other)[1] == "it left another state than it leaves in one thread"
