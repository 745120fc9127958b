"""The rankers that are compared: each is trained by a function of the training interactions alone."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import numpy as np

from air_recsys.benchmarks.accuracy.ranking_peers import EASE, GFCF, Popularity
from air_recsys.benchmarks.accuracy.ratings_systems import System
from air_recsys.interactions import Interactions
from air_recsys.models.ranking import GraphRanker

LENGTH = 20


class Ranker(Protocol):
    """What makes lists of items for users, all by their positions in the training data."""

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """Return the best n unseen items, shape (b, n)."""
        ...


class Recommending:
    """A `Recommender` as a `Ranker`."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """Return what `recommend` does, by positions; -1 where it has no item left."""
        data = self.model.interactions_
        table = self.model.recommend(data.user_ids[users], n)
        found = np.full((users.size, n), -1, dtype=np.int64)
        starts = np.cumsum(table["rank"].to_numpy() == 1) - 1  # every user has a first item
        found[starts, table["rank"].to_numpy() - 1] = data.items.lookup(table["item"].to_numpy())
        return found


def ranking_systems(changes: dict[str, Any] | None = None, seed: int = 0, threads: int = 1) -> dict[str, System]:
    """Return all systems by name.

    Parameters
    ----------
    changes : dict, optional
        Parameters of `GraphRanker`.
    seed, threads : int
        Of every system that takes them.
    """
    parameters = {"random_state": seed} | (changes or {})
    told = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    als = {"factors": 512, "regularization": 1.0, "alpha": 60.0, "iterations": 10}
    bpr = {"factors": 128, "learning_rate": 0.05, "regularization": 0.002, "iterations": 100}
    shared = {"random_state": seed, "num_threads": threads}
    return {
        "GraphRanker": System(partial(_train_ranker, parameters), f"GraphRanker({told})"),
        "implicit ALS": System(partial(_train_implicit, "als", als | shared), _own(als), "implicit", "implicit"),
        "implicit BPR": System(partial(_train_implicit, "bpr", bpr | shared), _own(bpr), "implicit", "implicit"),
        "GF-CF": System(partial(_train_gfcf, seed), "written from its paper and program, 256 axes, weight 0.3"),
        "EASE": System(partial(_train_ease, 200.0), "written from its paper, lambda 200, all items"),
        "Popularity": System(_train_popularity, "the number of interactions"),
    }


def ask_lists(model: Ranker, users: np.ndarray) -> np.ndarray:
    """Return the lists of some users, by positions; shape (b, 20)."""
    return model.lists(users, LENGTH)


def _train_ranker(parameters: dict[str, Any], shown: Interactions) -> Recommending:
    return Recommending(GraphRanker(**parameters).fit(shown))


def _train_implicit(algorithm: str, parameters: dict[str, Any], shown: Interactions) -> Any:
    from air_recsys.adapters.implicit_ranker import ImplicitRanker

    return ImplicitRanker(algorithm, **parameters).fit(shown)


def _train_ease(decay: float, shown: Interactions) -> EASE:
    return EASE(decay).fit(shown)


def _train_gfcf(seed: int, shown: Interactions) -> GFCF:
    return GFCF(random_state=seed).fit(shown)


def _train_popularity(shown: Interactions) -> Popularity:
    return Popularity().fit(shown)


def _own(parameters: dict[str, Any]) -> str:
    told = ", ".join(f"{name}={value}" for name, value in parameters.items())
    return f"its own code, {told}, the best of a few tried on a random hidden fifth of Gowalla's training part"
