"""The command that measures lists of items."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from air_recsys.cli import options

if TYPE_CHECKING:
    from air_recsys.results import ResultTable


class RankingData(StrEnum):
    """Interactions with fixed splits."""

    GOWALLA = "gowalla"
    YELP2018 = "yelp2018"
    ML_1M = "ml-1m"


def ranking(
    sets: Annotated[list[RankingData] | None, typer.Option("--set", help="May be repeated. By default all.")] = None,
    names: Annotated[
        list[str] | None,
        typer.Option("--system", help="May be repeated. By default all, EASE on MovieLens alone: it takes memory."),
    ] = None,
    validation: Annotated[
        bool, typer.Option("--validation", help="Test on a part of the training data; the test part is left out.")
    ] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--ranker", metavar="NAME=VALUE", help="A parameter of GraphRanker.")
    ] = None,
    data: options.DataFolder = None,
    seed: options.Seed = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads of every system.")] = 1,
    json_file: options.JsonFile = None,
) -> None:
    """Recall and NDCG of GraphRanker beside implicit's models in one run, and beside published figures."""
    from air_recsys.benchmarks.accuracy.ranking import bench_ranking
    from air_recsys.benchmarks.accuracy.ranking_data import RANKING_SETS, validation_part
    from air_recsys.benchmarks.accuracy.ranking_systems import ranking_systems, systems_by_default
    from air_recsys.benchmarks.accuracy.ratings_systems import chosen_systems
    from air_recsys.datasets import data_root
    from air_recsys.models.ranking.ranker import GraphRanker

    options.check_folder_of(json_file)
    changes = options.parse_settings(settings, GraphRanker())
    measured = {
        name: chosen_systems(ranking_systems(name, changes, seed, threads), names or systems_by_default(name))
        for name in [each.value for each in sets or RankingData]
    }
    root = data_root(data)
    reports: list[ResultTable] = []
    for name, systems in measured.items():
        fold = RANKING_SETS[name].load(root)
        part = validation_part(fold, seed) if validation else fold
        found = bench_ranking(name, part, systems, seed=seed, threads=threads)
        given = {"--set": [name], "--system": names, "--ranker": settings}
        found.notes.insert(0, options.benchmark_command("ranking", given, {"--validation": validation}, seed))
        reports.append(found)
        options.show_last(reports, json_file)
