"""The names of communities and what they follow from, on MovieLens-100K."""

import json

import pytest
from typer.testing import CliRunner

from air_recsys.cli.app import app
from air_recsys.graphs.naming import LEVEL


@pytest.mark.data
def test_two_thirds_of_the_communities_have_a_name_that_means_something(data_root, tmp_path):
    file = tmp_path / "communities.json"
    done = CliRunner().invoke(app, ["bench", "graph-communities", "--data", str(data_root), "--json", str(file)])
    assert done.exit_code == 0, done.output
    graphs, single = (report["rows"] for report in json.loads(file.read_text())["reports"])
    items, users = graphs
    assert (items["graph"], users["graph"]) == ("items", "users")
    assert items["named"] >= 2 / 3
    assert items["with genre"] >= 2 / 3
    of_items = [row for row in single if row["graph"] == "items"]
    assert len(of_items) == items["communities"]
    named = [row for row in of_items if row["p_value"] is not None and row["p_value"] < LEVEL]
    assert len(named) == pytest.approx(items["named"] * len(of_items))
    assert len({row["name"] for row in of_items}) == len(of_items)
    assert 1 > items["nmi pattern"] > items["nmi values"] > items["nmi shuffled"] > 0
