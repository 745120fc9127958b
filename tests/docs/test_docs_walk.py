"""The walks of a rating and of a like: their stays are functions that a run enters in that order."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import air_recsys
from air_recsys import AIR
from air_recsys.datasets import read_ratings

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "walk.md").read_text(encoding="utf-8")
PACKAGE = Path(air_recsys.__file__).parent
STAY = re.compile(r"^(\d+)\. `([\w/]+\.py)` `([\w.]+)`", re.MULTILINE)
RATINGS = "user,item,rating\nann,a,4\nann,b,5\nbob,a,5\nbob,d,2\ncid,b,1\ncid,d,4\ndan,a,1\ndan,d,5\n"
LIKES = "user,item\n" + "\n".join(f"u{user},i{item}" for user in range(12) for item in range(10) if (user + item) % 3)
MOST = 20


def stays(heading: str) -> list[tuple[str, str, str]]:
    """Number, file and function of each stay below a heading."""
    return STAY.findall(PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0])


def rating(path: Path) -> None:
    path.write_text(RATINGS)
    AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(read_ratings(path)).predict("ann", "d")


def like(path: Path) -> None:
    path.write_text(LIKES)
    model = AIR.for_likes(n_factors=2, n_steps=3, random_state=0, device="cpu")
    model.fit(read_ratings(path, rating=None)).recommend("u0", n=2)


def entered(run: Callable[[], None]) -> list[tuple[str, str]]:
    """File and function of every call of the package in a run, in order."""
    calls: list[tuple[str, str]] = []

    def watch(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            calls.append((Path(code.co_filename).relative_to(PACKAGE).as_posix(), code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize(("heading", "walk"), [("A rating", rating), ("A like", like)])
def test_a_run_enters_every_stay_in_its_order(heading, walk, tmp_path):
    named = stays(heading)
    assert [int(number) for number, *_ in named] == list(range(1, len(named) + 1))
    assert 10 <= len(named) <= MOST
    calls, position = entered(lambda: walk(tmp_path / "table.csv")), 0
    for _, path, function in named:
        later = calls[position:]
        assert (path, function) in later, f"{function} of {path} is not entered after the stay before it"
        position += later.index((path, function)) + 1


def test_no_stay_is_a_private_hook():
    names = [function.rpartition(".")[2] for heading in ("A rating", "A like") for *_, function in stays(heading)]
    assert [name for name in names if name.startswith("_") and name != "__init__"] == []
