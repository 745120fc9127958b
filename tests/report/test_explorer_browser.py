"""The explorer in Chromium: what a visitor sees, clicks and types, and that the network stays silent."""

import io
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from browsers import CONTRAST, TRESPASS, webdriver
from explorer_cases import HOSTILE, planted, ring, weaker
from explorer_page import Page, choose_option, downloads, explorer_in_chromium
from selenium.webdriver.common.keys import Keys

from air_recsys import Interactions, SimilarityGraph
from air_recsys.report import write_explorer


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Iterator[Page]:
    """One browser for all tests here."""
    with explorer_in_chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def items() -> SimilarityGraph:
    """A generated graph of the size of MovieLens-1M's items."""
    return planted()


@pytest.fixture(scope="module")
def large(items, tmp_path_factory) -> Path:
    """The page of items with two snapshots, and of users."""
    steps = {"items": {500: weaker(items, 0.3), 2000: weaker(items, 0.7)}}
    graphs = {"items": items, "users": planted(900, 8, kind="user")}
    return write_explorer(tmp_path_factory.mktemp("page") / "items.html", graphs, snapshots=steps, title="Films")


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """A page that opens at once, with all controls."""
    films = planted(400, 14)
    graphs = {"items": films, "users": planted(100, 3, kind="user")}
    steps = {"items": {500: weaker(films, 0.5)}}
    return write_explorer(tmp_path_factory.mktemp("page") / "small.html", graphs, snapshots=steps)


@pytest.fixture
def full(page, large) -> Page:
    """The large page, freshly opened."""
    page.open(large)
    return page


@pytest.fixture
def films(page, small) -> Page:
    """The small page, freshly opened."""
    page.open(small)
    return page


# -------------------------------------------------------------------- loading


def test_the_size_and_speed_of_a_large_page(page, large, items):
    assert len(items) == 3706
    assert items.n_edges > 40_000
    assert large.stat().st_size < 8e6
    times = []
    for _ in range(3):
        page.open(large)
        times.append(page.ready_ms())
    assert min(times) < 2000, times


def test_no_error_and_no_request(full, large):
    full.search("velvet")
    full.press(Keys.ENTER)
    full.find("#close").click()
    assert full.errors() == []
    requests = full.requests()
    assert large.as_uri() in requests  # the log sees what is asked for
    assert set(requests) <= {large.as_uri(), "data:,"}


def test_the_policy_refuses_the_network(films):
    films.script(TRESPASS)
    films.wait(lambda: len(films.script("return refused")) == 3)
    assert set(films.script("return refused")) == {"connect-src", "img-src", "script-src-elem"}
    assert films.script("return window.hacked ?? null") is None


# -------------------------------------------------------------------- what a visitor does


def test_search_finds_a_title_and_shows_its_neighbours(full, items):
    row = 1234
    title, id = items.labels[row], items.ids[row]
    full.search(title[:9].upper())
    found = full.texts("#found li .what")
    assert found
    assert all(title[:9].lower() in text.lower() for text in found)
    full.search(str(id))
    assert full.text("#found li .id") == str(id)
    full.press(Keys.ENTER)
    assert full.text("#name") == title
    assert f"item {id}" in full.text("#about")
    expected = items.neighbors(id, n=5)
    assert full.texts("#list .what")[:5] == [items.labels[other - 1] for other in expected["item"]]
    weights = [float(text) for text in full.texts("#list .count")[:5]]
    assert weights == pytest.approx(expected["weight"].tolist(), rel=6e-3)
    shown = dict(zip(full.texts("#attributes dt"), full.texts("#attributes dd"), strict=True))
    assert shown == {"year": title[-5:-1], "group": str(items.attributes["group"].iloc[row])}


def test_search_for_nothing_that_is_there(films):
    films.search("zzzz no such film")
    assert films.texts("#found li") == ["Nothing found"]
    films.press(Keys.ENTER)
    assert films.hidden("#panel")


