"""Reading of ratings from a file: how many rows a second, and how much memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from air_recsys.datasets import read_ratings
from air_recsys.evaluation.results.apart import run_apart
from air_recsys.storage.validation import check_choice, check_integer, import_extra
from benchmarks.harness import Found, spent_on

_N_USERS, _N_ITEMS = 162_000, 59_000
_STEP = 5_915_587_277  # a prime that divides no number of pairs, so its multiples are as many different pairs
_MOST = 10**9  # multiples of the step that 64 bits hold
_ROWS_AT_ONCE = 1_000_000


def bench_reading(threads: int, *, n_ratings: int, formats: list[str]) -> Found:
    """Write drawn ratings to a temporary folder and read each file in a process of its own."""
    check_integer("n_ratings", n_ratings, minimum=1, maximum=_MOST)
    writers = {"parquet": _write_parquet, "csv": _write_csv}
    for name in formats:
        check_choice("format", name, writers)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in tqdm(formats, unit="file", desc="speed reading"):
            path = Path(folder, f"ratings.{name}")
            writers[name](path, n_ratings)
            costs = run_apart(_read, path, threads=threads)
            row = {"format": name, "rows": n_ratings, "rows_per_second": n_ratings / costs["seconds"]}
            rows.append(row | costs | {"file_gib": path.stat().st_size / 2**30})
            path.unlink()
    return Found(rows, users=_N_USERS, items=_N_ITEMS)


def _read(path: Path) -> dict[str, float]:
    import_extra("pyarrow.parquet", "data")  # its import is not measured
    return spent_on(lambda: read_ratings(path, progress=False))[1]


def _parts(n_ratings: int) -> Iterator[pd.DataFrame]:
    """Ratings of different pairs, some at a time."""
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
