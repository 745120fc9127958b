"""What an engine brings: all that differs between the solvers of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from air_recsys.data.interactions import Extent, Interactions
from air_recsys.exceptions import ParameterError
from air_recsys.models.limits import Clip
from air_recsys.models.state import Factors, RowEquations
from air_recsys.nn.memory import MemoryPlan, Sizes
from air_recsys.storage.validation import warn_of_unread
from air_recsys.training import Trainer

DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True)
class Setup:
    """What every engine reads, as in `AIR`."""

    n_factors: int | str | None
    dtype: str
    device: str
    clips: Clip
    adjacency: str = "row_softmin"
    graph_neighbors: int | str | None = None
    graph_refresh: int | str | None = None
    memory_limit: int | None = None  # bytes

    def check(self, *, sparse: bool) -> None:
        """Raise or warn where what is said of the graphs does not go together; `sparse` where a graph may be."""
        if self.graph_neighbors not in (None, "auto") and self.adjacency != "row_softmin":
            raise ParameterError(
                f"graph_neighbors needs adjacency='row_softmin', found {self.adjacency!r}; set it to None"
            )
        if self.graph_refresh not in (None, "auto") and not sparse:
            warn_of_unread("graph_refresh", self.graph_refresh, "sparse graphs, graph_neighbors=...")

    def sizes(self, data: Extent) -> Sizes:
        """Return what the memory of a training depends on."""
        itemsize = DTYPES[self.dtype].itemsize
        return Sizes(data.n_users, data.n_items, data.n_ratings, itemsize, data.has_weights)


class Engine(Protocol):
    """From parameters and ratings to what is learned."""

    def n_steps(self, data: Interactions) -> int:
        """Return the number of epochs, or of sweeps."""
        ...

    def values(self, data: Interactions) -> dict[str, Any]:
        """Return the numbers behind the parameters that are "auto", as far as they have one."""
        ...

    def width(self, data: Interactions) -> int | None:
        """Return the columns of the factors; None is full width."""
        ...

    @property
    def device(self) -> torch.device:
        """Where it trains."""
        ...

    @property
    def learns_from_constant(self) -> bool:
        """Whether ratings that are all equal teach anything."""
        ...

    def check(self, data: Interactions) -> None:
        """Raise `ParameterError` where parameters do not go together, or not with the data."""
        ...

    def memory_plan(self, data: Interactions) -> MemoryPlan:
        """Return the bytes that a training will take at its peak, beside the interactions."""
        ...

    def smaller(self, data: Interactions) -> Iterator[tuple[str, int]]:
        """Yield changes of parameters that need less and less memory, and the bytes that they need."""
        ...

    def graph_form(self, data: Interactions) -> str:
        """Return which form the graphs take, in words."""
        ...

    def start(self, training: Interactions, held_out: Interactions | None, rng: np.random.Generator) -> Trainer:
        """Return the start of a training; factors and equations are from then on those of its present state."""
        ...

    def factors(self) -> Factors:
        """Return the factors of the present state, in the unit of the ratings."""
        ...

    def equations(self) -> RowEquations:
        """Return the equations of a row in the present state."""
        ...

    def equations_from(self, arrays: Mapping[str, np.ndarray], extent: Extent) -> RowEquations:
        """Return the equations of a row from what `RowEquations.to_arrays` wrote of a model of some extent.

        Raises
        ------
        ValueError, LookupError
            If the arrays are not whole.
        """
        ...


def graph_form(learns: bool, n_neighbors: int | None) -> str:
    """Return which form learned graphs take, in words."""
    form = "all pairs" if n_neighbors is None else f"{n_neighbors} edges a node"
    return f"graphs of {form}" if learns else "no graphs"
