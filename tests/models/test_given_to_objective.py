"""Similarities and features that AIR's objective is given: a graph that stays, beside the learned one."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from model_cases import CPU

import air_recsys
from air_recsys import AIR, Interactions
from air_recsys.exceptions import CheckpointError, DataError
from air_recsys.models import DirichletDMF

N_USERS, N_ITEMS, N_GROUPS, N_NEW = 40, 64, 8, 4
GROUP = np.arange(N_ITEMS) % N_GROUPS
USERS, ITEMS = [f"u{user:02}" for user in range(N_USERS)], [f"i{item:02}" for item in range(N_ITEMS)]
TRUTH = 3 + np.random.default_rng(1).standard_normal((N_USERS, N_GROUPS))[:, GROUP]
STRENGTHS = "user_graph_strength", "item_graph_strength"


@cache
def ratings(binary: bool = False) -> pd.DataFrame:
    """A quarter of the values of 8 groups of items; the last items have none."""
    users, items = np.nonzero(np.random.default_rng(2).random(TRUTH.shape)[:, :-N_NEW] < 0.25)
    values = TRUTH[users, items] > 3.5 if binary else TRUTH[users, items].clip(0)
    return pd.DataFrame({"user": np.array(USERS)[users], "item": np.array(ITEMS)[items], "rating": values * 1.0})


def alike() -> pd.DataFrame:
    return pd.DataFrame((GROUP[:, None] == GROUP) * 1.0, index=ITEMS, columns=ITEMS)


def groups() -> pd.DataFrame:
    return pd.DataFrame({"group": [f"g{group}" for group in GROUP]}, index=ITEMS)


def model(door: str = "completion", **options: Any) -> AIR:
    n_epochs = {"completion": 400, "interactions": 100}[door]
    fixed = {"settings": "fixed"} if door == "completion" else {}
    return AIR.of_preset(door, **CPU | {"random_state": 0, "n_epochs": n_epochs} | fixed | options)


def error(fitted: AIR, items: slice) -> float:
    table = fitted.predict(np.repeat(USERS, N_ITEMS), ITEMS * N_USERS).reshape(N_USERS, N_ITEMS)
    return float(np.sqrt(np.mean((table - TRUTH)[:, items] ** 2)))


KNOWN, NEW = slice(0, -N_NEW), slice(-N_NEW, None)


@pytest.mark.parametrize("door", ["completion", "interactions"])
def test_a_strength_of_0_is_a_model_without_to_the_bit(door):
    data = Interactions.from_frame(ratings(door == "interactions"))
    ages, given = pd.DataFrame({"age": range(N_USERS)}, USERS), alike().loc[data.item_ids, data.item_ids]
    off = model(door, **dict.fromkeys(STRENGTHS, 0)).fit(data, user_features=ages, item_similarity=given)
    plain = model(door).fit(data)
    np.testing.assert_array_equal(off.item_factors_, plain.item_factors_)
    np.testing.assert_array_equal(off.user_factors_, plain.user_factors_)
    assert off.history_.drop(columns="seconds").equals(plain.history_.drop(columns="seconds"))
    assert off.user_graph_strength_ == off.item_graph_strength_ == plain.item_graph_strength_ == 0


def test_without_learned_graphs_it_is_the_model_of_given_graphs():
    """Edges are divided by the roots of the degrees of both ends; the unit of a strength is that of "auto"."""
    data = Interactions.from_frame(ratings())
    given = alike().loc[data.item_ids, data.item_ids].to_numpy() - np.eye(data.n_items)
    degrees = given.sum(axis=1)
    strength = 0.6 * 3 * data.n_ratings / (data.n_users * data.n_items) ** 2
    found = model(user_graph_reg=0, item_graph_reg=0, item_graph_strength=0.6, exact_epochs=0).fit(
        data, item_similarity=given
    )
    graph = sp.csr_array(given / np.sqrt(np.outer(degrees, degrees)))
    same = {name: value for name, value in found.solver.get_params().items() if name in DirichletDMF().get_params()}
    same |= {"user_graph_reg": 0, "item_graph_reg": strength, "n_factors": None, **CPU, "random_state": 0}
    expected = DirichletDMF(None, graph, **same).fit(data)
    np.testing.assert_allclose(found.item_factors_, expected.item_factors_, atol=1e-3)


def test_a_graph_that_tells_something_wins_on_hidden_ratings():
    found = model().fit(ratings(), item_similarity=alike())
    assert found.item_graph_strength_ == found.settings_["item_graph_strength"] > 0
    assert found.user_graph_strength_ == 0
    assert "user_graph_strength" not in found.settings_
    assert found.search_["form"].tolist() == [f"item_graph_strength={each}" for each in ("0", "0.1", "0.3", "0.7")]
    assert (found.search_["trainings"] == 0.5).all()
    assert f"item_graph_strength={found.item_graph_strength_:g}, RMSE" in found.search_line_
    plain = model(item_graph_strength=0).fit(ratings(), item_similarity=alike())
    assert error(found, KNOWN) < 0.8 * error(plain, KNOWN)
    assert error(found, NEW) < 0.6 * error(plain, NEW)
    assert model().memory_plan(found.interactions_).total > model().memory_plan(ratings()).total


def test_features_are_edges_to_the_nearest_rows():
    fitted = model(item_graph_strength=1.0).fit(ratings(), item_features=groups())
    assert error(fitted, NEW) < 0.75 * TRUTH.std()
    found = fitted.explain("u03", ITEMS[-1])
    assert found.total() == pytest.approx(found.score, abs=1e-4)


@pytest.mark.parametrize("side", ["user", "item"])
def test_new_rows_have_the_edges_of_their_features(side):
    other = "item" if side == "user" else "user"
    table = ratings().rename(columns={"user": other, "item": side})  # the side has the groups
    options: dict[str, Any] = {f"{side}_graph_strength": 1.0}
    fitted = model(**options).fit(table, **{f"{side}_features": groups()})
    new = pd.DataFrame({side: ["n1", "n2"], other: ["u00", "u01"], "rating": [4.0, 3.0]})
    features = pd.DataFrame({"group": ["g1", "g2"]}, index=["n1", "n2"])
    grown = deepcopy(fitted).partial_fit(new, **{f"{side}_features": features})
    rows = getattr(grown.interactions_, f"{side}s").lookup(["n1", "n2"])
    folded = fitted.fold_in(new, side=side, features=features)
    if side == "user":  # users are solved once more, where there are new items
        told = folded.explain("n1", "u05")
        assert told.similar_users.count > 0
        assert (told.total(), told.remainder) == pytest.approx((told.score, 0), abs=1e-4)
        np.testing.assert_allclose(getattr(grown, f"{side}_factors_")[rows], folded.user_factors_, atol=1e-5)
    alone = fitted.fold_in(None, side=side, features=features)
    others = getattr(fitted, f"{other}_factors_")
    values = (getattr(alone, f"{side}_factors_") @ others.T)[
        :, getattr(fitted.interactions_, f"{other}s").lookup(USERS)
    ]
    assert np.corrcoef(values[0], TRUTH[:, 1])[0, 1] > 0.8
    assert np.corrcoef(values[1], TRUTH[:, 2])[0, 1] > 0.8
    with pytest.raises(DataError, match=f"expected no {other} features, as the model was trained without"):
        fitted.fold_in(None, side=other, features=features)


def test_files_and_checkpoints_hold_the_graph(tmp_path):
    given: dict[str, Any] = {"item_similarity": alike(), "item_features": groups().replace("g7", "g0")}
    whole = model(n_epochs=150).fit(ratings(), **given)
    loaded: Any = air_recsys.load(whole.save(tmp_path / "model.air"))
    np.testing.assert_array_equal(loaded.predict("u03", ITEMS), whole.predict("u03", ITEMS))
    assert loaded.item_graph_strength_ == whole.item_graph_strength_ > 0
    assert loaded.explain("u03", "i01").to_dict() == whole.explain("u03", "i01").to_dict()
    new = pd.DataFrame({"user": ["u01", "u01"], "item": ["i05", "new"], "rating": [4.0, 2.0]})
    grown = [each.partial_fit(new) for each in (deepcopy(whole), loaded)]
    np.testing.assert_array_equal(grown[0].item_factors_, grown[1].item_factors_)
    file, stop = tmp_path / "run.ckpt", [lambda record: record.epoch == 100]
    model(n_epochs=150).fit(ratings(), **given, checkpoint=file, every=50, callbacks=stop)
    resumed = model(n_epochs=150).fit(ratings(), **given, resume_from=file)
    np.testing.assert_array_equal(resumed.item_factors_, whole.item_factors_)
    with pytest.raises(CheckpointError, match="other data"):
        model(n_epochs=150).fit(ratings(), item_similarity=alike(), resume_from=file)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.where(np.tril(np.ones(s.shape)) > 0, 0.5 * s), r"symmetric .*\(S \+ S.T\) / 2"),
        (lambda s: s - 0.5, r"similarities >= 0, found -0.5"),
        (lambda s: s.set_axis(range(N_ITEMS), axis=0).set_axis(range(N_ITEMS), axis=1), "such as 'i00', .*such as 0"),
        (lambda s: None, r"item_graph_strength=0\.3 needs item_similarity"),
    ],
)
@pytest.mark.parametrize("door", ["completion", "interactions"])
def test_what_is_no_similarity_is_refused(door, change, message):
    with pytest.raises(DataError, match=message):
        model(door, item_graph_strength=0.3).fit(ratings(), item_similarity=change(alike()))
