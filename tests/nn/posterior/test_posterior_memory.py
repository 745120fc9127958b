"""The memory of the sweeps, estimated."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from posterior_cases import drawn, observed, posterior

from air_recsys.nn.memory import Sizes, posterior_bytes
from air_recsys.nn.posterior.estimate import LangevinEstimate
from air_recsys.nn.posterior.exchange import OwnEntries
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


def test_what_draws_add_is_what_is_kept_of_them():
    sizes, width = Sizes(400, 300, 3000), 6
    entries = observed(drawn(*sizes[:2], density=0.025), torch.float32)
    estimate = LangevinEstimate(posterior(entries, width, sample=True), 20)
    for _ in range(20):
        estimate.sweep()
    kept = [tensor for rows, columns, _ in estimate._draws for tensor in (rows, columns)]
    kept += [value for value in vars(estimate._products).values() if isinstance(value, torch.Tensor)]
    held = sum(tensor.nbytes for tensor in kept)
    planned = posterior_bytes(sizes, width, 1, sample=True) - posterior_bytes(sizes, width, 1)
    assert 0.95 * held < planned < 1.3 * held


def test_twice_as_much_of_everything_needs_twice_the_memory():
    for sample in (False, True):
        once, twice = (posterior_bytes(Sizes(*(k * it for it in SIZES[:3])), 10, 20, sample=sample) for k in (1, 2))
        assert twice == 2 * once


def test_the_matrices_of_a_state_are_within_the_estimate():
    data = drawn(m=200, n=150, rank=2)
    entries, width = observed(data, torch.float32), 12
    features = entries.values.new_ones(200, 1), entries.values.new_ones(150, 1)
    state = Posterior(OwnEntries.of(entries), features, width, np.random.default_rng(0))
    state.sweep()
    held = sum(part.nbytes for side in state.sides for part in side if part is not None)
    assert held < posterior_bytes(Sizes(200, 150, entries.values.numel()), width, 1)
