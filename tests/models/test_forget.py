"""`forget`: what is removed is nowhere, and the model is one that was folded without it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from model_cases import CPU, by_paper, fails

import air_recsys
from air_recsys import AIR, DMF, BiasModel, Interactions, SimilarityGraph
from air_recsys.datasets import load_movielens
from air_recsys.exceptions import DataError, NotFittedError, ParameterError, UnknownIdError
from air_recsys.models import DirichletDMF, GraphRanker, IterativeSVD
from air_recsys.serving.changes import make

pytestmark = pytest.mark.filterwarnings("ignore:each row counts as one like")
USERS, ITEMS = [f"user-{number:02}" for number in range(30)], [f"item-{number:02}" for number in range(20)]
DOORS: dict[str, Callable[..., Any]] = {
    "variational": partial(AIR.for_ratings, n_factors=3, n_sweeps=5, **CPU),
    "langevin": partial(AIR.for_ratings, solver="langevin", n_factors=3, n_sweeps=10, **CPU),
    "adam": partial(AIR.for_ratings, solver="adam", n_factors=3, n_epochs=20, **CPU),
    "likes": partial(GraphRanker, n_factors=3, n_steps=1, settings={}, device="cpu"),
    "completion": partial(AIR.for_completion, n_epochs=30, **CPU),
    "interactions": partial(AIR.for_interactions, n_epochs=30, **CPU),
    "DMF": partial(DMF, n_epochs=30, **CPU),
    "DirichletDMF": partial(DirichletDMF, n_epochs=30, n_neighbors=3, **CPU),
}
HELD = ["variational", "langevin", "adam", "likes"]  # whose penalty of a row is no sum over all rows
doors = pytest.mark.parametrize("name", DOORS)
NEW = [("eve", "item-01", 5.0), ("eve", "new item", 1.0), ("fay", "item-02", 2.0), ("fay", "new item", 3.0)]


@cache
def ratings() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((len(USERS), len(ITEMS))) < 0.6)
    return table(zip(np.array(USERS)[users], np.array(ITEMS)[items], rng.integers(1, 6, users.size), strict=True))


def table(rows: Any) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=["user", "item", "rating"]).astype({"rating": float})


@cache
def trained(name: str) -> Any:
    return DOORS[name]().fit(ratings())


def model(name: str, *new: Any) -> Any:
    """A model with these rows taken in."""
    own = copy.deepcopy(trained(name))
    return own.partial_fit(table(new)) if new else own


def scores(model: Any) -> np.ndarray:
    users, items = model.interactions_.user_ids, model.interactions_.item_ids
    return model.predict(np.repeat(users, len(items)), np.tile(items, len(users)))


def assert_same(found: Any, expected: Any, atol: float = 1e-6) -> None:
    own, other = found.interactions_, expected.interactions_
    assert own.user_ids.tolist() == other.user_ids.tolist()
    assert own.item_ids.tolist() == other.item_ids.tolist()
    by = ["user", "item"]
    pd.testing.assert_frame_equal(*(each.to_frame().sort_values(by, ignore_index=True) for each in (own, other)))
    np.testing.assert_allclose(scores(found), scores(expected), rtol=0, atol=atol)
    np.testing.assert_array_equal(found.item_biases_.shape, expected.item_biases_.shape)


# -------------------------------------------------------------------- the model without them


@doors
def test_without_users_who_came_later_the_model_is_as_before(name):
    found = model(name, NEW[0], NEW[2]).forget(users=["eve", "fay"])
    assert_same(found, trained(name))
    users = ["user-03", "user-07"]
    pd.testing.assert_frame_equal(found.recommend(users), trained(name).recommend(users))
    pd.testing.assert_frame_equal(found.similar_users(users[0]), trained(name).similar_users(users[0]))


@doors
def test_an_item_that_came_later_is_solved_without_who_is_gone(name, tmp_path):
    both = model(name, *NEW)
    expected, tolerance = model(name, *NEW[2:]), 1e-6 if name in HELD else 0.1
    assert_same(copy.copy(both).forget(users="eve"), expected, tolerance)
    loaded = air_recsys.load(both.save(tmp_path / "model.air"))
    assert_same(loaded.forget(users="eve"), expected, tolerance)
    assert_same(both.forget(items="new item", users="fay"), model(name, NEW[0]), tolerance)


@doors
def test_a_user_is_solved_again_from_the_pairs_that_are_left(name):
    own = ratings()[ratings().user == "user-03"]
    absent = next(item for item in ITEMS if item not in set(own.item))
    pair = ("user-03", absent)
    expected = model(name, *own.head(1).itertuples(index=False))  # solved from all of its own
    assert_same(model(name, (*pair, 5.0)).forget(pairs=[pair]), expected, 1e-6 if name in HELD else 0.1)


@doors
def test_users_of_the_training_go_and_all_others_are_held(name):
    before, gone = trained(name), ["user-03", "user-11"]
    found = model(name).forget(users=gone)
    left = [user for user in USERS if user not in gone]
    assert found.interactions_.user_ids.tolist() == left
    np.testing.assert_array_equal(found.item_factors_, before.item_factors_)
    rows = before.interactions_.users.lookup(left)
    np.testing.assert_allclose(found.user_factors_, before.user_factors_[rows], atol=1e-6)
    if name != "likes":  # whose degrees and counts follow
        np.testing.assert_array_equal(found.predict(left, "item-01"), before.predict(left, "item-01"))
    graphs = found.user_graph_, found.learned_graph(found._fitted(), "user")
    assert all(graph is None or graph.ids.tolist() == left for graph in graphs)
    assert found.rating_scale_ == before.rating_scale_


@doors
def test_all_at_once_and_a_user_without_a_pair_left(name):
    own = ratings()[(ratings().user == "user-04") & (ratings().item != "item-05")]
    found = model(name).forget(users="user-03", items=["item-05"], pairs=own)
    data = found.interactions_
    assert (data.n_users, data.n_items) == (len(USERS) - 1, len(ITEMS) - 1)
    assert "user-04" not in set(data.to_frame()["user"])
    assert np.isfinite(found.predict("user-04", data.item_ids)).all()
    assert len(found.recommend("user-04", n=3)) == 3
    found.partial_fit(table(NEW))
    assert len(found.recommend(["eve", "user-04"], n=2)) == 4


@pytest.mark.parametrize("new", [BiasModel, partial(IterativeSVD, rank=2, random_state=0)])
def test_baselines_are_fitted_again(new):
    found = new().fit(ratings()).forget(users="user-03")
    assert_same(found, new().fit(ratings()[ratings().user != "user-03"]), 1e-9)


# -------------------------------------------------------------------- no trace


def known() -> dict[str, Any]:
    """A model with all that a training can be told."""
    return {
        "user_features": pd.DataFrame({"age": np.arange(30.0)}, index=USERS),
        "item_features": pd.DataFrame({"year": np.arange(20.0)}, index=ITEMS),
        "user_similarity": pd.DataFrame(np.eye(30) + 0.1, index=USERS, columns=USERS),
    }


def rich(name: str) -> Any:
    told = {"timestamp": np.arange(len(ratings())), "weight": 1 + np.arange(len(ratings())) / 1e4}
    if name == "likes":
        del told["weight"]
    data = Interactions.from_frame(ratings().assign(**told), **{column: column for column in told})
    if name in ("variational", "langevin"):
        return DOORS[name](time="drift").fit(data, **known())
    if name == "DirichletDMF":
        pairs = SimilarityGraph(np.ones((30, 30)) - np.eye(30), USERS, "user")
        return DOORS[name](user_graph=pairs, item_graph=np.ones((20, 20)) - np.eye(20)).fit(data)
    if name == "snapshots":
        return by_paper(n_epochs=10, snapshot_epochs=(0, 5), init_std=0.1, **CPU).fit(data)
    return DOORS[name]().fit(data, **(known() if name in ("adam", "completion", "interactions") else {}))


def first_of(model: Any) -> Interactions:
    """The first rating of a model's data, with its time and weight."""
    frame = model.interactions_.to_frame().head(1)
    return Interactions.from_frame(frame, **{name: name for name in ("timestamp", "weight") if name in frame})


