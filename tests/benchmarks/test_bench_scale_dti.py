"""Planted drugs and targets by size: a row a size, and the hidden interactions ranked."""

from benchmarks.scale import LikesSize, bench_drug_targets, likes
from benchmarks.scale.drug_targets import measure_drug_targets

SIZE = LikesSize(n_users=80, n_items=60, n_likes=900)


def test_a_size_is_measured(monkeypatch):
    monkeypatch.setattr(likes, "_GROUPS", 4)
    row = measure_drug_targets(SIZE, {}, True, 0)
    assert row["fit_seconds"] > 0
    assert row["list_seconds"] > 0
    assert row["peak_gib"] >= row["data_gib"]
    assert 0 < row["n_interactions"] < 900
    assert row["average_precision"] > row["by_counts"] > 0


def test_the_table_has_a_row_a_size():
    table = bench_drug_targets([SIZE._replace(n_users=40), SIZE], {"n_rounds": 1})
    assert [row["n_drugs"] for row in table.rows] == [40, 80]
    assert "list_seconds" not in table.rows[0]
    assert "n_rounds=1" in table.protocol
