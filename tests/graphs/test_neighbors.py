"""The graphs of nearest rows, of factors and of sparse rows by cosine, against brute force."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from graph_cases import fails, fast, same_partition
from hypothesis import given
from hypothesis import strategies as st

from air_recsys import SimilarityGraph
from air_recsys.exceptions import ParameterError
from air_recsys.graphs.neighbors import METRICS, as_factors, cosine_neighbors

TIE = 1e-9
either_metric = pytest.mark.parametrize("metric", METRICS)


def normal(m, n, seed=0):
    return np.random.default_rng(seed).normal(size=(m, n))


def cosines(matrix):
    """Cosine of every pair of rows, 0 where one of the two is empty."""
    norms = np.linalg.norm(matrix, axis=1)
    products = matrix @ matrix.T
    return np.divide(products, np.outer(norms, norms), out=np.zeros_like(products), where=np.outer(norms, norms) > 0)


# -------------------------------------------------------------------- of factors


def of_factors(factors, k=5, metric="cosine"):
    return SimilarityGraph.from_factors(factors, range(len(factors)), k, metric=metric)


def brute_force(factors, k, metric):
    """The definition, by the full matrix of distances."""
    n = len(factors)
    weights = cosines(factors)
    distances = -weights if metric == "cosine" else np.square(factors[:, None] - factors).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    order = distances.argsort(axis=1)[:, : min(k, n - 1)]
    chosen = np.zeros((n, n), dtype=bool)
    np.put_along_axis(chosen, order, True, axis=1)
    if metric == "euclidean":
        scales = np.sqrt(np.take_along_axis(distances, order[:, -1:], axis=1))
        weights = np.exp(-distances / (scales * scales.T))
    return np.where(chosen | chosen.T, weights.clip(0), 0)


@either_metric
@fast
@given(size=st.integers(2, 30), width=st.integers(2, 5), k=st.integers(1, 35), seed=st.integers(0, 999))
def test_edges_and_weights_are_those_of_the_definition(metric, size, width, k, seed):
    factors = normal(size, width, seed)
    found = of_factors(factors, k, metric).to_scipy().toarray()
    np.testing.assert_allclose(found, brute_force(factors, k, metric), atol=2e-5)


@either_metric
def test_order_unit_and_blocks_do_not_matter(blocks_of, metric):
    factors, order = normal(40, 3), np.random.default_rng(1).permutation(40)
    whole = of_factors(factors, metric=metric).to_scipy().toarray()
    moved = of_factors(factors[order], metric=metric).to_scipy().toarray()
    np.testing.assert_allclose(moved, whole[np.ix_(order, order)], rtol=1e-5, atol=1e-7)
    for unit in (1e-4, 1e4):
        scaled = of_factors(unit * factors, metric=metric).to_scipy().toarray()
        np.testing.assert_allclose(scaled, whole, rtol=1e-3, atol=1e-6)
    for entries in (1, 60):
        blocks_of(entries)
        np.testing.assert_allclose(of_factors(factors, metric=metric).to_scipy().toarray(), whole, rtol=1e-6)


def test_rows_of_zeros_stand_alone_and_take_no_neighbours_from_others_and_opposite_rows_are_not_alike():
    """By distance between unit rows the zero row would be nearer to both than they are to each other."""
    factors = [[1, 0], [0.1, 1], [0, 0], [0, 0]]
    assert of_factors(factors, k=1).edge_list()[["source", "target"]].to_numpy().tolist() == [[0, 1]]
    assert of_factors(np.zeros((3, 2))).n_edges == of_factors([[1.0], [-1.0]]).n_edges == 0


def test_equal_rows_weigh_one():
    factors = np.repeat([[0.0, 1.0], [5.0, 5.0]], 4, axis=0)
    found, more = (of_factors(factors, k, "euclidean") for k in (3, 5))
    np.testing.assert_array_equal(found.edge_list()["weight"], 1)
    assert same_partition(found.components().tolist(), [0] * 4 + [1] * 4)
    assert (more.subgraph(range(4)).edge_list()["weight"] == 1).all()
    assert np.isfinite(more.to_scipy().data).all()
    for distance in (0.5, 5.0):  # rows with k equal ones are joined to no other
        apart = of_factors([[0.0], [0.0], [0.0], [distance]], 2, "euclidean")
        assert apart.components().tolist() == [0, 0, 0, 1]


@either_metric
def test_one_row_and_none(metric):
    assert of_factors([[1.0, 2.0]], metric=metric).n_edges == 0
    assert len(of_factors(np.zeros((0, 3)), metric=metric)) == 0


def test_factors_are_compared_in_single_precision_whose_rounding_lifts_no_cosine_above_one():
    assert as_factors([[1, 2], [3, 4]], 2).dtype == np.float32
    factors = normal(300, 3)
    assert of_factors(np.concatenate([factors, 3 * factors]), 3).to_scipy().data.max() == 1


def test_fifty_items_are_joined_to_each_where_nothing_else_is_asked_for():
    factors = np.random.default_rng(0).random((80, 3))
    graph = SimilarityGraph.from_factors(factors, range(80))
    pd.testing.assert_frame_equal(graph.edge_list(), of_factors(factors, 50).edge_list())
    assert graph.kind == "item"


def test_attributes_come_along_and_ids_may_be_a_generator():
    table = pd.DataFrame({"title": ["A", "B"]}, index=["a", "b"])
    options = {"kind": "user", "attributes": table, "label": "title"}
    graph = SimilarityGraph.from_factors([[1, 1], [1, 2]], (id for id in "ab"), **options)
    assert graph.kind == "user"
    assert graph.neighbors("a")["label"].tolist() == ["B"]


@either_metric
def test_planted_groups_come_back(metric):
    rng = np.random.default_rng(0)
    groups = rng.integers(4, size=200)
    factors = 4 * rng.normal(size=(4, 8))[groups] + rng.normal(size=(200, 8))
    assert of_factors(factors, 10, metric).similarity_to(groups)["nmi"] > 0.95


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
        of_factors([[1.0]], metric="dot")


# -------------------------------------------------------------------- of sparse rows


@st.composite
def matrices(draw):
    """Sparse rows, some of them empty; whole numbers make ties, others do not."""
    m, n = draw(st.integers(2, 10)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    values = rng.integers(-2, 3, (m, n)) if draw(st.booleans()) else rng.normal(size=(m, n))
    return np.where(rng.random((m, n)) < draw(st.sampled_from([0.2, 0.6, 1.0])), values, 0).astype(float)


@fast
@given(matrices(), st.integers(1, 12))
def test_it_is_a_graph_with_weights_in_the_unit_interval_on_the_edges_of_brute_force(matrix, k):
    stored = sp.csr_array(matrix)
    graph = cosine_neighbors(stored, k)
    np.testing.assert_array_equal(stored.toarray(), matrix)  # stays as it was
    weights = graph.toarray()
    assert graph.shape == (len(matrix), len(matrix))
    np.testing.assert_allclose(weights, weights.T, atol=1e-15)
    assert not weights.diagonal().any()
    assert 0 <= weights.min() <= weights.max() <= 1
    assert not weights[~matrix.any(axis=1)].any()  # rows without entries are isolated
    expected = cosines(matrix)
    others = np.where(np.eye(len(matrix), dtype=bool), -np.inf, expected)
    limit = np.sort(others, axis=1)[:, -min(k, len(matrix) - 1), None]  # the cosine of each row's last neighbour
    least, most = (chosen.astype(int) + chosen.T for chosen in (others > limit + TIE, others >= limit - TIE))
    assert (weights >= expected.clip(min=0) * least / 2 - TIE).all()
    assert (weights <= expected.clip(min=0) * most / 2 + TIE).all()


@pytest.mark.parametrize("k", [1, 2, 5, 8, 9, 100])
def test_each_row_chooses_k_edges_or_all_and_half_the_cosine_counts_for_each_choice(k):
    matrix = np.abs(normal(9, 4))  # no two cosines alike, all of them positive
    expected = cosines(matrix)
    order = np.argsort(-np.where(np.eye(9, dtype=bool), -np.inf, expected), axis=1)[:, : min(k, 8)]
    chosen = np.zeros((9, 9))
    np.put_along_axis(chosen, order, 1, axis=1)
    weights = cosine_neighbors(sp.csr_array(matrix), k).toarray()
    np.testing.assert_allclose(weights, expected * (chosen + chosen.T) / 2, atol=1e-12)


def test_rows_of_the_same_direction_weigh_one_whatever_their_length():
    matrix = sp.csr_array(np.array([[1.0, 2], [10, 20], [-3, -6], [0, 0]]))
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 1
    np.testing.assert_allclose(cosine_neighbors(matrix, 3).toarray(), expected, atol=1e-12)


@pytest.mark.parametrize("matrix", [[[1.0, 2.0]], [[0.0, 0.0]], np.zeros((5, 3))])
def test_one_row_and_rows_without_entries_are_isolated(matrix):
    for k in (1, 5):
        graph = cosine_neighbors(sp.csr_array(matrix), k)
        assert graph.shape == (len(matrix), len(matrix))
        assert graph.nnz == 0


@pytest.mark.parametrize("k", [0, -1, 1.5, "2", True, None])
def test_a_bad_number_of_neighbors_is_named(k):
    with fails("n_neighbors must be an integer >= 1, found", ParameterError):
        cosine_neighbors(sp.csr_array(np.eye(3)), k)
