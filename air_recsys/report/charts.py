"""Charts of a page as inline SVG, in the colours of the page: one row per system, with name and figure as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from air_recsys.report.markup import Markup, element

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
    """Return a chart with a dot a row, its interval as a line, and all rows on one scale.

    Parameters
    ----------
    title : str
        What is drawn, and which direction is good.
    marks : sequence of Mark
        The first is drawn in the colour of links.
    reference : float, optional
        A value that all rows are compared with, a dashed line.
    holds : sequence of float
        Values that the scale reaches to.
    form : str
        The format of the figures.
    bars : bool
        Bars from 0 in place of dots.
    log : bool
        A logarithmic scale, of values above 0.

    Examples
    --------
    >>> chart = dot_chart("RMSE, lower is better", [Mark("AIR", 0.9, 0.8, 1.0), Mark("<b>", 1.1)], reference=0.9)
    >>> chart.count("<svg"), "&lt;b&gt;" in chart
    (2, True)
    """
    dashes = [] if reference is None else [reference]
    reached = [*holds, *dashes, *([0.0] if bars else []), *(end for mark in marks for end in mark.ends)]
    ticks = (_powers if log else _ticks)(min(reached), max(reached))
    place = _scale(min(*reached, *ticks), max(*reached, *ticks), log)
    ground = [*(_line("grid", place(tick)) for tick in ticks), *(_line("reference", place(value)) for value in dashes)]
    rows = []
    for number, mark in enumerate(marks):
        kind = " first" if number == 0 else ""
        drawn = _bar(mark, place, kind) if bars else _dot(mark, place, kind)
        box = {"viewBox": "0 0 100 20", "preserveAspectRatio": "none", "aria-hidden": "true"}
        rows += [
            element("span", mark.name, class_=f"name{kind}"),
            element("span", mark.text(form), class_="figure"),
            element("svg", *ground, *drawn, **box),
        ]
    labels = [element("span", f"{tick:.12g}", style=f"left:{place(tick):.2f}%") for tick in ticks]
    rows.append(element("div", *labels, class_="ticks", **{"aria-hidden": "true"}))
    return element("figure", element("figcaption", title), element("div", *rows, class_="chart"))


def _bar(mark: Mark, place: Callable[[float], float], kind: str) -> list[Markup]:
    return [_line(f"bar{kind}", place(0.0), place(mark.value), 10)]


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
