"""Figures of the two theorems of the paper, drawn from the curves that their measurements return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from air_recsys.report.plots.axes import new_figure
from air_recsys.report.plots.theme import ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLORS = ("tab:blue", "tab:orange", "tab:green")


def plot_theorem1(curves: dict[str, Any]) -> Figure:
    r"""How singular values move: over time, measured against stated, and by size.

    Parameters
    ----------
    curves : dict
        What `benchmarks.paper.theorem1.theorem1` returns: ``times`` (t,), ``singular_values`` and
        ``singular_values_without`` the regularizer (t, r), ``stated`` and ``measured`` derivatives, and ``orders``:
        for every depth ``sigma``, ``data`` (:math:`|\dot\sigma| / |\langle \nabla F, u v^\top \rangle|` with the data
        term alone) and ``regularizer`` (:math:`|\dot\sigma| / \gamma` with the regularizer alone).

    Examples
    --------
    >>> line = {"sigma": [0.1, 1.0], "data": [0.2, 2.0], "regularizer": [0.04, 4.0]}
    >>> curves = {"times": [0, 1], "singular_values": [[1.0], [2.0]], "singular_values_without": [[1.0], [3.0]]}
    >>> figure = plot_theorem1(curves | {"stated": [1.0, -1.0], "measured": [1.0, -1.0], "orders": {"2": line}})
    >>> len(figure.axes)
    3
    """
    figure = new_figure((14, 4.5))
    over_time, against, by_size = figure.subplots(1, 3)
    with_graphs = over_time.plot(curves["times"], curves["singular_values"], color=_COLORS[0])
    without = over_time.plot(curves["times"], curves["singular_values_without"], color=_COLORS[1], linestyle="--")
    over_time.legend([with_graphs[0], without[0]], ["with the regularizer", "without"])
    over_time.set_yscale("log")
    over_time.set(title="Singular values of X, depth 3", xlabel="time", ylabel="singular value")
    stated = np.asarray(curves["stated"])
    ends = [stated.min(), stated.max()]
    against.plot(ends, ends, color=ink(), alpha=0.3)
    against.plot(stated, curves["measured"], ".", color=_COLORS[0])
    for set_scale in (against.set_xscale, against.set_yscale):
        set_scale("symlog", linthresh=1e-2)
    against.set(title="Derivatives of singular values", xlabel="stated", ylabel="measured")
    for color, (depth, order) in zip(_COLORS, curves["orders"].items(), strict=False):
        slopes = (2 - 2 / int(depth), 3 - 2 / int(depth))
        for name, marker, slope in zip(("data", "regularizer"), (".", "x"), slopes, strict=True):
            label = f"L = {depth}, {name}: {slope:.3g}"
            by_size.loglog(order["sigma"], order[name], marker, color=color, markersize=4, label=label)
    by_size.legend(fontsize="small")
    by_size.set(title="Orders of the two parts", xlabel="singular value", ylabel="derivative / force")
    return figure


def plot_theorem2(curves: dict[str, Any]) -> Figure:
    """The weights of a pair between their bounds, the way of L to its limit, the energies and the equal edges.

    Parameters
    ----------
    curves : dict
        What `benchmarks.paper.theorem2.theorem2` returns: ``times`` (t,); ``pairs``, each with its ``distance`` and
        the curves ``share``, ``lower`` and ``upper``; and by adjacency ``error`` (distance of L to its limit relative
        to the start), ``energy`` and ``equal_edges`` (mean weight between equal rows).

    Examples
    --------
    >>> line = {"global_sum": [1.0, 0.1]}
    >>> pair = {"distance": 1.0, "share": [0.5, 0.1], "lower": [0.4, 0.05], "upper": [0.6, 0.2]}
    >>> curves = {"times": [1.0, 10.0], "pairs": [pair], "error": line, "energy": line, "equal_edges": line}
    >>> len(plot_theorem2(curves).axes)
    4
    """
    figure = new_figure((12, 8.5))
    times = np.asarray(curves["times"])
    shares, errors, energies, edges = figure.subplots(2, 2).flat
    for color, pair in zip(_COLORS, curves["pairs"], strict=False):
        shares.fill_between(times, pair["lower"], pair["upper"], color=color, alpha=0.2)
        shares.loglog(times, pair["share"], color=color, label=f"D = {pair['distance']:.3g}")
    shares.legend()
    shares.set(title="p / q between its bounds, global_sum", xlabel="time", ylabel="p / q")
    _by_adjacency(errors, times, curves["error"])
    slowest = min(pair["distance"] for pair in curves["pairs"])
    lowest = min(min(values) for values in curves["error"].values())
    exponential = np.exp(-slowest * times)
    seen = exponential > lowest
    label = f"exp(-D t), D = {slowest:.3g}"
    errors.plot(times[seen], exponential[seen], color=ink(), alpha=0.7, linestyle="--", label=label)
    errors.legend()
    errors.set(title="Way to the limit", xlabel="time", ylabel="|L - L*| / |L(0) - L*|")
    _by_adjacency(energies, times, curves["energy"])
    energies.set(title="Dirichlet energy", xlabel="time", ylabel="energy")
    _by_adjacency(edges, times, curves["equal_edges"])
    edges.set(title="Edges between equal rows", xlabel="time", ylabel="mean weight")
    return figure


def _by_adjacency(axes: Axes, times: np.ndarray, curves: dict[str, Any]) -> None:
    for color, (adjacency, values) in zip(_COLORS, curves.items(), strict=False):
        axes.loglog(times, values, color=color, label=adjacency)
    axes.legend()
