"""What similar_users and similar_items look at: the learned graphs, with the pattern of the ratings if wanted."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from model_cases import CPU

from air_recsys import AIR, Interactions
from air_recsys.exceptions import DataError
from air_recsys.graphs.postprocess import with_pattern
from air_recsys.graphs.pruning import strongest
from air_recsys.models.presets import PRESETS


def chosen_pairs(seed=0):
    """Users rate what is of their kind, and rate it at random: only the pattern knows the two groups."""
    rng = np.random.default_rng(seed)
    of_a_kind = (np.arange(40)[:, None] % 2) == (np.arange(30) % 2)
    rows, columns = np.nonzero(rng.random((40, 30)) < np.where(of_a_kind, 0.6, 0.05))
    return Interactions(rows, columns, rng.integers(1, 6, rows.size), range(40), range(30))


def small(**options) -> Any:
    return AIR.for_ratings(**CPU | {"n_factors": 3, "graph_neighbors": 5} | options)


def test_the_pattern_is_in_the_presets_whose_pairs_people_chose():
    assert {name for name, preset in PRESETS.items() if preset.model.get("pattern_graphs")} == {
        "ratings",
        "interactions",
    }
    assert not AIR().pattern_graphs


def shown(adjacency):
    """What people see of a graph, but for the four digits."""
    return (adjacency / adjacency.max()).toarray()


def test_similarities_are_the_graph_that_adam_learned_joined_with_the_pattern():
    model = small(solver="adam").fit(chosen_pairs())
    expected = with_pattern(model.item_adjacency_, model.interactions_.to_csr().T)
    np.testing.assert_allclose(model.item_graph_.to_scipy().toarray(), shown(expected), rtol=5.1e-4)
    pd.testing.assert_frame_equal(model.similar_items(3), model.item_graph_.neighbors(3))
    pd.testing.assert_frame_equal(model.similar_users(3), model.user_graph_.neighbors(3))


def test_a_graph_of_all_pairs_gives_the_strongest_edges_of_a_node():
    model = small(solver="adam", graph_neighbors=None).fit(chosen_pairs())
    learned = strongest(model.item_adjacency_, 5)
    assert learned.nnz < model.item_adjacency_.nnz == 30 * 29
    expected = with_pattern(learned, model.interactions_.to_csr().T)
    np.testing.assert_allclose(model.item_graph_.to_scipy().toarray(), shown(expected), rtol=5.1e-4)


@pytest.mark.parametrize("options", [{}, {"pattern_graphs": False}, {"solver": "adam", "pattern_graphs": False}])
def test_others_are_the_learned_graphs(options):
    model = small(**options).fit(chosen_pairs())
    for graph, learned in (
        (model.user_graph_, model.user_adjacency_),
        (model.item_graph_, model.item_adjacency_),
    ):
        np.testing.assert_allclose(graph.to_scipy().toarray(), shown(learned), rtol=5.1e-4)
    assert model.item_graph_ is model.item_graph_


def test_new_nodes_of_a_posterior_get_edges_of_the_pattern():
    model = small().fit(chosen_pairs())
    before = model.item_graph_.to_scipy().toarray()
    model.partial_fit(pd.DataFrame({"user": range(0, 20, 2), "item": 99, "rating": 4.0}))
    after = model.item_graph_.to_scipy().toarray()
    np.testing.assert_array_equal(after[:30, :30], before)
    found = model.similar_items(99, 5)
    assert (found["item"] % 2 == 0).all()
    assert 0 < found["weight"].max() <= 1.001 * np.median(before.max(axis=1))
    alone = small(pattern_graphs=False).fit(chosen_pairs())
    assert alone.partial_fit(pd.DataFrame({"user": [0], "item": [99], "rating": [4.0]})).similar_items(99).empty


def test_a_graph_with_labels_takes_the_place_of_the_one_shown():
    model = small().fit(chosen_pairs())
    titles = pd.DataFrame({"item": range(30), "title": [f"film {item}" for item in range(30)]})
    learned, model.item_graph_ = model.item_adjacency_, model.item_graph_.with_attributes(titles, label="title")
    assert list(model.similar_items(3).columns) == ["item", "label", "weight"]
    assert (model.item_adjacency_ != learned).nnz == 0
    model.partial_fit(pd.DataFrame({"user": [0], "item": [3], "rating": [4.0]}))
    assert model.item_graph_.label == "title"
    model.partial_fit(pd.DataFrame({"user": [0], "item": [99], "rating": [4.0]}))
    assert model.item_graph_.label is None
    with pytest.raises(DataError, match="of the model's 31 items in their order"):
        model.item_graph_ = model.user_graph_


def test_similarities_of_a_snapshot_are_those_of_a_model_that_stopped_there():
    model = small(solver="adam", n_epochs=4, snapshot_epochs=[4]).fit(chosen_pairs())
    found = model.similarities_of(model.snapshots_[4].item_graph)
    pd.testing.assert_frame_equal(found.edge_list(), model.item_graph_.edge_list())
    with pytest.raises(DataError, match="of the model's 30 items in their order"):
        model.similarities_of(found.top(1).subgraph(range(5)))


def test_a_new_user_sees_the_similarities_of_the_model():
    model = small().fit(chosen_pairs())
    alone = model.new_users(pd.DataFrame({"user": ["eve"] * 3, "item": [1, 3, 5], "rating": [5.0, 4.0, 1.0]}))
    assert alone.item_graph_ is model.item_graph_
    told = alone.explain("eve", 7).items
    alike = model.similar_items(7, 30).set_index("item")["weight"]
    assert told["weight"].tolist() == [alike.get(item, 0.0) for item in told["item"]]


@pytest.mark.parametrize(("side", "size"), [("user", 40), ("item", 30)])
def test_groups_that_only_the_pattern_knows_are_found(side, size):
    def purity(model):
        found = [getattr(model, f"similar_{side}s")(node, 5)[side].to_numpy() for node in range(size)]
        return np.mean([np.mean(others % 2 == node % 2) for node, others in enumerate(found)])

    with_it = small(solver="adam").fit(chosen_pairs())
    without = small(solver="adam", pattern_graphs=False).fit(chosen_pairs())
    assert purity(with_it) > 0.95 > purity(without) + 0.1
    assert purity(small().fit(chosen_pairs())) > 0.95  # a posterior's graph sees the pattern


def test_a_refit_and_a_file_have_similarities_of_their_own(tmp_path):
    model = small().fit(chosen_pairs())
    first = model.item_graph_
    loaded: Any = AIR.load(model.save(tmp_path / "model.air"))
    np.testing.assert_allclose(loaded.item_graph_.to_scipy().data, first.to_scipy().data, rtol=1e-6)
    model.fit(chosen_pairs(seed=1))
    assert model.item_graph_ is not first


def test_a_graph_that_is_not_learned_is_not_made_up():
    model = small(item_graph_reg=0.0).fit(chosen_pairs())
    assert model.item_graph_ is None
    assert len(model.similar_items(3, 5)) == 5  # by the cosine of the factors
