"""The explorer's file: what is in it, where nodes stand, and which graphs are refused."""

import base64
import hashlib
import html
import json
import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from explorer_cases import HOSTILE, planted, ring, weaker

from air_recsys import AIR, BiasModel, Interactions, SimilarityGraph
from air_recsys.exceptions import DataError, NotFittedError, ParameterError
from air_recsys.graphs.postprocess import with_pattern
from air_recsys.report import explorer, explorer_of, write_explorer
from air_recsys.report.content import communities, graph_content, matched, strongest
from air_recsys.report.document import single_page
from air_recsys.report.fold_in import fold_in_scripts
from air_recsys.report.layout import node_positions


def content(path: Path) -> dict:
    """The data of a page, read back as the browser would."""
    page = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def edges(step: dict) -> dict:
    pairs = zip(step["sources"], step["targets"], strict=True)
    return dict(zip(pairs, step["weights"], strict=True))


# -------------------------------------------------------------------- the file


def test_the_page_holds_the_graph(tmp_path):
    graph = planted(200, 4)
    page = write_explorer(tmp_path / "g.html", graph, title="Two & two")
    (found,) = content(page)["graphs"]
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


def test_the_page_is_the_same_every_time(tmp_path):
    graph = planted(150, 3)
    first, second = (write_explorer(tmp_path / name, graph).read_bytes() for name in ("a.html", "b.html"))
    assert first == second


@pytest.mark.parametrize("kind", ["posterior", "objective", "lists"])
def test_no_two_scripts_of_a_page_declare_the_same_name(kind):
    """Scripts share their names at the top, and a name that is declared twice ends the second script."""
    names = (*explorer._SCRIPTS[1:], *fold_in_scripts({"kind": kind}))
    texts = [files("air_recsys.report.assets").joinpath(name).read_text(encoding="utf-8") for name in names]
    declared = re.findall(r"^(?:const|let|var|class|function) (\w+)", "\n".join(texts), re.MULTILINE)
    assert len(declared) > 50
    assert sorted(set(declared)) == sorted(declared)


def test_the_policy_names_exactly_the_scripts_of_the_page(tmp_path):
    page = write_explorer(tmp_path / "g.html", ring()).read_text(encoding="utf-8")
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == len(explorer._SCRIPTS)
    hashes = {base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in scripts}
    policy = html.unescape(re.findall(r'Content-Security-Policy" content="([^"]*)"', page)[0])
    assert set(re.findall(r"'sha256-([^']*)'", policy)) == hashes
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy


def test_the_page_refers_to_no_address(tmp_path):
    page = write_explorer(tmp_path / "g.html", ring()).read_text(encoding="utf-8")
    outside = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert re.findall(r"(?:src|href)\s*=[^>]*", outside) == ['href="data:,"']
    assert re.findall(r"url\(|@import|https?:", outside) == []


def test_the_page_carries_the_licences_of_what_it_holds(tmp_path):
    page = write_explorer(tmp_path / "g.html", ring()).read_text(encoding="utf-8")
    assert "Copyright (c) 2018 Vasco Asturiano" in page
    assert "Mike Bostock" in page


def test_hostile_texts_stay_data(tmp_path):
    table = pd.DataFrame(
        {"title": [*HOSTILE, *"abcd"], "note": [*"abcd", *HOSTILE]}, index=[f"n{i}" for i in range(8)]
    )
    graph = ring(attributes=table, label="title")
    page = write_explorer(tmp_path / "g.html", {HOSTILE[0]: graph}, title=HOSTILE[0])
    found = content(page)
    assert found["graphs"][0]["labels"][:4] == list(HOSTILE)
    assert found["graphs"][0]["attributes"]["note"][4:] == list(HOSTILE)
    assert found["title"] == found["graphs"][0]["name"] == HOSTILE[0]
    text = page.read_text(encoding="utf-8")
    assert "<script>window" not in text
    assert "<img" not in text
    assert "\u2028" not in text


def test_what_is_filled_in_is_not_filled_again():
    page = single_page("explorer.html", title="{{data}}", data=["{{policy}}"], styles=[], scripts=[])
    assert "<title>{{data}}</title>" in page
    assert '["{{policy}}"]' in page


