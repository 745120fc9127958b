"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from air_recsys.cli import paths
from air_recsys.exceptions import DataError, ParameterError, quoted

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from air_recsys.data.interactions import Interactions
    from air_recsys.dti import DrugTargetAIR
    from air_recsys.evaluation.results import ResultTable
    from air_recsys.evaluation.system import System
    from air_recsys.models import Recommender
    from air_recsys.models.rows import Side


_SHOWN = 5  # ids in a message
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


FORMS = ("--sep", "--encoding", "--quote", "--columns")  # how a table is written
PAIR_COLUMNS = ("--user-column", "--item-column")


class Preset(StrEnum):
    """The presets of AIR by name."""

    RATINGS = "ratings"
    INTERACTIONS = "interactions"
    COMPLETION = "completion"
    AUTO = "auto"


class Hidden(StrEnum):
    """What is hidden of drugs and targets: pairs, drugs, targets, both, later pairs, or each in turn and groups."""

    PAIRS = "pairs"
    DRUGS = "drugs"
    TARGETS = "targets"
    BOTH = "both"
    LATER = "later"
    ALL = "all"


class Repeated(StrEnum):
    """What counts of a pair of a user and an item that is there twice."""

    ERROR = "error"
    FIRST = "first"
    LAST = "last"
    MEAN = "mean"
    SUM = "sum"


def pairs(option: str, text: str) -> Any:
    """Declare an option that takes NAME=VALUE."""
    return typer.Option(option, metavar="NAME=VALUE", help=text)


JsonFile = Annotated[
    Path | None, typer.Option("--json", callback=paths.as_json, help="Also write the figures to this JSON file.")
]
Seed = Annotated[int, typer.Option(help="Seed of all random numbers.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:N, or auto.")]
PresetName = Annotated[Preset, typer.Option(help="Preset for a kind of data; auto chooses by the data.")]
Settings = Annotated[list[str] | None, pairs("--set", "A parameter of AIR or of its solver; may be repeated.")]
Others = Annotated[
    list[str] | None,
    typer.Option(
        "--others",
        metavar="NAME=FILE",
        help="Lists that another program made from the training part (columns user and item, and rank or score), or "
        "the ratings that it predicts for the test part (user, item, rating); may be repeated.",
    ),
]
DataFolder = Annotated[
    Path | None,
    typer.Option("--data", help="Folder of the data sets; by default AIR_RECSYS_DATA, else ../shared/data."),
]
UserColumn = Annotated[str, typer.Option("--user-column", help="Column of the user ids.")]
ItemColumn = Annotated[str, typer.Option("--item-column", help="Column of the item ids.")]


@dataclass
class Form:
    """How a table of text is written."""

    sep: Annotated[
        str | None,
        typer.Option(help="Separator of the table: one sign or ::; by default it is found in the first line."),
    ] = None
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of the table, such as latin-1 or utf-16; by default UTF-8.")
    ] = None
    quote: Annotated[
        bool | None,
        typer.Option(
            "--quote/--no-quote", help="Whether fields may be in double quotes; by default where commas separate them."
        ),
    ] = None

    def reading(self) -> dict[str, Any]:
        """Return the arguments of what reads the table."""
        return {"sep": self.sep, "encoding": self.encoding, "quote": self.quote}


@dataclass
class Fields(Form):
    """How a table of text is written that may lack a header line."""

    columns: Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME,...", help="Names of the fields of a file without a header line."),
    ] = None

    def reading(self) -> dict[str, Any]:
        """Return the arguments of what reads the table."""
        return super().reading() | {"columns": None if self.columns is None else parse_names(self.columns)}


@dataclass
class _Named:
    user: UserColumn = "user"
    item: ItemColumn = "item"
    rating: Annotated[
        str, typer.Option("--rating-column", help="Column of the ratings; of BindingDB and ChEMBL Ki, Kd, ...")
    ] = "rating"


