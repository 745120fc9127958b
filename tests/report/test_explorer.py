"""The explorer's file: what is in it, where nodes stand, and which graphs are refused."""

import base64
import hashlib
import html
import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from explorer_cases import HOSTILE, planted, ring, weaker
from page_reader import data_of

from air_recsys import AIR, BiasModel, Interactions, SimilarityGraph
from air_recsys.exceptions import DataError, NotFittedError, ParameterError
from air_recsys.graphs.postprocess import with_pattern
from air_recsys.models import GraphRanker
from air_recsys.report import explorer, explorer_of, fold_in, write_explorer
from air_recsys.report.content import communities, disc_places, matched, strongest
from air_recsys.report.document import single_page
from air_recsys.report.fold_in import as_text, fold_in_content, fold_in_scripts
from air_recsys.report.layout import node_positions


@pytest.fixture
def written(tmp_path):
    """A function that writes graphs, and returns what the page has of the first of them."""

    def write(graphs, **options) -> dict:
        return data_of(write_explorer(tmp_path / "g.html", graphs, **options))["graphs"][0]

    return write


def edges(step: dict) -> dict:
    pairs = zip(step["sources"], step["targets"], strict=True)
    return dict(zip(pairs, step["weights"], strict=True))


def test_the_page_holds_the_graph_and_is_the_same_every_time(tmp_path):
    graph = planted(200, 4)
    page = write_explorer(tmp_path / "g.html", graph, title="Two & two")
    (found,) = data_of(page)["graphs"]
    assert (found["name"], found["kind"]) == ("items", "item")
    assert found["labels"] == graph.labels.tolist()
    assert found["ids"] == [str(id) for id in graph.ids]
    assert found["attributes"].keys() == {"year", "group"}  # the title is the label
    assert found["attributes"]["year"] == [title[-5:-1] for title in graph.labels]
    step = found["steps"][-1]
    adjacency = graph.to_scipy()
    assert len(step["weights"]) == graph.n_edges == step["n_edges"]
    assert all(adjacency[i, j] == pytest.approx(weight, rel=1e-3) for (i, j), weight in edges(step).items())
    assert step["weights"] == sorted(step["weights"], reverse=True)
    assert step["communities"] == graph.communities().tolist()
    assert "<title>Two &amp; two</title>" in page.read_text(encoding="utf-8")
    assert page.read_bytes() == graph.to_html(tmp_path / "h.html", title="Two & two").read_bytes()


@pytest.mark.parametrize("kind", ["posterior", "objective", "lists"])
def test_no_two_scripts_of_a_page_declare_the_same_name(kind):
    """Scripts share their names at the top, and a name that is declared twice ends the second script."""
    names = (*explorer._SCRIPTS[1:], *fold_in_scripts({"kind": kind}))
    texts = [files("air_recsys.report.assets").joinpath(name).read_text(encoding="utf-8") for name in names]
    declared = re.findall(r"^(?:const|let|var|class|function) (\w+)", "\n".join(texts), re.MULTILINE)
    assert len(declared) > 50
    assert sorted(set(declared)) == sorted(declared)


def test_the_policy_names_exactly_the_scripts_of_the_page_which_refers_to_no_address(tmp_path):
    page = write_explorer(tmp_path / "g.html", ring()).read_text(encoding="utf-8")
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) > 10
    hashes = {base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in scripts}
    policy = html.unescape(re.findall(r'Content-Security-Policy" content="([^"]*)"', page)[0])
    assert set(re.findall(r"'sha256-([^']*)'", policy)) == hashes
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy
    outside = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert re.findall(r"(?:src|href)\s*=[^>]*", outside) == ['href="data:,"']
    assert re.findall(r"url\(|@import|https?:", outside) == []
    assert "Copyright (c) 2018 Vasco Asturiano" in page  # the licences of what it holds
    assert "Mike Bostock" in page


def test_hostile_texts_stay_data(tmp_path):
    table = pd.DataFrame({"title": [*HOSTILE, *"abcd"], "note": [*"abcd", *HOSTILE]}, [f"n{i}" for i in range(8)])
    graph = ring(attributes=table, label="title")
    page = write_explorer(tmp_path / "g.html", {HOSTILE[0]: graph}, title=HOSTILE[0])
    found = data_of(page)
    assert found["graphs"][0]["labels"][:4] == list(HOSTILE)
    assert found["graphs"][0]["attributes"]["note"][4:] == list(HOSTILE)
    assert found["title"] == found["graphs"][0]["name"] == HOSTILE[0]
    text = page.read_text(encoding="utf-8")
    for hostile in ("<script>window", "<img", "\u2028"):
        assert hostile not in text
    filled = single_page("explorer.html", title="{{data}}", data=["{{policy}}"], styles=[], scripts=[])
    assert "<title>{{data}}</title>" in filled  # what is filled in is not filled again
    assert '["{{policy}}"]' in filled


