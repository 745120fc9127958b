"""The command bench faults: what becomes of broken files."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from air_recsys.benchmarks.faults import bench_fuzz
from air_recsys.benchmarks.faults.fuzz import unexpected
from air_recsys.cli import options


class Part(StrEnum):
    """What `bench faults` breaks."""

    FUZZ = "fuzz"


def faults(
    parts: Annotated[list[Part] | None, typer.Option("--part", help="May be repeated. By default all.")] = None,
    inputs: Annotated[int, typer.Option(min=1, help="Broken files, over all readers.")] = 100_000,
    readers: Annotated[
        list[str] | None, typer.Option("--reader", help="A reader by its name; may be repeated.")
    ] = None,
    keep: Annotated[Path, typer.Option(help="Folder for inputs that end in an error of no kind of ours.")] = Path(
        "fuzz-unexpected"
    ),
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Read broken and hostile files of every format; the status is 1 where one ends in an unexpected error."""
    options.check_folder_of(json_file)
    assert set(parts or Part) == {Part.FUZZ}
    report = bench_fuzz(inputs, seed=seed, names=readers, kept=keep)
    options.show(report)
    options.write_reports([report], json_file)
    raise typer.Exit(1 if unexpected(report) else 0)
