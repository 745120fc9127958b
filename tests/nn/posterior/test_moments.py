"""Gaussians by halves against those of dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from air_recsys.nn.posterior.moments import moments
from air_recsys.nn.posterior.triangles import packed, symmetric


def precisions(width, m=5, dtype=torch.float64):
    points = torch.randn(m, 2 * width, width, dtype=dtype, generator=torch.Generator().manual_seed(0))
    return points.mT @ points + torch.eye(width, dtype=dtype)


@pytest.mark.parametrize("width", [1, 2, 15, 16, 17, 41])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-4)])
def test_means_and_covariances_are_those_of_the_dense_inverse(width, dtype, tolerance):
    given = precisions(width, dtype=dtype)
    right = torch.arange(5.0 * width, dtype=dtype).view(5, width)
    mean, covariance, unsolved = moments(packed(given), right)
    expected = np.linalg.inv(given.double().numpy())
    np.testing.assert_allclose(symmetric(covariance), expected, atol=tolerance, rtol=tolerance)
    np.testing.assert_allclose(
        mean, (expected @ right.double().numpy()[:, :, None])[:, :, 0], atol=tolerance, rtol=tolerance
    )
    assert unsolved == 0
    assert {mean.dtype, covariance.dtype} == {dtype}


@pytest.mark.parametrize("width", [2, 20])
@pytest.mark.parametrize("place", [0, -1], ids=["first half", "second half"])
def test_a_row_without_a_solution_is_counted_and_leaves_the_others_alone(width, place):
    given = precisions(width)
    right = torch.ones(5, width, dtype=given.dtype)
    whole = moments(packed(given), right)
    given[2, place, place] = -1.0
    mean, covariance, unsolved = moments(packed(given), right)
    assert unsolved == 1
    assert mean[2].isnan().any()
    others = torch.tensor([0, 1, 3, 4])
    torch.testing.assert_close(mean[others], whole.mean[others])
    torch.testing.assert_close(covariance[others], whole.covariance[others])
