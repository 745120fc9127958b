"""Sweeps of a posterior, and a step of its graphs after each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from air_recsys.exceptions import NumericalError
from air_recsys.nn.devices import few_threads
from air_recsys.nn.posterior.estimate import LangevinEstimate, VariationalEstimate
from air_recsys.nn.posterior.graphs import EdgelessGraph, RowGraph, positions
from air_recsys.nn.posterior.posterior import Posterior
from air_recsys.training.checkpointer import generator_at, position_of
from air_recsys.training.trainer import Adjacencies, Measures, Trainer


class PosteriorSweeps(Trainer):
    """A posterior that is swept through: a `Trainer` in sweeps.

    Parameters
    ----------
    posterior : Posterior
    estimate : VariationalEstimate or LangevinEstimate
        What is kept of the sweeps of `posterior`.
    graphs : list of RowGraph, EdgelessGraph or None
        Of the rows and of the columns.
    rng : Generator
        That of `posterior`.
    n_sweeps : int
    unit_of_values : float
        What one unit of the entries is to the reader of the records.
    validation_error : callable, optional
        Returns the error of the present state on held-out entries.
    work : int
        About how many numbers a sweep goes through: with few of them torch is held to one thread.
    """

    unit, first_record, evaluate_every = "sweep", 1, 1
    watches_every_step, checks_steps = False, True

    def __init__(
        self,
        posterior: Posterior,
        estimate: VariationalEstimate | LangevinEstimate,
        graphs: list[RowGraph | EdgelessGraph | None],
        rng: np.random.Generator,
        n_sweeps: int,
        unit_of_values: float = 1.0,
        validation_error: Callable[[], float] | None = None,
        *,
        work: int = 0,
    ) -> None:
        self.posterior, self.estimate, self.graphs, self.n_steps = posterior, estimate, graphs, n_sweeps
        self._rng, self._unit, self._validation_error = rng, unit_of_values, validation_error
        self._energies, self._work = [0.0, 0.0], work
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
        """Go through rows and columns once, then move the graphs."""
        with few_threads(self._work):
            self.estimate.sweep()
            if any(graph is not None and graph.is_due for graph in self.graphs):
                self.posterior.check()
            priors, means, variance = self.posterior.priors, self.posterior.means, self.posterior.noise.variance
            energies = (
                torch.zeros_like(variance) if graph is None else graph.step(positions(prior, mean))
                for graph, prior, mean in zip(self.graphs, priors, means, strict=True)
            )
            self._variance, *self._energies = self.posterior.check(variance, *energies)
        if not all(map(math.isfinite, self._energies)):
            raise NumericalError("expected finite energies of the graphs, found NaN or infinity")

    def measure(self, position: int) -> Measures:
        """The energies that the graphs had before their last step, and the common noise."""
        noise = math.sqrt(self._variance) * self._unit
        return Measures(row_energy=self._energies[0], column_energy=self._energies[1], noise=noise)

    def validation_error(self) -> float:
        """The root mean squared error on the held-out entries, NaN where there are none."""
        return math.nan if self._validation_error is None else self._validation_error()

    def adjacencies(self) -> Adjacencies:
        """The present graphs."""
        return [None if graph is None else graph.adjacency() for graph in self.graphs]

    def state(self) -> dict[str, Any]:
        """The posterior, what is kept of its sweeps, and the graphs."""
        return {
            "posterior": self.posterior.state(),
            "estimate": self.estimate.state(),
            "graphs": [None if graph is None else graph.state() for graph in self.graphs],
            "energies": self._energies,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go back to what `state` returned, perhaps read from a file since."""
        self.posterior.load_state(state["posterior"])
        self.estimate.load_state(state["estimate"])
        for graph, kept in zip(self.graphs, state["graphs"], strict=True):
            if graph is not None:
                graph.load_state(kept)
        rows, columns = map(float, state["energies"])
        self._energies = [rows, columns]
        self._variance = float(self.posterior.noise.variance)

    def step_state(self) -> dict[str, Any]:
        """The position of the random numbers."""
        return position_of(self._rng)

    def load_step_state(self, state: dict[str, Any]) -> None:
        """Go back to what `step_state` returned, perhaps read from a file since."""
        self._rng.bit_generator.state = generator_at(state).bit_generator.state
