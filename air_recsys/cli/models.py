"""Commands on models: train, recommend, similar, graph."""

from __future__ import annotations

import warnings
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from air_recsys.cli import options, paths
from air_recsys.cli.data import ItemTitles, titles_or_none, with_titles
from air_recsys.exceptions import DataError, DataWarning, ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from air_recsys.data.interactions import Interactions
    from air_recsys.models import AIR, GraphRanker, Recommender

_SHOWN = 5  # users that a note names
_LEFT_BY_FILTERS = " of those that --item and --exclude allow"
_INTERRUPTED = 130  # the status of shells after Ctrl-C


def _tell_of_journal(value: Path) -> Path:
    if journal := paths.journal_with_changes(value):
        typer.echo(f"note: {journal} has changes that are not read: air-recsys compact unites both", err=True)
    return value


_WRITTEN = "A file that `train` or `demo` wrote."
ModelFile = Annotated[Path, typer.Argument(callback=_tell_of_journal, help=_WRITTEN)]
ModelAndJournal = Annotated[Path, typer.Argument(help=_WRITTEN)]


class Side(StrEnum):
    """Users or items."""

    USERS = "users"
    ITEMS = "items"


def train(
    file: Annotated[Path, typer.Argument(help="CSV, TSV or Parquet with one rating per row, or one user per row.")],
    *,
    model: Annotated[Path, typer.Option("--model", callback=paths.as_model, help="Where to write the model.")] = Path(
        "model.air"
    ),
    preset: options.PresetName = options.Preset.RATINGS,
    table: options.Ratings,
    timestamp: Annotated[
        str | None,
        typer.Option(
            "--timestamp-column",
            help="Column of times; AIR then learns effects of time (time=drift). With --ranking the choice of "
            "settings is made on the latest part.",
        ),
    ] = None,
    known: options.Known,
    settings: options.Settings = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            callback=paths.writable,
            help="File with the state of the training; if it exists, the training resumes from it.",
        ),
    ] = None,
    every: Annotated[
        int, typer.Option(min=1, help="Epochs, sweeps, or steps with --ranking, between two checkpoints.")
    ] = 50,
    snapshots: Annotated[
        int | None,
        typer.Option(min=1, help="Keep the graphs at so many steps of the training, for `graph --html` and `report`."),
    ] = None,
    ranking: Annotated[
        bool, typer.Option("--ranking", help="Treat all rows as likes, and train GraphRanker for lists of items.")
    ] = False,
    registered: Annotated[
        str | None, typer.Option(help="A model class that an installed package registers, in place of AIR.")
    ] = None,
    json_file: options.JsonFile = None,
) -> None:
    """Train AIR on a table of ratings and write the model; Ctrl-C stops at the next epoch and writes it."""
    from air_recsys.models import AIR, GraphRanker, Recommender
    from air_recsys.models.registered import made

    reads = {"--user-features": "--user-id-column", "--item-features": "--item-id-column", "--checkpoint": "--every"}
    for needed in reads.keys() - paths.GIVEN.get():
        options.refuse_unread(f"train without {needed}", reads[needed])
    if registered is not None:
        options.refuse_unread("--registered", "--preset", "--checkpoint", "--snapshots")
        other = made(registered, Recommender, {"random_state": seed, "device": device})
        other.set_params(**options.parse_settings(settings, other))
        data = table.read(file, likes=ranking, timestamp=timestamp)
        typer.echo(repr(data))
        _write(other.fit(known.beside(data, table)), model, json_file)
        return
    if ranking:
        unread = ("--preset", "--user-similarity", "--item-similarity", "--snapshots")
        texts = [f"--{side}-{kind}" for side in ("user", "item") for kind in ("smiles", "sequences")]
        options.refuse_unread("--ranking", *unread, *texts)
        of_kinds = {"target": table.target, "liked": table.liked}
        of_ranker: dict[str, Any] = (
            {"random_state": seed, "device": device} | of_kinds | options.parse_settings(settings, GraphRanker())
        )
        likes = table.read(file, likes=True, timestamp=timestamp)
        typer.echo(repr(likes))
        likes, ranker = known.beside(likes, table), GraphRanker(**of_ranker)
        _fit(ranker, likes, checkpoint, every)
        _write_ranker(ranker, model, json_file)
        return
    of_time = {} if timestamp is None else {"time": "drift"}
    given = options.parse_settings(settings)
    if snapshots is not None and "snapshot_epochs" in given:
        raise ParameterError("expected --snapshots or --set snapshot_epochs, found both")
    parameters = {"random_state": seed, "device": device, "verbose": True} | of_time | given
    air = AIR.of_preset(preset.value, **parameters)
    data = table.read(file, timestamp=timestamp)
    typer.echo(repr(data))
    data = known.beside(data, table)
    if snapshots is not None:
        air.set_params(snapshot_epochs=air.spread_epochs(data, snapshots))
    status = _fit(air, data, checkpoint, every)
    last = air.history_.iloc[-1]
    unit = air.solver_.unit
    typer.echo(f"trained {air.n_iter_} {unit}s in {last['seconds']:.1f} s on {air.device_}")
    for side, learned in (("user", air.user_adjacency_), ("item", air.item_adjacency_)):
        edges = "none was learned" if learned is None else f"{learned.nnz // 2:,} edges"
        typer.echo(f"graph of {side}s: {edges}")
    if air.snapshots_:
        typer.echo(f"kept the graphs of the {unit}s {', '.join(map(str, sorted(air.snapshots_)))}")
    typer.echo(air.lists_line_)
    typer.echo(f"wrote {air.save(model)}")
    figures = {"epochs": air.n_iter_} | {name: float(last[name]) for name in last.index}
    options.write_figures(json_file, figures, origin=False)
    if status:
        raise typer.Exit(status)


