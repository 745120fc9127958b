"""The answers of a service are those of the library, alone or side by side; what the application refuses, and how."""

import asyncio
import itertools
import json
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from serving_cases import N_ITEMS, ask, of_likes, of_ratings, refused, table, titles

from air_recsys import AIR, BiasModel, Interactions, rerank
from air_recsys.exceptions import DataError, NotFittedError, UnknownIdError
from air_recsys.serving import Limits, Service, make_app
from air_recsys.serving.limits import MOST_IDS, MOST_ITEMS, Guard


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
    service = Service(model)
    rows = service.recommend("u3", N_ITEMS, include_seen=True, items=["i1", "i2", "i3"], exclude=["i2"])["items"]
    assert {row["item"] for row in rows} == {"i1", "i3"}
    assert [row["title"] for row in rows] == [None, None]
    assert service.recommend("u3", items=["i1"], exclude=["i1"])["items"] == []


def test_lists_made_again_are_those_of_rerank(model):
    groups = pd.Series({f"i{number}": ["odd", "all"] if number % 2 else ["even"] for number in range(N_ITEMS)})
    service, again = Service(model, groups=groups), {"diversity": 0.2, "novelty": 0.3, "calibration": 0.4}
    expected = rerank(model.recommend("u3", 200), model, 7, groups=groups, **again)
    rows = service.recommend("u3", 7, again=again)["items"]
    assert [row["item"] for row in rows] == expected["item"].tolist()
    assert [row["rank"] for row in rows] == list(range(1, 8))
    app, query = make_app(service), "/recommend?user=u3&n=7&diversity=0.2&novelty=0.3"
    found = ask(app, "GET", query + "&calibration=0.4").json()["items"]
    assert [row["item"] for row in found] == expected["item"].tolist()
    assert len(ask(app, "GET", query + "&per_group=1").json()["items"]) == 2
    posted = {"likes": ["i0", "i2"], "n": 7, "per_group": 1}
    assert len(ask(app, "POST", "/fold-in", json=posted).json()["items"]) == 2
    assert service.recommend("u3", 2, items=["i1"], exclude=["i1"], again=again)["items"] == []


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
    best = folded.recommend("eve", 5)
    assert [row["item"] for row in rows] == best["item"].tolist()
    np.testing.assert_allclose([row["score"] for row in rows], best["score"], rtol=1e-5)
    assert all(row["deviation"] > 0 for row in rows)
    assert all({reason["item"] for reason in row["reasons"]} < set(taken) for row in rows)
    assert all(len(row["reasons"]) == 2 for row in rows)
    service = Service(ratings)  # to which a like is the best rating
    assert service.fold_in({}, ["i0", "i2"]) == service.fold_in({"i0": 5.0, "i2": 5.0}, [])


def test_a_new_user_of_likes_is_what_fold_in_says(likes):
    rows = Service(likes).fold_in({}, ["i0", "i2"], 5, reasons=3)["items"]
    folded = likes.fold_in(pd.DataFrame({"user": "eve", "item": ["i0", "i2"], "rating": 1.0}))
    expected = folded.recommend("eve", 5)
    assert [row["item"] for row in rows] == expected["item"].tolist()
    assert [row["score"] for row in rows] == expected["score"].tolist()
    assert {reason["item"] for row in rows for reason in row["reasons"]} == {"i0", "i2"}


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


def test_a_new_user_is_none_of_the_model_and_comes_at_its_end():
    frame = table().replace({"user": {"u3": "guest", "u4": "guest'"}})
    frame = frame.assign(when=lambda rows: np.arange(len(rows)) * 1000)
    data = Interactions.from_frame(frame, timestamp="when")
    service = Service(AIR.for_ratings(time="drift", n_factors=3, random_state=0, device="cpu").fit(data))
    rows = service.fold_in({"i0": 5.0}, [], 3)["items"]
    assert len(rows) == 3
    assert "i0" not in {row["item"] for row in rows}


