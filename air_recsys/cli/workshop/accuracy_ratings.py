"""The command that measures the error on ratings."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from air_recsys.cli import options
from air_recsys.exceptions import ParameterError

if TYPE_CHECKING:
    from air_recsys.benchmarks.accuracy.ratings_systems import System
    from air_recsys.results import ResultTable


class RatingData(StrEnum):
    """Rating data with fixed splits."""

    ML_100K = "ml-100k"
    ML_1M = "ml-1m"
    DOUBAN = "douban"
    FLIXSTER = "flixster"


def ratings(
    sets: Annotated[list[RatingData] | None, typer.Option("--set", help="May be repeated. By default all.")] = None,
    names: Annotated[
        list[str] | None, typer.Option("--system", help="Such as AIR; may be repeated. By default all.")
    ] = None,
    fold: Annotated[
        list[str] | None, typer.Option(help="A fold, such as u1; may be repeated. By default all.")
    ] = None,
    validation: Annotated[
        bool, typer.Option("--validation", help="Test on parts of the training data; the test parts are left out.")
    ] = False,
    ablation: Annotated[
        bool, typer.Option("--ablation", help="AIR with its parts changed one at a time, with --validation.")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--air", metavar="NAME=VALUE", help="A parameter of AIR, for the systems that read it; may be repeated."
        ),
    ] = None,
    data: options.DataFolder = None,
    seed: options.Seed = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads of every system.")] = 1,
    json_file: options.JsonFile = None,
) -> None:
    """Error on test ratings of AIR beside Surprise and myFM in one run, and beside published figures."""
    from air_recsys.benchmarks.accuracy.ratings import bench_ratings
    from air_recsys.benchmarks.accuracy.ratings_data import RATING_SETS, chosen_folds, validation_fold
    from air_recsys.benchmarks.accuracy.ratings_systems import (
        ABLATIONS,
        air_systems,
        check_changes,
        chosen_systems,
        rating_systems,
    )
    from air_recsys.datasets import data_root

    options.check_folder_of(json_file)
    if ablation and not validation:
        raise ParameterError("--ablation compares settings, which no test part is for: expected --validation with it")
    changes, chosen = options.parse_settings(settings), [each.value for each in sets or RatingData]

    def systems_of(name: str) -> dict[str, System]:
        known = air_systems(ABLATIONS, changes, seed) if ablation else rating_systems(name, changes, seed)
        systems = chosen_systems(known, names or [])
        check_changes(systems, changes)
        return systems

    systems = {name: systems_of(name) for name in chosen}
    root = data_root(data)
    folds = {name: chosen_folds(RATING_SETS[name].load(root), fold or []) for name in chosen}
    reports: list[ResultTable] = []
    for name in chosen:
        parts = [validation_fold(each, seed) for each in folds[name]] if validation else folds[name]
        found = bench_ratings(name, parts, systems[name], validation=validation, seed=seed, threads=threads)
        given = {"--set": [name], "--system": names, "--fold": fold, "--air": settings}
        flags = {"--validation": validation, "--ablation": ablation}
        found.notes.insert(0, options.benchmark_command("ratings", given, flags, seed))
        reports.append(found)
        options.show_last(reports, json_file)