def _write_ranker(ranker: GraphRanker, model: Path, json_file: Path | None) -> None:
    if tried := len(ranker.history_) - 1:
        typer.echo(f"chose among {tried} settings: {ranker.search_line_}")
    for name, weight in ranker.settings_.weights.items():
        typer.echo(f"weight of the {name} term: {weight:g}")
    _write(ranker, model, json_file)


def _write(trained: Recommender, model: Path, json_file: Path | None) -> None:
    """Write a model, and the last record of its training where a file is asked for."""
    typer.echo(f"wrote {trained.save(model)}")
    figures = {name: float(values.iloc[-1]) for name, values in trained.history_.items() if len(values)}
    options.write_figures(json_file, figures, origin=False)


def _fit(model: AIR | GraphRanker, data: Interactions, checkpoint: Path | None, every: int) -> int:
    """Train, and return 0, or the status of the signal that cut the training short.

    A model of class AIR is usable then; a ranker is not, and the command ends with that status.
    """
    from air_recsys.models import AIR
    from air_recsys.training.interrupts import Terminated

    present = checkpoint if checkpoint is not None and checkpoint.exists() else None
    try:
        model.fit(data, checkpoint=checkpoint, every=every, resume_from=present)
    except (KeyboardInterrupt, Terminated) as interrupt:
        usable = isinstance(model, AIR)
        # Of a ranker nothing is written at a second Ctrl-C, and without a checkpoint.
        if getattr(model, "stopped_by_", None) != "interrupt" if usable else not str(interrupt):
            raise
        typer.echo(f"{interrupt}" + ("" if checkpoint is None else f"; the same command goes on from {checkpoint}"))
        status = getattr(interrupt, "status", _INTERRUPTED)
        if not usable:
            raise typer.Exit(status) from None
        return status
    return 0


