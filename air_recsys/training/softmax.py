"""Training of the factors of `air_recsys.nn.softmax`: some steps of Adam, each on some rows and all columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
import torch

from air_recsys.nn.softmax import ColumnFactors, Rows, softmax_loss
from air_recsys.training.schedules import linear

TEMPERATURE = 0.11
POWER = 1.1
_BATCH_ROWS = 1024
_LEARNING_RATE = 0.01


def train_softmax(pattern: sp.csr_array, start: ColumnFactors, n_steps: int, seed: int) -> ColumnFactors:
    """Return factors of columns after so many steps from `start`, with a step size that falls to 0 evenly.

    Parameters
    ----------
    pattern : csr_array, shape (m, n)
        Stored entries are the columns of each row; rows without any do not take part.
    start : ColumnFactors
        On the device of the training; stays as it is.
    n_steps : int
        Each takes the next 1024 rows of those that have columns, in an order drawn anew each time all have had
        their turn.
    seed : int
        Of the order of the rows.

    Examples
    --------
    >>> from torch.nn.functional import normalize
    >>> pattern = sp.csr_array(np.kron(np.eye(2), np.ones((3, 2))))  # two groups
    >>> columns = torch.linspace(-1, 1, 12).reshape(4, 3)
    >>> trained = train_softmax(pattern, ColumnFactors(columns, columns.flip(0), torch.ones(4)), 200, 0)
    >>> rows = trained.row_factors(Rows(torch.tensor([0, 1, 2, 3]), torch.tensor([0, 2])))
    >>> (rows @ normalize(trained.targets, dim=1).T).topk(2).indices.sort().values.tolist()
    [[0, 1], [2, 3]]
    """
    sources, targets = (each.clone().requires_grad_() for each in (start.sources, start.targets))
    factors = ColumnFactors(sources, targets, start.weights)
    optimizer = torch.optim.Adam([sources, targets], fused=True)
    for step, rows in zip(range(n_steps), _batches(pattern, seed, sources.device), strict=False):
        optimizer.param_groups[0]["lr"] = _LEARNING_RATE * linear(step / n_steps)
        optimizer.zero_grad()
        softmax_loss(factors, rows, TEMPERATURE, POWER).backward()
        optimizer.step()
    return ColumnFactors(sources.detach(), targets.detach(), start.weights)


def _batches(pattern: sp.csr_array, seed: int, device: torch.device) -> Iterator[Rows]:
    """Yield rows without end; nothing where no row has a column."""
    random = np.random.default_rng(seed)
    filled = np.flatnonzero(np.diff(pattern.indptr))
    while filled.size:
        order = random.permutation(filled)
        for begin in range(0, order.size, _BATCH_ROWS):
            some = pattern[np.sort(order[begin : begin + _BATCH_ROWS])]
            columns, starts = (torch.from_numpy(each.astype(np.int64)) for each in (some.indices, some.indptr[:-1]))
            yield Rows(columns.to(device), starts.to(device))
