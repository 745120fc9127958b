"""The graph of nearest rows of factors, against brute force."""

import numpy as np
import pandas as pd
import pytest
from graph_cases import fails, fast, same_partition
from hypothesis import given
from hypothesis import strategies as st

from air_recsys import SimilarityGraph
from air_recsys.exceptions import ParameterError
from air_recsys.graphs import neighbors as construction


def brute_force(factors, k, metric):
    """The definition, by the full matrix of distances."""
    n = len(factors)
    if metric == "cosine":
        norms = np.linalg.norm(factors, axis=1)
        weights = factors @ factors.T / np.outer(norms, norms)
        distances = -weights
    else:
        distances = np.square(factors[:, None] - factors).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    order = distances.argsort(axis=1)[:, : min(k, n - 1)]
    chosen = np.zeros((n, n), dtype=bool)
    np.put_along_axis(chosen, order, True, axis=1)
    if metric == "euclidean":
        scales = np.sqrt(np.take_along_axis(distances, order[:, -1:], axis=1))
        weights = np.exp(-distances / (scales * scales.T))
    return np.where(chosen | chosen.T, weights.clip(0), 0)


@pytest.mark.parametrize("metric", construction.METRICS)
@fast
@given(size=st.integers(2, 30), width=st.integers(2, 5), k=st.integers(1, 35), seed=st.integers(0, 999))
def test_edges_and_weights_are_those_of_the_definition(metric, size, width, k, seed):
    factors = np.random.default_rng(seed).normal(size=(size, width))
    graph = SimilarityGraph.from_factors(factors, range(size), k, metric=metric)
    np.testing.assert_allclose(graph.to_scipy().toarray(), brute_force(factors, k, metric), atol=2e-5)


@pytest.mark.parametrize("metric", construction.METRICS)
def test_blocks_change_nothing(blocks_of, metric):
    factors = np.random.default_rng(0).normal(size=(40, 3))
    whole = SimilarityGraph.from_factors(factors, range(40), 5, metric=metric).to_scipy()
    blocks_of(1)
    again = SimilarityGraph.from_factors(factors, range(40), 5, metric=metric).to_scipy()
    np.testing.assert_allclose(again.toarray(), whole.toarray(), rtol=1e-6)


@pytest.mark.parametrize(("entries", "largest"), [(1, 1), (60, 4), (10_000, 40)])
def test_every_row_is_measured_once_and_in_blocks(blocks_of, entries, largest):
    blocks_of(entries)
    points = np.arange(120.0).reshape(40, 3)
    neighbors = np.random.default_rng(0).integers(40, size=(40, 5))
    blocks = []

    def measure(own, others):
        blocks.append(own)
        return own[:, :1] + others.sum(axis=2)

    found = construction._in_blocks(points, neighbors, measure)
    np.testing.assert_array_equal(found, points[:, :1] + points[neighbors].sum(axis=2))
    np.testing.assert_array_equal(np.concatenate(blocks), points)
    assert max(map(len, blocks)) == largest


@pytest.mark.parametrize("metric", construction.METRICS)
def test_permuting_the_rows_permutes_the_graph(metric):
    factors = np.random.default_rng(0).normal(size=(40, 3))
    order = np.random.default_rng(1).permutation(40)
    graph = SimilarityGraph.from_factors(factors, range(40), 5, metric=metric)
    moved = SimilarityGraph.from_factors(factors[order], order, 5, metric=metric)
    np.testing.assert_allclose(
        moved.to_scipy().toarray(), graph.subgraph(order).to_scipy().toarray(), rtol=1e-5, atol=1e-7
    )


def test_the_unit_of_the_factors_does_not_matter():
    factors = np.random.default_rng(0).normal(size=(40, 3))
    for metric in ("cosine", "euclidean"):
        small, large = (SimilarityGraph.from_factors(c * factors, range(40), 5, metric=metric) for c in (1e-4, 1e4))
        np.testing.assert_allclose(small.to_scipy().toarray(), large.to_scipy().toarray(), rtol=1e-3, atol=1e-6)


def test_rows_of_zeros_stand_alone_and_take_no_neighbours_from_others():
    """By distance between unit rows the zero row would be nearer to both than they are to each other."""
    factors = [[1, 0], [0.1, 1], [0, 0], [0, 0]]
    graph = SimilarityGraph.from_factors(factors, "abzy", k=1)
    assert graph.edge_list()[["source", "target"]].to_numpy().tolist() == [["a", "b"]]
    assert SimilarityGraph.from_factors(np.zeros((3, 2)), range(3)).n_edges == 0


