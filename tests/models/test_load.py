"""Under load: thousands of calls from many threads, and any sequence of calls that people may make."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from model_cases import CPU

from air_recsys import AIR
from air_recsys.exceptions import AirRecsysError, DataError, ModelFileError, ParameterError, UnknownIdError

N_USERS, N_ITEMS = 60, 40
N_CALLS = 2_000
STATUS = Path("/proc/self/status")
GROWTH = 4  # MiB; a leak of 2 KiB a call would be 4
SMALL: dict[str, Any] = {"n_factors": 3, **CPU}
STEPS = {"adam": {"n_epochs": 3}, "variational": {"n_sweeps": 3}}


def ratings() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < 0.3)
    return pd.DataFrame({"user": users, "item": items, "rating": rng.integers(1, 6, users.size)})


def columns(table: pd.DataFrame) -> list[np.ndarray]:
    return [table[name].to_numpy() for name in table.columns]


def answers(model: AIR, number: int) -> list[np.ndarray]:
    """What a model answers to questions of that number, seven calls."""
    users, folded = np.arange(number, number + 7), model.fold_in(NEW[[number]])
    return [
        model.predict(users, users[::-1]),
        model.predict([*users, "nobody"], 3, unknown="mean"),
        *columns(model.recommend(users, 5)),
        *columns(model.recommend(users[:1], 3, exclude_seen=False)),
        folded.user_factors_,
        *columns(folded.recommend(0, 5)),
        *columns(model.similar_users(number, 5)),
        *columns(model.similar_items(number, 5)),
    ]


NEW = sp.random_array((5, N_ITEMS), density=0.3, format="csr", rng=np.random.default_rng(1))
NEW.data = 1 + 4 * NEW.data  # on the scale


def resident() -> float:
    """Return the memory of this process, MiB."""
    gc.collect()
    found = re.search(r"VmRSS:\s*(\d+) kB", STATUS.read_text())
    assert found is not None
    return int(found[1]) / 1024


@pytest.mark.skipif(not STATUS.exists(), reason="the memory of a process is read as Linux tells it")
@pytest.mark.parametrize("solver", ["adam", "variational"])
def test_thousands_of_calls_from_eight_threads_are_those_of_one_and_leave_no_memory_behind(solver, tmp_path):
    model = AIR.for_ratings(solver=solver, **STEPS[solver], **SMALL).fit(ratings())
    alone = AIR.load(model.save(tmp_path / "model.air"))
    expected = [answers(alone, number) for number in range(5)]

    def right(number: int) -> bool:
        found = answers(model, number % 5)
        return all(np.array_equal(one, other) for one, other in zip(found, expected[number % 5], strict=True))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(right, range(30)))  # the caches are empty at first
        before = resident()
        assert all(pool.map(right, range(N_CALLS // 7)))
        assert resident() - before < GROWTH


# -------------------------------------------------------------------- any sequence of calls

ids = st.integers(0, 7)
scores = st.integers(1, 5).map(float)
tables = st.dictionaries(st.tuples(ids, ids), scores, min_size=1, max_size=12)
ENDS = {(0, 0): 1.0, (1, 1): 5.0}  # no two models of ratings that are all equal


def as_frame(known: dict[tuple[int, int], float]) -> pd.DataFrame:
    users, items = zip(*known, strict=True)
    return pd.DataFrame({"user": users, "item": items, "rating": list(known.values())})


class Life(RuleBasedStateMachine):
    """A model from fit to fit: what it knows is what it was told."""

    @initialize(solver=st.sampled_from(["adam", "variational"]))
    def begin(self, solver: str) -> None:
        self.folder = TemporaryDirectory()
        self.model = AIR.for_ratings(solver=solver, graph_neighbors=2, **STEPS[solver], **SMALL)
        self.told: dict[tuple[int, int], float] = {}

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()

    @property
    def users(self) -> list[int]:
        return sorted({user for user, _ in self.told})

    @property
    def items(self) -> list[int]:
        return sorted({item for _, item in self.told})

    def all_scores(self) -> np.ndarray:
        return self.model.predict(np.repeat(self.users, len(self.items)), np.tile(self.items, len(self.users)))

    @rule(table=tables)
    def fit(self, table: dict[tuple[int, int], float]) -> None:
        self.told = table | ENDS
        assert self.model.fit(as_frame(self.told)) is self.model

    @precondition(lambda self: self.told)
    @rule(table=tables)
    def partial_fit(self, table: dict[tuple[int, int], float]) -> None:
        before = self.users, self.items
        self.told = self.told | table
        assert self.model.partial_fit(as_frame(table)) is self.model
        assert set(before[0]) <= set(self.model.interactions_.user_ids)
        assert set(before[1]) <= set(self.model.interactions_.item_ids)

    @precondition(lambda self: self.told)
    @rule()
    def save_and_load(self) -> None:
        before, lists = self.all_scores(), self.model.recommend(self.users, 2)
        self.model = AIR.load(self.model.save(Path(self.folder.name) / "model.air"))
        np.testing.assert_array_equal(self.all_scores(), before)
        pd.testing.assert_frame_equal(self.model.recommend(self.users, 2), lists)

    @precondition(lambda self: self.told)
    @rule(user=ids, n=st.integers(1, 4))
    def recommend(self, user: int, n: int) -> None:
        found = self.model.recommend(user, min(n, len(self.items)))
        seen = {item for known, item in self.told if known == user}
        assert set(found["source"]) <= {"model" if user in self.users else "popular"}
        if user in self.users:
            assert not set(found["item"]) & seen
            assert found["score"].is_monotonic_decreasing
            np.testing.assert_allclose(found["score"], self.model.predict(user, found["item"]), rtol=1e-5)

    @precondition(lambda self: self.told)
    @rule(user=ids, item=ids)
    def predict(self, user: int, item: int) -> None:
        asked = [user, user, "nobody"], [item, "nothing", item]
        assert np.isfinite(self.model.predict(*asked, unknown="mean")).all()
        if user not in self.users:
            with pytest.raises(UnknownIdError):
                self.model.predict(user, item, unknown="error")

    @precondition(lambda self: self.told)
    @rule()
    def similar(self) -> None:
        for found, known in (
            (self.model.similar_users(self.users[0], 3), self.users),
            (self.model.similar_items(self.items[0], 3), self.items),
        ):
            assert set(found.iloc[:, 0]) <= set(known[1:])
            assert np.isfinite(found["weight"]).all()

    @precondition(lambda self: self.told)
    @rule()
    def calls_that_fail(self) -> None:
        before, parameters = self.all_scores(), self.model.get_params()
        failing: list[tuple[type[AirRecsysError], Callable[[], Any]]] = [
            (DataError, lambda: self.model.fit(np.full((2, 2), np.nan))),
            (DataError, lambda: self.model.partial_fit(pd.DataFrame({"user": [1], "item": [1], "rating": [np.nan]}))),
            (ParameterError, lambda: self.model.recommend(self.users, 0)),
            (UnknownIdError, lambda: self.model.fold_in(as_frame({(99, 99): 1.0}))),
            (ModelFileError, lambda: self.model.save(Path(self.folder.name) / "nowhere" / "model.air")),
        ]
        for error, call in failing:
            with pytest.raises(error):
                call()
        np.testing.assert_array_equal(self.all_scores(), before)
        assert self.model.get_params() == parameters

    @invariant()
    def knows_what_it_was_told(self) -> None:
        if not getattr(self, "told", None):
            return
        data = self.model.interactions_
        assert sorted(data.user_ids.tolist()) == self.users
        assert sorted(data.item_ids.tolist()) == self.items
        pairs = zip(data.user_ids[data.user_index].tolist(), data.item_ids[data.item_index].tolist(), strict=True)
        assert dict(zip(pairs, data.ratings.tolist(), strict=True)) == self.told
        assert len(self.model.user_factors_) == len(self.users)
        assert np.isfinite(self.all_scores()).all()


Life.TestCase.settings = settings(
    max_examples=20, stateful_step_count=12, suppress_health_check=[HealthCheck.too_slow]
)
TestLife = Life.TestCase