def recommend(
    model: ModelFile,
    *,
    user: Annotated[list[str] | None, typer.Option("--user", help="A user's id; may be repeated.")] = None,
    ratings: Annotated[
        Path | None,
        typer.Option(help="New ratings (columns user, item, rating) to fold in first, only for this answer."),
    ] = None,
    form: options.Fields,
    lists: options.Lists,
    rank_by: Annotated[
        str, typer.Option(help="Of a model of ratings: auto, both (taking and liking), rating or taken.")
    ] = "auto",
    reranked: options.Reranked,
    titles: ItemTitles = None,
    json_file: options.JsonFile = None,
) -> None:
    """Print the best items for the named users, or for the users of the new ratings."""
    from air_recsys.data.readers.titles import groups_in, read_titles, titles_of
    from air_recsys.datasets import read_ratings
    from air_recsys.models import GraphRanker, Recommender
    from air_recsys.models.ranking.reranking import CHOICE, rerank
    from air_recsys.models.trained import TrainedRecommender

    if not user and ratings is None:
        raise ParameterError("expected --user, --ratings or both, found neither")
    if ratings is None:
        options.refuse_unread("recommend without --ratings", *options.FORMS)
    loaded = Recommender.load(model)
    data = loaded.interactions_
    ids = options.as_ids(user or [], data.user_ids)
    if titles is None:
        options.refuse_unread("recommend without --titles", "--group-by")
    about = None if titles is None else read_titles(titles, data.item_ids)
    groups = None if about is None or reranked.group_by is None else groups_in(about, reranked.group_by)
    again, new = reranked.asked(), None
    if ratings is not None:
        if not isinstance(loaded, TrainedRecommender | GraphRanker):
            kind = type(loaded).__name__
            raise DataError(f"only AIR, DMF and GraphRanker fold new ratings in, found a model of class {kind}")
        rating = None if isinstance(loaded, GraphRanker) and loaded.liked is None else "rating"
        read = form.reading() | {"rating": rating, "allow_negative": loaded.rating_scale_[0] < 0}
        new = read_ratings(ratings, **read).to_frame()
        for side, model_ids in (("user", data.user_ids), ("item", data.item_ids)):
            new[side] = options.as_ids(new[side].astype(str).tolist(), model_ids)
        if isinstance(loaded, TrainedRecommender):
            loaded.partial_fit(new)
        ids = ids or new["user"].unique().tolist()
    if "calibration" in again and new is not None and isinstance(loaded, GraphRanker):
        raise ParameterError("--calibration needs the items that a model has of its users, found --ratings of others")
    n = 10 if lists.n is None else lists.n
    how: dict[str, Any] = {"n": max(n, CHOICE) if again else n} | lists.filters(loaded.interactions_)
    if isinstance(loaded, TrainedRecommender):
        how["rank_by"] = rank_by
    elif rank_by != "auto":
        raise ParameterError(f"--rank-by needs a model of ratings that trains, found a {type(loaded).__name__}")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* what is popular is listed", DataWarning)  # which a note tells
        if new is not None and isinstance(loaded, GraphRanker):
            found = _folded_lists(loaded, new, ids, how)
        else:
            found = loaded.recommend(ids, **how)
    if again:
        found = rerank(found, loaded, n, groups=groups, **again)
    options.show_frame(with_titles(found, None if about is None else titles_of(about)), json_file)
    everything = f", who rated all {loaded.interactions_.n_items} (--include-seen)"
    why_none = _LEFT_BY_FILTERS if how["items"] is not None or how["exclude"] is not None else everything
    _tell_of_lists(found, ids, lists.n, why_none, data.user_ids.item(0))


def _tell_of_lists(found: pd.DataFrame, ids: list[Any], n: int | None, why_none: str, known: Any) -> None:
    """Say which users are unknown or have no list, and, where a length was asked for, for which items are missing."""
    asked = list(dict.fromkeys(ids))
    unknown = found.loc[found["source"] == "popular", "user"].unique().tolist()
    lengths = Counter(found["user"])
    short = [] if n is None else [user for user in asked if 0 < lengths[user] < n]
    without = [user for user in asked if not lengths[user]]
    for users, told in ((unknown, "what is popular is listed"), (without, "no item is left")):
        why = " of whom nothing is known" if users is unknown else why_none
        if users:
            named = ", ".join(map(repr, users[:_SHOWN])) + ", ..." * (len(users) > _SHOWN)
            named += f"; known are such as {known!r}" if users is unknown else ""
            typer.echo(f"note: {told} for {len(users)} of {len(asked)} user(s){why}: {named}", err=True)
    if short:
        left = f"{lengths[short[0]]} of user {short[0]!r}"
        typer.echo(f"note: fewer than {n} items are left for {len(short)} of {len(asked)} user(s): {left}", err=True)


