"""A service that learns and forgets: as the model does, at once, in all processes, for who has the token, for good."""

import itertools
import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pandas as pd
import pytest
from cli_cases import assert_refused, cli
from serving_cases import (
    N_ITEMS,
    N_USERS,
    Running,
    ask,
    below,
    of_likes,
    of_ratings,
    refused,
    titles,
    wait_for_the_end_of,
    write_files,
)

from air_recsys import AIR, BiasModel, Interactions
from air_recsys.cli.report import _token
from air_recsys.exceptions import DataError, DataWarning, UnknownIdError
from air_recsys.models import Recommender
from air_recsys.serving import Service, make_app
from air_recsys.serving.changes import catch_up, journal_of
from air_recsys.serving.limits import MOST_IDS

TOKEN = "a token of tests".replace(" ", "-")
BEARER = {"authorization": f"Bearer {TOKEN}"}
MADE = {"ratings": of_ratings, "likes": of_likes}
PAIRS = [("eve", "i0"), ("eve", "i2"), ("u3", "new"), ("u5", "new"), ("eve", "new")]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("served"))


@pytest.fixture(params=["ratings", "likes"])
def kind(request):
    return request.param


@pytest.fixture
def model(kind, files):
    return Recommender.load(files / f"{kind}.air")


def rows_of(kind, pairs=PAIRS):
    rated = {"rating": 4.5} if kind == "ratings" else {}
    return [{"user": user, "item": item} | rated for user, item in pairs]


def answers(service):
    """Answers of every kind, of known and new users and items."""
    found = service.search("", N_ITEMS + 5)  # of the present state, which what follows reads
    users = [user for user in ("u3", "eve") if user in service._model.interactions_.user_ids]
    return [
        found,
        service.about(),
        [service.recommend(user, 9) for user in users],
        [service.predict(user, ["i1", "i2"]) for user in users],
        [service.similar("user", user, 5) for user in users],
        service.fold_in({}, ["i1", "i4"], 5, reasons=2),
    ]


def test_a_service_answers_as_the_model_does_now(model, kind):
    service = Service(model, titles())
    before = service._at_present()
    answered = answers(before)
    model.partial_fit(pd.DataFrame(rows_of(kind)))
    assert service.recommend("eve", N_ITEMS)["items"][0]["item"] == model.recommend("eve", 1)["item"][0]
    assert [row["item"] for row in service.search("new")] == ["new"]
    assert service.about()["n_users"] == N_USERS + 1
    assert answers(service) == answers(Service(model, titles()))
    assert answers(before)[2:] == answered[2:]
    model.forget(users="eve")
    with pytest.raises(UnknownIdError, match="'eve'"):
        service.recommend("eve")
    assert answers(service) == answers(Service(model, titles()))


def test_what_is_added_and_forgotten_is_as_by_the_model(model, kind):
    service, twin = Service(model), Service(MADE[kind]())
    assert service.add(kind, rows_of(kind))["n_items"] == N_ITEMS + 1
    twin._model.partial_fit(pd.DataFrame(rows_of(kind)))
    assert answers(service) == answers(twin)
    service.forget("eve", ["i0", "new"])
    twin._model.forget(pairs=[("eve", "i0"), ("eve", "new")])
    assert answers(service) == answers(twin)
    service.forget("u3")
    twin._model.forget(users="u3")
    assert answers(service) == answers(twin)


