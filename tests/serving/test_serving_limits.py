"""What the application refuses, and how: sizes, times, hosts, and bodies that are no requests."""

import asyncio
import json
import threading

import httpx
import pytest
from serving_cases import of_likes, of_ratings

from air_recsys.serving import Limits, Service, make_app
from air_recsys.serving.limits import MOST_IDS, MOST_ITEMS, Guard

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def service():
    return Service(of_ratings())


def ask(app, method, path, **options):
    """One request to an application, without a server."""

    async def request():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, **options)

    return asyncio.run(request())


def refused(answer, status, detail):
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"detail"}
    assert detail in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "status", "detail"),
    [
        ("/recommend", 422, "query.user: Field required"),
        ("/recommend?user=u1&n=0", 422, "query.n: Input should be greater than or equal to 1"),
        (f"/recommend?user=u1&n={MOST_ITEMS + 1}", 422, "query.n: Input should be less than or equal to 1000"),
        ("/recommend?user=u1&n=two", 422, "query.n: Input should be a valid integer"),
        ("/recommend?user=u1&include_seen=perhaps", 422, "query.include_seen"),
        ("/recommend?user=nobody", 404, "'nobody'"),
        ("/recommend?user=" + "u" * 1001, 422, "query.user"),
        ("/recommend?user=%00%ff%ed%a0%80", 404, "1 user id(s)"),
        ("/recommend?user=u1&item=nothing", 404, "'nothing'"),
        ("/similar", 400, "expected either user or item"),
        ("/similar?user=u1&item=i1", 400, "expected either user or item"),
        ("/explain?user=u1", 422, "query.item: Field required"),
        ("/predict?user=u1", 422, "query.item: Field required"),
        ("/items?query=" + "a" * 201, 422, "query.query"),
        ("/nowhere", 404, "Not Found"),
        ("/docs", 404, "Not Found"),
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
        ('{"likes": [true]}', 422, "body.likes.0"),
        ('{"likes": [1.5]}', 422, "body.likes.0"),
        ('{"likes": ["nothing"]}', 404, "'nothing'"),
        ('{"likes": ["\\ud800"]}', 404, "1 item id(s)"),
        ('{"likes": ["i1", "i1"]}', 400, "each item once"),
        ('{"likes": ["i1"], "n": 0}', 422, "body.n"),
        ('{"likes": ["i1"], "reasons": 11}', 422, "body.reasons"),
        ('{"likes": ["i1"], "n": 51, "reasons": 1}', 400, "n of at most 50 with reasons"),
        ('{"ratings": [{"item": "i1", "rating": NaN}]}', 422, "body.ratings.0.rating"),
        ('{"ratings": [{"item": "i1", "rating": 1e999}]}', 422, "body.ratings.0.rating"),
        ('{"ratings": [{"item": "i1", "rating": 9}]}', 400, "expected ratings in 1..5"),
        ('{"ratings": [{"item": "i1", "rating": 4}, {"item": "i1", "rating": 5}]}', 400, "each item once"),
        (json.dumps({"likes": ["i1"] * (MOST_IDS + 1)}), 422, "body.likes: List should have at most 10000 items"),
    ],
)
def test_bad_bodies_are_errors_of_the_caller(service, body, status, detail):
    refused(ask(make_app(service), "POST", "/fold-in", content=body, headers=JSON), status, detail)


def test_ratings_are_refused_by_a_model_of_likes():
    body = {"ratings": [{"item": "i1", "rating": 5}]}
    refused(ask(make_app(Service(of_likes())), "POST", "/fold-in", json=body), 400, "expected likes")


def test_long_bodies_are_refused_whether_they_say_so_or_not(service):
    app = make_app(service, Limits(body_bytes=100))
    whole, short = json.dumps({"likes": ["i1"] * 30}).encode(), json.dumps({"likes": ["i1"]}).encode()

    async def parts():
        for start in range(0, len(whole), 40):
            yield whole[start : start + 40]

    refused(ask(app, "POST", "/fold-in", content=whole, headers=JSON), 413, "at most 100 bytes")
    refused(ask(app, "POST", "/fold-in", content=parts(), headers=JSON), 413, "at most 100 bytes")
    assert ask(app, "POST", "/fold-in", content=short, headers=JSON).status_code == 200


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


def test_an_answer_that_takes_too_long_is_given_up_and_others_go_on(service):
    wait = threading.Event()

    class Slow(Service):
        def recommend(self, *_, **__):
            return {"waited": wait.wait(60)}

    app = make_app(Slow(of_ratings()), Limits(answer_seconds=0.2, threads=1))
    answer = ask(app, "GET", "/recommend?user=u1")
    refused(answer, 503, "within 0.2 seconds")
    assert answer.headers["retry-after"] == "1"
    assert ask(app, "GET", "/health").status_code == 200
    refused(ask(app, "GET", "/items"), 503, "within 0.2 seconds")  # waits for the only thread
    wait.set()
    assert ask(app, "GET", "/items").status_code == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:80", 200),
        ("[::1]:8000", 200),
        ("evil.example", 400),
        ("evil.example:8000", 400),
        ("localhost.evil.example", 400),
        ("[::2]", 400),
        ("", 400),
    ],
)
def test_other_names_are_refused(service, host, status):
    app = make_app(service, hosts={"localhost", "[::1]"})
    assert ask(app, "GET", "/health", headers={"host": host}).status_code == status
    assert ask(make_app(service), "GET", "/health", headers={"host": host}).status_code == 200


def test_a_body_of_another_type_is_no_request(service):
    body = json.dumps({"likes": ["i1"]})
    refused(
        ask(make_app(service), "POST", "/fold-in", content=body, headers={"content-type": "text/plain"}), 422, "body"
    )


def test_the_description_names_every_path_its_bounds_and_its_errors(service):
    found = ask(make_app(service), "GET", "/openapi.json").json()
    assert set(found["paths"]) == {"/health", "/recommend", "/fold-in", "/predict", "/explain", "/similar", "/items"}
    operations = [operation for path in found["paths"].values() for operation in path.values()]
    for operation in operations:
        assert operation["description"].endswith(".")
        assert {"200", "400", "404", "408", "413", "422", "503"} == set(operation["responses"])
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
