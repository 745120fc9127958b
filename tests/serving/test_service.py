"""The answers of a service: those of the library, whatever kind the ids are of, alone or side by side."""

import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from serving_cases import N_ITEMS, of_likes, of_ratings, table, titles

from air_recsys import AIR, BiasModel, Interactions
from air_recsys.exceptions import DataError, NotFittedError, UnknownIdError
from air_recsys.serving import Service


@pytest.fixture(scope="module")
def ratings():
    return of_ratings()


@pytest.fixture(scope="module")
def likes():
    return of_likes()


@pytest.fixture(scope="module", params=["ratings", "likes"])
def model(request):
    return request.getfixturevalue(request.param)


def test_lists_are_those_of_the_model(model):
    rows = Service(model, titles()).recommend("u3", 7)["items"]
    frame = model.recommend("u3", 7)
    assert [row["item"] for row in rows] == frame["item"].tolist()
    assert [row["score"] for row in rows] == frame["score"].tolist()
    assert [row["rank"] for row in rows] == list(range(1, 8))
    assert [row["title"] for row in rows] == [titles().get(id, id) for id in frame["item"]]


def test_items_are_chosen_and_left_out(model):
    service = Service(model)
    rows = service.recommend("u3", N_ITEMS, include_seen=True, items=["i1", "i2", "i3"], exclude=["i2"])["items"]
    assert {row["item"] for row in rows} == {"i1", "i3"}
    assert [row["title"] for row in rows] == [None, None]
    assert service.recommend("u3", items=["i1"], exclude=["i1"])["items"] == []


def test_scores_come_with_deviations_where_they_are_known(ratings, likes):
    found = Service(ratings).predict("u3", ["i1", "i9"])["predictions"]
    scores, deviations = ratings.predict("u3", ["i1", "i9"], return_std=True)
    assert [row["score"] for row in found] == scores.tolist()
    assert [row["deviation"] for row in found] == deviations.tolist()
    found = Service(likes).predict("u3", ["i1", "i9"])["predictions"]
    assert [row["score"] for row in found] == likes.predict("u3", ["i1", "i9"]).tolist()
    assert [row["deviation"] for row in found] == [None, None]


def test_neighbours_and_reasons_are_those_of_the_model(model):
    service = Service(model, titles())
    found, expected = service.similar("item", "i2", 4)["alike"], model.similar_items("i2", 4)
    assert [row["id"] for row in found] == expected["item"].tolist()
    assert [row["weight"] for row in found] == expected["weight"].tolist()
    assert service.similar("user", "u2", 3)["alike"][0]["title"] is None
    assert service.explain("u3", "i1", 5) == model.explain("u3", "i1", 5, labels=titles()).to_dict()


def test_a_new_user_of_ratings_is_what_fold_in_says(ratings):
    taken = {"i0": 5.0, "i2": 4.5, "i1": 1.0}
    rows = Service(ratings).fold_in(taken, [], 5, reasons=2)["items"]
    folded = ratings.fold_in(pd.DataFrame({"user": "eve", "item": list(taken), "rating": list(taken.values())}))
    scores = ratings.global_mean_ + folded.biases + ratings.item_biases_ + ratings.item_factors_ @ folded.factors[0]
    scores[ratings.interactions_.items.lookup(list(taken))] = -np.inf
    best = np.argsort(-scores)[:5]
    assert [row["item"] for row in rows] == ratings.interactions_.item_ids[best].tolist()
    np.testing.assert_allclose([row["score"] for row in rows], scores[best].clip(1, 5), rtol=1e-5)
    assert all(row["deviation"] > 0 for row in rows)
    assert all({reason["item"] for reason in row["reasons"]} < set(taken) for row in rows)
    assert all(len(row["reasons"]) == 2 for row in rows)


def test_a_new_user_of_likes_is_what_fold_in_says(likes):
    rows = Service(likes).fold_in({}, ["i0", "i2"], 5, reasons=3)["items"]
    folded = likes.fold_in(pd.DataFrame({"user": "eve", "item": ["i0", "i2"], "rating": 1.0}))
    expected = folded.recommend(5)
    assert [row["item"] for row in rows] == expected["item"].tolist()
    assert [row["score"] for row in rows] == expected["score"].tolist()
    assert {reason["item"] for row in rows for reason in row["reasons"]} == {"i0", "i2"}


def test_a_like_is_the_best_rating_of_a_model_of_ratings(ratings):
    service = Service(ratings)
    assert service.fold_in({}, ["i0", "i2"]) == service.fold_in({"i0": 5.0, "i2": 5.0}, [])


