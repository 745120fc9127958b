"""Batch scoring with Ray Data, Parquet to Parquet; needs the extra ``distributed``."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from air_recsys.data.ids import asked_ids
from air_recsys.data.interactions import Interactions
from air_recsys.distributed.parquet import ParquetTable, check_pairs, check_users
from air_recsys.distributed.workers import ItemsOf, Job, PredictJob, RecommendJob, list_schema, run_pool
from air_recsys.exceptions import DataFileError, ParameterError
from air_recsys.models import Recommender
from air_recsys.models.listing import ListsByTaking
from air_recsys.models.ranking.allowed import allowed_items, has_own, list_length, own_ids
from air_recsys.storage.validation import check_choice, check_integer

ModelOrFile = Recommender | str | os.PathLike[str]


class Scored(NamedTuple):
    """The result of a batch scoring.

    Attributes
    ----------
    folder : Path
        The new folder with Parquet files, one per batch and in the order of the input.
    n_read, n_written : int
        Rows of the input and of the output.
    n_unknown : int
        Rows of the input with an id that was not in the training data.
    """

    folder: Path
    n_read: int
    n_written: int
    n_unknown: int


def recommend(
    model: ModelOrFile,
    users: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    n: int = 10,
    exclude_seen: bool = True,
    items: Any = None,
    exclude: Any = None,
    user: str = "user",
    unknown: Literal["popular", "skip", "error"] = "popular",
    batch_size: int = 10_000,
    concurrency: int | None = None,
    device: Literal["cpu", "cuda", "auto"] = "cpu",
    verbose: bool = False,
) -> Scored:
    """Write the best n items of each user of a table, as `Recommender.recommend` gives them.

    Parameters
    ----------
    model : Recommender, str or Path
        A fitted model or the file of a saved one.
    users : str or Path
        A Parquet file, or a folder of Parquet files, with each user once.
    output : str or Path
        A folder that does not exist yet. It appears when all work is done, or not at all.
    n : int
        Fewer rows are written for a user with fewer items left.
    exclude_seen : bool
        Leave out items that the user has rated.
    items, exclude
        As in `Recommender.recommend`: the items that may be recommended, such as what is in stock, and that may not,
        for all users or each user's own; a matrix has a row for each row of the table.
    user : str
        The column with the ids of users.
    unknown : {"popular", "skip", "error"}
        A user who was not in the training data gets the best rated items, gets nothing, or is an error.
    batch_size : int
        Users that a worker scores at a time, and whose lists are in one file.
    concurrency : int, optional
        Number of workers, each a process with the model; by default one per CPU of the cluster.
    device : {"cpu", "cuda", "auto"}
        Where the workers score and rank, as in `Recommender.recommend`: with "cuda" one worker by default per GPU of
        the cluster, with "auto" likewise where it has GPUs. More workers share them.
    verbose : bool
        Show a progress bar.

    Returns
    -------
    Scored
        The folder holds the columns user (of the type of the input), item, score, rank and source.

    Raises
    ------
    ParameterError, ModelFileError, DataFileError
        Before any work: a setting out of range, a folder that exists, no model, a table that cannot be read, is
        empty, lacks the column, holds ids of another kind than the model's, or a user twice.
    UnknownIdError
        Before any work: with ``unknown="error"``; with "skip" where no user is known; for an id of `items` or
        `exclude`.
    AirRecsysError
        If the workers fail.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pandas as pd
    >>> from air_recsys import BiasModel
    >>> model = BiasModel().fit(np.array([[5.0, 1.0, np.nan], [4.0, np.nan, 2.0]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     users, output = Path(folder, "users.parquet"), Path(folder, "lists")
    ...     pd.DataFrame({"user": [0, 1]}).to_parquet(users)
    ...     done = recommend(model, users, output, n=1, concurrency=1)
    ...     pd.read_parquet(output)[["user", "item", "rank"]]
       user  item  rank
    0     0     2     1
    1     1     1     1
    """
    check_choice("unknown", unknown, ("popular", "skip", "error"))
    check_choice("device", device, ("cpu", "cuda", "auto"))
    target, loaded = _checked(model, output, batch_size, concurrency)
    data = loaded.interactions_
    table = ParquetTable(Path(users), {user: data.user_ids})
    check_users(table, user, data.users, unknown)
    asked = [each for (ids,) in table.batches([user]) for each in ids] if has_own(items, exclude) else []
    list_length(n, allowed_items(data.items, items, exclude, data.users, asked).n_left)
    candidates, left_out = (_of_job(data, given, asked) for given in (items, exclude))
    schema = list_schema(table.schema.field(user).type, data.item_ids)
    job = RecommendJob(user, n, exclude_seen, unknown == "skip", candidates, left_out, schema, device)
    model = loaded.learn_lists() if isinstance(loaded, ListsByTaking) else model  # once, and not in each worker
    return _score(model, table, target, job, batch_size, concurrency, verbose)


def predict(
    model: ModelOrFile,
    pairs: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    user: str = "user",
    item: str = "item",
    unknown: Literal["mean", "error"] = "mean",
    batch_size: int = 200_000,
    concurrency: int | None = None,
    verbose: bool = False,
) -> Scored:
    """Write the score of each pair of a table, as `Recommender.predict` gives them.

    Parameters
    ----------
    model, output, concurrency, verbose
        As in `recommend`.
    pairs : str or Path
        A Parquet file, or a folder of Parquet files.
    user, item : str
        The columns with ids.
    unknown : {"mean", "error"}
        A pair with an id that was not in the training data gets a mean rating, or is an error.
    batch_size : int
        Pairs that a worker scores at a time, and that are in one file.

    Returns
    -------
    Scored
        The folder holds all rows and columns of the input in their order, and the column score.

    Raises
    ------
    ParameterError, ModelFileError, DataFileError, UnknownIdError, AirRecsysError
        As in `recommend`; pairs may occur more than once, but no column may be called score.
    """
    check_choice("unknown", unknown, ("mean", "error"))
    target, loaded = _checked(model, output, batch_size, concurrency)
    data = loaded.interactions_
    table = ParquetTable(Path(pairs), {user: data.user_ids, item: data.item_ids})
    if "score" in table.schema.names:
        raise DataFileError(f"{pairs}: expected no column 'score', which is to be written, found {table.schema.names}")
    check_pairs(table, [user, item], (data.users, data.items), unknown)
    return _score(model, table, target, PredictJob(user, item), batch_size, concurrency, verbose)


def _of_job(data: Interactions, given: Any, asked: list[Any]) -> ItemsOf:
    """The ids of items for all users, or of each user who has its own; None where nothing was given."""
    if given is None:
        return None
    own = own_ids(data.items, given, data.users, asked)
    return tuple(asked_ids(given, "item").tolist()) if own is None else own


def _score(
    model: ModelOrFile,
    table: ParquetTable,
    target: Path,
    job: Job,
    batch_size: int,
    concurrency: int | None,
    verbose: bool,
) -> Scored:
    with _whole_or_absent(target) as folder:
        file = Path(model).absolute() if not isinstance(model, Recommender) else model.save(folder / "model")
        done = run_pool(table.pieces(batch_size), file, job, folder, concurrency, verbose)
    return Scored(target, table.n_rows, *done)


@contextmanager
def _whole_or_absent(target: Path) -> Iterator[Path]:
    """A folder beside `target` whose folder "parts" becomes `target` at the end."""
    folder = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        for name in ("parts", "unfinished"):
            (folder / name).mkdir(parents=True)
        yield folder
        (folder / "parts").rename(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _checked(
    model: ModelOrFile, output: str | os.PathLike[str], batch_size: int, concurrency: int | None
) -> tuple[Path, Recommender]:
    """The folder to write and a fitted model, after the checks of both doors."""
    check_integer("batch_size", batch_size, minimum=1)
    if concurrency is not None:
        check_integer("concurrency", concurrency, minimum=1)
    target = Path(output).absolute()
    if target.exists():
        raise ParameterError(f"expected an output folder that does not exist yet, found {output}")
    if not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
        raise ParameterError(
            f"expected a folder that can be written to for {target.name}, found no such {target.parent}"
        )
    loaded = model if isinstance(model, Recommender) else Recommender.load(model)
    loaded.check_fitted()
    return target, loaded
