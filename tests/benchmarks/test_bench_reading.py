"""The benchmark of reading, on few rows."""

import pandas as pd
import pytest

from air_recsys.exceptions import ParameterError
from benchmarks import reading
from benchmarks.reading import bench_reading

pytest.importorskip("pyarrow")


def test_both_formats_are_read_whole():
    report = bench_reading(2000)
    assert [row["format"] for row in report.rows] == ["parquet", "csv"]
    for row in report.rows:
        assert row["rows"] == 2000
        assert row["rows_per_second"] == pytest.approx(2000 / row["seconds"])
        assert row["peak_gib"] >= row["before_gib"] > 0
        assert row["file_gib"] > 0
    assert "2000 drawn ratings" in report.protocol


def test_files_of_both_formats_hold_the_same_pairs_once(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_ROWS_AT_ONCE", 300)
    reading._write_parquet(tmp_path / "a.parquet", 1000)
    reading._write_csv(tmp_path / "a.csv", 1000)
    table = pd.read_csv(tmp_path / "a.csv")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "a.parquet"), table)
    assert len(table.drop_duplicates(["user", "item"])) == 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((0,), "n_ratings must be an integer >= 1"), ((10, ["xls"]), "format must be one of 'parquet', 'csv'")],
)
def test_what_cannot_be_measured_is_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        bench_reading(*arguments)
