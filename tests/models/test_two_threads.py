"""A state machine over two threads that read and write one model, in orders that hypothesis makes up."""

from __future__ import annotations

import copy
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from model_cases import CPU

from air_recsys import AIR
from air_recsys.exceptions import DataError

THREADS = st.integers(0, 1)


def ratings(n_users: int = 8, n_items: int = 6) -> pd.DataFrame:
    users, items = np.divmod(np.arange(n_users * n_items), n_items)
    names = [f"u{user}" for user in users], [f"i{item}" for item in items]
    return pd.DataFrame({"user": names[0], "item": names[1], "rating": (users * items) % 5 + 1})


TRAINED = AIR.for_ratings(n_factors=2, n_sweeps=2, pattern_features=2, **CPU).fit(ratings())
BEGIN = frozenset(TRAINED.interactions_.user_ids.tolist())


class Asked(NamedTuple):
    """A question under way: what was certainly there when it was asked."""

    future: Future[frozenset[str]]
    settled: frozenset[str]


class TwoThreads(RuleBasedStateMachine):
    """Users are added and never removed: a reader sees all that were there before it began, and none but those asked
    for.
    """

    def __init__(self) -> None:
        super().__init__()
        self.model = copy.copy(TRAINED)
        self.folder = tempfile.TemporaryDirectory()
        self.workers = [ThreadPoolExecutor(1), ThreadPoolExecutor(1)]
        self.writes: dict[str, Future[Any]] = {}
        self.asked: list[Asked] = []

    def teardown(self) -> None:
        self.settle()
        for worker in self.workers:
            worker.shutdown()
        self.folder.cleanup()

    def settled(self) -> frozenset[str]:
        return BEGIN | {user for user, write in self.writes.items() if write.done()}

    def ask(self, thread: int, question: Any) -> None:
        settled = self.settled()
        self.asked.append(Asked(self.workers[thread].submit(question), settled))

    @rule(thread=THREADS, with_item=st.booleans())
    def add_a_user(self, thread: int, with_item: bool) -> None:
        user = f"n{len(self.writes)}"
        items = ["i0", "i1", *([f"of {user}"] if with_item else [])]
        new = pd.DataFrame({"user": user, "item": items, "rating": [5, 1, 3][: len(items)]})
        self.writes[user] = self.workers[thread].submit(self.model.partial_fit, new)

    @rule(thread=THREADS)
    def label_the_graph(self, thread: int) -> None:
        titles = pd.DataFrame({"user": ["u0"], "name": ["Ann"]})

        def label() -> frozenset[str]:
            graph = self.model.user_graph_
            assert graph is not None
            try:
                self.model.user_graph_ = graph.with_attributes(titles, label="name")
            except DataError:  # a user has come meanwhile
                return frozenset(self.model.interactions_.user_ids.tolist())
            return frozenset(graph.ids.tolist())

        self.ask(thread, label)

    @rule(thread=THREADS)
    def read_several_attributes(self, thread: int) -> None:
        def read() -> frozenset[str]:
            now = copy.copy(self.model)
            ids = now.interactions_.user_ids
            assert now.user_graph_ is not None
            assert len(ids) == len(now.user_factors_) == len(now.user_biases_) == len(now.user_graph_)
            return frozenset(ids.tolist())

        self.ask(thread, read)

    @rule(thread=THREADS)
    def recommend(self, thread: int) -> None:
        users = [*BEGIN, *(f"n{number}" for number in range(len(self.writes)))]

        def read() -> frozenset[str]:
            lists = self.model.recommend(users, 3, exclude_seen=False)
            return frozenset(lists.loc[lists["source"] == "model", "user"])

        self.ask(thread, read)

    @rule(thread=THREADS)
    def save_and_load(self, thread: int) -> None:
        path = Path(self.folder.name) / f"{len(self.asked)}.air"

        def read() -> frozenset[str]:
            loaded = AIR.load(self.model.save(path))
            assert np.isfinite(loaded.predict(loaded.interactions_.user_ids, "i0")).all()
            return frozenset(loaded.interactions_.user_ids.tolist())

        self.ask(thread, read)

    @precondition(lambda self: self.writes or self.asked)
    @rule()
    def settle(self) -> None:
        asked_for = BEGIN | self.writes.keys()
        for write in self.writes.values():
            write.result(timeout=60)
        for future, settled in self.asked:
            assert settled <= future.result(timeout=60) <= asked_for
        self.asked.clear()
        assert set(self.model.interactions_.user_ids.tolist()) == asked_for

    @invariant()
    def what_is_done_is_there(self) -> None:
        settled = self.settled()
        assert settled <= set(self.model.interactions_.user_ids.tolist())


TwoThreads.TestCase.settings = settings(
    max_examples=15, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestTwoThreads = TwoThreads.TestCase
