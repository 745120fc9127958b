"""A table that is read part by part is the table that is read at once, at a fraction of its memory."""

import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from air_recsys import Interactions
from air_recsys.data.ids import encode_ids
from air_recsys.data.readers.rating_columns import CodedIds, code
from air_recsys.datasets import make_planted_ratings, read_ratings
from air_recsys.exceptions import DataFileError

pytest.importorskip("pyarrow")
PARTS = 7  # rows of each


@pytest.fixture
def made():
    """A table with a late rating that 32 bits do not hold."""
    data = make_planted_ratings(30, 20, 150, n_user_groups=2, n_item_groups=2, star=0.5).interactions
    table = data.to_frame().sample(frac=1, random_state=0, ignore_index=True)
    table.loc[140, "rating"] = 0.1
    return table.assign(when=range(1000, 1150))


@pytest.fixture(params=["whole", "in parts"])
def write(request, tmp_path, blocks_of):
    """Write a table as one Parquet file, or as a folder of several; a few rows of either are read at a time."""
    blocks_of(PARTS)

    def write_table(table):
        path = tmp_path / "made.parquet"
        if request.param == "whole":
            table.to_parquet(path, row_group_size=50)
            return path
        for number, start in enumerate(range(0, len(table), 40)):
            part = path / f"day={number}" / "part.parquet"
            part.parent.mkdir(parents=True)
            table[start : start + 40].to_parquet(part)
        return path

    return write_table


def same(one, other):
    """Whether two data sets are the same, types of ids included."""
    assert repr(one) == repr(other)
    for name in ("user_ids", "item_ids", "user_index", "item_index", "ratings", "timestamps"):
        left, right = getattr(one, name), getattr(other, name)
        assert type(left) is type(right)
        assert left is None or (left.dtype == right.dtype and left.tolist() == right.tolist())


KINDS = {
    "integers": lambda ids: ids,
    "text": lambda ids: ids.map("user {}".format),
    "categories": lambda ids: ids.map("user {}".format).astype("category"),
    "categories of numbers": lambda ids: ids.astype("category"),
    "small unsigned": lambda ids: ids.astype(np.uint8),
    "beyond 63 bits": lambda ids: ids.astype(np.uint64) + np.uint64(2**63),
    "whole floats": lambda ids: ids.astype(float),
    "floats": lambda ids: ids / 2,
    "floats that may be rounded": lambda ids: (ids * 4 + 2**25).astype(np.float32),
    "dates": lambda ids: pd.to_datetime(ids, unit="D"),
    "bytes": lambda ids: ids.map(lambda user: b"%d" % user),
}


@pytest.mark.filterwarnings("ignore:ids such as")
@pytest.mark.parametrize("kind", KINDS)
def test_parquet_is_the_frame(made, write, kind):
    table = made.assign(user=KINDS[kind](made["user"]))
    plain = table["user"].cat.categories.dtype if "categories" in kind else table["user"].dtype
    whole = table.assign(user=table["user"].astype(plain))
    same(read_ratings(write(table), timestamp="when"), Interactions.from_frame(whole, timestamp="when"))


@pytest.mark.parametrize("name", ["made.csv", "made.csv.gz"])
def test_text_is_the_frame(made, tmp_path, blocks_of, name):
    made.to_csv(tmp_path / name, index=False)
    blocks_of(PARTS)
    same(read_ratings(tmp_path / name, timestamp="when"), Interactions.from_frame(made, timestamp="when"))


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 9) | st.text(max_size=2), min_size=1), min_size=1), st.booleans())
def test_ids_in_parts_are_ids_at_once(parts, texts):
    parts = [[str(each) for each in part] if texts else part for part in parts]
    column = CodedIds("user")
    for part in parts:
        column.append(*code(np.array([*part, None], dtype=object)[:-1]))
    expected = encode_ids([each for part in parts for each in part], "user")
    for found, wanted in zip(column.finish(), expected, strict=True):
        assert found.dtype == wanted.dtype
        assert found.tolist() == wanted.tolist()