def test_opposite_rows_are_not_alike():
    assert SimilarityGraph.from_factors([[1.0], [-1.0]], "ab").n_edges == 0


def test_equal_rows_weigh_one():
    factors = np.repeat([[0.0, 1.0], [5.0, 5.0]], 4, axis=0)
    found = SimilarityGraph.from_factors(factors, range(8), k=3, metric="euclidean")
    np.testing.assert_array_equal(found.edge_list()["weight"], 1)
    assert same_partition(found.components().tolist(), [0] * 4 + [1] * 4)
    more = SimilarityGraph.from_factors(factors, range(8), k=5, metric="euclidean")
    assert (more.subgraph(range(4)).edge_list()["weight"] == 1).all()
    assert np.isfinite(more.to_scipy().data).all()


@pytest.mark.parametrize("distance", [0.5, 5.0])
def test_rows_with_k_equal_ones_are_joined_to_no_other(distance):
    found = SimilarityGraph.from_factors([[0.0], [0.0], [0.0], [distance]], "abcd", k=2, metric="euclidean")
    assert found.components().tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("metric", construction.METRICS)
def test_one_row_and_none(metric):
    assert SimilarityGraph.from_factors([[1.0, 2.0]], ["x"], metric=metric).n_edges == 0
    assert len(SimilarityGraph.from_factors(np.zeros((0, 3)), [], metric=metric)) == 0


def test_no_rounding_lifts_a_cosine_above_one():
    factors = np.random.default_rng(0).normal(size=(300, 3))
    graph = SimilarityGraph.from_factors(np.concatenate([factors, 3 * factors]), range(600), 3)
    assert graph.to_scipy().data.max() == 1


def test_factors_are_compared_in_single_precision():
    assert construction.as_factors([[1, 2], [3, 4]], 2).dtype == np.float32


def test_fifty_items_are_joined_to_each_where_nothing_else_is_asked_for():
    factors = np.random.default_rng(0).random((80, 3))
    graph = SimilarityGraph.from_factors(factors, range(80))
    explicit = SimilarityGraph.from_factors(factors, range(80), 50, "item", metric="cosine")
    pd.testing.assert_frame_equal(graph.edge_list(), explicit.edge_list())
    assert graph.kind == explicit.kind


def test_attributes_come_along_and_ids_may_be_a_generator():
    table = pd.DataFrame({"title": ["A", "B"]}, index=["a", "b"])
    graph = SimilarityGraph.from_factors(
        [[1, 1], [1, 2]], (id for id in "ab"), kind="user", attributes=table, label="title"
    )
    assert graph.kind == "user"
    assert graph.neighbors("a")["label"].tolist() == ["B"]


def test_planted_groups_come_back():
    rng = np.random.default_rng(0)
    groups = rng.integers(4, size=200)
    factors = 4 * rng.normal(size=(4, 8))[groups] + rng.normal(size=(200, 8))
    for metric in ("cosine", "euclidean"):
        graph = SimilarityGraph.from_factors(factors, range(200), 10, metric=metric)
        assert graph.similarity_to(groups)["nmi"] > 0.95


@pytest.mark.parametrize(
    ("arguments", "message", "error"),
    [
        (([1.0, 2.0], "ab"), "expected factors of shape (2, r), one row per id, found shape (2,)", ValueError),
        (([[1.0], [2.0]], "abc"), "expected factors of shape (3, r), one row per id, found shape (2, 1)", ValueError),
        (([[1.0], [np.nan], [2.0]], "abc"), "expected finite factors, found 1 NaN or infinite", ValueError),
        (([["x"], ["y"]], "ab"), "factors must be numbers, found 'x'", ValueError),
        (([[1.0], [2.0]], "ab", 0), "k must be an integer >= 1, found 0", ParameterError),
    ],
)
def test_unusable_factors_are_named(arguments, message, error):
    with fails(message, error):
        SimilarityGraph.from_factors(*arguments)


def test_an_unknown_metric_is_named():
    with fails("metric must be one of 'cosine', 'euclidean', found 'dot'", ParameterError):
        SimilarityGraph.from_factors([[1.0]], "a", metric="dot")
