"""Training of the factors of `air_recsys.nn.softmax`: some steps of Adam, each on some rows and all columns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

import numpy as np
import scipy.sparse as sp
import torch

from air_recsys.nn.pattern import SparsePattern
from air_recsys.nn.softmax import ColumnFactors, ColumnSample, softmax
from air_recsys.training.schedules import linear

_MOST_COLUMNS = 50_000  # of more a step takes the exponentials of a sample
_SAMPLE = 25_000


class SoftmaxTraining(NamedTuple):
    """How factors are trained; temperature and power are those of `air_recsys.nn.softmax`."""

    n_steps: int = 150
    temperature: float = 0.11
    power: float = 1.1
    batch_rows: int = 1024  # of a step
    learning_rate: float = 0.01  # of the first step


Watch = Callable[[int, float], None]  # of the number of a step, from 0, and its loss


@torch.no_grad()
def train_softmax(
    pattern: sp.csr_array,
    start: ColumnFactors,
    training: SoftmaxTraining,
    seed: int,
    watch: Watch | None = None,
) -> ColumnFactors:
    """Return factors of columns after so many steps from `start`, with a step size that falls to 0 evenly.

    Of more than 50,000 columns a step takes the exponentials of about 25,000, drawn with chances that follow the
    square roots of their numbers of entries: the cost of a step has a limit.

    Parameters
    ----------
    pattern : csr_array, shape (m, n)
        Stored entries are the columns of each row; rows without any do not take part.
    start : ColumnFactors
        On the device of the training; stays as it is.
    training : SoftmaxTraining
        Each step takes the next rows of those that have columns, in an order drawn anew each time all have had
        their turn.
    seed : int
        Of the order of the rows and of the columns that are drawn.
    watch : callable, optional
        Called after each step.

    Examples
    --------
    >>> from torch.nn.functional import normalize
    >>> pattern = sp.csr_array(np.kron(np.eye(2), np.ones((3, 2))))  # two groups
    >>> columns = torch.linspace(-1, 1, 12).reshape(4, 3)
    >>> start = ColumnFactors(columns, columns.flip(0), torch.ones(4))
    >>> trained = train_softmax(pattern, start, SoftmaxTraining(200), 0)
    >>> rows = trained.row_sums(row_pattern(pattern[[0, 5]]))
    >>> (rows @ normalize(trained.targets, dim=1).T).topk(2).indices.sort().values.tolist()
    [[0, 1], [2, 3]]
    """
    factors = ColumnFactors(start.sources.clone(), start.targets.clone(), start.weights)
    device, trained = start.sources.device, [factors.sources, factors.targets]
    optimizer = torch.optim.Adam(trained, fused=True)
    batches, samples = _batches(pattern, training.batch_rows, seed), _samples(pattern, seed, device)
    for step, rows, sample in zip(range(training.n_steps), batches, samples, strict=False):
        found = softmax(factors, row_pattern(rows, device), training.temperature, training.power, sample)
        for tensor, gradient in zip(trained, found[1:], strict=True):
            tensor.grad = gradient
        optimizer.param_groups[0]["lr"] = training.learning_rate * linear(step / training.n_steps)
        optimizer.step()
        if watch is not None:
            watch(step, float(found.loss))
    for tensor in trained:
        tensor.grad = None
    return factors


def row_pattern(rows: sp.csr_array, device: torch.device | str = "cpu") -> SparsePattern:
    """Return the stored entries of some rows on a device."""
    rows.sort_indices()
    starts, columns = (torch.from_numpy(each.astype(np.int64)).to(device) for each in (rows.indptr, rows.indices))
    return SparsePattern(starts, columns, cast("tuple[int, int]", rows.shape)[1])


def _batches(pattern: sp.csr_array, size: int, seed: int) -> Iterator[sp.csr_array]:
    """Yield rows without end; nothing where no row has a column."""
    random = np.random.default_rng(seed)
    filled = np.flatnonzero(np.diff(pattern.indptr))
    while filled.size:
        order = random.permutation(filled)
        for begin in range(0, order.size, size):
            yield pattern[np.sort(order[begin : begin + size])]


def _samples(pattern: sp.csr_array, seed: int, device: torch.device) -> Iterator[ColumnSample | None]:
    """Yield columns to take the exponentials of, without end; None for all of them where they are few."""
    n_columns = cast("tuple[int, int]", pattern.shape)[1]
    if n_columns <= _MOST_COLUMNS:
        yield from itertools.repeat(None)
    random = np.random.default_rng(seed)
    chances = _chances(np.bincount(pattern.indices, minlength=n_columns), _SAMPLE)
    while True:
        columns = np.flatnonzero(random.random(n_columns) < chances)
        weights = (1 / chances[columns]).astype(np.float32)
        yield ColumnSample(torch.from_numpy(columns).to(device), torch.from_numpy(weights).to(device))


def _chances(counts: np.ndarray, size: int) -> np.ndarray:
    """Return chances <= 1 of sum `size`, which follow the square roots of the counts, those of 0 taken as 1.

    Examples
    --------
    >>> _chances(np.array([400, 4, 4, 1, 1]), 3)
    array([1.        , 0.66666667, 0.66666667, 0.33333333, 0.33333333])
    """
    weights = np.sqrt(np.maximum(counts, 1))
    chances = np.zeros(counts.size)
    while (rest := chances < 1).any():
        new = weights[rest] * ((size - np.count_nonzero(~rest)) / weights[rest].sum())
        chances[rest] = np.minimum(new, 1)
        if (new <= 1).all():
            break
    return chances
