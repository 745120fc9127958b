"""The command evaluate: AIR beside its baselines, on your own data or on a data set."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from air_recsys.cli import options
from air_recsys.exceptions import ParameterError

if TYPE_CHECKING:
    from air_recsys.data.interactions import Interactions
    from air_recsys.evaluation.folds import Fold, NewUsersFold
    from air_recsys.evaluation.system import System

_PREDEFINED = ("u1", "u2", "u3", "u4", "u5")


class DataSet(StrEnum):
    """Rating data with a loader."""

    ML_100K = "movielens-100k"
    ML_1M = "movielens-1m"


class ListSplit(StrEnum):
    """What `evaluate --ranking` holds out."""

    RANDOM = "random"
    USERS = "users"
    LAST = "last"
    TIME = "time"


_SIZES: dict[ListSplit, float | int] = {
    ListSplit.RANDOM: 0.2,
    ListSplit.USERS: 0.1,
    ListSplit.LAST: 1,
    ListSplit.TIME: 0.2,
}
"""The share, or the number of each user, where neither --test-fraction nor --last is given."""
_UNREAD = {ListSplit.LAST: (), ListSplit.TIME: ("--last",)}
"""The options that a split does not read; those by chance read neither number nor time."""


def evaluate(
    file: Annotated[Path | None, typer.Argument(help="Your own ratings: CSV, TSV or Parquet.")] = None,
    *,
    dataset: Annotated[DataSet | None, typer.Option(help="A data set instead of a file.")] = None,
    data: options.DataFolder = None,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Cross-validate; for movielens-100k the predefined u1 .. u5.")
    ] = None,
    test_fraction: Annotated[
        float | None,
        typer.Option(
            help="Without --folds: share to hold out, by default 0.1, with --ranking 0.2, and 0.1 of the users for "
            "--split users; with --split last in place of --last."
        ),
    ] = None,
    peers: Annotated[
        str,
        typer.Option(
            help="Other models to run: svd,svdpp,knnbaseline of Surprise; with --ranking als,bpr of implicit; classes "
            "that installed packages register."
        ),
    ] = "",
    others: options.Others = None,
    ranking: Annotated[
        bool,
        typer.Option("--ranking", help="Treat all rows as likes, and measure lists of GraphRanker instead of errors."),
    ] = False,
    k: Annotated[
        int, typer.Option("--k", min=1, help="With --ranking: length of the lists, at most the number of items.")
    ] = 10,
    split: Annotated[
        ListSplit,
        typer.Option(
            help="With --ranking: random holds out a share of each user's items, users a share of the users, of whom "
            "four fifths of the items are given after the training, last the last items or the latest share of each "
            "user, time the latest share of all."
        ),
    ] = ListSplit.RANDOM,
    last: Annotated[
        int | None, typer.Option(min=1, help="With --split last: how many items of each user, by default 1.")
    ] = None,
    timestamp: Annotated[
        str | None, typer.Option("--timestamp-column", help="Column of times, for --split last and time.")
    ] = None,
    preset: options.PresetName = options.Preset.RATINGS,
    table: options.Ratings,
    settings: options.Settings = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    json_file: options.JsonFile = None,
) -> None:
    """Print the test error of AIR beside baselines, or with --ranking the accuracy of its lists."""
    from air_recsys.datasets import data_root, load_movielens_fold
    from air_recsys.evaluation.evaluating import evaluate_ratings
    from air_recsys.evaluation.folds import Fold, cross_validation_folds, holdout_folds
    from air_recsys.evaluation.systems import beside_air, beside_ranker
    from air_recsys.models import AIR, GraphRanker

    if (file is None) == (dataset is None):
        raise ParameterError(f"expected either a file or --dataset, found {'neither' if file is None else 'both'}")
    if dataset is not None:
        of_values = ("--rating-column", "--duplicates", "--negative", "--rating-scale", "--missing")
        options.refuse_unread("--dataset", *options.FORMS, *options.PAIR_COLUMNS, *of_values)
    else:
        options.refuse_unread("evaluate without --dataset", "--data")
    reading: dict[str, Any] = {"likes": ranking, "timestamp": timestamp}
    if ranking:
        options.refuse_unread("--ranking", "--preset", "--folds")
        size = _size(split, test_fraction, last)
        of_ranker = {"device": device, "validation": split.value} | options.parse_settings(settings, GraphRanker())
        new_users = split is ListSplit.USERS
        systems = beside_ranker(options.parse_names(peers), seed, of_ranker, new_users=new_users)
        systems |= options.others_of(others)
        name, ratings = _load(file, dataset, data, table, reading)
        parts = _parts(ratings, split, size, seed)
        _rank(name, ratings, parts, systems, k, seed, json_file)
        return
    options.refuse_unread("evaluate without --ranking", "--split", "--timestamp-column", "--last", "--k")
    if folds is not None:
        options.refuse_unread("--folds", "--test-fraction")
    test_fraction = 0.1 if test_fraction is None else test_fraction
    chosen = options.parse_settings(settings)
    air = AIR.of_preset(preset.value, **{"random_state": seed, "device": device} | chosen)
    if dataset is DataSet.ML_100K and folds == 5:
        splits = [Fold(name, *load_movielens_fold(data_root(data), name)) for name in _PREDEFINED]
        origin = "MovieLens-100K, predefined folds u1 .. u5"
    else:
        name, ratings = _load(file, dataset, data, table, reading)
        if folds is not None:
            splits, how = cross_validation_folds(ratings, folds, seed), f"{folds} random folds"
        else:
            splits, how = holdout_folds(ratings, test_fraction, seed), f"random hold-out of {test_fraction:.0%}"
        origin = f"{name}: {ratings!r}, {how}, seed {seed}"
    protocol = f"{origin}; AIR.for_{preset.value}({', '.join(f'{k}={v}' for k, v in chosen.items())}), seed {seed}"
    systems = beside_air(air, options.parse_names(peers), seed) | options.others_of(others)
    means, single = evaluate_ratings(splits, systems, protocol=protocol)
    options.publish_means(means, single, json_file)


def _load(
    file: Path | None,
    dataset: DataSet | None,
    data: Path | None,
    table: options.Ratings,
    reading: dict[str, Any],
) -> tuple[str, Interactions]:
    """The name and the ratings of a data set or of a file, whichever is given."""
    from air_recsys.datasets import data_root, load_movielens

    if dataset is not None:
        return dataset.value, load_movielens(data_root(data), "100k" if dataset is DataSet.ML_100K else "1m")
    assert file is not None
    return file.name, table.read(file, **reading)


def _size(split: ListSplit, test_fraction: float | None, last: int | None) -> float | int:
    """The share to hold out, or the number of each user; raises for options that do not fit the split."""
    from air_recsys.data.splits.base import check_fraction

    options.refuse_unread(f"--split {split.value}", *_UNREAD.get(split, ("--last", "--timestamp-column")))
    if last is not None:
        options.refuse_unread("--last", "--test-fraction")
    if test_fraction is not None:
        return check_fraction("test_fraction", test_fraction)
    return _SIZES[split] if last is None else last


def _parts(data: Interactions, split: ListSplit, size: float | int, seed: int) -> tuple[Fold | NewUsersFold, str]:
    """A training and a test part, and in words what the latter holds."""
    from air_recsys.evaluation.folds import (
        GIVEN,
        holdout_in_time,
        holdout_of_last,
        holdout_of_new_users,
        holdout_of_users,
    )

    if split is ListSplit.USERS:
        given = f"{GIVEN:.0%} of their items given at random, the rest tested, of items that others have"
        return holdout_of_new_users(data, size, seed), f"{size:.0%} of the users held out of the training, {given}"
    if split is ListSplit.LAST:
        what = f"latest {size:.0%}" if isinstance(size, float) else "last" if size == 1 else f"last {size}"
        return holdout_of_last(data, size), f"the {what} of each user's held out, where others had the item"
    if split is ListSplit.TIME:
        fold, what = holdout_in_time(data, size), f"the latest {size:.0%} of all held out"
        return fold, f"{what}, {fold.test.n_ratings} of them of users and items that occur before"
    return holdout_of_users(data, size, seed), f"{size:.0%} of each user's held out at random"


def _rank(
    name: str,
    data: Interactions,
    parts: tuple[Fold | NewUsersFold, str],
    systems: dict[str, System],
    k: int,
    seed: int,
    json_file: Path | None,
) -> None:
    from air_recsys.evaluation.evaluating import evaluate_lists

    fold, held_out = parts
    k = options.list_length("--k", k, fold.train.n_items)
    protocol = (
        f"{name}: {data!r}, all pairs taken as interactions, {held_out}; all items "
        f"ranked that a user was not shown; means over users, 95 % intervals by bootstrap, p of a paired t-test "
        f"against the first system, and corrected for their number (Holm); seed {seed}"
    )
    means, groups = evaluate_lists(fold, systems, k=k, seed=seed, protocol=protocol)
    options.publish_means(means, groups, json_file)
    typer.echo(groups.text())
