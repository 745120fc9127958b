"""The command predict: scores of pairs of users and items."""

from __future__ import annotations

from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from air_recsys.cli import options, paths
from air_recsys.cli.models import ModelFile
from air_recsys.exceptions import ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from air_recsys.models import Recommender


class Unknown(StrEnum):
    """What becomes of pairs with an id that was not in the training data."""

    WARN = "warn"
    MEAN = "mean"
    ERROR = "error"


def predict(
    model: ModelFile,
    user: Annotated[list[str] | None, typer.Option("--user", help="A user's id; may be repeated.")] = None,
    item: Annotated[list[str] | None, typer.Option("--item", help="An item's id; may be repeated.")] = None,
    pairs: Annotated[Path | None, typer.Option(help="CSV, TSV or Parquet with one user and one item per row.")] = None,
    user_column: options.UserColumn = "user",
    item_column: options.ItemColumn = "item",
    sep: options.Separator = None,
    columns: options.Columns = None,
    unknown: Annotated[
        Unknown,
        typer.Option(
            help="Pairs with an unknown id: a mean with a warning (warn), a mean (mean), or an error (error)."
        ),
    ] = Unknown.WARN,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Also the probability of each value of the ratings, a column each.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(callback=paths.writable, help="Write the table to this CSV file, and print only its size."),
    ] = None,
    json_file: options.JsonFile = None,
) -> None:
    """Print scores of pairs and their source: all named users with all named items, or the pairs of a table."""
    from air_recsys.data.readers.ratings_file import read_pair_ids
    from air_recsys.models import Recommender
    from air_recsys.storage.writing import replace_file

    if (pairs is None) == (not user or not item):
        raise ParameterError("expected --user with --item, or --pairs alone")
    loaded = Recommender.load(model)
    data = loaded.interactions_
    if pairs is None:
        asked = list(zip(*product(user or [], item or []), strict=True))
    else:
        asked = read_pair_ids(pairs, user_column, item_column, sep=sep, columns=options.fields_of(columns))
    sides = zip(asked, (data.user_ids, data.item_ids), strict=True)
    users, items = (options.as_ids([str(each) for each in ids], known) for ids, known in sides)
    found = loaded.predict_table(users, items, unknown=unknown.value)
    if probabilities:
        found = found.join(_probabilities(loaded, users, items))
    if out is None:
        options.show_frame(found, json_file)
        return
    replace_file(out, found.to_csv(index=False).encode())
    typer.echo(f"wrote {len(found)} scores to {out}")
    options.write_figures(json_file, {"scores": found.to_dict("records")}, origin=False)


def _probabilities(model: Recommender, users: Any, items: Any) -> pd.DataFrame:
    """Return a column for each value of the ratings, named "p(value)"."""
    import pandas as pd

    from air_recsys.models.deviations import PredictsDeviations

    if not isinstance(model, PredictsDeviations):
        raise ParameterError(f"--probabilities needs a model of AIR.for_ratings(), found a {type(model).__name__}")
    shares = model.predict_proba(users, items, unknown="mean")  # what is unknown has been told
    return pd.DataFrame(shares, columns=[f"p({value:g})" for value in model.rating_values_])
