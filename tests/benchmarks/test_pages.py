"""Pages and servers: real servers that answer, and a real page in Chromium where there is one."""

import shutil
from contextlib import nullcontext

import chromium
import numpy as np
import pytest
from made_films import GraphSize, made_graph

from air_recsys import Interactions
from air_recsys.exceptions import ParameterError
from air_recsys.report import write_explorer
from benchmarks.pages import explorer
from benchmarks.pages.plain_server import plain_app
from benchmarks.pages.serving import _likes_of, _requests, measured_servers

FIGURES = {
    *("graph", "write s", "size MB", "first picture s", "slider s", "one node s"),
    *(f"{kind} {what}" for kind in ("drag", "zoom") for what in ("frames / s", "slowest ms", "script ms")),
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    rows, columns = np.nonzero(rng.random((50, 40)) < 0.4)
    return Interactions(rows, columns, rng.integers(1, 6, rows.size).astype(float), range(50), range(40))


def test_every_server_answers_every_kind_of_request(data):
    rows = measured_servers(data, 16, 2, 1, 0, {"settings": {}}).tables[0]
    assert [(row["request"], row["server"].partition(",")[0]) for row in rows] == [
        (kind, server)
        for kind in ("known user", "new user")
        for server in ("air-recsys serve", "air-recsys serve", "plain FastAPI")
    ]
    for row in rows:
        assert 0 < row["p50 ms"] <= row["p99 ms"]
        assert row["per second"] > 0
    assert [row["rate / plain"] for row in rows[2::3]] == [1, 1]


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


@pytest.mark.parametrize("missing", ["chromium", "chromedriver"])
def test_a_missing_program_is_named_before_any_work(monkeypatch, missing):
    pytest.importorskip("selenium")
    monkeypatch.setattr(shutil, "which", lambda name: None if name == missing else f"/bin/{name}")
    with pytest.raises(ParameterError, match=f"found no {missing}$"):
        explorer.bench_explorer({})


@pytest.fixture
def quick(monkeypatch):
    pytest.importorskip("selenium")
    if any(shutil.which(name) is None for name in chromium._PROGRAMS):
        pytest.skip("no chromium and chromedriver on this machine")
    for name, least in {"_MOVED": 200, "_OPENED": 1, "_CHOSEN": 1}.items():
        monkeypatch.setattr(explorer, name, least)


def test_a_page_is_measured_in_a_browser(quick, monkeypatch):
    monkeypatch.setattr(explorer, "process_apart", lambda: nullcontext(lambda function, *given: function(*given)))
    (row,) = explorer.bench_explorer({"few": [80, 300, 3]}).tables[0]
    assert set(row) == FIGURES
    assert all(value > 0 for name, value in row.items() if name != "graph")


def test_the_graph_of_communities_is_measured(quick, tmp_path):
    page = write_explorer(tmp_path / "few.html", made_graph(GraphSize(80, 300, 3)), max_nodes=20)
    with chromium.headless_browser() as driver:
        assert set(explorer.measure_page(driver, page)) == FIGURES - {"graph", "write s", "size MB", "slider s"} | {
            "community s"
        }
