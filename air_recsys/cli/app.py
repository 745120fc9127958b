"""The application: its commands, and errors as one line."""

from __future__ import annotations

import logging
import sys

import typer

from air_recsys.cli import (
    accuracy_dti,
    accuracy_page,
    accuracy_ranking,
    accuracy_ratings,
    bench,
    data,
    demo,
    explain,
    faults,
    inpaint,
    models,
    report,
    reproduce,
    score,
    speed,
    tune,
)
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
app.command("evaluate")(bench.evaluate)
app.command("recommend")(models.recommend)
app.command("score")(score.score)
app.command("similar")(models.similar)
app.command("explain")(explain.explain)
app.command("graph")(models.graph)
app.command("report")(report.report)
app.command("inpaint")(inpaint.inpaint)
app.add_typer(reproduce.reproduce_app, name="reproduce")
bench.bench_app.command("speed")(speed.speed)
bench.bench_app.command("scale")(speed.scale)
bench.bench_app.command("ratings")(accuracy_ratings.ratings)
bench.bench_app.command("dti")(accuracy_dti.dti)
bench.bench_app.command("ranking")(accuracy_ranking.ranking)
bench.bench_app.command("accuracy-page")(accuracy_page.page)
bench.bench_app.command("faults")(faults.faults)
app.add_typer(bench.bench_app, name="bench")
app.add_typer(data.app, name="datasets")


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
