"""The explorer in Chromium: what a visitor sees, clicks and types, and that the network stays silent."""

import io
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from browsers import CONTRAST, webdriver
from explorer_cases import planted, weaker
from explorer_page import Page
from selenium.webdriver.common.keys import Keys

from air_recsys import Interactions, SimilarityGraph
from air_recsys.report import write_explorer


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
def full(page, large) -> Page:
    """The large page, freshly opened."""
    page.open(large)
    return page


@pytest.fixture
def films(page, small) -> Page:
    """The small page, freshly opened."""
    page.open(small)
    return page


@pytest.fixture
def two(page, rated) -> Page:
    """The page with ratings, freshly opened."""
    page.open(rated)
    return page


def test_search_finds_a_title_and_shows_its_neighbours_without_error_or_request(full, items, large):
    assert items.n_edges > 40_000
    assert large.stat().st_size < 8e6
    row = 1234
    title, id = items.labels[row], items.ids[row]
    full.search(title[:9].upper())
    found = full.texts("#found li .what")
    assert found
    assert all(title[:9].lower() in text.lower() for text in found)
    full.search("zzzz no such film")
    assert full.texts("#found li") == ["Nothing found"]
    full.press(Keys.ENTER)
    assert full.hidden("#panel")
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
    full.find("#close").click()
    assert full.errors() == []
    requests = full.requests()
    assert large.as_uri() in requests  # the log sees what is asked for
    assert set(requests) <= {large.as_uri(), "data:,", "about:blank"}


def test_the_sliders_change_the_drawn_edges_and_the_step(full, items):
    slider = full.find("#threshold")
    assert 0 < full.number("#drawn") < items.n_edges
    slider.send_keys(Keys.HOME)
    assert full.number("#drawn") == full.number("#total") == items.n_edges
    all_edges = full.pixels()
    weights = items.edge_list()["weight"]
    for _ in range(3):
        slider.send_keys(Keys.PAGE_UP)
        least = float(full.text("#weight"))
        assert full.number("#drawn") == pytest.approx((weights >= least).sum(), rel=0.01)
    assert full.number("#drawn") < items.n_edges
    assert full.pixels() != all_edges
    slider.send_keys(Keys.END)
    assert full.number("#drawn") == 1
    assert full.text("#epoch") == "(trained)"
    for key, epoch, share in ((Keys.ARROW_LEFT, "epoch 2,000", 0.7), (Keys.HOME, "epoch 500", 0.3)):
        full.find("#step").send_keys(key)
        assert full.text("#epoch") == epoch
        assert f"{weaker(items, share).n_edges:,}" in full.text("#summary")


def test_the_legend_filters(films):
    assert films.hidden("#exposure")  # without ratings nothing is told of it
    assert "community by who rated what" not in films.texts("#color option")
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
    full.take("77")
    full.find("#ego label:nth-of-type(2)").click()
    edges = items.ego(77, hops=1).n_edges
    assert full.number("#drawn") == edges
    full.find("#ego label:nth-of-type(3)").click()
    assert full.number("#drawn") > edges
    full.find("#close").click()
    assert full.number("#drawn") == items.n_edges


def test_a_click_on_a_node_chooses_it_and_one_beside_it_lets_it_go(full):
    node = full.script("""
        const { view } = explorer;
        const { x, y } = view.canvas.graph2ScreenCoords(view.scene.nodes[0].x, view.scene.nodes[0].y);
        return [x - view.element.clientWidth / 2, y - view.element.clientHeight / 2];
    """)
    click_at(full, node)
    full.wait(lambda: not full.hidden("#panel"))
    assert full.text("#name") in full.script("return explorer.graph.labels")
    assert full.text("#tip")
    corner = full.script("const b = explorer.view.element; return [4 - b.clientWidth / 2, 4 - b.clientHeight / 2]")
    click_at(full, corner)
    assert full.hidden("#panel")


def click_at(page, place) -> None:
    """Click so far from the middle of the picture."""
    pointer = webdriver.ActionChains(page.browser, duration=0)
    pointer.move_to_element_with_offset(page.find("#canvas"), *map(round, place)).click().perform()


def test_labels_never_lie_over_each_other(full):
    for _ in range(3):
        full.rest()
        boxes = full.script("return explorer.view.placed.map((b) => [b.left, b.top, b.right, b.bottom])")
        assert len(boxes) > 5
        for index, (left, top, right, bottom) in enumerate(boxes):
            for other in boxes[:index]:
                assert right <= other[0] or left >= other[2] or bottom <= other[1] or top >= other[3]
        full.find("#zoom-in").click()


def test_communities_are_named_by_what_sets_them_apart_and_exposure_is_told(two):
    names = two.texts("#legend .what")
    assert len(names) == 2
    assert any("War" in name for name in names)
    assert any("Comedy" in name or "Drama" in name for name in names)
    two.find("#legend button").click()
    assert "Community" in two.text("#name")
    assert "100 % of them, 50 % of all" in two.text("#about")
    assert "ratings" in two.text("#about")
    told = dict(zip(two.texts("#nmi dt"), map(float, two.texts("#nmi dd")), strict=True))
    assert told["who rated what"] > 0.8
    assert told["by chance"] < 0.3
    two.choose_option("#color", "pattern")
    assert two.script("return new Set(explorer.view.scene.nodes.map((n) => n.color)).size") >= 2


