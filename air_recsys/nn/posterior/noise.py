r"""The noise: a variance of its own for every row and every column, shrunk towards a common one.

.. math:: e_{ij} \sim N(0, \sigma^2 / (w_{ij} t_i s_j)),\qquad t_i, s_j \sim \mathrm{Gamma}(\nu/2, \nu/2)
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from air_recsys.nn.posterior.generators import gamma
from air_recsys.nn.posterior.state import Stateful

_COUNTS = 10.0  # nu
_SMALLEST = 1e-4  # fraction of the starting variance; float32 cannot solve the equations of a smaller noise

Numbers = TypeVar("Numbers", Tensor, np.ndarray)


def expected_scales(counts: Numbers, errors: Numbers) -> Numbers:
    """Return the mean of scales given sums of weights and of squared errors, as in `Noise.update`."""
    return (_COUNTS + counts) / (_COUNTS + errors)


class Noise(Stateful):
    """sigma^2, t and s.

    Parameters
    ----------
    counts : tuple of Tensor
        Sums of the entries' weights of each row and of each column.
    variance : float
        sigma^2 to start from.
    known : bool
        Whether `update` without a generator leaves sigma^2 as it is.

    Attributes
    ----------
    variance : Tensor
        sigma^2, a number in double precision on the device, for which the host need not wait.
    scales : list of Tensor
        t and s.
    """

    _STATE = ("variance", "scales")

    def __init__(self, counts: tuple[Tensor, Tensor], variance: float, *, known: bool = False) -> None:
        self._known = known
        self.variance = torch.tensor(variance, dtype=torch.float64, device=counts[0].device)
        self._floor = _SMALLEST * variance
        self.counts, self._total = counts, float(counts[0].sum())
        self.scales = [torch.ones_like(count) for count in counts]

    def update(self, side: int, errors: Tensor, generator: torch.Generator | None) -> None:
        """Set, or with a generator draw, the scales of one side (0 or 1), then sigma^2.

        `errors` are the sums of squared errors of its rows, times weight and the partner's scale, by sigma^2.
        """
        scales = expected_scales(self.counts[side], errors)
        if generator is not None:
            shape, rate = (_COUNTS + self.counts[side]) / 2, (_COUNTS + errors) / 2
            scales = (gamma(shape.to(torch.float64), generator) / rate).to(errors.dtype)
        self.scales[side] = scales
        if self._known and generator is None:
            return
        half = self._total / 2
        if generator is not None:
            half = gamma(self.variance.new_full((), half), generator)
        errors_of_all = (scales * errors).sum().to(torch.float64)
        self.variance = (self.variance * errors_of_all / 2 / half).clamp(min=self._floor)
