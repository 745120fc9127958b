"""Looking closer in the explorer, in Chromium: paths, filters, selections, the minimap, lists by keys."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browsers import chromium
from explorer_cases import HOSTILE
from explorer_page import Page
from scipy.sparse.csgraph import dijkstra
from selenium.webdriver.common.keys import Keys

from air_recsys import Interactions, SimilarityGraph
from air_recsys.report import write_explorer

N_JOINED = 40  # films in two groups; two more know only each other


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Iterator[Page]:
    """One browser for all tests here."""
    profile = f"--user-data-dir={tmp_path_factory.mktemp('profile')}"
    with chromium(profile, logs=("browser", "performance")) as browser:
        yield Page(browser)


@pytest.fixture(scope="module")
def films() -> SimilarityGraph:
    """Films of which some have titles, genres and a name of an attribute that would run as HTML."""
    rng = np.random.default_rng(0)
    group = np.arange(N_JOINED) // 20
    own = rng.random((N_JOINED, N_JOINED)) * (rng.random((N_JOINED, N_JOINED)) < 0.25)
    near = np.zeros((N_JOINED + 2, N_JOINED + 2))
    near[:N_JOINED, :N_JOINED] = np.where(np.equal.outer(group, group), own, 0)
    near[range(19), range(1, 20)] = near[range(20, 39), range(21, 40)] = 0.1  # no part falls to pieces
    near[19, 20], near[40, 41] = 0.2, 0.5
    titles = [*HOSTILE, *(f"Film {i}" for i in range(len(HOSTILE), N_JOINED + 2))]
    table = {
        "title": titles,
        "genre": [*np.where(group, "War", "Comedy|Drama"), "Drama", None],
        "year": [*(1960 + np.arange(N_JOINED) / 2), 1999, np.nan],
        HOSTILE[1]: [HOSTILE[0], HOSTILE[2]] * 21,
    }
    return SimilarityGraph(near + near.T, range(42), kind="item", attributes=pd.DataFrame(table), label="title")


@pytest.fixture(scope="module")
def path(films, tmp_path_factory) -> Path:
    """The page of the films with their ratings, and of users."""
    rng = np.random.default_rng(1)
    ratings = Interactions.from_dense(np.where(rng.random((60, 42)) < 0.5, rng.integers(1, 6, (60, 42)), np.nan))
    users = SimilarityGraph(np.kron(np.eye(2), np.ones((30, 30))), range(60), kind="user")
    folder = tmp_path_factory.mktemp("page")
    return write_explorer(folder / "films.html", {"items": films, "users": users}, ratings=ratings)


@pytest.fixture
def opened(page, path) -> Iterator[Page]:
    """The page, freshly opened; whatever is done, no text runs and nothing fails."""
    page.browser.get("about:blank")
    page.open(path)
    yield page
    assert page.script("return [window.hacked ?? null, document.querySelectorAll('img').length]") == [None, 0]
    assert page.errors() == []


def go(page: Page, path: Path, link: str) -> None:
    """Open the page with a state in its link."""
    page.browser.get("about:blank")
    page.browser.get(path.as_uri() + link)
    page.wait(lambda: page.ready_ms() is not None)


def type_into(page: Page, selector: str, *keys: str) -> None:
    box = page.find(selector)
    box.clear()
    box.send_keys(*keys)


# -------------------------------------------------------------------- paths


def test_the_strongest_path_is_that_of_dijkstra(opened, films, path):
    opened.search("30")
    opened.press(Keys.ENTER)
    type_into(opened, "#path-to", "</script", Keys.ENTER)
    weights = films.to_scipy()
    lengths = weights.copy()
    lengths.data = 1 / lengths.data
    shortest, before = dijkstra(lengths, directed=False, indices=30, return_predecessors=True)
    expected = [0]
    while expected[0] != 30:
        expected.insert(0, int(before[expected[0]]))
    assert opened.texts("#path-list .what") == [films.labels[node] for node in expected]
    found = [float(text) for text in opened.texts("#path-list .count")[1:]]
    assert found == pytest.approx([weights[pair] for pair in pairwise(expected)], rel=6e-3)
    assert sum(1 / np.array(found)) == pytest.approx(shortest[0], rel=0.01)
    assert len(opened.texts("#path-list .why")) == len(found)
    assert all("users rated both" in text for text in opened.texts("#path-list .why"))
    assert f"{len(found)} edges" in opened.text("#path-about")
    marked = opened.script("return explorer.view.scene.links.filter((l) => l.seen && explorer.view.touches(l)).length")
    assert marked == len(found)
    opened.wait(lambda: "to=0" in opened.script("return location.hash"))
    link = opened.script("return location.hash")
    go(opened, path, link)
    assert opened.texts("#path-list .what") == [films.labels[node] for node in expected]
    opened.press(Keys.ESCAPE)  # the path goes first
    assert opened.hidden("#path-list")
    assert opened.text("#name") == films.labels[30]


def test_no_path_is_said(opened):
    opened.search("40")
    opened.press(Keys.ENTER)
    type_into(opened, "#path-to", "Film 7", Keys.ENTER)
    assert opened.text("#path-about").startswith("No path: the")
    assert opened.text("#path-about").endswith("do not join it to Film 7.")
    assert opened.hidden("#path-list")
    opened.find("#path-clear").click()
    assert opened.text("#path-about") == ""
    assert opened.focus() == "path-to"


def test_one_walks_along_a_path(opened, path):
    go(opened, path, "#node=30&to=0")
    whole = opened.texts("#path-list .what")
    opened.find("#path-list li:nth-child(2)").click()
    assert opened.text("#name") == whole[1]
    assert opened.texts("#path-list .what") == whole[1:]
    opened.search("41")
    opened.press(Keys.ENTER)
    assert opened.hidden("#path-list")


# -------------------------------------------------------------------- lists by keys


def test_neighbours_are_a_listbox(opened):
    opened.search("5")
    opened.press(Keys.ENTER)
    names = opened.texts("#list .what")
    focused = "return document.activeElement.querySelector('.what')?.textContent ?? null"
    assert opened.find("#list").get_attribute("role") == "listbox"
    assert opened.script("return [...document.querySelectorAll('#list [tabindex=\"0\"]')].length") == 1
    opened.script("document.querySelector('#list [tabindex=\"0\"]').focus()")
    opened.press(Keys.END)
    assert opened.script(focused) == names[-1]
    opened.press(Keys.ARROW_DOWN)
    assert opened.script(focused) == names[-1]
    opened.press(Keys.HOME, Keys.ARROW_DOWN)
    assert opened.script(focused) == names[1]
    opened.press(Keys.TAB)
    opened.keys_with(Keys.SHIFT, Keys.TAB)  # comes back to where it was
    assert opened.script(focused) == names[1]
    opened.press(Keys.ENTER)
    assert opened.text("#name") == names[1]