def test_the_slider_changes_the_number_of_drawn_edges(full, items):
    slider = full.find("#threshold")
    assert 0 < full.number("#drawn") < items.n_edges
    slider.send_keys(Keys.HOME)
    assert full.number("#drawn") == full.number("#total") == items.n_edges
    all_edges = full.drawn_pixels()
    weights = items.edge_list()["weight"]
    for _ in range(3):
        slider.send_keys(Keys.PAGE_UP)
        least = float(full.text("#weight"))
        assert full.number("#drawn") == pytest.approx((weights >= least).sum(), rel=0.01)
    assert full.number("#drawn") < items.n_edges
    assert full.drawn_pixels() != all_edges
    slider.send_keys(Keys.END)
    assert full.number("#drawn") == 1


def test_the_switch_shows_the_other_graph(full, items):
    before = full.drawn_pixels()
    assert full.text("#summary").startswith("3,706 items")
    full.find("#switch label:nth-of-type(2)").click()
    assert full.text("#summary").startswith("900 users")
    assert full.hidden("#steps")
    assert full.drawn_pixels() != before
    full.search("17")
    full.press(Keys.ENTER)
    assert "user 17" in full.text("#about")


def test_the_step_slider_shows_earlier_graphs(full, items):
    assert full.text("#epoch") == "(trained)"
    n_edges = [f"{weaker(items, share).n_edges:,}" for share in (0.3, 0.7)]
    full.find("#step").send_keys(Keys.ARROW_LEFT)
    assert full.text("#epoch") == "epoch 2,000"
    assert n_edges[1] in full.text("#summary")
    full.find("#step").send_keys(Keys.HOME)
    assert full.text("#epoch") == "epoch 500"
    assert n_edges[0] in full.text("#summary")


def test_the_legend_filters(films):
    everything = films.number("#drawn")
    sizes = [int(text.replace(",", "")) for text in films.texts("#legend .count")]
    assert sum(sizes) == 400
    films.find("#legend button").click()
    one = films.number("#drawn")
    assert 0 < one < everything
    assert films.find("#legend button").get_attribute("aria-pressed") == "true"
    films.find("#legend li:nth-child(2) button").click()
    assert one < films.number("#drawn") < everything
    films.find("#all").click()
    assert films.number("#drawn") == everything


def test_the_ego_view(full, items):
    full.find("#threshold").send_keys(Keys.HOME)
    full.search("77")
    full.press(Keys.ENTER)
    full.find("#ego label:nth-of-type(2)").click()
    edges = items.ego(77, hops=1).n_edges
    assert full.number("#drawn") == edges
    full.find("#ego label:nth-of-type(3)").click()
    assert full.number("#drawn") > edges
    full.find("#close").click()
    assert full.number("#drawn") == items.n_edges


def test_a_click_on_a_node_chooses_it_and_one_beside_it_lets_it_go(full):
    places = full.script("""
        const { view, graph } = explorer;
        const node = view.scene.nodes[0];
        const { x, y } = view.canvas.graph2ScreenCoords(node.x, node.y);
        const box = view.element.getBoundingClientRect();
        return [Math.round(x - box.width / 2), Math.round(y - box.height / 2), node.label];
    """)
    canvas = full.find("#canvas")
    webdriver.ActionChains(full.browser, duration=0).move_to_element_with_offset(canvas, *places[:2]).click().perform()
    full.wait(lambda: not full.hidden("#panel"))
    assert full.text("#name") in full.script("return explorer.graph.labels")
    assert full.text("#tip")
    corner = full.script("const b = explorer.view.element; return [4 - b.clientWidth / 2, 4 - b.clientHeight / 2]")
    webdriver.ActionChains(full.browser, duration=0).move_to_element_with_offset(
        canvas, *map(round, corner)
    ).click().perform()
    assert full.hidden("#panel")


# -------------------------------------------------------------------- names, looks, link, files


