"""The prior of rows without entries."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from air_recsys.nn.objective import Observations
from air_recsys.nn.pattern import SparsePattern
from air_recsys.nn.posterior.exchange import OwnEntries
from air_recsys.nn.posterior.prior import Embedding
from air_recsys.nn.posterior.unseen import settled, unseen_prior

M, N = 300, 80
EFFECTS = np.array([[0.8, 0.0], [0.0, 1.0]])
NOISE = torch.full((N,), 0.25)


@pytest.fixture(scope="module")
def drawn():
    """What is known of rows, rows and columns (r = 1, and a bias), entries of pairs that suit each other."""
    rng = np.random.default_rng(0)
    known = rng.standard_normal((M, 2))
    rows = known @ EFFECTS + 0.3 * rng.standard_normal((M, 2)) + [0.5, 0.0]
    columns = np.column_stack([rng.standard_normal(N), 0.2 * rng.standard_normal(N)])
    scores = rows[:, :1] * columns[:, 0] + rows[:, 1:] + columns[:, 1]
    chosen = rng.random((M, N)) < np.where(scores > 0, 0.3, 0.1)
    users, items = np.nonzero(chosen)
    values = scores[chosen] + 0.5 * rng.standard_normal(users.size)
    starts = np.append(0, chosen.sum(1).cumsum())
    pattern = SparsePattern(torch.as_tensor(starts), torch.as_tensor(items), N)
    observed = OwnEntries.of(Observations(pattern, torch.as_tensor(values)))
    return torch.as_tensor(known), torch.as_tensor(rows), torch.as_tensor(columns), observed


def test_effects_and_spread_of_the_rows_are_found_and_their_covariances_add_to_it(drawn):
    known, rows, _, observed = drawn
    prior = unseen_prior(rows, None, known, observed.degrees[0])
    np.testing.assert_allclose(prior.weights[0, :2], EFFECTS, atol=0.1)
    np.testing.assert_allclose(prior.covariances[0], 0.09 * np.eye(2), atol=0.03)
    triangles = torch.tensor([[0.5, 0.1, 0.7]]).repeat(M, 1)
    gap = unseen_prior(rows, triangles, known, observed.degrees[0]).covariances[0] - prior.covariances[0]
    np.testing.assert_allclose(gap, [[0.5, 0.1], [0.1, 0.7]], atol=0.01)


def test_rows_without_entries_do_not_count(drawn):
    known, rows, _, observed = drawn
    degrees, other = observed.degrees[0].clone(), rows.clone()
    degrees[:50], other[:50] = 0, 1e3
    one, two = (unseen_prior(each, None, known, degrees) for each in (rows, other))
    for first, second in zip(one, two, strict=True):
        torch.testing.assert_close(first, second)


def test_what_people_choose_lies_above_the_mean_row_and_is_settled(drawn):
    known, rows, columns, observed = drawn
    plain = unseen_prior(rows, None, known, observed.degrees[0])
    found = settled(plain, observed, 0, columns, NOISE)
    starts, partners, values, _ = observed.entries[0]
    own = torch.arange(M).repeat_interleave(starts.diff())
    errors = []
    for prior in (plain, found):
        expected = plain.left_out[:, 0].clone()
        expected[:, -1] += prior.weights[0, -1, -1] - plain.weights[0, -1, -1]
        told = expected[own, 0] * columns[partners, 0] + expected[own, 1] + columns[partners, 1]
        errors.append(values - told)
    assert errors[0].mean() > 0.01
    assert float(errors[1].mean()) == pytest.approx(0, abs=1e-9)
    reach = torch.stack([columns[partners, 0], torch.ones(len(partners))], dim=1)
    variance = ((reach @ found.covariances[0]) * reach).sum(1) + 0.25
    assert float(errors[1].square().mean() / variance.mean()) == pytest.approx(1, abs=1e-6)


def test_each_draw_has_its_own(drawn):
    known, rows, columns, observed = drawn
    draws, partners = torch.stack([rows, -rows], dim=1), torch.stack([columns, columns], dim=1)
    prior, alone = (unseen_prior(each, None, known, observed.degrees[0]) for each in (draws, rows))
    torch.testing.assert_close(prior.weights[0], -prior.weights[1])
    found, one = settled(prior, observed, 0, partners, NOISE), settled(alone, observed, 0, columns, NOISE)
    torch.testing.assert_close(found.weights[0], one.weights[0])


@pytest.mark.parametrize("embedding", [Embedding(), Embedding(2, 0.001), Embedding(2, 0.9)])
def test_what_is_left_out_is_said_by_all_others(embedding, drawn):
    known, rows, _, observed = drawn
    degrees = observed.degrees[0]
    prior = unseen_prior(rows, None, known, degrees, embedding)
    shares = degrees.double() / degrees.sum()
    counts = shares / shares.square().sum()
    inputs = torch.cat([known, torch.ones(M, 1)], dim=1).double()
    rest = counts[:, None] * inputs
    # The ridge from the equations that the weights obey: that of an embedding is given, that of features learned.
    learned = float((rest.T @ (rows.double() - inputs @ prior.weights[0]))[0, 0] / prior.weights[0, 0, 0])
    assert not embedding.number or learned == pytest.approx(embedding.ridge)
    ridge = torch.diag(torch.tensor([learned, learned, 0.0], dtype=torch.float64))
    for row in (0, 7, 100):
        others = torch.arange(M) != row
        gram = rest[others].T @ inputs[others] + ridge
        alone = torch.linalg.solve(gram, rest[others].T @ rows[others].double())
        torch.testing.assert_close(prior.left_out[row, 0], inputs[row] @ alone, atol=1e-6, rtol=1e-4)


def test_covariances_are_those_of_errors_without_the_row_itself():
    """With as many dimensions as rows the regression says each row, and nothing of it when it is left out."""
    rng = np.random.default_rng(0)
    rows, known = torch.as_tensor(rng.normal(size=(12, 1))), torch.eye(12, dtype=torch.float64)
    prior = unseen_prior(rows, None, known, torch.full((12,), 5), Embedding(12, 0.9))
    assert float(prior.covariances[0, 0, 0]) > 0.8 * float(rows.var())
