"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import ast
import json
import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from air_recsys.exceptions import ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from air_recsys.models import Recommender
    from air_recsys.results import ResultTable


class Preset(StrEnum):
    """The presets of AIR by name."""

    RATINGS = "ratings"
    INTERACTIONS = "interactions"
    COMPLETION = "completion"


JsonFile = Annotated[Path | None, typer.Option("--json", help="Also write the figures to this JSON file.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:N, or auto.")]
PresetName = Annotated[Preset, typer.Option(help="Which kind of data this is.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter of AIR; may be repeated.")
]
DataFolder = Annotated[
    Path | None, typer.Option("--data", help="Folder of the data sets; else AIR_RECSYS_DATA, else ../shared/data.")
]
UserColumn = Annotated[str, typer.Option("--user-column", help="Column of the user ids.")]
ItemColumn = Annotated[str, typer.Option("--item-column", help="Column of the item ids.")]
RatingColumn = Annotated[str, typer.Option("--rating-column", help="Column of the ratings.")]
Separator = Annotated[str | None, typer.Option("--sep", help="Separator of the table; else told by the suffix.")]


def parse_settings(settings: list[str] | None, model: Recommender | None = None) -> dict[str, Any]:
    """Turn NAME=VALUE texts into parameters of a model; unless one is given, of AIR and of its solvers.

    Examples
    --------
    >>> parse_settings(["n_factors=30", "schedule=cosine", "graph_neighbors=None"])
    {'n_factors': 30, 'schedule': 'cosine', 'graph_neighbors': None}
    """
    from air_recsys.models import AIR
    from air_recsys.solvers import SOLVERS, parameter_names

    parsed = parse_values(settings)
    if not parsed:  # and nothing to be loaded for it
        return parsed
    if model is None:
        kinds = [AIR, *SOLVERS.values()]
        of, known = "AIR or its solvers", list(dict.fromkeys(name for kind in kinds for name in parameter_names(kind)))
    else:
        of, known = type(model).__name__, list(model.get_params())
    for name, value in parsed.items():
        if name not in known:
            raise ParameterError(
                f"--set expects NAME=VALUE with a parameter of {of} ({', '.join(known)}), found {f'{name}={value}'!r}"
            )
    return parsed


def parse_values(settings: list[str] | None) -> dict[str, Any]:
    """Turn NAME=VALUE texts into names and Python values; what is no literal stays text.

    Examples
    --------
    >>> parse_values(["tv_reg=0.01", "axis=items"])
    {'tv_reg': 0.01, 'axis': 'items'}
    """
    parsed: dict[str, Any] = {}
    for text in settings or []:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise ParameterError(f"--set expects NAME=VALUE, found {text!r}")
        try:
            parsed[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):  # all that literal_eval raises
            parsed[name] = value
    return parsed


def parse_names(text: str) -> list[str]:
    """Split names at commas.

    Examples
    --------
    >>> parse_names("svd, svdpp")
    ['svd', 'svdpp']
    """
    return [name.strip() for name in text.split(",") if name.strip()]


def show(report: ResultTable) -> None:
    """Print a report."""
    sys.stdout.write(report.text() + "\n")


def show_frame(frame: pd.DataFrame, json_file: Path | None) -> None:
    """Print a table, and write it as JSON where asked for."""
    from air_recsys.results import format_number, write_json

    shown = frame.copy()
    for name in shown.columns:
        if shown[name].dtype.kind == "f":
            shown[name] = [format_number(value) for value in shown[name]]
    sys.stdout.write(shown.to_string(index=False) + "\n")
    if json_file is not None:
        write_json(json_file, json.loads(str(frame.to_json(orient="records"))))


def check_folder_of(path: Path | None) -> None:
    """Raise before any work where a file could not be written."""
    if path is None:
        return
    if path.is_dir():
        raise ParameterError(f"expected a file to write to, found the folder {path}")
    if not path.parent.is_dir():
        raise ParameterError(f"expected an existing folder for {path.name}, found no {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise ParameterError(f"expected a folder that can be written to for {path.name}, found {path.parent}")


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")


def write_reports(reports: Iterable[ResultTable], json_file: Path | None) -> None:
    """Write reports, versions and machine to a file, where one is asked for."""
    from air_recsys.results import machine, versions, write_json

    if json_file is not None:
        reported = [report.content() for report in reports]
        write_json(json_file, {"reports": reported, "versions": versions(), "machine": machine()})


def show_last(reports: Sequence[ResultTable], json_file: Path | None) -> None:
    """Print the newest of some reports, and write all so far: those that follow may take hours."""
    show(reports[-1])
    say("")
    write_reports(reports, json_file)


def benchmark_command(
    name: str, given: Mapping[str, Sequence[str] | None], flags: Mapping[str, bool], seed: int = 0
) -> str:
    """Return the call of `bench` that measures a report again, for the reader of its notes.

    Examples
    --------
    >>> benchmark_command("ratings", {"--set": ["ml-1m"], "--system": ["Surprise SVD"]}, {"--validation": True})
    "`air-recsys bench ratings --set ml-1m --system 'Surprise SVD' --validation`"
    """
    words = [f"{option} {shlex.quote(value)}" for option, values in given.items() for value in values or []]
    words += [flag for flag, on in flags.items() if on] + ([f"--seed {seed}"] if seed else [])
    return f"`{' '.join(['air-recsys bench', name, *words])}`"