def test_times_and_weights_are_taken_where_they_are_known():
    frame = of_ratings().interactions_.to_frame().assign(when=lambda rows: np.arange(len(rows)) * 1000.0)
    data = Interactions.from_frame(frame, timestamp="when")
    new = [{"user": "eve", "item": "i1", "rating": 4.0, "timestamp": 9e4, "weight": 2.0}]
    service = Service(AIR.for_ratings(time="drift", n_factors=3, random_state=0, device="cpu").fit(data))
    service.add("ratings", new)
    assert service._model.interactions_.timestamps[-1] == 9e4
    assert service._model.interactions_.weights[-1] == 2.0
    late = [new[0] | {"timestamp": 8e4, "rating": 1.0}, new[0] | {"user": "EVE", "weight": None}]
    with pytest.warns(DataWarning):
        notes = service.add("ratings", late)["notes"]
    assert [note.split(":")[0][:38] for note in notes] == [
        "the new user id 'EVE' differs from 'ev",
        "1 new ratings are older than the known",
    ]
    assert service._model.interactions_.ratings[-2:].tolist() == [4.0, 4.0]
    assert service._model.interactions_.weights[-2:].tolist() == [2.0, 1.0]
    with pytest.raises(DataError, match="expected new ratings with timestamps"):
        service.add("ratings", [{"user": "eve", "item": "i1", "rating": 4.0}])
    with pytest.raises(DataError, match="expected no timestamps, as this model was trained without"):
        Service(of_ratings()).add("ratings", new)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"user": 7}, "user id.*7; its ids are text"),
        ({"item": 7}, "item id.*7; its ids are text"),
        ({"rating": 9.0}, r"expected ratings in 1\.\.5"),
        ({"weight": -1.0}, "weight"),
        ({"user": "u1 "}, "the new user id 'u1 ' differs from 'u1' only in case, blanks"),
        ({"item": "i\u200b1"}, "the new item id .* differs from 'i1' only in case, blanks"),
        ({"user": "u1", "item": "i1", "weight": 1.0}, "one rating per pair, found 1 duplicate"),
    ],
)
def test_what_breaks_a_rule_changes_nothing(files, changed, message):
    model, path = Recommender.load(files / "ratings.air"), files / "ratings.air"
    service = Service(model, journal=journal_of(path))
    state = model._fitted()
    pairs = [{"user": "u1", "item": "i1", "rating": 4.0, "weight": 1.0}] * 2
    pairs[1] = {"user": "u1", "item": "i2", "rating": 4.0, "weight": 1.0} | changed
    with pytest.raises(DataError, match=message):
        service.add("ratings", pairs)
    with pytest.raises(DataError, match="expected ratings, as this model was trained on those, found likes"):
        service.add("likes", rows_of("likes"))
    with pytest.raises(UnknownIdError):
        service.forget("nobody")
    with pytest.raises(DataError, match="pairs that the model has"):
        service.forget("u3", [f"i{number}" for number in range(N_ITEMS)])
    assert model._fitted() is state
    assert not journal_of(path).path.exists()


@pytest.mark.parametrize(
    "change", [{}, {"learn": {"user": ["a"]}}, {"forget": {"users": ["nobody"]}}, {"forget": {"all": True}}]
)
def test_a_change_that_the_model_cannot_take_in_is_no_fault_of_a_request(files, tmp_path, change):
    path = tmp_path / "model.air"
    path.write_bytes((files / "ratings.air").read_bytes())
    journal = journal_of(path)
    with journal.held():
        journal.append(change)
    app = make_app(Service(Recommender.load(path), journal=journal_of(path)), token=TOKEN)
    found = "has a change that AIR cannot take in"
    refused(ask(app, "GET", "/recommend?user=u1"), 503, found)
    refused(ask(app, "POST", "/ratings", json=rows_of("ratings"), headers=BEARER), 503, found)


def test_models_that_take_nothing_in_say_so():
    model = BiasModel().fit(of_ratings().interactions_)
    with pytest.raises(DataError, match="only AIR, DMF and GraphRanker take ratings or likes in"):
        Service(model).add("ratings", rows_of("ratings"))


