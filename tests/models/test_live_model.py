"""A model that several threads use at once: readers see one state, no write is lost, and a save holds one state."""

from __future__ import annotations

import copy
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from model_cases import CPU
from sklearn.base import clone

from air_recsys import AIR, Interactions
from air_recsys.data.ids import IdIndex
from air_recsys.exceptions import DataError, NotFittedError, ParameterError
from air_recsys.models import BiasModel, GraphRanker
from air_recsys.models.state import FittedState, lock_of


def table(seed: int = 0, n_users: int = 30, n_items: int = 20) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows, columns = np.nonzero(rng.random((n_users, n_items)) < 0.6)
    names = [f"u{row}" for row in rows], [f"i{column}" for column in columns]
    return pd.DataFrame({"user": names[0], "item": names[1], "rating": rng.integers(1, 6, rows.size)})


def pickled(model: AIR) -> AIR:
    return pickle.loads(pickle.dumps(model))


def new(user: str, items: tuple[str, ...] = ("i0", "i1")) -> pd.DataFrame:
    return pd.DataFrame({"user": user, "item": items, "rating": [5, 1, *[3] * (len(items) - 2)]})


def model_of(**options: Any) -> AIR:
    return AIR.for_ratings(**CPU | {"n_factors": 2, "n_sweeps": 3, "pattern_features": 5} | options)


@pytest.fixture(scope="module")
def trained() -> AIR:
    return model_of().fit(table())


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


def test_every_file_that_is_saved_beside_a_partial_fit_loads_and_holds_one_state(model, tmp_path):
    done = threading.Event()

    def write() -> None:
        added(model, 0, 40)
        done.set()

    def save() -> None:
        number = 0
        while not done.is_set() or number == 0:
            number += 1
            loaded = AIR.load(model.save(tmp_path / f"{threading.get_ident()}.air"))
            users = loaded.interactions_.user_ids.tolist()
            assert users[30:] == [f"n{added}" for added in range(len(users) - 30)]
            assert np.isfinite(loaded.predict(users[-1], loaded.interactions_.item_ids)).all()

    in_threads([write, save, save])


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model.recommend(["u0", "n3", "n30"], 15),
        lambda model: model.predict(["u0", "n3"], ["i0", "new3"], unknown="mean", return_std=True),
        lambda model: (model.similar_users("u0"), model.similar_items("i0")),
        lambda model: model.fold_in(new("eve")),
        lambda model: model.explain("u0", "i0"),
        lambda model: copy.deepcopy(model).predict("u0", "i0"),
        lambda model: pickled(model).predict("u0", "i0"),
    ],
    ids=["recommend", "predict", "similar", "fold_in", "explain", "deepcopy", "pickle"],
)
def test_readers_beside_a_writer_get_answers(model, ask):
    done = threading.Event()

    def write() -> None:
        try:
            added(model, 0, 30)
        finally:
            done.set()

    def read() -> None:
        while not done.is_set():
            ask(model)

    in_threads([write, read, read])


def test_readers_see_the_old_model_until_a_refit_ends(model):
    old, seen, scores = model.interactions_, [], model.predict("u0", "i0")

    def look(record) -> None:
        answers: list[Any] = []
        in_threads([lambda: answers.append((model.interactions_, model.predict("u0", "i0")))])
        seen.extend(answers)

    model.fit(table(1), callbacks=[look])
    assert len(seen) == 3
    for data, score in seen:
        assert data is old
        np.testing.assert_array_equal(score, scores)
    assert model.interactions_ is not old


def test_a_partial_fit_beside_a_refit_goes_into_the_new_model(model):
    threads = []

    def write(record) -> None:
        if not threads:
            threads.append(threading.Thread(target=lambda: model.partial_fit(new("eve"))))
            threads[0].start()

    model.fit(table(1), callbacks=[write])
    threads[0].join()
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


def test_a_method_asks_for_the_state_once(model, monkeypatch, tmp_path):
    asked = []
    fitted = AIR._fitted
    monkeypatch.setattr(AIR, "_fitted", lambda self: asked.append(1) or fitted(self))
    calls = {
        "predict": lambda: model.predict(["u0", "eve"], "i0", unknown="mean"),
        "deviations": lambda: model.predict("u0", "i0", return_std=True),
        "intervals": lambda: model.predict_interval("u0", "i0"),
        "score": lambda: model.score(new("eve")),
        "recommend": lambda: model.recommend("u0", 3),
        "similar_users": lambda: model.similar_users("u0"),
        "similar_items": lambda: model.similar_items("i0"),
        "user_graph_": lambda: model.user_graph_,
        "fold_in": lambda: model.fold_in(new("eve")),
        "row_solver": model.row_solver,
        "explain": lambda: model.explain("u0", "i0"),
        "save": lambda: model.save(tmp_path / "model.air"),
        "knows_deviations_": lambda: model.knows_deviations_,
        "snapshots_": lambda: model.snapshots_,
    }
    for name, call in calls.items():
        asked.clear()
        call()
        assert len(asked) == 1, name


