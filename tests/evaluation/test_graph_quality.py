"""Graphs judged: how communities form, and what they share with who rated what, and with how."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from air_recsys import Interactions, SimilarityGraph
from air_recsys.evaluation.graph_quality import N_BANDS, bands_of, counts_and_means, exposure, formation, modularity
from air_recsys.exceptions import DataError


def noisy(seed: int, n_groups: int = 3, size: int = 30) -> tuple[SimilarityGraph, np.ndarray]:
    rng = np.random.default_rng(seed)
    groups = np.arange(size) % n_groups
    half = rng.random((size, size)) * np.where(np.equal.outer(groups, groups), 1.0, 0.1)
    return SimilarityGraph(half + half.T, range(size)), groups


@pytest.mark.parametrize("seed", range(2))
def test_modularity_is_that_of_networkx(seed):
    graph, groups = noisy(seed)
    parts = [set(np.flatnonzero(groups == each).tolist()) for each in range(3)]
    expected = nx.community.modularity(graph.to_networkx(labels=False), parts)
    assert modularity(graph, groups) == pytest.approx(expected)


def test_rows_are_in_the_order_of_the_steps_and_end_with_the_last():
    graph, _ = noisy(0)
    empty, coarse = (SimilarityGraph(np.full((30, 30), weight), range(30)) for weight in (0.0, 1.0))
    found = formation({7: graph, 0: empty, 2: coarse})
    assert found["step"].tolist() == [0, 2, 7]
    assert found["communities"].tolist() == [0, 1, 3]
    assert found["last"].iloc[-1] == pytest.approx(1)
    assert found.loc[0, ["edges", "modularity", "last"]].tolist() == [0, 0, 0]


@pytest.fixture(scope="module")
def ratings() -> Interactions:
    """Who rates what follows one division of 40 items, how they rate it another."""
    rng = np.random.default_rng(0)
    users, items = np.meshgrid(np.arange(60), np.arange(40), indexing="ij")
    shown = rng.random((60, 40)) < np.where(users // 30 == items // 20, 0.8, 0.04)
    values = np.where((users + items) % 2, 5.0, 1.0)
    frame = pd.DataFrame({"user": users[shown], "item": items[shown], "rating": values[shown]})
    return Interactions.from_frame(frame)


def graph_of(labels):
    adjacency = (np.equal.outer(labels, labels)).astype(float)
    return SimilarityGraph(adjacency, range(len(labels)), kind="item")


def test_communities_of_exposure_and_of_taste(ratings):
    by_exposure = exposure(graph_of(np.arange(40) // 20), ratings).nmi
    by_taste = exposure(graph_of(np.arange(40) % 2), ratings).nmi
    assert by_exposure["pattern"] > 0.9 > 0.7 > by_exposure["values"]  # values are of items that share raters
    assert by_taste["values"] > 0.6 > 0.2 > by_taste["pattern"]
    assert max(by_exposure["shuffled"], by_taste["shuffled"]) < 0.1


def test_counts_and_means_follow_the_ids_of_the_graph_and_rows_without_a_rating_have_none(ratings):
    graph = SimilarityGraph(np.ones((40, 40)), range(39, -1, -1), kind="item")
    found = exposure(graph, ratings)
    frame = ratings.to_frame().groupby("item")["rating"]
    assert found.counts.tolist() == frame.size()[::-1].tolist()
    assert found.means == pytest.approx(frame.mean()[::-1].to_numpy())
    counts, means = counts_and_means(sp.csr_array([[1.0, 4.0], [0.0, 0.0]]))
    assert counts.tolist() == [2, 0]
    assert means == pytest.approx([2.5, np.nan], nan_ok=True)


def test_users_too_and_communities_that_leave_nodes_out(ratings):
    graph = SimilarityGraph(np.ones((60, 60)), range(60), kind="user")
    labels = pd.Series(np.where(np.arange(60) < 50, np.arange(60) // 30, -1))
    found = exposure(graph, ratings, labels)
    assert found.pattern.size == found.bands.size == 60
    assert found.nmi["pattern"] > 0.9


def test_bands_hold_equal_counts_together():
    counts = np.random.default_rng(0).integers(1, 30, 500)
    bands = bands_of(counts)
    assert np.unique(bands).tolist() == list(range(bands.max() + 1))
    assert bands.max() < N_BANDS
    order = np.argsort(counts, kind="stable")
    assert (np.diff(bands[order]) >= 0).all()
    assert all(np.unique(bands[counts == count]).size == 1 for count in np.unique(counts))


@pytest.mark.parametrize(
    ("ids", "kind", "message"),
    [(range(40, 80), "item", "no item 40"), (range(40), "patch", "a graph of items or users beside ratings")],
)
def test_graphs_of_others_are_refused(ratings, ids, kind, message):
    with pytest.raises(DataError, match=message):
        exposure(SimilarityGraph(np.ones((40, 40)), ids, kind=kind), ratings)
