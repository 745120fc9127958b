"""The graph of the items over which the trained factors of a `GraphRanker` are spread."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch

from air_recsys.graphs.cooccurrence import cooccurrence_neighbors, scaled_adjacency
from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.smoothings import some_users
from air_recsys.nn.softmax import ColumnGraph
from air_recsys.training.softmax import row_pattern

_SHARE = 2.0  # of the neighbours, where an item itself counts 1
_MOST_READ = 10_000_000  # interactions: the time for all pairs of items of each user has a limit


def factor_graph(pattern: Csr, n_neighbors: int, seed: int, device: torch.device) -> ColumnGraph:
    """Return the strongest co-occurrences of each item, evened by the degrees of both ends, times 2.

    Of more than ten million interactions it reads those of some users, drawn at random.

    Examples
    --------
    >>> pattern = sp.csr_array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    >>> factor_graph(pattern, 1, 0, torch.device("cpu")).spread(torch.eye(3))
    tensor([[1.0000, 1.5638, 1.2468],
            [1.5638, 1.0000, 0.0000],
            [1.2468, 0.0000, 1.0000]])
    """
    read = some_users(pattern, seed, _MOST_READ)
    return column_graph(cooccurrence_neighbors(sp.csr_array(read.T), n_neighbors), device)


def column_graph(graph: Csr, device: torch.device) -> ColumnGraph:
    """Return the weights of a graph, (n_items, n_items), evened by the degrees of both ends, times 2.

    Examples
    --------
    >>> graph = sp.csr_array([[0.0, 0.3], [0.3, 0.0]])
    >>> column_graph(graph, torch.device("cpu")).spread(torch.eye(2))
    tensor([[1., 2.],
            [2., 1.]])
    """
    scaled = scaled_adjacency(graph)
    edges = row_pattern(scaled, device)  # in order of the columns, and then the weights are, too
    return ColumnGraph(edges, torch.from_numpy((_SHARE * scaled.data).astype(np.float32)).to(device))
