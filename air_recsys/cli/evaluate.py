"""The command evaluate: AIR beside its baselines, on data of one's own or on a data set."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from air_recsys.cli import options
from air_recsys.exceptions import ParameterError

if TYPE_CHECKING:
    from air_recsys.evaluation.folds import Fold
    from air_recsys.interactions import Interactions

_PREDEFINED = ("u1", "u2", "u3", "u4", "u5")


class DataSet(StrEnum):
    """Rating data with a loader."""

    ML_100K = "movielens-100k"
    ML_1M = "movielens-1m"


def evaluate(
    file: Annotated[Path | None, typer.Argument(help="CSV, TSV or Parquet of your own.")] = None,
    dataset: Annotated[DataSet | None, typer.Option(help="A data set instead of a file.")] = None,
    data: options.DataFolder = None,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Cross-validate; for movielens-100k the predefined u1 .. u5.")
    ] = None,
    test_fraction: Annotated[float, typer.Option(help="Without --folds: the share held out at random.")] = 0.1,
    peers: Annotated[str, typer.Option(help="Also run, of Surprise: svd,svdpp,knnbaseline.")] = "",
    preset: options.PresetName = options.Preset.RATINGS,
    user: options.UserColumn = "user",
    item: options.ItemColumn = "item",
    rating: options.RatingColumn = "rating",
    sep: options.Separator = None,
    settings: options.Settings = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    json_file: options.JsonFile = None,
) -> None:
    """Print the test error of AIR beside its baselines, on your data or a data set."""
    from air_recsys.datasets import data_root, load_movielens_fold
    from air_recsys.evaluation.folds import Fold, evaluate_on
    from air_recsys.models import AIR

    options.check_folder_of(json_file)
    if (file is None) == (dataset is None):
        raise ParameterError("expected either a file or --dataset")
    chosen = options.parse_settings(settings)
    air = AIR.of_preset(preset.value, **{"random_state": seed, "device": device} | chosen)
    if dataset is DataSet.ML_100K and folds == 5:
        parts = [Fold(name, *load_movielens_fold(data_root(data), name)) for name in _PREDEFINED]
        origin = "MovieLens-100K, predefined folds u1 .. u5"
    else:
        ratings = _ratings(file, dataset, data, user=user, item=item, rating=rating, sep=sep)
        parts = _folds(ratings, folds, test_fraction, seed)
        how = f"{folds} random folds" if folds else f"random hold-out of {test_fraction:.0%}"
        origin = f"{dataset.value if dataset else file.name if file else ''}: {ratings!r}, {how}, seed {seed}"
    protocol = f"{origin}; AIR.for_{preset.value}({', '.join(f'{k}={v}' for k, v in chosen.items())}), seed {seed}"
    means, single = evaluate_on(parts, air, peers=options.parse_names(peers), seed=seed, protocol=protocol)
    options.show(means)
    if json_file is not None:
        means.to_json(json_file, single=single)


def _ratings(
    file: Path | None,
    dataset: DataSet | None,
    data: Path | None,
    *,
    user: str,
    item: str,
    rating: str,
    sep: str | None,
) -> Interactions:
    from air_recsys.datasets import read_ratings

    if dataset is None:
        assert file is not None
        return read_ratings(file, user=user, item=item, rating=rating, sep=sep)
    return load_dataset(dataset, data)


def load_dataset(dataset: DataSet, data: Path | None) -> Interactions:
    """Return all ratings of a data set."""
    from air_recsys.datasets import data_root, load_movielens

    return load_movielens(data_root(data), "100k" if dataset is DataSet.ML_100K else "1m")


def _folds(ratings: Interactions, folds: int | None, test_fraction: float, seed: int) -> list[Fold]:
    from air_recsys.evaluation.folds import cross_validation_folds, holdout_folds

    if folds is None:
        return holdout_folds(ratings, test_fraction, seed)
    return cross_validation_folds(ratings, folds, seed)