# -------------------------------------------------------------------- what does not fit


def refuses(message, path, **options: Any):
    with pytest.raises(DataFileError, match=message):
        read_ratings(path, **options)


def test_parts_have_the_same_columns_and_types(made, tmp_path):
    for name, change in {"b": {"user": "a" + made["user"].astype(str)}, "c": {}, "d": {"rating": True}}.items():
        made.assign(**change).to_parquet(tmp_path / f"{name}.parquet")
    made.to_parquet(tmp_path / "a.parquet")
    refuses(r"b.parquet: expected int64 in 'user' as in a.parquet, found (large_)?string", tmp_path)
    (tmp_path / "b.parquet").unlink()
    refuses("d.parquet: expected double in 'rating' as in a.parquet, found bool", tmp_path)
    made.drop(columns="item").to_parquet(tmp_path / "c.parquet")
    refuses(r"c.parquet: expected the column\(s\) \['item'\] once each, found", tmp_path)
    (tmp_path / "c.parquet").write_bytes(b"PAR1")
    refuses("c.parquet: expected a Parquet file, found", tmp_path)


def test_a_folder_has_parts_that_are_not_hidden(made, tmp_path):
    (tmp_path / "_temporary").mkdir()
    for name in ("_temporary/a.parquet", ".b.parquet", "c.csv"):
        (tmp_path / name).write_bytes(b"")
    refuses(r"expected files that end in .parquet in .*, found none", tmp_path)
    made.to_parquet(tmp_path / "d.parquet")
    assert read_ratings(tmp_path).n_ratings == len(made)
    made[:0].to_parquet(tmp_path / "d.parquet")
    refuses("expected at least one rating, found an empty table", tmp_path)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("user", "every rating needs its user id, found row 100 without one"),
        ("rating", "ratings must be finite, found 1 NaN or infinite, the first in row 100"),
    ],
)
def test_rows_are_counted_over_all_parts(made, write, column, message):
    made["user"] = made["user"].map(str)
    made.loc[100, column] = None
    refuses(message, write(made))


def test_a_line_of_a_later_chunk_is_named_by_its_number_in_the_file(tmp_path, blocks_of):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating,when\n" + "".join(f"{n % 7},i{n},{n % 5},{n}\n" for n in range(100)) + "1,i5\n")
    blocks_of(9)
    refuses("line 102: expected 4 fields", path)


def test_times_are_numbers_or_dates_in_all_parts(made, tmp_path, blocks_of):
    blocks_of(PARTS)
    path = tmp_path / "made.csv"
    dates = pd.to_datetime(made["when"], unit="D")
    made.assign(when=dates).to_csv(path, index=False)
    assert (read_ratings(path, timestamp="when").timestamps == dates.astype("M8[ns]").astype(int)).all()
    made["when"] = made["when"].astype(object)
    made.loc[21:, "when"] = "2024-01-02"
    made.to_csv(path, index=False)
    refuses("ISO 8601 dates as 'when', found '2024-01-02' with rating number 22", path, timestamp="when")


# -------------------------------------------------------------------- memory and progress


def test_little_more_is_held_than_the_ratings(tmp_path, blocks_of):
    """12 bytes a rating, 8 for the search of repeated pairs, and as much as a part takes."""
    n_ratings = 300_000
    table = make_planted_ratings(3000, 1000, n_ratings).interactions.to_frame()
    blocks_of(5000)
    for path in (tmp_path / "made.parquet", tmp_path / "made.csv"):
        (table.to_parquet if path.suffix == ".parquet" else table.to_csv)(path, index=False)
        read_ratings(path)  # loads modules
        tracemalloc.start()
        read_ratings(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 24 * n_ratings + 3 * 2**20


def test_a_bar_is_shown_when_asked(made, write, capsys):
    path = write(made)
    for asked in (None, True, False):
        read_ratings(path, progress=asked)
        assert ("100%" in capsys.readouterr().err) == bool(asked)
