"""Commands that time the library: bench speed, scale, scale-likes, scale-dti, reading and ranks."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from air_recsys.cli import options, paths
from air_recsys.exceptions import ParameterError

if TYPE_CHECKING:
    from air_recsys.evaluation.results import ResultTable


def _drawable(context: typer.Context, parameter: typer.CallbackParam, value: Path | None) -> Path | None:
    """Return the file of a figure; raise before any work where it could not be drawn."""
    from air_recsys.storage.validation import check_choice, import_extra

    if value is not None:
        check_choice("the suffix of --figure", value.suffix, (".png", ".pdf", ".svg"))
        import_extra("matplotlib", "viz")
    return paths.writable(context, parameter, value)


Threads = Annotated[int, typer.Option(min=1, help="Threads of every contender.")]
Figure = Annotated[
    Path | None, typer.Option("--figure", callback=_drawable, help="Also draw to this PNG, PDF or SVG file.")
]


class SolverName(StrEnum):
    """What trains in `bench scale` and `bench explanations`."""

    VARIATIONAL = "variational"
    LANGEVIN = "langevin"
    ADAM = "adam"


class Part(StrEnum):
    """What `bench speed` times."""

    WIDTH = "full-width"
    ACCURACY = "accuracy"
    RATINGS = "ratings"
    STEP = "ratings-step"
    SWEEP = "sweep"


class FileFormat(StrEnum):
    """What `bench reading` reads."""

    PARQUET = "parquet"
    CSV = "csv"


def speed(
    parts: Annotated[list[Part] | None, typer.Option("--part", help="May be repeated. By default all.")] = None,
    data: options.DataFolder = None,
    settings: Annotated[list[str] | None, options.pairs("--set", "For AIR on ratings; may be repeated.")] = None,
    completion: Annotated[list[str] | None, options.pairs("--completion", "For AIR on the picture; the same.")] = None,
    threads: Threads = 1,
    json_file: options.JsonFile = None,
    figure: Figure = None,
) -> None:
    """Time of a step, of an accuracy, and of MovieLens-1M, against plain autograd, the machine and other libraries."""
    from air_recsys.datasets import data_root
    from benchmarks.plots.speed import plot_error_over_time

    chosen = parts or list(Part)
    if figure is not None and Part.RATINGS not in chosen:
        raise ParameterError(f"--figure draws the part {Part.RATINGS.value}, found {[part.value for part in chosen]}")
    given = options.parse_settings(settings)
    exact = options.parse_settings(completion)
    root = None if chosen == [Part.WIDTH] else data_root(data)
    reports: list[ResultTable] = []
    for part in chosen:
        times, *curves = _measured(part, root, given, exact, threads)
        reports += [times, *curves]
        options.publish(reports, json_file, shown=[times])  # curves are for the file
        if figure is not None and part is Part.RATINGS:
            plot_error_over_time(times.rows, curves[0].rows).savefig(figure)


def _measured(
    part: Part, root: Path | None, given: dict[str, Any], exact: dict[str, Any], threads: int
) -> Sequence[ResultTable]:
    from benchmarks.speed import (
        SPLIT,
        bench_accuracy,
        bench_full_width,
        bench_ratings,
        bench_ratings_step,
        bench_sweep,
        contenders,
        movielens_split,
    )

    if part is Part.WIDTH:
        return [bench_full_width(threads=threads)]
    assert root is not None  # all other parts need data
    load = partial(movielens_split, root)
    if part is Part.ACCURACY:
        return [bench_accuracy(root, exact, threads=threads)]
    if part is Part.SWEEP:
        return [bench_sweep(load, given, title=SPLIT, threads=threads)]
    if part is Part.STEP:
        return [bench_ratings_step(load, _OF_STEPS | given, title=SPLIT, threads=threads)]
    return bench_ratings(load, contenders(given, threads), title=SPLIT, threads=threads)


def scale(
    users: Annotated[int, typer.Option(min=2, help="Users.")] = 162_000,
    items: Annotated[int, typer.Option(min=2, help="Items.")] = 59_000,
    ratings: Annotated[int, typer.Option(min=2, help="Ratings, in sweeps of other sizes.")] = 3_000_000,
    factors: Annotated[int, typer.Option(min=1, help="Width of the factors.")] = 40,
    neighbors: Annotated[int, typer.Option(min=1, help="Edges per node.")] = 20,
    sweep: Annotated[
        list[str] | None,
        typer.Option("--sweep", metavar="NAME=N,N,...", help="Sizes to vary, such as n_ratings=1000000,3000000."),
    ] = None,
    train: Annotated[int, typer.Option(min=0, help="Ratings of a full training; 0 leaves it out.")] = 25_000_000,
    solver: Annotated[SolverName, typer.Option(help="Solver; the preset has variational.")] = SolverName.VARIATIONAL,
    settings: options.Settings = None,
    seed: options.Seed = 0,
    threads: Threads = 1,
    json_file: options.JsonFile = None,
    figure: Figure = None,
) -> None:
    """How time and memory grow on planted ratings, and whether a full training finds the planted groups."""
    from benchmarks.plots.speed import plot_growth
    from benchmarks.scale import Size, bench_growth, bench_planted, sizes_of

    base, chosen = (
        Size(ratings, users, items, factors, neighbors),
        {"solver": solver.value} | options.parse_settings(settings),
    )
    points = sizes_of(base, _sweeps(sweep if sweep is not None else _BY_DEFAULT))
    growth = bench_growth(points, chosen, seed=seed, threads=threads)
    options.publish(growth, json_file)
    if figure is not None:
        plot_growth(growth[0].rows, growth[1].rows).savefig(figure)
    if train:
        planted = bench_planted(base._replace(n_ratings=train), chosen, seed=seed, threads=threads)
        options.publish((*growth, *planted), json_file, shown=planted)


def scale_likes(
    users: Annotated[int, typer.Option(min=2, help="Users.")] = 1_000_000,
    items: Annotated[int, typer.Option(min=21, help="Items.")] = 100_000,
    likes: Annotated[int, typer.Option(min=2, help="Approximate number of likes.")] = 50_000_000,
    shares: Annotated[
        list[float] | None,
        typer.Option(
            "--share", min=0.0, max=1.0, help="Share of users and likes; may be repeated. By default 0.1 and 1."
        ),
    ] = None,
    settings: Annotated[list[str] | None, options.pairs("--set", "A parameter of AIR.for_likes.")] = None,
    seed: options.Seed = 0,
    threads: Threads = 2,
    json_file: options.JsonFile = None,
) -> None:
    """How time and memory of AIR.for_likes and of the lists of all users grow on planted likes."""
    from air_recsys.models import AIR
    from benchmarks.scale import LikesSize, bench_likes

    changes = options.parse_settings(settings, AIR.for_likes())
    size = LikesSize(users, items, likes)
    options.publish(bench_likes(size, shares or (0.1, 1.0), changes, seed=seed, threads=threads), json_file)


def scale_dti(
    drugs: Annotated[int, typer.Option(min=2, help="Drugs.")] = 10_000,
    targets: Annotated[int, typer.Option(min=2, help="Targets.")] = 5000,
    interactions: Annotated[int, typer.Option(min=2, help="Approximate number of interactions.")] = 250_000,
    shares: Annotated[
        list[float] | None,
        typer.Option(
            "--share", min=0.0, max=1.0, help="Share of drugs and interactions; may be repeated. By default 1."
        ),
    ] = None,
    lists: Annotated[bool, typer.Option("--lists", help="Also time the first list with probabilities.")] = False,
    settings: Annotated[list[str] | None, options.pairs("--set", "A parameter of DrugTargetAIR.")] = None,
    seed: options.Seed = 0,
    threads: Threads = 2,
    json_file: options.JsonFile = None,
) -> None:
    """Time and memory of DrugTargetAIR on planted interactions, all other pairs zeros."""
    from air_recsys.dti import DrugTargetAIR
    from benchmarks.scale import LikesSize, bench_drug_targets

    changes = options.parse_settings(settings, DrugTargetAIR())
    sizes = [LikesSize(drugs, targets, interactions).times(share) for share in shares or (1.0,)]
    options.publish([bench_drug_targets(sizes, changes, lists=lists, seed=seed, threads=threads)], json_file)


def reading(
    rows: Annotated[int, typer.Option(min=1, max=10**9, help="Number of generated ratings.")] = 3_000_000,
    formats: Annotated[
        list[FileFormat] | None, typer.Option("--format", help="May be repeated. By default both.")
    ] = None,
    json_file: options.JsonFile = None,
) -> None:
    """Rows a second and memory of reading ratings from Parquet and from CSV, in a temporary folder."""
    from benchmarks.reading import bench_reading

    options.publish([bench_reading(rows, [each.value for each in formats or FileFormat])], json_file)


def ranks(
    n_ranks: Annotated[
        list[int] | None,
        typer.Option("--ranks", min=2, help="Number of ranks beside one; may be repeated. By default 2."),
    ] = None,
    data: options.DataFolder = None,
    ratings: Annotated[
        int | None, typer.Option(min=2, help="Use this number of planted ratings instead of MovieLens-1M.")
    ] = None,
    users: Annotated[int, typer.Option(min=2, help="Users of planted ratings.")] = 6040,
    items: Annotated[int, typer.Option(min=2, help="Items of planted ratings.")] = 3706,
    settings: options.Settings = None,
    repeats: Annotated[int, typer.Option(min=1, help="Trainings on each number of ranks; the median counts.")] = 3,
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """How much faster several processes train one model than one does, and whether they find the same."""
    from air_recsys.datasets import data_root
    from benchmarks.ranks import bench_ranks, planted_split
    from benchmarks.speed import SPLIT, movielens_split

    given = options.parse_settings(settings)
    if ratings is None:
        load, title = partial(movielens_split, data_root(data)), SPLIT
    else:
        load = partial(planted_split, users, items, ratings, seed)
        title = f"{ratings} planted ratings of {users} users and {items} items, a random tenth held out"
    report = bench_ranks(load, given, title=title, n_ranks=n_ranks or (2,), repeats=repeats, seed=seed)
    options.publish([report], json_file)


_OF_STEPS = {"solver": "adam", "graph_neighbors": 50}
_BY_DEFAULT = [
    "n_ratings=1000000,3000000,10000000,25000000",
    "n_users=20000,60000,162000",
    "n_factors=10,20,40,80",
    "graph_neighbors=10,20,50",
]


def _sweeps(texts: list[str]) -> dict[str, list[int]]:
    sweeps = {}
    for text in texts:
        name, _, values = text.partition("=")
        try:
            sweeps[name] = [int(value) for value in values.split(",")]
        except ValueError:
            raise ParameterError(f"--sweep expects NAME=N,N,... with whole numbers, found {text!r}") from None
    return sweeps