@dataclass
class RatingFields(Fields, _Named):
    """The columns of a table of ratings, and how it is written."""

    def reading(self) -> dict[str, Any]:
        """Return the arguments of `read_ratings`."""
        return super().reading() | {"user": self.user, "item": self.item, "rating": self.rating}


@dataclass
class Ratings(RatingFields):
    """A table of ratings to train on: its columns, how it is written, and what its values mean."""

    duplicates: Annotated[Repeated, typer.Option(help="Which rating counts for a repeated pair.")] = Repeated.ERROR
    negative: Annotated[
        bool, typer.Option("--negative", help="The scale has ratings below 0; print no note about them.")
    ] = False
    rating_scale: Annotated[
        str | None,
        typer.Option(metavar="LOW,HIGH", help="Lowest and highest rating; by default the range of the data."),
    ] = None
    missing: Annotated[
        float | None, typer.Option(help="A number that means not rated, such as 99 in some tables.")
    ] = None

    kind: Annotated[str, typer.Option("--kind-column", help="Column of the kinds of events, read with --target.")] = (
        "kind"
    )
    target: Annotated[
        str | None, typer.Option(help="With --ranking: the kind of events that lists are for, such as purchase.")
    ] = None

    liked: Annotated[
        float | None, typer.Option(help="With --ranking: the least rating that is a like; lower ones are dislikes.")
    ] = None

    def reading(self, *, likes: bool = False) -> dict[str, Any]:
        """Return the arguments of `read_ratings`; of likes, without ratings, a repeated pair counts once."""
        how = super().reading() | {"duplicates": self.duplicates.value, "allow_negative": self.negative or None}
        how |= {"rating_scale": scale_of(self.rating_scale), "missing": self.missing}
        if not likes:
            refuse_unread("reading without --ranking", "--target", "--kind-column", "--liked")
            return how
        if self.liked is not None:
            refuse_unread("--liked", "--target", "--kind-column", "--rating-scale")
            return how
        refuse_unread("--ranking", "--rating-column", "--negative", "--rating-scale", "--missing")
        if self.target is None:
            refuse_unread("--ranking without --target", "--kind-column")
        of_kinds = {} if self.target is None else {"kind": self.kind, "target": self.target}
        once = "sum" if of_kinds else "mean"
        once = once if self.duplicates is Repeated.ERROR else self.duplicates.value
        return how | of_kinds | {"rating": None, "duplicates": once}

    def read(self, file: Path, *, likes: bool = False, timestamp: str | None = None) -> Interactions:
        """Return the ratings of a file; of one of measurements, as of BindingDB, affinities with structures."""
        from air_recsys.data.readers.measurements_file import is_measurements, read_measurements
        from air_recsys.data.readers.sources import regular
        from air_recsys.datasets import read_ratings

        how = self.reading(likes=likes)
        with regular(file) as source:
            if likes or not source.is_file() or not is_measurements(source):
                return read_ratings(source, timestamp=timestamp, **how)
            refuse_unread(
                "a file of measurements", *FORMS, *PAIR_COLUMNS, "--duplicates", "--missing", "--timestamp-column"
            )
            found = read_measurements(source, None if self.rating == "rating" else self.rating)
        data = found.interactions()
        data = with_similarities(data, "user", None, {"smiles": found.smiles} if len(found.smiles) else {})
        return with_similarities(data, "item", None, {"sequences": found.sequences} if len(found.sequences) else {})


@dataclass
class Texts:
    """What files tell of users and items that a model compares: structures and sequences."""

    user_smiles: Annotated[Path | None, typer.Option(help="Two columns: user and SMILES, as of drugs.")] = None
    user_sequences: Annotated[Path | None, typer.Option(help="FASTA, or two columns: user and sequence.")] = None
    item_smiles: Annotated[Path | None, typer.Option(help="Two columns: item and SMILES.")] = None
    item_sequences: Annotated[Path | None, typer.Option(help="FASTA, or two columns, as of targets.")] = None

    def new(self, side: Side) -> dict[str, Any]:
        """Return the texts by kind of new users, or items."""
        from air_recsys.datasets import read_texts

        files = {kind: getattr(self, f"{side}_{kind}") for kind in ("smiles", "sequences")}
        return {kind: read_texts(file) for kind, file in files.items() if file is not None}