def test_processes_share_what_they_learn_and_forget(kind, files, tmp_path):
    path = tmp_path / "model.air"
    path.write_bytes((files / f"{kind}.air").read_bytes())

    def started():
        return Service(Recommender.load(path), journal=journal_of(path))

    one, other = started(), started()
    one.add(kind, rows_of(kind))
    assert other.recommend("eve", 3) == one.recommend("eve", 3)
    other.forget("u3")
    other.add(kind, rows_of(kind, [("u4", "i0"), ("u4", "i2")]))
    with pytest.raises(UnknownIdError):
        one.recommend("u3")
    assert answers(one) == answers(other) == answers(started())
    told = cli("similar", path, "--item", "i1").err
    assert told.count("\n") == 1
    assert "model.air.journal has changes that are not read" in told
    assert_refused(cli("train", tmp_path / "none.csv", "--model", path), "model.air.journal has changes of")
    ended = cli("compact", path, "--out", tmp_path / "new.air")
    assert (ended.status, ended.err) == (0, "")
    assert answers(Service(Recommender.load(tmp_path / "new.air"))) == answers(one)
    (tmp_path / "new.air").replace(path)
    assert_refused(cli("serve", path, "--port", 0), "has changes of another file than the present one", "move the")
    assert_refused(cli("compact", path, "--out", tmp_path / "new.air"), "has changes of another file")


def test_threads_that_change_a_model_lose_nothing(kind, files, tmp_path):
    path = tmp_path / "model.air"
    path.write_bytes((files / f"{kind}.air").read_bytes())
    services = [Service(Recommender.load(path), journal=journal_of(path)) for _ in range(2)]

    def work(service, number):
        for step in range(4):
            service.add(kind, rows_of(kind, [(f"new-{number}-{step}", f"i{step}")]))
            service.recommend(f"new-{number}-{step}", 3)

    threads = [threading.Thread(target=work, args=(services[number % 2], number)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers(services[0]) == answers(services[1])
    assert services[0].about()["n_users"] == N_USERS + 16


# ------------------------------------------------------------------------------ over HTTP


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/ratings", rows_of("ratings")),
        ("POST", "/likes", rows_of("likes")),
        ("DELETE", "/ratings?user=u3&item=i1", None),
        ("DELETE", "/likes?user=u3&item=i1", None),
        ("DELETE", "/users/u3", None),
    ],
)
def test_only_who_has_the_token_changes_a_model(model, method, path, body):
    state, app = model._fitted(), make_app(Service(model), token=TOKEN)
    for headers in ({}, {"authorization": TOKEN}, {"authorization": "Bearer"}, {"authorization": f"Basic {TOKEN}"}):
        answer = ask(app, method, path, json=body, headers=headers)
        refused(answer, 401, "expected the header Authorization: Bearer TOKEN")
        assert answer.headers["www-authenticate"] == "Bearer"
    for token in ("wrong", TOKEN + "x", TOKEN[:-1], "\u00e9" * 16):
        refused(ask(app, method, path, json=body, headers={"authorization": f"Bearer {token}".encode()}), 401, "token")
    for headers in ({}, BEARER, {"authorization": "Bearer "}):
        answer = ask(make_app(Service(model)), method, path, json=body, headers=headers)
        refused(answer, 403, "it was started without --allow-updates")
    assert model._fitted() is state


def test_posts_and_deletions_count_in_the_next_answer(model, kind):
    app = make_app(Service(model), token=TOKEN)

    def of(method, path, **how):
        answer = ask(app, method, path, headers=BEARER, **how)
        assert answer.status_code == 200, answer.text
        return answer.json()

    assert of("POST", f"/{kind}", json=rows_of(kind))["n_users"] == N_USERS + 1
    assert "i0" not in [row["item"] for row in of("GET", "/recommend?user=eve&n=40")["items"]]
    assert of("GET", "/items?query=new") == [{"item": "new", "title": None}]
    assert of("DELETE", f"/{kind}", params={"user": "eve", "item": ["i0", "i2"]})["n_users"] == N_USERS + 1
    assert "i0" in [row["item"] for row in of("GET", "/recommend?user=eve&n=40")["items"]]
    of("POST", f"/{kind}", json=rows_of(kind, [("a/b c", "i1")]))
    assert of("DELETE", "/users/a%2Fb%20c")["n_users"] == N_USERS + 1
    assert of("DELETE", "/users/eve")["n_users"] == N_USERS
    refused(ask(app, "DELETE", "/users/eve", headers=BEARER), 404, "'eve'")
    refused(ask(app, "GET", "/recommend?user=eve"), 404, "'eve'")