def test_search_looks_at_titles_and_ids(model):
    service = Service(model, titles())
    assert [row["item"] for row in service.search("FILM 07")] == ["i7"]
    assert [row["item"] for row in service.search("i39")] == ["i39"]
    assert service.search("i3")[0]["item"] == "i3"
    assert service.search("no such film") == []
    counts = model.interactions_.to_frame()["item"].value_counts()
    assert counts[service.search("", 1)[0]["item"]] == counts.max()
    assert len(service.search("film", 4)) == 4
    accents = Service(model, titles() | {"i7": "Ame\u0301lie Straße"})
    assert [row["item"] for row in accents.search("AM\u00c9LIE STRASSE")] == ["i7"]
    with pytest.raises(DataError, match="found those of none of them, such as 0, where items are such as 'i0'"):
        Service(model, {0: "film 0"})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.recommend("nobody"), UnknownIdError, "'nobody'; POST /fold-in"),
        (lambda s: s.recommend("u1", items=["nothing"]), UnknownIdError, "1 item id"),
        (lambda s: s.predict("u1", ["nothing"]), UnknownIdError, "1 item id"),
        (lambda s: s.explain("u1", "nothing"), UnknownIdError, "1 item id"),
        (lambda s: s.similar("item", "nothing"), UnknownIdError, "1 item id"),
        (lambda s: s.fold_in({}, []), DataError, "expected at least one rating or like, found none"),
        (lambda s: s.fold_in({}, ["i1", "i2", "i1"]), DataError, "each item once, found 1 item"),
        (lambda s: s.fold_in({"i1": 5.0}, []), DataError, "expected likes, as this model was trained on likes"),
    ],
)
def test_what_cannot_be_answered_is_said(likes, call, error, message):
    with pytest.raises(error, match=message):
        call(Service(likes))


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
    with pytest.raises(NotFittedError):
        Service(AIR())


def test_threads_get_the_answers_that_one_gets(model):
    """Of a service that has computed nothing yet, so that threads meet in what is made once."""
    users, items = model.interactions_.user_ids.tolist(), model.interactions_.item_ids.tolist()
    calls = []
    for number in range(50):
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


JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def service(ratings):
    return Service(ratings)


