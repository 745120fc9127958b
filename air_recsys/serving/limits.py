"""What a request may take: sizes, times and hosts, looked at before anything is parsed."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from air_recsys.exceptions import quoted
from air_recsys.storage.validation import check_parameters, integer, real

MOST_ITEMS = 1000
"""Longest list of an answer."""
MOST_IDS = 10_000
"""Most ratings, likes or ids in a request."""
MOST_EXPLAINED = 50
"""Longest list with reasons: each takes about as long as a list."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class Limits:
    """What requests may take of a process.

    Parameters
    ----------
    body_bytes : int
        Longest body; a longer one is answered with status 413.
    body_seconds : float
        Until a body has to be there; else status 408.
    answer_seconds : float
        Until an answer has to be there; else status 503.
    threads : int
        Requests that are computed at a time; others wait.
    connections : int
        Connections at a time; further ones are answered with status 503.
    """

    body_bytes: int = integer(2**20, minimum=1)
    body_seconds: float = real(10.0, strict=True)
    answer_seconds: float = real(30.0, strict=True)
    threads: int = integer(4, minimum=1)
    connections: int = integer(256, minimum=1)

    def __post_init__(self) -> None:
        check_parameters(self)


# A name or an address, IPv6 in brackets, and perhaps a port.
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:@/?#\[\]]+)(?::[0-9]{1,5})?")
_DRAINED = 16 * 2**20  # bytes of a body that are read although it is too long
_MOST_DIGITS = 18  # of a length


class RefusedError(Exception):
    """A request that is not passed on: a status and a sentence."""


class Guard:
    """Passes on requests whose host and body are within bounds, with the body read whole.

    `hosts` are the names under which this server may be asked for, by default any. A page of another site that lets
    its own name lead to this machine (DNS rebinding) is told apart by its name. Starlette's TrustedHostMiddleware does
    so too, but with a text in place of the JSON of all other refusals, and it knows no bounds of bodies.
    """

    def __init__(self, app: App, limits: Limits, hosts: Collection[str] | None = None) -> None:
        self._app, self._limits, self._hosts = app, limits, hosts

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope.get("method") == "HEAD":  # the server leaves the body of the answer out
            scope = {**scope, "method": "GET"}
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            _check_form(scope, headers)
            self._check_host(headers.get("host", ""))
            body = await self._whole_body(headers.get("content-length", ""), receive)
            if body and scope["method"] == "POST":
                _check_content(headers)
        except RefusedError as refused:
            await _refuse(send, *refused.args)
            return
        given: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return given.pop() if given else await receive()

        await self._app(scope, replay, send)

    def _check_host(self, host: str) -> None:
        found = _HOST.fullmatch(host)
        if self._hosts is not None and (found is None or found[1].lower() not in self._hosts):
            expected = ", ".join(sorted(self._hosts))
            raise RefusedError(400, f"expected a request to {expected}, found the host {quoted(host)}")

    async def _whole_body(self, length: str, receive: Receive) -> bytes:
        """Return the body. One that is too long is read to its end, up to a limit, so that the answer is heard."""
        most, parts, size, more = self._limits.body_bytes, [], 0, True
        stated = int(length[:_MOST_DIGITS]) if length.isdecimal() else 0
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                while more and max(size, stated) <= max(most, _DRAINED):
                    message = await receive()
                    part = message.get("body", b"")
                    size, more = size + len(part), message.get("more_body", False)
                    if size <= most:
                        parts.append(part)
        except TimeoutError:
            raise RefusedError(408, f"expected the body within {self._limits.body_seconds:g} seconds") from None
        if max(size, stated) > most:
            raise RefusedError(413, f"expected a body of at most {most} bytes, found a longer one")
        return b"".join(parts)


def _check_form(scope: MutableMapping[str, Any], headers: dict[str, str]) -> None:
    """Refuse two lengths of a body, two hosts, and an address that is no UTF-8."""
    if {"content-length", "transfer-encoding"} <= headers.keys():
        raise RefusedError(400, "expected Content-Length or Transfer-Encoding, found both")
    if sum(name == b"host" for name, _ in scope["headers"]) > 1:
        raise RefusedError(400, "expected one Host, found several")
    try:
        unquote_to_bytes(scope.get("query_string", b"") + scope.get("raw_path", b"")).decode()
    except UnicodeDecodeError:
        raise RefusedError(400, "expected an address in UTF-8, found bytes that are none") from None


def _check_content(headers: dict[str, str]) -> None:
    """Refuse a body that is not said to be JSON, as of a form, and a packed one."""
    kind, packing = headers.get("content-type", ""), headers.get("content-encoding", "identity")
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise RefusedError(415, f"expected the header Content-Type: application/json, found {quoted(kind)}")
    if packing.strip().lower() != "identity":
        raise RefusedError(415, f"expected a body that is not packed, found Content-Encoding: {quoted(packing)}")


async def _refuse(send: Send, status: int, detail: str) -> None:
    body = json.dumps({"detail": detail}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})
