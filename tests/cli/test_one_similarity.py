"""A pair has one number: in `similar_items`, files, the explorer, `explain`, a service and the command line."""

import numpy as np
import pandas as pd
import pytest
from cli_cases import cli, read_json
from page_reader import data_of

from air_recsys import AIR, Interactions
from air_recsys.models import Recommender
from air_recsys.report import explorer_of
from air_recsys.serving import Service

FEW = {"random_state": 0, "device": "cpu"}
PRESETS = {
    "ratings": lambda: AIR.for_ratings(**FEW, n_sweeps=6, n_factors=3, graph_neighbors=5),
    "adam": lambda: AIR.for_ratings(**FEW, solver="adam", n_epochs=4, n_factors=3, graph_neighbors=5),
    "interactions": lambda: AIR.for_interactions(**FEW, n_epochs=20),
    "completion": lambda: AIR.for_completion(**FEW, n_epochs=20, snapshot_epochs=[10]),
    "likes": lambda: AIR.for_likes(device="cpu", settings={}),
}
SIDES = {"item": "items", "user": "users"}


def table(preset):
    """40 users and 30 items of two kinds, who rate mostly what is of their kind."""
    rng = np.random.default_rng(0)
    alike = np.arange(40)[:, None] % 2 == np.arange(30) % 2
    rows, columns = np.nonzero(rng.random((40, 30)) < np.where(alike, 0.6, 0.15))
    values = rng.integers(1, 6, rows.size).astype(float)
    values = {"interactions": (values > 2).astype(float), "likes": np.ones(rows.size)}.get(preset, values)
    return Interactions(rows, columns, values, [f"u{user}" for user in range(40)], [f"i{item}" for item in range(30)])


@pytest.fixture(scope="module", params=PRESETS)
def case(request, tmp_path_factory):
    """A trained model, and the folder with its file."""
    folder = tmp_path_factory.mktemp(request.param)
    model = PRESETS[request.param]().fit(table(request.param))
    model.save(folder / "model.air")
    ended = cli("graph", folder / "model.air", "--csv", folder / "items.csv", "--html", folder / "page.html")
    assert ended.status == 0
    assert cli("graph", folder / "model.air", "--side", "users", "--csv", folder / "users.csv").status == 0
    return model, folder


def lists(model, side, ids):
    """The whole list of each id, as pairs of id and number."""
    return {id: list(getattr(model, f"similar_{side}s")(id, 100).itertuples(index=False, name=None)) for id in ids}


def of_page(path, name, id):
    """The neighbours that a page lists: the edges of a node in their order."""
    graph = next(graph for graph in data_of(path)["graphs"] if graph["name"] == name)
    step, ids = graph["steps"][-1], graph["ids"]
    edges = zip(step["sources"], step["targets"], step["weights"], strict=True)
    pairs = ((ids[a], ids[b], weight) for a, b, weight in edges)
    return [(other if one == id else one, weight) for one, other, weight in pairs if id in (one, other)]


@pytest.mark.parametrize("side", SIDES)
def test_all_doors_show_one_number_and_one_order(case, side):
    model, folder = case
    ids = [f"{side[0]}{number}" for number in (0, 3, 7, 11)]
    expected = lists(model, side, ids)
    graph = getattr(model, f"{side}_graph_")
    assert {id: list(graph.neighbors(id, 100).itertuples(index=False, name=None)) for id in ids} == expected
    assert lists(Recommender.load(folder / "model.air"), side, ids) == expected
    edges = pd.read_csv(folder / f"{SIDES[side]}.csv")
    both = pd.concat([edges, edges.rename(columns={"source": "target", "target": "source"})])
    service = Service(model)
    for id in ids:
        assert expected[id], id
        assert of_page(folder / "page.html", SIDES[side], id) == expected[id]
        mine = both[both["source"] == id]
        assert dict(zip(mine["target"], mine["weight"], strict=True)) == dict(expected[id])
        shown = service.similar(side, id, 100)["alike"]
        assert [(row["id"], row["weight"]) for row in shown] == expected[id]
    id = ids[-1]
    ended = cli("similar", folder / "model.air", f"--{side}", id, "--n", 100, "--json", folder / "similar.json")
    assert ended.status == 0
    assert [(row[side], row["weight"]) for row in read_json(folder / "similar.json")] == expected[id]


def test_reasons_have_the_same_number(case):
    model, _ = case
    if not isinstance(model, AIR):
        pytest.skip("GraphRanker explains without similarities")
    for user, item in (("u0", "i3"), ("u7", "i11")):
        alike, found = dict(lists(model, "item", [item])[item]), model.explain(user, item, 100)
        told = found.items.set_index("item")["weight"]
        assert len(told) > 3
        assert told.to_dict() == {other: alike.get(other, 0.0) for other in told.index}
        near = dict(lists(model, "user", [user])[user])
        assert all(weight == near.get(other, 0.0) for other, weight in found.users[["user", "weight"]].to_numpy())
        for edge in found.edges.head(20).to_dict("records"):
            alike = dict(lists(model, "item", [edge["item"]])[edge["item"]])
            assert edge["weight"] == alike.get(edge["neighbor"], 0.0)


def test_numbers_are_in_0_to_1_with_four_digits_and_in_order_of_them_and_of_common_ratings(case):
    model, _ = case
    rated = (~np.isnan(model.interactions_.to_dense())).astype(int)
    for side, rows in (("item", rated.T), ("user", rated)):
        graph, shared = getattr(model, f"{side}_graph_"), rows @ rows.T
        weights, ids = graph.to_scipy().data, graph.ids.tolist()
        assert weights.min() > 0
        assert weights.max() == 1
        assert all(float(f"{weight:.4g}") == weight for weight in weights)
        for row, id in enumerate(ids):
            found = getattr(model, f"similar_{side}s")(id, 100)
            keys = [(-weight, -shared[row, ids.index(o)], ids.index(o)) for o, weight in found.to_numpy().tolist()]
            assert keys == sorted(keys)


def test_the_steps_of_the_page_have_the_same_unit(tmp_path):
    model = PRESETS["completion"]().fit(table("completion"))
    steps = data_of(explorer_of(model, tmp_path / "page.html"))["graphs"][0]["steps"]
    assert [step["epoch"] for step in steps] == [10, None]
    assert [max(step["weights"]) for step in steps] == [1, 1]
