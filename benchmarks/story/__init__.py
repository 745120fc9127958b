"""The story of a training: how communities form in the learned graphs, from large ones to finer ones or not."""

from __future__ import annotations

from air_recsys.evaluation.results import ResultTable
from benchmarks.story.catalogue import make_catalogue
from benchmarks.story.courses import COURSES, Course, of_catalogue
from benchmarks.story.levels import bench_levels
from benchmarks.story.pictures import draw_course, write_page

__all__ = [
    "COURSES",
    "Course",
    "bench_levels",
    "draw_course",
    "make_catalogue",
    "of_catalogue",
    "steps_table",
    "write_page",
]


def steps_table(course: Course) -> ResultTable:
    """Return a row for every step of both graphs of a course."""
    measures = (
        "communities of two nodes or more (Louvain) and their modularity; last: their NMI with those of the trained "
        "graph; the others: NMI with true groups, and for genres the share of communities in which one is "
        "over-represented, p < 0.01, not corrected"
    )
    return ResultTable(f"{course.name}: communities through training", f"{course.protocol}; {measures}", course.rows())
