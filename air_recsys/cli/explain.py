"""The command explain: why a user gets an item."""

from __future__ import annotations

from typing import Annotated

import typer

from air_recsys.cli import options
from air_recsys.cli.models import ModelFile
from air_recsys.cli.titles import ItemTitles, titles_or_none
from air_recsys.exceptions import DataError


def explain(
    model: ModelFile,
    user: Annotated[str, typer.Option("--user", help="A user's id.")],
    item: Annotated[str, typer.Option("--item", help="An item's id.")],
    n: Annotated[int, typer.Option("--n", help="Maximum number of rows of a table.")] = 10,
    titles: ItemTitles = None,
    json_file: options.JsonFile = None,
) -> None:
    """Print how items of the user and similar users contribute to a score; the parts add up to it."""
    from air_recsys.models import GraphRanker, Recommender
    from air_recsys.models.trained import TrainedRecommender

    loaded = Recommender.load(model)
    if not isinstance(loaded, TrainedRecommender | GraphRanker):
        kind = type(loaded).__name__
        raise DataError(f"only AIR, DMF and GraphRanker explain their scores, found a model of class {kind}")
    data = loaded.interactions_
    (user_id,), (item_id,) = options.as_ids([user], data.user_ids), options.as_ids([item], data.item_ids)
    explanation = loaded.explain(user_id, item_id, n, labels=titles_or_none(titles, data.item_ids))
    typer.echo(str(explanation))
    options.write_figures(json_file, explanation.to_dict(), origin=False)