@pytest.mark.parametrize("kind", ["ratings", "likes"])
def test_integer_ids_are_taken_as_text_or_numbers(kind):
    service = Service({"ratings": of_ratings, "likes": of_likes}[kind]("integer"))
    assert service.recommend("3") == service.recommend(3)
    assert service.recommend(3)["user"] == 3
    assert service.fold_in({}, ["7", 8]) == service.fold_in({}, [7, "8"])
    with pytest.raises(DataError, match="the user ids of this model are integers, found 'u3'"):
        service.recommend("u3")
    with pytest.raises(UnknownIdError, match=str(10**30)):
        service.recommend(10**30)


def test_a_user_named_guest_is_not_the_new_one():
    frame = table().replace({"user": {"u3": "guest", "u4": "guest'"}})
    service = Service(AIR.for_ratings(n_factors=3, random_state=0, device="cpu").fit(frame))
    assert service.fold_in({}, ["i0"])["items"][0]["item"] != "i0"


def test_a_model_of_times_takes_new_users_as_of_its_end():
    frame = table().assign(when=lambda rows: np.arange(len(rows)) * 1000)
    data = Interactions.from_frame(frame, timestamp="when")
    model = AIR.for_ratings(time="drift", n_factors=3, random_state=0, device="cpu").fit(data)
    assert len(Service(model).fold_in({"i0": 5.0}, [], 3)["items"]) == 3


def test_search_looks_at_titles_and_ids(model):
    service = Service(model, titles())
    assert [row["item"] for row in service.search("FILM 07")] == ["i7"]
    assert [row["item"] for row in service.search("i39")] == ["i39"]
    assert service.search("i3")[0]["item"] == "i3"
    assert service.search("no such film") == []
    counts = model.interactions_.to_frame()["item"].value_counts()
    assert counts[service.search("", 1)[0]["item"]] == counts.max()
    assert len(service.search("film", 4)) == 4


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.recommend("nobody"), UnknownIdError, "'nobody'; POST /fold-in"),
        (lambda s: s.recommend("u1", items=["nothing"]), UnknownIdError, "1 item id"),
        (lambda s: s.predict("u1", ["nothing"]), UnknownIdError, "1 item id"),
        (lambda s: s.explain("u1", "nothing"), UnknownIdError, "1 item id"),
        (lambda s: s.similar("item", "nothing"), UnknownIdError, "1 item id"),
        (lambda s: s.fold_in({}, []), DataError, "expected at least one rating or like, found none"),
        (lambda s: s.fold_in({}, ["nothing"]), UnknownIdError, "1 item id"),
        (lambda s: s.fold_in({}, ["i1", "i2", "i1"]), DataError, "each item once, found 1 item"),
        (lambda s: s.fold_in({}, ["i1"], 51, reasons=1), DataError, "n of at most 50 with reasons, found 51"),
    ],
)
def test_what_cannot_be_answered_is_said(model, call, error, message):
    with pytest.raises(error, match=message):
        call(Service(model))


def test_ratings_belong_to_the_scale_and_to_models_of_ratings(ratings, likes):
    with pytest.raises(DataError, match=r"expected ratings in 1\.\.5"):
        Service(ratings).fold_in({"i1": 9.0}, [])
    with pytest.raises(DataError, match="expected likes, as this model was trained on likes"):
        Service(likes).fold_in({"i1": 5.0}, [])


def test_models_that_explain_nothing_serve_the_rest():
    service = Service(BiasModel().fit(table()))
    service.prepare()
    assert service.about()["new_users"] is False
    assert len(service.recommend("u1", 3)["items"]) == 3
    with pytest.raises(DataError, match="only AIR, DMF and GraphRanker fold users in"):
        service.fold_in({"i1": 5.0}, [])
    with pytest.raises(DataError, match="explain their scores"):
        service.explain("u1", "i1")
    tied = AIR.for_completion(n_epochs=3, tv_reg=0.1, random_state=0, device="cpu").fit(table())
    Service(tied).prepare()
    assert Service(tied).about()["new_users"] is False


def test_a_model_that_is_not_fitted_is_refused():
    with pytest.raises(NotFittedError):
        Service(AIR())


def test_threads_get_the_answers_that_one_gets(model):
    """Of a service that has computed nothing yet, so that threads meet in what is made once."""
    users, items = model.interactions_.user_ids.tolist(), model.interactions_.item_ids.tolist()
    calls = []
    for number in range(160):
        user, item = users[number % len(users)], items[number % len(items)]
        calls += [
            ("recommend", (user, 1 + number % 12)),
            ("fold_in", ({}, items[number % 30 : number % 30 + 1 + number % 8], 5)),
            ("similar", ("item", item, 5)),
            ("explain", (user, item, 5)),
            ("predict", (user, items[:7])),
        ]

    def answer(service, call):
        return getattr(service, call[0])(*call[1])

    alone = Service(model)
    expected = [answer(alone, call) for call in calls]
    fresh = Service(pickle.loads(pickle.dumps(model)))  # without what was computed
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(answer, itertools.repeat(fresh), calls)) == expected