def test_integer_ids_are_integers():
    model = of_ratings("integer")
    app = make_app(Service(model), token=TOKEN)
    new = {"user": 999, "item": 2, "rating": 4}
    assert ask(app, "POST", "/ratings", json=[new], headers=BEARER).status_code == 200
    for wrong in ("999", "eve"):
        answer = ask(app, "POST", "/ratings", json=[new, new | {"user": wrong}], headers=BEARER)
        refused(answer, 400, "its ids are integers")
    assert ask(app, "DELETE", "/users/999", headers=BEARER).json()["n_users"] == N_USERS
    refused(ask(app, "DELETE", "/users/eve", headers=BEARER), 400, "are integers, found 'eve'")


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        ("[]", 422, "body: List should have at least 1 item"),
        ("{}", 422, "body: Input should be a valid list"),
        ('[{"user": "u1", "item": "i1"}]', 422, "body.0.rating: Field required"),
        ('[{"user": "u1", "item": "i1", "rating": 4, "more": 1}]', 422, "body.0.more: Extra inputs"),
        ('[{"user": "u1", "item": "i1", "rating": "4"}]', 422, "body.0.rating"),
        ('[{"user": "u1", "item": "i1", "rating": NaN}]', 422, "body.0.rating"),
        ('[{"user": "u1", "item": "i1", "rating": 4, "rating": 5}]', 422, "found 'rating' 2 times"),
        ('[{"user": "u1", "item": "i1", "rating": 4, "weight": -1}]', 422, "body.0.weight"),
        ('[{"user": "u1", "item": "i1", "rating": 4, "timestamp": "2020-01-01"}]', 422, "body.0.timestamp"),
        ('[{"user": "u1", "item": "i1", "rating": 4, "timestamp": 1}]', 400, "expected no timestamps"),
        ('[{"user": "", "item": "i1", "rating": 4}]', 422, "body.0.user"),
        ('[{"user": "\\ud800", "item": "i1", "rating": 4}]', 422, "body.0.user"),
        ('[{"user": true, "item": "i1", "rating": 4}]', 422, "body.0.user"),
        (f'[{{"user": {10**30}, "item": "i1", "rating": 4}}]', 422, "body.0.user"),
        (json.dumps([{"user": "u" * 1001, "item": "i1", "rating": 4}]), 422, "body.0.user"),
        (json.dumps([{"user": "u1", "item": "i1", "rating": 4}] * (MOST_IDS + 1)), 422, "at most 10000 items"),
    ],
)
def test_bad_bodies_are_errors_of_the_caller(files, body, status, detail):
    app = make_app(Service(Recommender.load(files / "ratings.air")), token=TOKEN)
    json_of = {"content-type": "application/json"} | BEARER
    refused(ask(app, "POST", "/ratings", content=body, headers=json_of), status, detail)
    refused(ask(app, "DELETE", "/users/u1?item=i1", headers=BEARER), 422, "expected no parameters, found 'item'")
    refused(ask(app, "DELETE", "/ratings?user=u1", headers=BEARER), 422, "query.item: Field required")
    refused(ask(app, "DELETE", "/users/", headers=BEARER), 404, "user id")


