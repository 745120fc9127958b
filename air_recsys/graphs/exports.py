"""Exports of a graph: to NetworkX, PyTorch Geometric, PyGSP, and to files that are whole or absent."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.exceptions import DataError
from air_recsys.graphs.nodes import Nodes
from air_recsys.storage.validation import import_extra
from air_recsys.storage.writing import check_folder, replace_file

if TYPE_CHECKING:
    import networkx as nx

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_RESERVED_BY_GEXF = frozenset({"id", "pid", "start", "end", "slices", "spells", "viz", "parents"})


def edge_list(ids: np.ndarray, adjacency: sp.csr_array) -> pd.DataFrame:
    """Every edge once, as columns source, target and weight; the source comes first among the ids."""
    upper = sp.triu(adjacency, k=1).tocoo()
    return pd.DataFrame({"source": ids[upper.row], "target": ids[upper.col], "weight": upper.data})


# -------------------------------------------------------------------- other libraries


def networkx_graph(
    names: Iterable[Hashable], adjacency: sp.csr_array, attributes: Iterable[dict[str, Any]] | None = None
) -> nx.Graph:
    """A NetworkX graph with these node names, edge attribute "weight", and attributes of the nodes."""
    graph = import_extra("networkx", "viz").Graph()
    rows = list(names)
    graph.add_nodes_from(rows if attributes is None else zip(rows, attributes, strict=True))
    upper = sp.triu(adjacency, k=1).tocoo()
    edges = zip(upper.row.tolist(), upper.col.tolist(), upper.data.tolist(), strict=True)
    graph.add_weighted_edges_from((rows[i], rows[j], weight) for i, j, weight in edges)
    return graph


def node_attributes(nodes: Nodes) -> list[dict[str, Any]]:
    """The attributes of each node as plain Python values, without missing ones.

    Where a column names the nodes, "label" holds the name, unless a column has that name already.
    """
    attributes: list[dict[str, Any]] = [{} for _ in range(len(nodes.ids))]
    table = nodes.attributes
    if nodes.label is not None and "label" not in table.columns:
        table = table.assign(label=pd.Series(nodes.labels(), table.index, dtype=object))
    for name in table.columns:
        present = table[name].notna().tolist()
        for row, value in enumerate(table[name].astype(object).tolist()):
            if present[row]:
                attributes[row][str(name)] = value
    return attributes


# -------------------------------------------------------------------- files


def write_xml(
    path: str | os.PathLike[str], form: Literal["graphml", "gexf"], nodes: Nodes, adjacency: sp.csr_array
) -> Path:
    """Write a graph in one of two forms; columns with a name that GEXF needs for itself get "_" behind it."""
    target = check_folder(path)
    names = [_xml_text(id) for id in nodes.ids.tolist()]
    check_distinct(names, nodes.kind)
    reserved = _RESERVED_BY_GEXF if form == "gexf" else frozenset()
    attributes = [
        {_xml_text(name) + "_" * (name in reserved): _xml_value(value) for name, value in values.items()}
        for values in node_attributes(nodes)
    ]
    writer = getattr(import_extra("networkx", "viz"), f"write_{form}")
    buffer = io.BytesIO()
    writer(networkx_graph(names, adjacency, attributes), buffer)
    replace_file(target, buffer.getvalue())
    return target


def csv_bytes(table: pd.DataFrame) -> bytes:
    """A table as CSV in UTF-8."""
    return table.to_csv(index=False, lineterminator="\n").encode("utf-8", "replace")


def parquet_bytes(table: pd.DataFrame) -> bytes:
    """A table as Parquet, where a column of several types becomes text."""
    import_extra("pyarrow", "data")
    columns = {str(name): of_one_type(column) for name, column in table.items()}
    buffer = io.BytesIO()
    try:
        pd.DataFrame(columns).to_parquet(buffer, index=False, engine="pyarrow")
    except UnicodeEncodeError as error:
        raise DataError(f"expected texts that UTF-8 can hold, found {error.object!r}") from None
    return buffer.getvalue()


def of_one_type(values: pd.Series) -> pd.Series:
    """A column as it is, or as texts where its values are of several types."""
    if values.dtype != np.dtype(object) or len(set(map(type, values.dropna().tolist()))) < 2:
        return values
    return values.map(str, na_action="ignore")


def check_distinct(names: Sequence[Hashable], kind: str) -> None:
    """Raise `DataError` where two ids have the same name."""
    if len(set(names)) < len(names):
        raise DataError(f"expected {kind} ids that differ as text, as the file holds them, found two alike")


def _xml_text(value: Any) -> str:
    """A value as text without the characters that XML cannot hold."""
    return _NOT_IN_XML.sub("\ufffd", str(value))


def _xml_value(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float)) else _xml_text(value)