@pytest.mark.parametrize("ask", [lambda m: m.predict(0, 1), lambda m: m.recommend(0, 1), lambda m: m.similar_items(0)])
@pytest.mark.parametrize("make", [BiasModel, lambda: GraphRanker(settings={}, n_factors=2)])
def test_so_do_other_models(make, ask, monkeypatch):
    model, asked = make().fit(np.array([[5.0, 1.0, np.nan], [4.0, np.nan, 2.0]])), []
    fitted = type(model)._fitted
    monkeypatch.setattr(type(model), "_fitted", lambda self: asked.append(1) or fitted(self))
    ask(model)
    assert len(asked) == 1


def test_a_shallow_copy_holds_the_state_of_its_moment(model):
    before = copy.copy(model)
    model.partial_fit(new("eve"))
    assert before.interactions_.n_users == 30
    assert model.interactions_.n_users == 31
    assert lock_of(before) is not lock_of(model)


def test_what_threads_compute_at_the_same_time_is_computed_whole(trained):
    state: FittedState = copy.copy(trained._fitted())
    found: list[Any] = []
    in_threads([lambda: found.append(state.once("number", object)) for _ in range(8)])
    assert len(set(map(id, found))) == 1
    assert state.once("nothing", lambda: None) is None
    sums: list[Any] = []
    in_threads([lambda: sums.append(state.statistics.seen.sum()) for _ in range(8)])
    assert len(set(sums)) == 1


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickled])
def test_copies_and_pickles_have_what_was_learned_and_a_lock_of_their_own(model, again):
    model.recommend("u0", 3)
    lock = lock_of(model)
    with lock:
        copied: AIR = again(model)
    assert lock_of(copied) is not lock
    assert_same_scores(copied, model)
    assert_same_scores(copied.partial_fit(new("eve")), copy.copy(model).partial_fit(new("eve")))


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


def test_joblib_and_clone_work(model, tmp_path):
    model.partial_fit(new("eve"))
    joblib.dump(model, tmp_path / "model.joblib")
    assert_same_scores(joblib.load(tmp_path / "model.joblib"), model)
    fresh: Any = clone(model)
    with pytest.raises(NotFittedError):
        fresh.predict("u0", "i0")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_writes_though_a_thread_held_the_lock(model):
    held, end = threading.Event(), threading.Event()

    def hold() -> None:
        with lock_of(model):
            held.set()
            end.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:  # pragma: no cover
        with lock_of(model):
            os._exit(7)
    status = os.waitpid(child, 0)[1]
    end.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 7


def test_ids_that_were_pickled_are_looked_up_by_threads():
    ids = np.random.default_rng(0).permutation(200_000)
    for _ in range(3):
        index = pickle.loads(pickle.dumps(IdIndex(ids, "user")))
        found: list[np.ndarray] = []
        in_threads([lambda index=index, found=found: found.append(index.lookup(ids[-5:])) for _ in range(8)])
        assert all(places.tolist() == list(range(199_995, 200_000)) for places in found)


# -------------------------------------------------------------------- callbacks, files


@pytest.mark.parametrize("callbacks", [[5], 5, [print, "text"]])
def test_callbacks_that_cannot_be_called_are_refused_before_any_work(model, callbacks):
    before = model._fitted()
    for made in (model, BiasModel()):
        with pytest.raises(ParameterError, match="callbacks must be"):
            made.fit(table(1), callbacks=callbacks)
    assert model._fitted() is before


@pytest.mark.parametrize("path", [None, 5, b"model.air"])
def test_paths_that_are_none_are_refused(model, path):
    for act in (AIR.load, model.save):
        with pytest.raises(ParameterError, match="path must be a string or a Path"):
            act(path)
    if path is not None:
        with pytest.raises(ParameterError, match="checkpoint must be a string or a Path"):
            model.fit(table(), checkpoint=path)


def test_a_refit_to_the_same_data_answers_alike(model):
    assert_same_answers_of_tables(model.fit(table()), model_of().fit(table()))


def assert_same_answers_of_tables(first: AIR, second: AIR) -> None:
    data: Interactions = first.interactions_
    np.testing.assert_array_equal(first.predict("u0", data.item_ids), second.predict("u0", data.item_ids))
