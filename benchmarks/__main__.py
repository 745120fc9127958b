"""The benchmarks: ``python -m benchmarks NAME`` in a clone of the repository."""

from __future__ import annotations

import sys
from pathlib import Path

from air_recsys.cli import paths
from air_recsys.cli.app import run
from air_recsys.exceptions import AirRecsysError
from benchmarks.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[1]

app = paths.App(
    help="Measurements behind the figures of the documentation.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def in_a_clone() -> None:
    """Measurements behind the figures of the documentation."""
    missing = [name for name in ("air_recsys", "tests", "constraints.txt") if not (ROOT / name).exists()]
    if missing:
        raise AirRecsysError(
            f"the benchmarks run in a clone of the repository: expected {', '.join(missing)} in {ROOT}, found none"
        )


for name, command in COMMANDS.items():
    app.command(name)(command)

if __name__ == "__main__":
    sys.path.append(str(ROOT / "tests"))  # made films, browsers and attacks are those of the tests
    sys.exit(run(commands=app))
