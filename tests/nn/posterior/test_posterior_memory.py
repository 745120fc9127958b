"""The memory of the sweeps, estimated."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from posterior_cases import drawn, observed

from air_recsys.nn.memory import Sizes
from air_recsys.nn.posterior.memory import posterior_bytes
from air_recsys.nn.posterior.posterior import Posterior

SIZES = Sizes(1000, 500, 50_000)


@pytest.mark.parametrize(
    "change",
    [{"n_rows": 2000}, {"n_columns": 1500}, {"n_ratings": 100_000}, {"itemsize": 8}],
    ids=lambda it: next(iter(it)),
)
def test_more_needs_more(change):
    assert posterior_bytes(SIZES._replace(**change), 10, 20) > posterior_bytes(SIZES, 10, 20)


def test_width_features_and_draws_need_more():
    plain = posterior_bytes(SIZES, 10, 20)
    assert posterior_bytes(SIZES, 20, 20) > 2 * plain
    assert posterior_bytes(SIZES, 10, 200) > plain
    assert posterior_bytes(SIZES, 10, 20, sample=True) > plain


def test_the_matrices_of_a_state_are_within_the_estimate():
    data = drawn(m=200, n=150, rank=2)
    entries, width = observed(data, torch.float32), 12
    features = entries.values.new_ones(200, 1), entries.values.new_ones(150, 1)
    state = Posterior(entries, features, width, np.random.default_rng(0))
    state.sweep()
    held = sum(part.nbytes for side in state.sides for part in side if part is not None)
    assert held < posterior_bytes(Sizes(200, 150, entries.values.numel()), width, 1)
