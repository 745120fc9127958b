"""Every model over data as people have them: read-only, in steps, typed by pandas, repeated, moved about."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from model_cases import (
    ITEMS,
    MODELS,
    N_ITEMS,
    N_USERS,
    USERS,
    all_scores,
    assert_same_answers,
    dense,
    every_model,
    fitted,
    frame,
)

from air_recsys import Interactions
from air_recsys.exceptions import DataError
from air_recsys.models import Recommender

PAIRS = np.repeat(np.arange(N_USERS), N_ITEMS), np.tile(np.arange(N_ITEMS), N_USERS)


def read_only_view() -> np.ndarray:
    wide = np.zeros((2 * N_ITEMS, 2 * N_USERS))
    wide[::2, ::2] = dense().T
    wide.setflags(write=False)
    return wide.T[::2, ::2]


def read_only_csr() -> sp.csr_array:
    rows, columns = np.nonzero(~np.isnan(dense()))
    matrix = sp.csr_array((dense()[rows, columns].astype(np.int8), (rows, columns)), shape=(N_USERS, N_ITEMS))
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.setflags(write=False)
    return matrix


@every_model
def test_layouts_and_types_change_nothing(make):
    expected = make().fit(dense()).predict(*PAIRS)
    for data in (read_only_view(), read_only_csr()):
        np.testing.assert_array_equal(make().fit(data).predict(*PAIRS), expected)
    typed = frame().convert_dtypes(dtype_backend="pyarrow").astype({"item": "category"})
    assert_same_answers(make().fit(typed), fitted(make))


QUESTIONS: dict[str, Any] = {
    "string": pd.array(USERS[:3], dtype="string"),
    "pyarrow": pd.Series(USERS[:3], dtype="string[pyarrow]"),
    "category": pd.Series(USERS[:3], dtype="category"),
    "index": pd.Index(USERS[:3]),
    "objects": np.array(USERS[:3], dtype=object),
    "read-only": np.array(USERS[:3] * 2)[:3],
    "steps": np.repeat(np.array(USERS[:3]), 2)[::2],
    "tuple": tuple(USERS[:3]),
}
QUESTIONS["read-only"].setflags(write=False)


@pytest.mark.parametrize("form", QUESTIONS)
def test_questions_may_be_of_any_type(form):
    for name in ("AIR-variational", "GraphRanker", "BiasModel"):
        model = fitted(MODELS[name])
        expected = model.predict(USERS[:3], ITEMS[2])
        np.testing.assert_array_equal(model.predict(QUESTIONS[form], ITEMS[2]), expected)
        pd.testing.assert_frame_equal(model.recommend(QUESTIONS[form], 3), model.recommend(USERS[:3], 3))


@pytest.mark.parametrize("kind", ["int8", "uint16", "Int64", "int64[pyarrow]", "float64"])
def test_integers_of_any_type_ask_for_the_same(kind):
    model = MODELS["BiasModel"]().fit(dense())
    asked, expected = pd.Series([3, 1, 99]).astype(kind), model.predict([3, 1, 99], 2, unknown="mean")
    np.testing.assert_array_equal(model.predict(asked, 2, unknown="mean"), expected)
    np.testing.assert_array_equal(model.predict(asked.to_numpy(), 2, unknown="mean"), expected)


@every_model
def test_duplicates_are_refused_and_with_a_rule_are_the_ratings_that_it_says(make):
    twice = pd.concat([frame(), frame().iloc[[5]].assign(rating=1.0)])
    pair = frame().iloc[5]
    model = fitted(make)
    with pytest.raises(DataError, match=re.escape(f"user {pair['user']!r} and item {pair['item']!r}")):
        model.fit(twice)
    last = frame()
    last.loc[5, "rating"] = 1.0
    expected = make().fit(last)
    model.fit(Interactions.from_frame(twice, duplicates="last"))
    np.testing.assert_allclose(all_scores(model), all_scores(expected), rtol=1e-5, atol=1e-6)  # the order is another


# -------------------------------------------------------------------- permutations

# Patches of a picture are tied to their places. Trainings from a permuted start: tests/nn/test_permutation.py.


def permuted() -> tuple[Interactions, Interactions, np.ndarray, np.ndarray]:
    """The same ratings, no two of them equal, in two orders of users and items, and the second order."""
    rng = np.random.default_rng(0)
    users, items = rng.permutation(N_USERS), rng.permutation(N_ITEMS)
    array = dense() + rng.random((N_USERS, N_ITEMS))
    moved = Interactions.from_dense(array[np.ix_(users, items)], users, items)
    return Interactions.from_dense(array), moved, users, items


@pytest.mark.parametrize("name", ["IterativeSVD", "GraphRanker"])  # the others: test_model_contract.py, pictures
def test_permuting_users_and_items_permutes_scores_and_graphs(name):
    plain, moved, users, items = permuted()
    first, second = (MODELS[name]().fit(data) for data in (plain, moved))
    np.testing.assert_allclose(second.predict(*PAIRS), first.predict(*PAIRS), rtol=1e-5, atol=1e-6)
    for one, other, order in (
        (first.user_graph_, second.user_graph_, users),
        (first.item_graph_, second.item_graph_, items),
    ):
        if one is not None and other is not None:
            found, expected = other.to_scipy().toarray(), one.to_scipy().toarray()
            np.testing.assert_allclose(found, expected[np.ix_(order, order)], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["AIR-ratings", "AIR-variational", "AIR-langevin"])
def test_where_the_start_is_random_a_permutation_is_no_more_than_another_seed(name):
    plain, moved, *_ = permuted()
    seeds = [MODELS[name](random_state=seed).fit(plain).predict(*PAIRS) for seed in range(4)]
    spread = np.std(seeds, axis=0).mean()
    found = MODELS[name](random_state=0).fit(moved).predict(*PAIRS)
    assert np.abs(found - np.mean(seeds, axis=0)).mean() < 3 * spread + 0.01


# -------------------------------------------------------------------- elsewhere

PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from air_recsys.models import Recommender
folder, users, items = Path(sys.argv[1]), sys.argv[2].split(), sys.argv[3].split()
for path in folder.glob("*.air"):
    model = Recommender.load(path)
    lists = [model.recommend(users, 4), model.similar_users(users[1], 3), model.similar_items(items[1], 3)]
    scores = model.predict(np.repeat(users, len(items)), np.tile(items, len(users)))
    tables = {f"table_{number}": found.to_numpy(dtype=str) for number, found in enumerate(lists)}
    np.savez(path.with_suffix(".npz"), scores=scores, **tables)
"""


def answers(model: Recommender) -> list[np.ndarray]:
    """What PROGRAM writes."""
    lists = [model.recommend(USERS, 4), model.similar_users(USERS[1], 3), model.similar_items(ITEMS[1], 3)]
    return [all_scores(model), *(found.to_numpy(dtype=str) for found in lists)]


def test_every_model_answers_alike_in_another_process(tmp_path):
    models = {name: fitted(make) for name, make in MODELS.items()}
    for name, model in models.items():
        model.save(tmp_path / f"{name}.air")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), " ".join(USERS), " ".join(ITEMS)]
    subprocess.run(command, check=True)
    for name, model in models.items():
        found = np.load(tmp_path / f"{name}.npz")
        for part, expected in zip(("scores", "table_0", "table_1", "table_2"), answers(model), strict=True):
            np.testing.assert_array_equal(found[part], expected, err_msg=name)


@every_model
def test_eight_threads_get_the_answers_of_one(make, tmp_path: Path):
    model = fitted(make)
    expected = answers(Recommender.load(model.save(tmp_path / "model.air")))
    together = threading.Barrier(8)

    def ask(_: int) -> list[np.ndarray]:
        together.wait()  # all find the caches empty
        return answers(model)

    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(ask, range(8)):
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)
