"""Commands of the workshop, called within the process."""

from collections.abc import Callable
from typing import Any

import typer
from typer.testing import CliRunner


def invoked(commands: dict[str, Callable[..., Any]], *arguments: object) -> Any:
    """Run one of some commands and return how it ended; an error that is none of the command line is raised."""
    app = typer.Typer()
    for name, command in commands.items():
        app.command(name)(command)
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
