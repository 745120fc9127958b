"""The ways out of a graph read back equal."""

import sys
import types

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import torch
from graph_cases import HOSTILE, fails, fast, films, graphs
from hypothesis import given

from air_recsys import SimilarityGraph
from air_recsys.exceptions import ParameterError

FORMS = {"graphml": nx.read_graphml, "gexf": nx.read_gexf}
every_form = pytest.mark.parametrize("form", FORMS)
PAIR = [[0.0, 1.0], [1.0, 0.0]]


def export(graph, form, path):
    return getattr(graph, f"to_{form}")(path)


def of_edges(table, ids):
    rows = {id: row for row, id in enumerate(ids)}
    matrix = np.zeros((len(rows), len(rows)))
    for source, target, weight in table.itertuples(index=False):
        matrix[rows[source], rows[target]] = matrix[rows[target], rows[source]] = weight
    return matrix


# -------------------------------------------------------------------- NetworkX, GraphML, GEXF


@fast
@given(graphs())
def test_networkx_keeps_ids_weights_and_nodes_without_edges(graph):
    found = graph.to_networkx()
    assert list(found.nodes) == graph.ids.tolist()
    assert {type(node) for node in found.nodes} == {int}
    assert found.number_of_edges() == graph.n_edges
    np.testing.assert_array_equal(nx.to_numpy_array(found), graph.to_scipy().toarray())


def test_networkx_nodes_hold_what_is_known_as_plain_values():
    found = films().to_networkx()
    plums, apple = "Plums (1991)", "Äpfel (1990)"
    assert found.nodes[30] == {"title": plums, "year": 1991, "kids": True, "label": plums}
    assert found.nodes[10] == {"title": apple, "year": 1990, "kids": False, "label": apple}
    assert found.nodes[20] == {"title": HOSTILE, "kids": True, "label": HOSTILE}
    assert found.nodes[40] == {"label": "40"}
    assert [type(value) for value in found.nodes[30].values()] == [str, int, bool, str]
    by_row = films().to_networkx(labels=False)
    assert list(by_row.nodes) == [0, 1, 2, 3]
    assert by_row.nodes[2] == found.nodes[30]
    # A column called label is left as it is.
    table = pd.DataFrame({"label": ["x", "y"], "title": ["A", "B"]}, index=[1, 2])
    graph = SimilarityGraph(PAIR, [1, 2], attributes=table, label="title")
    assert graph.to_networkx().nodes[1] == {"label": "x", "title": "A"}


@every_form
def test_files_read_back_equal_and_hold_hostile_titles_as_text(tmp_path, form):
    graph = films()
    path = export(graph, form, tmp_path / "films")
    found = FORMS[form](path)
    matrix = nx.to_numpy_array(found, nodelist=[str(id) for id in graph.ids])
    np.testing.assert_array_equal(matrix, graph.to_scipy().toarray())
    nodes = {name: dict(known) for name, known in found.nodes(data=True)}
    assert nodes["30"] == {"title": "Plums (1991)", "year": 1991, "kids": True, "label": "Plums (1991)"}
    assert nodes["20"] == {"title": HOSTILE, "kids": True, "label": HOSTILE}
    assert nodes["40"] == {"label": "40"}
    content = path.read_text(encoding="utf-8")
    assert "<script" not in content
    assert "&lt;script&gt;" in content


@every_form
def test_what_xml_cannot_hold_does_not_spoil_the_file(tmp_path, form):
    titles = pd.Series(["bell \x07", "surrogate \ud800"], dtype=object)
    table = pd.DataFrame({"title": titles, "tags": [["a", "b"], {"c"}]}).set_axis([1, 2])
    path = export(SimilarityGraph(PAIR, [1, 2], attributes=table, label="title"), form, tmp_path / "odd")
    found = FORMS[form](path)
    assert found.nodes["1"]["title"] == "bell \ufffd"
    assert found.nodes["2"]["title"] == "surrogate \ufffd"
    assert found.nodes["1"]["tags"] == "['a', 'b']"


def test_columns_that_gexf_needs_for_itself_are_renamed(tmp_path):
    table = pd.DataFrame({"id": [7, 8], "start": [1990, 1991], "viz": ["x", "y"]}, index=["a", "b"])
    path = SimilarityGraph(PAIR, "ab", attributes=table).to_gexf(tmp_path / "graph.gexf")
    assert dict(nx.read_gexf(path).nodes["a"]) == {"id_": 7, "start_": 1990, "viz_": "x", "label": "a"}


# -------------------------------------------------------------------- tables


@fast
@given(graph=graphs())
def test_csv_keeps_every_digit(tmp_path_factory, graph):
    path = graph.to_csv(tmp_path_factory.mktemp("csv") / "edges.csv")
    found = pd.read_csv(path, converters={"weight": float})  # older parsers of pandas are not exact
    assert found.columns.tolist() == ["source", "target", "weight"]
    np.testing.assert_array_equal(of_edges(found, graph.ids), graph.to_scipy().toarray())


def test_csv_of_the_nodes_keeps_those_without_edges_and_hostile_titles(tmp_path):
    films().to_csv(tmp_path / "edges.csv", nodes=tmp_path / "nodes.csv")
    found = pd.read_csv(tmp_path / "nodes.csv")
    assert found.columns.tolist() == ["item", "title", "year", "kids"]
    assert found["item"].tolist() == [10, 20, 30, 40]
    assert found["title"][1] == HOSTILE