def test_missing_labels_and_attributes(written):
    titles, scores = ["A", None], [0.123456, 2.0]
    table = pd.DataFrame({"title": titles, "year": [1990.0, np.nan], "score": scores}, index=["n0", "n1"])
    found = written(ring(3, attributes=table, label="title"))
    assert found["labels"] == ["A", "n1", "n2"]
    assert found["attributes"] == {"year": ["1990", None, None], "score": ["0.1235", "2", None]}


@pytest.mark.parametrize("n_nodes", [1, 5])
def test_graphs_without_edges(written, n_nodes):
    found = written(SimilarityGraph(np.zeros((n_nodes, n_nodes)), range(n_nodes)))
    assert found["steps"][0]["communities"] == [-1] * n_nodes
    assert len({tuple(place) for place in found["positions"]}) == n_nodes


def test_steps_come_in_order_with_the_trained_graph_last_and_communities_keep_their_colour(written):
    graph = planted(300, 5)
    earlier = {2000: weaker(graph, 0.9), 500: weaker(graph, 0.4)}
    steps = written({"films": graph}, snapshots={"films": earlier})["steps"]
    assert [step["epoch"] for step in steps] == [500, 2000, None]
    assert [step["n_edges"] for step in steps] == [earlier[500].n_edges, earlier[2000].n_edges, graph.n_edges]
    late, last = (np.array(step["communities"]) for step in steps[1:])
    assert np.mean(late == last) > 0.8


def test_many_steps_share_the_room_for_edges_and_keep_their_communities(written):
    graph, room, count = planted(400, 6), 60_000, 16
    assert count * graph.n_edges > room
    *earlier, trained = written({"items": graph}, snapshots={"items": dict.fromkeys(range(count), graph)})["steps"]
    assert room / 2 < sum(len(step["weights"]) for step in earlier) <= room
    assert [step["communities"] for step in earlier] == [trained["communities"]] * count
    assert [step["n_edges"] for step in earlier] == [graph.n_edges] * count


def test_matching_renames_and_nothing_else():
    rng = np.random.default_rng(0)
    labels, reference = rng.integers(-1, 5, 60), rng.integers(-1, 7, 60)
    renamed = matched(labels.tolist(), reference.tolist())
    assert len(set(zip(labels, renamed, strict=True))) == len(set(labels)) == len(set(renamed))
    assert ((labels == -1) == (renamed == -1)).all()
    assert (matched(reference.tolist(), reference.tolist()) == reference).all()


