"""What a request may take: sizes, times and hosts, looked at before anything is parsed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from dataclasses import dataclass
from typing import Any

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

    body_bytes: int = 2**20
    body_seconds: float = 10.0
    answer_seconds: float = 30.0
    threads: int = 4
    connections: int = 256


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
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            self._check_host(headers.get("host", ""))
            body = await self._whole_body(headers.get("content-length", ""), receive)
        except RefusedError as refused:
            await _refuse(send, *refused.args)
            return
        given: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return given.pop() if given else await receive()

        await self._app(scope, replay, send)

    def _check_host(self, host: str) -> None:
        name = f"{host.partition(']')[0]}]" if host.startswith("[") else host.partition(":")[0]
        if self._hosts is not None and name.lower() not in self._hosts:
            raise RefusedError(400, f"expected a request to {', '.join(sorted(self._hosts))}, found the host {host!r}")

    async def _whole_body(self, length: str, receive: Receive) -> bytes:
        most, parts, size = self._limits.body_bytes, [], int(length) if length.isdecimal() else 0
        too_long = RefusedError(413, f"expected a body of at most {most} bytes, found a longer one")
        if size > most:
            raise too_long
        size, more = 0, True
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                while more:
                    message = await receive()
                    parts.append(message.get("body", b""))
                    size, more = size + len(parts[-1]), message.get("more_body", False)
                    if size > most:
                        raise too_long
        except TimeoutError:
            raise RefusedError(408, f"expected the body within {self._limits.body_seconds:g} seconds") from None
        return b"".join(parts)


async def _refuse(send: Send, status: int, detail: str) -> None:
    body = json.dumps({"detail": detail}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})