@pytest.mark.parametrize(
    ("path", "status", "detail"),
    [
        ("/recommend", 422, "query.user: Field required"),
        ("/recommend?user=u1&n=0", 422, "query.n: Input should be greater than or equal to 1"),
        (f"/recommend?user=u1&n={MOST_ITEMS + 1}", 422, "query.n: Input should be less than or equal to 1000"),
        ("/recommend?user=u1&include_seen=perhaps", 422, "query.include_seen"),
        ("/recommend?user=nobody", 404, "'nobody'"),
        ("/recommend?user=" + "u" * 1001, 422, "query.user"),
        ("/recommend?user=%00%ff%ed%a0%80", 400, "expected an address in UTF-8"),
        ("/similar", 400, "expected either user or item"),
        ("/similar?user=u1&item=i1", 400, "expected either user or item"),
        ("/items?query=" + "a" * 201, 422, "query.query"),
        ("/nowhere", 404, "Not Found"),
        ("/recommend/?user=u1", 404, "Not Found"),
        ("/recommend?user=u1&k=3", 422, "novelty, calibration, per_group, found 'k'"),
        ("/recommend?user=u1&diversity=2", 422, "query.diversity"),
        ("/recommend?user=u1&per_group=1", 400, "calibration and per_group need groups, found None"),
        ("/recommend?user=u1&item[]=i1", 422, "found 'item[]'"),
        ("/recommend?user=u1&user=u2", 422, "expected user once, found it 2 times"),
    ],
)
def test_bad_questions_are_errors_of_the_caller(service, path, status, detail):
    refused(ask(make_app(service), "GET", path), status, detail)


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        ("", 422, "body"),
        ("{", 422, "JSON"),
        ("[" * 100_000, 400, "body"),
        ("[]", 422, "body"),
        ("{}", 400, "at least one rating or like"),
        ('{"likes": ["i1"], "more": 1}', 422, "body.more: Extra inputs are not permitted"),
        ('{"likes": [null]}', 422, "body.likes.0"),
        ('{"likes": ["\\ud800"]}', 404, "1 item id(s)"),
        ('{"likes": ["i1", "i1"]}', 400, "each item once"),
        ('{"likes": ["i1"], "n": 0}', 422, "body.n"),
        ('{"likes": ["i1"], "n": 51, "reasons": 1}', 400, "n of at most 50 with reasons"),
        ('{"ratings": [{"item": "i1", "rating": NaN}]}', 422, "body.ratings.0.rating"),
        ('{"ratings": [{"item": "i1", "rating": 1e999}]}', 422, "body.ratings.0.rating"),
        ('{"ratings": [{"item": "i1", "rating": 9}]}', 400, "expected ratings in 1..5"),
        ('{"ratings": [{"item": "i1", "rating": 4}, {"item": "i1", "rating": 5}]}', 400, "each item once"),
        ('{"ratings": [{"item": "i1", "rating": true}]}', 422, "body.ratings.0.rating: Input should be a valid num"),
        ('{"likes": ["i1"], "n": true}', 422, "body.n"),
        ('{"likes": ["i1"], "n": 2, "n": 5}', 422, "body: expected each key once, found 'n' 2 times"),
        ('{"ratings": [{"item": "i1", "item": "i2", "rating": 5}]}', 422, "found 'item' 2 times"),
        (json.dumps({"likes": ["i1"] * (MOST_IDS + 1)}), 422, "body.likes: List should have at most 10000 items"),
    ],
)
def test_bad_bodies_are_errors_of_the_caller(service, body, status, detail):
    refused(ask(make_app(service), "POST", "/fold-in", content=body, headers=JSON), status, detail)


def test_a_body_of_another_type_or_for_another_model_is_no_request(service, likes):
    body, plain = json.dumps({"likes": ["i1"]}), {"content-type": "text/plain"}
    app, packed = make_app(service), JSON | {"content-encoding": "gzip"}
    refused(ask(app, "POST", "/fold-in", content=body, headers=plain), 415, "Content-Type: application/json, found 't")
    refused(ask(app, "POST", "/fold-in", content=body, headers=packed), 415, "not packed, found Content-Encoding: 'g")
    refused(ask(app, "POST", "/fold-in?n=3", content=body, headers=JSON), 422, "in the body alone, found 'n'")
    rated = {"ratings": [{"item": "i1", "rating": 5}]}
    refused(ask(make_app(Service(likes)), "POST", "/fold-in", json=rated), 400, "expected likes")


MANY = [f"{number}{'z' * 900}" for number in range(9)]


@pytest.mark.parametrize(
    ("method", "path", "how"),
    [
        ("GET", "/predict", {"params": {"user": "u1", "item": MANY}}),
        ("GET", "/recommend", {"params": {"user": MANY[0]}}),
        ("GET", "/items", {"params": {MANY[0]: "1"}}),
        ("POST", "/fold-in", {"json": {"likes": MANY}}),
        ("POST", "/fold-in", {"json": {"likes": ["i1"]} | dict.fromkeys(MANY, 1)}),
        ("POST", "/fold-in", {"content": f'{{"{MANY[0]}": 1, "{MANY[0]}": 1}}', "headers": JSON}),
        ("POST", "/fold-in", {"content": "{}", "headers": {"content-type": MANY[0]}}),
    ],
)
def test_an_error_repeats_at_most_200_signs_of_a_request(service, method, path, how):
    answer = ask(make_app(service), method, path, **how)
    assert 400 <= answer.status_code < 500
    assert 100 < answer.text.count("z") <= 200


