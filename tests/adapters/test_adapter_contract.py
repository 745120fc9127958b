"""What all adapters keep to beside the contracts of their hosts, whose tests are in the other modules here.

Run as a program, the file reads saved adapters of a folder and writes their scores into a file there.
"""

import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from cornac.data import Dataset
from surprise import Dataset as SurpriseDataset
from surprise import Reader, dump

from air_recsys.adapters.cornac import CornacAIR
from air_recsys.adapters.implicit import ImplicitAIR
from air_recsys.adapters.sklearn import AIRImputer
from air_recsys.adapters.surprise import SurpriseAIR

N_USERS, N_ITEMS = 14, 9
SMALL: dict[str, Any] = {"device": "cpu"}


def ratings() -> np.ndarray:
    """Ratings 1..5 of two tastes with NaN for missing; every user and item has some."""
    rng = np.random.default_rng(0)
    taste = 3 + 1.5 * np.outer(np.sign(np.arange(N_USERS) % 2 - 0.5), np.sign(np.arange(N_ITEMS) % 2 - 0.5))
    array = np.where(rng.random(taste.shape) < 0.7, (taste + rng.normal(size=taste.shape)).round().clip(1, 5), np.nan)
    array[:, 0] = array[0] = 3.0
    return array


def triples(array: np.ndarray) -> list[tuple[str, str, float]]:
    users, items = np.nonzero(~np.isnan(array))
    return [(f"u{user}", f"i{item}", array[user, item]) for user, item in zip(users, items, strict=True)]


def by_id(array: np.ndarray, predict: Callable[[str, str], float]) -> np.ndarray:
    return np.array([[predict(f"u{user}", f"i{item}") for item in range(N_ITEMS)] for user in range(len(array))])


class Adapter(NamedTuple):
    """How to make one of a seed, to train it on an array, and to read all of its scores, (n_users, n_items)."""

    make: Callable[[int], Any]
    fit: Callable[[Any, np.ndarray], Any]
    scores: Callable[[Any, np.ndarray], np.ndarray]
    save: Callable[[Any, Path], object]
    load: Callable[[Path], Any]


def fit_surprise(model: SurpriseAIR, array: np.ndarray) -> SurpriseAIR:
    table = pd.DataFrame(triples(array), columns=["user", "item", "rating"])
    return model.fit(SurpriseDataset.load_from_df(table, Reader(rating_scale=(1, 5))).build_full_trainset())


def fit_implicit(model: ImplicitAIR, array: np.ndarray) -> ImplicitAIR:
    model.fit(sp.csr_matrix(np.nan_to_num(array)), show_progress=False)
    return model


def implicit_scores(model: ImplicitAIR, array: np.ndarray) -> np.ndarray:
    users = np.arange(N_USERS)
    lists, found = model.recommend(users, sp.csr_matrix((N_USERS, N_ITEMS)), N=N_ITEMS)
    scores = np.empty((N_USERS, N_ITEMS))
    scores[users[:, None], lists] = found
    return scores


def cornac_scores(model: CornacAIR, array: np.ndarray) -> np.ndarray:
    users: dict[Any, int]
    items: dict[Any, int]
    users, items = dict(model.uid_map), dict(model.iid_map)  # type: ignore[arg-type]
    return by_id(array, lambda user, item: float(model.score(users[user], items[item])))


ADAPTERS = {
    "surprise": Adapter(
        lambda seed: SurpriseAIR(n_factors=2, graph_neighbors=3, random_state=seed, **SMALL),
        fit_surprise,
        lambda model, array: by_id(array, lambda user, item: model.predict(user, item).est),
        lambda model, path: dump.dump(path, algo=model),
        lambda path: dump.load(path)[1],
    ),
    "implicit": Adapter(
        lambda seed: ImplicitAIR(
            factors=3,
            iterations=2,
            steps_per_iteration=10,
            graph_neighbors=3,
            use_gpu=False,
            num_threads=1,
            random_state=seed,
        ),
        fit_implicit,
        implicit_scores,
        lambda model, path: model.save(str(path)),
        lambda path: ImplicitAIR.load(str(path)),
    ),
    "cornac": Adapter(
        lambda seed: CornacAIR(n_factors=2, graph_neighbors=3, seed=seed, **SMALL),
        lambda model, array: model.fit(Dataset.from_uir(triples(array))),
        cornac_scores,
        lambda model, path: path.write_text(model.save(str(path.with_suffix(".folder")))),
        lambda path: CornacAIR.load(path.read_text()),
    ),
    "sklearn": Adapter(
        lambda seed: AIRImputer(random_state=seed, n_epochs=20, **SMALL),
        lambda model, array: model.fit(array),
        lambda model, array: model.transform(array),
        lambda model, path: path.write_bytes(pickle.dumps(model)),
        lambda path: pickle.loads(path.read_bytes()),
    ),
}


every_adapter = pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=ADAPTERS)


def trained(name):
    return ADAPTERS[name].fit(ADAPTERS[name].make(0), ratings())


# Cornac leaves it to the interpreter to close the files that it opens, and so does Surprise.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore:unclosed file:ResourceWarning")
def test_every_adapter_scores_alike_in_another_process(tmp_path):
    models = {name: trained(name) for name in ADAPTERS}
    for name, model in models.items():
        ADAPTERS[name].save(model, tmp_path / name)
    subprocess.run([sys.executable, __file__, str(tmp_path)], check=True)
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


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_surprise_may_have_read_typed_columns(backend):
    table = pd.DataFrame(triples(ratings()), columns=["user", "item", "rating"]).convert_dtypes(dtype_backend=backend)
    data = SurpriseDataset.load_from_df(table.astype({"rating": "Float64"}), Reader(rating_scale=(1, 5)))
    adapter = ADAPTERS["surprise"]
    model = adapter.make(0).fit(data.build_full_trainset())
    np.testing.assert_array_equal(adapter.scores(model, ratings()), adapter.scores(trained("surprise"), ratings()))


@pytest.mark.filterwarnings("ignore:3 of 14 users have no likes")
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


@pytest.mark.parametrize("dtype", ["Float64", "double[pyarrow]", ">f8"])
def test_tables_of_scikit_learn_may_be_read_only_views_and_typed(dtype):
    adapter, wide = ADAPTERS["sklearn"], np.repeat(np.repeat(ratings(), 2, axis=0), 2, axis=1)
    wide.setflags(write=False)
    view = np.asfortranarray(wide)[::2, ::2]
    expected = adapter.scores(trained("sklearn"), ratings())
    np.testing.assert_array_equal(adapter.scores(adapter.make(0).fit(view), view), expected)
    typed: Any = view.astype(dtype) if dtype == ">f8" else pd.DataFrame(view).astype(dtype)
    np.testing.assert_array_equal(adapter.scores(adapter.make(0).fit(typed), typed), expected)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    found: dict[str, Any] = {name: each.scores(each.load(folder / name), ratings()) for name, each in ADAPTERS.items()}
    np.savez(folder / "scores.npz", **found)
