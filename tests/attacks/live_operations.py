"""What the threads of `bench_live` do with a model; the number of an operation decides what it asks or writes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd

from air_recsys.models import AIR

Answer = list[np.ndarray]
Model = TypeVar("Model", bound=AIR)

_N_USERS, _N_ITEMS, _N_RATINGS = 60, 40, 600
_ASKED = 8  # users of a question


class Operation(NamedTuple):
    """An operation: how often it comes, and what it does; a write returns nothing."""

    share: float
    act: Callable[[AIR, int, np.random.Generator, Path], Answer]
    writes: bool = False


def new_model(kind: type[Model]) -> Model:
    """Return the model of the threads, not fitted."""
    return kind.for_ratings(n_factors=2, n_sweeps=4, pattern_features=5, random_state=0, device="cpu")


def prepared(model: Model, seed: int) -> Model:
    """Return a model, fitted as it is at the start."""
    return model.fit(_ratings(-1, _generator(seed, -1)))


def perform(model: AIR, name: str, number: int, seed: int, place: Path) -> Answer:
    """Do an operation and return its answer."""
    return OPERATIONS[name].act(model, number, _generator(seed, number), place)


def mark_of(number: int) -> str:
    """Return the user by which the state after a write is known."""
    return f"n{number}"


def _generator(seed: int, number: int) -> np.random.Generator:
    return np.random.default_rng([seed, number + 1])


def _ratings(number: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return ratings of all users and items; the one by whom a state is known has rated the first two items."""
    drawn = rng.choice(_N_USERS * _N_ITEMS, _N_RATINGS, replace=False)
    each = np.arange(_N_USERS) * _N_ITEMS + np.arange(_N_USERS) % _N_ITEMS  # so that none is without any
    pairs = np.union1d(drawn, each)
    users = [f"u{pair // _N_ITEMS}" for pair in pairs] + [mark_of(number)] * 2
    items = [f"i{pair % _N_ITEMS}" for pair in pairs] + ["i0", "i1"]
    # Both ends of the scale are there whatever the draw.
    return pd.DataFrame({"user": users, "item": items, "rating": [*rng.integers(1, 6, pairs.size).tolist(), 1, 5]})


def _users(number: int, rng: np.random.Generator) -> list[str]:
    """Return users of the start, and some that a write may have brought in by now."""
    known = [f"u{user}" for user in rng.integers(_N_USERS, size=_ASKED // 2)]
    return known + [mark_of(max(-1, number - int(back))) for back in rng.integers(80, size=_ASKED // 2)]


def _items(rng: np.random.Generator) -> list[str]:
    return [f"i{item}" for item in rng.choice(_N_ITEMS, _ASKED, replace=False)]


def _predict(model: AIR, number: int, rng: np.random.Generator, place: Path) -> Answer:
    return [model.predict(_users(number, rng), _items(rng), unknown="mean")]


def _deviations(model: AIR, number: int, rng: np.random.Generator, place: Path) -> Answer:
    return list(model.predict(_users(number, rng), _items(rng), unknown="mean", return_std=True))


def _recommend(model: AIR, number: int, rng: np.random.Generator, place: Path) -> Answer:
    table = model.recommend(_users(number, rng), 5)
    return [table[name].to_numpy() for name in ("user", "item", "score", "source")]


def _similar(model: AIR, number: int, rng: np.random.Generator, place: Path) -> Answer:
    table = model.similar_items(_items(rng)[0], 5)
    return [table["item"].to_numpy(), table["weight"].to_numpy()]


def _fold_in(model: AIR, number: int, rng: np.random.Generator, place: Path) -> Answer:
    return list(model.fold_in(_new_ratings(number, rng, [])))


def _explain(model: AIR, number: int, rng: np.random.Generator, place: Path) -> Answer:
    told = model.explain(f"u{rng.integers(_N_USERS)}", _items(rng)[0])
    return [np.array([told.score, told.total()]), told.items["contribution"].to_numpy()]


def _several(model: AIR, number: int, rng: np.random.Generator, place: Path) -> Answer:
    """Several attributes of one state, by a shallow copy."""
    now = copy.copy(model)
    return [now.interactions_.user_ids, now.user_factors_, now.item_biases_, np.array([now.n_iter_])]


def _save(model: AIR, number: int, rng: np.random.Generator, place: Path) -> Answer:
    path = place / f"{number}.air"
    loaded = AIR.load(model.save(path))
    path.unlink()
    scores = loaded.predict(_users(number, rng), _items(rng), unknown="mean")
    return [loaded.interactions_.user_ids, loaded.user_factors_, np.array([loaded.n_iter_]), scores]


def _partial_fit(model: AIR, number: int, rng: np.random.Generator, place: Path) -> Answer:
    model.partial_fit(_new_ratings(number, rng, [f"new{number}"] if number % 4 == 0 else []))
    return []


def _fit(model: AIR, number: int, rng: np.random.Generator, place: Path) -> Answer:
    last = int(rng.integers(2, 5))
    model.fit(_ratings(number, rng), callbacks=[lambda record: record.epoch >= last])
    return []


def _new_ratings(number: int, rng: np.random.Generator, new_items: list[str]) -> pd.DataFrame:
    items = _items(rng)[:5] + new_items
    return pd.DataFrame({"user": mark_of(number), "item": items, "rating": rng.integers(1, 6, len(items))})


OPERATIONS: dict[str, Operation] = {
    "predict": Operation(0.3, _predict),
    "predict with deviations": Operation(0.1, _deviations),
    "recommend": Operation(0.2, _recommend),
    "similar_items": Operation(0.08, _similar),
    "fold_in": Operation(0.08, _fold_in),
    "explain": Operation(0.05, _explain),
    "several attributes": Operation(0.05, _several),
    "save and load": Operation(0.03, _save),
    "partial_fit": Operation(0.1, _partial_fit, writes=True),
    "fit": Operation(0.01, _fit, writes=True),
}
