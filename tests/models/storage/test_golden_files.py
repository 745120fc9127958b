"""The format of files is frozen: a model and a checkpoint that were written once load, and answer as they did.

A release that writes more keeps reading these. ``python tests/models/storage/test_golden_files.py`` wrote them; it is
run again only where the format version changes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys import AIR, Interactions

FOLDER = Path(__file__).parent / "golden"
MODEL, CHECKPOINT, ANSWERS = FOLDER / "model.air", FOLDER / "training.ckpt", FOLDER / "answers.json"
CLOSE: dict[str, float] = {"rtol": 1e-6, "atol": 1e-8}  # other processors, other last bits
TRAINED: dict[str, float] = {"rtol": 1e-3}  # features of so regular a pattern turn with the last bits of a QR
CUT = 3  # sweeps before the checkpoint


def ratings() -> Interactions:
    """Ratings of two tastes, with times, and a feature of the items."""
    stars = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 3)))
    stars[[0, 2, 5], [0, 4, 1]] = np.nan
    users, items = np.nonzero(~np.isnan(stars))
    table = {"user": [f"u{user}" for user in users], "item": [f"i{item}" for item in items]}
    frame = pd.DataFrame(table | {"rating": stars[users, items], "timestamp": np.arange(users.size)})
    kinds = pd.DataFrame({"kind": ["a"] * 3 + ["b"] * 3}, index=[f"i{item}" for item in range(6)])
    return Interactions.from_frame(frame, timestamp="timestamp").with_features(item=kinds)


def untrained() -> Any:
    """A model whose file has every kind of part: factors, deviations, drift, both graphs, snapshots, features."""
    return AIR.for_ratings(
        n_factors=2,
        n_sweeps=6,
        time="drift",
        graph_neighbors=2,
        snapshot_epochs=(2,),
        dtype="float64",
        device="cpu",
        random_state=0,
    )


def interrupted() -> Any:
    """The same with features of the pattern, which "auto" has no more on ratings of most pairs."""
    return untrained().set_params(solver__pattern_features=100)


def write() -> None:
    """Write both files, and the numbers that the tests expect."""
    FOLDER.mkdir(exist_ok=True)
    model = interrupted().fit(ratings())
    model.save(MODEL)
    stop = [lambda record: record.epoch >= CUT]
    interrupted().fit(ratings(), checkpoint=CHECKPOINT, every=CUT, callbacks=stop)
    ANSWERS.write_text(json.dumps([numbers.tolist() for numbers in answers(model)]) + "\n", encoding="utf-8")


def answers(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Scores and deviations of two users for an item each that they have not rated, and of one that they have."""
    scores, deviations = model.predict(["u0", "u2", "u3"], ["i0", "i4", "i5"], return_std=True)
    return scores, deviations


def assert_known_answers(model: Any, close: dict[str, float] = CLOSE) -> None:
    for found, expected in zip(answers(model), json.loads(ANSWERS.read_text(encoding="utf-8")), strict=True):
        np.testing.assert_allclose(found, expected, **close)


def test_the_model_loads_and_answers_as_it_did():
    model: Any = AIR.load(MODEL)
    assert_known_answers(model)
    assert model.get_params(deep=False) == untrained().get_params(deep=False)
    assert list(model.snapshots_) == [2]
    assert model.item_graph_.n_edges > 0
    assert model.feature_effects("item")["feature"].tolist() == ["kind=a", "kind=b"]
    explanation = model.explain("u0", "i0")
    assert explanation.total() == pytest.approx(explanation.score)
    assert model.stopped_by_ == "n_sweeps"


def test_the_checkpoint_goes_on_to_the_same_model():
    model = interrupted().fit(ratings(), resume_from=CHECKPOINT)
    assert_known_answers(model, TRAINED)
    assert model.history_["epoch"].tolist() == list(range(1, 7))


if __name__ == "__main__":
    write()
