"""The search for nearest rows is measured beside contenders that find the same rows."""

from importlib.util import find_spec

import numpy as np
import torch

from benchmarks import nearest_rows as bench
from benchmarks.nearest_rows import bench_nearest_rows


def test_every_case_is_a_row_with_positive_times():
    threads = torch.get_num_threads()
    report = bench_nearest_rows([200, 300], [3], [2, 5], rounds=1)
    assert [(row["rows"], row["k"]) for row in report.rows] == [(200, 2), (200, 5), (300, 2), (300, 5)]
    names = {"product", "plain", "ours"} | ({"faiss"} if find_spec("faiss") else set())
    for row in report.rows:
        assert set(row) == {"rows", "width", "k"} | names
        assert all(row[name] > 0 for name in names)
    assert torch.get_num_threads() == threads


def test_contenders_find_the_same_rows(monkeypatch):
    monkeypatch.setattr(bench, "_PLAIN_ENTRIES", 2_000)
    points = bench._made(400, 5)
    np.testing.assert_array_equal(bench._plain(points, 6).numpy(), bench._ours(points, 6).numpy())
