"""Lists with candidates and exclusions of each user: they are those of one call per user."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from air_recsys import AIR, BiasModel
from air_recsys.exceptions import DataError, UnknownIdError
from air_recsys.models import Recommender

N_USERS, N_ITEMS = 12, 9
ASKED = [3, 0, 99, 3, 7]  # one of them is unknown, one is asked for twice
OWN = {0: [1, 4, 8], 3: [2, 0, 5, 7], 7: [], 99: [6, 3], 11: [0]}


def frame() -> pd.DataFrame:
    rows = [(user, item, 1 + (user + 2 * item) % 5) for user in range(N_USERS) for item in range(N_ITEMS)]
    return pd.DataFrame([row for row in rows if (3 * row[0] + row[1]) % 4], columns=["user", "item", "rating"])


@pytest.fixture(scope="module", params=["bias", "air", "likes"])
def model(request: pytest.FixtureRequest) -> Recommender:
    if request.param == "likes":
        return AIR.for_likes(settings={}, device="cpu", n_factors=3, n_steps=20).fit(frame().drop(columns="rating"))
    of = {"bias": BiasModel(), "air": AIR.for_ratings(n_factors=2, n_sweeps=3, random_state=0, device="cpu")}
    return of[request.param].fit(frame())


def matrix_of(own: dict, asked: list[int]) -> sp.coo_array:
    pairs = [(row, item) for row, user in enumerate(asked) for item in own.get(user, [])]
    rows, columns = np.array(pairs).T
    return sp.coo_array((np.ones(len(pairs)), (rows, columns)), shape=(len(asked), N_ITEMS))


def one_by_one(model: Recommender, **how: dict) -> pd.DataFrame:
    lists = [
        model.recommend([user], 3, exclude_seen=False, **{name: own.get(user, []) for name, own in how.items()})
        for user in ASKED
    ]
    return pd.concat([each for each in lists if len(each)], ignore_index=True)


def table_of(own: dict, kind: type = pd.DataFrame) -> pd.DataFrame:
    pairs = [(user, item) for user, items in own.items() for item in items]
    return kind({"userId": [user for user, _ in pairs], "movieId": [item for _, item in pairs]})


@pytest.mark.parametrize("name", ["items", "exclude"])
def test_each_user_has_its_own(model, name):
    expected = one_by_one(model, **{name: OWN})
    assert set(expected["user"]) >= {0, 3, 99}
    for own in (OWN, {user: np.array(items, dtype=int) for user, items in OWN.items()}, matrix_of(OWN, ASKED)):
        pd.testing.assert_frame_equal(model.recommend(ASKED, 3, exclude_seen=False, **{name: own}), expected)
    for table in (table_of(OWN), table_of(OWN, pl.DataFrame)):
        pd.testing.assert_frame_equal(model.recommend(ASKED, 3, exclude_seen=False, **{name: table}), expected)


def test_both_at_once_and_beside_lists_for_all(model):
    left_out = {3: [2, 5], 0: [8]}
    both = model.recommend(ASKED, 3, exclude_seen=False, items=OWN, exclude=left_out)
    rest = {user: [item for item in items if item not in left_out.get(user, [])] for user, items in OWN.items()}
    pd.testing.assert_frame_equal(both, one_by_one(model, items=rest))
    for_all = model.recommend(ASKED, 3, exclude_seen=False, items=OWN, exclude=[0, 6])
    rest = {user: [item for item in items if item not in (0, 6)] for user, items in OWN.items()}
    pd.testing.assert_frame_equal(for_all, one_by_one(model, items=rest))
    seen = model.recommend(0, N_ITEMS, items={0: frame().query("user == 0")["item"].tolist()})
    assert seen.empty  # all of them are taken


def test_new_users_of_likes_have_their_own():
    ranker = AIR.for_likes(settings={}, device="cpu").fit(frame().drop(columns="rating"))
    folded = ranker.fold_in(pd.DataFrame({"user": ["eve", "eve", "max"], "item": [0, 1, 2]}))
    lists = folded.recommend(["eve", "max"], 3, items={"eve": [4, 5], "max": [8]})
    assert lists.groupby("user")["item"].apply(set).to_dict() == {"eve": {4, 5}, "max": {8}}


@pytest.mark.parametrize(
    ("own", "kind", "message"),
    [
        ({0: [1], 3: [77], 7: [1], 99: [1]}, UnknownIdError, "77"),
        ({0: [1], 3: [1], 7: [1], 99: [1], 50: [1]}, UnknownIdError, "50"),
        (sp.eye_array(3, N_ITEMS), DataError, r"one row per user asked for .*\(5, 9\), found the shape \(3, 9\)"),
        (pd.DataFrame({"who": [1], "what": [2]}), DataError, "expected a table with the columns user and item"),
        ({0: "x"}, UnknownIdError, "x"),
    ],
)
def test_what_does_not_fit_is_refused(own, kind, message):
    with pytest.raises(kind, match=message):
        BiasModel().fit(frame()).recommend(ASKED, items=own)