@pytest.mark.parametrize("name", [*DOORS, "snapshots"])
def test_no_trace_is_left_in_the_model_and_its_file(name, tmp_path):
    own = rich(name)
    if own.user_graph_ is not None:
        own.user_graph_ = own.user_graph_.with_attributes(pd.DataFrame({"user": USERS, "name": USERS}), "name")
    for ask in (own.recommend, own.similar_users, lambda user: own.explain(user, "item-05")):  # fills the caches
        ask("user-03")
    own.partial_fit(first_of(own))
    gone = own.interactions_.to_frame().query("user == 'user-03' or item == 'item-05'")
    if name not in ("likes", "snapshots"):
        own.predict_interval("user-03", "item-05")
    make(own, None, {"forget": {"users": ["user-03"], "items": ["item-05"]}})  # as a service does
    for content in (pickle.dumps(own), own.save(tmp_path / "model.air").read_bytes()):
        assert b"user-03" not in content
        assert b"item-05" not in content
        assert b"user-04" in content
    left = own.interactions_
    assert not np.isin(left.timestamps, gone["timestamp"]).any()
    assert left.weights is None or not np.isin(left.weights, gone["weight"]).any()
    if (features := left.user_features) is not None:
        ages = known()["user_features"].loc[left.user_ids, "age"]
        np.testing.assert_array_equal(features.values[:, 0].argsort(), ages.to_numpy().argsort())
    loaded = air_recsys.load(tmp_path / "model.air")
    np.testing.assert_array_equal(scores(loaded), scores(own))
    for each in (own, loaded):
        assert each.similar_users("user-04") is not None
        each.explain("user-04", "item-06")
        each.partial_fit(first_of(each))
        assert name == "likes" or each.knows_deviations_ == (name in ("variational", "langevin"))
    with pytest.raises(UnknownIdError):
        own.similar_users("user-03")
    own.fit(left)  # as do graphs that were given


