"""The application: its commands, and errors as one line.

Modules of commands import what they work with when a command runs, so that help and errors of the command line come at
once.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from air_recsys import __version__
from air_recsys.cli import (
    compare,
    data,
    dti,
    evaluate,
    inpaint,
    models,
    paths,
    predict,
    report,
    tune,
)
from air_recsys.exceptions import AirRecsysError

try:
    from typer.exceptions import TyperException
except ImportError:  # typer before 0.28 raises click's errors
    from click import ClickException as TyperException

app = paths.App(
    help="Collaborative filtering that learns which users and which items are alike.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (
    *(report.demo, models.train, tune.tune, evaluate.evaluate, compare.compare, models.recommend, predict.predict),
    *(predict.score, models.similar, predict.explain, models.graph, report.report, report.serve, report.compact),
    inpaint.inpaint,
):
    app.command()(command)
app.add_typer(data.app, name="datasets")
app.add_typer(dti.app, name="dti")


@app.command("bench", hidden=True, context_settings={"ignore_unknown_options": True})
@app.command("reproduce", hidden=True, context_settings={"ignore_unknown_options": True})
def moved(words: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Say where the benchmarks are."""
    name = (words or ["NAME"])[0]
    raise AirRecsysError(f"the benchmarks run in a clone of the repository: python -m benchmarks {name}")


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


def run(arguments: list[str] | None = None, commands: typer.Typer | None = None) -> int:
    """Run the command line and return its status; every expected failure is one line on the standard error."""
    if sys.stdout is None:
        return _fail("the standard output is closed", 1)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # ids that the locale cannot show
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115, for the rest of the process
    if not os.environ.get("COLUMNS", "1").strip("0"):
        del os.environ["COLUMNS"]  # help in no columns would be empty
    out: Any = _Stream(sys.stdout)
    errors: Any = _Stream(sys.stderr)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            logging.basicConfig(format="%(message)s", stream=sys.stderr)
            warnings.showwarning = _warn
            status = (commands or app)(arguments, standalone_mode=False)
            out.flush()
    except TyperException as error:
        return _fail(_message(error), 2)
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except AirRecsysError as error:
        return _fail(str(error), 1)
    except ModuleNotFoundError as error:
        return _fail(f"the module {error.name} is not installed: pip check names what air-recsys lacks", 1)
    except OSError as error:
        return _fail(f"{error.strerror}: {error.filename}" if error.filename else str(error), 1)
    except Exception as error:
        if _was_interrupted(error):
            raise KeyboardInterrupt from error
        raise
    if out.failed:
        return _fail(f"cannot write to the standard output: {out.failed.strerror}", 1)
    return status if isinstance(status, int) else 0


class _Stream:
    """A standard stream: where it fails, as a reader has gone, the command goes on without it and writes its files."""

    failed: OSError | None = None

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        return self._try(self._stream.write, text)

    def flush(self) -> None:
        self._try(self._stream.flush)

    def _try(self, act: Any, *arguments: str) -> Any:
        try:
            return act(*arguments)
        except OSError as error:
            self.failed = self.failed or error
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())


def _warn(message: Warning | str, category: type[Warning], *place: Any, **how: Any) -> None:
    """Write a warning as one line, without the place in the code that it comes from."""
    text = f"warning: {' '.join(str(message).split())}\n"
    if "tqdm" in sys.modules:  # there may be a bar
        sys.modules["tqdm"].tqdm.write(text, file=sys.stderr, end="")
    else:
        sys.stderr.write(text)


def _fail(message: str, status: int) -> int:
    """Write the line of a failure to the standard error, and return its status."""
    sys.stderr.write(f"error: {message}\n")
    return status


def _message(error: Exception) -> str:
    text = getattr(error, "format_message", error.__str__)()
    return " ".join(text.split()) or "see --help"


def _was_interrupted(error: BaseException | None) -> bool:
    """Return whether Ctrl-C is behind an error: compiled modules turn it into errors of their import."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
