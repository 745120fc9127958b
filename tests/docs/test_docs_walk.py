"""The walk of one rating: its stops are functions that a run enters in that order."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path

import pytest

import air_recsys
from air_recsys import AIR
from air_recsys.datasets import read_ratings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "walk.md"
PACKAGE = Path(air_recsys.__file__).parent
STOP = re.compile(r"^(\d+)\. `([\w/]+\.py)` `([\w.]+)`", re.MULTILINE)
STOPS = STOP.findall(PAGE.read_text(encoding="utf-8"))
RATINGS = "user,item,rating\nann,a,4\nann,b,5\nbob,a,5\nbob,d,2\ncid,b,1\ncid,d,4\ndan,a,1\ndan,d,5\n"


@pytest.fixture(scope="module")
def entered(tmp_path_factory) -> list[tuple[str, str]]:
    """File and function of every call of the package from the table to the score, in order."""
    path = tmp_path_factory.mktemp("walk") / "ratings.csv"
    path.write_text(RATINGS)
    calls: list[tuple[str, str]] = []

    def watch(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            calls.append((Path(code.co_filename).relative_to(PACKAGE).as_posix(), code.co_qualname))

    model, before = AIR.for_ratings(n_factors=2, random_state=0, device="cpu"), sys.getprofile()
    sys.setprofile(watch)
    try:
        model.fit(read_ratings(path)).predict("ann", "d")
    finally:
        sys.setprofile(before)
    return calls


def test_there_are_few_stops_and_they_are_numbered():
    assert [int(number) for number, *_ in STOPS] == list(range(1, len(STOPS) + 1))
    assert 15 < len(STOPS) <= 25


def test_a_run_enters_every_stop_in_its_order(entered):
    position = 0
    for _, path, function in STOPS:
        later = entered[position:]
        assert (path, function) in later, f"{function} of {path} is not entered after the stop before it"
        position += later.index((path, function)) + 1


def test_base_and_estimator_alternate_once():
    homes = {"models/base.py": "base", "models/air.py": "estimator", "models/trained.py": "estimator"}
    passed = [homes[path] for _, path, _ in STOPS if path in homes]
    changes = sum(one != other for one, other in itertools.pairwise(passed))
    assert changes == 1


def test_other_places_that_the_page_names_are_there():
    named = re.findall(r"`((?:\w+/)*\w+\.py)`(?: `([\w.]+)`)?", PAGE.read_text(encoding="utf-8"))
    for path, function in named:
        if not path.startswith("tests/"):
            assert (PACKAGE / path).is_file(), path
            assert function.rpartition(".")[2] in (PACKAGE / path).read_text(encoding="utf-8")