@pytest.fixture(scope="module")
def rated(tmp_path_factory) -> Path:
    """Two groups of films with their ratings, genres and years, and their users."""
    rng = np.random.default_rng(0)
    shown = rng.random((60, 40)) < np.where(np.equal.outer(np.arange(60) // 30, np.arange(40) // 20), 0.8, 0.1)
    ratings = Interactions.from_dense(np.where(shown, rng.integers(1, 6, shown.shape).astype(float), np.nan))
    group = np.arange(40) // 20
    near = np.where(np.equal.outer(group, group), rng.random((40, 40)), 0.05 * (rng.random((40, 40)) < 0.2))
    table = pd.DataFrame({"title": [f"Film {i}" for i in range(40)], "genre": np.where(group, "War", "Comedy|Drama")})
    about = table.assign(year=1960 + group)
    items = SimilarityGraph(near + near.T, range(40), kind="item", attributes=about, label="title")
    users = SimilarityGraph(np.kron(np.eye(2), np.ones((30, 30))), range(60), kind="user")
    path = tmp_path_factory.mktemp("page") / "rated.html"
    return write_explorer(path, {"items": items, "users": users}, ratings=ratings)


@pytest.fixture
def two(page, rated) -> Page:
    """The page with ratings, freshly opened."""
    page.open(rated)
    return page


def test_communities_are_named_by_what_sets_them_apart(two):
    names = two.texts("#legend .what")
    assert len(names) == 2
    assert any("War" in name for name in names)
    assert any("Comedy" in name or "Drama" in name for name in names)
    two.find("#legend button").click()
    assert "Community" in two.text("#name")
    assert "100 % of them, 50 % of all" in two.text("#about")
    assert "ratings" in two.text("#about")


def test_a_name_of_ones_own_stays_in_the_link_and_in_the_table(two, rated, page):
    two.find("#legend button").click()
    two.find("#new-name").send_keys("Mine <b>1</b>", Keys.ENTER)
    assert two.texts("#legend .what")[0] == "Mine <b>1</b>"
    downloads(two)
    two.find("#save-csv").click()
    assert "Mine <b>1</b>" in two.script("return saved[0][2]")
    two.wait(lambda: "name=" in two.script("return location.hash"))
    link = two.script("return location.hash")
    page.open(rated)
    page.script("location.hash = arguments[0]", link)
    page.wait(lambda: page.texts("#legend .what")[0] == "Mine <b>1</b>")
    assert page.script("return document.querySelectorAll('#legend b').length") == 0


def test_all_edges_of_a_chosen_node_are_drawn_whatever_the_slider(two):
    two.find("#threshold").send_keys(Keys.END)
    few = two.number("#drawn")
    two.search("Film 7")
    two.press(Keys.ENTER)
    degree = two.script("return explorer.graph.degree(explorer.chosen.node)")
    assert degree > 5
    assert degree <= two.number("#drawn") <= degree + few
    two.find("#ego label:nth-of-type(2)").click()
    assert two.number("#drawn") >= degree


def test_an_edge_tells_its_weight_and_its_reason(two):
    two.search("Film 7")
    two.press(Keys.ENTER)
    assert all(text.endswith("users rated both") for text in two.texts("#list .why"))
    two.browser.execute_async_script("setTimeout(arguments[0], 700)")
    place = two.script("""
        const { view } = explorer;
        const box = view.element.getBoundingClientRect();
        for (const link of view.scene.links.filter((each) => each.seen && view.touches(each))) {
          for (const share of [0.3, 0.4, 0.5, 0.6, 0.7]) {
            const { source, target } = link;
            const [x, y] = ["x", "y"].map((axis) => source[axis] + share * (target[axis] - source[axis]));
            const at = view.canvas.graph2ScreenCoords(x, y);
            const event = { clientX: box.left + at.x, clientY: box.top + at.y };
            if (!view.nodeAt(event)) return [Math.round(at.x - box.width / 2), Math.round(at.y - box.height / 2)];
          }
        }
    """)
    canvas = two.find("#canvas")
    webdriver.ActionChains(two.browser, duration=0).move_to_element_with_offset(canvas, *place).perform()
    two.wait(lambda: "rated both" in two.text("#tip"))
    assert "Film" in two.text("#tip")


def test_colours_and_sizes_by_attributes(two):
    choices = two.texts("#color option")
    assert choices[:2] == ["community", "community by who rated what"]
    assert {"number of ratings", "mean rating", "year", "genre"} <= set(choices)
    assert {"number of ratings", "mean rating", "year"} <= set(two.texts("#size option"))
    before = two.drawn_pixels()
    choose_option(two, "#color", "a:genre")
    assert two.texts("#key .what") == ["Comedy (20)", "War (20)"]
    by_genre = two.script("return [...new Set(explorer.view.scene.nodes.map((n) => n.color))].length")
    assert by_genre == 2
    choose_option(two, "#color", "a:number of ratings")
    assert len(two.texts("#key .what")) == 6
    choose_option(two, "#size", "a:number of ratings")
    sizes = two.script("""
        const counts = explorer.graph.attributes["number of ratings"];
        return explorer.view.scene.nodes.map((n) => [Number(counts[n.key]), n.radius]);
    """)
    ordered = sorted(sizes)
    assert [radius for _, radius in ordered] == sorted(radius for _, radius in sizes)
    assert ordered[0][1] < ordered[-1][1]
    assert two.drawn_pixels() != before


def test_a_link_brings_the_view_back(two, page, rated):
    two.find("#switch label:nth-of-type(2)").click()
    two.search("17")
    two.press(Keys.ENTER)
    two.find("#ego label:nth-of-type(2)").click()
    choose_option(two, "#color", "a:number of ratings")
    two.wait(lambda: "color" in two.script("return location.hash"))
    link = two.script("return location.hash")
    page.browser.get("about:blank")
    page.browser.get(rated.as_uri() + link)
    page.wait(lambda: page.ready_ms() is not None)
    assert page.text("#summary").startswith("60 users")
    assert page.text("#name") == "17"
    assert page.find('input[name="ego"][value="1"]').is_selected()
    assert page.find("#color").get_attribute("value") == "a:number of ratings"
    assert page.errors() == []


WRONG = ["#node=%3Cscript%3E", "#graph=no&step=99&edges=x", "#only=1e9&community=77&name=", "#%E0%A4"]


@pytest.mark.parametrize("link", WRONG)
def test_links_that_are_wrong_open_the_page(page, rated, link):
    page.browser.get("about:blank")
    page.browser.get(rated.as_uri() + link)
    page.wait(lambda: page.ready_ms() is not None)
    assert page.text("#summary").startswith("40 items")
    assert page.hidden("#panel")
    assert page.errors() == []


def test_the_search_and_the_choice_survive_the_switch(two):
    two.search("Film 7")
    two.press(Keys.ENTER)
    two.find("#switch label:nth-of-type(2)").click()
    assert two.hidden("#panel")
    two.search("3")
    two.press(Keys.ENTER)
    assert two.text("#name") == "3"
    two.find("#switch label:nth-of-type(1)").click()
    assert two.text("#name") == "Film 7"
    assert two.find("#search").get_attribute("value") == "Film 7"


def test_labels_never_lie_over_each_other(full):
    full.drawn_pixels()
    for _ in range(3):
        boxes = full.script("return explorer.view.placed.map((b) => [b.left, b.top, b.right, b.bottom])")
        assert len(boxes) > 5
        for index, (left, top, right, bottom) in enumerate(boxes):
            for other in boxes[:index]:
                assert right <= other[0] or left >= other[2] or bottom <= other[1] or top >= other[3]
        full.find("#zoom-in").click()
        full.drawn_pixels()


def test_what_is_chosen_goes_to_a_table_and_to_files(two):
    downloads(two)
    two.search("Film 7")
    two.press(Keys.ENTER)
    degree = two.script("return explorer.graph.degree(explorer.chosen.node)")
    two.find("#show-table").click()
    assert len(two.texts("#rows tbody tr")) == degree + 1
    assert two.texts("#rows th")[:4] == ["id", "label", "community", "community name"]
    two.press(Keys.ESCAPE)
    assert two.text("#name") == "Film 7"  # Escape closed the table alone
    for name in ("csv", "svg", "png"):
        two.find(f"#save-{name}").click()
    two.wait(lambda: len(two.script("return saved")) == 3)
    (_, _, csv), (_, _, svg), (_, kind, png) = two.script("return saved")
    table = pd.read_csv(io.StringIO(csv))
    assert len(table) == degree + 1
    assert table["label"].tolist()[0] == "Film 7"
    root = ElementTree.fromstring(svg)
    circles = root.findall("{http://www.w3.org/2000/svg}circle")
    assert len(circles) == 40
    assert kind == "image/png"
    assert png > 5000


def test_exposure_is_told(two):
    told = dict(zip(two.texts("#nmi dt"), map(float, two.texts("#nmi dd")), strict=True))
    assert told["who rated what"] > 0.8
    assert told["by chance"] < 0.3
    choose_option(two, "#color", "pattern")
    assert two.script("return new Set(explorer.view.scene.nodes.map((n) => n.color)).size") >= 2


def test_without_ratings_nothing_is_told_of_exposure(films):
    assert films.hidden("#exposure")
    assert "community by who rated what" not in films.texts("#color option")


# -------------------------------------------------------------------- keyboard


def test_everything_by_keyboard(films):
    films.press("/")
    assert films.focus() == "search"
    films.press("river")
    first = films.find("#search").get_attribute("aria-activedescendant")
    films.press(Keys.ARROW_DOWN)
    assert films.find("#search").get_attribute("aria-activedescendant") == "found-1" != first
    wanted = films.texts("#found li .what")[1]
    films.press(Keys.ENTER)
    assert films.text("#name") == wanted
    assert films.focus() == "name"
    films.press(Keys.TAB)
    assert films.focus() == "close"
    films.press(Keys.TAB)
    assert films.focus() == "to-community"
    films.press(Keys.TAB, Keys.ARROW_RIGHT)  # one hop
    assert films.find('input[name="ego"][value="1"]').is_selected()
    films.press(Keys.TAB)
    assert films.focus() == "select-node"
    films.press(Keys.TAB)
    assert films.focus() == "path-to"
    films.press(Keys.TAB, Keys.ARROW_DOWN)
    neighbour = films.texts("#list .what")[1]
    assert films.script("return document.activeElement.querySelector('.what').textContent") == neighbour
    films.press(Keys.ENTER)
    assert films.text("#name") == neighbour
    assert neighbour in films.text("#status")
    films.press(Keys.ESCAPE)
    assert films.hidden("#panel")
    assert films.focus() == "canvas"


def test_escape_closes_the_search_first(films):
    films.press("/", "river")
    assert not films.hidden("#found")
    films.press(Keys.ESCAPE)
    assert films.hidden("#found")
    assert films.find("#search").get_attribute("value") == ""


def test_the_order_of_tabs_and_its_ring(films):
    visited = []
    for _ in range(40):
        films.press(Keys.TAB)
        width = films.script("""
            const { activeElement } = document;
            const seen = activeElement.type === "radio" ? activeElement.nextElementSibling : activeElement;
            return parseFloat(getComputedStyle(seen).outlineWidth) * (getComputedStyle(seen).outlineStyle !== "none");
        """)
        assert width >= 2, films.focus()
        visited.append(films.focus())
        if visited[-1] == "zoom-fit":
            break
    saving = ["show-table", "save-csv", "save-png", "save-svg"]
    named = [name for name in visited if name not in ("BUTTON", "INPUT")]
    zoom = ["zoom-in", "zoom-out", "zoom-fit"]
    assert named == [
        "search",
        "theme",
        "threshold",
        "step",
        "color",
        "size",
        "filters-toggle",
        *saving,
        "canvas",
        *zoom,
    ]
    assert visited[0] == "INPUT"  # the switch


def test_keys_move_the_picture(films):
    def camera():
        return films.script("return [explorer.view.canvas.centerAt().x, explorer.view.canvas.zoom()]")

    films.script("document.getElementById('canvas').focus()")
    x, zoom = camera()
    films.press(Keys.ARROW_RIGHT)
    assert camera()[0] > x
    films.press("+")
    films.wait(lambda: camera()[1] > 1.3 * zoom)
    films.press("0")
    films.wait(lambda: camera()[1] == pytest.approx(zoom, rel=0.02))


def test_every_control_has_a_name(films):
    films.search("river")
    films.press(Keys.ENTER)
    nameless = films.script("""
        const named = (e) => e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.[0]?.textContent.trim();
        return [...document.querySelectorAll("button, input, [role=application]")].filter((e) => !named(e)).length;
    """)
    assert nameless == 0


# -------------------------------------------------------------------- light, dark, small


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_texts_stand_out(page, small, dark):
    page.open(small, dark=dark)
    page.search("river")
    page.press(Keys.ENTER)
    selectors = ["h1", "#summary", ".control label", ".hint", "#legend .what", "#legend .count", "#name", "#about"]
    selectors += ["#attributes dt", "#attributes dd", "#list .what", "#list .count", "#search", "#close"]
    selectors += ["#switch input:checked + span", "#switch input:not(:checked) + span", "#zoom-in"]
    ratios = dict(zip(selectors, page.script(CONTRAST, selectors), strict=True))
    assert {name: ratio for name, ratio in ratios.items() if ratio < 4.5} == {}
    swatches = [f"#legend li:nth-child({number}) .swatch" for number in range(1, 13)]
    of_swatches = CONTRAST.replace(".color)", ".backgroundColor)").replace("(element))]", "(element.parentElement))]")
    colors = page.script(of_swatches, swatches)
    assert min(colors) >= 2.9


def test_the_button_turns_the_colours(films):
    paint = "return getComputedStyle(document.body).backgroundColor"
    light, picture = films.script(paint), films.drawn_pixels()
    films.find("#theme").click()
    assert films.script(paint) != light
    assert films.find("#theme").get_attribute("aria-pressed") == "true"
    assert films.drawn_pixels() != picture
    films.find("#theme").click()
    assert films.script(paint) == light


def test_a_phone(page, large):
    page.open(large, size=(390, 844))
    assert page.script("return document.documentElement.scrollWidth") <= 390
    assert page.script("return document.querySelector('#canvas').clientHeight") > 300
    page.search("river")
    page.press(Keys.ENTER)
    assert page.script("return document.querySelector('#panel').getBoundingClientRect().top") < 844
    assert page.script("return document.documentElement.scrollWidth") <= 390
    assert page.errors() == []


# -------------------------------------------------------------------- bad input


def test_hostile_texts_are_shown_and_never_run(page, tmp_path):
    table = pd.DataFrame(
        {"title": [*HOSTILE, *"abcd"], "note": [*HOSTILE, *"abcd"]}, index=[f"n{i}" for i in range(8)]
    )
    graph = ring(attributes=table, label="title")
    page.open(write_explorer(tmp_path / "g.html", {HOSTILE[0]: graph, HOSTILE[1]: ring()}, title=HOSTILE[1]))
    assert page.text("h1") == page.browser.title == HOSTILE[1]
    assert page.texts("#switch span") == list(HOSTILE[:2])
    for number, text in enumerate(HOSTILE):
        page.search(f"n{number}")
        assert page.text("#found li .what") == text
        page.press(Keys.ENTER)
        assert page.text("#name") == text
        assert page.texts("#attributes dd") == [text]
    choose_option(page, "#color", "a:note")
    assert page.script("return [...document.querySelectorAll('#color option')].at(-1).textContent") == "note"
    downloads(page)
    page.find("#show-table").click()
    page.find("#close-table").click()
    page.find("#save-csv").click()
    page.find("#save-svg").click()
    ElementTree.fromstring(page.script("return saved[1][2]"))
    assert "<script>" not in page.script("return saved[1][2]")
    page.script("location.hash = arguments[0]", f"#node=n1&name=0%20{HOSTILE[0]}&color={HOSTILE[1]}")
    page.wait(lambda: page.text("#legend .what") == HOSTILE[0])
    assert page.script("return [window.hacked ?? null, document.querySelectorAll('img').length]") == [None, 0]
    assert page.errors() == []


def test_a_text_that_a_spreadsheet_would_run_gets_an_apostrophe(films):
    text = films.script("return csvText(arguments[0])", [["=1+1", "-3", "@x", 'a,"b'], [None, 2]])
    assert text == '\'=1+1,-3,\'@x,"a,""b"\r\n,2\r\n'


@pytest.mark.parametrize("n_nodes", [1, 6])
def test_no_edges_is_said(page, tmp_path, n_nodes):
    page.open(write_explorer(tmp_path / "g.html", SimilarityGraph([[0] * n_nodes] * n_nodes, range(n_nodes), "item")))
    assert "no edges" in page.text("#note")
    assert page.texts("#legend .what") == ["isolated"]
    page.search("0")
    page.press(Keys.ENTER)
    assert "isolated" in page.text("#about")
    assert page.number("#drawn") == 0
    assert page.errors() == []


def test_more_nodes_than_can_be_drawn(page, tmp_path):
    graph = planted(500, 5)
    page.open(write_explorer(tmp_path / "g.html", graph, max_nodes=499))
    assert "500 items are more than the 499" in page.text("#note")
    assert page.hidden("#back")
    page.search(str(graph.ids[42]))
    page.press(Keys.ENTER)
    assert page.text("#name") == graph.labels[42]
    assert not page.hidden("#back")
    shown = set(page.script("return explorer.view.scene.nodes.map((node) => node.key + 1)"))
    assert shown == set(graph.ego(graph.ids[42]).ids.tolist())
    page.find("#back").click()
    assert (
        len(page.script("return explorer.view.scene.nodes.map((node) => node.key)")) == graph.communities().nunique()
    )
    assert page.errors() == []


def test_edges_left_out_are_said(page, tmp_path, monkeypatch):
    monkeypatch.setattr("air_recsys.report.content._MAX_EDGES", 1500)
    graph = planted(300, 5)
    page.open(write_explorer(tmp_path / "g.html", graph))
    assert f"of {graph.n_edges:,} edges: the strongest" in page.text("#note")
    assert page.number("#total") <= 1500


# -------------------------------------------------------------------- real data


@pytest.mark.data
def test_movielens_1m(page, data_root, tmp_path):
    """Items by the cosine of the factors of a truncated SVD of the ratings, the size of what AIR learns."""
    from sklearn.utils.extmath import randomized_svd

    from air_recsys.datasets import load_movielens, load_movielens_items

    data = load_movielens(data_root, "1m")
    factors = randomized_svd(data.to_csr().T, 20, random_state=0)[0]
    titles = load_movielens_items(data_root, "1m")
    graph = SimilarityGraph.from_factors(factors, data.item_ids, k=16, kind="item").with_attributes(titles, "title")
    assert len(graph) == 3706
    path = write_explorer(tmp_path / "ml.html", graph)
    assert path.stat().st_size < 8e6
    page.open(path)
    wanted = graph.labels[100]
    page.search(wanted)
    assert wanted in page.texts("#found li .what")
    page.find("#threshold").send_keys(Keys.HOME)
    assert page.number("#drawn") == graph.n_edges
    assert page.errors() == []
    assert set(page.requests()) <= {path.as_uri(), "data:,"}
