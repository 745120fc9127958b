"""Lists from ratings go by taking and liking: against a dense calculation, a refit, files and models without."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from air_recsys import AIR, DMF, BiasModel, Interactions, load
from air_recsys.data.scales import like_of
from air_recsys.exceptions import DataWarning, ParameterError
from air_recsys.serving.service import Service

N_USERS, N_ITEMS, LIKED = 60, 40, 4


def made(seed: int = 0) -> pd.DataFrame:
    """Ratings of 1 to 5 by two groups, each of which takes what it likes and what is popular."""
    rng = np.random.default_rng(seed)
    near = (np.arange(N_USERS)[:, None] % 2 == np.arange(N_ITEMS) % 2).astype(float)
    taste = 2.2 + 1.5 * near + 0.5 * rng.standard_normal(N_ITEMS)
    chance = 0.75 / (1 + np.exp(2 - 2.5 * near - rng.standard_normal(N_ITEMS)))
    users, items = np.nonzero(rng.random(chance.shape) < chance + 0.1)
    ratings = (taste[users, items] + 0.7 * rng.standard_normal(users.size)).round().clip(1, 5)
    names = {"user": [f"u{each:02}" for each in users], "item": [f"i{each:02}" for each in items]}
    return pd.DataFrame(names | {"rating": ratings})


def fitted(table: pd.DataFrame) -> AIR:
    return AIR.for_ratings(n_factors=3, n_sweeps=6, random_state=0, device="cpu").fit(table)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    found = made()
    assert len(found) >= 1000
    return found


@pytest.fixture(scope="module")
def whole(table: pd.DataFrame) -> AIR:
    """With lists, which no test changes."""
    return fitted(table).learn_lists()


def lists(model: AIR, users: object = None, n: int = 5, **how: object) -> pd.DataFrame:
    return model.recommend(model.interactions_.user_ids if users is None else users, n, **how)


def standardised(table: pd.DataFrame, data: Interactions) -> np.ndarray:
    """The scores z by dense algebra: pairs count 1 with a rating of 5, half with one of 1, over their user's mean."""
    strengths = np.zeros((data.n_users, data.n_items))
    strengths[data.user_index, data.item_index] = 1 - 0.5 * (5 - data.ratings) / 4
    counts = np.count_nonzero(strengths, axis=1)[:, None]
    strengths *= counts / strengths.sum(axis=1, keepdims=True)
    gram = (strengths / np.maximum(counts, 1) ** 0.5).T @ strengths  # exponent 0.5 of the users
    own = gram.diagonal()
    degrees = 0.5 * own + 0.5 * own.mean()
    products = gram / np.sqrt(np.outer(degrees, degrees))
    weights = products @ np.linalg.inv(products + 8 * np.eye(data.n_items))
    scores = strengths * degrees**-0.25 @ weights * degrees**0.25
    return (scores - scores.mean(axis=1, keepdims=True)) / scores.std(axis=1, keepdims=True)


@pytest.mark.parametrize(("by", "weighs"), [("both", True), ("taken", False), ("auto", True)])
def test_lists_are_those_of_a_dense_calculation(table: pd.DataFrame, whole: AIR, by: str, weighs: bool):
    data = whole.interactions_
    pairs = np.repeat(data.user_ids, data.n_items), np.tile(data.item_ids, data.n_users)
    liking = whole.predict_proba(*pairs)[:, whole.rating_values_ >= LIKED].sum(axis=1).reshape(data.n_users, -1)
    weight = float(whole.lists_line_.partition("weight of liking ")[2].partition(":")[0])
    scores = standardised(table, data) + weighs * weight * np.log(liking)
    scores[data.user_index, data.item_index] = -np.inf
    found = lists(whole, rank_by=by)
    for place, user in enumerate(data.user_ids):
        own = found[found["user"] == user]
        items = data.items.lookup(own["item"].to_numpy())
        assert items.tolist() == np.argsort(-scores[place], kind="stable")[: items.size].tolist()
        np.testing.assert_allclose(own["liking"], liking[place, items])
        np.testing.assert_allclose(own["score"], whole.predict(user, own["item"]))
    assert found["taking"].between(0, 1).all()


def test_lists_by_rating_are_those_of_before(whole: AIR, table: pd.DataFrame):
    """By the rating nothing is learned, and there are no further columns."""
    model = fitted(table)
    found = lists(model, rank_by="rating")
    assert (model._fitted().taking, list(found.columns)) == (None, ["user", "item", "score", "rank", "source"])
    assert (found.groupby("user")["score"].diff().dropna() <= 0).all()
    pd.testing.assert_frame_equal(found, lists(whole, rank_by="rating"))
    assert (whole.lists_line_[:13], whole.lists_line_[15:33]) == ("lists by both", "like: rating >= 4 ")


def test_auto_is_by_rating_where_little_is_known(table: pd.DataFrame):
    few = fitted(table.iloc[:900])
    assert (few.lists_line_, few._fitted().taking) == ("lists by rating", None)
    pd.testing.assert_frame_equal(lists(few), lists(few, rank_by="rating"))
    found = lists(few, rank_by="both")
    assert found["taking"].isna().all()
    assert found["liking"].between(0, 1).all()
    other = DMF.for_ratings(n_epochs=3, random_state=0, device="cpu").fit(table)
    assert "liking" not in lists(other)
    assert lists(other, rank_by="both")["liking"].between(0, 1).all()