def test_missing_labels_and_attributes(tmp_path):
    table = pd.DataFrame(
        {"title": ["A", None], "year": [1990.0, np.nan], "score": [0.123456, 2.0]}, index=["n0", "n1"]
    )
    found = content(write_explorer(tmp_path / "g.html", ring(3, attributes=table, label="title")))["graphs"][0]
    assert found["labels"] == ["A", "n1", "n2"]
    assert found["attributes"] == {"year": ["1990", None, None], "score": ["0.1235", "2", None]}


def test_to_html_writes_the_page(tmp_path):
    page = ring().to_html(tmp_path / "g.html", title="Ring")
    assert content(page)["title"] == "Ring"


@pytest.mark.parametrize("n_nodes", [1, 2, 5])
def test_graphs_without_edges(tmp_path, n_nodes):
    graph = SimilarityGraph(np.zeros((n_nodes, n_nodes)), range(n_nodes))
    found = content(write_explorer(tmp_path / "g.html", graph))["graphs"][0]
    assert found["steps"][0]["communities"] == [-1] * n_nodes
    assert len({tuple(place) for place in found["positions"]}) == n_nodes


# -------------------------------------------------------------------- steps and large graphs


def test_steps_come_in_order_with_the_trained_graph_last(tmp_path):
    graph = planted(150, 3)
    earlier = {2000: weaker(graph, 0.8), 500: weaker(graph, 0.4)}
    page = write_explorer(tmp_path / "g.html", {"films": graph}, snapshots={"films": earlier})
    steps = content(page)["graphs"][0]["steps"]
    assert [step["epoch"] for step in steps] == [500, 2000, None]
    assert [step["n_edges"] for step in steps] == [earlier[500].n_edges, earlier[2000].n_edges, graph.n_edges]


def test_communities_keep_their_colour_through_the_steps():
    graph = planted(300, 5)
    found = graph_content("g", graph, {1: weaker(graph, 0.9)}, 1000)
    first, last = (np.array(step["communities"]) for step in found["steps"])
    assert np.mean(first == last) > 0.8


def test_matching_renames_and_nothing_else():
    rng = np.random.default_rng(0)
    labels, reference = rng.integers(-1, 5, 60), rng.integers(-1, 7, 60)
    renamed = matched(labels.tolist(), reference.tolist())
    assert len(set(zip(labels, renamed, strict=True))) == len(set(labels)) == len(set(renamed))
    assert ((labels == -1) == (renamed == -1)).all()
    assert (matched(reference.tolist(), reference.tolist()) == reference).all()


@pytest.mark.parametrize("limit", [200, 400, 1000])
def test_the_strongest_edges_of_every_node_are_kept(limit):
    graph = planted(200, 4)
    kept = strongest(graph, limit)
    assert 0 < kept.n_edges <= max(limit, len(graph))
    full, part = graph.to_scipy().toarray(), kept.to_scipy().toarray()
    assert (part[part > 0] == full[part > 0]).all()
    assert (part.max(axis=1) == full.max(axis=1)).all()
    k = min(np.count_nonzero(part, axis=1))
    top = np.sort(full, axis=1)[:, -k:]
    assert all((row[row >= smallest] > 0).all() for row, smallest in zip(part, top[:, 0], strict=True))


def test_graphs_within_the_limit_are_untouched():
    graph = planted(200, 4)
    assert strongest(graph, graph.n_edges) is graph


def test_a_large_graph_is_drawn_by_its_communities(tmp_path):
    graph = planted(400, 5)
    found = content(write_explorer(tmp_path / "g.html", graph, max_nodes=399))["graphs"][0]
    labels = communities(graph)
    overview = found["overview"]
    assert found["positions"] is None
    assert overview["sizes"] == np.bincount(labels).tolist()
    assert len(overview["positions"]) == labels.max() + 1
    adjacency = graph.to_scipy().toarray()
    for (a, b), weight in edges(overview).items():
        assert weight == pytest.approx(adjacency[labels == a][:, labels == b].sum(), rel=1e-3)
    assert content(write_explorer(tmp_path / "g.html", graph, max_nodes=400))["graphs"][0]["overview"] is None


# -------------------------------------------------------------------- positions


def test_neighbours_stand_together():
    graph = planted(600, 6)
    group = graph.attributes["group"].to_numpy()
    places = node_positions(graph)
    distance = np.linalg.norm(places[:, None] - places, axis=2)
    nearest = np.argsort(distance, axis=1)[:, 1:11]
    assert np.mean(group[nearest] == group[:, None]) > 0.8


