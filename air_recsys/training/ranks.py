"""The processes that share a training, in the words of torch its ranks: this one alone, or those of a `Group`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from air_recsys.storage.lazy import Tensor


class Ranks:
    """One process alone, which is all of them; `air_recsys.distributed.group.Group` has several."""

    rank: int = 0
    size: int = 1

    def of_all(self, value: Any) -> list[Any]:
        """The small values of all ranks."""
        return [value]

    def sum(self, *tensors: Tensor) -> list[Tensor]:
        """The sums over the ranks of tensors of one type."""
        return list(tensors)

    def as_first(self, tensor: Tensor) -> Tensor:
        """The tensor of rank 0, of the shape of that of this rank."""
        return tensor

    def in_line(self, own: np.ndarray) -> np.ndarray:
        """The rows of all ranks, in rank order, however many each has."""
        return own

    def shared(self, work: Callable[[slice], np.ndarray], n: int) -> np.ndarray:
        """What the work finds of n rows, (n, ...): each rank does a range of them, and all have the whole."""
        return work(slice(0, n))


ALONE = Ranks()
