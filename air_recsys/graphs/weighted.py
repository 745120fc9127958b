"""`WeightedGraph`: ids, weights and attributes, and exports to other programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError
from air_recsys.graphs import exports
from air_recsys.graphs.nodes import Nodes
from air_recsys.storage.lazy import torch
from air_recsys.storage.reading import checked_sparse
from air_recsys.storage.validation import import_extra
from air_recsys.storage.writing import check_folder, replace_file

if TYPE_CHECKING:
    import networkx as nx

_NEGLIGIBLE = 1e-6  # share of the largest weight, below which a weight is 0 up to the rounding of float32


class WeightedGraph:
    """The contents and the exports of `SimilarityGraph`; use that class, which has the same parameters."""

    def __init__(
        self,
        adjacency: Any,
        ids: Iterable[Hashable],
        kind: str = "node",
        *,
        attributes: pd.DataFrame | None = None,
        label: str | None = None,
        support: sp.csr_array | None = None,
        ratings: Interactions | None = None,
    ) -> None:
        self.ratings = ratings
        self._nodes = Nodes(ids, kind, attributes, label)
        self._adjacency = _clean(adjacency, len(self._nodes.ids))
        self._support = None if support is None else _of_entries(support, self._adjacency)
        self._divided: dict[tuple[float, int], np.ndarray] = {}  # communities that were asked for, as it never changes

    @classmethod
    def taking(cls, adjacency: sp.csr_array, ids: Iterable[Hashable], kind: str = "node") -> Self:
        """The graph of an adjacency that nobody changes; its arrays are kept, not copied, where they are clean.

        Those of a model file that is mapped so stay in the file.

        Examples
        --------
        >>> adjacency = sp.csr_array([[0.0, 2.0], [2.0, 0.0]])
        >>> WeightedGraph.taking(adjacency, ["a", "b"]).n_edges
        1
        """
        graph = cls(adjacency, ids, kind)
        if _are_equal(graph._adjacency, adjacency):
            graph._adjacency = adjacency
        return graph

    # ---------------------------------------------------------------- contents

    @property
    def kind(self) -> str:
        """The kind of the nodes, such as "user" or "item"."""
        return self._nodes.kind

    @property
    def ids(self) -> np.ndarray:
        """Ids of the nodes in row order, shape (n,)."""
        return self._nodes.ids

    @property
    def attributes(self) -> pd.DataFrame:
        """A copy of the attributes of the nodes, indexed by id in row order; it can have no columns."""
        return self._nodes.attributes.copy()

    @property
    def label(self) -> str | None:
        """The column of `attributes` that names the nodes."""
        return self._nodes.label

    @property
    def labels(self) -> np.ndarray:
        """The name of every node as text, by default its id; shape (n,)."""
        return self._nodes.labels()

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        return self._adjacency.nnz // 2

    @property
    def support(self) -> sp.csr_array | None:
        """The order of edges of equal weight, shape (n, n); see `SimilarityGraph`. None where nothing does."""
        if self._support is None:
            return None
        own = self._adjacency
        return sp.csr_array((self._support.copy(), own.indices.copy(), own.indptr.copy()), shape=own.shape)

    def __len__(self) -> int:
        return len(self.ids)

    def strongest_first(self) -> sp.coo_array:
        """Every edge once as an upper triangle, shape (n, n), its entries in the order of falling weight.

        Of equal weights that with more support comes first, then the first in the order of the ids.
        """
        upper = sp.triu(self.to_scipy(), k=1).tocoo()
        known = self.support
        support = np.zeros(upper.nnz) if known is None else sp.triu(known, k=1).tocoo().data
        order = np.lexsort((upper.col, upper.row, np.negative(support), np.negative(upper.data)))
        return sp.coo_array((upper.data[order], (upper.row[order], upper.col[order])), shape=upper.shape)

    def edge_list(self) -> pd.DataFrame:
        """Every edge once, as columns source, target and weight.

        Examples
        --------
        >>> WeightedGraph([[0, 2], [2, 0]], ["a", "b"]).edge_list()
          source target  weight
        0      a      b     2.0
        """
        return exports.edge_list(self.ids, self._adjacency)

    # ---------------------------------------------------------------- to other libraries

    def to_scipy(self) -> sp.csr_array:
        """A copy of the adjacency, shape (n, n), symmetric with an empty diagonal."""
        return self._adjacency.copy()

    def to_networkx(self, labels: bool = True) -> nx.Graph:
        """A NetworkX graph with edge attribute "weight" (needs the extra ``viz``).

        The attributes become attributes of the nodes, without missing values. If a column names the nodes, "label" is
        the name.

        Parameters
        ----------
        labels : bool
            Whether ids name the nodes, else row numbers.
        """
        names = self.ids.tolist() if labels else range(len(self))
        return exports.networkx_graph(names, self._adjacency, exports.node_attributes(self._nodes))

    def to_pyg(self) -> Any:
        """A PyTorch Geometric ``Data`` (needs torch_geometric, the extra ``graphs``).

        ``edge_index`` (int64, both directions of every edge), ``edge_weight`` (float32), ``num_nodes``, and the list
        ``ids`` in the order of the nodes.
        """
        data = import_extra("torch_geometric.data", "graphs").Data
        entries = self._adjacency.tocoo()
        ends = torch.from_numpy(np.stack([entries.row, entries.col]).astype(np.int64))  # (2, 2 n_edges)
        weights = torch.from_numpy(entries.data.astype(np.float32))
        return data(edge_index=ends, edge_weight=weights, num_nodes=len(self), ids=self.ids.tolist())

    def to_pygsp(self) -> Any:
        """A PyGSP ``Graph`` for signal processing (needs pygsp, the extra ``graphs``); nodes are rows."""
        return import_extra("pygsp.graphs", "graphs").Graph(sp.csr_matrix(self._adjacency))  # takes no sparse array

    # ---------------------------------------------------------------- to files

    def to_graphml(self, path: str | os.PathLike[str]) -> Path:
        """Write the graph with its attributes as GraphML, for Gephi, Cytoscape or igraph (needs the extra ``viz``).

        Ids become text. Values other than text, numbers and booleans become text, and characters that XML does not
        allow become U+FFFD. An interrupted write leaves an older file unchanged, as for all files here.

        Raises
        ------
        ParameterError
            For every format, if the folder does not exist.
        DataError
            For every format but CSV, if two ids are equal as text.
        """
        return exports.write_xml(path, "graphml", self._nodes, self._adjacency)

    def to_gexf(self, path: str | os.PathLike[str]) -> Path:
        """Write the graph with its attributes as GEXF, for Gephi; see `to_graphml`.

        A column whose name GEXF reserves, such as "id" or "start", gets the suffix "_".
        """
        return exports.write_xml(path, "gexf", self._nodes, self._adjacency)

    def to_csv(self, path: str | os.PathLike[str], nodes: str | os.PathLike[str] | None = None) -> Path:
        """Write the edges as CSV: source, target, weight, every edge once, with all digits.

        Parameters
        ----------
        path : str or Path
        nodes : str or Path, optional
            Second file for the nodes: their ids, in a column named after the kind, and their attributes. The file of
            the edges does not contain nodes without edges.
        """
        return self._write_tables(path, nodes, self.edge_list(), exports.csv_bytes)

    def to_parquet(self, path: str | os.PathLike[str], nodes: str | os.PathLike[str] | None = None) -> Path:
        """Write the edges as Parquet (needs pyarrow, the extra ``data``); see `to_csv`, and `to_graphml` for errors.

        Types are kept. Columns of several types, of ids or attributes, become text.
        """
        names = exports.of_one_type(pd.Series(self.ids, dtype=self.ids.dtype)).to_numpy(dtype=self.ids.dtype)
        exports.check_distinct(names.tolist(), self.kind)
        return self._write_tables(path, nodes, exports.edge_list(names, self._adjacency), exports.parquet_bytes)

    def _write_tables(self, path: Any, nodes: Any, edges: pd.DataFrame, form: Callable[[pd.DataFrame], bytes]) -> Path:
        targets = [(check_folder(path), edges)]
        if nodes is not None:
            targets.append((check_folder(nodes), self._nodes.attributes.reset_index()))
        contents = [(target, form(table)) for target, table in targets]
        for target, content in contents:
            replace_file(target, content)
        return targets[0][0]


def _are_equal(clean: sp.csr_array, given: sp.csr_array) -> bool:
    """Whether two matrices have the same arrays, of the same types."""
    pairs = [(getattr(clean, name), getattr(given, name)) for name in ("data", "indices", "indptr")]
    return all(own.dtype == other.dtype and np.array_equal(own, other) for own, other in pairs)


def _clean(adjacency: Any, size: int) -> sp.csr_array:
    whole = checked_sparse("the adjacency", adjacency) if sp.issparse(adjacency) else adjacency
    matrix = sp.csr_array(whole, dtype=np.float64)
    if matrix.shape != (size, size):
        raise DataError(f"expected an adjacency of {size} x {size}, one row per id, found shape {matrix.shape}")
    if matrix.nnz and (not np.isfinite(matrix.data).all() or matrix.data.min() < 0):
        raise DataError(f"expected finite weights >= 0, found {matrix.data.min():g}..{matrix.data.max():g}")
    largest = matrix.data.max() if matrix.nnz else 0.0
    if (asymmetry := abs(matrix - matrix.T)).nnz and asymmetry.data.max() > 1e-5 * largest:
        raise DataError(f"expected a symmetric adjacency, found a difference of {asymmetry.data.max():g}")
    upper = sp.triu(matrix, k=1).tocoo()
    kept = upper.data > _NEGLIGIBLE * largest
    half = sp.csr_array((upper.data[kept], (upper.row[kept], upper.col[kept])), shape=(size, size))
    cleaned = sp.csr_array(half + half.T)
    cleaned.sort_indices()
    return cleaned


def _of_entries(support: sp.csr_array, adjacency: sp.csr_array) -> np.ndarray:
    """The support of the stored entries of an adjacency, 0 where nothing is known; shape (nnz,)."""
    if support.shape != adjacency.shape:
        raise DataError(f"expected support of the shape {adjacency.shape} of the adjacency, found {support.shape}")
    n = adjacency.indptr.size - 1
    positions = np.repeat(np.arange(n), np.diff(adjacency.indptr)) * n + adjacency.indices
    given = sp.coo_array(support)
    wanted = given.row.astype(np.int64) * n + given.col
    found = np.zeros(adjacency.nnz, dtype=given.dtype)
    at = np.searchsorted(positions, wanted)
    known = at < positions.size
    known[known] = positions[at[known]] == wanted[known]
    found[at[known]] = given.data[known]
    return found
