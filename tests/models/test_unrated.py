"""Users and items without ratings: the process over their features in every answer, and where there is none."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sealing import parts_of, rewrite

from air_recsys import AIR, Interactions
from air_recsys.data.features import Features
from air_recsys.datasets import load_movielens, load_movielens_items
from air_recsys.metrics import rmse
from air_recsys.models.unrated import Unrated, process_of_unrated

N_USERS, N_ITEMS, N_NEW = 80, 60, 5
KINDS = ("variational", "langevin", "drift", "weights", "no item graph")
NEITHER = (None, None)


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Features of users and items, the last of each without ratings."""
    rng = np.random.default_rng(1)
    groups, kinds = rng.integers(0, 4, N_USERS + N_NEW), rng.integers(0, 6, N_ITEMS + N_NEW)
    users = pd.DataFrame({"group": [f"g{each}" for each in groups]}, index=[f"u{n}" for n in range(groups.size)])
    items = pd.DataFrame({"kind": [f"k{each}" for each in kinds]}, index=[f"i{n}" for n in range(kinds.size)])
    return users, items


def ratings(tastes: float = 0.9) -> pd.DataFrame:
    """Tastes of each user for kinds, and of each group for items, which few factors do not hold."""
    rng, (users, items) = np.random.default_rng(2), tables()
    groups, kinds = (table.iloc[:, 0].str[1:].astype(int).to_numpy() for table in (users, items))
    scores = 5 + tastes * rng.standard_normal((N_USERS, 6))[:, kinds[:N_ITEMS]]
    scores = scores + tastes * rng.standard_normal((4, N_ITEMS))[groups[:N_USERS]]
    user, item = np.nonzero(rng.random(scores.shape) < 0.4)
    values = scores[user, item] + 0.4 * rng.standard_normal(user.size)
    frame = pd.DataFrame({"user": users.index[user], "item": items.index[item], "rating": values.clip(0, 10)})
    return frame.assign(timestamp=rng.integers(0, 10**6, len(frame)), weight=rng.uniform(0.5, 2, len(frame)))


@cache
def model(kind: str = "variational") -> AIR:
    """A model with a process of both sides; not to be changed."""
    options: dict[str, Any] = {"n_factors": 1, "random_state": 0, "device": "cpu", "graph_residuals": 8}
    options |= {"langevin": {"solver": "langevin", "n_sweeps": 20}, "drift": {"time": "drift"}}.get(kind, {})
    read = {"drift": {"timestamp": "timestamp"}, "weights": {"weight": "weight"}}.get(kind, {})
    data = Interactions.from_frame(ratings()[["user", "item", "rating", *read]], **read)
    users, items = tables()
    fitted = AIR.for_ratings(**options).fit(data, user_features=users, item_features=items)
    strength = 0.0 if kind == "no item graph" else 8.0
    unrated = Unrated(0.1, 0.05, 2.0, 0.9), Unrated(0.2, 0.1, 1.5, 0.8)
    return fitted.take_state(replace(fitted._fitted(), residual_strength=strength, unrated=unrated))


def ids(fitted: AIR) -> tuple[np.ndarray, np.ndarray]:
    """The users and the items of every pair."""
    users, items = fitted.interactions_.user_ids, fitted.interactions_.item_ids
    return np.repeat(users, items.size), np.tile(items, users.size)


def without(fitted: AIR) -> AIR:
    return copy.copy(fitted).take_state(replace(fitted._fitted(), unrated=NEITHER))


def test_processes_are_found_where_they_are_planted() -> None:
    users, items = tables()
    found = AIR.for_ratings(n_factors=1, random_state=0, device="cpu").fit(
        ratings()[["user", "item", "rating"]], user_features=users, item_features=items
    )
    of_users, of_items = found._fitted().unrated
    assert of_users is not None
    assert of_items is not None
    assert min(of_users.alike, of_items.alike) > 0.1
    assert max(of_users.reach, of_items.reach) < 0.95
    truth = AIR.for_ratings(n_factors=1, random_state=0, device="cpu", graph_residuals=0).fit(
        ratings(0.0)[["user", "item", "rating"]], user_features=users, item_features=items
    )
    assert truth._fitted().unrated == NEITHER