@dataclass
class Known(Texts):
    """What files tell of users and items beside their ratings."""

    user_features: Annotated[Path | None, typer.Option(help="Table of features of users, one row per id.")] = None
    item_features: Annotated[Path | None, typer.Option(help="Table of features of items, one row per id.")] = None
    user_id_column: Annotated[
        str | None, typer.Option(help="Column of the ids in the features of users; by default as --user-column.")
    ] = None
    item_id_column: Annotated[
        str | None, typer.Option(help="Column of the ids in the features of items; by default as --item-column.")
    ] = None
    user_similarity: Annotated[
        Path | None, typer.Option(help="Pairs of users with a similarity, or a square table of them.")
    ] = None
    item_similarity: Annotated[
        Path | None, typer.Option(help="Pairs of items with a similarity, or a square table of them.")
    ] = None

    def beside(self, data: Interactions, table: Ratings) -> Interactions:
        """Return the ratings of a table with what is known, and print a line for each file."""
        columns = self.user_id_column or table.user, self.item_id_column or table.item
        data = with_features(data, self.user_features, self.item_features, *columns)
        data = with_similarities(data, "user", self.user_similarity, self.new("user"))
        return with_similarities(data, "item", self.item_similarity, self.new("item"))


@dataclass
class Lists:
    """The lists that are wanted: their length, and what they may hold."""

    n: Annotated[int | None, typer.Option("--n", help="Items per user, 10 by default; fewer if no more are left.")] = (
        None
    )
    include_seen: Annotated[bool, typer.Option("--include-seen", help="Include items that the user has rated.")] = (
        False
    )
    only: Annotated[list[str] | None, typer.Option("--item", help="Only this item; may be repeated.")] = None
    exclude: Annotated[list[str] | None, typer.Option(help="Leave out this item; may be repeated.")] = None
    items_from: Annotated[
        Path | None, typer.Option(help="Table of the only items: a column item, for all, or user and item, for each.")
    ] = None
    exclude_from: Annotated[
        Path | None, typer.Option(help="Table of items to leave out, likewise for all or for each user.")
    ] = None

    def filters(self, data: Interactions) -> dict[str, Any]:
        """Return the arguments of `Recommender.recommend` beside users and length."""
        items = items_of("--item", self.only, self.items_from, data)
        exclude = items_of("--exclude", self.exclude, self.exclude_from, data)
        return {"exclude_seen": not self.include_seen, "items": items, "exclude": exclude}


@dataclass
class Reranked:
    """How lists are made again by what items are beside good, see `air_recsys.rerank`."""

    diversity: Annotated[float, typer.Option(min=0, max=1, help="How much unlike each other items are to be.")] = 0.0
    novelty: Annotated[float, typer.Option(min=0, max=1, help="How much items of few users are to come first.")] = 0.0
    calibration: Annotated[
        float, typer.Option(min=0, max=1, help="How much shares of groups are to be those of the user's own items.")
    ] = 0.0
    per_group: Annotated[int | None, typer.Option(min=1, help="Most items of any group in a list.")] = None
    group_by: Annotated[
        str | None, typer.Option(help="Column of --titles with the group of each item, or several with | between.")
    ] = None

    def asked(self) -> dict[str, Any]:
        """Return the arguments of `rerank` that change lists, but for groups."""
        return {name: value for name, value in vars(self).items() if value and name != "group_by"}