def test_parquet_keeps_types(tmp_path):
    graph = films()
    path = graph.to_parquet(tmp_path / "edges.parquet", nodes=tmp_path / "nodes.parquet")
    assert pq.read_schema(path).names == ["source", "target", "weight"]
    edges, nodes = pd.read_parquet(path), pd.read_parquet(tmp_path / "nodes.parquet")
    pd.testing.assert_frame_equal(edges, graph.edge_list())
    again = SimilarityGraph(of_edges(edges, graph.ids), nodes["item"], "item", attributes=nodes, label="title")
    found, expected = (each.attributes[["title", "year"]].fillna({"title": "none"}) for each in (again, graph))
    pd.testing.assert_frame_equal(found, expected)
    assert again.attributes["kids"].tolist() == [False, True, True, None]
    assert again.labels.tolist() == graph.labels.tolist()


def test_parquet_writes_ids_and_attributes_of_several_types_as_text_and_missing_ones_as_missing(tmp_path):
    adjacency, ids = np.zeros((3, 3)), [1, 2, "b"]
    adjacency[0, 1] = adjacency[1, 0] = 1
    table = pd.DataFrame(
        {"mixed": pd.Series([1, "a", None], dtype=object).to_numpy()}, index=pd.Index(ids, dtype=object)
    )
    graph, nodes = SimilarityGraph(adjacency, ids, attributes=table), tmp_path / "nodes.parquet"
    path = graph.to_parquet(tmp_path / "edges.parquet", nodes=nodes)
    assert pd.read_parquet(path).to_numpy().tolist() == [["1", "2", 1.0]]
    found = pd.read_parquet(nodes)
    assert found["node"].tolist() == ["1", "2", "b"]
    assert found["mixed"][:2].tolist() == ["1", "a"]
    assert found["mixed"].isna().tolist() == [False, False, True]


def test_texts_that_utf8_cannot_hold(tmp_path):
    table = pd.DataFrame({"title": pd.Series(["odd \ud800", "fine"], dtype=object)}).set_axis([1, 2])
    graph, nodes = SimilarityGraph(PAIR, [1, 2], attributes=table), tmp_path / "nodes"
    with fails("expected texts that UTF-8 can hold, found"):
        graph.to_parquet(tmp_path / "edges", nodes=nodes)
    assert list(tmp_path.iterdir()) == []
    graph.to_csv(tmp_path / "edges", nodes=nodes)
    assert pd.read_csv(nodes)["title"].tolist() == ["odd ?", "fine"]


# -------------------------------------------------------------------- all files


@pytest.mark.parametrize("form", [*FORMS, "csv", "parquet"])
def test_every_file_is_written_at_once_into_a_folder_that_is_there(tmp_path, form):
    path = tmp_path / "graph"
    path.write_text("older")
    assert export(films(), form, str(path)) == path
    assert path.read_bytes() != b"older"
    assert export(SimilarityGraph(np.zeros((2, 2)), "ab"), form, path).stat().st_size > 0  # without edges
    with fails("expected an existing folder for graph", ParameterError):
        export(films(), form, tmp_path / "nowhere" / "graph")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("form", [*FORMS, "parquet"])
def test_ids_that_are_alike_as_text_are_refused(tmp_path, form):
    graph = SimilarityGraph(PAIR, [1, "1"], "item")
    with fails("expected item ids that differ as text, as the file holds them, found two alike"):
        export(graph, form, tmp_path / "graph")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_where_the_nodes_cannot_be_written_the_edges_are_not(tmp_path, form):
    with fails("expected an existing folder for nodes", ParameterError):
        getattr(films(), f"to_{form}")(tmp_path / "edges", nodes=tmp_path / "nowhere" / "nodes")
    assert list(tmp_path.iterdir()) == []


# -------------------------------------------------------------------- PyTorch Geometric, PyGSP


def stand_in(monkeypatch, name, **members):
    """Put a module of that name in place of one that may not be installed."""
    package, _, _ = name.partition(".")
    monkeypatch.setitem(sys.modules, package, types.ModuleType(package))
    module = types.ModuleType(name)
    for member, value in members.items():
        setattr(module, member, value)
    monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.parametrize("itself", [False, True])
def test_pyg_gets_both_directions_of_every_edge(monkeypatch, itself):
    if itself:
        pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")
    else:
        stand_in(monkeypatch, "torch_geometric.data", Data=types.SimpleNamespace)
    data = films().to_pyg()
    assert data.edge_index.dtype == torch.int64
    assert data.edge_weight.dtype == torch.float32
    assert (data.num_nodes, data.ids) == (4, [10, 20, 30, 40])
    matrix = torch.zeros(4, 4).index_put_(tuple(data.edge_index), data.edge_weight, accumulate=True).numpy()
    np.testing.assert_array_equal(matrix, films().to_scipy().toarray().astype(np.float32))


def test_pygsp_gets_a_matrix_and_not_a_sparse_array(monkeypatch):
    stand_in(monkeypatch, "pygsp.graphs", Graph=lambda adjacency: adjacency)
    found = films().to_pygsp()
    assert isinstance(found, sp.csr_matrix)  # its check is scipy.sparse.isspmatrix
    np.testing.assert_array_equal(found.toarray(), films().to_scipy().toarray())


def test_pygsp_itself():
    pytest.importorskip("pygsp", reason="PyGSP is not installed")
    found = films().to_pygsp()
    np.testing.assert_allclose(found.L.toarray(), films().laplacian().toarray())
