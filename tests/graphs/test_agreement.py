"""The graph of rows whose residuals agree: its definition, pair by pair, and its symmetries."""

import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys.graphs.agreement import agreement_graphs


def rows_and_residuals(m: int = 30, n: int = 40, seed: int = 0) -> tuple[np.ndarray, sp.csr_array]:
    rng = np.random.default_rng(seed)
    observed = rng.random((m, n)) < 0.3
    observed[-1] = False  # a row without columns
    row, column = np.nonzero(observed)
    return rng.standard_normal((m, 3)), sp.csr_array((rng.standard_normal(row.size), (row, column)), shape=(m, n))


def by_definition(points: np.ndarray, residuals: sp.csr_array) -> np.ndarray:
    """A of all pairs of rows."""
    dense, stored = residuals.toarray(), np.zeros(residuals.shape, bool)
    stored[residuals.tocoo().row, residuals.tocoo().col] = True
    centred = points - points.mean(axis=0)
    distances = ((centred[:, None] - centred) ** 2).sum(axis=2)
    shared = stored.astype(float) @ stored.T
    either = stored.sum(axis=1)[:, None] + stored.sum(axis=1) - shared
    agreement = (dense @ dense.T / ((shared + 50) * np.mean(residuals.data**2))).clip(min=0)
    weights = np.exp(-distances / (0.25 * np.median(distances))) * shared / np.maximum(either, 1)
    weights *= 0.1 + agreement
    np.fill_diagonal(weights, 0)
    return weights


def test_with_all_rows_as_neighbours_it_is_the_definition() -> None:
    points, residuals = rows_and_residuals()
    found = agreement_graphs(points, residuals, n_edges=29).graph
    np.testing.assert_allclose(found.toarray(), by_definition(points, residuals), rtol=1e-9, atol=1e-15)


def test_it_is_symmetric_without_loops_and_each_row_has_its_strongest() -> None:
    points, residuals = rows_and_residuals()
    graph, whole = agreement_graphs(points, residuals, n_edges=4).graph.toarray(), by_definition(points, residuals)
    assert (graph == graph.T).all()
    assert not graph.diagonal().any()
    assert not graph[-1].any()  # who has nothing has no neighbour
    for row in range(len(graph) - 1):
        strongest = np.argsort(-whole[row])[:4]
        np.testing.assert_allclose(graph[row, strongest], whole[row, strongest], rtol=1e-9)


def test_rows_in_another_order_have_the_same_graph() -> None:
    points, residuals = rows_and_residuals()
    order = np.random.default_rng(1).permutation(len(points))
    moved = agreement_graphs(points[order], sp.csr_array(residuals[order]), n_edges=4).graph
    graph = agreement_graphs(points, residuals, n_edges=4).graph
    np.testing.assert_allclose(moved.toarray(), graph.toarray()[np.ix_(order, order)], rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_of_residuals_and_points_does_not_matter(unit: float) -> None:
    points, residuals = rows_and_residuals()
    scaled = agreement_graphs(unit * points, unit * residuals, n_edges=4).graph
    np.testing.assert_allclose(
        scaled.toarray(), agreement_graphs(points, residuals, n_edges=4).graph.toarray(), rtol=1e-5
    )


def test_who_errs_alike_is_nearer_than_who_errs_otherwise() -> None:
    values = np.random.default_rng(0).standard_normal(200)
    graph = agreement_graphs(np.zeros((3, 1)), sp.csr_array(np.stack([values, values, -values])), n_edges=2).graph
    assert graph[0, 1] > 5 * graph[0, 2] > 0


@pytest.mark.parametrize("m", [0, 1])
def test_fewer_than_two_rows_have_no_edge(m: int) -> None:
    assert agreement_graphs(np.zeros((m, 2)), sp.csr_array((m, 5))).graph.nnz == 0


def test_residuals_that_are_all_zero_leave_a_graph_of_shared_columns() -> None:
    points, residuals = rows_and_residuals()
    graph = agreement_graphs(points, 0 * residuals, n_edges=4).graph
    assert graph.nnz
    assert np.isfinite(graph.data).all()


def test_points_that_are_all_equal_are_all_near() -> None:
    _, residuals = rows_and_residuals()
    assert agreement_graphs(np.zeros((30, 3)), residuals, n_edges=4).graph.nnz


def test_the_blind_graph_does_not_look_at_the_residuals() -> None:
    points, residuals = rows_and_residuals()
    others = residuals.copy()
    others.data = np.random.default_rng(5).standard_normal(others.nnz)
    first, second = (agreement_graphs(points, each, n_edges=4) for each in (residuals, others))
    assert (first.blind != second.blind).nnz == 0
    assert (first.graph != second.graph).nnz > 0
