"""What counts as ids at the doors of a model: any iterable is a list of them, and other types are named."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import air_recsys
from air_recsys import AIR, BiasModel, Interactions
from air_recsys.exceptions import DataError, DataWarning, ParameterError, UnknownIdError
from air_recsys.models import GraphRanker

RATINGS = np.array([[5, 3, np.nan, 1], [4, np.nan, 2, 1], [1, 1, np.nan, 5], [np.nan, 1, 5, 4.0]])
ASKED = {
    "list": lambda: [2, 0],
    "tuple": lambda: (2, 0),
    "array": lambda: np.array([2, 0]),
    "Series": lambda: pd.Series([2, 0]),
    "Index": lambda: pd.Index([2, 0]),
    "frame": lambda: pd.DataFrame({"user": [2, 0]}),
    "generator": lambda: (each for each in (2, 0)),
    "map": lambda: map(int, "20"),
    "keys": lambda: {2: "a", 0: "b"}.keys(),
    "range": lambda: range(2, -1, -2),
}


@pytest.fixture(scope="module")
def models():
    ratings = Interactions.from_dense(RATINGS, [0, 1, 2, 3], ["a", "b", "c", "d"])
    likes = ratings.select(ratings.ratings > 2)
    return {
        "ratings": AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(ratings),
        "baseline": BiasModel().fit(ratings),
        "likes": GraphRanker(settings={}, device="cpu").fit(likes),
    }


@pytest.mark.parametrize("kind", ["ratings", "baseline", "likes"])
@pytest.mark.parametrize("form", ASKED)
def test_any_iterable_is_a_list_of_ids(kind, form, models):
    model = models[kind]
    assert model.recommend(ASKED[form](), 2)["user"].unique().tolist() == [2, 0]
    table = model.predict_table(ASKED[form](), (each for each in "ab"))
    assert table[["user", "item"]].to_numpy().tolist() == [[2, "a"], [0, "b"]]
    assert model.predict(ASKED[form](), ["a", "b"]).tolist() == table["score"].tolist()


@pytest.mark.parametrize("kind", ["ratings", "baseline", "likes"])
def test_candidates_are_any_iterable_too(kind, models):
    allowed = models[kind].recommend([0], 4, exclude_seen=False, items={"a", "c"}, exclude=iter("c"))
    assert allowed["item"].tolist() == ["a"]


@pytest.mark.parametrize("kind", ["ratings", "baseline", "likes"])
@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ("2", UnknownIdError, "its ids are integers, such as 0, and these are text"),
        (["2", 0], UnknownIdError, "its ids are integers, such as 0, and these are text"),
        (pd.DataFrame({"user": [0], "item": ["a"]}), DataError, "user ids in one column, found the columns"),
        (np.array([[0, 1]]), DataError, "user ids in one row, found an array of shape"),
        ({0: "a"}, DataError, "expected a user id or several, found a dict"),
        (None, DataError, "expected user ids, found 1 missing, the first at position 0"),
        (pd.Series([2.0, np.nan]), DataError, "expected user ids, found 1 missing, the first at position 1"),
    ],
)
def test_what_is_no_list_of_known_types_is_named(kind, asked, error, message, models):
    with pytest.raises(error, match=message):
        models[kind].recommend(asked)


@pytest.mark.parametrize("kind", ["ratings", "baseline", "likes"])
def test_one_foreign_id_does_not_refuse_the_others(kind, models):
    with pytest.warns(DataWarning, match="1 of 2 pairs"):
        found = models[kind].predict([0, "x"], ["a", "a"])
    assert np.isfinite(found).all()
    with pytest.raises(UnknownIdError, match="its ids are text, such as 'a', and these are integers"):
        models[kind].predict([0, 1], [3, 4])


@pytest.mark.parametrize("kind", ["ratings", "baseline", "likes"])
@pytest.mark.parametrize(("asked", "told"), [([8, 9], "2 of 2"), ([8], "1 of 1"), ([0, 8], "1 of 2")])
def test_lists_of_unknown_users_are_told(kind, asked, told, models):
    with pytest.warns(DataWarning, match=rf"{told} users are unknown, such as 8 \(known are such as 0\): what is pop"):
        found = models[kind].recommend(asked, 1)
    assert found["source"].tolist() == ["model" if user == 0 else "popular" for user in asked]


@pytest.mark.parametrize("kind", ["ratings", "baseline", "likes"])
def test_a_table_of_pairs_stands_for_users_and_items(kind, models):
    model = models[kind]
    table = model.interactions_.to_frame()
    assert model.predict(table).tolist() == model.predict(table["user"], table["item"]).tolist()
    with pytest.raises(DataError, match="users and items, or a table with the columns user and item, found one ndarr"):
        model.predict(table.to_numpy())
    with pytest.raises(DataError, match="expected a table with the columns user and item, found"):
        model.predict(table[["user", "rating"]])


@pytest.mark.parametrize("kind", ["ratings", "baseline", "likes"])
def test_pickles_of_other_versions_are_told(kind, models, monkeypatch):
    content = pickle.dumps(models[kind])
    assert pickle.loads(content).predict(0, "a") == models[kind].predict(0, "a")
    written = air_recsys.__version__
    monkeypatch.setattr("air_recsys.__version__", "9.9")
    with pytest.warns(DataWarning, match=f"that air_recsys {written} pickled is read by 9.9: fit it"):
        assert pickle.loads(content).predict(0, "a") == models[kind].predict(0, "a")


@pytest.mark.parametrize("kind", ["ratings", "baseline", "likes"])
def test_ratings_beside_their_pairs_are_refused_where_targets_would_stand(kind, models):
    model, table = models[kind], models[kind].interactions_.to_frame()
    for work in (model.fit, model.score):
        with pytest.raises(DataError, match="a column of the table and no y, found a y"):
            work(table[["user", "item"]], table["rating"])


def test_a_score_of_means_and_of_another_scale_is_told(models):
    model = models["baseline"]
    table = model.interactions_.to_frame()
    with pytest.warns(DataWarning, match="12 of 12 pairs have an unknown user or item and count with means: shuffle"):
        model.score(table.assign(user=table["user"] + 9))
    with pytest.warns(DataWarning, match=r"test ratings are in 20..100, those of the training in 1..5: likes, or"):
        model.score(table.assign(rating=table["rating"] * 20))


@pytest.mark.parametrize("kind", ["ratings", "baseline", "likes"])
def test_a_column_of_flags_is_no_flag(kind, models):
    with pytest.raises(ParameterError, match="exclude_seen must be one of True, False"):
        models[kind].recommend([0, 1], exclude_seen=pd.Series([True, False]))
    with pytest.raises(ParameterError, match="unknown must be one of"):
        models[kind].predict(0, "a", unknown=np.array(["mean", "warn"]))


def test_an_unknown_pair_of_likes_is_in_the_unit_of_lists(models):
    model = models["likes"]
    counts = model.interactions_.to_frame()["item"].value_counts()
    assert model.predict([9, 9, 0], ["a", "zz", "zz"], unknown="mean").tolist() == [counts["a"] / 4, 0, 0]
    assert model.recommend(9, 1)["score"].tolist() == [counts.max() / 4]


def test_a_large_offset_of_the_scale_changes_nothing_but_it():
    near = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(RATINGS)
    far = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(RATINGS + 1e8)
    users, items = np.arange(4).repeat(4), np.tile(np.arange(4), 4)
    np.testing.assert_allclose(far.predict(users, items) - 1e8, near.predict(users, items), atol=0.02)
    assert len(np.unique(far.predict(users, items))) > 8


def test_what_cannot_be_kept_is_said_before_the_training():
    with pytest.raises(DataError, match="expected ratings of at most"):
        BiasModel().fit(RATINGS * 1e38)
    with pytest.raises(DataError, match=r"expected a rating of at least .*: multiply all by a number"):
        BiasModel().fit(RATINGS * 1e-40)
    pairs = Interactions.from_dense(RATINGS, [(0, "a"), (1, "b"), (2, "c"), (3, "d")])
    with pytest.warns(DataWarning, match="found tuple among the user ids: save will refuse the model"):
        BiasModel().fit(pairs)


@pytest.mark.filterwarnings("ignore:each row counts as one like")
@pytest.mark.parametrize("kind", ["ratings", "baseline", "likes"])
def test_a_test_part_has_the_ids_of_the_training(kind, models):
    model = models[kind]
    with pytest.raises(UnknownIdError, match="its ids are integers, such as 0, and these are text"):
        model.score(model.interactions_.to_frame().assign(rating=1).astype({"user": str}))
    with pytest.raises(DataError, match="expected a matrix over the 4 users of the model in their order, found 2"):
        model.score(RATINGS[:2])  # as a part of a cross-validation is


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (pd.DataFrame({"user": ["2"], "item": ["a"], "rating": [3]}), "integers, such as 0, and these are text"),
        (RATINGS, "begins with the 4 items of the model, found 4, with their numbers as ids"),
        (RATINGS[:2], "begins with the 4 users of the model, found 2"),
    ],
)
def test_new_ratings_have_ids_of_the_type_of_the_training(new, message, models):
    with pytest.raises((UnknownIdError, DataError), match=message):
        models["ratings"].partial_fit(new)


def test_positions_are_no_ids_and_flags_no_positions():
    features, ratings = pd.DataFrame({"group": ["x", "y", "x", "y"]}), Interactions.from_dense(RATINGS, [1, 2, 3, 4])
    with pytest.raises(DataError, match="expected a mask of booleans, or positions"):
        ratings.select((ratings.ratings > 3).astype(int))
    with pytest.raises(DataError, match=r"found row numbers 0\.\.3 for ids such as 4"):
        ratings.with_features(user=features)
    model = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(ratings, user_features=features.to_numpy())
    named = pd.DataFrame({0: ["x"], "age": [30]}, index=[9])
    with pytest.warns(DataWarning, match="trained without the user features .'age'.: they are not read"):
        model.partial_fit(pd.DataFrame({"user": [9], "item": [0], "rating": [5.0]}), user_features=named)
