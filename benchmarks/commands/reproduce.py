"""Commands of the paper: ``paper WHAT``, and the reports from its results."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from air_recsys.cli import options
from air_recsys.exceptions import DataFileError, ParameterError

if TYPE_CHECKING:
    from air_recsys.evaluation.results import ResultTable
    from benchmarks.paper.runs import Options

_TABLES = ("table1", "ours", "untouched")
_FREE = ("table2", "theorem1", "theorem2")  # of data
_FIGURES = (
    *("fig-depth", "fig-heatmaps", "fig-fixed-laplacian", "fig-trajectories"),
    *("fig-training-nmae", "fig-inpainting", "fig-depth-width"),
)
_ALL = ("table1", *_FIGURES, *_FREE)
NAMES = ("all", *_TABLES, *_FIGURES, *_FREE)


def paper(
    what: Annotated[str, typer.Argument(metavar="WHAT", help=f"One of {', '.join(NAMES)}.")],
    rows: Annotated[str, typer.Option(help="Of a table: only these rows, separated by commas, such as ic,gpcr.")] = "",
    systems: Annotated[str, typer.Option(help="Of a table: only these systems, separated by commas.")] = "",
    seeds: Annotated[str, typer.Option(help="Instead of those of the recipes, such as 0..4,7.")] = "",
    validation: Annotated[
        float, typer.Option(help="Ask for this share of the observed entries instead of the hidden ones.")
    ] = 0.0,
    settings: Annotated[
        list[str] | None, options.pairs("--set", "A parameter of the chosen systems; may be repeated.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few epochs, to check that everything runs.")] = False,
    data: options.DataFolder = None,
    out: Annotated[Path, typer.Option(help="Folder of results and of single runs, which are never repeated.")] = Path(
        "reproduction"
    ),
    jobs: Annotated[int, typer.Option(min=1, help="Runs side by side, each on one thread.")] = 1,
    device: options.Device = "auto",
    json_file: options.JsonFile = None,
) -> None:
    """What the paper prints, our settings on the same data, and presets without any parameter."""
    from air_recsys.nn.devices import resolve_device
    from air_recsys.storage.validation import check_choice
    from benchmarks.paper.recipes import parse_seeds
    from benchmarks.paper.runs import Options

    check_choice("WHAT", what, NAMES)
    given = {"--rows": rows, "--systems": systems, "--seeds": seeds, "--validation": validation, "--set": settings}
    options.refuse_unread(what, {name: bool(value) and name not in _read_by(what) for name, value in given.items()})
    options.refuse_unread(what, {"--json": what == "all" and json_file is not None})
    chosen: dict[str, Any] = {"rows": options.parse_names(rows), "systems": options.parse_names(systems)}
    chosen |= {"seeds": parse_seeds(seeds) if seeds else None, "overrides": options.parse_values(settings)}
    if device != "auto":  # which is always there
        resolve_device(device)
    root = _root(what, data)
    how = Options(root or Path(), out / "runs", quick=quick, validation=validation, device=device, jobs=jobs)
    _check_folder(out)
    start = time.perf_counter()
    for name in _ALL if what == "all" else (what,):
        _measure(name, how, root, chosen, (out / f"{name}.json", json_file))
    if what == "all":
        typer.echo(f"everything took {(time.perf_counter() - start) / 60:.1f} minutes; results in {out}")


def reports() -> None:
    """Write the reports of the paper and of accuracy from the result files in this clone."""
    from benchmarks.paper.pages import REPORTS, RESULTS, accuracy_page, reproduction_page

    shown = [path.stem for path in (REPORTS / "images").glob("*.png")]
    written = {
        "reproduction.md": reproduction_page(RESULTS / "reproduction", "images", shown),
        "accuracy-tables.md": accuracy_page(sorted(RESULTS.glob("accuracy-*.json"))),
    }
    for name, text in written.items():
        (REPORTS / name).write_text(text, encoding="utf-8")
        typer.echo(f"wrote {REPORTS / name}")


COMMANDS: dict[str, Callable[..., None]] = {"paper": paper, "reports": reports}


def _read_by(what: str) -> tuple[str, ...]:
    """The options that a table, figure or theorem reads beside those of all."""
    if what in ("table1", "ours"):
        return "--rows", "--systems", "--seeds", "--validation", "--set"
    if what == "untouched":
        return "--rows", "--systems", "--seeds"
    return () if what in ("all", "table2") else ("--seeds",)


def _root(what: str, data: Path | None) -> Path | None:
    """The folder of the data; None where it is not needed, or not there and not asked for."""
    from air_recsys.data.sets.registry import DATA_VARIABLE
    from air_recsys.datasets import data_root

    if what in ("table2", "theorem1"):
        return None
    try:
        return data_root(data)
    except DataFileError as error:
        if what != "theorem2":
            raise DataFileError(f"{error}; --data names it; theorem1, theorem2 and table2 run without data") from None
        if data is not None or os.environ.get(DATA_VARIABLE):
            raise
        return None


def _check_folder(out: Path) -> None:
    """Make the folder of the results, or say why it cannot be written to, before any work."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ParameterError(f"--out expects a folder, found the file {out}") from None
    except OSError as error:
        raise ParameterError(f"--out expects a folder that can be made, found {out}: {error.strerror}") from None
    if not os.access(out, os.W_OK):
        raise ParameterError(f"--out expects a folder that can be written to, found {out}")


def _measure(
    name: str, how: Options, root: Path | None, chosen: dict[str, Any], files: tuple[Path, Path | None]
) -> None:
    """Measure one table, figure or theorem, print it, and write it to the files."""
    if name in _TABLES:
        from benchmarks.paper.tables import pivot, table_of

        means, single = table_of(name, how, **chosen)
        options.publish_means(means, single, *files)
        if name != "untouched":
            typer.echo("\n" + pivot(means.rows).to_string(na_rep="-"))
    elif name == "table2":
        from benchmarks.paper.steps import table2

        options.publish_means(table2(device=how.device, quick=how.quick), None, *files)
    elif name in _FIGURES:
        _publish_figure(name, how, chosen["seeds"], files)
    else:
        options.publish_means(_theorem(name, how, root, chosen["seeds"]), None, *files)


def _theorem(name: str, how: Options, root: Path | None, seeds: list[int] | None) -> ResultTable:
    from benchmarks.paper.theorem1 import theorem1
    from benchmarks.paper.theorem2 import theorem2

    if seeds is not None and len(seeds) != 1:
        raise ParameterError(f"--seeds expects one seed for {name}, found {len(seeds)}")
    seed = 0 if seeds is None else seeds[0]
    return theorem1(seed=seed, quick=how.quick) if name == "theorem1" else theorem2(root, seed=seed, quick=how.quick)


def _publish_figure(name: str, how: Options, seeds: list[int] | None, files: tuple[Path, Path | None]) -> None:
    from air_recsys.evaluation.results import write_json
    from benchmarks.paper.figures import figure_of, save_figure

    drawn = figure_of(name, how, seeds=seeds)
    for path in save_figure(drawn.figure, files[0].parent, name):
        typer.echo(f"wrote {path}")
    options.publish_means(drawn.report, None, *files)
    if drawn.curves:
        write_json(files[0].with_name(f"{name}-curves.json"), drawn.curves)
