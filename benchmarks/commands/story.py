"""The command ``bench story``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from air_recsys.cli import options, paths
from air_recsys.exceptions import ParameterError


class StorySet(StrEnum):
    """Data whose graphs are kept on the way."""

    CATALOGUE = "catalogue"
    SYN_NETFLIX = "syn-netflix"
    MOVIELENS = "movielens"


def story(
    sets: Annotated[list[StorySet] | None, typer.Option("--set", help="May be repeated. By default all.")] = None,
    data: options.DataFolder = None,
    seeds: Annotated[int, typer.Option(min=0, help="Catalogues that say which groups come first; 0 for none.")] = 5,
    html: Annotated[
        Path | None, typer.Option(callback=paths.writable, help="With one --set: write its graphs as a page.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(callback=paths.writable, help="With one --set: draw the steps of its item graph.")
    ] = None,
    device: options.Device = "auto",
    json_file: options.JsonFile = None,
) -> None:
    """How communities form through a training: how many, how clear, like coarse or like fine groups."""
    from air_recsys.datasets import data_root
    from benchmarks.story import COURSES, bench_levels, draw_course, steps_table, write_page

    chosen = list(dict.fromkeys(sets or StorySet))
    if len(chosen) != 1 and (html is not None or figure is not None):
        raise ParameterError(f"--html and --figure show one set, found {len(chosen)}: give --set")
    tables = []
    for each in chosen:
        course = COURSES[each.value](lambda: data_root(data), device)
        tables.append(steps_table(course))
        if html is not None:
            typer.echo(f"wrote {write_page(course, html)}")
        if figure is not None:
            typer.echo(f"wrote {draw_course(course, figure)}")
    if seeds and StorySet.CATALOGUE in chosen:
        tables += bench_levels(seeds, device)
    options.publish(tables, json_file)