def test_long_bodies_are_refused_whether_they_say_so_or_not(service):
    app = make_app(service, Limits(body_bytes=100))
    whole, short = json.dumps({"likes": ["i1"] * 30}).encode(), json.dumps({"likes": ["i1"]}).encode()

    async def parts():
        for start in range(0, len(whole), 40):
            yield whole[start : start + 40]

    refused(ask(app, "POST", "/fold-in", content=whole, headers=JSON), 413, "at most 100 bytes")
    refused(ask(app, "POST", "/fold-in", content=parts(), headers=JSON), 413, "at most 100 bytes")
    assert ask(app, "POST", "/fold-in", content=short, headers=JSON).status_code == 200


def test_what_only_looks_is_answered_as_well(service):
    for path in ("/health?now=1", "/", "/page.js?v=1", "/recommend?user=u1"):
        assert ask(make_app(service), "HEAD", path).status_code == 200
    assert ask(make_app(service), "HEAD", "/fold-in").status_code == 405


def test_slow_bodies_are_refused(service):
    sent = []

    async def receive():
        await asyncio.sleep(60)
        return {}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "headers": [(b"host", b"localhost")]}
    asyncio.run(Guard(make_app(service), Limits(body_seconds=0.05))(scope, receive, send))
    assert sent[0]["status"] == 408
    assert "within 0.05 seconds" in json.loads(sent[1]["body"])["detail"]


def test_an_answer_that_takes_too_long_is_given_up_and_others_go_on(ratings):
    wait = threading.Event()

    class Slow(Service):
        def recommend(self, *_, **__):
            return {"waited": wait.wait(60)}

    app = make_app(Slow(ratings), Limits(answer_seconds=0.2, threads=1))
    answer = ask(app, "GET", "/recommend?user=u1")
    refused(answer, 503, "within 0.2 seconds")
    assert answer.headers["retry-after"] == "1"
    assert ask(app, "GET", "/health").status_code == 200
    refused(ask(app, "GET", "/items"), 503, "within 0.2 seconds")  # waits for the only thread
    wait.set()
    assert ask(app, "GET", "/items").status_code == 200


def test_other_names_are_refused(service):
    app = make_app(service, hosts={"localhost", "[::1]"})
    allowed, others = ["localhost", "LOCALHOST:80", "[::1]:8000"], ["evil.example", "evil.example:8000", "[::2]", ""]
    for host in [*allowed, *others, "localhost.evil.example"]:
        assert ask(app, "GET", "/health", headers={"host": host}).status_code == (200 if host in allowed else 400)
        assert ask(make_app(service), "GET", "/health", headers={"host": host}).status_code == 200


def test_the_description_names_every_path_its_bounds_and_its_errors(service):
    found = ask(make_app(service), "GET", "/openapi.json").json()
    changes = {"/ratings", "/likes", "/users/{id}"}
    read = {"/health", "/recommend", "/fold-in", "/predict", "/explain", "/similar", "/items"}
    assert set(found["paths"]) == read | changes
    operations = [(path, operation) for path, of_path in found["paths"].items() for operation in of_path.values()]
    for path, operation in operations:
        assert operation["description"].endswith(".")
        further = {"401", "403"} if path in changes else set()
        assert {"200", "400", "404", "408", "413", "415", "422", "503"} | further == set(operation["responses"])
        assert operation.get("security", []) == [{"HTTPBearer": []}] * (path in changes)
        problem = operation["responses"]["422"]["content"]["application/json"]["schema"]
        assert problem == {"$ref": "#/components/schemas/Problem"}
    fields = found["components"]["schemas"]["NewUser"]["properties"]
    assert fields["n"]["maximum"] == MOST_ITEMS
    assert fields["likes"]["maxItems"] == MOST_IDS


def test_an_application_can_be_mounted_in_another_one(service):
    from fastapi import FastAPI

    whole = FastAPI()
    whole.mount("/films", make_app(service))
    assert ask(whole, "GET", "/films/health").json()["model"] == "AIR"
    page = ask(whole, "GET", "/films/").text
    assert 'src="page.js"' in page
    assert ask(whole, "GET", "/films/page.js").status_code == 200
