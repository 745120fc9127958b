"""Recommendations and similarities: order, what is left out, who is unknown."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from model_cases import ITEMS, MODELS, N_ITEMS, N_USERS, USERS, dense, every_model, fitted, frame, models_with_graphs

from air_recsys import GlobalMean
from air_recsys.exceptions import ParameterError, UnknownIdError
from air_recsys.models import GraphRanker


def fails(error, message):
    return pytest.raises(error, match=re.escape(message))


def unseen(user):
    table = frame()
    return set(ITEMS) - set(table.loc[table["user"] == user, "item"])


# -------------------------------------------------------------------- recommend


@every_model
def test_recommendations_are_the_best_unseen_items(make):
    model = fitted(make)
    found = model.recommend(USERS, N_ITEMS)
    assert list(found.columns) == ["user", "item", "score", "rank", "source"]
    assert set(found["source"]) == {"model"}
    for user in USERS:
        own = found[found["user"] == user]
        assert set(own["item"]) == unseen(user)
        assert own["rank"].tolist() == list(range(1, len(own) + 1))
        assert (np.diff(own["score"]) <= 0).all()
        np.testing.assert_allclose(own["score"], model.predict(user, own["item"]), rtol=1e-5, atol=1e-6)


@pytest.mark.order
@every_model
def test_fewer_are_the_first_of_more(make):
    model = fitted(make)
    whole = model.recommend(USERS, N_ITEMS, exclude_seen=False)
    for n in (1, 4):
        first = model.recommend(USERS, n, exclude_seen=False)
        pd.testing.assert_frame_equal(first, whole[whole["rank"] <= n].reset_index(drop=True))


@every_model
def test_seen_items_come_where_asked_for(make):
    found = fitted(make).recommend(USERS, N_ITEMS, exclude_seen=False)
    assert len(found) == N_USERS * N_ITEMS
    assert set(found.loc[found["user"] == USERS[0], "item"]) == set(ITEMS)


@every_model
def test_a_user_who_has_seen_everything_gets_nothing(make):
    model = fitted(make)
    assert model.recommend(USERS[0], 3).empty
    found = model.recommend([USERS[1], USERS[0], USERS[2]], 1)
    assert found["user"].tolist() == [USERS[1], USERS[2]]


@every_model
def test_an_unknown_user_gets_what_others_rate_best_or_have(make):
    model = fitted(make)
    found = model.recommend(["nobody", USERS[1]], 3)
    items: Any = frame().groupby("item")["rating"].agg(["count", "sum"])
    if isinstance(model, GraphRanker):
        items["score"] = items["count"] / N_USERS
    else:
        items["score"] = (items["sum"] + 5 * frame()["rating"].mean()) / (items["count"] + 5)
    expected = items.sort_values(["score", "count"], ascending=False, kind="stable")[:3]
    own = found[found["user"] == "nobody"]
    assert own["source"].tolist() == ["popular"] * 3
    assert own["item"].tolist() == expected.index.tolist()
    np.testing.assert_allclose(own["score"], expected["score"])
    assert (np.diff(own["score"]) <= 0).all()
    assert set(found.loc[found["user"] == USERS[1], "source"]) == {"model"}


@every_model
def test_call_forms_of_recommend_agree(make):
    model = make().fit(dense())
    expected = model.recommend([3], 2)
    for users in (3, np.int64(3), np.array([3]), pd.Series([3]), (3,)):
        pd.testing.assert_frame_equal(model.recommend(users, 2), expected)
    assert model.recommend([], 2).empty
    assert list(model.recommend([], 2).columns) == list(expected.columns)


@pytest.mark.order
@every_model
def test_blocks_of_users_change_nothing(make, blocks_of):
    model = fitted(make)
    asked = [*USERS, "nobody", *USERS[::-1]]
    expected = model.recommend(asked, 4)
    blocks_of(3 * N_ITEMS)
    found = model.recommend(asked, 4)
    pd.testing.assert_frame_equal(found.drop(columns="score"), expected.drop(columns="score"))
    # A GraphRanker scores in single precision, whose last bits depend on the block on some processors.
    tolerance = 1e-6 if isinstance(model, GraphRanker) else 1e-9
    np.testing.assert_allclose(found["score"], expected["score"], rtol=tolerance)


@every_model
def test_lists_are_of_the_items_that_are_allowed(make):
    model = fitted(make)
    asked = [*USERS[1:4], "nobody"]
    whole = model.recommend(asked, N_ITEMS)
    some = sorted(whole["item"].unique())[::2]
    expected = whole[whole["item"].isin(some)].reset_index(drop=True)
    forms = ({"items": some}, {"items": set(some)}, {"items": pd.Index(some)}, {"exclude": _others(model, some)})
    for form in forms:
        found = model.recommend(asked, N_ITEMS, **form)
        pd.testing.assert_frame_equal(found[["user", "item", "source"]], expected[["user", "item", "source"]])
        np.testing.assert_allclose(found["score"], expected["score"], rtol=1e-6)
        assert found.groupby("user")["rank"].apply(lambda rank: rank.tolist() == [*range(1, rank.size + 1)]).all()
    both = model.recommend(asked, 2, items=some, exclude=some[0])
    assert set(both["item"]) <= set(some[1:])


@every_model
def test_nothing_allowed_gives_nothing(make):
    model = fitted(make)
    found = model.recommend([USERS[1], "nobody"], 3, exclude=model.interactions_.item_ids)
    assert found.empty
    assert list(found.columns) == ["user", "item", "score", "rank", "source"]


@every_model
def test_more_than_there_is_gives_what_there_is(make):
    model = fitted(make)
    asked = [USERS[1], "nobody"]
    pd.testing.assert_frame_equal(model.recommend(asked, 10**9), model.recommend(asked, N_ITEMS))


@every_model
def test_unknown_items_are_named(make):
    with pytest.raises(UnknownIdError, match=r"1 item id\(s\) were not in the training data: 'nosuch'; leave it out"):
        fitted(make).recommend(USERS[1], 3, items=["nosuch"])


def _others(model, some):
    return [item for item in model.interactions_.item_ids if item not in some]


@pytest.mark.parametrize(
    ("n", "message"),
    [
        (0, "n must be an integer >= 1, found 0"),
        (2.5, "n must be an integer >= 1, found 2.5"),
    ],
)
def test_n_out_of_range(n, message):
    with fails(ParameterError, message):
        GlobalMean().fit(frame()).recommend(USERS[0], n)


def test_clipped_scores_rank_as_unclipped_ones():
    """Clipping makes ties at the ends of the scale; it may change scores, never the order."""
    options = {"n_epochs": 300, "weight_decay": 1e-3, "user_graph_reg": 0.0, "item_graph_reg": 0.0}
    clipped, free = (MODELS["AIR-ratings"](clip=clip, **options).fit(frame()) for clip in (True, False))
    found, expected = (model.recommend(USERS, N_ITEMS, exclude_seen=False) for model in (clipped, free))
    assert found["item"].tolist() == expected["item"].tolist()
    np.testing.assert_allclose(found["score"], expected["score"].clip(1, 5))
    assert np.max(expected["score"]) > 5  # otherwise the test says nothing


# -------------------------------------------------------------------- similar


@every_model
def test_similar_ones_come_strongest_first_without_the_one_asked_for(make):
    model = fitted(make)
    for ids, ask, kind in ((USERS, model.similar_users, "user"), (ITEMS, model.similar_items, "item")):
        for one in ids:
            found = ask(one, 4)
            assert list(found.columns) == [kind, "weight"]
            assert one not in set(found[kind]) <= set(ids)
            assert found[kind].is_unique
            assert (np.diff(found["weight"]) <= 0).all()
            assert len(ask(one, 2)) <= 2


@models_with_graphs
def test_similar_ones_are_the_neighbors_in_the_learned_graph(make):
    model = make()
    if "pattern_graphs" in model.get_params():
        model.set_params(pattern_graphs=False)
    model.fit(frame())
    pd.testing.assert_frame_equal(model.similar_users(USERS[2], 3), model.user_graph_.neighbors(USERS[2], 3))
    pd.testing.assert_frame_equal(model.similar_items(ITEMS[2], 3), model.item_graph_.neighbors(ITEMS[2], 3))


def test_without_a_graph_similarity_is_the_cosine_of_the_factors():
    model = fitted(MODELS["DMF"])
    unit = model.item_factors_ / np.linalg.norm(model.item_factors_, axis=1, keepdims=True)
    cosine = unit @ unit[4]
    cosine[4] = -2
    order = np.argsort(-cosine)[:3]
    found = model.similar_items(ITEMS[4], 3)
    assert found["item"].tolist() == [ITEMS[item] for item in order]
    np.testing.assert_allclose(found["weight"], cosine[order], rtol=1e-5)
    assert len(model.similar_items(ITEMS[4], 100)) == N_ITEMS - 1


@every_model
def test_unknown_ids_and_bad_n_are_errors(make):
    model = fitted(make)
    with fails(UnknownIdError, "1 user id(s) were not in the training data: 'nobody'"):
        model.similar_users("nobody")
    with fails(UnknownIdError, "1 item id(s) were not in the training data: 'nothing'"):
        model.similar_items("nothing")
    with fails(ParameterError, "n must be an integer >= 1, found 0"):
        model.similar_users(USERS[0], 0)
