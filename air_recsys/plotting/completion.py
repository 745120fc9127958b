"""What a model was given, what it completed, and the two graphs that it learned, in one figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from air_recsys.exceptions import DataError
from air_recsys.graphs import SimilarityGraph
from air_recsys.models import Recommender
from air_recsys.plotting.axes import new_figure

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

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DataError
        For a model without graphs, or too large to be drawn as matrices.
    """
    figure = new_figure((11, 9))
    data = model.interactions_
    if model.user_graph_ is None or model.item_graph_ is None:
        raise DataError(f"expected a model with both graphs, found a {type(model).__name__} without")
    if max(data.n_users, data.n_items) > _LARGEST:
        raise DataError(f"expected at most {_LARGEST} users and items, found {data.n_users} and {data.n_items}")
    users, items = _order(model.user_graph_), _order(model.item_graph_)
    given = data.to_dense()[np.ix_(users, items)]
    completed = model.predict(*_all_pairs(data.user_ids[users], data.item_ids[items])).reshape(given.shape)
    axes = figure.subplots(2, 2)
    low, high = float(data.ratings.min()), float(data.ratings.max())
    share = f"{data.density:.0%} of the ratings"
    _matrix(figure, axes[0, 0], given, f"Given: {share}", ("items", "users"), cmap="viridis", vmin=low, vmax=high)
    _matrix(figure, axes[0, 1], completed, "Completed", ("items", "users"), cmap="viridis", vmin=low, vmax=high)
    _graph(figure, axes[1, 0], model.user_graph_, users, "user")
    _graph(figure, axes[1, 1], model.item_graph_, items, "item")
    return figure


def _order(graph: SimilarityGraph) -> np.ndarray:
    return np.argsort(graph.communities().to_numpy(), kind="stable")


def _all_pairs(users: np.ndarray, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(users, items.size), np.tile(items, users.size)


def _graph(figure: Figure, axes: Axes, graph: SimilarityGraph, order: np.ndarray, kind: str) -> None:
    weights = graph.to_scipy().toarray()[np.ix_(order, order)]
    found = graph.communities().nunique()
    title = f"Learned {kind} graph: {found} communities"
    # Few strong edges must not hide the many others.
    ceiling = float(np.quantile(weights[weights > 0], 0.95)) if weights.any() else 1.0
    _matrix(figure, axes, weights, title, (f"{kind}s", f"{kind}s"), cmap="magma_r", vmin=0, vmax=ceiling)


def _matrix(figure: Figure, axes: Axes, values: np.ndarray, title: str, labels: tuple[str, str], **style: Any) -> None:
    image = axes.imshow(values, interpolation="nearest", aspect="auto", **style)
    axes.set_title(title)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    figure.colorbar(image, ax=axes)
