"""Sweeps of a posterior."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from air_recsys.nn.posterior.estimate import LangevinEstimate, VariationalEstimate
from air_recsys.nn.posterior.posterior import Posterior
from air_recsys.storage.threads import one_thread
from air_recsys.training.checkpointer import generator_at, position_of
from air_recsys.training.trainer import Adjacencies, Measures, Trainer


class PosteriorSweeps(Trainer):
    """A posterior that is swept through: a `Trainer` in sweeps.

    Parameters
    ----------
    posterior : Posterior
    estimate : VariationalEstimate or LangevinEstimate
        What is kept of the sweeps of `posterior`.
    rng : Generator
        That of `posterior`.
    n_sweeps : int
    unit_of_values : float
        What one unit of the entries is to the reader of the records.
    validation_error : callable, optional
        Returns the error of the present state on held-out entries.
    graphs : callable, optional
        Returns the graphs of the present state.
    """

    unit, first_record, evaluate_every = "sweep", 1, 1
    watches_every_step, checks_steps = False, True

    def __init__(
        self,
        posterior: Posterior,
        estimate: VariationalEstimate | LangevinEstimate,
        rng: np.random.Generator,
        n_sweeps: int,
        unit_of_values: float = 1.0,
        validation_error: Callable[[], float] | None = None,
        *,
        graphs: Callable[[], Adjacencies] | None = None,
    ) -> None:
        self.posterior, self.estimate, self.n_steps = posterior, estimate, n_sweeps
        self._rng, self._unit, self._validation_error = rng, unit_of_values, validation_error
        self._graphs = graphs
        self._variance = float(posterior.noise.variance)
        self.alone = posterior.exchange.alone

    @property
    def ready(self) -> bool:
        """Whether the estimate can stand for the posterior."""
        return self.estimate.ready

    @property
    def is_watched(self) -> bool:
        """Whether there are held-out entries."""
        return self._validation_error is not None

    def advance(self, position: int) -> None:
        """Go through rows and columns once."""
        with one_thread():
            self.estimate.sweep()
            self._variance = self.posterior.check()

    def measure(self, position: int) -> Measures:
        """The common noise."""
        return Measures(noise=math.sqrt(self._variance) * self._unit)

    def validation_error(self) -> float:
        """The root mean squared error on the held-out entries, NaN where there are none."""
        return math.nan if self._validation_error is None else self._validation_error()

    def snapshot(self) -> Adjacencies:
        """The graphs of the present state."""
        return [None, None] if self._graphs is None else self._graphs()

    def state(self) -> dict[str, Any]:
        """The posterior, and what is kept of its sweeps."""
        return {"posterior": self.posterior.state(), "estimate": self.estimate.state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go back to what `state` returned, perhaps read from a file since."""
        self.posterior.load_state(state["posterior"])
        self.estimate.load_state(state["estimate"])
        self._variance = float(self.posterior.noise.variance)

    def step_state(self) -> dict[str, Any]:
        """The position of the random numbers."""
        return position_of(self._rng)

    def load_step_state(self, state: dict[str, Any]) -> None:
        """Go back to what `step_state` returned, perhaps read from a file since."""
        self._rng.bit_generator.state = generator_at(state).bit_generator.state