def test_no_two_nodes_stand_over_each_other():
    adjacency = np.ones((40, 40)) + np.kron(np.eye(2), np.ones((20, 20)))  # all nodes of a group are alike
    places = node_positions(SimilarityGraph(adjacency, range(40)))
    distance = np.linalg.norm(places[:, None] - places, axis=2) + np.eye(40)
    assert distance.min() > 0.08


@pytest.mark.parametrize("n_nodes", [2, 3, 7, 8, 9, 30])
def test_positions_of_few_nodes_differ_and_stay_the_same(n_nodes):
    graph = ring(n_nodes)
    places = node_positions(graph)
    assert np.isfinite(places).all()
    assert len({tuple(place) for place in places.round(6)}) == n_nodes
    assert (places == node_positions(graph)).all()


def test_isolated_nodes_stand_below():
    adjacency = np.zeros((20, 20))
    adjacency[:12, :12] = 1
    places = node_positions(SimilarityGraph(adjacency, range(20)))
    assert places[12:, 1].min() > places[:12, 1].max()
    assert np.isfinite(places).all()
    assert len({tuple(place) for place in places}) == 20


# -------------------------------------------------------------------- models


@pytest.fixture(scope="module")
def model():
    """A small model with snapshots of both graphs."""
    ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((4, 6)))
    return AIR.for_completion(n_epochs=60, snapshot_epochs=[10, 30], random_state=0, device="cpu").fit(ratings)


def test_the_page_of_a_model(model, tmp_path):
    titles = pd.DataFrame({"item": range(12), "genre": "x", "title": [f"T{i}" for i in range(12)]})
    found = content(explorer_of(model, tmp_path / "m.html", titles))
    items, users = found["graphs"]
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
    snapshot = model.snapshots_[10].user_graph
    assert users["steps"][0]["n_edges"] == snapshot.n_edges


def test_nodes_of_a_posterior_have_an_uncertainty(tmp_path):
    ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((4, 6)))
    ratings[1:, 0] = np.nan
    posterior = AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(ratings)
    items, users = content(explorer_of(posterior, tmp_path / "m.html"))["graphs"]
    expected = posterior.uncertainty("item")
    assert [float(text) for text in items["attributes"]["uncertainty"]] == pytest.approx(expected.tolist(), rel=5e-3)
    assert expected.idxmax() == 0  # one rating
    assert len(users["attributes"]["uncertainty"]) == 8
    titles = pd.DataFrame({"title": [f"T{i}" for i in range(12)], "uncertainty": "mine"})
    own = content(explorer_of(posterior, tmp_path / "m.html", titles))["graphs"][0]
    assert set(own["attributes"]["uncertainty"]) == {"mine"}


def test_the_first_graph_can_be_chosen(model, tmp_path):
    found = content(explorer_of(model, tmp_path / "m.html", first="users"))
    assert [graph["name"] for graph in found["graphs"]] == ["users", "items"]


@pytest.mark.parametrize("titles", [pd.DataFrame({"name": ["A"]}, index=[0]), pd.DataFrame(index=[0])])
def test_tables_without_a_title(model, tmp_path, titles):
    labels = content(explorer_of(model, tmp_path / "m.html", titles))["graphs"][0]["labels"]
    assert labels[0] == ("A" if len(titles.columns) else "0")


def test_models_that_have_no_graph(tmp_path):
    with pytest.raises(NotFittedError):
        explorer_of(AIR(), tmp_path / "m.html")
    fitted = BiasModel().fit(np.array([[1.0, 2.0], [3.0, np.nan]]))
    with pytest.raises(DataError, match="BiasModel has learned no graph"):
        explorer_of(fitted, tmp_path / "m.html")


def test_common_ratings_of_edges_are_those_of_the_table(tmp_path):
    rng = np.random.default_rng(0)
    table = np.where(rng.random((30, 10)) < 0.4, rng.integers(1, 6, (30, 10)).astype(float), np.nan)
    ratings = Interactions.from_dense(table)
    graph = SimilarityGraph(np.ones((10, 10)), range(10), kind="item")
    found = content(write_explorer(tmp_path / "g.html", graph, ratings=ratings))["graphs"][0]
    rated = np.isfinite(table).astype(int)
    step = found["steps"][0]
    assert step["shared"] == (rated.T @ rated)[step["sources"], step["targets"]].tolist()
    assert found["attributes"]["number of ratings"] == [str(count) for count in rated.sum(axis=0)]
    with pytest.raises(DataError, match="no item 10"):
        write_explorer(tmp_path / "h.html", SimilarityGraph(np.ones((11, 11)), range(11), "item"), ratings=ratings)


