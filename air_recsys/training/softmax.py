"""Training of the factors of `air_recsys.nn.softmax`: some steps of Adam, each on some rows and all columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp

from air_recsys.nn.pattern import SparsePattern
from air_recsys.nn.softmax import ColumnFactors, ColumnSample, Softmax, softmax
from air_recsys.storage.lazy import torch, without_gradients
from air_recsys.training.plan import linear
from air_recsys.training.ranks import ALONE, Ranks
from air_recsys.training.steps import moments_of
from air_recsys.training.trainer import Measures, Record, Trainer

_MOST_COLUMNS = 50_000  # of more a step takes the exponentials of a sample
_SAMPLE = 25_000


class SoftmaxTraining(NamedTuple):
    """How factors are trained; temperature and power are those of `air_recsys.nn.softmax`."""

    n_steps: int = 150
    temperature: float = 0.11
    power: float = 1.1
    batch_rows: int = 1024  # of a step
    learning_rate: float = 0.01  # of the first step
    evaluate_every: int = 10  # steps between two records


class SoftmaxTrainer(Trainer):
    """Factors of columns for `air_recsys.training.train`, with a step size that falls to 0 evenly.

    Of more than 50,000 columns a step takes the exponentials of about 25,000, drawn with chances that follow the
    square roots of their numbers of entries: the cost of a step has a limit.
    `factors` are those after the last `step`; the next one changes them in place. With `n_steps` set to an earlier
    position the step sizes stay the same.

    Parameters
    ----------
    pattern : csr_array, shape (m, n)
        Stored entries are the columns of each row, by how much they count; rows without any do not take part.
    start : ColumnFactors
        On the device of the training; stays as it is.
    training : SoftmaxTraining
        Each step takes the next rows of those that have columns, in an order drawn anew each time all have had
        their turn.
    seed : int
        Of the order of the rows and of the columns that are drawn.
    ranks : Ranks
        Each takes a share of the rows of a step; their gradients are added up, and all take the same step.
    """

    unit = "step"
    first_record = 1
    watches_every_step = False
    checks_steps = False

    def __init__(
        self, pattern: sp.csr_array, start: ColumnFactors, training: SoftmaxTraining, seed: int, ranks: Ranks = ALONE
    ) -> None:
        self.factors = start._replace(sources=start.sources.clone(), targets=start.targets.clone())
        self.n_steps, self.evaluate_every = training.n_steps, training.evaluate_every
        self._pattern, self._training, self._seed = pattern, training, seed
        self._ranks, self.alone = ranks, ranks.size == 1
        self._optimizer = torch.optim.Adam([self.factors.sources, self.factors.targets], fused=True)
        self._losses: list[torch.Tensor] = []  # since the last record
        self._start_at(0)

    def _start_at(self, step: int) -> None:
        """Take the draws of the steps before as drawn."""
        device = self.factors.sources.device
        self.step = step
        self._batches = itertools.islice(_batches(self._pattern, self._training.batch_rows, self._seed), step, None)
        self._samples = itertools.islice(_samples(self._pattern, self._seed, device), step, None)

    @without_gradients
    def advance(self, position: int) -> None:
        """Take the step from `position` to the next one; none where no row has a column."""
        training, trained = self._training, (self.factors.sources, self.factors.targets)
        self.step = position + 1
        rows = next(self._batches, None)
        if rows is None:
            return
        found = self._gradients(rows, next(self._samples))
        self._losses.append(found.loss)
        for tensor, gradient in zip(trained, found[1:], strict=True):
            tensor.grad = gradient
        self._optimizer.param_groups[0]["lr"] = training.learning_rate * linear(position / training.n_steps)
        self._optimizer.step()
        for tensor in trained:
            tensor.grad = None

    def _gradients(self, rows: np.ndarray, sample: ColumnSample | None) -> Softmax:
        """Loss and gradients of the rows of a step, over all ranks."""
        training, ranks = self._training, self._ranks
        own = self._pattern[rows[ranks.rank :: ranks.size]]
        batch = row_pattern(own, self.factors.sources.device)
        values = torch.from_numpy(own.data).to(self.factors.weights)
        found = softmax(self.factors, batch, training.temperature, training.power, sample, values)
        if ranks.size == 1:
            return found
        share = float(own.data.sum(dtype=np.float64) / self._pattern[rows].data.sum(dtype=np.float64))
        return Softmax(*ranks.sum(*(share * each for each in found)))

    def measure(self, position: int) -> Measures:
        """The mean loss of the steps since the last record as objective, and the size of the next step."""
        losses = [float(loss) for loss in self._losses]
        self._losses.clear()
        rate = self._training.learning_rate * linear(position / self._training.n_steps)
        return Measures(objective=float(np.mean(losses)) if losses else math.nan, learning_rate=rate)

    def problem(self, record: Record, first: Record | None) -> str | None:
        """The fault of the factors at a record, None where all is well."""
        finite = all(bool(tensor.isfinite().all()) for tensor in (self.factors.sources, self.factors.targets))
        return None if finite else "the factors are not finite"

    def state(self) -> dict[str, torch.Tensor]:
        """The sources and the targets."""
        return {"sources": self.factors.sources.clone(), "targets": self.factors.targets.clone()}

    @without_gradients
    def load_state(self, state: Mapping[str, torch.Tensor]) -> None:
        """Go back to what `state` returned, perhaps read from a file since; raise `ValueError` if it does not fit."""
        for name in ("sources", "targets"):
            tensor = getattr(self.factors, name)
            if state[name].shape != tensor.shape:
                raise ValueError(f"expected {name} of shape {tuple(tensor.shape)}, found {tuple(state[name].shape)}")
            tensor.copy_(state[name])

    def step_state(self) -> dict[str, Any]:
        """The number of steps and the moments of the optimiser after the first of them; not copied."""
        trained = self.factors.sources, self.factors.targets
        return {"step": self.step, "moments": [dict(self._optimizer.state[tensor]) for tensor in trained]}

    def load_step_state(self, state: Mapping[str, Any]) -> None:
        """Go back to what `step_state` returned, perhaps read from a file since."""
        step, last = int(state["step"]), self._training.n_steps
        if not 0 < step <= last:
            raise ValueError(f"expected a step from 1 to {last}, found {step}")
        for tensor, moments in zip((self.factors.sources, self.factors.targets), state["moments"], strict=True):
            own = moments_of(moments, tensor)
            self._optimizer.state[tensor] = {part: moment.clone() for part, moment in own.items()}
        self._start_at(step)


def row_pattern(rows: sp.csr_array, device: torch.device | str = "cpu") -> SparsePattern:
    """The stored entries of some rows on a device."""
    rows.sort_indices()
    starts, columns = (torch.from_numpy(each.astype(np.int64)).to(device) for each in (rows.indptr, rows.indices))
    return SparsePattern(starts, columns, cast("tuple[int, int]", rows.shape)[1])


def _batches(pattern: sp.csr_array, size: int, seed: int) -> Iterator[np.ndarray]:
    """Positions of rows without end; nothing where no row has a column."""
    random = np.random.default_rng(seed)
    filled = np.flatnonzero(np.diff(pattern.indptr))
    while filled.size:
        order = random.permutation(filled)
        for begin in range(0, order.size, size):
            yield np.sort(order[begin : begin + size])


def _samples(pattern: sp.csr_array, seed: int, device: torch.device) -> Iterator[ColumnSample | None]:
    """Columns to take the exponentials of, without end; None for all of them where they are few."""
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
    """The chances <= 1 of sum `size`, which follow the square roots of the counts, those of 0 taken as 1."""
    weights = np.sqrt(np.maximum(counts, 1))
    chances = np.zeros(counts.size)
    while (rest := chances < 1).any():
        new = weights[rest] * ((size - np.count_nonzero(~rest)) / weights[rest].sum())
        chances[rest] = np.minimum(new, 1)
        if (new <= 1).all():
            break
    return chances
