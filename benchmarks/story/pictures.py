"""The page and the picture of a course."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from air_recsys.report import explorer_of
from air_recsys.report.charts import formation_figure
from air_recsys.report.plots.snapshots import graphs_over_time
from benchmarks.story.courses import Course

_N_PICTURES = 5


def write_page(course: Course, path: Path) -> Path:
    """Write the graphs of a course with all of their steps as a page to explore."""
    return explorer_of(course.model, path, course.items, title=course.name)


def draw_course(course: Course, path: Path) -> Path:
    """Draw the communities of the items at some steps, the last one among them."""
    graphs = graphs_over_time(course.model)["item"]
    steps = list(graphs)
    places = np.unique(np.linspace(len(steps) - 1, 0, _N_PICTURES).round().astype(int))
    unit = course.model.solver_.unit
    figure = formation_figure({steps[place]: graphs[steps[place]] for place in places}, unit)
    figure.savefig(path, dpi=110)
    return path
