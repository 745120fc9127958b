"""Where a posterior starts, and how a sweep ends that went wrong."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from posterior_cases import Drawn, constant, drawn, observed, posterior

from air_recsys.exceptions import AirRecsysError
from air_recsys.nn.posterior.exchange import OwnEntries
from air_recsys.nn.posterior.posterior import Posterior

both = pytest.mark.parametrize("sample", [False, True], ids=["variational", "langevin"])


@pytest.mark.parametrize("size", [0.2, 5.0])
@both
def test_products_of_the_start_vary_as_the_entries_do(size, sample):
    data = drawn(m=400, n=300, density=0.1)
    entries = observed(data._replace(values=size * data.values))
    state = posterior(entries, width=4, sample=sample)
    variance = float(entries.values.square().mean())
    rows, columns = (side.mean[:, :-1] for side in state.sides)
    assert float((rows @ columns.T).square().mean()) == pytest.approx(variance, rel=0.2)
    for factors, prior in zip((rows, columns), state.priors, strict=True):
        precision = 1 / float(factors.square().mean())
        np.testing.assert_allclose(prior.precision, precision * np.eye(5), rtol=0.2, atol=1e-12)
    assert state.noise.variance == pytest.approx(0.3 * variance)


@both
def test_biases_start_at_zero_and_gaussians_narrow(sample):
    entries = observed(drawn())
    state = posterior(entries, width=2, sample=sample)
    for side, size in zip(state.sides, (60, 50), strict=True):
        assert side.mean.shape == (size, 3)
        assert not side.mean[:, -1].any()
        if sample:
            assert side.covariance is None
        else:
            assert side.covariance is not None
            np.testing.assert_allclose(side.covariances(), np.broadcast_to(0.01 * np.eye(3), (size, 3, 3)))


def test_entries_that_are_all_zero_start_as_if_of_size_one():
    nothing = Drawn(np.zeros((8, 6)), np.ones((8, 6), dtype=bool), np.zeros((8, 6)))
    assert posterior(observed(nothing)).noise.variance == pytest.approx(0.3)


def test_other_seeds_start_elsewhere():
    entries = observed(drawn(m=4, n=3))
    assert len({posterior(entries, seed=seed).generator.initial_seed() for seed in range(60)}) == 60


@both
def test_the_noise_of_rows_without_entries_is_drawn_where_rows_are(sample):
    data = drawn(m=200)
    data.seen[:100] = False
    state = posterior(observed(data), sample=sample)
    state.sweep()
    scales = state.noise.scales[0][:100]
    assert float(scales.mean()) == pytest.approx(1, rel=0.15)
    assert float(scales.std()) == pytest.approx(0.2**0.5 if sample else 0, rel=0.3)  # Gamma(5, 5)


def test_priors_without_a_solution_say_so():
    entries = observed(drawn())
    rows, columns = constant(entries)
    state = Posterior(OwnEntries.of(entries), (rows * float("nan"), columns), 2, np.random.default_rng(0))
    state.sweep()
    with pytest.raises(AirRecsysError, match=r"^the priors of the posterior have no solution: .*cholesky"):
        state.check()


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


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED)
def test_numbers_that_are_not_finite_end_the_sweeps(spoil, monkeypatch):
    state = posterior(observed(drawn()))
    monkeypatch.setattr(state, "_half_sweep", lambda side: None)
    state.sweep()
    state.check()
    state.means = [side.mean.clone() for side in state.sides]
    spoil(state)
    with pytest.raises(
        AirRecsysError, match=r"^expected a finite posterior, found NaN or infinity; use dtype='float64'"
    ):
        state.check()


@both
def test_rows_without_a_solution_are_counted_by_the_first_side_that_has_some(sample):
    data = drawn()
    state = posterior(observed(data), sample=sample)
    state.priors[0].precision = -1e6 * state.priors[0].precision
    state.sweep()
    with pytest.raises(AirRecsysError, match=r"^60 rows of the posterior have no solution in torch.float64: expected"):
        state.check()


def test_a_check_returns_numbers():
    state = posterior(observed(drawn()))
    state.sweep()
    assert state.check(state.noise.variance, torch.tensor(2)) == [float(state.noise.variance), 2.0]


def test_a_state_of_more_or_fewer_priors_is_refused():
    state = posterior(observed(drawn()))
    kept = state.state()
    for priors in (kept["priors"][:1], kept["priors"] * 2):
        with pytest.raises(ValueError, match="argument"):
            state.load_state(kept | {"priors": priors})