def test_names_of_communities_are_in_the_page_of_every_step(written):
    table = pd.DataFrame({"shelf": ["War"] * 24 + ["Comedy"] * 24})
    table["kind"] = np.repeat(["Sea", "Air", "Farce", "Satire"], 12)
    graphs = [SimilarityGraph(np.kron(np.eye(n), np.ones((48 // n,) * 2)), range(48), kind="item") for n in (2, 4)]
    found = written({"items": graphs[1].with_attributes(table)}, snapshots={"items": {5: graphs[0]}})
    assert {each["name"] for each in found["steps"][0]["names"]} == {"War", "Comedy"}
    assert [each["community"] for each in found["names"]] == [0, 1, 2, 3]
    assert {each["name"].split(" · ")[0] for each in found["names"]} == {"Sea", "Air", "Farce", "Satire"}
    assert "pattern" not in found  # without ratings
    assert "shared" not in found["steps"][0]


def test_the_strongest_edges_of_every_node_are_kept():
    graph = planted(200, 4)
    assert strongest(graph, graph.n_edges) is graph
    full = graph.to_scipy().toarray()
    for limit in (200, 400, 1000):
        kept = strongest(graph, limit)
        assert 0 < kept.n_edges <= max(limit, len(graph))
        part = kept.to_scipy().toarray()
        assert (part[part > 0] == full[part > 0]).all()
        assert (part.max(axis=1) == full.max(axis=1)).all()
        top = np.sort(full, axis=1)[:, -min(np.count_nonzero(part, axis=1)) :]
        assert all((row[row >= smallest] > 0).all() for row, smallest in zip(part, top[:, 0], strict=True))


def test_a_large_graph_is_drawn_by_its_communities(written):
    graph = planted(400, 5)
    found = written(graph, max_nodes=399)
    labels, overview = communities(graph), found["overview"]
    assert found["positions"] is None
    assert overview["sizes"] == np.bincount(labels).tolist()
    assert len(overview["positions"]) == labels.max() + 1
    adjacency = graph.to_scipy().toarray()
    for (a, b), weight in edges(overview).items():
        assert weight == pytest.approx(adjacency[labels == a][:, labels == b].sum(), rel=1e-3)
    assert written(graph, max_nodes=400)["overview"] is None


def distances(places):
    return np.linalg.norm(places[:, None] - places, axis=2)


def test_neighbours_stand_together():
    graph = planted(600, 6)
    group = graph.attributes["group"].to_numpy()
    nearest = np.argsort(distances(node_positions(graph)), axis=1)[:, 1:11]
    assert np.mean(group[nearest] == group[:, None]) > 0.8


def test_no_two_nodes_stand_over_each_other():
    adjacency = np.ones((40, 40)) + np.kron(np.eye(2), np.ones((20, 20)))  # all nodes of a group are alike
    assert (distances(node_positions(SimilarityGraph(adjacency, range(40)))) + np.eye(40)).min() > 0.08
    alone = np.zeros((20, 20))
    alone[:12, :12] = 1
    places = node_positions(SimilarityGraph(alone, range(20)))
    assert places[12:, 1].min() > places[:12, 1].max()  # isolated nodes stand below
    assert len({tuple(place) for place in places}) == 20


@pytest.mark.parametrize("n_nodes", [2, 3, 7, 8, 9, 30])
def test_positions_of_few_nodes_differ_and_stay_the_same(n_nodes):
    places = node_positions(ring(n_nodes))
    assert np.isfinite(places).all()
    assert len({tuple(place) for place in places.round(6)}) == n_nodes
    assert (places == node_positions(ring(n_nodes))).all()


def test_discs_have_the_areas_of_their_sizes_lie_apart_and_near_their_places():
    rng = np.random.default_rng(0)
    places, sizes = rng.normal(size=(120, 2)), rng.integers(1, 400, 120)
    centres, radii = disc_places(places, sizes)
    assert radii**2 / radii[0] ** 2 == pytest.approx(sizes / sizes[0])
    room = distances(centres) - radii[:, None] - radii
    assert room[~np.eye(120, dtype=bool)].min() > -1e-3 * radii.mean()
    assert np.corrcoef(distances(places).ravel(), distances(centres).ravel())[0, 1] > 0.9
    apart = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 80.0]])
    assert (disc_places(apart, np.array([1, 1, 1]))[0] == apart).all()  # they have room
    for n in (0, 1, 2, 5):
        centres, radii = disc_places(np.zeros((n, 2)), np.full(n, 3))
        assert np.isfinite(centres).all()
        assert len({tuple(place) for place in centres.round(6)}) == len(radii) == n
        assert (radii > 0).all()


@pytest.fixture(scope="module")
def model():
    """A small model with snapshots of both graphs."""
    ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((4, 6)))
    return AIR.for_completion(n_epochs=60, snapshot_epochs=[10, 30], random_state=0, device="cpu").fit(ratings)


def test_the_page_of_a_model(model, tmp_path):
    titles = pd.DataFrame({"item": range(12), "genre": "x", "title": [f"T{i}" for i in range(12)]})
    items, users = data_of(explorer_of(model, tmp_path / "m.html", titles))["graphs"]
    assert (items["name"], users["name"]) == ("items", "users")
    assert items["labels"] == titles["title"].tolist()
    assert items["attributes"] == {
        "genre": ["x"] * 12,
        "number of ratings": ["8"] * 12,
        "mean rating": ["3.5"] * 6 + ["2.5"] * 6,
    }
    assert set(items["steps"][-1]["shared"]) == {8}
    assert items["nmi"].keys() == {"pattern", "values", "bands", "shuffled"}
    assert items["nmi"]["pattern"] == 0  # everybody rated everything
    assert len(items["pattern"]) == 12
    assert users["labels"] == [str(user) for user in range(8)]
    for graph in (items, users):
        assert [step["epoch"] for step in graph["steps"]] == [10, 30, None]
    assert users["steps"][0]["n_edges"] == model.snapshots_[10].user_graph.n_edges
    first = data_of(explorer_of(model, tmp_path / "m.html", first="users"))["graphs"]
    assert [graph["name"] for graph in first] == ["users", "items"]
    for titles, label in ((pd.DataFrame({"name": ["A"]}, index=[0]), "A"), (pd.DataFrame(index=[0]), "0")):
        assert data_of(explorer_of(model, tmp_path / "m.html", titles))["graphs"][0]["labels"][0] == label


def test_nodes_of_a_posterior_have_an_uncertainty(tmp_path):
    ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((4, 6)))
    ratings[1:, 0] = np.nan
    posterior = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(ratings)
    items, users = data_of(explorer_of(posterior, tmp_path / "m.html"))["graphs"]
    expected = posterior.uncertainty("item")
    assert [float(text) for text in items["attributes"]["uncertainty"]] == pytest.approx(expected.tolist(), rel=5e-3)
    assert expected.idxmax() == 0  # one rating
    assert len(users["attributes"]["uncertainty"]) == 8
    titles = pd.DataFrame({"title": [f"T{i}" for i in range(12)], "uncertainty": "mine"})
    own = data_of(explorer_of(posterior, tmp_path / "m.html", titles))["graphs"][0]
    assert set(own["attributes"]["uncertainty"]) == {"mine"}


