"""Recommendations and similarities: order, what is left out, who is unknown, which graph they are read from."""

import copy
from typing import Any

import numpy as np
import pandas as pd
import pytest
from model_cases import (
    CPU,
    ITEMS,
    MODELS,
    N_ITEMS,
    N_USERS,
    USERS,
    every_model,
    fitted,
    frame,
    models_with_graphs,
)

from air_recsys import AIR, Interactions
from air_recsys.exceptions import DataError
from air_recsys.graphs.postprocess import with_pattern
from air_recsys.graphs.pruning import strongest
from air_recsys.models import GraphRanker

COLUMNS = ["user", "item", "score", "rank", "source"]


def unseen(user):
    table = frame()
    return set(ITEMS) - set(table.loc[table["user"] == user, "item"])


# -------------------------------------------------------------------- recommend


@pytest.mark.order
@every_model
def test_fewer_are_the_first_of_more_and_more_than_there_is_is_what_there_is(make):
    model = fitted(make)
    whole = model.recommend([*USERS, "nobody"], N_ITEMS, exclude_seen=False)
    assert len(whole) == (N_USERS + 1) * N_ITEMS
    for n in (1, 4, 10**9):
        first = model.recommend([*USERS, "nobody"], n, exclude_seen=False)
        pd.testing.assert_frame_equal(first, whole[whole["rank"] <= n].reset_index(drop=True))


@every_model
def test_an_unknown_user_gets_what_others_rate_best_or_have(make):
    model = fitted(make)
    found = model.recommend(["nobody", USERS[1]], 3)
    items: Any = frame().groupby("item")["rating"].agg(["count", "sum"])
    if isinstance(model, GraphRanker):
        items["score"] = items["count"] / N_USERS
    else:
        items["score"] = (items["sum"] + 5 * frame()["rating"].mean()) / (items["count"] + 5)
    expected = items.sort_values(["score", "count"], ascending=False, kind="stable")[:3]
    own = found[found["user"] == "nobody"]
    assert own["source"].tolist() == ["popular"] * 3
    assert own["item"].tolist() == expected.index.tolist()
    np.testing.assert_allclose(own["score"], expected["score"])
    assert set(found.loc[found["user"] == USERS[1], "source"]) == {"model"}


@pytest.mark.order
@every_model
def test_blocks_of_users_change_nothing(make, blocks_of):
    model = fitted(make)
    asked = [*USERS, "nobody", *USERS[::-1]]
    expected = model.recommend(asked, 4)
    blocks_of(3 * N_ITEMS)
    found = model.recommend(asked, 4)
    pd.testing.assert_frame_equal(found.drop(columns="score"), expected.drop(columns="score"))
    # A GraphRanker scores in single precision, whose last bits depend on the block on some processors.
    tolerance = 1e-6 if isinstance(model, GraphRanker) else 1e-9
    np.testing.assert_allclose(found["score"], expected["score"], rtol=tolerance)


def test_clipped_scores_are_those_within_the_range_and_rank_as_unclipped_ones():
    """Clipping makes ties at the ends of the scale; it may change scores, never the order."""
    options = {"n_epochs": 300, "weight_decay": 1e-3, "user_graph_reg": 0.0, "item_graph_reg": 0.0}
    clipped, free = (MODELS["AIR-ratings"](clip=clip, **options).fit(frame()) for clip in (True, False))
    found, expected = (model.recommend(USERS, N_ITEMS, exclude_seen=False) for model in (clipped, free))
    assert found["item"].tolist() == expected["item"].tolist()
    np.testing.assert_allclose(found["score"], expected["score"].clip(1, 5))
    assert np.max(expected["score"]) > 5  # otherwise the test says nothing


# -------------------------------------------------------------------- similar


@models_with_graphs
def test_similar_ones_are_the_neighbors_in_the_graph_shown(make):
    model = fitted(make)
    pd.testing.assert_frame_equal(model.similar_users(USERS[2], 3), model.user_graph_.neighbors(USERS[2], 3))
    pd.testing.assert_frame_equal(model.similar_items(ITEMS[2], 3), model.item_graph_.neighbors(ITEMS[2], 3))


def test_without_a_graph_similarity_is_the_cosine_of_the_factors():
    model = fitted(MODELS["DMF"])
    unit = model.item_factors_ / np.linalg.norm(model.item_factors_, axis=1, keepdims=True)
    cosine = unit @ unit[4]
    cosine[4] = -2
    order = np.argsort(-cosine)[:3]
    found = model.similar_items(ITEMS[4], 3)
    assert found["item"].tolist() == [ITEMS[item] for item in order]
    np.testing.assert_allclose(found["weight"], cosine[order], rtol=1e-5)
    assert len(model.similar_items(ITEMS[4], 100)) == N_ITEMS - 1


# -------------------------------------------------------------------- learned graphs and the pattern of the ratings


