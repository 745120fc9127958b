"""The graphs through training: snapshots side by side, and how the regularizer vanishes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.cluster import hierarchy

from air_recsys.exceptions import DataError, ParameterError
from air_recsys.graphs import SimilarityGraph
from air_recsys.models import Recommender
from air_recsys.plotting.axes import COLOR_OF, figure_and_axes, light_grid, logarithmic, side_by_side
from air_recsys.plotting.graphs import MAP
from air_recsys.plotting.measures import community_order, effective_neighbors, mean_weights, self_edge_share
from air_recsys.plotting.panels import bare, new_grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Course = dict[str, dict[int, SimilarityGraph]]  # kind to epoch to graph

_LOW, _HIGH = 0.01, 0.99
_CELLS = 400
_FEW = 300  # communities whose order can be chosen with care


def graphs_over_time(model: Recommender) -> Course:
    """Return the graphs of a model by kind and epoch: its snapshots, and at last the graphs that it kept.

    A model that was loaded from a file has lost its snapshots. A graph that was not learned is absent, and so is the
    last one where `partial_fit` has added nodes that the snapshots do not know.

    Examples
    --------
    >>> from air_recsys import AIR
    >>> model = AIR(n_epochs=20, snapshot_epochs=[5], device="cpu", random_state=0).fit(np.eye(6))
    >>> {kind: list(graphs) for kind, graphs in graphs_over_time(model).items()}
    {'user': [5, 20], 'item': [5, 20]}
    """
    course: Course = {}
    snapshots = getattr(model, "snapshots_", {})
    for kind in ("user", "item"):
        graphs = {epoch: getattr(snapshots[epoch], f"{kind}_graph") for epoch in sorted(snapshots)}
        kept, epoch = getattr(model, f"{kind}_graph_", None), getattr(model, "n_iter_", None)
        known = next((len(graph) for graph in graphs.values() if graph is not None), None)
        if kept is not None and epoch is not None and known in (None, len(kept)):
            graphs[epoch] = kept
        found = {epoch: graphs[epoch] for epoch in sorted(graphs) if graphs[epoch] is not None}
        if found:
            course[kind] = found
    return course


def plot_snapshots(model: Recommender, epochs: Iterable[int] | None = None) -> Figure:
    """Draw the learned graphs at every snapshot, users above, items below, in one order of the nodes a row.

    The nodes are sorted by the communities of the last graph drawn, and communities that were alike in the first
    one stand side by side: so one sees large groups first, and from when on they fall apart. Every image has its
    own scale, from the 0.01 quantile of all weights to the 0.99 quantile of the positive ones, which stands below
    it with the mean effective number of neighbours.

    Parameters
    ----------
    model : Recommender
        Fitted with `snapshot_epochs`; the graphs that it kept are the last ones.
    epochs : iterable of int, optional
        Which of them to draw; by default all.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DataError
        For a model without graphs.
    ParameterError
        Where there is no snapshot of one of `epochs`.

    Examples
    --------
    >>> from air_recsys import AIR
    >>> model = AIR(n_epochs=20, snapshot_epochs=[5], device="cpu", random_state=0).fit(np.eye(6))
    >>> [axes.get_title() for axes in plot_snapshots(model).axes[:2]]
    ['epoch 5', 'epoch 20']
    """
    course = _chosen(_course(model), epochs)
    columns = max(len(graphs) for graphs in course.values())
    figure, grid = new_grid(len(course), columns, (2.3, 2.75))
    for axes, (kind, graphs) in zip(grid, course.items(), strict=True):
        order, n_found = _from_coarse_to_fine(list(graphs.values()))
        for one in axes:
            bare(one)
        for one, (epoch, graph) in zip(axes, graphs.items(), strict=False):
            _draw(one, graph, order, epoch)
        axes[0].set_ylabel(f"{kind}s, by {n_found} communities")
    return figure


def plot_effective_neighbors(model: Recommender, ax: Axes | None = None) -> Figure:
    """Draw the mean effective number of neighbours at the snapshots, over the nodes that have any.

    Parameters
    ----------
    model : Recommender
    ax : Axes, optional

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DataError
        For a model without graphs.
    """

    def mean(graph: SimilarityGraph) -> float:
        found = effective_neighbors(graph)
        return float(found[found > 0].mean()) if found.any() else np.nan

    figure = _over_time(model, ax, mean, "Effective number of neighbours", "neighbours (mean of nodes)")
    logarithmic(ax if ax is not None else figure.axes[0], "y")
    return figure


def plot_self_edges(model: Recommender, ax: Axes | None = None) -> Figure:
    """Draw the mean weight on the self-edges at the snapshots: at 1 the regularizer has vanished.

    Parameters
    ----------
    model : Recommender
        With the adjacency "row_softmin".
    ax : Axes, optional

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DataError
        For a model without graphs, or with another adjacency.
    """
    if not _has_self_edges(model):
        raise DataError("expected a model with adjacency='row_softmin': other adjacencies have no self-edges")
    figure = _over_time(model, ax, self_edge_share, "Weight on the self-edges", "share (mean of nodes)")
    (ax if ax is not None else figure.axes[0]).set_ylim(-0.03, 1.03)
    return figure


def plot_vanishing(model: Recommender) -> Figure:
    """Draw side by side how the graphs narrow and the regularizer vanishes.

    The effective number of neighbours and, where the adjacency is the row softmin, the weight on the self-edges at the
    snapshots; `air_recsys.plotting.plot_energy` draws the energies over all epochs.

    Parameters
    ----------
    model : Recommender

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DataError
        For a model without graphs.
    """
    _course(model)
    shown = [plot_effective_neighbors, plot_self_edges] if _has_self_edges(model) else [plot_effective_neighbors]
    figure, grid = side_by_side(len(shown))
    for axes, plot in zip(grid, shown, strict=True):
        plot(model, axes)
    return figure


def _has_self_edges(model: Recommender) -> bool:
    return getattr(model, "adjacency", None) == "row_softmin"


def _course(model: Recommender) -> Course:
    course = graphs_over_time(model)
    if not course:
        raise DataError(f"expected a model with learned graphs, found a {type(model).__name__} without")
    return course


def _chosen(course: Course, epochs: Iterable[int] | None) -> Course:
    if epochs is None:
        return course
    wanted = sorted(set(epochs))
    known = sorted({epoch for graphs in course.values() for epoch in graphs})
    if not wanted or not set(wanted) <= set(known):
        raise ParameterError(f"epochs must be of the snapshots {known}, found {wanted}")
    return {kind: {epoch: graphs[epoch] for epoch in wanted if epoch in graphs} for kind, graphs in course.items()}


def _from_coarse_to_fine(graphs: list[SimilarityGraph]) -> tuple[np.ndarray, int]:
    """Sort the nodes by community of the last graph, the communities by how alike they are in the first one."""
    order, labels = community_order(graphs[-1])
    names, starts = np.unique(labels, return_index=True)
    if names.size < 3:
        return order, names.size
    counts = np.diff(np.append(starts, order.size))
    member = np.repeat(np.arange(names.size), counts)
    means = sp.csr_array((1 / counts[member], (member, order)), shape=(names.size, order.size))
    profiles = (means @ graphs[0].to_scipy() @ means.T).toarray()  # (communities, communities)
    tree = hierarchy.linkage(profiles, "average", optimal_ordering=names.size <= _FEW)
    groups = np.split(order, starts[1:])
    return np.concatenate([groups[leaf] for leaf in hierarchy.leaves_list(tree)]), names.size


def _draw(axes: Axes, graph: SimilarityGraph, order: np.ndarray, epoch: int) -> None:
    weights, _ = mean_weights(graph, order, _CELLS)
    low, high = _scale(weights)
    axes.imshow(weights, cmap=MAP, vmin=low, vmax=high, interpolation="nearest")
    axes.set_title(f"epoch {epoch}", fontsize="medium")
    spread = effective_neighbors(graph)
    spread = spread[spread > 0].mean() if spread.any() else 0.0
    axes.set_xlabel(f"scale {low:.2g} to {high:.2g}\n{spread:.3g} effective neighbours", fontsize="small")
    axes.spines[:].set(visible=True, color="0.7", linewidth=0.6)


def _scale(weights: np.ndarray) -> tuple[float, float]:
    """Return where the colours begin and end; an early graph is almost uniform, and its differences shall be seen."""
    others = weights[~np.eye(len(weights), dtype=bool)]
    positive = others[others > 0]
    if positive.size == 0:
        return 0.0, 1.0
    low, high = float(np.quantile(others, _LOW)), float(np.quantile(positive, _HIGH))
    return (low, high) if high > low else (0.0, high)


def _over_time(model: Recommender, ax: Axes | None, measure: Any, title: str, quantity: str) -> Figure:
    course = _course(model)
    figure, axes = figure_and_axes(ax)
    for kind, graphs in course.items():
        values = [measure(graph) for graph in graphs.values()]
        style = "-" if kind == "user" else "--"
        axes.plot(list(graphs), values, style, color=COLOR_OF[kind], marker="o", markersize=4, label=f"{kind} graph")
    axes.set(title=title, xlabel="epoch", ylabel=quantity)
    light_grid(axes)
    axes.legend(frameon=False, fontsize="small")
    return figure