def parse_settings(settings: list[str] | None, model: Recommender | DrugTargetAIR | None = None) -> dict[str, Any]:
    """Turn NAME=VALUE texts into parameters of a model; unless one is given, of AIR and of its solvers."""
    from air_recsys.data.ids import close_names
    from air_recsys.models import AIR
    from air_recsys.models.solvers import SOLVERS, parameter_names

    parsed = parse_values(settings)
    if not parsed:  # and nothing to be loaded for it
        return parsed
    if model is None:
        kinds = [AIR, *SOLVERS.values()]
        owner = "AIR or its solvers"
        names = list(dict.fromkeys(name for kind in kinds for name in parameter_names(kind)))
    else:
        owner, names = type(model).__name__, list(model.get_params())
    for name, value in parsed.items():
        if name not in names:
            close = close_names(name, names, n=1, likeness=0.6)
            meant = f"; is {close[0]} meant?" if close else f"; the parameters are {', '.join(names)}"
            found = f"found {f'{name}={value}'!r}{meant}"
            raise ParameterError(f"--set expects NAME=VALUE with a parameter of {owner}, {found}")
    return parsed


def parse_values(settings: list[str] | None) -> dict[str, Any]:
    """Turn NAME=VALUE texts into names and Python values; what is no literal stays text."""
    parsed: dict[str, Any] = {}
    for text in settings or []:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise ParameterError(f"--set expects NAME=VALUE, found {text!r}")
        if name in parsed:
            typer.echo(f"note: {name} stands twice, and the last one counts", err=True)
        try:
            parsed[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):  # all that literal_eval raises
            parsed[name] = value
    return parsed


def with_features(data: Interactions, users: Path | None, items: Path | None, user: str, item: str) -> Interactions:
    """Return ratings with what files tell of users and items, and print a line for each side."""
    from air_recsys.datasets import read_features

    for side, file, column in (("user", users, user), ("item", items, item)):
        if file is None:
            continue
        index = data.users if side == "user" else data.items
        table, n_rated = read_features(file, column), len(index)
        table.index = as_ids(table.index.astype(str).tolist(), index.ids)
        data = data.with_features(**{side: table})
        n_features, n_all = data.n_features[side == "item"], data.n_items if side == "item" else data.n_users
        typer.echo(f"{n_features} features of {n_all} {side}s, {n_all - n_rated} of them without a rating")
    return data


def with_similarities(data: Interactions, side: Side, file: Path | None, texts: dict[str, Any]) -> Interactions:
    """Return ratings with what a file or texts by kind tell of how alike users or items are, and print a line."""
    from air_recsys.datasets import read_similarity
    from air_recsys.graphs import SimilarityGraph
    from air_recsys.models.given import with_similarities

    if file is None and not texts:
        return data
    if file is not None and texts:
        others = " or ".join(f"--{side}-{kind}" for kind in ("similarity", *texts))
        raise ParameterError(f"expected {others}, found several")
    index: Any = data.users if side == "user" else data.items

    def known(ids: Any) -> list[Any]:
        return as_ids(ids.astype(str).tolist(), index.ids)

    given: Any = {kind: each.set_axis(known(each.index)) for kind, each in texts.items()}
    if file is not None:
        graph = read_similarity(file, side)
        given = SimilarityGraph(graph.to_scipy(), known(graph.ids), side)
    n_rated = len(index)
    data = with_similarities(data, *((given, None) if side == "user" else (None, given)))
    found, n_all = (data.user_features, data.n_users) if side == "user" else (data.item_features, data.n_items)
    told = f"; {found.described.told()}" if found is not None and found.described is not None else ""
    typer.echo(f"similarities of {n_all} {side}s, {n_all - n_rated} of them without a rating{told}")
    return data


def others_of(texts: list[str] | None) -> dict[str, System]:
    """Return the systems of NAME=FILE texts, whose answers were made elsewhere."""
    from air_recsys.evaluation.system import system_of

    systems = {}
    for text in texts or []:
        name, _, file = text.partition("=")
        if not name or not file or name in systems:
            raise ParameterError(f"--others expects NAME=FILE, each name once, found {text!r}")
        systems[name] = system_of(Path(file))
    return systems


