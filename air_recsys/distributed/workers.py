"""A pool of Ray workers: each loads a saved model once and scores pieces of a table (its job) into files."""

from __future__ import annotations

import logging
import os
import secrets
import warnings
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from air_recsys.data.readers.ratings_parquet import plain_type
from air_recsys.distributed.parquet import Piece, ids_of, read_piece
from air_recsys.exceptions import AirRecsysError, DeviceError
from air_recsys.models import Recommender
from air_recsys.storage.validation import needs_extra

with needs_extra("distributed"), warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of ray
    import pyarrow as pa
    import pyarrow.parquet as pq
    import ray
    import ray.data
    from ray.exceptions import RayError

_MAX_TRIES = 4  # Ray itself retries without end a piece that kills its workers
ItemsOf = tuple[Hashable, ...] | dict[Hashable, list[Hashable]] | None
"""Ids of items for all users, or those of each user who has its own."""
_MAX_BLOCKS = 1000  # blocks of one or more pieces, the unit of Ray's schedule


class Done(NamedTuple):
    """The rows written for one piece, or for all, and those with an unknown id."""

    n_written: int
    n_unknown: int


class Worker:
    """One process of the pool; a file moves from the folder "unfinished" of `folder` to "parts" once it is whole."""

    def __init__(self, model_file: Path, job: Job, folder: Path) -> None:
        self.model = Recommender.load(model_file)
        self.job = job
        self.folder = folder

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, list[int]]:
        """Score a batch of one piece; a second call replaces the file of the first."""
        number, start, stop = (int(batch[name][0]) for name in ("number", "start", "stop"))
        piece = Piece(number, str(batch["file"][0]), start, stop)
        name = f"part-{number:06d}.parquet"
        self._count_try(name)
        table, n_unknown = self.job.score(self.model, read_piece(piece, self.job.columns))
        unfinished = self.folder / "unfinished" / f"{name}.{secrets.token_hex(8)}"
        pq.write_table(table, unfinished)
        unfinished.replace(self.folder / "parts" / name)
        return {"n_written": [table.num_rows], "n_unknown": [n_unknown]}

    def _count_try(self, name: str) -> None:
        """Count the tries at a piece in a file, which outlives this process."""
        with (self.folder / "unfinished" / f"{name}.tries").open("ab") as file:
            file.write(b".")
            tries = file.tell()
        if tries > _MAX_TRIES:
            raise RuntimeError(
                f"{_MAX_TRIES} workers died on {name}, perhaps from lack of memory: try a smaller batch_size"
            )


def run_pool(
    pieces: list[Piece], model_file: Path, job: Job, folder: Path, concurrency: int | None, verbose: bool
) -> Done:
    """Score all pieces on the cluster that Ray is connected to, else on that of RAY_ADDRESS, else on this machine."""
    with cluster(), _quiet():
        n_gpus = 0 if job.device == "cpu" else int(ray.cluster_resources().get("GPU", 0))
        if job.device == "cuda" and not n_gpus:
            raise DeviceError("device='cuda' was asked for, found no GPU in the cluster; use device='cpu' or 'auto'")
        size = concurrency or n_gpus or max(1, int(ray.cluster_resources().get("CPU", 1)))
        size = min(size, len(pieces))
        data = ray.data.from_items(
            [piece._asdict() for piece in pieces], override_num_blocks=min(len(pieces), _MAX_BLOCKS)
        )
        data.context.enable_progress_bars = False
        scored = data.map_batches(
            Worker,
            fn_constructor_args=(model_file, job, folder),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=size, max_tasks_in_flight_per_actor=2),
            num_cpus=1,
            num_gpus=1 / -(-size // n_gpus) if n_gpus else None,  # some workers on each
        )
        rows = _collect(scored, len(pieces), verbose)
    return Done(sum(row["n_written"] for row in rows), sum(row["n_unknown"] for row in rows))


def _collect(scored: ray.data.Dataset, total: int, verbose: bool) -> list[dict[str, int]]:
    try:
        return list(tqdm(scored.iter_rows(), total=total, unit="batch", disable=not verbose))
    except RayError as error:
        traceback = str(error).partition("\nThe above exception")[0]  # of the worker; Ray's own follows
        reason = traceback.strip().splitlines()[-1]
        raise AirRecsysError(f"scoring stopped and nothing is written: {reason}") from error


@contextmanager
def cluster() -> Iterator[None]:
    """Connect to Ray for the context, unless the process is connected.

    Without an address Ray would search for the last cluster of this machine, for minutes if it has ended.
    """
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    address = os.environ.get("RAY_ADDRESS", "local")
    ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the log of Ray Data."""
    logger: Any = logging.getLogger("ray.data")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"ray\.")
            yield
    finally:
        logger.setLevel(level)


@dataclass(frozen=True)
class RecommendJob:
    """The best n items of each user."""

    user: str  # the column with the ids
    n: int
    exclude_seen: bool
    skip: bool  # leave unknown users out
    items: ItemsOf  # that may be recommended; None stands for all
    exclude: ItemsOf  # that may not
    schema: pa.Schema  # of the lists, so that files without a row have it too; see `list_schema`
    device: str  # that of `Recommender.recommend`

    @property
    def columns(self) -> list[str]:
        """The users."""
        return [self.user]

    def score(self, model: Recommender, table: pa.Table) -> tuple[pa.Table, int]:
        """The lists one below the other, and the number of unknown users."""
        users = ids_of(table[self.user])
        trained = model.interactions_.users.lookup(users) >= 0
        asked = list(compress(users, trained)) if self.skip else users
        items, exclude = (
            {each: given[each] for each in asked} if isinstance(given, dict) else given
            for given in (self.items, self.exclude)
        )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".* what is popular is listed")  # which `n_unknown` tells
            lists = model.recommend(asked, self.n, self.exclude_seen, items=items, exclude=exclude, device=self.device)
        return pa.Table.from_pandas(lists, self.schema, preserve_index=False), int((~trained).sum())


@dataclass(frozen=True)
class PredictJob:
    """The score of each pair, beside all columns of the table; `user` and `item` are those with ids."""

    user: str
    item: str
    device = "cpu"

    @property
    def columns(self) -> None:
        """All."""
        return

    def score(self, model: Recommender, table: pa.Table) -> tuple[pa.Table, int]:
        """The table with the column score, and the number of pairs with an unknown id."""
        users, items = ids_of(table[self.user]), ids_of(table[self.item])
        scores = pa.array(model.predict(users, items, unknown="mean"), pa.float64())
        data = model.interactions_
        unknown = (data.users.lookup(users) < 0) | (data.items.lookup(items) < 0)
        return table.append_column("score", scores), int(unknown.sum())


Job = RecommendJob | PredictJob
"""The work of a worker: `columns` that it reads, None for all, and `score`, which gives the table to write."""


def list_schema(user_type: pa.DataType, item_ids: np.ndarray) -> pa.Schema:
    """The columns of `Recommender.recommend`, with users in the type that was read.

    Examples
    --------
    >>> list_schema(pa.int32(), np.array(["x", "y"], dtype=object)).types[:3]
    [DataType(int32), DataType(string), DataType(double)]
    """
    items = pa.string() if item_ids.dtype == object else pa.int64()
    columns = {"user": plain_type(user_type), "item": items, "score": pa.float64(), "rank": pa.int64()}
    return pa.schema([*columns.items(), ("source", pa.string())])