def chosen_pairs():
    """Users rate what is of their kind, and rate it at random: only the pattern knows the two groups."""
    rng = np.random.default_rng(0)
    of_a_kind = (np.arange(40)[:, None] % 2) == (np.arange(30) % 2)
    rows, columns = np.nonzero(rng.random((40, 30)) < np.where(of_a_kind, 0.6, 0.05))
    return Interactions(rows, columns, rng.integers(1, 6, rows.size), range(40), range(30))


def small(**options) -> Any:
    return AIR.for_ratings(**CPU | {"n_factors": 3, "graph_neighbors": 5} | options).fit(chosen_pairs())


@pytest.fixture(scope="module")
def of_posterior() -> Any:
    return small()


@pytest.fixture
def model(of_posterior) -> Any:
    return copy.copy(of_posterior)


@pytest.fixture(scope="module")
def by_adam() -> Any:
    return small(solver="adam", n_epochs=40, snapshot_epochs=[40])


def matrix(graph):
    return graph.to_scipy().toarray()


def shown(adjacency):
    """What people see of a graph, but for the four digits."""
    return (adjacency / adjacency.max()).toarray()


def purity(model, side):
    """How many of the five that are most alike are of the same of two groups."""
    size = {"user": 40, "item": 30}[side]
    found = [getattr(model, f"similar_{side}s")(node, 5)[side].to_numpy() for node in range(size)]
    return np.mean([np.mean(others % 2 == node % 2) for node, others in enumerate(found)])


def test_the_graph_that_adam_learned_is_joined_with_the_pattern(by_adam):
    expected = with_pattern(by_adam.item_adjacency_, by_adam.interactions_.to_csr().T)
    np.testing.assert_allclose(matrix(by_adam.item_graph_), shown(expected), rtol=5.1e-4)
    found = by_adam.similarities_of(by_adam.snapshots_[40].item_graph)
    pd.testing.assert_frame_equal(found.edge_list(), by_adam.item_graph_.edge_list())
    with pytest.raises(DataError, match="of the model's 30 items in their order"):
        by_adam.similarities_of(found.top(1).subgraph(range(5)))


def test_a_graph_of_all_pairs_gives_the_strongest_edges_of_a_node():
    model = small(solver="adam", graph_neighbors=None)
    learned = strongest(model.item_adjacency_, 5)
    assert learned.nnz < model.item_adjacency_.nnz == 30 * 29
    expected = with_pattern(learned, model.interactions_.to_csr().T)
    np.testing.assert_allclose(matrix(model.item_graph_), shown(expected), rtol=5.1e-4)


def test_without_the_pattern_and_of_a_posterior_the_learned_graphs_are_shown(model, by_adam):
    plain = small(solver="adam", pattern_graphs=False)
    for each in (model, plain):
        for graph, learned in ((each.user_graph_, each.user_adjacency_), (each.item_graph_, each.item_adjacency_)):
            np.testing.assert_allclose(matrix(graph), shown(learned), rtol=5.1e-4)
        assert each.item_graph_ is each.item_graph_
    for side in ("user", "item"):  # groups that only the pattern knows: a posterior's graph sees it
        assert purity(by_adam, side) > 0.95 > purity(plain, side) + 0.1
        assert purity(model, side) > 0.95


def test_new_nodes_of_a_posterior_get_edges_of_the_pattern(model):
    before = matrix(model.item_graph_)
    model.partial_fit(pd.DataFrame({"user": range(0, 20, 2), "item": 99, "rating": 4.0}))
    np.testing.assert_array_equal(matrix(model.item_graph_)[:30, :30], before)
    found = model.similar_items(99, 5)
    assert (found["item"] % 2 == 0).all()
    assert 0 < found["weight"].max() <= 1.001 * np.median(before.max(axis=1))
    alone = small(pattern_graphs=False)
    assert alone.partial_fit(pd.DataFrame({"user": [0], "item": [99], "rating": [4.0]})).similar_items(99).empty


def test_a_graph_with_labels_takes_the_place_of_the_one_shown(model):
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


def test_a_new_user_sees_the_similarities_of_the_model(model):
    alone = model.fold_in(pd.DataFrame({"user": ["eve"] * 3, "item": [1, 3, 5], "rating": [5.0, 4.0, 1.0]}))
    assert alone.item_graph_ is model.item_graph_
    told = alone.explain("eve", 7).items
    alike = model.similar_items(7, 30).set_index("item")["weight"]
    assert told["weight"].tolist() == [alike.get(item, 0.0) for item in told["item"]]


@pytest.mark.parametrize("options", [{}, {"solver": "adam"}], ids=["variational", "adam"])
def test_a_graph_that_is_not_learned_is_not_made_up(options):
    model = small(item_graph_reg=0.0, **options)
    assert model.item_graph_ is None
    assert model.user_graph_ is not None
    assert len(model.similar_items(3, 5)) == 5  # by the cosine of the factors