def test_common_ratings_of_edges_and_edges_of_who_rated_what(written):
    rng = np.random.default_rng(0)
    table = np.where(rng.random((60, 30)) < 0.3, rng.integers(1, 6, (60, 30)).astype(float), np.nan)
    ratings, graph = Interactions.from_dense(table), SimilarityGraph(np.ones((30, 30)), range(30), kind="item")
    whole = written(graph, ratings=ratings)
    rated = np.isfinite(table).astype(int)
    for lists in (whole["steps"][0], whole["pattern_edges"]):
        assert lists["shared"] == (rated.T @ rated)[lists["sources"], lists["targets"]].tolist()
    assert whole["attributes"]["number of ratings"] == [str(count) for count in rated.sum(axis=0)]
    found, rows = whole["pattern_edges"], ratings.to_csr().T.tocsr()
    expected = SimilarityGraph(with_pattern(sp.csr_array((30, 30)), rows, 20), range(30), kind="item")
    assert found["n_edges"] == len(found["weights"]) == expected.n_edges
    assert found["weights"] == sorted(found["weights"], reverse=True)
    np.testing.assert_allclose(expected.to_scipy()[found["sources"], found["targets"]], found["weights"], rtol=1e-3)
    assert "pattern_edges" not in written(graph, ratings=ratings, max_nodes=20)
    with pytest.raises(DataError, match="no item 30"):
        written(SimilarityGraph(np.ones((31, 31)), range(31), "item"), ratings=ratings)


def test_of_many_edges_of_who_rated_what_the_strongest_are_in_the_page(written):
    size = 2_500
    ratings = Interactions.from_dense(np.where(np.random.default_rng(0).random((40, size)) < 0.3, 3.0, np.nan))
    found = written(SimilarityGraph(sp.csr_array((size, size)), range(size), kind="item"), ratings=ratings)
    assert len(found["pattern_edges"]["weights"]) <= 20_000 < found["pattern_edges"]["n_edges"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"graphs": {}}, DataError, "at least one graph"),
        ({"graphs": SimilarityGraph(np.zeros((0, 0)), [])}, DataError, "at least one node"),
        ({"snapshots": {"users": {1: ring()}}}, DataError, "expected snapshots of 'items', found 'users'"),
        ({"snapshots": {"items": {7: ring(5)}}}, DataError, "found others at epoch 7"),
        ({"max_nodes": 0}, ParameterError, "max_nodes must be an integer >= 1"),
    ],
)
def test_what_is_refused_leaves_an_older_page(tmp_path, options, error, message):
    page = tmp_path / "g.html"
    page.write_text("old")
    with pytest.raises(error, match=message):
        write_explorer(page, **({"graphs": ring()} | options))
    assert page.read_text() == "old"
    assert list(tmp_path.iterdir()) == [page]