def test_graphs_that_were_given_grow_with_users_and_items(tmp_path):
    own = rich("DirichletDMF").partial_fit(table(NEW))
    for each in (own, air_recsys.load(own.save(tmp_path / "model.air"))):
        low, high = each.predict_interval(["eve", "user-03"], "new item")
        assert (low < high).all()
        each.fit(each.interactions_)


def test_the_change_over_time_of_a_user_goes_with_it():
    own = rich("variational")
    when = {"timestamps": np.full(len(USERS) - 2, 100.0)}
    left = [user for user in USERS if user not in ("user-03", "user-17")]
    before = own.predict(left, "item-05", return_std=True, **when)
    after = own.forget(users=["user-03", "user-17"]).predict(left, "item-05", return_std=True, **when)
    np.testing.assert_array_equal(before, after)
    first = ratings().index[ratings().user.isin(["user-00", "user-01"])]
    own.forget(users=["user-00", "user-01"])
    assert own._fitted().drift.span == (len(first), len(ratings()) - 1)


# -------------------------------------------------------------------- input


PAIR = {"user": ["user-03"], "item": [ratings().query("user == 'user-03'").item.iloc[0]]}


@pytest.mark.parametrize(
    "pairs",
    [
        pd.DataFrame(PAIR),
        pd.DataFrame({"rating": [7.0], "movieId": PAIR["item"], "userId": PAIR["user"]}),
        [(PAIR["user"][0], PAIR["item"][0])],
        np.array([[PAIR["user"][0], PAIR["item"][0]]]),
        zip(PAIR["user"], PAIR["item"], strict=True),
        Interactions.from_frame(pd.DataFrame(PAIR), rating=None),
    ],
    ids=["table", "other names", "list", "array", "iterator", "Interactions"],
)
def test_pairs_in_any_form(pairs):
    left = model("variational").forget(pairs=pairs).interactions_.to_frame()
    assert len(left) == len(ratings()) - 1
    assert not ((left.user == PAIR["user"][0]) & (left.item == PAIR["item"][0])).any()


