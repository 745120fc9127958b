"""What each preset takes and answers: docs/capabilities.md has the table that this test finds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import air_recsys
from air_recsys import AIR, distributed
from air_recsys.dti import DrugTargetAIR
from air_recsys.exceptions import AirRecsysError

PAGE = Path(__file__).parents[2] / "docs" / "capabilities.md"
N_USERS, N_ITEMS = 24, 16


def pairs() -> pd.DataFrame:
    users, items = np.nonzero(np.random.default_rng(0).random((N_USERS, N_ITEMS)) < 0.5)
    table = pd.DataFrame({"user": [f"u{user}" for user in users], "item": [f"i{item}" for item in items]})
    return table.assign(rating=1.0 + (users + 2 * items) % 5)


class Door(NamedTuple):
    """A preset, what it trains on, and new rows for it."""

    make: Callable[[], Any]
    data: pd.DataFrame
    new: pd.DataFrame

    def fit(self, more: dict[str, Any] | None = None, **how: Any) -> Any:
        """A model of the data, with more columns."""
        return self.make().fit(self.data.assign(**more or {}), **how)


NEW = pd.DataFrame({"user": ["eve", "eve"], "item": ["i1", "i2"], "rating": [5.0, 1.0]})
COMMON: dict[str, Any] = {"random_state": 0, "device": "cpu"}


@cache
def doors() -> dict[str, Door]:
    table = pairs()
    binary, new_binary = (each.assign(rating=(each["rating"] > 3).astype(float)) for each in (table, NEW))
    names = {"user": "drug", "item": "target", "rating": "label"}
    return {
        "ratings": Door(lambda: AIR.for_ratings(n_factors=2, n_sweeps=3, **COMMON), table, NEW),
        "likes": Door(
            lambda: AIR.for_likes(n_steps=6, n_factors=3, device="cpu"),
            table[[*NEW][:2]],
            NEW[[*NEW][:2]],
        ),
        "completion": Door(lambda: AIR.for_completion(n_epochs=30, **COMMON), table, NEW),
        "interactions": Door(lambda: AIR.for_interactions(n_epochs=30, **COMMON), binary, new_binary),
        "drug-target": Door(
            lambda: DrugTargetAIR(device="cpu"), binary.rename(columns=names), new_binary.rename(columns=names)
        ),
    }


@cache
def fitted(name: str) -> Any:
    return doors()[name].fit()


def ages() -> pd.DataFrame:
    return pd.DataFrame({"age": range(N_USERS)}, index=[f"u{user}" for user in range(N_USERS)])


def alike() -> pd.DataFrame:
    ids = ages().index
    return pd.DataFrame(0.9 * np.eye(N_USERS) + 0.1, index=ids, columns=ids)


def held(model: Any, name: str) -> None:
    """Check that a model took what it was given."""
    if getattr(model.interactions_, name) is None:
        raise TypeError(name)


def asked(model: Any, user: str, item: str) -> Any:
    """What a model of new rows answers."""
    return model.recommend(user), model.predict(user, item)


ONE = (["u1"], ["i1"])
CASES: dict[str, Callable[[Door, Any, Path], Any]] = {
    "features of users and items": lambda door, model, path: door.fit(user_features=ages()),
    "given similarities": lambda door, model, path: door.fit(user_similarity=alike()),
    "weights of pairs": lambda door, model, path: held(door.fit({"weight": 0.5}), "weights"),
    "times": lambda door, model, path: held(
        (door.make().set_params(solver__time="drift") if path.parent.name == "ratings" else door.make()).fit(
            door.data.assign(timestamp=range(len(door.data)))
        ),
        "timestamps",
    ),
    "callbacks": lambda door, model, path: door.fit(callbacks=[lambda record: None]),
    "checkpoints": lambda door, model, path: door.fit(checkpoint=path / "state.ckpt", every=1),
    "`memory_plan`, `max_memory`": lambda door, model, path: door.make().memory_plan(door.data),
    "`predict`": lambda door, model, path: model.predict(*ONE),
    "`predict(return_std=True)`": lambda door, model, path: model.predict(*ONE, return_std=True),
    "`predict_interval`": lambda door, model, path: model.predict_interval(*ONE),
    "`predict_proba`": lambda door, model, path: model.predict_proba(*ONE),
    "`recommend`, also for own candidates": lambda door, model, path: model.recommend(["u1"], items={"u1": ["i1"]}),
    "lists on a GPU": lambda door, model, path: model.recommend(["u1"], device="auto"),
    "`distributed.fit` with `n_factors`": lambda door, model, path: distributed.fit(
        door.make().set_params(n_factors=3), door.data
    ),
    "`similar_users`, `similar_items`": lambda door, model, path: model.similar_items("i1"),
    "`user_graph_`, `item_graph_`": lambda door, model, path: (model.user_graph_, model.item_graph_),
    "`explain`": lambda door, model, path: model.explain("u1", "i1"),
    "`score`": lambda door, model, path: model.score(
        door.new.assign(**dict(zip(door.new.columns, ["u0", ["i0", "i14"]], strict=False)))
    ),
    "`fold_in`, a model of new users": lambda door, model, path: asked(model.fold_in(door.new), "eve", "i3"),
    "`fold_in` of new items": lambda door, model, path: asked(
        model.fold_in(
            door.new.assign(**dict(zip(door.new.columns, [["u1", "u2"], "new"], strict=False))), side="item"
        ),
        "u3",
        "new",
    ),
    "`partial_fit`": lambda door, model, path: door.fit().partial_fit(door.new),
    "`forget`": lambda door, model, path: door.fit().forget(users="u1", items="i1"),
    "`save`, `load`": lambda door, model, path: air_recsys.load(model.save(path / "model.air")),
}
LACKS = (AttributeError, TypeError, ValueError, AirRecsysError)


def answers(case: str, name: str, path: Path) -> bool:
    folder = path / name / str(list(CASES).index(case))
    folder.mkdir(parents=True)
    try:
        CASES[case](doors()[name], fitted(name), folder)
    except LACKS:
        return False
    return True


@pytest.mark.filterwarnings("ignore")
def test_the_page_says_what_each_preset_takes_and_answers(tmp_path):
    rows = [("what", "works in"), ("---", "---")]
    for case in CASES:
        found = [name for name in doors() if answers(case, name, tmp_path)]
        rows.append((case, "all" if len(found) == len(doors()) else ", ".join(found)))
    table = "\n".join(f"| {case} | {found} |" for case, found in rows)
    assert table in PAGE.read_text(encoding="utf-8"), table