def parse_names(text: str) -> list[str]:
    """Split names at commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def scale_of(text: str | None) -> tuple[float, float] | None:
    """Return the ends of a scale; None where none is given."""
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise ParameterError(f"--rating-scale expects LOW,HIGH, such as 1,5, found {text!r}") from None
    return low, high


def as_ids(texts: list[str], model_ids: np.ndarray) -> list:
    """Turn ids into the model's kind, or raise for the first that is none: integers where all the model's are."""
    ids = asked_of(texts, model_ids)
    foreign = [each for each in ids if isinstance(each, str)] if model_ids.dtype != object else []
    if foreign:
        shown = ", ".join(map(quoted, foreign[:_SHOWN])) + ", ..." * (len(foreign) > _SHOWN)
        raise DataError(f"this model's ids are integers, found {len(foreign)} of {len(ids)} that are none: {shown}")
    return ids


def items_of(option: str, ids: list[str] | None, file: Path | None, data: Interactions) -> Any:
    """Return the items of an option or of the file beside it, of all users or a table of pairs; None without any."""
    from air_recsys.data.columns import pair_columns, usual_column
    from air_recsys.data.readers.forms import FOUND
    from air_recsys.data.readers.tables import existing, read_names, read_table

    if file is None:
        return as_ids(ids, data.item_ids) if ids else None
    if ids:
        raise ParameterError(f"expected {option} or a file of items, found both")
    names = read_names(existing(file, "items"), FOUND)
    table = read_table(file, "items", names)
    item = usual_column("item", "item", names)
    if len(names) > 1:
        user, item = pair_columns(table)
        users = as_ids(table[user].astype(str).tolist(), data.user_ids)
        return table.assign(**{str(user): users, str(item): as_ids(table[item].astype(str).tolist(), data.item_ids)})
    if item is None:
        raise DataError(f"{file}: expected a column item, or user and item, found {quoted(names)}")
    return as_ids(table[item].astype(str).tolist(), data.item_ids)


def asked_of(texts: list[str], model_ids: np.ndarray) -> list:
    """Turn ids into the model's kind, but for those that are none."""
    from air_recsys.data.ids import integer_of

    if model_ids.dtype == object:
        return texts
    return [text if (number := integer_of(text)) is None else number for text in texts]


def list_length(option: str, wanted: int, n_left: int) -> int:
    """The length of lists: what is asked for, or the number of items where that is less, with a note on stderr."""
    if wanted > n_left:
        typer.echo(f"note: fewer than {wanted} items are left ({option}): lists have at most {n_left}", err=True)
    return min(wanted, max(n_left, 1))


def show_frame(frame: pd.DataFrame, json_file: Path | None) -> None:
    """Print a table unless it is empty, and write it as JSON where asked for."""
    from air_recsys.evaluation.results import format_number, write_json

    shown = frame.copy()
    for name in shown.columns:
        if shown[name].dtype.kind == "f":
            shown[name] = [format_number(value) for value in shown[name]]
    if len(shown):
        typer.echo(visible(shown.to_string(index=False)))
    if json_file is not None:
        write_json(json_file, json.loads(str(frame.to_json(orient="records"))))


def visible(text: str) -> str:
    """Return text for a terminal: signs that would steer it, or turn its direction, are escaped."""
    return _STEERING.sub(lambda sign: sign[0].encode("unicode_escape").decode(), text)


def write_figures(json_file: Path | None, figures: Any, *, origin: bool = True) -> None:
    """Write figures as JSON where a file is asked for, by default with versions and machine."""
    from air_recsys.evaluation.results import machine, versions, write_json

    if json_file is not None:
        write_json(json_file, figures | {"versions": versions(), "machine": machine()} if origin else figures)


def refuse_unread(option: str, *others: str) -> None:
    """Raise `ParameterError` for the first other option that is given and not read beside one."""
    for other in [each for each in others if each in paths.GIVEN.get()]:
        raise ParameterError(f"{option} does not read {other}: leave one of them out")


def publish_means(means: ResultTable, single: ResultTable | None, *files: Path | None) -> None:
    """Print means, and write them with the single runs to the files that are asked for."""
    typer.echo(means.text())
    for file in files:
        if file is not None:
            means.to_json(file, single)
