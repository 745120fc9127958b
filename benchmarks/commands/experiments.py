"""The commands whose cases are told in TOML files of ``benchmarks/experiments``, one command a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from air_recsys.cli import options
from air_recsys.exceptions import ParameterError
from benchmarks.harness import EXPERIMENTS, Case, n_faults, read_cases

Threads = Annotated[int, typer.Option(min=1, help="Threads of the process that is measured.")]


def command_of(name: str) -> Callable[..., None]:
    """The command that runs cases of a benchmark and prints their tables."""
    about, default, cases = read_cases(name)

    def command(
        chosen: Annotated[list[str] | None, typer.Argument(metavar="[CASE]...", show_default=False)] = None,
        settings: Annotated[
            list[str] | None, options.pairs("--set", "A parameter of the case, or of its model; may be repeated.")
        ] = None,
        data: options.DataFolder = None,
        seed: options.Seed = 0,
        threads: Threads = 1,
        json_file: options.JsonFile = None,
    ) -> None:
        changes = options.parse_values(settings)
        wanted = [case.changed(changes) for case in _chosen(cases, chosen or [default])]
        roots = [case.folder(data) for case in wanted]
        tables = []
        for case, root in zip(wanted, roots, strict=True):
            found = case.tables(root, seed, threads)
            tables += found
            options.publish(tables, json_file, shown=found)
        if name == "faults" and any(map(n_faults, tables)):
            raise typer.Exit(1)

    command.__doc__ = f"{about}\n\nCases: {', '.join(cases)}; by default {default}, and all by the word all."
    return command


def _chosen(cases: dict[str, Case], names: list[str]) -> list[Case]:
    names = list(cases) if names == ["all"] else names
    if unknown := [name for name in names if name not in cases]:
        raise ParameterError(f"expected cases of {', '.join(cases)}, found {unknown[0]!r}")
    return [cases[name] for name in names]


COMMANDS = {path.stem: command_of(path.stem) for path in sorted(EXPERIMENTS.glob("*.toml"))}
"""The commands by name."""
