"""Pictures of a similarity graph: heatmap by communities, neighbours, weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from air_recsys.graphs import SimilarityGraph
from air_recsys.report.plots.axes import BLUE, COLOR_OF, figure_and_axes, finish, light_grid, logarithmic
from air_recsys.report.plots.measures import ceiling, community_order, effective_neighbors, mean_weights
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
