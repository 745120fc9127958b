"""The memory of the sweeps, as estimated, against what their tensors take."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from nn_references import random_observations
from peak_bytes import Peak

from air_recsys.nn.memory import Sizes, posterior_bytes
from air_recsys.nn.posterior.estimate import LangevinEstimate, VariationalEstimate
from air_recsys.nn.posterior.exchange import OwnEntries
from air_recsys.nn.posterior.graphs import positions
from air_recsys.nn.posterior.posterior import Posterior
from air_recsys.training import PosteriorSweeps, train

CASES = {  # what each is mostly of
    "matrices": (Sizes(300, 300, 3000), 30, 0, False),
    "matrices of one side": (Sizes(600, 20, 3000), 30, 0, False),
    "double": (Sizes(300, 200, 3000, 8), 30, 0, False),
    "entries": (Sizes(300, 300, 60_000), 2, 0, False),
    "features": (Sizes(1000, 800, 3000), 1, 150, False),
    "draws": (Sizes(1000, 600, 3000), 2, 0, True),
    "wide draws": (Sizes(400, 600, 3000), 12, 0, True),
    "draws from covariances": (Sizes(400, 600, 3000), 40, 0, True),
}


@pytest.mark.parametrize(("sizes", "width", "n_features", "sample"), CASES.values(), ids=CASES)
def test_the_estimate_is_a_little_above_the_peak(sizes, width, n_features, sample):
    with Peak() as peak:
        sweep_through(sizes, width, n_features, sample)
    planned = posterior_bytes(sizes, width, n_features, sample=sample, from_covariances=width == 40)
    assert isinstance(planned, int)
    assert 0.95 * peak.peak < planned < 1.75 * peak.peak


def sweep_through(sizes, width, n_features, sample):
    rng, dtype = np.random.default_rng(0), torch.float64 if sizes.itemsize == 8 else torch.float32
    entries = random_observations(*sizes[:2], density=sizes.n_ratings / (sizes.n_rows * sizes.n_columns), dtype=dtype)
    features = tuple(torch.rand(size, n_features + 2) for size in sizes[:2])
    n_variational = 3 if width == 40 else 0
    state = Posterior(OwnEntries.of(entries), features, width, rng, sample=sample, n_variational=n_variational)
    n_sweeps = 20 if sample else 4
    estimate = LangevinEstimate(state, n_sweeps) if sample else VariationalEstimate(state, n_sweeps)
    # An error that grows: the best state is an early one and stays beside the last good one.
    errors = itertools.count(1)
    train(PosteriorSweeps(state, estimate, [None, None], rng, n_sweeps, validation_error=lambda: float(next(errors))))
    estimate.uncertainty()
    for prior, mean in zip(state.priors, state.means, strict=True):
        positions(prior, mean)
