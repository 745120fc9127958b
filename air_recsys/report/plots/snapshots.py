"""The graphs through training: snapshots side by side, and how the regularizer vanishes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from scipy.cluster import hierarchy

from air_recsys.exceptions import DataError, ParameterError
from air_recsys.graphs import SimilarityGraph
from air_recsys.models import Recommender
from air_recsys.report.plots.axes import (
    COLOR_OF,
    bare,
    draw_weights,
    figure_and_axes,
    finish,
    has_swept,
    logarithmic,
    new_grid,
    side_by_side,
)
from air_recsys.report.plots.graphs import community_order, effective_neighbors, mean_weights, self_edge_share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Course = dict[str, dict[int, SimilarityGraph]]  # kind to epoch to graph

_LOW, _HIGH = 0.01, 0.99  # quantiles of the weights where the colours begin and end
_CELLS = 400
_FEW = 300  # communities with an optimal order, whose search is slow for more


def snapshots_of(model: Recommender, kind: str) -> dict[int, SimilarityGraph]:
    """Return the snapshots of the "user" or the "item" graph by epoch; a model without any has none."""
    snapshots = getattr(model, "snapshots_", {})  # baselines keep none
    graphs = {epoch: getattr(snapshots[epoch], f"{kind}_graph") for epoch in sorted(snapshots)}
    return {epoch: graph for epoch, graph in graphs.items() if graph is not None}


def graphs_over_time(model: Recommender) -> Course:
    """Return the graphs of a model by kind and epoch: its snapshots, then the graphs that it kept.

    A graph that was not learned is absent, and so is the last one if `partial_fit` has added nodes that the snapshots
    lack.
    """
    course: Course = {}
    model = copy.copy(model)  # the state of this moment, whatever another thread writes
    for kind in ("user", "item"):
        graphs = snapshots_of(model, kind)
        kept, epoch = getattr(model, f"{kind}_adjacency_", None), getattr(model, "n_iter_", None)
        if kept is not None and epoch is not None and all(len(graph) == kept.shape[0] for graph in graphs.values()):
            graphs[epoch] = SimilarityGraph(kept, getattr(model.interactions_, f"{kind}_ids"), kind)
        if graphs:
            course[kind] = dict(sorted(graphs.items()))
    return course


def plot_snapshots(model: Recommender, epochs: Iterable[int] | None = None) -> Figure:
    """Draw the learned graphs at every snapshot, users above, items below, in one order of the nodes a row.

    The nodes are sorted by the communities of the last graph drawn, and communities that are alike in the first one
    are side by side: large groups appear first, and the images show when they fall apart. Every image has its own
    scale, from the 0.01 quantile of all weights to the 0.99 quantile of the positive ones; scale and mean effective
    number of neighbours are below it.

    Parameters
    ----------
    model : Recommender
        Fitted with `snapshot_epochs`; the graphs that it kept are the last ones.
    epochs : iterable of int, optional
        Epochs to draw; by default all.

    Raises
    ------
    DataError
        For a model without graphs.
    ParameterError
        If there is no snapshot of one of `epochs`.

    Examples
    --------
    >>> from air_recsys import AIR
    >>> model = AIR.for_completion(n_epochs=20, snapshot_epochs=[5], device="cpu", random_state=0).fit(np.eye(6))
    >>> [axes.get_title() for axes in plot_snapshots(model).axes[:2]]
    ['epoch 5', 'epoch 20']
    """
    course = _chosen(_course(model), epochs)
    columns = max(len(graphs) for graphs in course.values())
    figure, grid = new_grid(len(course), columns, (2.3, 2.75))
    for axes, (kind, graphs) in zip(grid, course.items(), strict=True):
        order, n_communities = _from_coarse_to_fine(list(graphs.values()))
        for one in axes:
            bare(one)
        for one, (epoch, graph) in zip(axes, graphs.items(), strict=False):
            _draw(one, graph, order, epoch)
        axes[0].set_ylabel(f"{kind}s, by {n_communities} communities")
    return figure


def plot_effective_neighbors(model: Recommender, ax: Axes | None = None) -> Figure:
    """Draw the mean effective number of neighbours at the snapshots, over the nodes that have any.

    Raises
    ------
    DataError
        For a model without graphs.
    """
    title = "Effective number of neighbours"
    figure, axes = _over_time(model, ax, _mean_neighbors, title, "neighbours (mean of nodes)")
    logarithmic(axes, "y")
    return figure


def plot_self_edges(model: Recommender, ax: Axes | None = None) -> Figure:
    """Draw the mean weight on the self-edges at the snapshots: at 1 the regularizer has vanished.

    Parameters
    ----------
    model : Recommender
        Trained by `Adam` with the adjacency "row_softmin".
    ax : Axes, optional

    Raises
    ------
    DataError
        For a model without such graphs.
    """
    if not has_self_edges(model):
        found = f"a {type(model).__name__} with adjacency={getattr(model, 'adjacency', None)!r}"
        raise DataError(
            f"expected a model trained by Adam with adjacency='row_softmin', which has self-edges, found {found}"
        )
    figure, axes = _over_time(model, ax, self_edge_share, "Weight on the self-edges", "share (mean of nodes)")
    axes.set_ylim(-0.03, 1.03)
    return figure


def plot_vanishing(model: Recommender) -> Figure:
    """Draw side by side how the graphs narrow and the regularizer vanishes.

    The panels are `plot_effective_neighbors` and, where the graphs have self-edges, `plot_self_edges`;
    `air_recsys.report.plots.plot_energy` draws the energies over all epochs.

    Raises
    ------
    DataError
        For a model without graphs.
    """
    plots = [plot_effective_neighbors, plot_self_edges] if has_self_edges(model) else [plot_effective_neighbors]
    return side_by_side(model, plots)


def has_self_edges(model: Recommender) -> bool:
    """Return whether the graphs are trained ones of the row softmin: those of a posterior have no self-edges."""
    return getattr(model, "adjacency", None) == "row_softmin" and not has_swept(model.history_)


def _course(model: Recommender) -> Course:
    course = graphs_over_time(model)
    if not course:
        raise DataError(f"expected a model with learned graphs, found a {type(model).__name__} without")
    return course


def _chosen(course: Course, epochs: Iterable[int] | None) -> Course:
    if epochs is None:
        return course
    wanted = sorted(set(epochs))
    available = sorted({epoch for graphs in course.values() for epoch in graphs})
    if not wanted or not set(wanted) <= set(available):
        raise ParameterError(f"epochs must be of the snapshots {available}, found {wanted}")
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
    draw_weights(axes, weights, f"epoch {epoch}", vmin=low, vmax=high, interpolation="nearest")
    spread = np.nan_to_num(_mean_neighbors(graph))
    axes.set_xlabel(f"scale {low:.2g} to {high:.2g}\n{spread:.3g} effective neighbours", fontsize="small")


def _mean_neighbors(graph: SimilarityGraph) -> float:
    """Return the mean effective number of neighbours of the nodes that have any, NaN where none has."""
    numbers = effective_neighbors(graph)
    return float(numbers[numbers > 0].mean()) if numbers.any() else np.nan


def _scale(weights: np.ndarray) -> tuple[float, float]:
    """Return where the colours begin and end: above 0 for an early graph, whose weights are almost equal."""
    others = weights[~np.eye(len(weights), dtype=bool)]
    positive = others[others > 0]
    if positive.size == 0:
        return 0.0, 1.0
    low, high = float(np.quantile(others, _LOW)), float(np.quantile(positive, _HIGH))
    return (low, high) if high > low else (0.0, high)


def _over_time(
    model: Recommender, ax: Axes | None, measure: Callable[[SimilarityGraph], float], title: str, quantity: str
) -> tuple[Figure, Axes]:
    course = _course(model)
    figure, axes = figure_and_axes(ax)
    for kind, graphs in course.items():
        values = [measure(graph) for graph in graphs.values()]
        style = "-" if kind == "user" else "--"
        axes.plot(list(graphs), values, style, color=COLOR_OF[kind], marker="o", markersize=4, label=f"{kind} graph")
    finish(axes, title, "epoch", quantity)
    return figure, axes
