"""The command bench faults: broken files, killed and signalled trainings, live models, and paths."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from air_recsys.cli import options

if TYPE_CHECKING:
    from air_recsys.evaluation.results import ResultTable


class Part(StrEnum):
    """What `bench faults` breaks."""

    FUZZ = "fuzz"
    FLIPS = "flips"
    KILLS = "kills"
    SIGNALS = "signals"
    LIVE = "live"
    PATHS = "paths"


def faults(
    parts: Annotated[list[Part] | None, typer.Option("--part", help="May be repeated. By default all.")] = None,
    inputs: Annotated[int, typer.Option(min=1, help="Broken files, over all readers.")] = 100_000,
    readers: Annotated[
        list[str] | None, typer.Option("--reader", help="A reader by its name; may be repeated.")
    ] = None,
    flips: Annotated[int, typer.Option(min=1, help="Flipped bits, for each format.")] = 1_000,
    kills: Annotated[int, typer.Option(min=1, help="Trainings to kill, and trainings to send signals to.")] = 50,
    operations: Annotated[int, typer.Option(min=1, help="Reads and writes of a live model.")] = 10_000,
    keep: Annotated[Path, typer.Option(help="Folder for inputs that end in an unexpected error.")] = Path(
        "fuzz-unexpected"
    ),
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Break files, kill and signal trainings, use a model in many threads, and name outputs as inputs.

    The status is 1 where anything is lost: a file that ends in an unexpected error or loads with another content, a
    training that does not end as it would have, an answer of no state of the model, a file that is replaced.
    """
    from benchmarks import faults as workshop

    benches: dict[Part, Callable[[], ResultTable]] = {
        Part.FUZZ: lambda: workshop.bench_fuzz(inputs, seed=seed, names=readers, kept=keep),
        Part.FLIPS: lambda: workshop.bench_flips(flips, seed=seed),
        Part.KILLS: lambda: workshop.bench_kills(kills, seed=seed),
        Part.SIGNALS: lambda: workshop.bench_signals(kills, seed=seed),
        Part.LIVE: lambda: workshop.bench_live(operations, seed=seed),
        Part.PATHS: workshop.bench_paths,
    }
    tables: list[ResultTable] = []
    for part in parts or Part:
        tables.append(benches[part]())
        options.publish(tables, json_file, shown=tables[-1:])
    raise typer.Exit(1 if any(map(workshop.n_faults, tables)) else 0)
