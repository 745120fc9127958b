"""`save` replaces no file by one that `load` refuses, nor what it has no right to."""

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
import pandas as pd
import pytest
from covering import covering
from model_cases import MODELS, fitted, frame

from air_recsys import GlobalMean, Interactions
from air_recsys.dti import DrugTargetAIR
from air_recsys.exceptions import DataError, ModelFileError
from air_recsys.models import Recommender
from air_recsys.models.learned import Factors
from air_recsys.models.state import FittedState


def refused(model: Any, path: Path, message: str) -> None:
    """Saving a model over a good file is refused, and the good file stays."""
    before = path.read_bytes()
    with pytest.raises(ModelFileError, match=f"^cannot save the model to {re.escape(str(path))}, .*{message}"):
        model.save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def with_factors(model: Recommender, **changes: Any) -> Recommender:
    model._state = replace(model._fitted(), factors=model._fitted().factors._replace(**changes))
    return model


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["user_factors", "item_factors", "user_biases", "item_biases"])
def test_numbers_that_are_not_finite_are_refused(name, value, saved):
    model = fitted(MODELS["AIR-dense"])
    array = getattr(model.factors_, name).copy()
    array.flat[-1] = value
    refused(with_factors(model, **{name: array}), saved, f"expected finite numbers in {name}_, found NaN or infinity")


def test_a_mean_that_is_not_finite_is_refused(saved):
    refused(with_factors(GlobalMean().fit(frame()), mean=float("nan")), saved, "finite global_mean_, found nan")


@pytest.mark.parametrize("name", ["AIR-dense", "AIR-variational"])
def test_a_rating_beyond_all_others_leaves_the_file_as_it_was(name, saved):
    """What `partial_fit` once made of a rating of 1e39."""
    model: Any = fitted(MODELS[name])
    state = model._fitted()
    ratings = np.array(state.data.ratings)
    ratings[0] = 1e39
    with np.errstate(over="ignore"):
        users = (state.factors.user_factors * np.float32(1e38) * np.float32(100)).astype(np.float32)
    data = replaced(state.data, ratings=ratings)
    model._state = replace(state, data=data, factors=state.factors._replace(user_factors=users))
    refused(model, saved, "expected finite numbers in user_factors_")


def replaced(data: Interactions, **changes: Any) -> Interactions:
    parts: dict[str, Any] = {"user_index": data.user_index, "item_index": data.item_index, "ratings": data.ratings}
    return Interactions(**parts | changes, user_ids=data.user_ids, item_ids=data.item_ids)


def test_factors_of_another_number_of_users_are_refused(saved):
    """What `save` once wrote beside a `partial_fit`."""
    model = fitted(MODELS["AIR-ratings"])
    factors: Factors = model.factors_
    refused(with_factors(model, user_factors=factors.user_factors[:-1]), saved, "expected factors of shapes")


def test_places_and_graphs_of_other_data_are_refused(saved):
    model = fitted(MODELS["AIR-dense"])
    model.interactions_.user_index[0] = 99
    refused(model, saved, "expected places of users in 0..11, found 0..99")
    model.interactions_.user_index[0] = 0
    state = model._fitted()
    model._state = replace(state, user_graph=state.item_graph)
    refused(model, saved, "expected a graph of 12 users, found one of 9")


@pytest.mark.parametrize(("name", "array"), [("scales", "scales"), ("item_noise", "item_noise")])
def test_variances_that_are_none_are_refused(name, array, saved):
    model: Any = fitted(MODELS["AIR-variational"])
    equations = model._fitted().equations
    arrays = equations.arrays._replace(**{name: getattr(equations.arrays, name) * 0})
    model._state = replace(model._fitted(), equations=replace(equations, arrays=arrays))
    refused(model, saved, f"expected numbers above 0 in {array}, found 0.0")


def test_parameters_out_of_range_are_refused(saved):
    model: Any = fitted(MODELS["AIR-dense"])
    refused(model.set_params(solver__depth=-3), saved, "depth must be an integer >= 2, found -3")


def test_drugs_and_targets_are_checked_likewise(saved):
    model = DrugTargetAIR(n_rounds=1).fit(np.kron(np.eye(2), np.ones((3, 3))))
    model.scores_[0, 0] = np.nan
    refused(model, saved, "expected finite numbers in scores_")


def test_ids_that_pandas_made_floats_are_integers_again(tmp_path):
    table = frame().head(30).assign(user=lambda t: t["user"].astype("category").cat.codes.astype(float))
    model = GlobalMean().fit(table)
    assert model.interactions_.user_ids.dtype == np.int64
    loaded = GlobalMean.load(model.save(tmp_path / "model.air"))
    for user in (1, 1.0, np.float64(1)):
        assert loaded.interactions_.users.lookup(user) == [1]
    assert loaded.recommend(1.0, n=1)["user"].tolist() in ([1], [])


def test_other_floats_are_refused_before_anything_is_written(saved):
    before = saved.read_bytes()
    table = pd.DataFrame({"user": [0.5, 1.0], "item": ["a", "b"], "rating": [1.0, 2.0]})
    with pytest.raises(DataError, match="all integers or all strings, found a float in user_ids; give others as text"):
        GlobalMean().fit(table).save(saved)
    assert saved.read_bytes() == before


# -------------------------------------------------------------------- what save takes, load takes

CORRUPTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
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


@functools.cache
def posterior() -> Any:
    return fitted(MODELS["AIR-variational"])


def corrupted(state: FittedState, name: str, change: Callable[[np.ndarray], np.ndarray]) -> FittedState:
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


def test_mode_and_link_of_a_file_are_kept(tmp_path):
    model, real, link = GlobalMean().fit(frame()), tmp_path / "real.air", tmp_path / "link.air"
    model.save(real)
    real.chmod(0o640)
    link.symlink_to("real.air")
    before = real.stat().st_ino
    model.save(link)
    assert link.is_symlink()
    assert real.stat().st_ino != before
    assert real.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.air", "real.air"]


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


def test_a_long_name_that_may_be_can_be(tmp_path):
    path = tmp_path / ("x" * 251 + ".air")
    GlobalMean().fit(frame()).save(path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_named_with_its_path(saved, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    before = saved.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelFileError, match=f"cannot write {re.escape(str(saved))}: No space left on device"):
        GlobalMean().fit(frame()).save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser writes to every folder")
def test_a_folder_that_is_read_only(saved):
    saved.parent.chmod(0o500)
    try:
        with pytest.raises(ModelFileError, match="Permission denied"):
            GlobalMean().fit(frame()).save(saved)
    finally:
        saved.parent.chmod(0o700)
