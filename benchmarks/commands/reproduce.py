"""`air-recsys reproduce`: the paper's tables, figures and theorems, and our own settings on the same data."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from air_recsys.cli import options, paths
from air_recsys.exceptions import DataFileError, ParameterError
from benchmarks.figure_titles import FIGURE_TITLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from air_recsys.evaluation.results import ResultTable
    from benchmarks.runs import Options

reproduce_app = paths.App(help="Measure again what the paper prints.", no_args_is_help=True)

Out = Annotated[Path, typer.Option("--out", help="Folder of figures and of single runs, which are never repeated.")]
Quick = Annotated[bool, typer.Option("--quick", help="Run only a few epochs, to check that everything runs.")]
Seeds = Annotated[
    int | None, typer.Option(min=1, help="Run this many seeds, from --first-seed on, instead of the recipe's.")
]
FirstSeed = Annotated[int, typer.Option(min=0, help="With --seeds: the first of them.")]
Jobs = Annotated[int, typer.Option(min=1, help="Runs side by side, each on one thread.")]
ValidationShare = Annotated[
    float,
    typer.Option(
        "--validation",
        help="Test on this share of the observed entries instead of the hidden ones, to choose settings.",
    ),
]
Systems = Annotated[str, typer.Option(help="Only these of the recipe's systems, separated by commas.")]
_OUT = Path("reproduction")


@reproduce_app.command("table1")
def table_1(
    rows: Annotated[str, typer.Option(help="Only these recipes, separated by commas, such as ic,gpcr.")] = "",
    systems: Systems = "",
    seeds: Seeds = None,
    first_seed: FirstSeed = 0,
    validation: ValidationShare = 0.0,
    settings: Annotated[
        list[str] | None, options.pairs("--set", "A parameter of the chosen systems; may be repeated.")
    ] = None,
    data: options.DataFolder = None,
    out: Out = _OUT,
    quick: Quick = False,
    jobs: Jobs = 1,
    device: options.Device = "auto",
    json_file: options.JsonFile = None,
) -> None:
    """Table 1: NMAE of every system on pictures, Syn-Netflix and drug-target data."""
    from benchmarks.table1 import pivot, table1

    how = _options(data, out, quick, jobs, device, validation)
    means, single = table1(
        how,
        rows=options.parse_names(rows),
        systems=options.parse_names(systems),
        seeds=seeds,
        first_seed=first_seed,
        overrides=options.parse_values(settings),
    )
    options.publish_means(means, single, out / "table1.json", json_file)
    typer.echo("\n" + pivot(means.rows).to_string(na_rep="-"))


@reproduce_app.command("untouched")
def untouched_presets(
    rows: Annotated[str, typer.Option(help="Only these recipes, separated by commas, such as ic,gpcr.")] = "",
    seeds: Seeds = None,
    first_seed: Annotated[int, typer.Option(min=0, help="With --seeds: the first of them.")] = 20,
    data: options.DataFolder = None,
    out: Out = _OUT,
    quick: Quick = False,
    jobs: Jobs = 1,
    device: options.Device = "auto",
    json_file: options.JsonFile = None,
) -> None:
    """Presets without any parameter, on pictures, Syn-Netflix, drug-target data and made groups."""
    from benchmarks.untouched import untouched

    how = _options(data, out, quick, jobs, device)
    means, single = untouched(how, rows=options.parse_names(rows), seeds=seeds, first_seed=first_seed)
    options.publish_means(means, single, out / "untouched.json", json_file)


@reproduce_app.command("table2")
def table_2(
    out: Out = _OUT, quick: Quick = False, device: options.Device = "auto", json_file: options.JsonFile = None
) -> None:
    """Table 2: what total variation and the learned graphs add to the time of a step."""
    from benchmarks.table2 import table2

    _folder(out)
    options.publish_means(table2(device=device, quick=quick), None, out / "table2.json", json_file)


def _figure_command(name: str) -> Callable[..., None]:
    def command(
        seeds: Seeds = None,
        data: options.DataFolder = None,
        out: Out = _OUT,
        quick: Quick = False,
        jobs: Jobs = 1,
        device: options.Device = "auto",
        json_file: options.JsonFile = None,
    ) -> None:
        from air_recsys.evaluation.results import write_json
        from benchmarks.figures import reproduce_figure

        how = _options(data, out, quick, jobs, device)
        drawn = reproduce_figure(name, how, seeds=seeds)
        _publish_drawn(name, drawn.report, drawn.figure, out, json_file)
        if drawn.curves:
            write_json(out / f"{name}-curves.json", drawn.curves)

    command.__doc__ = FIGURE_TITLES[name] + "."
    return command


for _name in FIGURE_TITLES:
    reproduce_app.command(_name)(_figure_command(_name))


@reproduce_app.command("theorem1")
def theorem_1(
    out: Out = _OUT, quick: Quick = False, seed: options.Seed = 0, json_file: options.JsonFile = None
) -> None:
    """Theorem 1: how the singular values move, measured against the formula."""
    from benchmarks.plots.theorems import plot_theorem1
    from benchmarks.theorem1 import theorem1

    _folder(out)
    report, curves = theorem1(seed=seed, quick=quick)
    _publish_drawn("theorem1", report, plot_theorem1(curves), out, json_file)


@reproduce_app.command("theorem2")
def theorem_2(
    data: options.DataFolder = None,
    out: Out = _OUT,
    quick: Quick = False,
    seed: options.Seed = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Theorem 2: how the learned graph moves, measured against bounds; with data also on Syn-Netflix."""
    from air_recsys.data.sets.registry import DATA_VARIABLE
    from air_recsys.datasets import data_root
    from benchmarks.plots.theorems import plot_theorem2
    from benchmarks.theorem2 import theorem2

    try:
        root = data_root(data)
    except DataFileError:
        if data is not None or os.environ.get(DATA_VARIABLE):
            raise
        root = None
    _folder(out)
    report, curves = theorem2(root, seed=seed, quick=quick)
    _publish_drawn("theorem2", report, plot_theorem2(curves), out, json_file)


