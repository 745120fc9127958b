"""The command bench faults: what becomes of broken files, and of trainings that are killed."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from air_recsys.cli import options


class Part(StrEnum):
    """What `bench faults` breaks."""

    FUZZ = "fuzz"
    KILLS = "kills"


def faults(
    parts: Annotated[list[Part] | None, typer.Option("--part", help="May be repeated. By default all.")] = None,
    inputs: Annotated[int, typer.Option(min=1, help="Broken files, over all readers.")] = 100_000,
    readers: Annotated[
        list[str] | None, typer.Option("--reader", help="A reader by its name; may be repeated.")
    ] = None,
    kills: Annotated[int, typer.Option(min=1, help="Trainings to kill.")] = 50,
    keep: Annotated[Path, typer.Option(help="Folder for inputs that end in an error of no kind of ours.")] = Path(
        "fuzz-unexpected"
    ),
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Read broken and hostile files of every format, and kill trainings that then go on.

    The status is 1 where a file ends in an unexpected error, or where a training does not end as it would have.
    """
    from air_recsys.benchmarks.faults import bench_fuzz, bench_kills
    from air_recsys.benchmarks.faults.fuzz import unexpected
    from air_recsys.benchmarks.faults.kills import lost

    reports, faults = [], 0
    if Part.FUZZ in (parts or Part):
        reports.append(bench_fuzz(inputs, seed=seed, names=readers, kept=keep))
        faults += unexpected(reports[-1])
        options.publish(reports, json_file, shown=reports[-1:])
    if Part.KILLS in (parts or Part):
        reports.append(bench_kills(kills, seed=seed))
        faults += lost(reports[-1])
        options.publish(reports, json_file, shown=reports[-1:])
    raise typer.Exit(1 if faults else 0)
