"""A graph beside labels, similarities, features, and beside another graph."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from graph_cases import fails, fast, films, graphs, planted, random_adjacency
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform
from scipy.stats import spearmanr

from air_recsys import SimilarityGraph
from air_recsys.graphs import comparison


def expected_agreement(graph, similarity):
    """Spearman over pairs, and the ten strongest neighbours, by loops."""
    adjacency, n = graph.to_scipy().toarray(), len(graph)
    pairs = list(itertools.combinations(range(n), 2))
    means = []
    for node, row in enumerate(adjacency):
        nearest = np.argsort(-row)[: min(10, np.count_nonzero(row))]
        if nearest.size:
            means.append(similarity[node, nearest].mean())
    ranked = spearmanr([adjacency[pair] for pair in pairs], [similarity[pair] for pair in pairs]).statistic
    return {"top_10": np.mean(means), "all_pairs": np.mean([similarity[pair] for pair in pairs]), "spearman": ranked}


@pytest.fixture
def graph():
    return SimilarityGraph(random_adjacency(25, 0, density=0.7), range(100, 125), "item")


@pytest.fixture
def similarity():
    matrix = random_adjacency(25, 1, density=1.0)
    np.fill_diagonal(matrix, 1)
    return matrix


def near(found, expected):
    assert found.index.tolist() == list(expected)
    np.testing.assert_allclose(found, list(expected.values()), rtol=1e-9)


# -------------------------------------------------------------------- similarities and features


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.coo_matrix, lambda matrix: matrix.tolist()])
def test_similarities_agree_as_defined(graph, similarity, container):
    near(graph.similarity_to(container(similarity)), expected_agreement(graph, similarity))


def test_a_table_of_similarities_may_stand_in_any_order_and_know_others_or_not_all(graph, similarity):
    order = np.random.default_rng(0).permutation(25)
    table = pd.DataFrame(similarity, graph.ids, graph.ids)
    shuffled = table.iloc[order, order[::-1]]
    near(graph.similarity_to(shuffled), expected_agreement(graph, similarity))
    shuffled = shuffled.rename(index={110: 990}, columns={110: 990})
    some = [id for id in graph.ids if id != 110]
    rows = graph.ids != 110
    near(graph.similarity_to(shuffled), expected_agreement(graph.subgraph(some), similarity[np.ix_(rows, rows)]))


def test_of_similarities_that_are_not_symmetric_the_symmetric_part_counts(graph, similarity):
    shift = np.triu(similarity, 1) - np.tril(similarity, -1)
    near(graph.similarity_to(similarity + 0.3 * shift), expected_agreement(graph, similarity))


def test_flags_are_compared_by_jaccard(graph):
    flags = np.random.default_rng(0).random((25, 6)) < 0.4
    flags[:, 0] |= ~flags.any(axis=1)
    expected = expected_agreement(graph, 1 - squareform(pdist(flags, "jaccard")))
    near(graph.similarity_to(pd.DataFrame(flags, index=graph.ids)), expected)
    near(graph.similarity_to(flags.astype(int)), expected)
    near(graph.similarity_to(sp.csr_array(flags.astype(float))), expected)


def test_other_features_are_compared_by_cosine(graph):
    features = np.random.default_rng(0).normal(size=(25, 6))
    near(graph.similarity_to(features), expected_agreement(graph, 1 - squareform(pdist(features, "cosine"))))


def test_nodes_about_which_nothing_is_known_are_left_out(graph):
    features = pd.DataFrame(np.random.default_rng(0).normal(size=(25, 6)), index=graph.ids)
    features.loc[101, 3] = np.nan
    features.loc[102] = 0
    some = [id for id in graph.ids if id not in (101, 102)]
    pd.testing.assert_series_equal(
        graph.similarity_to(features), graph.subgraph(some).similarity_to(features.loc[some])
    )


def test_a_graph_made_of_the_similarities_agrees_fully_and_one_without_edges_says_nothing(similarity):
    graph = SimilarityGraph(similarity, range(25))
    assert graph.similarity_to(similarity)["spearman"] == 1
    found = graph.threshold(2).similarity_to(similarity)
    assert found[["top_10", "spearman"]].isna().all()
    assert found["all_pairs"] == pytest.approx(graph.similarity_to(similarity)["all_pairs"])


def test_many_nodes_are_judged_by_a_sample_of_pairs(monkeypatch, graph, similarity):
    exact = graph.similarity_to(similarity)
    monkeypatch.setattr(comparison, "_MOST_PAIRS", 299)
    sampled = graph.similarity_to(similarity)
    pd.testing.assert_series_equal(sampled, graph.similarity_to(similarity))
    assert sampled["top_10"] == exact["top_10"]
    assert 0 < abs(sampled["all_pairs"] - exact["all_pairs"]) < 0.1
    first, second = comparison.node_pairs(25)
    assert (first != second).all()
    assert set(second.tolist()) == set(range(25))


# -------------------------------------------------------------------- labels


def test_labels_agree_as_defined():
    graph, groups = planted()
    found = graph.similarity_to(pd.Series(groups, index=graph.ids))
    adjacency = graph.to_scipy().toarray()
    same = groups[:, None] == groups
    pairs = np.triu_indices(len(groups), 1)
    inside, outside = adjacency[pairs][same[pairs]], adjacency[pairs][~same[pairs]]
    order = inside[:, None] - outside
    assert found["homophily"] == pytest.approx(adjacency[same].sum() / adjacency.sum())
    assert found["all_pairs"] == pytest.approx(same[pairs].mean())
    assert found["auc"] == pytest.approx(((order > 0) + 0.5 * (order == 0)).mean())
    assert found["nmi"] == 1
    assert found["top_10"] == pytest.approx(expected_agreement(graph, same.astype(float))["top_10"])
    pd.testing.assert_series_equal(graph.similarity_to(groups), found)


def test_labels_of_any_kind_and_missing_ones():
    graph, groups = planted()
    names = pd.Series([f"group {group}" for group in groups], index=graph.ids)
    pd.testing.assert_series_equal(graph.similarity_to(names), graph.similarity_to(groups))
    names.iloc[:5] = None
    found = graph.similarity_to(names.sample(frac=1, random_state=0))
    pd.testing.assert_series_equal(found, graph.similarity_to(names.iloc[5:]))


def test_a_single_label_leaves_nothing_to_tell_apart():
    found = films().similarity_to(["x"] * 4)
    assert np.isnan(found["auc"])
    assert found["homophily"] == found["all_pairs"] == 1


@pytest.mark.parametrize(
    ("side", "message"),
    [
        (np.zeros(3), "expected side information of 4 items, found shape (3,)"),
        (np.zeros((3, 4)), "expected side information of 4 items, found shape (3, 4)"),
        (np.zeros((4, 4, 4)), "expected side information of 4 items, found shape (4, 4, 4)"),
        (np.full((4, 4), np.nan), "expected finite similarities, found NaN or infinite ones"),
        (np.zeros((4, 2)), "expected side information about at least two nodes, found it about 0"),
        (pd.Series(["a"], index=[10]), "expected side information about at least two nodes, found it about 1"),
        (pd.DataFrame({"g": ["a", "b"]}, index=[10, 20]), "side information must be numbers, found 'a'"),
        (pd.Series([1, 2], index=[10, 10]), "item ids must be distinct, found 10 twice"),
    ],
)
def test_unusable_side_information_is_named(side, message):
    with fails(message):
        films().similarity_to(side)


# -------------------------------------------------------------------- another graph


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
