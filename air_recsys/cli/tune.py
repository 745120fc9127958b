"""The command tune: settings of AIR for a table of ratings, searched on a part of it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from air_recsys.cli import options, paths
from air_recsys.exceptions import ParameterError

if TYPE_CHECKING:
    from air_recsys.evaluation.tuning import Tuning

_SHOWN = 5
_WARNING = (
    "this is a validation value, the best of many on the same ratings, so it flatters: measure the error to report on "
    "test ratings that were not in this table"
)


class Metric(StrEnum):
    """The measures of `air_recsys.evaluation.tuning.METRICS` by name."""

    RMSE = "rmse"
    MAE = "mae"
    AVERAGE_PRECISION = "average_precision"
    AUROC = "auroc"
    NDCG_AT_K = "ndcg_at_k"


def tune(
    file: Annotated[
        Path,
        typer.Argument(help="Training data only: CSV, TSV or Parquet with one rating per row, or one user per row."),
    ],
    *,
    preset: options.PresetName = options.Preset.RATINGS,
    trials: Annotated[int, typer.Option(min=1, help="Total number of trials, earlier calls included.")] = 50,
    study: Annotated[
        str | None,
        typer.Option(callback=paths.kept, help="File that keeps the study, to go on later; or a database's address."),
    ] = None,
    metric: Annotated[Metric, typer.Option(help="What to optimise on the validation part.")] = Metric.RMSE,
    validation_fraction: Annotated[float, typer.Option(help="Share of the ratings to hold out.")] = 0.1,
    space: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=DOMAIN", help="LOW:HIGH, LOW:HIGH:log, or choices A,B,C; may be repeated."),
    ] = None,
    settings: options.Settings = None,
    seed: options.Seed = 0,
    timeout: Annotated[float | None, typer.Option(help="Seconds after which no further trial starts.")] = None,
    table: options.Ratings,
    device: options.Device = "auto",
    save: Annotated[
        Path | None,
        typer.Option(callback=paths.as_model, help="Fit the best settings on the whole table and write it."),
    ] = None,
    json_file: options.JsonFile = None,
) -> None:
    """Search settings of AIR for a table of ratings; an interrupted search continues with the same --study."""
    from air_recsys.evaluation.tuning import tune as tune_air
    from air_recsys.evaluation.tuning.storage import storage_url

    if study is not None:
        storage_url(study)
    domains, given = parse_space(space), options.parse_settings(settings)
    for name in domains.keys() & given:
        raise ParameterError(f"expected --space or --set for {name}, found both")
    domains |= {name: [value] for name, value in given.items()}
    data = table.read(file)
    typer.echo(repr(data))
    tuning = tune_air(
        data,
        preset=preset.value,
        space=domains,
        n_trials=trials,
        metric=metric.value,
        validation_fraction=validation_fraction,
        storage=study,
        timeout=timeout,
        random_state=seed,
        device=device,
        verbose=True,
    )
    _show(tuning)
    options.write_figures(json_file, _as_json(tuning))
    if save is not None:
        typer.echo(f"wrote {tuning.model(verbose=True).fit(data).save(save)}, fitted on all {data.n_ratings} ratings")


def parse_space(texts: list[str] | None) -> dict[str, Any]:
    """Turn NAME=DOMAIN texts into what `tune` takes as its space."""
    parsed = {}
    for text in texts or []:
        name, sign, domain = text.partition("=")
        if not sign or not name or not domain:
            raise ParameterError(f"--space expects NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=A,B,C, found {text!r}")
        if name in parsed:
            typer.echo(f"note: {name} stands twice, and the last one counts", err=True)
        separator = ":" if ":" in domain else ","
        values = [options.parse_values([f"{name}={value.strip()}"])[name] for value in domain.split(separator)]
        parsed[name] = tuple(values) if ":" in domain else values
    return parsed


def _show(tuning: Tuning) -> None:
    from air_recsys.evaluation.results import ResultTable

    best = tuning.trials().head(_SHOWN)
    title = f"The best {len(best)} trials" if len(best) > 1 else "The trial"
    rows = [{str(name): value for name, value in row.items()} for row in best.to_dict("records")]
    typer.echo(ResultTable(title, tuning.protocol, rows).text())
    typer.echo(f"best validation {tuning.metric} {tuning.best_value:.6g} with")
    for name, value in tuning.best_params.items():
        typer.echo(f"  --set {name}={value}")
    typer.echo(f"* {_WARNING}")


def _as_json(tuning: Tuning) -> dict[str, Any]:
    told = {name: getattr(tuning, name) for name in ("protocol", "metric", "preset", "best_value", "best_params")}
    return told | {"trials": tuning.trials().to_dict("records"), "notes": [_WARNING]}
