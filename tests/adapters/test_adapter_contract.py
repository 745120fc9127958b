"""What all adapters keep to beside the contracts of their hosts, whose tests are in the other modules here."""

from __future__ import annotations

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

pytest.importorskip("cornac")
pytest.importorskip("implicit")
pytest.importorskip("surprise")

import adapter_cases
from adapter_cases import ADAPTERS, N_ITEMS, N_USERS, ratings, triples
from cornac.data import Dataset
from surprise import Dataset as SurpriseDataset
from surprise import Reader

every_adapter = pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=ADAPTERS)


def trained(name, seed=0):
    adapter = ADAPTERS[name]
    return adapter.fit(adapter.make(seed), ratings())


# Cornac leaves it to the interpreter to close the files that it opens, and so does Surprise.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore:unclosed file:ResourceWarning")
def test_every_adapter_scores_alike_in_another_process(tmp_path):
    models = {name: trained(name) for name in ADAPTERS}
    for name, model in models.items():
        ADAPTERS[name].save(model, tmp_path / name)
    subprocess.run([sys.executable, str(Path(adapter_cases.__file__)), str(tmp_path)], check=True)
    found = np.load(tmp_path / "scores.npz")
    for name, model in models.items():
        np.testing.assert_array_equal(found[name], ADAPTERS[name].scores(model, ratings()), err_msg=name)


@every_adapter
def test_eight_threads_get_the_scores_of_one(adapter):
    model = adapter.fit(adapter.make(0), ratings())
    expected = adapter.scores(adapter.fit(adapter.make(0), ratings()), ratings())
    together = threading.Barrier(8)

    def ask(_: int) -> np.ndarray:
        together.wait()
        return adapter.scores(model, ratings())

    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(ask, range(8)):
            np.testing.assert_array_equal(found, expected)


@every_adapter
def test_a_permutation_of_users_and_items_is_no_more_than_another_seed(adapter):
    rng = np.random.default_rng(0)
    order = np.ix_(rng.permutation(N_USERS), rng.permutation(N_ITEMS))
    seeds = [adapter.scores(adapter.fit(adapter.make(seed), ratings()), ratings()) for seed in range(4)]
    found = adapter.scores(adapter.fit(adapter.make(0), ratings()[order]), ratings()[order])
    distance = np.abs(found - np.mean(seeds, axis=0)[order]).mean()
    assert distance < 3 * np.std(seeds, axis=0).mean() + 0.01


# -------------------------------------------------------------------- what the hosts hand over


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_surprise_may_have_read_typed_columns(backend):
    table = pd.DataFrame(triples(ratings()), columns=["user", "item", "rating"]).convert_dtypes(dtype_backend=backend)
    data = SurpriseDataset.load_from_df(table.astype({"rating": "Float64"}), Reader(rating_scale=(1, 5)))
    adapter = ADAPTERS["surprise"]
    model = adapter.make(0).fit(data.build_full_trainset())
    np.testing.assert_array_equal(adapter.scores(model, ratings()), adapter.scores(trained("surprise"), ratings()))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float64])
def test_likes_of_implicit_may_be_read_only_and_in_steps(dtype):
    adapter, model = ADAPTERS["implicit"], ADAPTERS["implicit"].make(0)
    plain = sp.csr_matrix(np.nan_to_num(ratings()) > 3, dtype=np.float32)
    steps = [np.repeat(part, 2)[::2] for part in (plain.data.astype(dtype), plain.indices, plain.indptr)]
    for part in steps:
        part.setflags(write=False)
    given = sp.csr_matrix(plain.shape, dtype=dtype)
    given.data, given.indices, given.indptr = steps
    model.fit(given, show_progress=False)
    expected = adapter.make(0)
    expected.fit(plain, show_progress=False)
    np.testing.assert_array_equal(adapter.scores(model, ratings()), adapter.scores(expected, ratings()))


def test_a_dataset_of_cornac_may_be_read_only():
    adapter, data = ADAPTERS["cornac"], Dataset.from_uir(triples(ratings()))
    for part in data.uir_tuple:
        part.setflags(write=False)
    found = adapter.scores(adapter.make(0).fit(data), ratings())
    np.testing.assert_array_equal(found, adapter.scores(trained("cornac"), ratings()))


@pytest.mark.parametrize("dtype", ["Float64", "double[pyarrow]", ">f8"])
def test_tables_of_scikit_learn_may_be_read_only_views_and_typed(dtype):
    adapter, wide = ADAPTERS["sklearn"], np.repeat(np.repeat(ratings(), 2, axis=0), 2, axis=1)
    wide.setflags(write=False)
    view = np.asfortranarray(wide)[::2, ::2]
    expected = adapter.scores(trained("sklearn"), ratings())
    np.testing.assert_array_equal(adapter.scores(adapter.make(0).fit(view), view), expected)
    typed: Any = view.astype(dtype) if dtype == ">f8" else pd.DataFrame(view).astype(dtype)
    np.testing.assert_array_equal(adapter.scores(adapter.make(0).fit(typed), typed), expected)
