"""Reading takes time and memory of the file, not of what a few bytes unpack to; messages quote a little of it."""

import gzip
import tracemalloc

import pytest

from air_recsys.datasets import read_ratings
from air_recsys.exceptions import AirRecsysError, DataFileError, UnknownIdError, quoted

HEADER = b"user,item,rating\n"
MANY = 10**6
FILES = {
    "empty lines": (b"\n" * MANY, "no text in the first 1000 lines"),
    "empty lines after the header": (HEADER + b"\n" * MANY, "line 1002: expected fields, found 1,001 empty lines"),
    "empty lines after a rating": (HEADER + b"a,b,3\nc,d\n" + b"\n" * MANY, "line 3: expected 3 fields"),
    "rows without content": (HEADER + b",\n" * 3 * MANY, "line 2: expected 3 fields"),
    "rows of empty fields": (HEADER + b",,\n" * 3 * MANY, "line 2: expected a value as 'user'"),
    "a long header": (b"user," + b"x" * MANY + b"\na,b\n", "once each, found"),
    "a wide header": (b"user,item" + b",x" * 200_000 + b"\na,b,1\n", "once each, found"),
    "a long field": (HEADER + b"a,b," + b"x" * 100_000 + b"\n", "expected a finite number as 'rating'"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_small_file_that_unpacks_to_a_large_one_is_refused_at_its_first_fault(name, tmp_path):
    content, message = FILES[name]
    path = tmp_path / "ratings.csv.gz"
    path.write_bytes(gzip.compress(content))
    tracemalloc.start()
    with pytest.raises(DataFileError, match=message) as error:
        read_ratings(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400 * 2**20
    assert len(str(error.value)) < 600


def test_a_line_of_a_later_chunk_is_named_by_its_number_in_the_file(tmp_path, blocks_of):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating,when\n" + "".join(f"{n % 7},i{n},{n % 5},{n}\n" for n in range(100)) + "1,i5\n")
    blocks_of(9)
    with pytest.raises(DataFileError, match="line 102: expected 4 fields"):
        read_ratings(path)


def test_a_value_in_a_message_is_cut():
    assert quoted("x" * 500) == "'" + "x" * 199 + "..."
    assert quoted(["x"] * 500).endswith("...")
    assert quoted({"a": 1}) == "{'a': 1}"
    assert len(str(UnknownIdError("user", ["x" * 10**6] * 9))) < 1500


def test_a_message_of_a_page_is_cut_in_its_middle():
    message = str(AirRecsysError("a" * 5000 + "the end"))
    assert len(message) < 2100
    assert message.endswith("the end")
