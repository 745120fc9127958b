"""The explorer's picture in Chromium: drawn lines, moving, and how much is shown from afar and from near."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from explorer_page import Page
from made_films import GraphSize, made_graph

from air_recsys import SimilarityGraph
from air_recsys.report import write_explorer


@pytest.fixture(scope="module")
def graph():
    return made_graph(GraphSize(nodes=900, edges=5_000, groups=6))


@pytest.fixture(scope="module")
def written(graph, tmp_path_factory) -> dict[str, Path]:
    """A page that draws all nodes, and one of communities."""
    folder = tmp_path_factory.mktemp("page")
    return {
        "nodes": write_explorer(folder / "nodes.html", graph),
        "communities": write_explorer(folder / "communities.html", graph, max_nodes=300),
    }


@pytest.fixture
def nodes(page, written) -> Page:
    page.open(written["nodes"])
    page.rest()
    return page


@pytest.fixture
def overview(page, written) -> Page:
    page.open(written["communities"])
    page.rest()
    return page


LINES = """
const [width, height, lines] = arguments;
const picture = new LinePicture(width, height);
picture.clear(colorPair("#ffffff"));
for (const [ends, color, opacity] of lines) picture.line(...ends, colorPair(color), opacity);
return [...picture.image.data];
"""


def drawn(page, *lines, width=30, height=20) -> np.ndarray:
    """A white picture with lines, (height, width, 3)."""
    data = page.script(LINES, width, height, lines)
    return np.array(data).reshape(height, width, 4)[:, :, :3]


def test_a_line_has_its_colour_on_its_pixels_and_none_elsewhere_and_is_cut_at_the_border(nodes):
    picture = drawn(nodes, ([3, 5, 20, 5], "#204060", 256))
    assert (picture[5, 3:21] == [0x20, 0x40, 0x60]).all()
    picture[5, 3:21] = 255
    assert (picture == 255).all()
    assert (drawn(nodes, ([-40, 5, 70, 5], "#000000", 256))[5] == 0).all()
    for ends in ([-9, -9, -1, -2], [40, 3, 90, 9], [3, -50, 20, -4], [3, 30, 20, 99]):
        assert (drawn(nodes, (ends, "#000000", 256)) == 255).all()


def test_a_slanted_line_has_a_line_s_worth_of_ink(nodes):
    for ends in ([2, 3, 25, 9], [2, 3, 8, 18], [4, 15, 22, 2]):  # flat, steep, falling
        ink = 255 - drawn(nodes, (ends, "#000000", 256))[:, :, 0]
        longer = max(abs(ends[2] - ends[0]), abs(ends[3] - ends[1]))
        assert ink.sum() == pytest.approx(255 * (longer + 1), rel=0.01)
        back = 255 - drawn(nodes, ([*ends[2:], *ends[:2]], "#000000", 256))[:, :, 0]
        assert np.abs(ink - back).max() <= 2


def test_opacity_mixes_colours(nodes):
    half = drawn(nodes, ([3, 5, 20, 5], "#ff0000", 128))
    assert half[5, 10].tolist() == [255, 128, 128]
    twice = drawn(nodes, *[([3, 5, 20, 5], "#ff0000", 128)] * 2)
    assert twice[5, 10].tolist() == pytest.approx([255, 64, 64], abs=1)
    assert (drawn(nodes, ([3, 5, 20, 5], "70, 84, 110", 0)) == 255).all()


def test_the_picture_that_was_moved_away_and_back_is_the_same(nodes):
    nodes.script("explorer.slider.move(0)")
    before = nodes.pixels()
    nodes.drag((120, 80))
    assert nodes.pixels() != before
    nodes.drag((-120, -80))
    assert nodes.pixels() == before


def test_what_a_choice_fades_comes_back(nodes):
    before = nodes.pixels()
    nodes.script("explorer.choose({ node: 5 }); document.querySelector('#panel').hidden = true")
    chosen = nodes.pixels()
    assert chosen != before
    nodes.script("explorer.clear()")
    assert nodes.pixels() == before


def test_communities_have_labels_from_afar_and_nodes_from_near(nodes, graph):
    names = set(nodes.texts("#legend .what"))
    far = nodes.labels()
    assert len(far) > 5
    assert set(far) <= names
    nodes.zoom(5)
    near = nodes.labels()
    assert near
    assert set(near) <= set(graph.labels)


def test_a_community_that_is_chosen_shows_its_members_in_its_disc(overview, graph):
    assert overview.opened() == []
    overview.script("explorer.choose({ community: 2 })")
    overview.wait(lambda: 2 in overview.opened())
    disc, members, links = overview.script("""
        const { scene, detail } = explorer.view;
        const { x, y, reach } = scene.nodes[2];
        const { nodes, links } = detail.opened.get(2);
        return [[x, y, reach], nodes.map((node) => [node.key, node.x, node.y]), links.length];
    """)
    inside = np.flatnonzero(graph.communities() == 2)
    assert sorted(key for key, *_ in members) == inside.tolist()
    places = np.array(members)[:, 1:] - disc[:2]
    assert places.mean(axis=0) == pytest.approx([0, 0], abs=1e-9 * disc[2])
    assert np.hypot(*places.T).max() < disc[2]
    assert links == np.count_nonzero(graph.to_scipy().toarray()[np.ix_(inside, inside)]) // 2
    titles = set(graph.labels[inside])
    assert titles.intersection(overview.labels())
    svg = ElementTree.fromstring(overview.script("return svgOf(explorer.view)"))
    circles = svg.findall("{http://www.w3.org/2000/svg}circle")
    shown = overview.script("return [...explorer.view.detail.opened.values()].map(({ nodes }) => nodes.length)")
    assert len(circles) == sum(shown) + graph.communities().nunique()


def test_zooming_opens_communities_and_closes_them(overview):
    overview.script("const { scene, canvas } = explorer.view; canvas.centerAt(scene.nodes[0].x, scene.nodes[0].y)")
    overview.zoom(20)
    assert 0 in overview.opened()
    overview.zoom(1 / 20)
    assert overview.opened() == []


def test_members_stand_by_their_neighbours_and_stay_there(overview, graph):
    code = "const { x, y } = placesOf(explorer.graph, explorer.graph.members.get(0)); return [[...x], [...y]]"
    places = np.array(overview.script(code)).T
    assert (places == np.array(overview.script(code)).T).all()
    rows = np.array(overview.script("return explorer.graph.members.get(0)"))
    block = graph.to_scipy().toarray()[np.ix_(rows, rows)]
    distance = np.linalg.norm(places[:, None] - places, axis=2)
    apart = distance[~np.eye(len(rows), dtype=bool)].mean()
    assert distance[block > 0].mean() < 0.6 * apart


def test_a_member_can_be_picked_and_the_way_back_leads_where_one_was(overview, graph):
    overview.script("explorer.choose({ community: 1 })")
    overview.wait(lambda: 1 in overview.opened())
    before = overview.script("return explorer.view.place()")
    key = overview.script("""
        const { view } = explorer;
        const node = view.detail.opened.get(1).nodes[0];
        const at = view.canvas.graph2ScreenCoords(node.x, node.y);
        const box = view.element.getBoundingClientRect();
        const event = { clientX: at.x + box.left, clientY: at.y + box.top, bubbles: true };
        view.element.dispatchEvent(new MouseEvent("click", event));
        return node.key;
    """)
    assert overview.script("return explorer.chosen") == {"node": key}
    overview.rest()
    shown = overview.script("return explorer.view.scene.nodes.map((node) => node.key)")
    assert set(shown) == set(np.flatnonzero(np.isin(graph.ids, graph.ego(graph.ids[key]).ids)).tolist())
    overview.find("#back").click()
    overview.rest()
    assert overview.script("return explorer.view.place()") == pytest.approx(before, rel=1e-3)
    assert 1 in overview.opened()


def test_a_large_graph_without_edges_has_no_communities_and_its_nodes_can_be_found(page, tmp_path):
    empty = SimilarityGraph(np.zeros((20, 20)), range(20))
    page.open(write_explorer(tmp_path / "empty.html", empty, max_nodes=5))
    assert page.script("return explorer.view.scene.nodes") == []
    page.script("explorer.choose({ node: 7 })")
    page.rest()
    assert page.script("return explorer.view.scene.nodes.map((node) => node.key)") == [7]
    assert page.errors() == []


def test_a_link_to_a_community_opens_it(page, written):
    page.open(written["communities"], "#community=1")
    page.wait(lambda: 1 in page.opened())
