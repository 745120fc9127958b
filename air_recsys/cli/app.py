"""The application: its commands, and errors as one line.

Modules of commands import what they work with when a command runs, so that help and errors of the command line come at
once.
"""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from air_recsys import __version__
from air_recsys.cli import data, demo, evaluate, explain, inpaint, models, report, score, tune
from air_recsys.exceptions import AirRecsysError

try:
    from typer.exceptions import TyperException
except ImportError:  # typer before 0.28 raises click's errors
    from click import ClickException as TyperException

app = typer.Typer(
    help="Collaborative filtering that learns which users and which items are alike.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("train")(models.train)
app.command("tune")(tune.tune)
app.command("evaluate")(evaluate.evaluate)
app.command("recommend")(models.recommend)
app.command("score")(score.score)
app.command("similar")(models.similar)
app.command("explain")(explain.explain)
app.command("graph")(models.graph)
app.command("report")(report.report)
app.command("inpaint")(inpaint.inpaint)
try:
    from air_recsys.cli.workshop import add_workshop
except ModuleNotFoundError as error:
    if not (error.name or "").startswith(("air_recsys.benchmarks", "air_recsys.cli.workshop")):
        raise
else:  # all commands above work without the benchmarks
    add_workshop(app)
app.add_typer(data.app, name="datasets")


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"air-recsys {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Collaborative filtering that learns which users and which items are alike."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; every expected failure ends with one line on the standard error and a status > 0."""
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    try:
        status = app(arguments, standalone_mode=False)
    except TyperException as error:
        sys.exit(_fail(_message(error), 2))
    except typer.Abort:
        sys.exit(_fail("aborted", 130))
    except AirRecsysError as error:
        sys.exit(_fail(str(error), 1))
    except OSError as error:
        sys.exit(_fail(f"{error.strerror}: {error.filename}" if error.filename else str(error), 1))
    sys.exit(status if isinstance(status, int) else 0)


def _message(error: Exception) -> str:
    text = getattr(error, "format_message", error.__str__)()
    return " ".join(text.split()) or "see --help"


def _fail(message: str, status: int) -> int:
    sys.stderr.write(f"error: {message}\n")
    return status
