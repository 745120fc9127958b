"""`save` replaces no file by one that `load` refuses, and stands only where a file can."""

from __future__ import annotations

import copy
import functools
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from covering import covering
from model_cases import MODELS, fitted, frame

from air_recsys import GlobalMean
from air_recsys.dti import DrugTargetAIR
from air_recsys.exceptions import DataError, ModelFileError
from air_recsys.models import Recommender
from air_recsys.models.learned import Factors
from air_recsys.models.state import FittedState

Change = Callable[[np.ndarray], np.ndarray]


def corrupted(state: FittedState, name: str, change: Any) -> FittedState:
    """A state with one of its arrays changed."""
    if name in Factors._fields:
        return replace(state, factors=state.factors._replace(**{name: change(getattr(state.factors, name))}))
    if name in ("user_index", "item_index", "_ratings"):
        data = copy.copy(state.data)
        setattr(data, name, change(getattr(data, name)))
        return replace(state, data=data)
    equations: Any = state.equations
    arrays = equations.arrays._replace(**{name: change(getattr(equations.arrays, name))})
    return replace(state, equations=replace(equations, arrays=arrays))


def last(value: float) -> Change:
    def change(array: np.ndarray) -> np.ndarray:
        return np.append(array.ravel()[:-1], np.float32(value)).reshape(array.shape)

    return change


INFINITE = "expected finite numbers in {}_, found NaN or infinity"


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("user_factors", last(np.nan), INFINITE.format("user_factors")),
        ("user_biases", last(np.inf), INFINITE.format("user_biases")),
        ("mean", lambda _: float("nan"), "finite global_mean_, found nan"),
        ("user_factors", lambda array: array[:-1], "expected factors of shapes"),
        ("user_index", lambda array: array + 99, "expected places of users in 0..11, found 99..110"),
        ("scales", lambda array: array * 0, "expected numbers above 0 in scales, found 0.0"),
        ("item_noise", lambda array: array * 0, "expected numbers above 0 in item_noise, found 0.0"),
    ],
)
def test_what_no_model_has_is_refused_and_the_good_file_stays(name, change, message, saved):
    model = fitted(MODELS["AIR-variational"])
    model._state = corrupted(model._fitted(), name, change)
    refused(model, saved, message)


def refused(model: Any, path: Path, message: str) -> None:
    before = path.read_bytes()
    with pytest.raises(ModelFileError, match=f"^cannot save the model to {re.escape(str(path))}, .*{message}"):
        model.save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_graphs_of_other_data_parameters_out_of_range_and_drugs_are_checked_likewise(saved):
    model = fitted(MODELS["AIR-dense"])
    refused(copy.copy(model).set_params(solver__depth=-3), saved, "depth must be an integer >= 2, found -3")
    model._state = replace(model._fitted(), user_graph=model._fitted().item_graph)
    refused(model, saved, "expected a graph of 12 users, found one of 9")
    drugs = DrugTargetAIR(n_rounds=1).fit(np.kron(np.eye(2), np.ones((3, 3))))
    drugs.scores_[0, 0] = np.nan
    refused(drugs, saved, "expected finite numbers in scores_")


# -------------------------------------------------------------------- what save takes, load takes

CORRUPTIONS: dict[str, Change] = {
    "shorter": lambda array: array[:-1],
    "empty": lambda array: array[:0],
    "narrower": lambda array: array[..., :-1],
    "flat": np.ravel,
    "negative": lambda array: -1 - array,
    "huge": lambda array: array + 10**9,
    "infinite": lambda array: array + np.inf,
    "no number": lambda array: array * np.nan,
    "zero": lambda array: array * (0 if array.dtype.kind == "f" else 1),  # no pair twice
    "text": lambda array: array.astype(str),
}
PARTS = ("user_factors", "item_biases", "user_index", "item_index", "_ratings")
OF_POSTERIOR = (
    "scales",
    "users",
    "items",
    "user_noise",
    "item_weights",
    "user_precisions",
    "item_covariances",
    "user_basis",
)


@functools.cache
def posterior() -> Any:
    return fitted(MODELS["AIR-variational"])


@pytest.mark.parametrize(
    ("part", "corruption"),
    [*covering([*PARTS, *OF_POSTERIOR], CORRUPTIONS), *covering([*OF_POSTERIOR, *PARTS], CORRUPTIONS)],
)
def test_a_model_is_refused_or_loads(part, corruption, saved):
    model, before = copy.copy(posterior()), saved.read_bytes()
    try:
        with np.errstate(all="ignore"):
            model._state = corrupted(model._fitted(), part, CORRUPTIONS[corruption])
    except (ValueError, TypeError):
        return  # there is no such state
    try:
        model.save(saved)
    except (ModelFileError, DataError):
        assert saved.read_bytes() == before
    else:
        Recommender.load(saved)
    assert list(saved.parent.iterdir()) == [saved]


# -------------------------------------------------------------------- places


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("x" * 300, "File name too long"),
        ("none/model.air", "there is no folder"),
        ("file/model.air", "there is no folder"),
        ("folder", "it is a folder"),
        ("loop", "not a regular file|Too many levels"),
        ("pipe", "not a regular file"),
    ],
)
def test_places_where_no_file_can_stand(place, message, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ModelFileError, match=message):
        GlobalMean().fit(frame()).save(tmp_path / place)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_long_name_that_may_be_can_be_and_is_reached_by_a_link(tmp_path):
    path, link = tmp_path / ("x" * 251 + ".air"), tmp_path / "link.air"
    link.symlink_to(path)
    GlobalMean().fit(frame()).save(link)
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, path]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser writes to every folder")
def test_a_folder_that_is_read_only(saved):
    saved.parent.chmod(0o500)
    try:
        with pytest.raises(ModelFileError, match="Permission denied"):
            GlobalMean().fit(frame()).save(saved)
    finally:
        saved.parent.chmod(0o700)
