"""What a pattern says about its nodes, and a learned graph joined with it."""

import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys.exceptions import DataError, ParameterError
from air_recsys.graphs.postprocess import pattern_factors, with_pattern


@pytest.fixture(scope="module")
def pattern():
    return (np.random.default_rng(0).random((40, 30)) < 0.2).astype(float)


@pytest.fixture(scope="module")
def learned():
    weights = np.random.default_rng(2).random((40, 40))
    return (weights + weights.T) * (1 - np.eye(40))


@pytest.mark.parametrize("density", [0.03, 0.2])
def test_inner_products_are_two_steps_of_the_walk_beyond_what_popularity_makes(density):
    pattern = (np.random.default_rng(0).random((40, 30)) < density).astype(float)
    rows, columns = (np.maximum(pattern.sum(axis=axis), 1) ** -0.5 for axis in (1, 0))
    scaled = rows[:, None] * pattern * columns
    factors = pattern_factors(pattern)
    popular = np.sqrt(pattern.sum(axis=1) / pattern.sum())
    walk = np.linalg.matrix_power(scaled @ scaled.T, 2)
    assert factors @ factors.T == pytest.approx(walk - np.outer(popular, popular), abs=1e-6)


def test_popularity_alone_makes_nothing_alike():
    assert not pattern_factors(np.ones((5, 4))).any()
    factors = pattern_factors([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0]])
    assert factors.any(axis=1).tolist() == [True, True, False, False]
    assert factors.dtype == np.float32
    assert not pattern_factors([[0, 1], [0, 0]]).any()
    rng = np.random.default_rng(0)
    independent = rng.random((300, 200)) < np.outer(rng.uniform(0.05, 0.9, 300), rng.uniform(0.1, 1, 200))
    factors = pattern_factors(independent)
    assert np.linalg.norm(factors.T @ factors, 2) < 0.05  # the value of u_0 is 1


@pytest.mark.parametrize("seed", range(6))
def test_what_rounding_leaves_of_nothing_is_no_edge(seed):
    """On a circle the directions of neighbours are at right angles, and those of opposite ones are opposite."""
    circle, rng = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]]), np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(4), 3))
    pattern = np.hstack([circle[groups], np.ones((12, seed % 3))])[:, rng.permutation(4 + seed % 3)]
    joined = with_pattern(np.zeros((12, 12)), pattern).toarray()
    expected = (groups[:, None] == groups) & ~np.eye(12, dtype=bool)
    np.testing.assert_allclose(joined, expected, atol=1e-5)
    assert np.array_equal(joined > 0, expected)


def test_the_rank_is_the_largest_number_of_factors(pattern):
    large = np.random.default_rng(0).random((150, 140)) < 0.1
    assert pattern_factors(large).shape == (150, 128)
    assert pattern_factors(pattern, rank=1).shape == (40, 1)
    assert pattern_factors(pattern, rank=99).shape == (40, 30)


def test_values_do_not_matter_and_stored_zeros_are_no_entries(pattern):
    ratings = sp.coo_array(pattern * np.random.default_rng(1).integers(1, 6, pattern.shape))
    stored, without = sp.csr_array(pattern), pattern.copy()
    stored.data[0] = without[0, stored.indices[0]] = 0
    assert np.array_equal(pattern_factors(ratings), pattern_factors(pattern))
    assert np.array_equal(pattern_factors(stored), pattern_factors(without))


def test_a_large_pattern_is_decomposed_at_random_and_as_well():
    rng = np.random.default_rng(0)
    groups = np.arange(600) % 6
    pattern = rng.random((600, 600)) < np.where(groups[:, None] == groups, 0.3, 0.01)
    found, again = (pattern_factors(sp.csr_array(pattern), rank=6) for _ in range(2))
    assert found.shape == (600, 6)
    assert np.array_equal(found, again)
    scaled = pattern / np.sqrt(np.outer(pattern.sum(axis=1), pattern.sum(axis=0)))
    exact = np.linalg.svd(scaled, compute_uv=False)[1:6]  # the first is that of u_0
    assert np.linalg.svd(found, compute_uv=False) == pytest.approx([*exact**2, 0], rel=1e-3, abs=1e-5)


def test_the_joined_graph_is_symmetric_and_order_unit_and_type_of_the_learned_weights_do_not_matter(pattern, learned):
    order = np.random.default_rng(3).permutation(40)
    joined = with_pattern(learned, pattern, k=5).toarray()
    moved = with_pattern(learned[np.ix_(order, order)], pattern[order], k=5).toarray()
    assert joined == pytest.approx(joined.T)
    assert moved == pytest.approx(joined[np.ix_(order, order)], abs=1e-5)
    single = learned.astype(np.float32)
    joined = with_pattern(single.astype(float), pattern).toarray()
    np.testing.assert_allclose(with_pattern(single, pattern).toarray(), joined, rtol=1e-12)
    np.testing.assert_allclose(with_pattern(1e-5 * single.astype(float), pattern).toarray(), joined, rtol=1e-12)


def test_fifty_neighbors_are_chosen_where_nothing_else_is_asked_for():
    pattern = np.random.default_rng(0).random((130, 100)) < 0.1
    joined = with_pattern(np.zeros((130, 130)), pattern)
    assert (joined != with_pattern(np.zeros((130, 130)), pattern, k=50)).nnz == 0
    assert joined.nnz < with_pattern(np.zeros((130, 130)), pattern, k=51).nnz


def test_nodes_without_entries_keep_their_learned_edges_only():
    pattern = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0]])
    learned, expected = np.zeros((2, 4, 4))
    learned[0, 3] = learned[3, 0] = 3
    expected[0, 1] = expected[1, 0] = 1
    expected[0, 3] = expected[3, 0] = 0.1
    assert with_pattern(learned, pattern).toarray() == pytest.approx(expected, abs=1e-5)
    expected[0, 1] = expected[1, 0] = 0
    assert with_pattern(learned, np.zeros((4, 5))).toarray() == pytest.approx(expected)


def test_wrong_input_is_refused(pattern):
    with pytest.raises(DataError, match="40 x 40"):
        with_pattern(np.zeros((3, 3)), pattern)
    with pytest.raises(ParameterError, match=r"^rank must be an integer >= 1, found 0"):
        pattern_factors(pattern, rank=0)
    with pytest.raises(ParameterError, match=r"^k must be an integer >= 1, found 0"):
        with_pattern(np.zeros((40, 40)), pattern, k=0)
