"""Looking closer in the explorer, in Chromium: paths, filters, selections, the minimap, steps, other edges."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browsers import webdriver
from explorer_cases import HOSTILE, planted
from explorer_page import Page
from scipy.sparse.csgraph import dijkstra
from selenium.webdriver.common.keys import Keys

from air_recsys import AIR, Interactions, SimilarityGraph
from air_recsys.graphs.naming import fit, traits_of
from air_recsys.report import explorer_of, write_explorer

N_JOINED = 40  # films in two groups; two more know only each other


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
    page.open(path)
    yield page
    assert page.script("return [window.hacked ?? null, document.querySelectorAll('img').length]") == [None, 0]
    assert page.errors() == []


def type_into(page: Page, selector: str, *keys: str) -> None:
    box = page.find(selector)
    box.clear()
    box.send_keys(*keys)


def test_the_strongest_path_is_that_of_dijkstra(opened, films, path):
    opened.take("30")
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
    opened.open(path, opened.link("to=0"))
    assert opened.texts("#path-list .what") == [films.labels[node] for node in expected]
    opened.press(Keys.ESCAPE)  # the path goes first
    assert opened.hidden("#path-list")
    assert opened.text("#name") == films.labels[30]


def test_no_path_is_said(opened):
    opened.take("40")
    type_into(opened, "#path-to", "Film 7", Keys.ENTER)
    assert opened.text("#path-about").startswith("No path: the")
    assert opened.text("#path-about").endswith("do not join it to Film 7.")
    assert opened.hidden("#path-list")
    opened.find("#path-clear").click()
    assert opened.text("#path-about") == ""
    assert opened.focus() == "path-to"


def test_one_walks_along_a_path(opened, path):
    opened.open(path, "#node=30&to=0")
    whole = opened.texts("#path-list .what")
    opened.find("#path-list li:nth-child(2)").click()
    assert opened.text("#name") == whole[1]
    assert opened.texts("#path-list .what") == whole[1:]
    opened.take("41")
    assert opened.hidden("#path-list")


def test_neighbours_are_a_listbox(opened):
    opened.take("5")
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


def test_filters_by_numbers_and_texts(opened, films, path):
    table = films.attributes
    opened.find("#filters-toggle").click()
    assert "genre" in opened.texts("#filter-fields .choice > summary")
    assert HOSTILE[1] in opened.texts("#filter-fields .choice > summary")
    type_into(opened, '[aria-label="year at least"]', "1965")
    late = np.flatnonzero(table["year"] >= 1965)
    assert opened.seen() == late.tolist()  # without those of no year
    assert opened.text("#passing") == f"{late.size} of 42 items pass"
    opened.find("#filter-fields .choice:last-of-type summary").click()
    opened.script("[...document.querySelectorAll('.choice summary')].find((e) => e.textContent === 'genre').click()")
    drama = "[...document.querySelectorAll('.choice label')].find((e) => e.textContent.startsWith('Drama'))"
    opened.script(f"{drama}.click()")
    both = np.flatnonzero((table["year"] >= 1965) & table["genre"].str.contains("Drama"))
    assert opened.seen() == both.tolist()
    assert set(opened.saved_csv()["id"]) == set(both)
    community = opened.script("return explorer.graph.communities[arguments[0]]", int(both[0]))
    opened.find(f"#legend li:nth-child({community + 1}) button").click()
    inside = opened.script("return explorer.graph.members.get(arguments[0])", community)
    assert opened.seen() == sorted(set(both) & set(inside))
    assert set(opened.saved_csv()["id"]) == set(both) & set(inside)
    opened.open(path, opened.link("only="))
    assert opened.seen() == sorted(set(both) & set(inside))
    assert opened.script("return document.querySelector('[aria-label=\"year at least\"]').value") == "1965"
    opened.find("#clear-filters").click()
    assert opened.seen() == sorted(inside)


def test_texts_that_would_run_are_choices(opened, path):
    opened.script("document.querySelectorAll('#filters, .choice').forEach((e) => { e.open = true; })")
    assert {HOSTILE[0], HOSTILE[2]} <= set(opened.texts(".choice .what"))
    opened.script(
        "[...document.querySelectorAll('.choice label')].find((e) => e.textContent.startsWith('</script>')).click()"
    )
    assert opened.seen() == list(range(0, 42, 2))
    opened.open(path, opened.link("if+"))
    assert opened.seen() == list(range(0, 42, 2))


def test_links_that_are_wrong_select_and_filter_nothing(opened, path):
    for link in ("#if+year=a..b&if+genre=None&if+no=1..2&in=x&to=3", "#in=&node=1&to=1", "#if+="):
        opened.open(path, link)
        assert opened.seen() == list(range(42))
        assert opened.hidden("#selected")
        assert opened.hidden("#path-told")


def draw(page: Page, places: list[list[float]], shift: bool = True) -> None:
    """Draw a line over the picture through these pixels of it."""
    width, height = page.script("const e = explorer.view.element; return [e.clientWidth, e.clientHeight]")
    canvas = page.find("#canvas")
    actions = webdriver.ActionChains(page.browser, duration=0)
    actions = actions.key_down(Keys.SHIFT) if shift else actions
    for number, (x, y) in enumerate(places):
        actions.move_to_element_with_offset(canvas, round(x - width / 2), round(y - height / 2))
        if number == 0:
            actions.click_and_hold()
    actions.release()
    (actions.key_up(Keys.SHIFT) if shift else actions).perform()


def draw_by_finger(page: Page, places: list[list[float]]) -> None:
    page.browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 1})
    left, top = page.script("const b = explorer.view.element.getBoundingClientRect(); return [b.left, b.top]")
    for number, (x, y) in enumerate(places):
        finger = {"type": "touchMove" if number else "touchStart", "touchPoints": [{"x": left + x, "y": top + y}]}
        page.browser.execute_cdp_cmd("Input.dispatchTouchEvent", finger)
    page.browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


def left_half(page: Page) -> tuple[list[list[float]], list[int]]:
    """A loop round the left half of the picture, and which nodes are in it."""
    page.pixels()
    width, height = page.script("const e = explorer.view.element; return [e.clientWidth, e.clientHeight]")
    inside = page.script(
        "return explorer.view.scene.nodes.filter((n) => n.seen && "
        "explorer.view.canvas.graph2ScreenCoords(n.x, n.y).x < arguments[0]).map((n) => n.key)",
        round(width / 2),
    )
    middle = round(width / 2)
    return [[2, 2], [middle, 2], [middle, height - 2], [2, height - 2], [2, 2]], sorted(inside)


@pytest.mark.parametrize("how", ["shift", "button", "finger"])
def test_a_loop_selects(opened, path, how):
    camera = "const c = explorer.view.canvas; return [c.centerAt().x, c.centerAt().y, c.zoom()]"
    loop, inside = left_half(opened)
    before = opened.script(camera)
    if how != "shift":
        opened.find("#lasso").click()
    if how == "finger":
        draw_by_finger(opened, loop)
    else:
        draw(opened, loop, shift=how == "shift")
    assert 0 < len(inside) < 42
    assert opened.text("#name") == "Selection"
    assert opened.text("#show-selected") == f"{len(inside)} selected"
    assert opened.script(camera) == before  # the picture stays where it is
    assert opened.find("#lasso").get_attribute("aria-pressed") == "false"
    assert sorted(opened.saved_csv()["id"]) == inside
    opened.find("#show-table").click()
    assert len(opened.texts("#rows tbody tr")) == len(inside)
    assert "genre" in opened.texts("#rows th")
    opened.press(Keys.ESCAPE)
    opened.open(path, opened.link("in="))
    assert sorted(opened.saved_csv()["id"]) == inside
    opened.press(Keys.ESCAPE)
    assert opened.hidden("#selected")
    assert opened.hidden("#panel")


def test_what_sets_a_selection_apart_is_told_as_for_communities(opened, films):
    opened.script("explorer.selected.set([...Array(20).keys()].slice(2))")
    told = dict(zip(opened.texts("#attributes dt"), opened.texts("#attributes dd"), strict=True))
    chosen = np.isin(np.arange(42), np.arange(2, 20))
    traits = {trait.text: trait for trait in traits_of(films.attributes, films.label)}
    n_traits = opened.script("return traitsOf(explorer.graph).length")
    expected = fit(chosen, traits["Comedy"], n_traits)
    share, of_all = (f"{100 * value:.0f} %" for value in (expected.share, expected.share_of_all))
    assert told["Comedy"].startswith(f"{share} of them, {of_all} of all, p = ")
    assert float(told["Comedy"].split("= ")[1]) == pytest.approx(expected.p_value, rel=0.5)
    exact = "return standingOut(traitsOf(explorer.graph), [...explorer.selected.nodes]).map((t) => [t.text, t.pValue])"
    assert dict(opened.script(exact))["Comedy"] == pytest.approx(expected.p_value, rel=1e-9)
    assert "War" not in told


def test_a_selection_by_keys(opened, films):
    opened.search("0")
    opened.press(Keys.ENTER, "s")
    assert opened.text("#select-node") == "Remove from selection"
    assert HOSTILE[0] in opened.text("#status")
    opened.take("7")
    opened.find("#select-node").send_keys(Keys.ENTER)
    assert opened.text("#show-selected") == "2 selected"
    opened.find("#show-selected").click()
    assert set(opened.texts("#list .what")) == {HOSTILE[0], "Film 7"}
    opened.find("#list li").click()
    opened.press("s")
    assert opened.text("#show-selected") == "1 selected"
    opened.press(Keys.ESCAPE)  # lets go of the node
    assert not opened.hidden("#selected")
    opened.press(Keys.ESCAPE)
    assert opened.hidden("#selected")


def test_a_selection_or_a_community_has_no_surroundings(opened):
    for choice in ("{ selected: true }", "{ community: 0 }"):
        opened.script("explorer.selected.set([1, 2]); explorer.choose({ node: 5 })")
        opened.find("#ego label:nth-of-type(2)").click()
        assert len(opened.seen()) < 42
        opened.script(f"explorer.choose({choice})")
        assert len(opened.seen()) == 42


def test_a_click_with_shift_adds_and_removes(opened):
    opened.pixels()
    place = opened.script("""
        const { view } = explorer;
        const at = (n) => view.canvas.graph2ScreenCoords(n.x, n.y);
        const box = view.element.getBoundingClientRect();
        const pointer = (n) => ({ clientX: Math.round(at(n).x) + box.left, clientY: Math.round(at(n).y) + box.top });
        const node = view.scene.nodes.find((n) => view.nodeAt(pointer(n)) === n);
        return [Math.round(at(node).x), Math.round(at(node).y)];
    """)
    draw(opened, [place])
    assert opened.text("#show-selected") == "1 selected"
    assert opened.hidden("#panel")
    draw(opened, [place])
    assert opened.hidden("#selected")


def test_the_minimap_shows_and_moves(page, opened, path):
    assert opened.hidden("#minimap")  # all of it is seen
    for _ in range(3):
        opened.find("#zoom-in").click()
        opened.pixels()
    assert not opened.hidden("#minimap")
    assert opened.find("#minimap").get_attribute("aria-hidden") == "true"
    center = "const { x, y } = explorer.view.canvas.centerAt(); return [x, y]"
    webdriver.ActionChains(page.browser, duration=0).move_to_element_with_offset(
        opened.find("#minimap"), -60, -40
    ).click().perform()
    first = opened.script(center)
    webdriver.ActionChains(page.browser, duration=0).click_and_hold().move_by_offset(80, 50).release().perform()
    second = opened.script(center)
    box = opened.script("return explorer.minimap.box")
    assert (np.array(second) - first) * box["scale"] == pytest.approx([80, 50], abs=1)
    drawn = "return [...explorer.minimap.element.getContext('2d').getImageData(0, 0, 170, 120).data].some(Boolean)"
    assert opened.script(drawn)
    opened.press("0")
    page.open(path, size=(390, 844))
    opened.script("explorer.view.canvas.zoom(8)")
    opened.pixels()
    assert opened.script("return getComputedStyle(document.getElementById('minimap')).display") == "none"
    assert opened.script("return document.documentElement.scrollWidth") <= 390


def test_the_tools_work_where_communities_are_drawn(page, tmp_path):
    graph = planted(200, 4)
    page.open(write_explorer(tmp_path / "g.html", graph, max_nodes=199))
    first = page.script("return explorer.graph.members.get(0)")
    page.script("explorer.filters.setWanted('group', new Set(['shelf 1'])); explorer.refresh()")
    having = np.flatnonzero(graph.attributes["group"] == "shelf 1")
    assert set(page.seen()) == {graph.communities().iloc[node] for node in having}
    page.script("explorer.filters.clear(); explorer.refresh(); explorer.selected.take(({ x }) => true)")
    assert page.text("#show-selected") == "200 selected"
    assert set(first) <= set(page.script("return [...explorer.selected.nodes]"))
    page.take(str(graph.ids[0]))
    type_into(page, "#path-to", str(graph.ids[199]), Keys.ENTER)
    path = page.texts("#path-list .what")
    assert path[0] == graph.labels[0]
    assert path[-1] == graph.labels[199]
    assert page.number("#drawn") >= len(path) - 1
    keys = page.script("return explorer.view.scene.nodes.map((n) => n.label)")
    assert sorted(keys) == sorted(path)
    assert page.errors() == []


PLACES = "return explorer.view.scene.nodes.map((n) => [n.key, n.x, n.y, n.color]).sort((a, b) => a[0] - b[0])"


@pytest.fixture(scope="module")
def sourced(tmp_path_factory) -> Path:
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
def stepped(page, sourced) -> Page:
    """The page, freshly opened."""
    page.open(sourced)
    return page


def other_edges(page: Page) -> None:
    page.find("#source label:nth-of-type(2)").click()


def test_the_slider_goes_through_the_steps_of_a_file(stepped):
    assert not stepped.hidden("#steps")
    assert stepped.text("#epoch") == "(trained)"
    places = stepped.script(PLACES)
    seen = []
    for _ in range(3):
        stepped.find("#step").send_keys(Keys.ARROW_LEFT)
        seen.append(stepped.text("#epoch"))
        assert [each[:3] for each in stepped.script(PLACES)] == [each[:3] for each in places]
    assert seen == ["epoch 3", "epoch 1", "epoch 0"]
    assert stepped.errors() == []


def test_the_switch_changes_edges_and_nothing_else(stepped):
    before, summary = stepped.script(PLACES), stepped.text("#summary")
    zoom = "return [explorer.view.canvas.zoom(), explorer.view.canvas.centerAt()]"
    view = stepped.script(zoom)
    ends = "return explorer.graph.step.sources.map((s, e) => [s, explorer.graph.step.targets[e]])"
    learned = stepped.script(ends)
    other_edges(stepped)
    assert stepped.script(PLACES) == before
    pattern = stepped.script(ends)
    assert stepped.script(zoom) == view
    assert stepped.script(ends) != learned
    assert stepped.text("#summary") != summary
    assert stepped.number("#drawn") > 0
    stepped.find("#step").send_keys(Keys.ARROW_LEFT)
    assert stepped.text("#epoch") == "epoch 3"
    assert stepped.script(ends) == pattern  # of no step of the training
    stepped.find("#step").send_keys(Keys.END)
    stepped.find("#source label:nth-of-type(1)").click()
    assert stepped.script(ends) == learned
    assert stepped.text("#summary") == summary
    assert stepped.errors() == []


def test_neighbours_are_those_of_the_edges_shown(stepped):
    stepped.take("7")
    learned = stepped.texts("#list .what")
    other_edges(stepped)
    assert stepped.text("#name") == "7"
    by_pattern = stepped.texts("#list .what")
    assert by_pattern
    assert by_pattern != learned
    kept = stepped.script("return explorer.graph.neighbors(7).map(({ node }) => explorer.graph.labels[node])")
    assert by_pattern == kept[:200]
    assert "rated both" in stepped.text("#list .why")


def test_the_choice_of_edges_is_in_the_link_and_of_each_graph(stepped, sourced):
    other_edges(stepped)
    stepped.open(sourced, stepped.link("source=pattern"))
    assert stepped.find('input[name="edges"][value="pattern"]').is_selected()
    stepped.find("#switch label:nth-of-type(2)").click()
    assert stepped.find('input[name="edges"][value="learned"]').is_selected()
    stepped.find("#switch label:nth-of-type(1)").click()
    assert stepped.find('input[name="edges"][value="pattern"]').is_selected()
    assert stepped.errors() == []
