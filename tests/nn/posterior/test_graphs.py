"""Positions of rows, and the graphs that are learned from them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from air_recsys.graphs.candidates import nearest_rows
from air_recsys.graphs.laplacian import ADJACENCIES
from air_recsys.nn.adaptive_laplacian import DenseLaplacian
from air_recsys.nn.posterior.equations import Rows
from air_recsys.nn.posterior.graphs import RowGraph, positions
from air_recsys.nn.posterior.prior import RowPrior


def normal(*shape, seed=0):
    return torch.as_tensor(np.random.default_rng(seed).normal(size=shape))


def prior_of(m=30, k=6, width=4, seed=0):
    """A prior with features of which rows lean on the first two, and the rows."""
    features = torch.cat([normal(m, k, seed=seed), torch.ones(m, 1)], dim=1)
    rows = torch.cat([features[:, :2] @ normal(2, width, seed=1), normal(m, 1, seed=2)], dim=1)
    rows += 0.3 * normal(m, width + 1, seed=3)
    prior = RowPrior(features, width + 1, 1.0)
    prior.update(Rows(rows))
    return prior, rows


def learned(points, k=3, adjacency="row_softmin", n_steps=20, counts=None):
    graph = RowGraph(points.new_ones(len(points)) if counts is None else counts, k, adjacency, n_steps, refresh=5)
    energies = [graph.step(points) for _ in range(n_steps)]
    return graph.adjacency(), energies


def two_groups(m=20):
    angles = np.repeat([0.0, 1.5], m // 2) + 0.2 * np.random.default_rng(0).random(m)
    return torch.as_tensor(np.column_stack([np.cos(angles), np.sin(angles)]))


# -------------------------------------------------------------------- positions


def test_positions_have_unit_length_and_both_parts_count_by_their_share_of_all_lengths():
    prior, rows = prior_of()
    metric = torch.linalg.inv(torch.linalg.inv(prior.precision)[:-1, :-1])  # S^-1 without the biases
    weights, features = prior.weights[:-2, :-1], prior.features[:, :-2]
    leaning = (weights @ metric @ weights.T).diag()  # |w_k|^2
    rest = (rows - prior.mean())[:, :-1]
    parts = [(features * leaning) @ features.T, rest @ metric @ rest.T]
    sizes = [part.trace() for part in parts]
    together = (sizes[0] * parts[0] + sizes[1] * parts[1]) / sum(sizes)
    found = positions(prior, rows)
    assert found.shape == (30, 5 + 4)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(30, dtype=torch.float64))
    lengths = together.diag().sqrt()
    torch.testing.assert_close(found @ found.T, together / (lengths[:, None] * lengths))


def test_another_basis_of_the_factors_changes_no_distance():
    prior, rows = prior_of()
    before = positions(prior, rows)
    turned, _ = prior_of()
    change = torch.block_diag(normal(4, 4, seed=5), torch.ones(1, 1, dtype=torch.float64))
    turned.weights = prior.weights @ change
    inverse = torch.linalg.inv(change)
    turned.precision = inverse @ prior.precision @ inverse.T
    after = positions(turned, rows @ change)
    torch.testing.assert_close(after @ after.T, before @ before.T)


def test_directions_count_by_how_much_rows_lean_on_them():
    prior, rows = prior_of(m=300)
    sizes = positions(prior, rows).square().sum(dim=0)[:5]
    assert sizes[:2].min() > 20 * sizes[2:].max()


def test_positions_and_graphs_are_of_the_type_of_the_rows():
    prior, rows = prior_of()
    points = positions(prior, rows.float())
    assert points.dtype == torch.float32
    assert learned(points)[0].dtype == np.float32


def test_without_a_pattern_the_factors_decide_and_rows_of_which_nothing_is_known_have_no_place():
    prior, rows = RowPrior(torch.ones(30, 1), 5, 1.0), normal(30, 5)
    prior.update(Rows(rows))
    found = positions(prior, rows)
    assert found.shape == (30, 4)
    rest = (rows - prior.mean())[:, :-1]
    metric = torch.linalg.inv(torch.linalg.inv(prior.precision)[:-1, :-1])
    cosine = rest @ metric @ rest.T
    torch.testing.assert_close(found @ found.T, cosine / (cosine.diag()[:, None] * cosine.diag()).sqrt())
    assert not positions(RowPrior(torch.zeros(4, 3), 3, 1.0), torch.zeros(4, 3)).any()


# -------------------------------------------------------------------- graphs


@pytest.mark.parametrize(("k", "adjacency"), [(3, "row_softmin"), *((None, name) for name in ADJACENCIES)], ids=str)
def test_a_graph_is_symmetric_its_energy_falls_and_weight_goes_to_rows_that_are_near(k, adjacency):
    graph, energies = learned(two_groups(), k, adjacency)
    dense = graph.toarray()
    np.testing.assert_allclose(dense, dense.T)
    assert not dense.diagonal().any()
    assert (dense >= 0).all()
    assert graph.nnz <= 2 * (k or 19) * 20
    assert all(later < earlier for earlier, later in itertools.pairwise(energies))
    assert dense[:10, :10].sum() > 1.5 * dense[:10, 10:].sum()


def test_the_size_of_distances_does_not_matter():
    first, second = (learned(scale * two_groups())[0].toarray() for scale in (1.0, 0.1))
    np.testing.assert_allclose(first, second, rtol=1e-9)


def test_a_permutation_of_the_rows_permutes_positions_and_graph():
    prior, rows = prior_of()
    order = torch.randperm(30, generator=torch.Generator().manual_seed(0))
    points = positions(prior, rows)
    prior.features = prior.features[order]
    torch.testing.assert_close(positions(prior, rows[order]), points[order])
    dense = learned(points)[0].toarray()
    np.testing.assert_allclose(learned(points[order])[0].toarray(), dense[np.ix_(order, order)], rtol=1e-6)


def test_rows_without_entries_stand_alone():
    counts = torch.ones(20, dtype=torch.float64)
    counts[[3, 7]] = 0
    dense = learned(two_groups(), counts=counts)[0].toarray()
    assert not dense[[3, 7]].any()
    assert dense.any(axis=1).sum() == 18


def test_rows_at_one_place_are_all_alike_and_more_neighbors_than_there_are_rows_are_all_others():
    graph, energies = learned(torch.ones(4, 2), k=None)
    assert energies == [0.0] * 20
    np.testing.assert_allclose(graph.toarray(), 0.25 * (1 - np.eye(4)))
    points = normal(4, 3)
    np.testing.assert_allclose(learned(points, k=50)[0].toarray(), learned(points, k=None)[0].toarray())


@pytest.mark.parametrize("refresh", [2, 3])
def test_edges_are_chosen_anew_at_every_so_manieth_step(refresh):
    graph = RowGraph(torch.ones(12, dtype=torch.float64), 2, "row_softmin", n_steps=9, refresh=refresh)
    chosen = None
    for step in range(9):
        points = normal(12, 3, seed=step)
        graph.step(points)
        chosen = nearest_rows(points, points, 2) if step % refresh == 0 else chosen
        assert torch.equal(graph.state()["laplacian"]["neighbors"][:, 1:], chosen)


@pytest.mark.parametrize("n_steps", [0, 1, 5])
def test_all_steps_together_go_once_the_slope_of_the_first(n_steps):
    points = normal(12, 3)
    graph = RowGraph(points.new_ones(12), None, "row_softmin", n_steps, refresh=5)
    slope = DenseLaplacian(12, "row_softmin", generator=torch.Generator(), dtype=points.dtype, device=points.device)
    slope.logits.zero_()
    slope.apply(points, points, 1.0)
    energy = graph.step(points)
    expected = -slope.logits.grad * slope.logits.numel() / energy / max(n_steps, 1)
    torch.testing.assert_close(graph.state()["laplacian"]["logits"], expected)
