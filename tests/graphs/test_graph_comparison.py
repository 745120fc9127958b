"""A graph beside labels, similarities and features, and beside another one over the same ids."""

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
from sklearn.metrics import normalized_mutual_info_score

from air_recsys import SimilarityGraph
from air_recsys.graphs.comparison import node_pairs


def expected_agreement(graph, similarity):
    """Spearman over pairs, and the ten strongest neighbours, by loops."""
    adjacency = graph.to_scipy().toarray()
    pairs = list(itertools.combinations(range(len(adjacency)), 2))
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
    assert (found.name, found.dtype) == ("agreement", np.float64)
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


def test_flags_are_compared_by_jaccard_and_other_features_by_cosine_in_blocks_of_any_size(graph, blocks_of):
    flags = np.random.default_rng(0).random((25, 6)) < 0.4
    flags[:, 0] |= ~flags.any(axis=1)
    expected = expected_agreement(graph, 1 - squareform(pdist(flags, "jaccard")))
    for form in (pd.DataFrame(flags, index=graph.ids), flags.astype(int), sp.csr_array(flags.astype(float))):
        near(graph.similarity_to(form), expected)
    features = np.random.default_rng(0).normal(size=(25, 6))
    expected = expected_agreement(graph, 1 - squareform(pdist(features, "cosine")))
    near(graph.similarity_to(features), expected)
    for entries in (1, 60):
        blocks_of(entries)
        near(graph.similarity_to(features), expected)


def test_nodes_about_which_nothing_is_known_are_left_out(graph):
    features = pd.DataFrame(np.random.default_rng(0).normal(size=(25, 6)), index=graph.ids)
    features.loc[101, 3] = np.nan
    features.loc[102] = 0
    some = [id for id in graph.ids if id not in (101, 102)]
    expected = graph.subgraph(some).similarity_to(features.loc[some])
    pd.testing.assert_series_equal(graph.similarity_to(features), expected)


def test_nodes_without_neighbors_and_with_one_leave_the_mean_to_the_others():
    adjacency = np.zeros((6, 6))
    adjacency[1:5, 1:5] = random_adjacency(4, 0, density=1)
    adjacency[4, 5] = adjacency[5, 4] = 1
    similarity, graph = random_adjacency(6, 1, density=1), SimilarityGraph(adjacency, range(6))
    near(graph.similarity_to(similarity), expected_agreement(graph, similarity))


def test_a_table_is_of_similarities_only_where_its_columns_are_its_ids(graph):
    table = np.abs(np.random.default_rng(0).normal(size=(25, 25))) + 1
    as_features = expected_agreement(graph, 1 - squareform(pdist(table, "cosine")))
    near(graph.similarity_to(pd.DataFrame(table, graph.ids, [f"f{row}" for row in range(25)])), as_features)
    some = graph.ids[:20]
    few = expected_agreement(graph.subgraph(some), 1 - squareform(pdist(table[:20], "cosine")))
    near(graph.similarity_to(pd.DataFrame(table[:20], some, graph.ids)), few)


def test_missing_values_may_be_of_any_type(graph):
    features = pd.DataFrame({"age": np.arange(25) % 7 + 1, "old": np.arange(25) % 3 == 0}, index=graph.ids)
    nullable = features.astype({"age": "Int64", "old": "boolean"})
    nullable.loc[[101, 103], "age"] = pd.NA
    expected = graph.similarity_to(features.drop(index=[101, 103]).astype(float))
    pd.testing.assert_series_equal(graph.similarity_to(nullable), expected)


def test_a_graph_made_of_the_similarities_agrees_fully_and_one_without_edges_says_nothing(similarity):
    graph = SimilarityGraph(similarity, range(25))
    assert graph.similarity_to(similarity)["spearman"] == 1
    found = graph.threshold(1).similarity_to(similarity)
    assert found[["top_10", "spearman"]].isna().all()
    assert found["all_pairs"] == pytest.approx(graph.similarity_to(similarity)["all_pairs"])


