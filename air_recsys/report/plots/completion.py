"""One figure of the ratings that a model was given, those that it completed, and its two graphs."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from air_recsys.exceptions import DataError
from air_recsys.graphs import SimilarityGraph
from air_recsys.models import Recommender
from air_recsys.report.plots.axes import new_figure
from air_recsys.report.plots.measures import ceiling
from air_recsys.report.plots.theme import weight_colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LARGEST = 2_000


def plot_completion(model: Recommender) -> Figure:
    """Draw the ratings given, the ratings completed, and both graphs, all sorted by the graphs' communities.

    Parameters
    ----------
    model : Recommender
        Fitted, with both graphs and at most 2,000 users and items.

    Raises
    ------
    DataError
        For a model without graphs, or too large to be drawn as matrices.
    """
    figure, model = new_figure((11, 9)), copy.copy(model)  # the state of this moment, whatever another thread writes
    data = model.interactions_
    if model.user_graph_ is None or model.item_graph_ is None:
        raise DataError(f"expected a model with both graphs, found a {type(model).__name__} without")
    if max(data.n_users, data.n_items) > _LARGEST:
        raise DataError(f"expected at most {_LARGEST} users and items, found {data.n_users} and {data.n_items}")
    users, items = _order(model.user_graph_), _order(model.item_graph_)
    given = data.to_dense()[np.ix_(users, items)]
    pairs = np.repeat(data.user_ids[users], items.size), np.tile(data.item_ids[items], users.size)
    completed = model.predict(*pairs).reshape(given.shape)
    axes = figure.subplots(2, 2)
    style = {"cmap": "viridis", "vmin": float(data.ratings.min()), "vmax": float(data.ratings.max())}
    titles = f"Given: {data.density:.0%} of the ratings", "Completed"
    for panel, values, title in zip(axes[0], (given, completed), titles, strict=True):
        _matrix(figure, panel, values, title, ("items", "users"), **style)
    _graph(figure, axes[1, 0], model.user_graph_, users, "user")
    _graph(figure, axes[1, 1], model.item_graph_, items, "item")
    return figure


def _order(graph: SimilarityGraph) -> np.ndarray:
    return np.argsort(graph.communities().to_numpy(), kind="stable")


def _graph(figure: Figure, axes: Axes, graph: SimilarityGraph, order: np.ndarray, kind: str) -> None:
    weights = graph.to_scipy().toarray()[np.ix_(order, order)]
    title = f"Learned {kind} graph: {graph.communities().nunique()} communities"
    style = {"cmap": weight_colors(), "vmin": 0, "vmax": ceiling(weights, 0.95)}
    _matrix(figure, axes, weights, title, (f"{kind}s", f"{kind}s"), **style)


def _matrix(figure: Figure, axes: Axes, values: np.ndarray, title: str, labels: tuple[str, str], **style: Any) -> None:
    image = axes.imshow(values, interpolation="nearest", aspect="auto", **style)
    axes.set(title=title, xlabel=labels[0], ylabel=labels[1])
    figure.colorbar(image, ax=axes)
