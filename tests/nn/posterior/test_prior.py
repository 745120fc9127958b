"""The prior of one side against its distributions, written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from air_recsys.nn.posterior.equations import Rows
from air_recsys.nn.posterior.prior import Noise, RowPrior
from air_recsys.nn.posterior.triangles import packed

N_DRAWS = 2000
FREE, RIDGE, SPREAD = 0.01, 20.0, 0.1  # of the constant and of the features; s_0


def prior_and_rows(m=6, n_features=2, width=2, scale=1.0, seed=0):
    """A prior whose rows lean on its features, and whose entries go together."""
    rng = np.random.default_rng(seed)
    features = np.column_stack([scale * rng.normal(size=(m, n_features)), np.ones(m)])
    rows = features @ rng.normal(size=(n_features + 1, width)) + rng.normal(size=(m, 1)) + 0.3 * rng.normal(size=width)
    return RowPrior(torch.as_tensor(features), width, 4.0), torch.as_tensor(rows)


def regression(prior, rows):
    """W given the rows, the inverse of its precision, and the scatter; from the rows' distribution without W."""
    f, x = prior.features.numpy(), rows.numpy()
    ridge = np.diag([RIDGE] * (f.shape[1] - 1) + [FREE])
    inverse = np.linalg.inv(f.T @ f + ridge)
    of_rows = np.eye(len(f)) + f @ np.linalg.inv(ridge) @ f.T
    return inverse @ f.T @ x, inverse, x.T @ np.linalg.solve(of_rows, x) + SPREAD * np.eye(x.shape[1])


def draws_of(prior, rows, momentum=0.0):
    """(W, S^-1, ridge) of many draws, each from where the prior stands."""
    start, generator, found = prior.state(), torch.Generator().manual_seed(0), []
    for _ in range(N_DRAWS):
        prior.load_state({name: value.clone() for name, value in start.items()})
        prior.draw(Rows(rows), generator, momentum)
        found.append([value.numpy().copy() for value in prior.state().values()])
    return [np.stack(values) for values in zip(*found, strict=True)]


def test_a_prior_starts_with_the_variance_given_and_is_held_in_double_precision():
    prior, _ = prior_and_rows()
    np.testing.assert_allclose(torch.linalg.inv(prior.precision), 4.0 * np.eye(2))
    assert not prior.mean().any()
    single = RowPrior(torch.ones(3, 2), 2, 1.0)
    single.update(Rows(torch.ones(3, 2), packed(torch.eye(2).repeat(3, 1, 1))))
    assert {value.dtype for value in single.state().values()} == {torch.float64}


def test_an_update_past_the_mode_goes_on_in_the_same_direction():
    (plain, rows), (past, _) = prior_and_rows(), prior_and_rows()
    before = plain.weights.clone(), plain.precision.clone()
    plain.update(Rows(rows))
    past.update(Rows(rows), 0.5)
    np.testing.assert_allclose(past.weights, before[0] + 1.5 * (plain.weights - before[0]))
    step = torch.linalg.solve(before[1], plain.precision)
    np.testing.assert_allclose(past.precision, before[1] @ step @ (0.2 * torch.eye(len(step)) + 0.8 * step))
    assert torch.linalg.eigvalsh(past.precision).min() > 0


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_an_update_is_the_mode_of_both_and_covariances_of_the_rows_add_to_their_scatter(spread):
    prior, rows = prior_and_rows()
    mean, _, scatter = regression(prior, rows)
    sizes = torch.arange(1.0, 7.0, dtype=torch.float64)
    covariances = spread * sizes[:, None, None] * torch.tensor([[1.0, 0.2], [0.2, 0.5]])
    prior.update(Rows(rows, packed(covariances) if spread else None))
    np.testing.assert_allclose(prior.weights, mean)
    expected = np.linalg.inv(scatter + covariances.sum(0).numpy()) * (len(rows) + 1)  # (dof - d - 1) scale
    np.testing.assert_allclose(prior.precision, expected)


def test_precisions_are_drawn_from_their_wishart_distribution():
    prior, rows = prior_and_rows(m=3)
    prior.weights = weights = torch.full((3, 2), 0.5, dtype=torch.float64)
    rest, ridge = (rows - prior.features @ weights).numpy(), np.array([RIDGE, RIDGE, FREE])
    scatter = rest.T @ rest + weights.numpy().T @ (ridge[:, None] * weights.numpy()) + SPREAD * np.eye(2)
    scale, freedom = np.linalg.inv(scatter), 3 + 3 + 2 + 2  # rows, weights, then d + 2
    _, precisions, _ = draws_of(prior, rows)
    root = np.linalg.inv(np.linalg.cholesky(scale))
    standard = root @ precisions @ root.T
    np.testing.assert_allclose(standard.mean(axis=0), freedom * np.eye(2), atol=0.35)
    spread = standard.var(axis=0)  # freedom (1 + i = j)
    np.testing.assert_allclose(spread, freedom * (1 + np.eye(2)), rtol=0.15)


