"""The noise of rows and columns against its distributions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from air_recsys.nn.posterior.prior import Noise

NU = 10


def noise_of(counts, variance=4.0, columns=2):
    total = float(sum(counts))
    return Noise((torch.tensor(counts), torch.full((columns,), total / columns)), variance)


def test_all_scales_are_one_before_the_first_errors():
    noise = noise_of([1.0, 2.0, 3.0])
    assert [scales.tolist() for scales in noise.scales] == [[1.0] * 3, [1.0] * 2]
    assert noise.variance == 4.0


def test_an_update_shrinks_scales_towards_one_and_weighs_errors_with_them():
    noise, errors = noise_of([2.0, 8.0]), torch.tensor([4.0, 1.0])
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
