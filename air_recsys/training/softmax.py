"""Training of the factors of `air_recsys.nn.softmax`: some steps of Adam, each on some rows and all columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np
import scipy.sparse as sp
import torch

from air_recsys.nn.pattern import SparsePattern
from air_recsys.nn.softmax import ColumnFactors, softmax
from air_recsys.training.schedules import linear

TEMPERATURE = 0.11
POWER = 1.1
_BATCH_ROWS = 1024
_LEARNING_RATE = 0.01


@torch.no_grad()
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
    >>> rows = trained.row_sums(row_pattern(pattern[[0, 5]]))
    >>> (rows @ normalize(trained.targets, dim=1).T).topk(2).indices.sort().values.tolist()
    [[0, 1], [2, 3]]
    """
    factors = ColumnFactors(start.sources.clone(), start.targets.clone(), start.weights)
    trained = [factors.sources, factors.targets]
    optimizer = torch.optim.Adam(trained, fused=True)
    for step, rows in zip(range(n_steps), _batches(pattern, seed), strict=False):
        found = softmax(factors, row_pattern(rows, start.sources.device), TEMPERATURE, POWER)
        for tensor, gradient in zip(trained, found[1:], strict=True):
            tensor.grad = gradient
        optimizer.param_groups[0]["lr"] = _LEARNING_RATE * linear(step / n_steps)
        optimizer.step()
    for tensor in trained:
        tensor.grad = None
    return factors


def row_pattern(rows: sp.csr_array, device: torch.device | str = "cpu") -> SparsePattern:
    """Return the stored entries of some rows on a device."""
    rows.sort_indices()
    starts, columns = (torch.from_numpy(each.astype(np.int64)).to(device) for each in (rows.indptr, rows.indices))
    return SparsePattern(starts, columns, cast("tuple[int, int]", rows.shape)[1])


def _batches(pattern: sp.csr_array, seed: int) -> Iterator[sp.csr_array]:
    """Yield rows without end; nothing where no row has a column."""
    random = np.random.default_rng(seed)
    filled = np.flatnonzero(np.diff(pattern.indptr))
    while filled.size:
        order = random.permutation(filled)
        for begin in range(0, order.size, _BATCH_ROWS):
            yield pattern[np.sort(order[begin : begin + _BATCH_ROWS])]
