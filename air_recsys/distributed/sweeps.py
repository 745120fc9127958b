"""Sweeps of a posterior over several ranks: each forms and solves the equations of its own users and items.

So it is with the pattern's features and the search for neighbours. Start, priors, noise, graphs and what is kept of
sweeps are found by every rank from the same rows. Priors and noise, which the next half sweep depends on, are taken
from rank 0, so that no rounding drives ranks apart.
"""

from __future__ import annotations

import numpy as np
import torch

from air_recsys.distributed.cuts import Cut
from air_recsys.distributed.group import Group
from air_recsys.interactions import Interactions
from air_recsys.models.engines import PosteriorEngine
from air_recsys.nn.pattern import SparsePattern
from air_recsys.nn.posterior.equations import Rows
from air_recsys.nn.posterior.exchange import Exchange
from air_recsys.nn.posterior.half_sweep import Half
from air_recsys.nn.posterior.state import Stateful
from air_recsys.training import PosteriorSweeps

_SOLVED = 9  # to solve a row of width d takes as long as to sum 9 d ratings, measured on MovieLens-1M


class SharedRows(Exchange):
    """The rows of both sides, shared out by `cuts` over the ranks of a group."""

    def __init__(self, group: Group, cuts: tuple[Cut, Cut]) -> None:
        self._group, self._cuts = group, cuts
        self.alone = group.size == 1

    def own(self, side: int, n_rows: int) -> slice:
        """Return the rows of a side that this rank solves."""
        return self._cuts[side].of(self._group.rank)

    def all_rows(self, side: int, own: torch.Tensor) -> torch.Tensor:
        """Return the rows of all ranks from those of this one."""
        return self._group.spread(own, self._cuts[side])

    def whole(self, side: int, half: Half) -> Half:
        """Return the half sweep of the rows of all ranks."""
        mean, covariance = half.rows
        means, errors = self.all_rows(side, half.means), self.all_rows(side, half.errors)
        states = means if mean is half.means else self.all_rows(side, mean)
        covariance = None if covariance is None else self.all_rows(side, covariance)
        (unsolved,) = self._group.sum(half.flag.code)
        return Half(Rows(states, covariance), means, errors, half.flag._replace(code=unsolved))

    def agree(self, *parts: Stateful) -> None:
        """Give every rank the numbers that rank 0 has found, in one exchange."""
        if self.alone:
            return
        values = [value for part in parts for value in part.state().values()]
        tensors = [tensor for value in values for tensor in (value if isinstance(value, list) else [value])]
        found = self._group.as_first(torch.cat([tensor.flatten().to(torch.float64) for tensor in tensors]))
        for tensor, agreed in zip(tensors, found.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(agreed.view_as(tensor))


class ShardedPosteriorEngine(PosteriorEngine):
    """The engine of a posterior, each rank with its own rows; `whole` is that of one process."""

    def __init__(self, group: Group, whole: PosteriorEngine) -> None:
        super().__init__(whole.setup, whole.solver, whole.sample)
        self._group = group

    @property
    def device(self) -> torch.device:
        """That of this rank."""
        return self._group.device

    def start(
        self, training: Interactions, held_out: Interactions | None, rng: np.random.Generator
    ) -> PosteriorSweeps:
        """Return the start of a training, with the draws of rank 0 on all ranks."""
        return super().start(training, held_out, self._group.of_first(rng))

    def _exchange(self, pattern: SparsePattern, width: int) -> Exchange:
        counts = (pattern.side(side)[0].diff().cpu().numpy() for side in (0, 1))
        rows, columns = (Cut.balanced(count + _SOLVED * (width + 1), self._group.size) for count in counts)
        return SharedRows(self._group, (rows, columns))
