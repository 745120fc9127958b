"""What the tests of the command line share: a short training, its table, and strict JSON."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

SHORT = ["--device", "cpu", "--set", "n_epochs=20", "--set", "n_factors=2", "--set", "graph_neighbors=2"]
"""Options of a training that takes no time."""


class Ended(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str


Cli = Callable[..., Ended]


def read_json(path: Path) -> Any:
    """Read a file that must be JSON to the letter, so without NaN."""

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is not JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def ratings(ids: str) -> pd.DataFrame:
    """Half of the ratings of 8 users on 6 items; ids are integers or text."""
    rng = np.random.default_rng(0)
    chosen = rng.random((8, 6)) < 0.6
    chosen[0], chosen[:, 0], chosen[0, 5] = True, True, False
    users, items = np.nonzero(chosen)
    frame = pd.DataFrame({"user": 10 + users, "item": items, "rating": rng.integers(1, 6, users.size).astype(float)})
    if ids == "text":
        frame["user"], frame["item"] = [f"u{user}" for user in frame["user"]], [f"i{item}" for item in frame["item"]]
    return frame
