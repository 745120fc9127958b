"""Data drawn from the model that the posterior is of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from air_recsys.nn.build import observations
from air_recsys.nn.objective import Observations
from air_recsys.nn.posterior.exchange import OwnEntries
from air_recsys.nn.posterior.posterior import Posterior


class Drawn(NamedTuple):
    """Entries y = p.q + b + c + noise of a random part of a matrix, and the truth without noise."""

    truth: np.ndarray  # (m, n)
    seen: np.ndarray  # (m, n), bool
    values: np.ndarray  # (m, n)


def drawn(m: int = 60, n: int = 50, rank: int = 2, noise: float = 0.3, density: float = 0.3, seed: int = 0) -> Drawn:
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n)) * 0.7
    truth += 0.4 * rng.normal(size=(m, 1)) + 0.4 * rng.normal(size=n)
    return Drawn(truth, rng.random((m, n)) < density, truth + noise * rng.normal(size=(m, n)))


def observed(data: Drawn, dtype: torch.dtype = torch.float64, weights: np.ndarray | None = None) -> Observations:
    rows, columns = np.nonzero(data.seen)
    entries = sp.csr_array((data.values[data.seen], (rows, columns)), shape=data.seen.shape)
    confidence = (
        None if weights is None else sp.csr_array((weights[data.seen], (rows, columns)), shape=data.seen.shape)
    )
    return observations(entries, lambda values: values, dtype, torch.device("cpu"), confidence)


def constant(entries: Observations) -> tuple[Tensor, Tensor]:
    """The features of a pattern that says nothing."""
    m, n = entries.pattern.shape
    return entries.values.new_ones(m, 1), entries.values.new_ones(n, 1)


def posterior(entries: Observations, width: int = 2, seed: int = 0, **options: bool) -> Posterior:
    return Posterior(OwnEntries.of(entries), constant(entries), width, np.random.default_rng(seed), **options)
