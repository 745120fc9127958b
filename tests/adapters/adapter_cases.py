"""Every adapter over the same ratings, by one form of call; run as a program, scores of saved ones into a file."""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
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


def load_cornac(path: Path) -> CornacAIR:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # Cornac leaves files open
        return CornacAIR.load(path.read_text())


def load_surprise(path: Path) -> SurpriseAIR:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # Surprise too
        return dump.load(path)[1]


ADAPTERS = {
    "surprise": Adapter(
        lambda seed: SurpriseAIR(n_factors=2, graph_neighbors=3, random_state=seed, **SMALL),
        fit_surprise,
        lambda model, array: by_id(array, lambda user, item: model.predict(user, item).est),
        lambda model, path: dump.dump(path, algo=model),
        load_surprise,
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
        load_cornac,
    ),
    "sklearn": Adapter(
        lambda seed: AIRImputer(random_state=seed, n_epochs=20, **SMALL),
        lambda model, array: model.fit(array),
        lambda model, array: model.transform(array),
        lambda model, path: path.write_bytes(pickle.dumps(model)),
        lambda path: pickle.loads(path.read_bytes()),
    ),
}

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    found: dict[str, Any] = {name: each.scores(each.load(folder / name), ratings()) for name, each in ADAPTERS.items()}
    np.savez(folder / "scores.npz", **found)