def _folded_lists(ranker: GraphRanker, new: pd.DataFrame, ids: list[Any], how: dict[str, Any]) -> pd.DataFrame:
    """Return the lists of some users, those of the new ones by these ratings alone."""
    import pandas as pd

    from air_recsys.data.columns import pair_columns

    def of(users: list[Any]) -> dict[str, Any]:  # a table of pairs without those of other users
        pairs = (name for name, given in how.items() if isinstance(given, pd.DataFrame))
        return how | {name: how[name][how[name][pair_columns(how[name])[0]].isin(users)] for name in pairs}

    theirs = set(new["user"])
    folded, others = [each for each in ids if each in theirs], [each for each in ids if each not in theirs]
    lists = ranker.fold_in(new).recommend(folded, **of(folded))
    return pd.concat([lists, ranker.recommend(others, **of(others))], ignore_index=True) if others else lists


def similar(
    model: ModelFile,
    user: Annotated[str | None, typer.Option("--user", help="A user's id.")] = None,
    item: Annotated[str | None, typer.Option("--item", help="An item's id.")] = None,
    n: Annotated[int, typer.Option("--n", help="Number of rows.")] = 10,
    titles: ItemTitles = None,
    json_file: options.JsonFile = None,
) -> None:
    """Print the users or items that are most similar to a given one."""
    from air_recsys.models import Recommender

    if (user is None) == (item is None):
        raise ParameterError(f"expected either --user or --item, found {'neither' if user is None else 'both'}")
    if item is None:
        options.refuse_unread("--user", "--titles")
    loaded = Recommender.load(model)
    names = titles_or_none(titles, loaded.interactions_.item_ids)
    if user is not None:
        frame = loaded.similar_users(options.as_ids([user], loaded.interactions_.user_ids)[0], n)
    else:
        frame = loaded.similar_items(options.as_ids([str(item)], loaded.interactions_.item_ids)[0], n)
    options.show_frame(with_titles(frame, names), json_file)
    if frame.empty:
        side, id = ("items", item) if user is None else ("users", user)
        typer.echo(f"note: this {type(loaded).__name__} knows no {side} that are similar to {id!r}", err=True)


def graph(
    model: ModelFile,
    side: Annotated[Side, typer.Option(help="Graph to describe.")] = Side.ITEMS,
    graphml: Annotated[
        Path | None, typer.Option(callback=paths.as_graphml, help="Write the graph as GraphML to this file.")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(callback=paths.as_csv, help="Write its edges as CSV: source, target, weight.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(callback=paths.as_html, help="Write a page to explore both graphs in a browser.")
    ] = None,
    titles: Annotated[
        Path | None, typer.Option(help="CSV with a column id and columns about the items: title, year, ...")
    ] = None,
    recommend: Annotated[
        bool | None,
        typer.Option(
            "--recommend/--no-recommend",
            help="Let the page recommend to who picks items, in at most 5 MB; by default where 2 MB are enough.",
        ),
    ] = None,
    json_file: options.JsonFile = None,
) -> None:
    """Describe a learned graph: size and communities. Write it for other programs, or as a page to explore."""
    from air_recsys.data.readers.titles import read_titles
    from air_recsys.models import Recommender
    from air_recsys.report import explorer_of

    if html is None:
        options.refuse_unread("graph without --html", "--titles", "--recommend")
    loaded = Recommender.load(model)
    chosen = loaded.user_graph_ if side is Side.USERS else loaded.item_graph_
    if chosen is None:
        raise DataError(f"this {type(loaded).__name__} has learned no graph of {side.value}")
    typer.echo(repr(chosen))
    communities = chosen.communities()
    sizes = communities.value_counts().sort_index()
    typer.echo(f"{sizes.size} communities, sizes {', '.join(map(str, sizes.head(20)))}{', ...' * (sizes.size > 20)}")
    if graphml is not None:
        typer.echo(f"wrote {chosen.to_graphml(graphml)}")
    if csv is not None:
        typer.echo(f"wrote {chosen.to_csv(csv)}")
    if html is not None:
        about_items = None if titles is None else read_titles(titles, loaded.interactions_.item_ids)
        typer.echo(f"wrote {explorer_of(loaded, html, about_items, first=side.value, recommend=recommend)}")
    community_of = {str(node): int(number) for node, number in communities.items()}
    figures = {"nodes": len(chosen), "edges": chosen.n_edges, "communities": community_of}
    options.write_figures(json_file, figures, origin=False)
