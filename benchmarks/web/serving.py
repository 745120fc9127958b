"""Requests a second and how long each takes: several clients, servers in processes of their own, in turn."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from http.client import HTTPConnection
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.datasets import load_movielens
from air_recsys.evaluation.results.apart import thread_variables
from air_recsys.exceptions import DataError
from air_recsys.models import AIR
from benchmarks.harness import Found

_LIKED = 4.0  # the least rating that is a like
_N = 10
_PLAIN = "plain FastAPI, implicit's ALS"
_PROGRAM = [sys.executable, "-c", "from air_recsys.cli import main; main()"]


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    body: str | None


def bench_serving(
    root: Path,
    seed: int,
    *,
    variant: Literal["100k", "1m"],
    requests: int,
    clients: int,
    rounds: int,
    settings: dict[str, Any],
) -> Found:
    """Measure lists of known and of new users, see `measured_servers`."""
    return measured_servers(load_movielens(root, variant), requests, clients, rounds, seed, settings)


def measured_servers(
    data: Interactions, requests: int, clients: int, rounds: int, seed: int, settings: dict[str, Any]
) -> Found:
    """Ask servers of models of ratings, of likes, and the plain one; the servers take turns.

    Parameters
    ----------
    data : Interactions
        Ratings; those from 4 on are the likes of the models of likes.
    requests : int
        In each round, of each kind, to each server.
    clients : int
        That ask at a time, each over one connection.
    settings : dict
        Parameters of `AIR.for_likes`.
    """
    likes = _likes_of(data)
    kinds, measured = _requests(likes, requests, seed), []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        commands = _commands(data, likes, Path(folder), seed, settings)
        servers = {name: opened.enter_context(_running(command)) for name, command in commands.items()}
        for port in servers.values():
            for asked in kinds.values():
                _measure(port, asked[:clients], clients)
        for _ in range(rounds):
            for kind, asked in kinds.items():
                for name, port in servers.items():
                    measured.append({"request": kind, "server": name} | _measure(port, asked, clients))
    medians = pd.DataFrame(measured).groupby(["request", "server"], sort=False).median()
    plain = medians["per second"].xs(_PLAIN, level="server")
    medians["rate / plain"] = medians["per second"].div(plain, level="request")
    facts: dict[str, Any] = {
        "users": data.n_users,
        "items": data.n_items,
        "ratings": data.n_ratings,
        "likes": likes.nnz,
    }
    return Found(medians.reset_index().to_dict("records"), **facts)


def _likes_of(data: Interactions) -> sp.csr_matrix:
    kept = data.ratings >= _LIKED
    pairs = data.user_index[kept], data.item_index[kept]
    return sp.csr_matrix((np.ones(pairs[0].size, np.float32), pairs), shape=(data.n_users, data.n_items))


def _commands(
    data: Interactions, likes: sp.csr_matrix, folder: Path, seed: int, settings: dict[str, Any]
) -> dict[str, list[str]]:
    """Train the models, and return what serves each; ids of users and items are their positions."""
    same = Interactions(
        data.user_index, data.item_index, data.ratings, range(data.n_users), range(data.n_items), allow_negative=True
    )
    ratings = AIR.for_ratings(random_state=seed, device="cpu").fit(same).save(folder / "ratings.air")
    of_likes = AIR.for_likes(random_state=seed, device="cpu", **settings).fit(Interactions.from_csr(likes))
    sp.save_npz(folder / "likes.npz", likes)
    files = {"air-recsys serve, AIR.for_ratings()": ratings}
    files["air-recsys serve, AIR.for_likes()"] = of_likes.save(folder / "likes.air")
    served = {name: [*_PROGRAM, "serve", str(file), "--port", "0"] for name, file in files.items()}
    return served | {_PLAIN: [sys.executable, "-m", "benchmarks.web.plain_server", str(folder / "likes.npz")]}


def _requests(likes: sp.csr_matrix, number: int, seed: int) -> dict[str, list[Asked]]:
    rng = np.random.default_rng(seed)
    users, popular = rng.integers(len(likes.indptr) - 1, size=number), np.flatnonzero(np.bincount(likes.indices))
    size = min(_N, popular.size // 2)
    new = [rng.choice(popular, size=size, replace=False).tolist() for _ in range(number)]
    return {
        "known user": [Asked("GET", f"/recommend?user={user}&n={_N}", None) for user in users],
        "new user": [Asked("POST", "/fold-in", json.dumps({"likes": items, "n": _N})) for items in new],
    }


@contextmanager
def _running(command: list[str]) -> Iterator[int]:
    """Start a server and yield its port."""
    with thread_variables(1):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"http://[^:/]+:(\d+)", line)
            if found is None:
                raise DataError(f"expected the address of a server, found {line!r}")
            yield int(found[1])
        finally:
            process.terminate()


def _measure(port: int, requests: list[Asked], n_clients: int) -> dict[str, float]:
    parts = [requests[first::n_clients] for first in range(n_clients)]
    start = time.perf_counter()
    with ThreadPoolExecutor(n_clients) as clients:
        seconds = list(chain.from_iterable(clients.map(partial(_ask, port), parts)))
    whole = time.perf_counter() - start
    p50, p99 = 1e3 * np.quantile(seconds, [0.5, 0.99])
    return {"per second": len(requests) / whole, "p50 ms": float(p50), "p99 ms": float(p99)}


def _ask(port: int, requests: list[Asked]) -> list[float]:
    """The seconds of each request over one connection."""
    connection, found = HTTPConnection("127.0.0.1", port, timeout=60), []
    try:
        for method, path, body in requests:
            start = time.perf_counter()
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
            found.append(time.perf_counter() - start)
            if answer.status != 200:
                raise DataError(f"expected an answer to {method} {path}, found {answer.status}: {content[:200]!r}")
    finally:
        connection.close()
    return found
