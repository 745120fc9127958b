r"""The variances of biases and noise, from the evidence for each: what so few ratings tell beside their mean.

.. math:: y_{ij} = \mu + b_i + c_j + e_{ij},\qquad b_i \sim N(0, s_b),\quad c_j \sim N(0, s_c),\quad
    e_{ij} \sim N(0, s_e / w_{ij})

With the present variances b and c are the solution of one linear system, and v, the variance that is left of each
bias, follows from messages between rows and columns, which are exact where the pattern has no cycles and close to it
where rows have few entries. A bias tells :math:`1 - v / s` about the variance of its side, and all of a side
tell :math:`\gamma`:

.. math:: s_b = \frac{\sum_i b_i^2}{\gamma_b},\qquad
    s_e = \frac{\sum_{ij} w_{ij} (y_{ij} - \mu - b_i - c_j)^2}{N - 1 - \gamma_b - \gamma_c}.

The sweeps alone would find smaller variances: they take rows and columns as independent, which leaves too little of v.

Sources: Harville, Maximum likelihood approaches to variance component estimation, JASA 72, 1977; Weiss, Freeman,
Correctness of belief propagation in Gaussian graphical models of arbitrary topology, Neural Computation 13, 2001.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from air_recsys.nn.objective import Observations

_STEPS = 20
_COUNTS, _EXPECTED = 2.0, 0.1  # a bias seen so often, of that share of the variance, that the data may be tiny
_START = 0.2  # of the variance of the values
_LEAST = 1e-4  # fraction of the variance of the values, of noise and biases


class Components(NamedTuple):
    """Variances of the rows' biases, of the columns' biases, and of the noise of an entry of weight 1."""

    rows: float
    columns: float
    noise: float


def components(observed: Observations) -> Components:
    """The variance components of entries (m, n)."""
    entries = _Entries.of(observed)
    if not entries.values.size:
        return Components(_EXPECTED, _EXPECTED, 1.0)
    total = float(entries.values.var()) or 1.0
    sides = [_START * total, _START * total]
    noise = total
    messages = np.full(entries.values.size, 1 / noise)
    biases = [np.zeros(size) for size in entries.shape]
    for _ in range(_STEPS):
        told, squares = [0.0, 0.0], [0.0, 0.0]
        for side in (0, 1):
            index, size = entries.positions[side], entries.shape[side]
            precisions = 1 / sides[side] + np.bincount(index, messages, size)
            cavity = precisions[index] - messages
            messages = 1 / (noise / entries.weights + 1 / cavity)
            biases[side] = entries.solved(side, biases, noise / sides[side])
            told[side] = float((1 - 1 / (sides[side] * precisions[entries.rated[side]])).sum())
            squares[side] = float((biases[side] ** 2).sum())
        errors = float((entries.weights * entries.rest(biases) ** 2).sum())
        noise = max(errors / max(entries.values.size - 1 - sum(told), 1.0), _LEAST * total)
        sides = [
            max((square + _COUNTS * _EXPECTED * total) / (count + _COUNTS), _LEAST * total)
            for square, count in zip(squares, told, strict=True)
        ]
    return Components(sides[0], sides[1], noise)


class _Entries(NamedTuple):
    """The entries that count."""

    values: np.ndarray
    weights: np.ndarray
    positions: tuple[np.ndarray, np.ndarray]
    rated: tuple[np.ndarray, np.ndarray]
    shape: tuple[int, int]

    @classmethod
    def of(cls, observed: Observations) -> _Entries:
        pattern = observed.pattern
        values = observed.values.double().cpu().numpy()
        weights = np.ones_like(values) if observed.weights is None else observed.weights.double().cpu().numpy()
        counted = weights > 0
        index = pattern.rows.cpu().numpy()[counted], pattern.columns.cpu().numpy()[counted]
        return cls(values[counted], weights[counted], index, (np.unique(index[0]), np.unique(index[1])), pattern.shape)

    def rest(self, biases: list[np.ndarray]) -> np.ndarray:
        """The rest of the values without the biases, around its mean."""
        rest = self.values - biases[0][self.positions[0]] - biases[1][self.positions[1]]
        return rest - np.average(rest, weights=self.weights)

    def solved(self, side: int, biases: list[np.ndarray], ridge: float) -> np.ndarray:
        """The biases of a side given those of the other one."""
        index, size = self.positions[side], self.shape[side]
        rest = self.rest(biases) + biases[side][index]
        return np.bincount(index, self.weights * rest, size) / (np.bincount(index, self.weights, size) + ridge)
