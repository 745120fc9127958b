"""Sweeps of a posterior over several ranks: each forms and solves the equations of its own users and items.

So it is with the pattern's features, the sums that priors follow from, and the graphs after the sweeps. Start, noise
and what is kept of sweeps are found by every rank from the same rows. Priors and noise, which the next half sweep
depends on, are taken from rank 0, so that no rounding drives ranks apart.
"""

from __future__ import annotations

import numpy as np

from air_recsys.data.interactions import Extent, Interactions
from air_recsys.distributed.group import Cut, Group
from air_recsys.distributed.own_ratings import OwnRatings
from air_recsys.exceptions import ParameterError
from air_recsys.models.engines import PosteriorEngine
from air_recsys.models.engines.scaling import Scaling
from air_recsys.nn.memory import MemoryPlan, Sizes
from air_recsys.nn.pattern import SparsePattern
from air_recsys.nn.posterior.equations import Half, Rows
from air_recsys.nn.posterior.exchange import Exchange, OwnEntries
from air_recsys.nn.posterior.state import Stateful
from air_recsys.storage.lazy import torch
from air_recsys.storage.threads import one_thread
from air_recsys.training import PosteriorSweeps

_SOLVED = 13  # to solve a row of width d takes as long as to sum 13 d ratings, measured on MovieLens-1M


class SharedRows(Exchange):
    """The rows of both sides, shared out by `cuts` over the ranks of a group."""

    def __init__(self, group: Group, cuts: tuple[Cut, Cut]) -> None:
        self._group, self._cuts, self._arrive = group, cuts, lambda: None
        self.alone = group.size == 1

    def own(self, side: int, n_rows: int) -> slice:
        """The rows of a side that this rank solves."""
        return self._cuts[side].of(self._group.rank)

    def all_rows(self, side: int, own: torch.Tensor) -> torch.Tensor:
        """The rows of all ranks from those of this one."""
        return self._group.spread(self._cuts[side], own)[0]

    def sum(self, *own: torch.Tensor) -> list[torch.Tensor]:
        """The sums over the ranks."""
        return self._group.sum(*own)

    def whole(self, side: int, half: Half) -> Half:
        """The half sweep of the rows of all ranks; covariances of the others arrive before all `agree`.

        Until then priors, which need the own ones alone, are summed while these are on their way.
        """
        (mean, covariance), cut = half.rows, self._cuts[side]
        drawn = [] if mean is half.means else [mean]
        means, errors, *rest = self._group.spread(cut, half.means, half.errors, *drawn)
        (unsolved,) = self._group.sum(half.flag.code)
        kept = [] if covariance is None else [covariance]
        wholes, self._arrive = self._group.begin_spread(cut, *kept)
        rows = Rows(rest[0] if drawn else means, wholes[0] if kept else None)
        return Half(rows, means, errors, half.flag._replace(code=unsolved))

    def agree(self, *parts: Stateful) -> None:
        """Give every rank the numbers that rank 0 has found, in one exchange."""
        if self.alone:
            return
        self._arrive()
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
        """The device of this rank."""
        return self._group.device

    def start(
        self, training: Interactions, held_out: Interactions | None, rng: np.random.Generator
    ) -> PosteriorSweeps:
        """The start of a training, with the draws of rank 0 on all ranks."""
        return super().start(training, held_out, self._group.of_first(rng))

    def _exchange(self, pattern: SparsePattern, width: int) -> Exchange:
        counts = [pattern.side(side)[0].diff().cpu().numpy() for side in (0, 1)]
        return SharedRows(self._group, balanced(counts, width, self._group.size))


def balanced(counts: list[np.ndarray], width: int, n_ranks: int) -> tuple[Cut, Cut]:
    """The owners of users and items, so that their equations cost all ranks the same."""
    users, items = (Cut.balanced(count + _SOLVED * (width + 1), n_ranks) for count in counts)
    return users, items


class OwnPosteriorEngine(ShardedPosteriorEngine):
    """The same for ratings of which each rank holds its own alone."""

    def __init__(self, group: Group, whole: PosteriorEngine, own: OwnRatings) -> None:
        super().__init__(group, whole)
        self._own = own
        if not self._width(own.extent):
            raise ParameterError(
                "n_factors='auto' is 0 for so few ratings, which cannot be read in parts: set n_factors, or give "
                "every rank all of them, from air_recsys.datasets.read_ratings"
            )

    def memory_plan(self, data: Extent) -> MemoryPlan:
        """The bytes that a training will take at its peak, beside the ratings of this rank."""
        return super().memory_plan(self._own.extent)

    def _sizes(self, data: Extent) -> Sizes:
        return self.setup.sizes(data)._replace(n_ratings=self._own.n_held)

    def start(
        self, training: Interactions, held_out: Interactions | None, rng: np.random.Generator
    ) -> PosteriorSweeps:
        """The start of a training on the ratings of all ranks, with the draws of rank 0."""
        extent, low, high = self._own.extent, self._own.moments.low, self._own.moments.high
        with one_thread():
            largest = max(abs(low), abs(high))
            self._scaling = Scaling.of_moments(self._own.moments.mean, self._own.moments.deviation, largest)
            return self._start(extent, self._own_entries(), None, self._group.of_first(rng))

    def _own_entries(self) -> OwnEntries:
        sides, dtype = self._own.sides, getattr(torch, self.setup.dtype)
        users, items = (side.entries(self._scaling.forward, dtype, self.device) for side in sides)
        of_users, of_items = (torch.as_tensor(side.degrees).to(self.device) for side in sides)
        exchange = SharedRows(self._group, (sides[0].cut, sides[1].cut))
        square = (self._own.moments.deviation / self._scaling.unit) ** 2
        counts = of_users.to(dtype), of_items.to(dtype)
        return OwnEntries((users, items), (of_users, of_items), counts, square, exchange)