def test_lists_are_learned_once_the_same_and_kept(whole: AIR, table: pd.DataFrame, tmp_path):
    model, found = fitted(table), lists(whole)
    before = load(model.save(tmp_path / "before.air"))
    after = load(whole.save(tmp_path / "after.air"))
    assert before._fitted().taking is None
    assert after._fitted().taking is not None
    for same in (model, before, after, pickle.loads(pickle.dumps(whole))):
        pd.testing.assert_frame_equal(lists(same), found)
    assert after.lists_line_ == whole.lists_line_
    assert after.save(tmp_path / "again.air").read_bytes() == (tmp_path / "after.air").read_bytes()


def test_shorter_lists_and_candidates(whole: AIR):
    data = whole.interactions_
    every = lists(whole, n=N_ITEMS, exclude_seen=False)
    assert len(every) == data.n_users * data.n_items
    pd.testing.assert_frame_equal(
        lists(whole, n=4, exclude_seen=False), every[every["rank"] <= 4].reset_index(drop=True)
    )
    some = data.item_ids[::3].tolist()
    expected = every[every["item"].isin(some)]
    for how in ({"items": some}, {"exclude": sorted(set(data.item_ids) - set(some))}):
        found = lists(whole, n=N_ITEMS, exclude_seen=False, **how)
        assert found["item"].tolist() == expected["item"].tolist()
    assert lists(whole, items=[]).empty
    user = data.user_ids[3]
    best, one = whole.best_items(user, 5), lists(whole, [user])
    assert best.items.tolist() == one["item"].tolist()
    np.testing.assert_array_equal(best.liking, one["liking"])
    rows = Service(whole).recommend(user, 5)["items"]
    assert [(row["item"], row["liking"]) for row in rows] == list(zip(one["item"], one["liking"], strict=True))


def test_unknown_users_get_what_is_liked_most(whole: AIR, table: pd.DataFrame):
    with pytest.warns(DataWarning, match="what is popular is listed"):
        both, taken = (lists(whole, ["nobody"], rank_by=by) for by in ("both", "taken"))
    assert both["item"].iloc[0] == table.loc[table["rating"] >= LIKED, "item"].value_counts().index[0]
    counts = table["item"].value_counts()
    assert counts[taken["item"]].tolist() == sorted(counts, reverse=True)[:5]
    np.testing.assert_allclose(taken["taking"], counts[taken["item"]] / N_USERS)


def test_new_ratings_count_at_once(whole: AIR, table: pd.DataFrame):
    """A folded user has the list that it has after `partial_fit`; what is forgotten again has changed nothing."""
    own = table[table["user"] == "u05"].assign(user="eve")
    alone = whole.fold_in(own).recommend("eve", 5)
    model = fitted(table).learn_lists().partial_fit(own)
    pd.testing.assert_frame_equal(model.recommend("eve", 5), alone, rtol=0.02)  # thresholds are of one user more
    assert alone["item"].tolist() == lists(whole, ["u05"])["item"].tolist()
    np.testing.assert_array_equal(model.forget(users="eve").recommend("u07", 5)["item"], lists(whole, ["u07"])["item"])
    new = pd.DataFrame({"user": ["u00", "u02", "u04", "u06"], "item": "new", "rating": 5.0})
    grown = model.partial_fit(new)
    others = [f"u{each:02}" for each in range(N_USERS) if f"u{each:02}" not in set(new["user"])]
    listed = lists(grown, others, n=N_ITEMS)
    ranks = listed[listed["item"] == "new"].set_index("user")["rank"]
    assert ranks[[user for user in others if int(user[1:]) % 2 == 0]].mean() < ranks.mean()
    folded = whole.fold_in(new, side="item").recommend(others, 1)
    assert folded["item"].unique().tolist() == ["new"]


def test_what_is_forgotten_leaves_files(whole: AIR, table: pd.DataFrame, tmp_path):
    model = fitted(table).learn_lists()
    pairs = table[table["user"] == "u01"].iloc[:3]
    left = model.forget(pairs=pairs)
    assert set(pairs["item"]) <= set(lists(left, ["u01"], n=N_ITEMS)["item"])
    found = lists(left)
    pd.testing.assert_frame_equal(lists(load(left.save(tmp_path / "left.air"))), found)
    data = left.interactions_
    assert data.n_ratings == len(table) - 3


def test_bad_questions(whole: AIR):
    with pytest.raises(ParameterError, match="rank_by must be one of 'auto', 'both', 'rating', 'taken', found 'x'"):
        whole.recommend("u00", rank_by="x")
    with pytest.raises(TypeError):
        BiasModel().fit(made()).recommend("u00", rank_by="both")


def test_a_like_is_what_is_not_below_the_mean():
    assert like_of(np.array([1.0, 1.0, 1.0, 5.0])) == 5
    assert like_of(np.array([0.3] * 7)) == 0.3
