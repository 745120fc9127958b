"""New rows of a posterior with given columns, priors and noise: many at a time, or one.

There are two programs of one equation, as the tables of `equations` serve many rows: `solve_row` works in whole
matrices and finds one row, as a service has it, in an eighth to a thirtieth of the time of `solve_rows` (0.18 ms, not
2.5, of 20 entries and 20 factors; 4.7 ms, not 76, of 100 entries, 40 factors and 20 draws; one core).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from air_recsys.exceptions import NumericalError
from air_recsys.nn.objective import Observations
from air_recsys.nn.posterior import flags
from air_recsys.nn.posterior.entries import Entries
from air_recsys.nn.posterior.equations import Rows, each_part, equations, gaussians
from air_recsys.nn.posterior.prior import expected_scales
from air_recsys.nn.posterior.triangles import positions_in_triangle
from air_recsys.storage.lazy import Tensor, torch
from air_recsys.storage.threads import one_thread

STEPS = 5  # of mean and scale in turn; scores then are within 2e-5 of the fixed point on MovieLens-100K, on average


class Known(NamedTuple):
    """The given values that new rows follow from."""

    columns: Rows
    noise: Tensor  # (n,), variance of an entry of weight 1: sigma^2 / s
    weights: Tensor  # W, (k, d)
    precision: Tensor  # S^-1, (d, d)


@one_thread()
def solve_rows(entries: Observations, features: Tensor, known: Known) -> tuple[Rows, Tensor]:
    """The Gaussians of rows, and the scales t of their noise: the fixed point of `Posterior`'s sweeps.

    `entries` (m, n) are in the unit of the posterior; `features` have the shape (m, k).
    """
    own = Entries.of(entries, 0)
    system, counts = equations(own, known.columns, 1 / known.noise), own.counts()
    scales, prior_mean = torch.ones_like(counts), features @ known.weights
    means, covariances = torch.empty_like(prior_mean), torch.empty_like(system.precision)

    def solved(part: slice) -> Tensor:
        own, unsolved = system.block(part), []
        for _ in range(STEPS):
            found = gaussians(own, scales[part], prior_mean[part], known.precision)
            means[part], covariances[part] = found.mean, found.covariance
            unsolved.append(found.unsolved)
            scales[part] = expected_scales(counts[part], own.squared_errors(Rows(means[part], covariances[part])))
        return torch.stack(unsolved)

    found = each_part(solved, means, 3 * STEPS * means.shape[1] ** 3)
    flags.read(torch.stack(found).sum(dim=0), [flags.of_rows(found[0], features.dtype).message] * STEPS)
    return Rows(means, covariances), scales


class Columns(NamedTuple):
    """The columns of the entries of a row, one for each entry."""

    means: np.ndarray  # (s, n, d), one for each draw; s = 1 beside covariances
    covariances: np.ndarray | None  # triangles, (n, d (d + 1) / 2)
    noise: np.ndarray  # (n,), variance of an entry of weight 1


class Prior(NamedTuple):
    """The prior of a row, one for each draw."""

    means: np.ndarray  # (s, d)
    precisions: np.ndarray  # (s, d, d)


class Row(NamedTuple):
    """The Gaussian of a row, and the scale of its noise, one for each draw."""

    means: np.ndarray  # (s, d)
    covariances: np.ndarray  # (s, d, d)
    scales: np.ndarray  # (s,)


def solve_row(values: np.ndarray, weights: np.ndarray | None, columns: Columns, prior: Prior) -> Row:
    """A row from its entries, see `air_recsys.nn.posterior.rows.solve_rows`; all in double precision."""
    weights = np.ones(values.size) if weights is None else weights
    count = weights.sum(keepdims=True)
    precision, right, squares = _equations(values, weights / columns.noise, columns)
    of_prior = (prior.precisions @ prior.means[:, :, None])[:, :, 0]
    scales, covariances, means = np.ones(len(prior.means)), prior.precisions, prior.means
    for step in range(STEPS):
        covariances = _inverse(prior.precisions + scales[:, None, None] * precision, check=step == STEPS - 1)
        means = (covariances @ (scales[:, None] * right + of_prior)[:, :, None])[:, :, 0]
        moments = covariances + means[:, :, None] * means[:, None, :]
        errors = squares - 2 * (right * means).sum(axis=1) + (precision * moments).sum(axis=(1, 2))
        scales = expected_scales(count, errors.clip(min=0))
    return Row(means, covariances, scales)


def _equations(values: np.ndarray, shares: np.ndarray, columns: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A (s, d, d), h (s, d) and s (s,) of the row."""
    biases, inputs = columns.means[:, :, -1], columns.means.copy()
    inputs[:, :, -1] = 1.0
    weighted = inputs.swapaxes(1, 2) * shares  # (s, d, n)
    errors = values - biases
    precision, right = weighted @ inputs, (weighted @ errors[:, :, None])[:, :, 0]
    squares = (errors**2) @ shares
    if columns.covariances is not None:
        told = (shares @ columns.covariances)[positions_in_triangle(inputs.shape[2])]  # (d, d)
        right[:, :-1] -= told[-1, :-1]
        squares = squares + told[-1, -1]
        precision[:, :-1, :-1] += told[:-1, :-1]
    return precision, right, squares


def _inverse(matrices: np.ndarray, *, check: bool) -> np.ndarray:
    """The inverses of matrices, which if asked have to be positive definite."""
    try:
        if check:
            np.linalg.cholesky(matrices)
        return np.linalg.inv(matrices)
    except np.linalg.LinAlgError:
        raise NumericalError(flags.unsolved_rows(1, "float64")) from None
