"""The explanations benchmark on small data."""

import numpy as np
import pytest

from air_recsys import AIR
from air_recsys.datasets import make_planted_ratings
from benchmarks.explanations import bench_explanations

SHARES = ("remainder", "rated_items", "similar_users", "choice_of_items", "item_graph_edges")


@pytest.fixture(scope="module")
def rows():
    data = make_planted_ratings(60, 50, 1500, 3, 2).interactions
    common = {"n_factors": 3, "random_state": 0, "device": "cpu"}
    models = {
        "posterior": AIR.for_ratings(n_sweeps=40, **common),
        "objective": AIR.for_ratings(solver="adam", n_epochs=10, **common),
    }
    table = bench_explanations(data, models, n_pairs=30, protocol="made")
    assert "made; 30 random pairs, seed 0" in table.protocol
    return {row["model"]: row for row in table.rows}


def test_parts_add_up_to_the_scores(rows):
    for row in rows.values():
        assert row["largest_error"] < 1e-4
        assert all(np.isfinite(row[name]) and row[name] >= 0 for name in SHARES)
        assert row["ms"] > 0


def test_a_settled_posterior_leaves_little_and_its_users_stay_where_they_were(rows):
    """Adam, stopped early, does neither; and only it has neighbours in its equations."""
    settled, early = rows["posterior"], rows["objective"]
    assert settled["remainder"] < 0.05 < early["remainder"]
    assert settled["solved_again"] < 0.05 < early["solved_again"]
    assert settled["similar_users"] == settled["item_graph_edges"] == 0 < early["similar_users"]
    assert early["choice_of_items"] == 0 < settled["choice_of_items"]
