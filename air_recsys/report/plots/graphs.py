"""Pictures of a similarity graph: heatmap by communities, neighbours, weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.exceptions import DataError
from air_recsys.graphs import SimilarityGraph
from air_recsys.report.plots.axes import BLUE, COLOR_OF, figure_and_axes, finish, light_grid, logarithmic
from air_recsys.report.plots.theme import ink, weight_colors
from air_recsys.storage.validation import import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_adjacency(graph: SimilarityGraph, *, communities: Any = None, ax: Axes | None = None) -> Figure:
    """Draw the weights of all pairs, sorted by communities, with lines between communities.

    More than 1,000 nodes are drawn as means over blocks of nodes. The scale ends at the 0.99 quantile of the positive
    values; larger values have the strongest colour.

    Parameters
    ----------
    graph : SimilarityGraph
    communities : Series or array_like of int, shape (n,), optional
        In the order of the graph's rows; by default `graph.communities()`.
    ax : Axes, optional

    Raises
    ------
    DataError
        If there is not one community per node.

    Examples
    --------
    >>> graph = SimilarityGraph([[0, 0, 2], [0, 0, 0], [2, 0, 0]], ["a", "b", "c"], kind="item")
    >>> plot_adjacency(graph).axes[0].images[0].get_array().tolist()
    [[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    order, labels = community_order(graph, communities)
    weights, block = mean_weights(graph, order)
    figure, axes = figure_and_axes(ax, (5.6, 4.7))
    style: dict[str, Any] = {"cmap": weight_colors(), "vmin": 0, "vmax": ceiling(weights), "interpolation": "nearest"}
    image = axes.imshow(weights, extent=(0, len(graph), len(graph), 0), **style)
    _draw_boundaries(axes, labels)
    label = "weight" if block == 1 else f"mean weight of {block} x {block} nodes"
    ticks = import_extra("matplotlib.ticker", "viz").MaxNLocator(5)  # the same ones while the layout is sought
    figure.colorbar(image, ax=axes, label=label, ticks=ticks, extend="max", shrink=0.85)
    n_communities = np.unique(labels).size
    title = f"{graph.kind.capitalize()} graph: {n_communities} {'community' if n_communities == 1 else 'communities'}"
    axes.set(title=title, xlabel=f"{graph.kind}s, sorted by community", ylabel=f"{graph.kind}s")
    return figure


def plot_degrees(graph: SimilarityGraph, ax: Axes | None = None) -> Figure:
    """Draw the number of neighbours of the nodes: bars for all edges, a line for the effective number.

    In a dense graph every node has edges to almost all others; `effective_neighbors` gives their effective number.

    Examples
    --------
    >>> graph = SimilarityGraph([[0, 1, 0], [1, 0, 4], [0, 4, 0]], ["a", "b", "c"])
    >>> [text.get_text() for text in plot_degrees(graph).axes[0].get_legend().get_texts()]
    ['all edges, mean 1.3', 'effective, mean 1.2']
    """
    counts, effective = np.diff(graph.to_scipy().indptr), effective_neighbors(graph)
    figure, axes = figure_and_axes(ax)
    low, high = int(min(counts.min(), effective.min())), int(counts.max())
    width = max(1, -(-(high - low + 1) // 40))  # whole neighbours, at most 40 bars
    edges = [edge - 0.5 for edge in range(low, high + width + 1, width)]
    axes.hist(counts, bins=edges, color=_color(graph), alpha=0.85, label=f"all edges, mean {counts.mean():.1f}")
    style: dict[str, Any] = {"histtype": "step", "color": ink(), "linewidth": 1.3}
    axes.hist(effective, bins=edges, label=f"effective, mean {effective.mean():.1f}", **style)
    article = "an" if graph.kind[:1] in "aeio" else "a"
    finish(axes, f"Neighbours of {article} {graph.kind}", "neighbours", f"{graph.kind}s")
    axes.locator_params(axis="x", integer=True)
    return figure


def plot_weights(graph: SimilarityGraph, ax: Axes | None = None) -> Figure:
    """Draw the distribution of the weights of the edges: a histogram on a logarithmic axis, and the median.

    A graph without edges has an empty panel that says so.
    """
    figure, axes = figure_and_axes(ax)
    axes.set(title=f"Weights of the {graph.kind} graph", xlabel="weight of an edge", ylabel="edges")
    weights = sp.triu(graph.to_scipy(), k=1).tocoo().data
    if weights.size == 0:
        axes.text(0.5, 0.5, "no edges", transform=axes.transAxes, ha="center", va="center", color=ink(), alpha=0.7)
        return figure
    low, high = weights.min(), weights.max()
    edges = np.geomspace(low, high, 41) if high > 1.01 * low else np.array([low / 2, 2 * high])
    edges[[0, -1]] = min(edges[0], low), max(edges[-1], high)  # against rounding
    axes.hist(weights, bins=list(edges), color=_color(graph), alpha=0.85)
    logarithmic(axes, "x")
    median = float(np.median(weights))
    axes.axvline(median, color=ink(), alpha=0.8, linestyle="--", linewidth=1.2, label=f"median {median:.2g}")
    light_grid(axes)
    axes.legend(frameon=False, fontsize="small")
    return figure


def _draw_boundaries(axes: Axes, labels: np.ndarray) -> None:
    """Draw a line between two communities, but none among those of a single node."""
    starts = (np.flatnonzero(labels[1:] != labels[:-1]) + 1).tolist()
    sizes = np.diff(np.array([0, *starts, labels.size])).tolist()
    for start, before, after in zip(starts, sizes[:-1], sizes[1:], strict=True):
        if before > 1 or after > 1:
            for draw in (axes.axhline, axes.axvline):
                draw(start, color=ink(), linewidth=0.7, alpha=0.35)


def _color(graph: SimilarityGraph) -> str:
    return COLOR_OF.get(graph.kind, BLUE)


CELLS = 1_000  # of a picture along a side: more could not be told apart


def community_order(graph: SimilarityGraph, communities: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes sorted by community, the most connected first in each, and their communities, ascending.

    Both have the shape (n,). `communities` are labels in the order of the graph's rows, by default
    `graph.communities()`; other than one label a node is a `DataError`.
    """
    labels = np.asarray(graph.communities() if communities is None else communities)
    if labels.shape != (len(graph),):
        raise DataError(f"expected {len(graph)} communities, one per node, found shape {labels.shape}")
    degrees = graph.to_scipy().sum(axis=1)
    order = np.lexsort((-degrees, labels))
    return order, labels[order]


def mean_weights(graph: SimilarityGraph, order: np.ndarray, n_cells: int = CELLS) -> tuple[np.ndarray, int]:
    """Return the adjacency in an order of the n nodes, (c, c), averaged over square blocks where n > `n_cells`.

    The second value is the number of nodes along the side of a block, 1 without an average; c = ceil(n / block).
    """
    size = len(graph)
    block = -(-size // n_cells)
    cell_of = np.empty(size, dtype=np.int64)
    cell_of[order] = np.arange(size) // block
    cells = int(cell_of.max()) + 1
    edges = graph.to_scipy().tocoo()
    sums = sp.coo_array((edges.data, (cell_of[edges.row], cell_of[edges.col])), shape=(cells, cells)).toarray()
    counts = np.bincount(cell_of, minlength=cells)
    return sums / np.outer(counts, counts), block


def ceiling(weights: np.ndarray, quantile: float = 0.99) -> float:
    """Return a quantile of the positive weights as the end of a scale: few strong edges must not hide the others."""
    positive = weights[weights > 0]
    return float(np.quantile(positive, quantile)) if positive.size else 1.0


def effective_neighbors(graph: SimilarityGraph) -> np.ndarray:
    r"""Return the effective number of neighbours of every node, the exponential of the entropy of its weights.

    With :math:`p_{ij} = A_{ij} / \sum_j A_{ij}` that is :math:`\exp(-\sum_j p_{ij} \log p_{ij})`: k for k equal
    weights, less where few of them dominate; 0 for a node without edges. The shape is (n,).

    Examples
    --------
    >>> effective_neighbors(SimilarityGraph([[0, 2, 2], [2, 0, 0], [2, 0, 0]], ["a", "b", "c"]))
    array([2., 1., 1.])
    """
    adjacency = graph.to_scipy()
    degrees = np.asarray(adjacency.sum(axis=1))  # (n,)
    rows = np.repeat(np.arange(len(graph)), np.diff(adjacency.indptr))
    shares = adjacency.data / degrees[rows]
    entropy = np.bincount(rows, weights=-shares * np.log(shares), minlength=len(graph))
    return np.where(degrees > 0, np.exp(entropy), 0.0)


def self_edge_share(graph: SimilarityGraph) -> float:
    r"""Return the mean weight of the self-edge in the row softmin that a graph was learned with.

    With :math:`A = (P + P^\top)/2` less its diagonal, and rows of P that sum to 1, the sum of A is
    :math:`m - \mathrm{tr} P`, so the mean of :math:`P_{ii}` is 1 less the sum of A by m. At 1 the energy has
    vanished. Graphs of other adjacencies have no such share.

    Examples
    --------
    >>> self_edge_share(SimilarityGraph([[0, 0.25], [0.25, 0]], ["a", "b"]))
    0.75
    """
    return float(1 - graph.to_scipy().sum() / len(graph))


def community_table(graph: SimilarityGraph, communities: pd.Series | None = None, n_members: int = 5) -> pd.DataFrame:
    """Return one row a community of at least two nodes: size, share of its weight inside, most connected members.

    Parameters
    ----------
    graph : SimilarityGraph
    communities : Series of int, shape (n,), optional
        In the order of the graph's rows; by default `graph.communities()`.
    n_members : int
        Number of members to name, those with the largest total weight of their edges.

    Returns
    -------
    DataFrame
        Columns community, size, inside (weight of edges within it / weight of all edges at its nodes), members
        (a list of ids, the most connected first).

    Examples
    --------
    >>> graph = SimilarityGraph([[0, 1, 0], [1, 0, 4], [0, 4, 0]], ["a", "b", "c"])
    >>> community_table(graph, pd.Series([0, 0, 0]), n_members=2)
       community  size  inside members
    0          0     3     1.0  [b, c]
    """
    order, labels = community_order(graph, communities)
    adjacency = graph.to_scipy()
    rows = []
    for label, size in zip(*np.unique(labels, return_counts=True), strict=True):
        if size < 2:
            continue
        members = order[labels == label]
        chosen = adjacency[members]
        total = chosen.sum()
        inside = float(chosen[:, members].sum() / total) if total else float("nan")
        rows.append((int(label), int(size), inside, graph.ids[members[:n_members]].tolist()))
    return pd.DataFrame(rows, columns=["community", "size", "inside", "members"])