@pytest.mark.parametrize("kind", KINDS)
def test_all_answers_have_the_score_of_predict(kind: str) -> None:
    fitted = model(kind)
    for user, item in (("u3", f"i{N_ITEMS}"), (f"u{N_USERS}", "i3"), (f"u{N_USERS}", f"i{N_ITEMS + 1}")):
        score = fitted.predict([user], [item])[0]
        listed = fitted.recommend(user, n=N_ITEMS + N_NEW, rank_by="rating").set_index("item")["score"]
        assert listed[item] == pytest.approx(score, abs=1e-5)
        explained = fitted.explain(user, item)
        assert (explained.score, explained.total()) == pytest.approx((score, score), abs=1e-6)
        places = fitted.interactions_.users.place(user), fitted.interactions_.items.place(item)
        added = fitted.carried_.scores(*(np.array([each]) for each in places))[0]
        assert fitted.carried_.score(*places) == pytest.approx(added, abs=1e-12)
        assert fitted.carried_.rows(np.array(places[:1]))[0, places[1]] == pytest.approx(added, abs=1e-12)
        if user == "u3":
            assert explained.near_items.total == pytest.approx(added)


@pytest.mark.parametrize("kind", KINDS)
def test_what_has_ratings_stays_to_the_bit(kind: str) -> None:
    fitted, plain, pairs = model(kind), without(model(kind)), ids(model(kind))
    new = np.isin(pairs[0], tables()[0].index[N_USERS:]) | np.isin(pairs[1], tables()[1].index[N_ITEMS:])
    found, before = (each.predict(*pairs, return_std=True) for each in (fitted, plain))
    for one, other in zip(found, before, strict=True):
        np.testing.assert_array_equal(one[~new], other[~new])
        assert np.abs(one[new] - other[new]).max() > 0.05


@pytest.mark.parametrize("kind", ["variational", "weights"])
def test_scores_are_those_of_a_dense_solve(kind: str) -> None:
    state = model(kind)._fitted()
    data, process, known = state.data, state.unrated[1], state.data.item_features
    assert process is not None
    own = np.flatnonzero(data.user_index == 7)
    inputs, new = process.inputs(known), np.arange(N_ITEMS, N_ITEMS + N_NEW)
    places = [data.items.place(f"i{n}") for n in new]
    weights = np.ones(own.size) if data.weights is None else data.weights[own]
    matrix = inputs[data.item_index[own]] @ inputs[data.item_index[own]].T + np.diag(1 / weights)
    coefficients = np.linalg.solve(matrix, state.residuals_of_unrated("item")[own])
    expected = inputs[places] @ inputs[data.item_index[own]].T @ coefficients
    found = state.carried.scores(np.full(N_NEW, 7), np.array(places))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_without_any_rating_of_a_side_residuals_are_those_of_its_features() -> None:
    state = model()._fitted()
    place = state.data.items.place(f"i{N_ITEMS}")
    expected = state.equations.unrated(state, "item", state.data.item_features.numbers())
    np.testing.assert_allclose(state.factors.item_factors[place], expected.factors[place], atol=1e-6)
    np.testing.assert_allclose(state.factors.item_biases[place], expected.biases[place], atol=1e-6)


