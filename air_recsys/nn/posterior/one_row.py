"""One new row of a posterior with given columns, in whole matrices: what `solve_rows` finds, in a tenth of its time.

The tables of `air_recsys.nn.posterior.equations` serve many rows at a time. Of one row with few entries, as a service
has it, making them takes longer than the sums and the solutions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from air_recsys.exceptions import NumericalError
from air_recsys.nn.posterior import flags
from air_recsys.nn.posterior.noise import expected_scales
from air_recsys.nn.posterior.rows import STEPS
from air_recsys.nn.posterior.triangles import places_in_triangle


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
    """Return a row from its entries, see `air_recsys.nn.posterior.rows.solve_rows`; all in double precision.

    Parameters
    ----------
    values : ndarray, shape (n,)
        In the unit of the posterior.
    weights : ndarray, shape (n,), optional
    columns : Columns
    prior : Prior

    Raises
    ------
    NumericalError
        Where the precision of the numbers is too low for the equations.

    Examples
    --------
    >>> columns = Columns(np.array([[[1.0, 0.0]]]), None, np.ones(1))
    >>> prior = Prior(np.zeros((1, 2)), np.eye(2)[None])
    >>> solve_row(np.array([3.0]), None, columns, prior).means.round(4)
    array([[0.9765, 0.9765]])
    """
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
    """Return A (s, d, d), h (s, d) and s (s,) of the row."""
    biases, inputs = columns.means[:, :, -1], columns.means.copy()
    inputs[:, :, -1] = 1.0
    weighted = inputs.swapaxes(1, 2) * shares  # (s, d, n)
    errors = values - biases
    precision, right = weighted @ inputs, (weighted @ errors[:, :, None])[:, :, 0]
    squares = (errors**2) @ shares
    if columns.covariances is not None:
        told = (shares @ columns.covariances)[places_in_triangle(inputs.shape[2])]  # (d, d)
        right[:, :-1] -= told[-1, :-1]
        squares = squares + told[-1, -1]
        precision[:, :-1, :-1] += told[:-1, :-1]
    return precision, right, squares


def _inverse(matrices: np.ndarray, *, check: bool) -> np.ndarray:
    """Return the inverses of matrices, and if asked see to it that they are positive definite."""
    try:
        if check:
            np.linalg.cholesky(matrices)
        return np.linalg.inv(matrices)
    except np.linalg.LinAlgError:
        raise NumericalError(flags.unsolved_rows(1, torch.float64)) from None