def test_names_of_communities_are_in_the_page(tmp_path):
    table = pd.DataFrame({"genre": ["War"] * 12 + ["Comedy"] * 12})
    graph = SimilarityGraph(np.kron(np.eye(2), np.ones((12, 12))), range(24), kind="item", attributes=table)
    found = content(write_explorer(tmp_path / "g.html", graph))["graphs"][0]
    assert [(each["community"], each["name"]) for each in found["names"]] == [(0, "War"), (1, "Comedy")]
    assert "pattern" not in found
    assert "shared" not in found["steps"][0]


# -------------------------------------------------------------------- refused


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
def test_what_is_refused(tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        write_explorer(tmp_path / "g.html", **({"graphs": ring()} | options))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(ParameterError, match="existing folder"):
        write_explorer(tmp_path / "none" / "g.html", ring())


def test_an_older_page_survives_a_failure(tmp_path):
    page = write_explorer(tmp_path / "g.html", ring())
    before = page.read_bytes()
    with pytest.raises(DataError):
        write_explorer(page, ring(), snapshots={"items": {1: ring(3)}})
    assert page.read_bytes() == before


def test_edges_of_who_rated_what_are_the_strongest_of_that_graph(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    ratings = Interactions.from_dense(np.where(rng.random((60, 30)) < 0.3, 3.0, np.nan))
    graph = SimilarityGraph(np.ones((30, 30)), range(30), kind="item")
    rows = ratings.to_csr().T.tocsr()
    expected = SimilarityGraph(with_pattern(sp.csr_array((30, 30)), rows, 20), range(30), kind="item")
    found = content(write_explorer(tmp_path / "g.html", graph, ratings=ratings))["graphs"][0]["pattern_edges"]
    assert found["n_edges"] == len(found["weights"]) == expected.n_edges
    assert found["weights"] == sorted(found["weights"], reverse=True)
    np.testing.assert_allclose(expected.to_scipy()[found["sources"], found["targets"]], found["weights"], rtol=1e-3)
    pattern = np.isfinite(ratings.to_dense()).astype(int)
    assert found["shared"] == (pattern.T @ pattern)[found["sources"], found["targets"]].tolist()
    monkeypatch.setattr("air_recsys.report.content._MAX_PATTERN_EDGES", 40)
    fewer = content(write_explorer(tmp_path / "g.html", graph, ratings=ratings))["graphs"][0]["pattern_edges"]
    assert fewer["n_edges"] == found["n_edges"]
    assert len(fewer["weights"]) < len(found["weights"])
    large = content(write_explorer(tmp_path / "g.html", graph, ratings=ratings, max_nodes=20))["graphs"][0]
    assert "pattern_edges" not in large


def test_many_steps_share_the_room_for_edges_and_keep_their_communities(tmp_path, monkeypatch):
    graph = planted(400, 6)
    monkeypatch.setattr("air_recsys.report.content._ALL_STEP_EDGES", 4000)
    sizes = []
    for count in (1, 8):
        steps = {"items": dict.fromkeys(range(count), graph)}
        page = write_explorer(tmp_path / "g.html", {"items": graph}, snapshots=steps)
        *earlier, trained = content(page)["graphs"][0]["steps"]
        sizes.append(sum(len(step["weights"]) for step in earlier))
        assert [step["communities"] for step in earlier] == [trained["communities"]] * count
        assert [step["n_edges"] for step in earlier] == [graph.n_edges] * count
    assert max(sizes) <= 4000


def test_communities_of_an_earlier_step_have_names_of_their_own(tmp_path):
    table = pd.DataFrame({"shelf": ["War"] * 24 + ["Comedy"] * 24})
    table["kind"] = np.repeat(["Sea", "Air", "Farce", "Satire"], 12)
    graphs = [SimilarityGraph(np.kron(np.eye(n), np.ones((48 // n,) * 2)), range(48), kind="item") for n in (2, 4)]
    fine = graphs[1].with_attributes(table)
    page = write_explorer(tmp_path / "g.html", {"items": fine}, snapshots={"items": {5: graphs[0]}})
    found = content(page)["graphs"][0]
    assert {each["name"] for each in found["steps"][0]["names"]} == {"War", "Comedy"}
    assert {each["name"].split(" · ")[0] for each in found["names"]} == {"Sea", "Air", "Farce", "Satire"}