@reproduce_app.command("all")
def everything(
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds of Table 1 instead of the recipes'.")] = None,
    data: options.DataFolder = None,
    out: Out = _OUT,
    quick: Quick = False,
    jobs: Jobs = 1,
    device: options.Device = "auto",
) -> None:
    """Run every table, figure and theorem, into one folder; an interrupted run goes on where it was."""
    _options(data, out, quick, jobs, device)
    start = time.perf_counter()
    common = {"data": data, "out": out, "quick": quick, "jobs": jobs, "device": device, "json_file": None}
    table_1(rows="", systems="", seeds=seeds, first_seed=0, validation=0.0, settings=None, **common)
    for name in FIGURE_TITLES:
        _figure_command(name)(seeds=None, **common)
    table_2(out=out, quick=quick, device=device, json_file=None)
    theorem_1(out=out, quick=quick, seed=0, json_file=None)
    theorem_2(data=data, out=out, quick=quick, seed=0, json_file=None)
    typer.echo(f"everything took {(time.perf_counter() - start) / 60:.1f} minutes; results in {out}")


@reproduce_app.command("page")
def page(
    results: Annotated[Path, typer.Argument(help="Folder that the other commands wrote their results to.")],
    target: Annotated[Path, typer.Argument(callback=paths.writable, help="The Markdown file to write.")],
    figures: Annotated[str, typer.Option(help="Folder of the figures as written in the page.")] = "images",
    column: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            callback=paths.writable,
            help="Also fill the column 'preset, untouched' of the table in this Markdown file.",
        ),
    ] = None,
) -> None:
    """Write the reproduction page of the docs from the result files."""
    from benchmarks.page import read_results, reproduction_page, result_file
    from benchmarks.untouched_column import with_untouched_column

    shown = [path.stem for path in (target.parent / figures).glob("*.png")]
    pages = {target: reproduction_page(results, figures, shown)}
    if column is not None:
        source = results / "untouched.json"
        with result_file(source):
            pages[column] = with_untouched_column(column.read_text(encoding="utf-8"), read_results(source))
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
        typer.echo(f"wrote {path}")


_OURS = {
    "syn-netflix": "Our settings on Syn-Netflix: NMAE of AIR and DMF, and whether the learned graphs find the groups.",
    "dti-completion": "Our settings on drug-target data IC and GPCR: AIR with sparse and dense graphs, and DMF.",
}


def _our_command(name: str) -> Callable[..., None]:
    def command(
        data: options.DataFolder = None,
        seeds: Seeds = None,
        first_seed: FirstSeed = 0,
        validation: ValidationShare = 0.0,
        systems: Systems = "",
        settings: options.Settings = None,
        device: options.Device = "auto",
        json_file: options.JsonFile = None,
    ) -> None:
        from air_recsys.datasets import data_root
        from benchmarks.reproduce import reproduce

        means, single = reproduce(
            name,
            data_root(data),
            seeds=seeds,
            first_seed=first_seed,
            validation=validation,
            overrides=options.parse_settings(settings),
            names=options.parse_names(systems),
            device=device,
        )
        options.publish_means(means, single, json_file)

    command.__doc__ = _OURS[name]
    return command


for _name in _OURS:
    reproduce_app.command(_name)(_our_command(_name))


def _publish_drawn(name: str, report: ResultTable, figure: Figure, out: Path, json_file: Path | None) -> None:
    from benchmarks.figures import save_figure

    for path in save_figure(figure, out, name):
        typer.echo(f"wrote {path}")
    options.publish_means(report, None, out / f"{name}.json", json_file)


def _options(data: Path | None, out: Path, quick: bool, jobs: int, device: str, validation: float = 0.0) -> Options:
    from air_recsys.datasets import data_root
    from air_recsys.nn.devices import resolve_device
    from benchmarks.runs import Options

    if device != "auto":  # which is always there
        resolve_device(device)
    try:
        root = data_root(data)
    except DataFileError as error:
        raise DataFileError(f"{error}; --data names it; theorem1, theorem2 and table2 run without data") from None
    how = Options(root, out / "runs", quick=quick, validation=validation, device=device, jobs=jobs)
    _folder(out)
    return how


def _folder(out: Path) -> None:
    """Make the folder of the results, or say why it cannot be written to, before any work."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ParameterError(f"--out expects a folder, found the file {out}") from None
    except OSError as error:
        raise ParameterError(f"--out expects a folder that can be made, found {out}: {error.strerror}") from None
    if not os.access(out, os.W_OK):
        raise ParameterError(f"--out expects a folder that can be written to, found {out}")