def test_pairs_are_drawn_only_where_there_are_too_many():
    np.testing.assert_array_equal(node_pairs(2000), np.triu_indices(2000, k=1))
    first, second = node_pairs(2001)
    assert len(first) == 2_000_000
    assert (first != second).all()
    for drawn in (first, second, (second - first) % 2001):  # any node, with any other
        counts = np.bincount(drawn, minlength=2001)
        assert counts[1:].min() > 800
        assert counts.max() < 1200
    np.testing.assert_array_equal(node_pairs(2001), (first, second))


# -------------------------------------------------------------------- labels


def test_labels_agree_as_defined():
    graph, groups = planted()
    found = graph.similarity_to(pd.Series(groups, index=graph.ids))
    adjacency = graph.to_scipy().toarray()
    same = groups[:, None] == groups
    pairs = np.triu_indices(len(groups), 1)
    inside, outside = adjacency[pairs][same[pairs]], adjacency[pairs][~same[pairs]]
    order = inside[:, None] - outside
    expected = {
        "top_10": expected_agreement(graph, same.astype(float))["top_10"],
        "all_pairs": same[pairs].mean(),
        "homophily": adjacency[same].sum() / adjacency.sum(),
        "auc": ((order > 0) + 0.5 * (order == 0)).mean(),
        "nmi": 1,
    }
    near(found, expected)
    pd.testing.assert_series_equal(graph.similarity_to(groups), found)


def test_labels_of_any_kind_and_missing_ones():
    graph, groups = planted()
    names = pd.Series([f"group {group}" for group in groups], index=graph.ids)
    pd.testing.assert_series_equal(graph.similarity_to(names), graph.similarity_to(groups))
    names.iloc[:5] = None
    found = graph.similarity_to(names.sample(frac=1, random_state=0))
    pd.testing.assert_series_equal(found, graph.similarity_to(names.iloc[5:]))


def test_labels_are_compared_with_the_communities_that_the_graph_names(graph):
    labels = np.arange(25) % 3
    expected = normalized_mutual_info_score(labels, graph.communities())
    assert graph.similarity_to(labels)["nmi"] == expected
    assert normalized_mutual_info_score(labels, graph.communities(random_state=1)) != expected


def test_labels_of_which_few_all_or_none_are_shared_or_beside_no_edges():
    graph = films()
    assert graph.similarity_to(["x", "x", "y", "z"])["auc"] == pytest.approx(0.8)  # one of five pairs weighs more
    found = graph.similarity_to(["w", "x", "y", "z"])
    assert np.isnan(found["auc"])
    assert found["all_pairs"] == found["homophily"] == 0
    assert graph.similarity_to(pd.Series(["x", "x"], index=[10, 20]))["all_pairs"] == 1
    found = graph.similarity_to(["x"] * 4)
    assert np.isnan(found["auc"])
    assert found["homophily"] == found["all_pairs"] == 1
    found = SimilarityGraph(np.zeros((4, 4)), range(4)).similarity_to(["x", "x", "y", "y"])
    assert found[["top_10", "homophily"]].isna().all()
    assert found["auc"] == 0.5


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
        (np.full((4, 4), "x"), "similarities must be numbers, found 'x'"),
        (np.full((4, 2), "x"), "features must be numbers, found 'x'"),
        (pd.DataFrame([[1, 2]], [10], ["a", "a"]), "column ids must be distinct, found 'a' twice"),
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
    assert (found.name, found.dtype) == ("comparison", np.float64)


def test_weights_in_the_reverse_order_correlate_to_minus_one_and_communities_by_mutual_information():
    adjacency = random_adjacency(6, 0, density=1)
    reverse = np.where(adjacency > 0, 2 - adjacency, 0)
    found = SimilarityGraph(adjacency, range(6)).compare(SimilarityGraph(reverse, range(6)))
    assert (found["jaccard"], found["spearman"]) == (1, -1)
    graph, other = planted()[0], planted(seed=9)[0]
    assert graph.compare(graph.top(10))["nmi"] == 1
    assert graph.compare(other)["nmi"] < 0.3


@pytest.mark.parametrize("ids", [[10, 20, 30], [10, 20, 30, 50], [10, 20, 30, 40, 50]])
def test_graphs_over_other_ids_are_refused(ids):
    other = SimilarityGraph(np.zeros((len(ids), len(ids))), ids)
    missing = int(40 not in ids)
    with fails(f"expected a graph over the same ids, found {missing} of 4 missing in a graph of {len(ids)}"):
        films().compare(other)