@pytest.mark.parametrize("name", ["variational", "likes"])
@pytest.mark.parametrize(
    ("gone", "error", "message"),
    [
        ({}, DataError, "expected users, items or pairs to forget, found none"),
        ({"users": [], "pairs": []}, DataError, "expected users, items or pairs"),
        ({"users": ["user-03", "nobody"]}, UnknownIdError, "nobody"),
        ({"items": 5}, UnknownIdError, "its ids are text"),
        ({"users": USERS}, DataError, "expected ratings that are left, found none"),
        ({"items": ITEMS}, DataError, "expected ratings that are left"),
        ({"pairs": [("user-03", "nothing")]}, UnknownIdError, "nothing"),
        ({"pairs": pd.DataFrame({"user": ["user-03"]})}, DataError, "the columns user and item"),
        ({"pairs": "ab"}, DataError, "expected pairs of a user and an item"),
        ({"pairs": ["ab", "cd"]}, DataError, "expected pairs of a user and an item"),
        ({"pairs": 5}, DataError, "expected pairs of a user and an item"),
        ({"pairs": Interactions.from_dense([[1.0]])}, UnknownIdError, "its ids are text"),
    ],
)
def test_bad_input_changes_nothing(name, gone, error, message):
    own = model(name)
    before = own._fitted()
    with fails(error, message):
        own.forget(**gone)
    assert own._fitted() is before


def test_a_pair_that_is_not_there_and_models_that_cannot():
    absent = next(item for item in ITEMS if not ((ratings().user == "user-03") & (ratings().item == item)).any())
    with fails(DataError, f"found 1 that it lacks, the first of 'user-03' and '{absent}'"):
        model("variational").forget(pairs=[("user-03", "item-00"), ("user-03", absent)])
    with pytest.raises(NotFittedError):
        AIR.for_ratings().forget(users=1)
    tied = by_paper(n_epochs=5, transforms=(("columns", 1e-4, 2),), init_std=0.1, **CPU).fit(ratings())
    with fails(ParameterError, "fit the model anew"):
        tied.forget(users="user-03")


# -------------------------------------------------------------------- real data


@pytest.mark.parametrize("name", ["ratings", "likes"])
def test_one_in_a_hundred_of_movielens(data_root, name):
    frame = load_movielens(data_root, "100k").to_frame()[["user", "item", "rating"]]
    gone = np.random.default_rng(0).choice(frame.user.unique(), 9, replace=False)
    left = frame[~frame.user.isin(gone)]
    rare = frame.item.unique()[~np.isin(frame.item.unique(), left.item)]
    frame = frame[~frame.item.isin(rare)]
    own = AIR.for_ratings(**CPU) if name == "ratings" else AIR.for_likes(settings={}, n_steps=20, device="cpu")
    own.fit(frame)
    # All that was trained is held, and the users who stay are as they were.
    state, data = own._fitted(), Interactions.from_frame(left)
    users = state.data.users.lookup(data.user_ids)
    kept = {name: getattr(state.factors, name)[users] for name in ("user_factors", "user_biases")}
    factors = state.factors._replace(**kept)
    expected = copy.copy(own).take_state(replace(state, data=data, factors=factors, scale=state.rating_scale))
    own.forget(users=gone)
    np.testing.assert_allclose(scores(own), scores(expected), rtol=0, atol=1e-6)