def test_a_folder_that_is_not_there_and_models_that_have_no_graph(tmp_path):
    with pytest.raises(ParameterError, match="existing folder"):
        write_explorer(tmp_path / "none" / "g.html", ring())
    with pytest.raises(NotFittedError):
        explorer_of(AIR(), tmp_path / "m.html")
    with pytest.raises(DataError, match="BiasModel has learned no graph"):
        explorer_of(BiasModel().fit(np.array([[1.0, 2.0], [3.0, np.nan]])), tmp_path / "m.html")


@pytest.fixture(scope="module")
def two_groups() -> Interactions:
    """Two groups."""
    return Interactions.from_dense(np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((6, 5))))


@pytest.fixture(scope="module")
def foldable(two_groups) -> AIR:
    """The preset for ratings."""
    return AIR.for_ratings(n_sweeps=3, random_state=0, device="cpu").fit(two_groups)


def in_page(path: Path) -> dict | None:
    page, content = path.read_text(encoding="utf-8"), data_of(path).get("fold_in")
    assert ("class FoldIn" in page) == ("class Picks" in page) == ("#recommended" in page) == (content is not None)
    return content


@pytest.mark.parametrize("type", ["f2", "f4", "f8"])
def test_arrays_come_back(type):
    values = np.random.default_rng(0).normal(size=(3, 4))
    text = as_text(values, type)
    back = np.frombuffer(base64.b64decode(text["base64"]), f"<{text['type']}").reshape(text["shape"])
    np.testing.assert_allclose(back, values, rtol={"f2": 1e-3, "f4": 1e-6, "f8": 0}[type])
    assert as_text(np.array([1e6]), "f2")["type"] == "f4"


def test_a_page_recommends_by_default_where_it_is_small(foldable, tmp_path, monkeypatch):
    found = in_page(explorer_of(foldable, tmp_path / "m.html"))
    assert found is not None
    assert (found["kind"], found["range"], found["values"]) == ("posterior", [1, 5], [1, 2, 4, 5])
    size = sum(len(value["base64"]) for value in found.values() if isinstance(value, dict))
    assert size > 2 * 4 * foldable.item_factors_.size
    monkeypatch.setattr(fold_in, "MOST_BY_DEFAULT", size - 1)
    assert in_page(explorer_of(foldable, tmp_path / "m.html")) is None
    assert in_page(explorer_of(foldable, tmp_path / "m.html", recommend=True)) is not None
    monkeypatch.setattr(fold_in, "MOST_BY_DEFAULT", size)
    assert in_page(explorer_of(foldable, tmp_path / "m.html")) is not None
    assert in_page(explorer_of(foldable, tmp_path / "m.html", recommend=False)) is None


@pytest.mark.parametrize("most", [10, 2000])
def test_more_than_a_page_may_hold_is_refused(foldable, tmp_path, monkeypatch, most):
    monkeypatch.setattr(fold_in, "MOST_BYTES", most)
    with pytest.raises(ParameterError, match=r"a fold-in of at most \S+ MB in a page, found 0.0 MB for 10 items"):
        explorer_of(foldable, tmp_path / "m.html", recommend=True)
    assert not (tmp_path / "m.html").exists()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AIR.for_ratings(item_graph_reg=0, n_sweeps=2, device="cpu"), "a graph of the items to pick from"),
        (lambda: AIR.for_completion(tv_reg=1.0, n_epochs=3, device="cpu"), "no total variation"),
    ],
)
def test_models_that_a_page_cannot_solve_for(two_groups, tmp_path, make, message):
    fitted = make().fit(two_groups)
    with pytest.raises(ParameterError, match=message):
        explorer_of(fitted, tmp_path / "m.html", recommend=True)
    assert in_page(explorer_of(fitted, tmp_path / "m.html")) is None


def test_a_regression_of_neighbours_is_refused(two_groups, monkeypatch):
    monkeypatch.setattr("air_recsys.models.graph_ranker.regression.MOST_EXACT", 9)
    fitted = GraphRanker(settings={}, device="cpu").fit(two_groups)
    with pytest.raises(
        ParameterError, match="a regression of all pairs of items, found one of neighbours of 10 items"
    ):
        fold_in_content(fitted, True)


def test_equations_that_are_singular_without_ratings_are_refused(two_groups):
    weak = {"weight_decay": 1e-30, "item_graph_reg": 1e-30}
    fitted = AIR.for_ratings(solver="adam", n_factors=4, n_epochs=3, device="cpu", **weak).fit(two_groups)
    with pytest.raises(ParameterError, match="singular without ratings"):
        fold_in_content(fitted, True)
