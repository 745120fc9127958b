"""Where a posterior starts, what its sweeps find on data drawn from the model, and how they end that went wrong."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from posterior_cases import Drawn, constant, drawn, observed, posterior

from air_recsys.exceptions import NumericalError
from air_recsys.nn.posterior.estimate import LangevinEstimate, VariationalEstimate
from air_recsys.nn.posterior.exchange import Exchange, OwnEntries
from air_recsys.nn.posterior.flags import Flag, cholesky, inverse, of_finite, of_rows, read, together
from air_recsys.nn.posterior.posterior import Posterior

both = pytest.mark.parametrize("sample", [False, True], ids=["variational", "langevin"])
NOTHING = Drawn(np.zeros((8, 6)), np.ones((8, 6), dtype=bool), np.zeros((8, 6)))
BEFORE = 3  # variational sweeps before those that draw


# -------------------------------------------------------------------- the start


@pytest.mark.parametrize(("size", "sample"), [(0.2, False), (5.0, True)])
def test_products_of_the_start_vary_as_the_entries_do_and_gaussians_are_narrow(size, sample):
    data = drawn(m=400, n=300, density=0.1)
    entries = observed(data._replace(values=size * data.values))
    state = posterior(entries, width=4, sample=sample)
    variance = float(entries.values.square().mean())
    rows, columns = (side.mean[:, :-1] for side in state.sides)
    assert float((rows @ columns.T).square().mean()) == pytest.approx(variance, rel=0.2)
    for side, prior, m in zip(state.sides, state.priors, (400, 300), strict=True):
        assert side.mean.shape == (m, 5)
        assert not side.mean[:, -1].any()
        precision = 1 / float(side.mean[:, :-1].square().mean())
        np.testing.assert_allclose(prior.precision, precision * np.eye(5), rtol=0.2, atol=1e-12)
        narrow = np.broadcast_to((0 if sample else 0.01) * np.eye(5), (m, 5, 5))
        np.testing.assert_allclose(side.covariances(), narrow)
        assert (side.covariance is None) == sample
    assert state.noise.variance == pytest.approx(0.3 * variance)


# -------------------------------------------------------------------- what sweeps find


def swept(data, sample, n_sweeps=None, dtype=torch.float64, weights=None, **options):
    kind, number = (LangevinEstimate, 150) if sample else (VariationalEstimate, 30)
    number = n_sweeps or number
    estimate = kind(posterior(observed(data, dtype, weights), sample=sample, **options), number)
    for _ in range(number):
        estimate.sweep()
    return estimate


def matrix(estimate):
    left, right, rows, columns = (tensor.double().numpy() for tensor in estimate.scores())
    return left @ right.T + rows[:, None] + columns


@functools.cache
def dense_truth():
    return drawn(density=0.6), swept(drawn(density=0.6), sample=False)


@pytest.mark.parametrize(
    ("sample", "dtype", "before"),
    [(False, torch.float32, 0), (True, torch.float64, 0), (True, torch.float32, BEFORE)],
)
def test_draws_and_approximation_find_the_truth_within_the_noise_in_either_precision(sample, dtype, before):
    data, expected = dense_truth()
    found = swept(data, sample, dtype=dtype, n_variational=before)
    assert np.sqrt(np.mean((matrix(found) - matrix(expected)) ** 2)) < (0.1 if sample else 0.05)
    for estimate in (expected, found):
        errors = (matrix(estimate) - data.truth)[~data.seen]
        assert np.sqrt(np.mean(errors**2)) < 0.3 * np.sqrt(np.mean(data.truth**2))
        assert estimate.uncertainty().noise == pytest.approx(0.3**2, rel=0.5)


@both
def test_entries_of_weight_zero_say_nothing(sample):
    data = drawn()
    weights = (np.random.default_rng(1).random(data.seen.shape) < 0.7).astype(float)
    other = Drawn(data.truth, data.seen, np.where(weights > 0, data.values, -data.values))
    kept = data.values[data.seen & (weights > 0)].size
    assert 0 < kept < data.seen.sum()
    first, second = (matrix(swept(given, sample, 2, weights=weights)) for given in (data, other))
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_ten_sweeps_go_most_of_the_way():
    early, end = (matrix(swept(drawn(), False, number)) for number in (10, 100))
    assert np.abs(early - end).mean() < 0.01  # sweeps that stop at the best Gaussian are still twice as far


def test_a_noisy_row_is_known_as_one():
    data, rng = drawn(m=80, noise=0.2), np.random.default_rng(3)
    data.values[:10] += rng.normal(size=(10, 50))
    noise = swept(data, False).uncertainty().of_rows
    assert noise[:10].median() > 2 * noise[10:].median()


def test_exact_entries_do_no_harm_nor_do_zeros():
    data = drawn(noise=0.0, density=0.6)
    errors = (matrix(swept(data, False, dtype=torch.float32)) - data.truth)[~data.seen]
    assert np.sqrt(np.mean(errors**2)) < 0.1
    assert posterior(observed(NOTHING)).noise.variance == pytest.approx(0.3)  # as of entries of size one
    assert np.abs(matrix(swept(NOTHING, False))).max() < 0.05


@both
def test_the_noise_of_rows_without_entries_is_drawn_where_rows_are(sample):
    data = drawn(m=200)
    data.seen[:100] = False
    state = posterior(observed(data), sample=sample)
    state.sweep()
    scales = state.noise.scales[0][:100]
    assert float(scales.mean()) == pytest.approx(1, rel=0.15)
    assert float(scales.std()) == pytest.approx(0.2**0.5 if sample else 0, rel=0.3)  # Gamma(5, 5)


# -------------------------------------------------------------------- variational sweeps before draws


def drawing(number, **options):
    return swept(drawn(), n_sweeps=number, width=3, **{"sample": True, "n_variational": BEFORE} | options).posterior


def test_the_first_sweeps_are_those_of_the_variational_posterior_and_draws_follow():
    expected, found = drawing(BEFORE, sample=False), drawing(BEFORE)
    for one, other in zip(expected.sides, found.sides, strict=True):
        assert one.covariance is not None
        assert other.covariance is not None
        torch.testing.assert_close(one.mean, other.mean)
        torch.testing.assert_close(one.covariance, other.covariance)
    assert float(found.noise.variance) == pytest.approx(float(expected.noise.variance))
    found.sweep()
    assert all(side.covariance is None for side in found.sides)
    assert not torch.equal(found.sides[0].mean, found.means[0])  # a draw is not the mean that it is drawn around
    assert torch.equal(found.sides[1].mean, drawing(BEFORE + 1).sides[1].mean)


@pytest.mark.parametrize(("number", "of_other"), [(1, BEFORE + 1), (BEFORE, 1), (BEFORE + 2, 1), (BEFORE + 2, 5)])
def test_a_state_of_either_kind_is_gone_on_from(number, of_other):
    whole, other = drawing(number), drawing(of_other)
    other.load_state(whole.state())
    for _ in range(BEFORE + 1):
        whole.sweep()
        other.sweep()
    for one, two in zip(whole.sides, other.sides, strict=True):
        assert torch.equal(one.mean, two.mean)


# -------------------------------------------------------------------- sweeps that went wrong


def told(flags, *numbers):
    return read(together(flags, *numbers), [flag.message for flag in flags])


def variance(state):
    state.noise.variance = torch.tensor(float("inf"))


SPOILED = {
    "variance": variance,
    "scales": lambda state: state.noise.scales[1].fill_(float("nan")),
    "weights": lambda state: state.priors[1].weights.fill_(float("inf")),
    "precision": lambda state: state.priors[0].precision.fill_(float("nan")),
    "means": lambda state: state.means[1][3].fill_(float("nan")),
    "row": lambda state: state.sides[0].mean[5, 1].fill_(float("inf")),
    "covariance": lambda state: state.sides[1].covariance[2, 0].fill_(float("nan")),
}


class Spoiling(Exchange):
    """The last thing that a sweep does."""

    def __init__(self, spoil):
        self.left = [spoil, lambda: None]  # of columns, and of rows

    def agree(self, *parts):
        self.left.pop()()


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_a_check_returns_the_noise_and_raises_where_any_number_is_not_finite(spoil):
    state = posterior(observed(drawn()))
    state.sweep()
    assert state.check() == float(state.noise.variance)
    state.exchange = Spoiling(lambda: spoil(state))
    state.sweep()
    with pytest.raises(NumericalError, match=r"^expected a finite posterior, found NaN or infinity; use"):
        state.check()


def test_priors_without_a_solution_say_so():
    entries = observed(drawn())
    rows, columns = constant(entries)
    state = Posterior(OwnEntries.of(entries), (rows * float("nan"), columns), 2, np.random.default_rng(0))
    state.sweep()
    with pytest.raises(NumericalError, match=r"^the priors of the posterior have no solution: .*cholesky"):
        state.check()


@both
def test_rows_without_a_solution_are_counted_by_the_first_side_that_has_some(sample):
    state = posterior(observed(drawn()), sample=sample)
    state.priors[0].precision = -1e6 * state.priors[0].precision
    state.sweep()
    with pytest.raises(NumericalError, match=r"^60 rows of the posterior have no solution in torch.float64: expected"):
        state.check()


GOOD, SINGULAR = torch.tensor([[2.0, 1.0], [1.0, 2.0]]), torch.diag(torch.tensor([1.0, 0.0]))


@pytest.mark.parametrize(
    ("solve", "of_torch", "bad"),
    [
        (cholesky, torch.linalg.cholesky, SINGULAR),
        (cholesky, torch.linalg.cholesky, -GOOD),
        (cholesky, torch.linalg.cholesky, GOOD * float("nan")),
        (inverse, torch.linalg.inv, SINGULAR),
    ],
)
def test_what_is_missing_is_told_in_the_words_of_torch(solve, of_torch, bad):
    flags = []
    torch.testing.assert_close(solve(GOOD, flags), of_torch(GOOD))
    assert told(flags) == []
    solve(bad, flags)
    with pytest.raises(RuntimeError) as expected:
        of_torch(bad)
    with pytest.raises(NumericalError) as found:
        told(flags)
    assert str(found.value) == f"the priors of the posterior have no solution: {expected.value}"


def test_the_first_flag_counts_and_numbers_keep_double_precision_and_may_be_nan():
    zero, third = torch.tensor(0), torch.tensor(1 / 3, dtype=torch.float64)
    flags = [Flag(zero, "none"), of_finite([torch.ones(3), third])]
    found = told(flags, third, torch.tensor(float("nan")))
    assert found[0] == 1 / 3
    assert found[1] != found[1]
    flags += [of_rows(torch.tensor(3), torch.float32), Flag(torch.tensor(1), "later")]
    with pytest.raises(NumericalError, match=r"^3 rows of the posterior have no solution in torch.float32: expected"):
        told(flags, zero)
