"""The command evaluate: AIR beside its baselines, on data of one's own or on a data set."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from air_recsys.cli import options
from air_recsys.exceptions import ParameterError

if TYPE_CHECKING:
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
    from air_recsys.datasets import data_root, load_movielens_fold, read_ratings
    from air_recsys.evaluation.folds import Fold, cross_validation_folds, evaluate_on, holdout_folds
    from air_recsys.models import AIR

    if (file is None) == (dataset is None):
        raise ParameterError("expected either a file or --dataset")
    chosen = options.parse_settings(settings)
    air = AIR.of_preset(preset.value, **{"random_state": seed, "device": device} | chosen)
    if dataset is DataSet.ML_100K and folds == 5:
        splits = [Fold(name, *load_movielens_fold(data_root(data), name)) for name in _PREDEFINED]
        origin = "MovieLens-100K, predefined folds u1 .. u5"
    else:
        if dataset is not None:
            name, ratings = dataset.value, load_dataset(dataset, data)
        else:
            assert file is not None  # checked above
            name, ratings = file.name, read_ratings(file, user=user, item=item, rating=rating, sep=sep)
        if folds is not None:
            splits, how = cross_validation_folds(ratings, folds, seed), f"{folds} random folds"
        else:
            splits, how = holdout_folds(ratings, test_fraction, seed), f"random hold-out of {test_fraction:.0%}"
        origin = f"{name}: {ratings!r}, {how}, seed {seed}"
    protocol = f"{origin}; AIR.for_{preset.value}({', '.join(f'{k}={v}' for k, v in chosen.items())}), seed {seed}"
    means, single = evaluate_on(splits, air, peers=options.parse_names(peers), seed=seed, protocol=protocol)
    options.publish_means(means, single, json_file)


def load_dataset(dataset: DataSet, data: Path | None) -> Interactions:
    """Return all ratings of a data set."""
    from air_recsys.datasets import data_root, load_movielens

    return load_movielens(data_root(data), "100k" if dataset is DataSet.ML_100K else "1m")
