"""The benchmark of the service, on data that take no time, with real servers."""

import numpy as np
import pytest

from air_recsys import Interactions
from benchmarks.serving import bench_serving
from benchmarks.serving.plain_implicit import plain_app
from benchmarks.serving.requests import _likes_of, _requests


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    rows, columns = np.nonzero(rng.random((50, 40)) < 0.4)
    return Interactions(rows, columns, rng.integers(1, 6, rows.size).astype(float), range(50), range(40))


def test_every_server_answers_every_kind_of_request(data):
    report = bench_serving(data, n_requests=16, n_clients=2, rounds=1, ranker={"settings": {}})
    assert [(row["request"], row["server"].partition(",")[0]) for row in report.rows] == [
        (kind, server)
        for kind in ("known user", "new user")
        for server in ("air-recsys serve", "air-recsys serve", "plain FastAPI")
    ]
    for row in report.rows:
        assert 0 < row["p50 ms"] <= row["p99 ms"]
        assert row["per second"] > 0
    assert [row["rate / plain"] for row in report.rows[2::3]] == [1, 1]


def test_the_requests_are_the_same_for_all_and_of_one_seed(data):
    likes = _likes_of(data)
    assert likes.nnz == np.count_nonzero(data.ratings >= 4)
    assert _requests(likes, 20, 0) == _requests(likes, 20, 0) != _requests(likes, 20, 1)


def test_the_plain_server_leaves_seen_items_out(data):
    likes = _likes_of(data)
    app = plain_app(likes)
    recommend = next(route.endpoint for route in app.routes if getattr(route, "path", "") == "/recommend")
    items = {row["item"] for row in recommend(3, 40)["items"] if row["score"] > -1e30}
    assert items.isdisjoint(likes[3].indices)
