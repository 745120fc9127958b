"""Models to serve, files of them, and servers in processes of their own."""

from __future__ import annotations

import asyncio
import itertools
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pandas as pd

from air_recsys import AIR
from air_recsys.models import GraphRanker

N_USERS, N_ITEMS = 60, 40
HOSTILE = ("<img src=x onerror='window.hacked = 1'>", "</script><script>window.hacked = 1</script>", 'a\u2028b & "c"')
COMMAND = [sys.executable, "-c", "from air_recsys.cli import main; main()", "serve"]


def table(ids: str = "text") -> pd.DataFrame:
    """Ratings 1..5 of two groups of users for two groups of items."""
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((N_USERS, N_ITEMS)) < 0.4)
    values = np.where(users % 2 == items % 2, 4.5, 2.0) + 0.7 * rng.standard_normal(users.size)
    frame = pd.DataFrame({"user": users, "item": items, "rating": values.round().clip(1, 5)})
    if ids == "text":
        frame["user"], frame["item"] = [f"u{user}" for user in users], [f"i{item}" for item in items]
    return frame


def titles() -> dict[str, str]:
    """Names of most items, some of which want to be more than text."""
    named = {f"i{number}": f"Film {number:02}" for number in range(N_ITEMS - 3)}
    return named | dict(zip(("i1", "i3", "i5"), HOSTILE, strict=True))


def of_ratings(ids: str = "text", **settings: object) -> AIR:
    return AIR.for_ratings(**{"n_factors": 3, "random_state": 0, "device": "cpu"} | settings).fit(table(ids))


def of_likes(ids: str = "text") -> GraphRanker:
    return AIR.for_likes(settings={}, device="cpu").fit(table(ids).query("rating > 3").drop(columns="rating"))


def write_files(folder: Path) -> Path:
    """Write ratings.air, likes.air and titles.csv."""
    of_ratings().save(folder / "ratings.air")
    of_likes().save(folder / "likes.air")
    pd.DataFrame({"id": list(titles()), "title": list(titles().values())}).to_csv(folder / "titles.csv", index=False)
    return folder


class Running:
    """A server in a process of its own."""

    def __init__(self, *arguments: object) -> None:
        command = [*COMMAND, *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        found = re.search(r"http://\S+", self.line)
        if found is None:
            raise AssertionError(f"{self.line}{self.end()[2]}")
        self.address = found[0]

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """Send a signal, and return the status and what was written to both streams since the first line."""
        self.process.send_signal(number)
        try:
            out, err = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return self.process.returncode, out, err


@contextmanager
def running(*arguments: object) -> Iterator[Running]:
    """Serve for a while; nothing may have gone to the standard error."""
    server = Running(*arguments)
    try:
        yield server
    finally:
        status, out, err = server.end()
    assert (status, out, err) == (0, "stopped\n", "")


def below(process: int | str) -> list[str]:
    """The workers of a server, the process that they are forked from, and the one that looks after what they share."""
    found = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="utf-8").split()
    return [*found, *itertools.chain.from_iterable(map(below, found))]


def wait_for_the_end_of(processes: list[str]) -> None:
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{process}").exists() for process in processes):
        assert time.monotonic() < deadline
        time.sleep(0.1)


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
