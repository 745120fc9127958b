"""Requests that no client of good will sends, by chance, to a service in this process: what it answers."""

from __future__ import annotations

import asyncio
import json
import resource
from collections import Counter
from typing import Any

import httpx
import numpy as np

from air_recsys import AIR
from air_recsys.serving.app import make_app
from air_recsys.serving.service import Service

_IDS = ("1", "u1", "%FF", "%00", "+1", "01", "1_0", "%D9%A1", "%ED%A0%80", "a" * 3000, "", "%F0%9F%8E%AC", "-1", "1e9")
_COUNTS = ("3", "0", "-1", "1e3", "99999999999999999999", "x", "", "%FF")
_FOREIGN = ("[::1].evil.example", "[::1]@evil", "localhost:80@evil.example", "evil.example", "localhost.evil", "")
_HOSTS = ("localhost", "localhost:80", "[::1]", *_FOREIGN)
_CHANGED = ("ratings", "likes", "users/1")
_PATHS = (
    "recommend",
    "predict",
    "explain",
    "similar",
    "items",
    "health",
    "fold-in",
    "nothing",
    "%FF",
    "page.js",
    *_CHANGED,
)
_TOKEN = "of-hostile-clients"
_BODIES: tuple[Any, ...] = (
    b"", b"{", b"[" * 100_000, b"\xff\xfe{}", b'{"likes": "x"}', b'{"ratings": [{"item": "1", "rating": 1e999}]}',
    b'{"likes": ["\\ud800"]}', b'{"likes": [1], "n": 10000000000000000000000}', b'{"n": NaN, "likes": [1]}',
    {"likes": ["1", "1"]}, {"likes": ["1"], "reasons": 5}, {"likes": ["01", "+1", "1_0"]},
    {"ratings": [{"item": "1", "rating": -1e30}]},
    [{"user": 3, "item": 2, "rating": 4.0}], [{"user": "eve", "item": 2, "rating": 4.0}], [{"user": 2**63, "item": 1}],
    [{"user": 3, "item": 2, "rating": 1e308}], [{"user": 3, "item": 2, "rating": 5, "weight": 1e9}], [[]],
    {"likes": [str(each) for each in range(20_000)]}, {"x" * 100_000: 1}, {"likes": [None, {}, []]}, b"x" * 2_000_000,
)  # fmt: skip
_JSON = {"content-type": "application/json"}
_HEADERS = (_JSON, _JSON, _JSON, {}, {"content-type": "text/plain"}, _JSON | {"content-encoding": "gzip"})
_NAMES = ("user", "item", "n", "include_seen", "exclude", "query")
_TAKEN = {"recommend": _NAMES[:5], "predict": _NAMES[:2], "explain": _NAMES[:3], "similar": _NAMES[:3]} | {
    "ratings": _NAMES[:2],
    "likes": _NAMES[:2],
    "users/1": (),
}
_LONGEST = 600  # bytes of an answer to a fault


def hostile_requests(n_requests: int, seed: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Send requests by chance, and count their statuses by path; with a note on each answer that breaks a rule."""
    rng = np.random.default_rng(seed)
    ratings = np.where(rng.random((40, 30)) < 0.5, rng.integers(1, 6, (40, 30)), np.nan)
    model = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(ratings)
    app = make_app(Service(model), hosts=frozenset({"localhost", "[::1]"}), token=_TOKEN)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    counts, notes = asyncio.run(_answers(app, n_requests, rng))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    statuses = sorted({status for _, status in counts})
    rows = [
        {"path": path}
        | {str(status): counts[path, status] for status in statuses}
        | {"wrong": sum(note.startswith(f"{path} of ") for note in notes)}
        for path in _PATHS
    ]
    return rows, [*notes, f"the peak of the memory grew by {grown:.0f} MiB"]


async def _answers(app: Any, n_requests: int, rng: np.random.Generator) -> tuple[Counter[tuple[str, int]], list[str]]:
    counts: Counter[tuple[str, int]] = Counter()
    notes = []
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for _ in range(n_requests):
            path, host, request = _request(client, rng)
            answer = await client.send(request)
            counts[path, answer.status_code] += 1
            too_long = answer.status_code >= 400 and len(answer.content) > _LONGEST
            if answer.status_code >= 500 or too_long or (host in _FOREIGN and answer.status_code != 400):
                found = f"{answer.status_code}, {len(answer.content)} bytes, {answer.text[:200]!r}"
                notes.append(f"{path} of {host!r}: {found}")
    return counts, notes


def _request(client: httpx.AsyncClient, rng: np.random.Generator) -> tuple[str, str, httpx.Request]:
    def pick(choices: Any) -> Any:
        return choices[int(rng.integers(len(choices)))]

    path, host = pick(_PATHS), pick(_HOSTS) if rng.random() < 0.3 else "localhost"
    token = {"authorization": f"Bearer {_TOKEN}"} if rng.random() < 0.7 else {}
    if path in ("fold-in", "ratings") or rng.random() < 0.1:
        body = pick(_BODIES)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"host": host} | pick(_HEADERS) | token
        return path, host, client.build_request("POST", f"/{path}", content=content, headers=headers)
    names = _TAKEN.get(path, _NAMES) if rng.random() < 0.9 else _NAMES
    query = "&".join(f"{name}={pick(_COUNTS if name == 'n' else _IDS)}" for name in names if rng.random() < 0.6)
    method = "DELETE" if path in _CHANGED and rng.random() < 0.8 else "GET"
    return path, host, client.build_request(method, f"/{path}?{query}", headers={"host": host} | token)
