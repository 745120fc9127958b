"""The command compare: AIR, baselines and models of installed libraries side by side on your own data."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from air_recsys.cli import options, paths

if TYPE_CHECKING:
    from air_recsys.evaluation.system import System


class Held(StrEnum):
    """What is held out."""

    RANDOM = "random"
    TIME = "time"
    LAST = "last"


def compare(
    file: Annotated[Path, typer.Argument(help="CSV, TSV or Parquet with the ratings; with --test the training part.")],
    *,
    models: Annotated[
        str | None,
        typer.Option(
            help='Names, separated by commas, such as "AIR,Biases,Surprise SVD", or all. All are tested against the '
            "first."
        ),
    ] = None,
    others: options.Others = None,
    test: Annotated[
        Path | None, typer.Option(help="File of test ratings, instead of a part that is held out.")
    ] = None,
    split: Annotated[
        Held | None,
        typer.Option(
            help="random holds out a share of all ratings, of likes of each user's; time the latest share, last the "
            "last one of each user, or with --test-fraction the latest share of each user's. By default random."
        ),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Cross-validate in this number of random folds instead.")
    ] = None,
    test_fraction: Annotated[
        float | None, typer.Option(help="Share to hold out, by default 0.1, with --ranking 0.2.")
    ] = None,
    ranking: Annotated[
        bool, typer.Option("--ranking", help="Treat all rows as likes, and compare only lists; no ratings are read.")
    ] = False,
    k: Annotated[int, typer.Option("--k", min=1, help="Length of the lists, at most the number of items.")] = 10,
    relevant: Annotated[
        float | None,
        typer.Option(help="Least test rating of a relevant item for lists, by default the mean of all ratings."),
    ] = None,
    users: Annotated[
        int, typer.Option(min=1, help="Maximum number of users whose lists are compared, drawn at random.")
    ] = 1000,
    timestamp: Annotated[
        str | None, typer.Option("--timestamp-column", help="Column of times, for --split time and last.")
    ] = None,
    groups: Annotated[
        Path | None, typer.Option(help="Table of attributes of users, by id: also compare within each group.")
    ] = None,
    table: options.Ratings,
    settings: options.Settings = None,
    seed: options.Seed = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads of every system.")] = 1,
    json_file: options.JsonFile = None,
    out: Annotated[
        Path | None, typer.Option(callback=paths.as_html, help="Also write a page with charts to this HTML file.")
    ] = None,
) -> None:
    """Compare AIR, baselines, installed libraries and what other programs answer on your data."""
    from air_recsys.datasets import read_features
    from air_recsys.evaluation import compare as compared
    from air_recsys.evaluation.parts import n_items_of
    from air_recsys.report.comparison import write_comparison
    from air_recsys.storage.validation import import_extra

    if out is not None:
        import_extra("matplotlib", "viz")  # before anything is trained
    if test is not None:
        options.refuse_unread("--test", "--split", "--folds", "--test-fraction")
    if folds is not None:
        options.refuse_unread("--folds", "--split")
    if ranking:
        options.refuse_unread("--ranking", "--relevant")
    reading: dict[str, Any] = {"likes": ranking, "timestamp": timestamp}
    how = folds if split is None else split.value
    systems = _systems(models, options.parse_settings(settings), ranking, seed, how)
    systems |= options.others_of(others)
    data = table.read(file, **reading)
    asked = None if test is None else table.read(test, **reading)
    comparison = compared(
        systems,
        data,
        how,
        test=asked,
        test_fraction=test_fraction,
        k=options.list_length("--k", k, n_items_of(data, asked)),
        relevant=relevant,
        n_users=users,
        seed=seed,
        groups=None if groups is None else read_features(groups, "user"),
        apart=True,
        threads=threads,
    )
    comparison.protocol = f"{file.name}: {comparison.protocol}"
    typer.echo(comparison.text())
    if json_file is not None:
        comparison.to_json(json_file)
    if out is not None:
        typer.echo(f"wrote {write_comparison(comparison, out)}")


def _systems(
    models: str | None, changes: dict[str, Any], ranking: bool, seed: int, split: str | int | None
) -> dict[str, System]:
    """The systems that are asked for, AIR with changes; raises for a name or a change that none has."""
    from air_recsys.evaluation.system import check_changes, named
    from air_recsys.evaluation.systems import FOR_LIKES, FOR_RATINGS, comparable_systems

    by_default = FOR_LIKES if ranking else FOR_RATINGS
    names = by_default if models is None else options.parse_names(models)
    chosen = named(comparable_systems(changes, seed, split), names, seed)
    check_changes(chosen, changes)
    return chosen