@pytest.mark.parametrize("kind", ["variational", "langevin", "no item graph"])
def test_new_rows_have_the_scores_that_partial_fit_gives_them(kind: str) -> None:
    fitted, users = model(kind), pd.DataFrame({"group": ["g1", "g2"]}, index=["n1", "n2"])
    items = pd.DataFrame({"kind": ["k1", "k2"]}, index=["m1", "m2"])
    near = 0.01 if kind == "langevin" else 1e-5  # a user who is solved again has other draws
    new = pd.DataFrame({"user": ["n1"] * 3, "item": ["i1", "i2", "i3"], "rating": [2.0, 9.0, 3.0]})
    grown = copy.deepcopy(fitted).partial_fit(new, user_features=users)
    folded = fitted.fold_in(new, features=users)
    others = np.setdiff1d(fitted.interactions_.item_ids, new["item"])  # these also know what n1 says of them
    pairs = np.repeat(["n1", "n2"], others.size), np.tile(others, 2)
    np.testing.assert_allclose(folded.predict(*pairs), grown.predict(*pairs), atol=near)
    assert np.abs(folded.predict(*pairs) - without(fitted).fold_in(new, features=users).predict(*pairs)).max() > 0.05
    again = ratings()[["user", "item", "rating"]].query("user == 'u0'").iloc[:1]
    grown = copy.deepcopy(fitted).partial_fit(again, item_features=items)
    folded = fitted.fold_in(None, features=items, side="item")
    others = np.setdiff1d(fitted.interactions_.user_ids, ["u0"])  # who is solved again
    pairs = np.repeat(others, 2), np.tile(["m1", "m2"], others.size)
    np.testing.assert_allclose(folded.predict(*pairs), grown.predict(*pairs), atol=near)
    plain = without(fitted).fold_in(None, features=items, side="item")
    assert np.abs(folded.predict(*pairs) - plain.predict(*pairs)).max() > 0.05


def test_with_its_first_rating_an_item_has_no_process_any_more() -> None:
    new = pd.DataFrame({"user": ["u0"], "item": [f"i{N_ITEMS}"], "rating": [5.0]})
    asked = [f"u{n}" for n in range(1, N_USERS)], [f"i{N_ITEMS}"] * (N_USERS - 1)
    found, plain = (copy.deepcopy(each).partial_fit(new).predict(*asked) for each in (model(), without(model())))
    np.testing.assert_array_equal(found, plain)


def test_files_keep_scores_to_the_bit_and_old_ones_load(tmp_path: Any) -> None:
    fitted, pairs = model(), ids(model())
    path = fitted.save(tmp_path / "model.air")
    np.testing.assert_array_equal(AIR.load(path).predict(*pairs), fitted.predict(*pairs))
    attributes = json.loads(parts_of(path)[0]["attributes"])
    attributes.pop("unrated")
    rewrite(path, {"attributes": json.dumps(attributes)})
    np.testing.assert_array_equal(AIR.load(path).predict(*pairs), without(fitted).predict(*pairs))


@pytest.mark.parametrize(
    "wrong", [[1.0], [1, 1, 0, 1], [-1, 1, 1, 1], [float("nan"), 1, 1, 1], [1, 1, float("inf"), 1]]
)
def test_a_file_with_other_numbers_is_refused(wrong: list[float]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Unrated.of_sides([None, wrong])


def test_features_that_are_all_equal_change_nothing() -> None:
    known = model()._fitted().data.item_features
    equal = Features(known.encoding, np.ones_like(known.values))
    rows, columns = np.repeat(np.arange(9), 5), np.tile(np.arange(5), 9)
    nothing = lambda row, columns, places: np.zeros((columns.size,) * 2)  # noqa: E731
    assert process_of_unrated((rows, columns), np.repeat(np.arange(9.0), 5), None, equal, nothing) is None


def test_without_residuals_in_scores_there_is_none() -> None:
    found = AIR.for_ratings(n_factors=1, random_state=0, device="cpu", graph_residuals=0)
    assert found.fit(ratings()[["user", "item", "rating"]], item_features=tables()[1])._fitted().unrated == NEITHER


def test_movielens_items_without_ratings_are_predicted_better_and_in_their_intervals(data_root) -> None:
    data, known = load_movielens(data_root, "100k"), load_movielens_items(data_root)[["genres"]]
    hidden = np.isin(data.item_ids, np.random.RandomState(3).permutation(data.item_ids)[:168])[data.item_index]
    fitted = AIR.for_ratings(random_state=0, device="cpu").fit(data.select(~hidden), item_features=known)
    test = data.select(hidden)
    pairs = test.user_ids[test.user_index], test.item_ids[test.item_index]
    errors = [rmse(test.ratings, each.predict(*pairs)) for each in (fitted, without(fitted))]
    assert errors[0] < errors[1] - 0.01
    low, high = fitted.predict_interval(*pairs)
    assert 0.88 < np.mean((low <= test.ratings) & (test.ratings <= high)) < 0.92
