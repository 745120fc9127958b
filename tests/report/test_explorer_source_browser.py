"""The explorer of a model file in Chromium: the steps of its training, and the edges of who rated what."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from explorer_page import Page, explorer_in_chromium
from selenium.webdriver.common.keys import Keys

from air_recsys import AIR
from air_recsys.report import explorer_of

PLACES = "return explorer.view.scene.nodes.map((n) => [n.key, n.x, n.y, n.color]).sort((a, b) => a[0] - b[0])"


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Iterator[Page]:
    """One browser for all tests here."""
    with explorer_in_chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def loaded(tmp_path_factory) -> Path:
    """The page of a model that was read from a file."""
    folder = tmp_path_factory.mktemp("model")
    rng = np.random.default_rng(0)
    same = np.equal.outer(np.arange(60) // 30, np.arange(40) // 20)
    shown = rng.random((60, 40)) < np.where(same, 0.8, 0.15)
    ratings = np.where(shown, rng.integers(1, 6, shown.shape).astype(float), np.nan)
    options = {"n_factors": 2, "graph_neighbors": 5, "n_sweeps": 6, "random_state": 0, "device": "cpu"}
    model = AIR.for_ratings(**options, snapshot_epochs=[0, 1, 3]).fit(ratings)
    return explorer_of(AIR.load(model.save(folder / "model.air")), folder / "page.html")


@pytest.fixture
def opened(page, loaded) -> Page:
    """The page, freshly opened."""
    page.open(loaded)
    return page


def other_edges(page: Page) -> None:
    page.find("#source label:nth-of-type(2)").click()


def test_the_slider_goes_through_the_steps_of_a_file(opened):
    assert not opened.hidden("#steps")
    assert opened.text("#epoch") == "(trained)"
    places = opened.script(PLACES)
    seen = []
    for _ in range(3):
        opened.find("#step").send_keys(Keys.ARROW_LEFT)
        seen.append(opened.text("#epoch"))
        assert [each[:3] for each in opened.script(PLACES)] == [each[:3] for each in places]
    assert seen == ["epoch 3", "epoch 1", "epoch 0"]
    assert opened.errors() == []


def test_the_switch_changes_edges_and_nothing_else(opened):
    before, summary = opened.script(PLACES), opened.text("#summary")
    zoom = "return [explorer.view.canvas.zoom(), explorer.view.canvas.centerAt()]"
    view = opened.script(zoom)
    ends = "return explorer.graph.step.sources.map((s, e) => [s, explorer.graph.step.targets[e]])"
    learned = opened.script(ends)
    other_edges(opened)
    assert opened.script(PLACES) == before
    assert opened.script(zoom) == view
    assert opened.script(ends) != learned
    assert opened.text("#summary") != summary
    assert opened.number("#drawn") > 0
    opened.find("#source label:nth-of-type(1)").click()
    assert opened.script(ends) == learned
    assert opened.text("#summary") == summary
    assert opened.errors() == []


def test_neighbours_are_those_of_the_edges_shown(opened):
    opened.search("7")
    opened.press(Keys.ENTER)
    learned = opened.texts("#list .what")
    other_edges(opened)
    assert opened.text("#name") == "7"
    by_pattern = opened.texts("#list .what")
    assert by_pattern
    assert by_pattern != learned
    kept = opened.script("return explorer.graph.neighbors(7).map(({ node }) => explorer.graph.labels[node])")
    assert by_pattern == kept[:200]
    assert "rated both" in opened.text("#list .why")


def test_the_choice_of_edges_is_in_the_link_and_of_each_graph(opened, page, loaded):
    other_edges(opened)
    opened.wait(lambda: "source=pattern" in opened.script("return location.hash"))
    link = opened.script("return location.hash")
    page.browser.get("about:blank")
    page.browser.get(loaded.as_uri() + link)
    page.wait(lambda: page.ready_ms() is not None)
    assert page.find('input[name="edges"][value="pattern"]').is_selected()
    page.find("#switch label:nth-of-type(2)").click()
    assert page.find('input[name="edges"][value="learned"]').is_selected()
    page.find("#switch label:nth-of-type(1)").click()
    assert page.find('input[name="edges"][value="pattern"]').is_selected()
    assert page.errors() == []


def test_a_step_of_the_training_keeps_the_edges_of_the_pattern(opened):
    other_edges(opened)
    edges = "return explorer.graph.step.sources.length"
    before = opened.script(edges)
    opened.find("#step").send_keys(Keys.ARROW_LEFT)
    assert opened.text("#epoch") == "epoch 3"
    assert opened.script(edges) == before
    assert opened.errors() == []
