"""Reading of ratings from a file: how many rows a second, and how much memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from air_recsys.datasets import read_ratings
from air_recsys.evaluation.results import ResultTable
from air_recsys.evaluation.results.apart import MemoryWatch, Stopwatch, run_apart
from air_recsys.storage.validation import check_choice, check_integer, import_extra

FORMATS = ("parquet", "csv")
_N_USERS, _N_ITEMS = 162_000, 59_000
_STEP = 5_915_587_277  # a prime that divides no number of pairs, so its multiples are as many different pairs
_MOST = 10**9  # multiples of the step that 64 bits hold
_ROWS_AT_ONCE = 1_000_000


def bench_reading(n_ratings: int = 3_000_000, formats: Sequence[str] = FORMATS) -> ResultTable:
    """Write drawn ratings to a temporary folder and read each file in a process of its own.

    Parameters
    ----------
    n_ratings : int
        At most 10**9; of 162,000 users and 59,000 items, in an order that is not sorted.
    formats : sequence of {"parquet", "csv"}

    Returns
    -------
    ResultTable
        A row a format: rows, seconds on the clock and of all threads, rows a second, size of the file, and memory of
        the process in GiB before the reading and at its peak, libraries included.

    Examples
    --------
    >>> [row["rows"] for row in bench_reading(1000, ["parquet"]).rows]
    [1000]
    """
    check_integer("n_ratings", n_ratings, minimum=1, maximum=_MOST)
    for name in formats:
        check_choice("format", name, FORMATS)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in tqdm(formats, unit="file", desc="bench reading"):
            path = Path(folder, f"ratings.{name}")
            (_write_parquet if name == "parquet" else _write_csv)(path, n_ratings)
            figures = run_apart(_measure, path)
            rows.append({"format": name, "rows": n_ratings, **figures, "file_gib": path.stat().st_size / 2**30})
            path.unlink()
    protocol = f"{n_ratings} drawn ratings of at most {_N_USERS} users and {_N_ITEMS} items, in half stars, one thread"
    return ResultTable("Reading of ratings", protocol, rows)


def _measure(path: Path) -> dict[str, float]:
    import_extra("pyarrow.parquet", "data")
    memory = MemoryWatch()
    with Stopwatch() as spent:
        data = read_ratings(path, progress=False)
    return {
        "seconds": spent.seconds,
        "cpu_seconds": spent.cpu_seconds,
        "rows_per_second": data.n_ratings / spent.seconds,
        "before_gib": memory.before_gib,
        "peak_gib": memory.peak_gib(),
    }


def _parts(n_ratings: int) -> Iterator[pd.DataFrame]:
    """Yield ratings of different pairs, some at a time."""
    rng = np.random.default_rng(0)
    for start in range(0, n_ratings, _ROWS_AT_ONCE):
        numbers = np.arange(start, min(start + _ROWS_AT_ONCE, n_ratings))
        users, items = np.divmod(numbers * _STEP % (_N_USERS * _N_ITEMS), _N_ITEMS)
        yield pd.DataFrame({"user": users, "item": items, "rating": rng.integers(1, 11, numbers.size) / 2})


def _write_parquet(path: Path, n_ratings: int) -> None:
    pyarrow, parquet = import_extra("pyarrow", "data"), import_extra("pyarrow.parquet", "data")
    writer = None
    for part in _parts(n_ratings):
        table = pyarrow.Table.from_pandas(part, preserve_index=False)
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _write_csv(path: Path, n_ratings: int) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        for number, part in enumerate(_parts(n_ratings)):
            part.to_csv(file, index=False, header=not number)
