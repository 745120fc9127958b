"""`SimilarityGraph`: a learned graph with the caller's ids."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.sparse import csgraph

from air_recsys.exceptions import DataError, ParameterError, UnknownIdError
from air_recsys.ids import IdIndex
from air_recsys.validation import check_integer, check_real, import_extra

if TYPE_CHECKING:
    import networkx as nx

# Weights below this share of the largest are what float32 leaves of zero.
_NEGLIGIBLE = 1e-6


class SimilarityGraph:
    """An undirected weighted graph over users or items: the larger a weight, the more alike the two.

    Parameters
    ----------
    adjacency : sparse array or ndarray, shape (n, n)
        Symmetric, non-negative; the diagonal is ignored, and so are weights below a millionth of the largest.
    ids : iterable of hashable
        The id of each node, in the order of the rows.
    kind : str
        What the nodes are, "user" or "item"; for messages and the repr.

    Raises
    ------
    DataError
        Unless the matrix is square, symmetric, finite, non-negative and as long as `ids`.

    Examples
    --------
    >>> graph = SimilarityGraph([[0, 2, 1], [2, 0, 0], [1, 0, 0]], ["a", "b", "c"], kind="item")
    >>> graph
    SimilarityGraph(3 items, 2 edges, 0 isolated)
    >>> graph.neighbors("a")
      item  weight
    0    b     2.0
    1    c     1.0
    >>> graph.laplacian().toarray()
    array([[ 3., -2., -1.],
           [-2.,  2.,  0.],
           [-1.,  0.,  1.]])
    """

    def __init__(self, adjacency: Any, ids: Iterable[Hashable], kind: str = "node") -> None:
        self._index = IdIndex(ids, kind)
        self.kind = kind
        self._adjacency = _clean(adjacency, len(self._index))

    @property
    def ids(self) -> np.ndarray:
        """Ids of the nodes in row order, shape (n,)."""
        return self._index.ids

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        return self._adjacency.nnz // 2

    def __len__(self) -> int:
        return len(self._index)

    def __repr__(self) -> str:
        isolated = int(np.count_nonzero(np.diff(self._adjacency.indptr) == 0))
        return f"SimilarityGraph({len(self)} {self.kind}s, {self.n_edges} edges, {isolated} isolated)"

    def to_scipy(self) -> sp.csr_array:
        """Return a copy of the adjacency, shape (n, n), symmetric with an empty diagonal."""
        return self._adjacency.copy()

    def laplacian(self) -> sp.csr_array:
        """Return L = diag(A 1) - A, shape (n, n)."""
        return sp.csr_array(csgraph.laplacian(self._adjacency))

    def neighbors(self, id: Hashable, n: int = 10) -> pd.DataFrame:
        """Return the n nodes most alike to `id`, strongest first, as columns named after the kind and "weight".

        Fewer than n come back where the node has fewer edges.

        Raises
        ------
        UnknownIdError
            Where no node has that id.
        """
        check_integer("n", n, minimum=1)
        row = self._index.lookup([id])[0]
        if row < 0:
            raise UnknownIdError(self.kind, [id])
        span = slice(self._adjacency.indptr[row], self._adjacency.indptr[row + 1])
        others, weights = self._adjacency.indices[span], self._adjacency.data[span]
        order = np.lexsort((others, np.negative(weights)))[:n]
        return pd.DataFrame({self.kind: self.ids[others[order]], "weight": weights[order]})

    def communities(self, random_state: int = 0, resolution: float = 1.0) -> pd.Series:
        """Return the Louvain community of every node, 0 being the largest (needs the extra ``viz``).

        Parameters
        ----------
        random_state : int
            Louvain visits the nodes in a random order.
        resolution : float
            Larger than 1 favours smaller communities.

        Returns
        -------
        Series of int, indexed by id
        """
        check_real("resolution", resolution, strict=True)
        graph = self.to_networkx(labels=False)
        found = import_extra("networkx", "viz").community.louvain_communities(
            graph, resolution=resolution, seed=check_integer("random_state", random_state)
        )
        labels = np.empty(len(self), dtype=np.int64)
        for label, members in enumerate(sorted(found, key=lambda group: (-len(group), min(group)))):
            labels[list(members)] = label
        return pd.Series(labels, index=pd.Index(self.ids, name=self.kind), name="community")

    def to_networkx(self, labels: bool = True) -> nx.Graph:
        """Return a NetworkX graph with edge attribute "weight" (needs the extra ``viz``).

        Parameters
        ----------
        labels : bool
            Name the nodes by their ids, else by row number.
        """
        networkx = import_extra("networkx", "viz")
        graph = networkx.Graph()
        names = self.ids.tolist() if labels else range(len(self))
        graph.add_nodes_from(names)
        upper = sp.triu(self._adjacency, k=1).tocoo()
        edges = zip(upper.row.tolist(), upper.col.tolist(), upper.data.tolist(), strict=True)
        graph.add_weighted_edges_from((names[i], names[j], weight) for i, j, weight in edges)
        return graph

    def to_graphml(self, path: str | Path) -> Path:
        """Write the graph as GraphML, for Gephi, Cytoscape or igraph (needs the extra ``viz``)."""
        target = Path(path)
        if not target.parent.is_dir():
            raise ParameterError(f"expected an existing folder for {target.name}, found no {target.parent}")
        import_extra("networkx", "viz").write_graphml(self.to_networkx(), target)
        return target


def _clean(adjacency: Any, size: int) -> sp.csr_array:
    matrix = sp.csr_array(adjacency, dtype=np.float64)
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
