"""A strip of small pictures: the communities of a graph at steps of its training, every node in its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from air_recsys.evaluation.graph_quality import formation
from air_recsys.graphs import SimilarityGraph
from air_recsys.report.content import communities, matched
from air_recsys.report.edges import strongest
from air_recsys.report.layout import node_positions
from air_recsys.report.markup import Markup, picture, table
from air_recsys.report.plots.axes import new_grid
from air_recsys.report.plots.theme import ink

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_NODES = 3_000
_MOST_EDGES = 100_000
_DRAWN = 500  # nodes
_COLORS = (  # the first of the explorer's
    *("#4878d0", "#df6a1a", "#3b9d65", "#d65f5f", "#9a6fc9", "#1899ab"),
    *("#d465ad", "#a48b1c", "#8a6248", "#6f8f2f", "#5667b8", "#c2566f"),
)
_OTHERS = 0.35  # opacity of nodes in smaller communities


def formation_strip(graphs: Mapping[int, SimilarityGraph], unit: str) -> list[Markup]:
    """Return the pictures of some steps, where there are not too many nodes, and a table of them.

    Parameters
    ----------
    graphs : mapping of int to SimilarityGraph
        The same nodes at two steps of a training or more.
    unit : str
        What a step is: "epoch" or "sweep".
    """
    shown = {step: strongest(graphs[step], _MOST_EDGES) for step in sorted(graphs)}
    last = shown[max(shown)]
    found = formation(shown)
    columns = [unit, "communities", "modularity", "NMI with the last"]
    rows = found.loc[:, ["step", "communities", "modularity", "last"]].itertuples(index=False)
    caption = f"Communities of {last.kind}s through training"
    figures = table(caption, columns, [[str(step), n, round(q, 2), round(nmi, 2)] for step, n, q, nmi in rows])
    if len(last) > MOST_NODES:
        return [figures]
    counts = zip(found["step"], found["communities"], strict=True)
    numbers = ", ".join(f"{count} at {unit} {step}" for step, count in counts)
    drawn = picture(
        formation_figure(shown, unit),
        f"Communities of {last.kind}s: {numbers}.",
        f"How the communities of {last.kind}s form: every {last.kind} in its last place, in the colour of its "
        f"community at that step.{_left_out(last)}",
        wide=True,
    )
    return [drawn, figures]


def _left_out(graph: SimilarityGraph) -> str:
    return f" Drawn: {_DRAWN:,} of {len(graph):,}, at random." if len(graph) > _DRAWN else ""


def formation_figure(graphs: Mapping[int, SimilarityGraph], unit: str) -> Figure:
    """Return the communities of a graph at some steps, every node in its last place; colours stay with communities."""
    last = graphs[max(graphs)]
    positions, reference = node_positions(last), communities(last)
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.permutation(len(last))[:_DRAWN])
    figure, grid = new_grid(1, len(graphs), (2.0, 2.2))
    for axes, (step, graph) in zip(grid[0], graphs.items(), strict=True):
        labels = matched(communities(graph).tolist(), reference.tolist())[chosen]
        for number in np.unique(labels):
            is_named = 0 <= number < len(_COLORS)
            x, y = positions[chosen[labels == number]].T
            look = {"color": _COLORS[number]} if is_named else {"color": ink(), "alpha": _OTHERS}
            axes.scatter(x, y, s=7, linewidths=0, **look)
        axes.set_title(f"{unit} {step}", fontsize="medium")
        axes.margins(0.15)
        axes.set_aspect("equal")
        axes.set_axis_off()
    return figure
