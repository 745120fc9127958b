"""A graph beside another one over the same ids."""

import numpy as np
import pandas as pd
import pytest
from graph_cases import fails, fast, films, graphs, planted, random_adjacency
from hypothesis import given
from hypothesis import strategies as st

from air_recsys import SimilarityGraph


@fast
@given(graphs(), st.randoms())
def test_a_graph_shares_all_with_itself_in_whatever_order(graph, random):
    order = random.sample(graph.ids.tolist(), len(graph))
    found = graph.compare(graph.subgraph(order))
    assert found["edges"] == found["other_edges"] == found["shared_edges"] == graph.n_edges
    assert found["jaccard"] == 1 or graph.n_edges == 0
    assert found["spearman"] == 1 or graph.n_edges < 2


@fast
@given(st.integers(3, 9), st.integers(0, 999))
def test_what_two_graphs_share_is_counted_from_both_sides_alike(size, seed):
    first = SimilarityGraph(random_adjacency(size, seed), range(size))
    second = SimilarityGraph(random_adjacency(size, seed + 1000), range(size))
    found, back = first.compare(second), second.compare(first)
    edges, others = (set(map(tuple, g.edge_list()[["source", "target"]].to_numpy())) for g in (first, second))
    assert found["shared_edges"] == len(edges & others) == back["shared_edges"]
    assert (found["edges"], found["other_edges"]) == (len(edges), len(others))
    if edges | others:
        assert found["jaccard"] == len(edges & others) / len(edges | others) == back["jaccard"]
    pd.testing.assert_series_equal(found[["spearman", "nmi"]], back[["spearman", "nmi"]])
    assert (found.name, found.dtype) == ("comparison", np.float64)


def test_weights_in_the_reverse_order_correlate_to_minus_one():
    adjacency = random_adjacency(6, 0, density=1)
    reverse = np.where(adjacency > 0, 2 - adjacency, 0)
    found = SimilarityGraph(adjacency, range(6)).compare(SimilarityGraph(reverse, range(6)))
    assert (found["jaccard"], found["spearman"]) == (1, -1)


def test_communities_are_compared_by_mutual_information():
    graph, _ = planted()
    other, _ = planted(seed=9)
    assert graph.compare(graph.top(10))["nmi"] == 1
    assert graph.compare(other)["nmi"] < 0.3


@pytest.mark.parametrize("ids", [[10, 20, 30], [10, 20, 30, 50], [10, 20, 30, 40, 50]])
def test_graphs_over_other_ids_are_refused(ids):
    other = SimilarityGraph(np.zeros((len(ids), len(ids))), ids)
    with fails(
        f"expected a graph over the same ids, found {int(40 not in ids)} of 4 missing in a graph of {len(ids)}"
    ):
        films().compare(other)
