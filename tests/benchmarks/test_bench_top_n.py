"""The benchmark of the best items, on data that take no time."""

import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys import Interactions
from air_recsys.adapters.implicit_peer import top_items_of_implicit
from air_recsys.models.state import TrainingStatistics
from benchmarks.top_n import bench_blocks, bench_indexes, with_random_factors


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    rows, columns = np.nonzero(rng.random((50, 40)) < 0.3)
    return Interactions(rows, columns, np.ones(rows.size), range(50), range(40))


def test_every_way_is_timed(data):
    report = bench_blocks(data, widths=(4,), rounds=1)
    assert [row["way"] for row in report.rows] == [
        "recommend",
        "top_items",
        "implicit's search",
        "users x items at once",
    ]
    assert all(row["ms"] > 0 for row in report.rows)


def test_the_ways_agree(data):
    model = with_random_factors(data, 4)
    seen = TrainingStatistics(data).seen
    ones = np.ones((50, 1), np.float32)
    items, _ = top_items_of_implicit(
        np.hstack([model.user_factors_, ones]),
        np.column_stack([model.item_factors_, model.item_biases_]),
        10,
        sp.csr_matrix(seen, dtype=np.float32),
    )
    frame = model.recommend(data.user_ids)
    assert frame["item"].tolist() == items.ravel().tolist()


def test_exact_indexes_recall_all():
    report = bench_indexes(n_items=2000, n_users=20, width=8, groups=10)
    recall = {row["index"]: row["recall"] for row in report.rows}
    assert recall["Flat"] == recall["none, top_items"] == 1
    assert recall["IVF512, 16 cells"] <= recall["IVF512, 64 cells"] <= 1
