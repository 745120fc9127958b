"""The command score: recommendations or scores for whole tables, in the workers of a Ray cluster."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from air_recsys.cli import options
from air_recsys.cli.models import ModelFile
from air_recsys.exceptions import ParameterError


class Unknown(StrEnum):
    """What becomes of ids that were not in the training data."""

    POPULAR = "popular"
    MEAN = "mean"
    SKIP = "skip"
    ERROR = "error"


def score(
    model: ModelFile,
    table: Annotated[
        Path, typer.Argument(help="Parquet file or folder of Parquet files, with one user per row, each once.")
    ],
    output: Annotated[Path, typer.Argument(help="New folder for the Parquet files.")],
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Score the rows of the table, which are pairs of users and items.")
    ] = False,
    n: Annotated[
        int | None, typer.Option("--n", help="Items per user, 10 by default; fewer if no more are left.")
    ] = None,
    include_seen: Annotated[
        bool, typer.Option("--include-seen", help="Include items that the user has rated.")
    ] = False,
    only: Annotated[list[str] | None, typer.Option("--item", help="Only this item; may be repeated.")] = None,
    exclude: Annotated[list[str] | None, typer.Option("--exclude", help="Not this item; may be repeated.")] = None,
    user: options.UserColumn = "user",
    item: options.ItemColumn = "item",
    unknown: Annotated[
        Unknown | None,
        typer.Option(
            help="Unknown users get what is popular (the default), are skipped, or are an error; unknown "
            "pairs get a mean (the default), or are an error."
        ),
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Rows of the table per output file.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; by default one per CPU of the cluster.")
    ] = None,
    json_file: options.JsonFile = None,
) -> None:
    """Write the best items of all users of a table, or scores for its pairs, as Parquet; needs Ray."""
    from air_recsys.distributed import scoring  # it cannot be imported without Ray
    from air_recsys.models import Recommender
    from air_recsys.models.ranking.lists import allowed_items

    given: dict[str, Any] = {"user": user, "concurrency": workers, "verbose": True}
    given |= {} if unknown is None else {"unknown": unknown.value}
    given |= {} if batch_size is None else {"batch_size": batch_size}
    if pairs:
        if n is not None or include_seen or only or exclude:
            raise ParameterError("--n, --include-seen, --item and --exclude go with lists of items, found --pairs")
        done = scoring.predict(model, table, output, item=item, **given)
    else:
        data = Recommender.load(model).interactions_
        filters = {"items": only, "exclude": exclude}
        chosen = {name: options.as_ids(ids, data.item_ids) for name, ids in filters.items() if ids}
        allowed = allowed_items(data.items, **chosen)
        n_left = data.n_items if allowed is None else allowed.size
        length = 10 if n is None else options.list_length("--n", n, n_left)
        done = scoring.recommend(model, table, output, n=length, exclude_seen=not include_seen, **chosen, **given)
    typer.echo(f"read {done.n_read} rows, {done.n_unknown} of them with an id that the model does not know")
    typer.echo(f"wrote {done.n_written} rows to {done.folder}")
    options.write_figures(json_file, done._asdict() | {"folder": str(done.folder)}, origin=False)