def test_tokens_come_from_a_file_or_the_environment(files, tmp_path, monkeypatch):
    monkeypatch.delenv("AIR_RECSYS_TOKEN", raising=False)
    command = ("serve", files / "ratings.air", "--port", 0, "--allow-updates")
    assert_refused(cli(*command), "at least 16", "found 0 characters in AIR_RECSYS_TOKEN")
    assert_refused(cli(*command[:-1], "--token-file", tmp_path / "token"), "--token-file with --allow-updates")
    assert_refused(cli(*command, "--token-file", tmp_path / "none"), "No such file")
    for text in ("", "short", "with spaces in it and more", "é" * 20):
        (tmp_path / "token").write_text(text, encoding="utf-8")
        assert_refused(cli(*command, "--token-file", tmp_path / "token"), "at least 16", "openssl rand -hex 32")
        assert "é" not in text or "['é']" in cli(*command, "--token-file", tmp_path / "token").err
    (tmp_path / "token").write_text(f"\ufeff{TOKEN}\r\n", encoding="utf-8")
    assert _token(tmp_path / "token") == TOKEN
    monkeypatch.setenv("AIR_RECSYS_TOKEN", "short")
    assert_refused(cli(*command), "found 5 characters in AIR_RECSYS_TOKEN")


def test_nothing_that_was_answered_is_lost_by_a_kill(files, tmp_path):
    """Two processes that go on from a journal, four clients that post, and SIGKILL for all in the midst of it."""
    path, token = tmp_path / "model.air", tmp_path / "token"
    path.write_bytes((files / "likes.air").read_bytes())
    token.write_text(f"{TOKEN}\n", encoding="utf-8")
    Service(Recommender.load(path), journal=journal_of(path)).add("likes", rows_of("likes"))
    server = Running(path, "--port", 0, "--allow-updates", "--token-file", token, "--workers", 2)
    answered = ["eve"]

    def post(number):
        with httpx.Client(base_url=server.address, timeout=60) as client:
            for step in itertools.count():
                user = f"new-{number}-{step}"
                try:
                    answer = client.post("likes", json=rows_of("likes", [(user, "i1"), (user, "i2")]), headers=BEARER)
                    assert answer.status_code == 200, answer.text
                    answered.append(user)
                except httpx.TransportError:
                    return

    with ThreadPoolExecutor(4) as clients:
        posting = [clients.submit(post, number) for number in range(4)]
        while len(answered) < 40 and not any(each.done() for each in posting):
            time.sleep(0.05)
        for user in answered[:10]:
            with httpx.Client(base_url=server.address, timeout=60) as client:  # a connection goes to one of both
                assert client.get("recommend", params={"user": user}).status_code == 200
        workers = below(server.process.pid)
        for process in (server.process.pid, *workers):
            os.kill(int(process), signal.SIGKILL)
        for each in posting:
            each.result()
    server.process.communicate(timeout=60)
    wait_for_the_end_of(workers)
    model = Recommender.load(path)
    catch_up(model, journal_of(path))
    assert set(answered) <= set(model.interactions_.user_ids)


def test_posted_events_have_a_kind():
    table = pd.DataFrame(
        {"user": ["a", "a", "b", "b"], "item": ["x", "y", "x", "z"], "kind": ["view", "buy", "buy", "view"]}
    )
    model = AIR.for_likes(settings={}, n_factors=1, n_steps=1, device="cpu", target="buy").fit(table)
    service = Service(model)
    posted = [{"user": "new", "item": "x", "kind": "view"}, {"user": "new", "item": "z", "kind": None}]
    assert service.add("likes", posted)["n_users"] == 3
    assert [each["item"] for each in service.recommend("new", 3)["items"]] in (["x", "y"], ["y", "x"])
    with pytest.raises(DataError, match=r"as in the training, found .'call'."):
        service.add("likes", [{"user": "new", "item": "x", "kind": "call"}])
    with pytest.raises(DataError, match="expected likes without a kind"):
        Service(AIR.for_likes(settings={}, device="cpu").fit(table[["user", "item"]])).add("likes", posted)
