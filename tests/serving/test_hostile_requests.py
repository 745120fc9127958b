"""What a service answers to clients that mean no good."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from attacks.requests import hostile_requests

from air_recsys.exceptions import ParameterError
from air_recsys.serving.limits import Guard, Limits

HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})


def answered(headers: list[tuple[bytes, bytes]], *, parts: int = 0, query: bytes = b"") -> tuple[int, str]:
    """The status and the detail that the guard gives for a request with so many MiB of a body, 200 where it passes."""
    left, sent = [parts], []

    async def receive() -> dict[str, Any]:
        left[0] -= 1
        return {"type": "http.request", "body": b"x" * 2**20 if left[0] >= 0 else b"", "more_body": left[0] > 0}

    async def send(message: Any) -> None:
        sent.append(message)

    async def passed(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b'{"detail": ""}'})

    scope = {"type": "http", "headers": headers, "query_string": query, "raw_path": b"/"}
    asyncio.run(Guard(passed, Limits(), HOSTS)(scope, receive, send))
    assert left[0] <= 0 or parts > 16  # a body is read to its end, so that the client hears the answer
    return sent[0]["status"], json.loads(sent[1]["body"])["detail"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]", "[::1]:8000"])
def test_own_names_pass_with_and_without_a_port(host):
    assert answered([(b"host", host.encode())])[0] == 200


@pytest.mark.parametrize(
    "host",
    ["[::1].evil.example", "[::1]@evil", "localhost:80@evil.example", "localhost:x", "evil", "", "localhost/", "[::1"],
)
def test_names_that_only_begin_like_own_ones_are_refused(host):
    status, detail = answered([(b"host", host.encode())])
    assert status == 400
    assert "found the host" in detail


def test_requests_of_two_meanings_are_refused():
    own = (b"host", b"localhost")
    assert answered([own, (b"content-length", b"3"), (b"transfer-encoding", b"chunked")])[0] == 400
    assert answered([own, (b"host", b"evil")])[0] == 400
    assert answered([own], query=b"user=%FF") == (400, "expected an address in UTF-8, found bytes that are none")
    assert answered([own], query=b"user=%C3%A9")[0] == 200


def test_a_long_body_is_read_and_refused_and_an_endless_one_is_not_read():
    own = (b"host", b"localhost")
    assert answered([own], parts=4)[0] == 413
    assert answered([own, (b"content-length", b"4194304")], parts=4)[0] == 413
    assert answered([own, (b"content-length", b"9" * 5000)], parts=17)[0] == 413
    assert answered([own], parts=100)[0] == 413


def test_a_refusal_repeats_little_of_the_request():
    assert answered([(b"host", b"z" * 900_000)])[1].count("z") == 199


def test_limits_are_checked():
    with pytest.raises(ParameterError, match="threads must be an integer >= 1"):
        Limits(threads=0)


def test_nothing_is_answered_by_a_fault_of_the_server():
    rows, notes = hostile_requests(400, 0)
    assert notes[:-1] == []
    assert sum(value for row in rows for name, value in row.items() if name != "path") == 400
