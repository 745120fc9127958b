"""Charts of a page as inline SVG, in the colours of the page: one row per system, with name and figure as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from air_recsys.evaluation.graph_quality import formation
from air_recsys.graphs import SimilarityGraph
from air_recsys.report.content import communities, matched, strongest
from air_recsys.report.document import Markup, element, picture, table
from air_recsys.report.layout import node_positions
from air_recsys.report.plots.axes import new_figure, new_grid
from air_recsys.report.plots.theme import ink

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_MARGIN = 0.04  # of the width, free on both sides
_MOST_TICKS = 5


class Mark(NamedTuple):
    """A row of a chart: a value, and its interval where it has one."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None

    def text(self, form: str) -> str:
        """Return the value with its interval, in a format such as ``.3f``."""
        within = "" if self.low is None or self.high is None else f" [{self.low:{form}}, {self.high:{form}}]"
        return f"{self.value:{form}}{within}"

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest number of the row."""
        numbers = [number for number in self[1:] if number is not None]
        return min(numbers), max(numbers)


def dot_chart(
    title: str,
    marks: Sequence[Mark],
    *,
    reference: float | None = None,
    holds: Sequence[float] = (),
    form: str = ".3f",
    bars: bool = False,
    log: bool = False,
) -> Markup:
    """Return a chart with a dot a row, its interval as a line, and all rows on one scale."""
    dashes = [] if reference is None else [reference]
    reached = [*holds, *dashes, *([0.0] if bars else []), *(end for mark in marks for end in mark.ends)]
    ticks = (_powers if log else _ticks)(min(reached), max(reached))
    place = _scale(min(*reached, *ticks), max(*reached, *ticks), log)
    ground = [*(_line("grid", place(tick)) for tick in ticks), *(_line("reference", place(value)) for value in dashes)]
    rows = []
    for number, mark in enumerate(marks):
        kind = " first" if number == 0 else ""
        bar = [_line(f"bar{kind}", place(0.0), place(mark.value), 10)] if bars else []
        drawn = bar or _dot(mark, place, kind)
        box = {"viewBox": "0 0 100 20", "preserveAspectRatio": "none", "aria-hidden": "true"}
        rows += [
            element("span", mark.name, class_=f"name{kind}"),
            element("span", mark.text(form), class_="figure"),
            element("svg", *ground, *drawn, **box),
        ]
    labels = [element("span", f"{tick:.12g}", style=f"left:{place(tick):.2f}%") for tick in ticks]
    rows.append(element("div", *labels, class_="ticks", **{"aria-hidden": "true"}))
    return element("figure", element("figcaption", title), element("div", *rows, class_="chart"))


def _dot(mark: Mark, place: Callable[[float], float], kind: str) -> list[Markup]:
    low, high = mark.ends
    within = [_line(f"range{kind}", place(low), place(high), 10)] if high > low else []
    return [*within, _line(f"dot{kind}", place(mark.value), place(mark.value), 10)]


def _line(kind: str, start: float, end: float | None = None, height: float | None = None) -> Markup:
    """Return a line over the whole height, or from one place to another at a height."""
    top, bottom = (0, 20) if height is None else (height, height)
    ends = {"x1": f"{start:.3f}", "x2": f"{start if end is None else end:.3f}", "y1": top, "y2": bottom}
    return element("line", class_=kind, **ends)


def _scale(low: float, high: float, log: bool) -> Callable[[float], float]:
    """Return what turns a value into a place in per cent of the width."""
    turned: Callable[[float], float] = math.log10 if log else float
    start, width = turned(low), turned(high) - turned(low)

    def place(value: float) -> float:
        share = (turned(value) - start) / width if width else 0.5
        return 100 * (_MARGIN + (1 - 2 * _MARGIN) * share)

    return place


def _ticks(low: float, high: float) -> list[float]:
    """Return round values within a range.

    Examples
    --------
    >>> _ticks(0.88, 0.97), _ticks(3.0, 3.0)
    ([0.88, 0.9, 0.92, 0.94, 0.96], [3.0])
    """
    if high <= low:
        return [low]
    rough = (high - low) / _MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in (1, 2, 5, 10) if power * each >= rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def _powers(low: float, high: float) -> list[float]:
    """Return the powers of ten around a range, at most five of them.

    Examples
    --------
    >>> _powers(0.03, 4.0)
    [0.01, 0.1, 1.0, 10.0]
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    step = max(1, math.ceil((last - first) / (_MOST_TICKS - 1)))
    return [10.0**power for power in range(first, max(last, first + 1) + step, step)]


MOST_NODES = 3_000
_MOST_EDGES = 100_000
_DRAWN = 500  # nodes
_COLORS = (  # the first of the explorer's
    *("#4878d0", "#df6a1a", "#3b9d65", "#d65f5f", "#9a6fc9", "#1899ab"),
    *("#d465ad", "#a48b1c", "#8a6248", "#6f8f2f", "#5667b8", "#c2566f"),
)
_OTHERS = 0.35  # opacity of nodes in smaller communities


def formation_strip(graphs: Mapping[int, SimilarityGraph], unit: str) -> list[Markup]:
    """Return the pictures of some steps, where there are not too many nodes, and a table of them."""
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
    left_out = f" Drawn: {_DRAWN:,} of {len(last):,}, at random." if len(last) > _DRAWN else ""
    drawn = picture(
        formation_figure(shown, unit),
        f"Communities of {last.kind}s: {numbers}.",
        f"How the communities of {last.kind}s form: every {last.kind} in its last place, in the colour of its "
        f"community at that step.{left_out}",
        wide=True,
    )
    return [drawn, figures]


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


SIZE = (3.9, 3.0)  # inches


def panel(plot: Callable[..., Figure], *source: Any, size: tuple[float, float] = SIZE, **options: Any) -> Figure:
    """Return a figure with one panel and no title of its own: the page has a caption below it."""
    figure = new_figure(size)
    axes = figure.subplots()
    plot(*source, ax=axes, **options)
    axes.set_title("")
    return figure