def test_weights_are_drawn_around_the_regression():
    prior, rows = prior_and_rows(scale=10.0)
    mean, inverse, _ = regression(prior, rows)
    weights, precisions, _ = draws_of(prior, rows)
    errors = np.linalg.inv(np.linalg.cholesky(inverse)) @ (weights - mean)
    between = np.einsum("sai,sij,sbj->sab", errors, precisions, errors)  # of width 2 in each direction
    np.testing.assert_allclose(between.mean(axis=0), 2 * np.eye(3), atol=0.15)
    along = errors @ np.linalg.cholesky(precisions)
    np.testing.assert_allclose(along.mean(axis=0), 0, atol=0.1)
    np.testing.assert_allclose(along.var(axis=0), 1, atol=0.1)


def test_weights_that_are_drawn_with_momentum_go_past_their_mean():
    prior, rows = prior_and_rows(scale=10.0)
    mean, inverse, _ = regression(prior, rows)
    prior.weights = torch.as_tensor(mean + 0.05)
    weights, precisions, _ = draws_of(prior, rows, 0.8)
    errors = np.linalg.inv(np.linalg.cholesky(inverse)) @ (weights - (mean - 0.8 * 0.05))
    along = errors @ np.linalg.cholesky(precisions)
    np.testing.assert_allclose(along.mean(axis=0), 0, atol=0.1)
    np.testing.assert_allclose(along.var(axis=0), 1 - 0.8**2, atol=0.05)


@pytest.mark.parametrize("scale", [1.0, 30.0], ids=["heavy", "light"])
def test_one_ridge_is_drawn_for_all_features_but_the_constant(scale):
    prior, rows = prior_and_rows(n_features=3, scale=scale)
    weights, precisions, ridges = draws_of(prior, rows / scale)
    np.testing.assert_array_equal(ridges[:, -1], FREE)
    np.testing.assert_array_equal(ridges[:, :-1], np.repeat(ridges[:, :1], 3, axis=1))
    sizes = np.einsum("sai,sij,saj->s", weights[:, :-1], precisions, weights[:, :-1])
    standard = ridges[:, 0] * (sizes + 1 / RIDGE)  # chi-squared
    assert standard.mean() == pytest.approx(3 * 2 + 1, rel=0.05)
    assert standard.var() == pytest.approx(2 * (3 * 2 + 1), rel=0.15)


def test_without_features_no_ridge_is_drawn():
    prior = RowPrior(torch.ones(5, 1), 2, 1.0)
    prior.draw(Rows(torch.ones(5, 2)), torch.Generator().manual_seed(0))
    assert prior.state()["_ridge"].tolist() == [FREE]


NU = 10


def noise_of(counts, variance=4.0, columns=2):
    total = float(sum(counts))
    return Noise((torch.tensor(counts), torch.full((columns,), total / columns)), variance)


def test_an_update_shrinks_scales_towards_one_and_weighs_errors_with_them():
    noise, errors = noise_of([2.0, 8.0]), torch.tensor([4.0, 1.0])
    assert [scales.tolist() for scales in noise.scales] == [[1.0] * 2] * 2
    assert noise.variance == 4.0
    noise.update(0, errors, None)
    expected = (NU + np.array([2.0, 8.0])) / (NU + errors.numpy())
    np.testing.assert_allclose(noise.scales[0], expected)
    np.testing.assert_array_equal(noise.scales[1], 1.0)
    assert noise.variance == pytest.approx(4.0 * (expected * errors.numpy()).sum() / 10)


@pytest.mark.parametrize("variance", [0.5, 4.0])
def test_the_variance_stays_above_a_small_part_of_its_start(variance):
    noise = noise_of([2.0, 8.0], variance)
    for _ in range(5):
        noise.update(1, torch.zeros(2), None)
    assert noise.variance == pytest.approx(1e-4 * variance)


def test_scales_and_variance_are_drawn_from_their_gamma_distributions():
    generator, errors, found = torch.Generator().manual_seed(0), torch.tensor([4.0, 30.0]), []
    for _ in range(2000):
        noise = noise_of([2.0, 8.0])
        noise.update(0, errors, generator)
        scales = noise.scales[0].double().numpy()
        half = 4.0 * (scales * errors.numpy()).sum() / 2 / float(noise.variance)  # Gamma(half of all counts)
        found.append([*scales * (NU + errors.numpy()) / 2, half])
    shapes = [(NU + 2) / 2, (NU + 8) / 2, 10 / 2]
    np.testing.assert_allclose(np.mean(found, axis=0), shapes, rtol=0.05)
    np.testing.assert_allclose(np.var(found, axis=0), shapes, rtol=0.15)
