"""The command ``report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from air_recsys.cli import options, paths
from air_recsys.cli.models import ModelFile
from air_recsys.exceptions import ParameterError

if TYPE_CHECKING:
    from air_recsys.data.interactions import Interactions


def report(
    model: ModelFile,
    out: Annotated[Path, typer.Option(callback=paths.writable, help="The page to write.")] = Path("report.html"),
    test: Annotated[
        Path | None, typer.Option(help="Ratings that the model has not seen (CSV, TSV or Parquet), for its accuracy.")
    ] = None,
    evaluate: Annotated[
        bool, typer.Option("--evaluate", help="Fit the model again on 90 % of the ratings, and measure on the others.")
    ] = False,
    titles: Annotated[
        Path | None, typer.Option(help="CSV with the columns id (or item, movieId, ...) and title.")
    ] = None,
    user: options.UserColumn = "user",
    item: options.ItemColumn = "item",
    rating: options.RatingColumn = "rating",
    sep: options.Separator = None,
    columns: options.Columns = None,
    json_file: options.JsonFile = None,
) -> None:
    """Write one HTML page about a model: accuracy, graphs, intervals, errors, sample recommendations."""
    from air_recsys.data.readers.pairs_file import read_titles, titles_of
    from air_recsys.datasets import read_ratings
    from air_recsys.evaluation.held_out import evaluate_model
    from air_recsys.evaluation.results import ResultTable
    from air_recsys.models import Recommender
    from air_recsys.report.page import check_report, report_html
    from air_recsys.storage.writing import replace_file

    if test is not None and evaluate:
        raise ParameterError("expected --test or --evaluate, found both")
    loaded = Recommender.load(model)
    check_report(loaded, out)
    names = None if titles is None else titles_of(read_titles(titles, loaded.interactions_.item_ids))
    unseen = None
    if test is not None:
        fields = options.fields_of(columns)
        read = read_ratings(test, user, item, rating, sep=sep, allow_negative=True, columns=fields)
        unseen = _with_ids_of(read, loaded.interactions_)
    evaluation = evaluate_model(loaded, unseen, evaluate)
    replace_file(out, report_html(loaded, evaluation, names).encode("utf-8", "replace"))
    table = ResultTable(evaluation.title, evaluation.protocol, evaluation.rows, evaluation.notes)
    typer.echo(table.text() if table.rows else "\n".join(table.notes))
    typer.echo(f"wrote {out}")
    figures = {"title": table.title, "protocol": table.protocol, "models": table.rows, "notes": table.notes}
    options.write_figures(json_file, figures)


def _with_ids_of(test: Interactions, data: Interactions) -> Interactions:
    """Return test ratings with ids of the model's kind: text where the model's are text."""
    from air_recsys.data.interactions import Interactions

    frame = test.to_frame()
    for side, ids in (("user", data.user_ids), ("item", data.item_ids)):
        if ids.dtype == object and frame[side].dtype != object:
            frame[side] = frame[side].astype(str).astype(object)
    return Interactions.from_frame(frame, allow_negative=True)
