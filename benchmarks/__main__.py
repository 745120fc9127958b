"""The benchmarks: ``python -m benchmarks NAME`` in a clone of the repository."""

from __future__ import annotations

import sys

from air_recsys.cli import paths
from air_recsys.cli.app import run
from benchmarks.commands import add_workshop

app = paths.App(
    help="Measurements behind every figure of the documentation.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
add_workshop(app)

if __name__ == "__main__":
    sys.exit(run(commands=app))
