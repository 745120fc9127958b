"""The commands of ``python -m benchmarks``: one a file of ``benchmarks/experiments``, and the reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from air_recsys.cli import options
from air_recsys.exceptions import ParameterError
from benchmarks.harness import EXPERIMENTS, Case, n_faults, read_cases

Threads = Annotated[int, typer.Option(min=1, help="Threads of the process that is measured.")]


def command_of(name: str) -> Callable[..., None]:
    """The command that runs cases of a benchmark and prints their tables, without those of single runs."""
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
        wanted = [case.changed(changes) for case in _chosen(cases, chosen or default)]
        roots = [case.folder(data) for case in wanted]
        tables = []
        for case, root in zip(wanted, roots, strict=True):
            found = case.tables(root, seed, threads)
            tables += found
            for table in found:
                if not table.title.endswith("single runs"):
                    typer.echo(table.text() + "\n")
            # All so far: the next ones may take hours.
            options.write_figures(json_file, {"reports": [table.content() for table in tables]})
        if name == "faults" and any(map(n_faults, tables)):
            raise typer.Exit(1)

    parameters = dict.fromkeys(name for case in cases.values() for name in case.parameters)
    command.__doc__ = (
        f"{about}\n\nCases: {', '.join(cases)}; by default {', '.join(default)}, and all by the word all. "
        f"Parameters: {', '.join(parameters)}."
    )
    return command


def _chosen(cases: dict[str, Case], names: list[str]) -> list[Case]:
    names = list(cases) if names == ["all"] else names
    if unknown := [name for name in names if name not in cases]:
        raise ParameterError(f"expected cases of {', '.join(cases)}, found {unknown[0]!r}")
    return [cases[name] for name in names]


def reports() -> None:
    """Write the reports of the paper and of accuracy from the result files in this clone."""
    from benchmarks.paper.pages import REPORTS, written_reports

    for name, text in written_reports().items():
        (REPORTS / name).write_text(text, encoding="utf-8")
        typer.echo(f"wrote {REPORTS / name}")


COMMANDS: dict[str, Callable[..., None]] = {
    **{path.stem: command_of(path.stem) for path in sorted(EXPERIMENTS.glob("*.toml"))},
    "reports": reports,
}
"""The commands by name."""
