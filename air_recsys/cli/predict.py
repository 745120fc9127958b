"""The command predict: scores of pairs of users and items."""

from __future__ import annotations

from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from air_recsys.cli import options, paths
from air_recsys.cli.data import ItemTitles, titles_or_none
from air_recsys.cli.models import ModelFile
from air_recsys.exceptions import DataError, ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from air_recsys.models import Recommender
    from air_recsys.models.deviations import PredictsDeviations


class Unknown(StrEnum):
    """What becomes of pairs with an id that was not in the training data."""

    WARN = "warn"
    MEAN = "mean"
    ERROR = "error"


def predict(
    model: ModelFile,
    *,
    user: Annotated[list[str] | None, typer.Option("--user", help="A user's id; may be repeated.")] = None,
    item: Annotated[list[str] | None, typer.Option("--item", help="An item's id; may be repeated.")] = None,
    pairs: Annotated[Path | None, typer.Option(help="CSV, TSV or Parquet with one user and one item per row.")] = None,
    user_column: options.UserColumn = "user",
    item_column: options.ItemColumn = "item",
    form: options.Fields,
    texts: options.Texts,
    above: Annotated[
        float | None, typer.Option(help="Also the probability that a new rating is above this, as of a pKd.")
    ] = None,
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
        typer.Option(callback=paths.as_csv, help="Write the table to this CSV file, and print only its size."),
    ] = None,
    json_file: options.JsonFile = None,
) -> None:
    """Print scores of pairs with intervals and their source: of named users and items, or the pairs of a table.

    Structures and sequences are those of new users and items, which the model takes in for this answer.
    """
    from air_recsys.data.readers.forms import Writing
    from air_recsys.data.readers.ratings_file import read_pair_ids
    from air_recsys.models import Recommender
    from air_recsys.models.deviations import PredictsDeviations
    from air_recsys.storage.writing import replace_file

    new = {side: texts.new(side) for side in ("user", "item")}
    user, item = (_asked(ids, new[side]) for ids, side in ((user, "user"), (item, "item")))
    if (pairs is None) == (not user or not item):
        raise ParameterError("expected --user with --item, or --pairs without them")
    if pairs is None:
        options.refuse_unread("predict without --pairs", *options.FORMS, *options.PAIR_COLUMNS)
    loaded = _with_new(Recommender.load(model), new)
    data = loaded.interactions_
    if pairs is None:
        asked = list(zip(*product(user or [], item or []), strict=True))
    else:
        how = form.reading()
        asked = read_pair_ids(pairs, user_column, item_column, columns=how.pop("columns"), writing=Writing(**how))
    sides = zip(asked, (data.user_ids, data.item_ids), strict=True)
    users, items = (options.asked_of([str(each) for each in ids], known) for ids, known in sides)
    found = loaded.predict_table(users, items, unknown=unknown.value)
    if "deviation" in found and isinstance(loaded, PredictsDeviations):
        source, (low, high) = found.pop("source"), loaded.predict_interval(users, items, unknown="mean")
        found = found.assign(low=low, high=high, source=source)
    if above is not None:
        found[f"p(>{above:g})"] = _measuring("--above", loaded).predict_above(users, items, above, unknown="mean")
    if probabilities:
        found = found.join(_probabilities(loaded, users, items))
    if out is None:
        options.show_frame(found, json_file)
        return
    replace_file(out, found.to_csv(index=False).encode())
    typer.echo(f"wrote {len(found)} scores to {out}")
    options.write_figures(json_file, {"scores": found.to_dict("records")}, origin=False)


def _asked(ids: list[str] | None, new: dict[str, Any]) -> list[str]:
    """The ids of a side: those named, else those of new texts."""
    return ids or list(map(str, next(iter(new.values())).index)) if new else ids or []


def _with_new(model: Recommender, new: dict[str, dict[str, Any]]) -> Recommender:
    """The model of new users, or of new items, by their texts; the same one without any."""
    from air_recsys.models import AIR

    sides: list[Any] = [side for side in new if new[side]]
    if not sides:
        return model
    if not isinstance(model, AIR):
        raise DataError(f"only AIR takes in new ones by structure, found a model of class {type(model).__name__}")
    if len(sides) > 1:
        raise ParameterError("expected structures or sequences of new users or of new items, found both")
    known = (model.interactions_.user_ids, model.interactions_.item_ids)[sides[0] == "item"]
    texts = {
        kind: each.set_axis(options.asked_of(each.index.astype(str).tolist(), known))
        for kind, each in new[sides[0]].items()
    }
    return model.fold_in(side=sides[0], similarity=texts)


def _measuring(option: str, model: Recommender) -> PredictsDeviations:
    from air_recsys.models.deviations import PredictsDeviations

    if not isinstance(model, PredictsDeviations):
        raise ParameterError(f"{option} needs a model of AIR.for_ratings(), found a {type(model).__name__}")
    return model


def _probabilities(model: Recommender, users: Any, items: Any) -> pd.DataFrame:
    """Return a column for each value of the ratings, named "p(value)"."""
    import pandas as pd

    known = _measuring("--probabilities", model)
    shares = known.predict_proba(users, items, unknown="mean")  # what is unknown has been told
    return pd.DataFrame(shares, columns=[f"p({value:g})" for value in known.rating_values_])


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
    typer.echo(options.visible(str(explanation)))
    options.write_figures(json_file, explanation.to_dict(), origin=False)


class UnknownIds(StrEnum):
    """What becomes of ids that were not in the training data."""

    POPULAR = "popular"
    MEAN = "mean"
    SKIP = "skip"
    ERROR = "error"


def score(
    model: ModelFile,
    *,
    table: Annotated[
        Path, typer.Argument(help="Parquet file or folder of Parquet files, with one user per row, each once.")
    ],
    output: Annotated[Path, typer.Argument(help="New folder for the Parquet files.")],
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Score the rows of the table, which are pairs of users and items.")
    ] = False,
    lists: options.Lists,
    user: options.UserColumn = "user",
    item: options.ItemColumn = "item",
    unknown: Annotated[
        UnknownIds | None,
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
    from air_recsys.models.ranking.allowed import allowed_items, has_own

    given: dict[str, Any] = {"user": user, "concurrency": workers, "verbose": True}
    given |= {} if unknown is None else {"unknown": unknown.value}
    given |= {} if batch_size is None else {"batch_size": batch_size}
    if pairs:
        options.refuse_unread(
            "--pairs", "--n", "--include-seen", "--item", "--exclude", "--items-from", "--exclude-from"
        )
        done = scoring.predict(model, table, output, item=item, **given)
    else:
        options.refuse_unread("score without --pairs", "--item-column")
        data = Recommender.load(model).interactions_
        filters = lists.filters(data)
        chosen = filters["items"], filters["exclude"]
        n_left = data.n_items if has_own(*chosen) else allowed_items(data.items, *chosen).n_left
        length = 10 if lists.n is None else options.list_length("--n", lists.n, n_left)
        done = scoring.recommend(model, table, output, n=length, **filters, **given)
    typer.echo(f"read {done.n_read} rows, {done.n_unknown} of them with an id that the model does not know")
    typer.echo(f"wrote {done.n_written} rows to {done.folder}")
    options.write_figures(json_file, done._asdict() | {"folder": str(done.folder)}, origin=False)