def test_a_name_of_ones_own_stays_in_the_link_and_in_the_table(two, rated):
    two.find("#legend button").click()
    two.find("#new-name").send_keys("Mine <b>1</b>", Keys.ENTER)
    assert two.texts("#legend .what")[0] == "Mine <b>1</b>"
    assert "Mine <b>1</b>" in set(two.saved_csv()["community name"])
    two.open(rated, two.link("name="))
    assert two.texts("#legend .what")[0] == "Mine <b>1</b>"
    assert two.script("return document.querySelectorAll('#legend b').length") == 0


def test_all_edges_of_a_chosen_node_are_drawn_whatever_the_slider(two):
    two.find("#threshold").send_keys(Keys.END)
    few = two.number("#drawn")
    two.take("Film 7")
    degree = two.script("return explorer.graph.degree(explorer.chosen.node)")
    assert degree > 5
    assert degree <= two.number("#drawn") <= degree + few
    two.find("#ego label:nth-of-type(2)").click()
    assert two.number("#drawn") >= degree


def test_an_edge_tells_its_weight_and_its_reason(two):
    two.take("Film 7")
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
    pointer = webdriver.ActionChains(two.browser, duration=0)
    pointer.move_to_element_with_offset(two.find("#canvas"), *place).perform()
    two.wait(lambda: "rated both" in two.text("#tip"))
    assert "Film" in two.text("#tip")


def test_colours_and_sizes_by_attributes(two):
    choices = two.texts("#color option")
    assert choices[:2] == ["community", "community by who rated what"]
    assert {"number of ratings", "mean rating", "year", "genre"} <= set(choices)
    assert {"number of ratings", "mean rating", "year"} <= set(two.texts("#size option"))
    before = two.pixels()
    two.choose_option("#color", "a:genre")
    assert two.texts("#key .what") == ["Comedy (20)", "War (20)"]
    by_genre = two.script("return [...new Set(explorer.view.scene.nodes.map((n) => n.color))].length")
    assert by_genre == 2
    two.choose_option("#color", "a:number of ratings")
    assert len(two.texts("#key .what")) == 6
    two.choose_option("#size", "a:number of ratings")
    sizes = two.script("""
        const counts = explorer.graph.attributes["number of ratings"];
        return explorer.view.scene.nodes.map((n) => [Number(counts[n.key]), n.radius]);
    """)
    ordered = sorted(sizes)
    assert [radius for _, radius in ordered] == sorted(radius for _, radius in sizes)
    assert ordered[0][1] < ordered[-1][1]
    assert two.pixels() != before


def test_a_link_brings_the_view_back_and_wrong_ones_open_the_page(two, rated):
    two.find("#switch label:nth-of-type(2)").click()
    two.take("17")
    two.find("#ego label:nth-of-type(2)").click()
    two.choose_option("#color", "a:number of ratings")
    two.open(rated, two.link("color"))
    assert two.text("#summary").startswith("60 users")
    assert two.text("#name") == "17"
    assert two.find('input[name="ego"][value="1"]').is_selected()
    assert two.find("#color").get_attribute("value") == "a:number of ratings"
    assert two.errors() == []
    for link in ("#node=%3Cscript%3E", "#graph=no&step=99&edges=x", "#only=1e9&community=77&name=", "#%E0%A4"):
        two.open(rated, link)
        assert two.text("#summary").startswith("40 items")
        assert two.hidden("#panel")
        assert two.errors() == []


def test_the_search_and_the_choice_survive_the_switch(two):
    before = two.pixels()
    two.take("Film 7")
    two.find("#switch label:nth-of-type(2)").click()
    assert two.text("#summary").startswith("60 users")
    assert two.hidden("#steps")
    assert two.hidden("#panel")
    assert two.pixels() != before
    two.take("3")
    assert two.text("#name") == "3"
    two.find("#switch label:nth-of-type(1)").click()
    assert two.text("#name") == "Film 7"
    assert two.find("#search").get_attribute("value") == "Film 7"


def test_what_is_chosen_goes_to_a_table_and_to_files(two):
    two.keep_files()
    two.take("Film 7")
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
    text = two.script("return csvText(arguments[0])", [["=1+1", "-3", "@x", 'a,"b'], [None, 2]])
    assert text == '\'=1+1,-3,\'@x,"a,""b"\r\n,2\r\n'


def test_everything_by_keyboard(films):
    films.press("/", "river")
    assert films.focus() == "search"
    films.press(Keys.ESCAPE)  # closes the search first
    assert films.hidden("#found")
    assert films.find("#search").get_attribute("value") == ""
    films.press("river")
    first = films.find("#search").get_attribute("aria-activedescendant")
    films.press(Keys.ARROW_DOWN)
    assert films.find("#search").get_attribute("aria-activedescendant") == "found-1" != first
    wanted = films.texts("#found li .what")[1]
    films.press(Keys.ENTER)
    assert films.text("#name") == wanted
    assert films.focus() == "name"
    for name in ("close", "to-community"):
        films.press(Keys.TAB)
        assert films.focus() == name
    films.press(Keys.TAB, Keys.ARROW_RIGHT)  # one hop
    assert films.find('input[name="ego"][value="1"]').is_selected()
    for name in ("select-node", "path-to"):
        films.press(Keys.TAB)
        assert films.focus() == name
    films.press(Keys.TAB, Keys.ARROW_DOWN)
    neighbour = films.texts("#list .what")[1]
    assert films.script("return document.activeElement.querySelector('.what').textContent") == neighbour
    films.press(Keys.ENTER)
    assert films.text("#name") == neighbour
    assert neighbour in films.text("#status")
    films.press(Keys.ESCAPE)
    assert films.hidden("#panel")
    assert films.focus() == "canvas"


def test_tab_leads_to_every_control_whose_ring_is_seen_and_keys_use_it(films):
    films.keep_files()
    uses, visited = {"theme": Keys.SPACE, "threshold": Keys.END, "save-csv": Keys.ENTER}, []
    while not visited or visited[-1] != "zoom-fit":
        assert len(visited) < 40
        films.press(Keys.TAB)
        width = films.script("""
            const { activeElement } = document;
            const seen = activeElement.type === "radio" ? activeElement.nextElementSibling : activeElement;
            return parseFloat(getComputedStyle(seen).outlineWidth) * (getComputedStyle(seen).outlineStyle !== "none");
        """)
        assert width >= 2, films.focus()
        visited.append(films.focus())
        if visited[-1] in uses:
            films.press(uses[visited[-1]])
    assert visited[0] == "INPUT"  # the switch
    controls = ["search", "theme", "threshold", "step", "color", "size", "filters-toggle"]
    saving = ["show-table", "save-csv", "save-png", "save-svg"]
    found = [name for name in visited if name not in ("BUTTON", "INPUT", "SECTION")]
    assert found == [*controls, *saving, "canvas", "zoom-in", "zoom-out", "zoom-fit"]
    assert films.script("return document.documentElement.dataset.theme") == "dark"
    assert films.number("#drawn") == 1
    assert films.script("return saved.length") == 1
    assert films.errors() == []


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


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_colours_of_communities_stand_out(page, small, dark):
    page.open(small, dark=dark)
    swatches = [f"#legend li:nth-child({number}) .swatch" for number in range(1, 13)]
    of_swatches = CONTRAST.replace(".color)", ".backgroundColor)").replace("(element))]", "(element.parentElement))]")
    assert min(page.script(of_swatches, swatches)) >= 2.9


def test_the_button_turns_the_colours(films):
    paint = "return getComputedStyle(document.body).backgroundColor"
    light, picture = films.script(paint), films.pixels()
    films.find("#theme").click()
    assert films.script(paint) != light
    assert films.find("#theme").get_attribute("aria-pressed") == "true"
    assert films.pixels() != picture
    films.find("#theme").click()
    assert films.script(paint) == light


@pytest.mark.parametrize("n_nodes", [1, 6])
def test_no_edges_is_said(page, tmp_path, n_nodes):
    page.open(write_explorer(tmp_path / "g.html", SimilarityGraph([[0] * n_nodes] * n_nodes, range(n_nodes), "item")))
    assert "no edges" in page.text("#note")
    assert page.texts("#legend .what") == ["isolated"]
    page.take("0")
    assert "isolated" in page.text("#about")
    assert page.number("#drawn") == 0
    assert page.errors() == []


def test_more_nodes_than_can_be_drawn(page, tmp_path):
    graph = planted(500, 5)
    page.open(write_explorer(tmp_path / "g.html", graph, max_nodes=499))
    assert "500 items are more than the 499" in page.text("#note")
    assert page.hidden("#back")
    page.take(str(graph.ids[42]))
    assert page.text("#name") == graph.labels[42]
    assert not page.hidden("#back")
    shown = set(page.script("return explorer.view.scene.nodes.map((node) => node.key + 1)"))
    assert shown == set(graph.ego(graph.ids[42]).ids.tolist())
    page.find("#back").click()
    assert len(page.script("return explorer.view.scene.nodes.map(String)")) == graph.communities().nunique()
    assert page.errors() == []


def test_edges_left_out_are_said(page, tmp_path, monkeypatch):
    monkeypatch.setattr("air_recsys.report.content._MAX_EDGES", 1500)
    graph = planted(300, 5)
    page.open(write_explorer(tmp_path / "g.html", graph))
    assert f"of {graph.n_edges:,} edges: the strongest" in page.text("#note")
    assert page.number("#total") <= 1500
