"""`AIR` with a posterior: sweeps over users and items in place of training, and the graphs learned on the way."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from tqdm import tqdm

from air_recsys.exceptions import AirRecsysError, CheckpointError, DivergenceError
from air_recsys.graphs import SimilarityGraph
from air_recsys.interactions import Interactions
from air_recsys.models.air_parameters import DTYPES, sweeps_of
from air_recsys.models.base import Factors
from air_recsys.models.checkpoints import Keeping, position, restored
from air_recsys.models.devices import resolve_device
from air_recsys.models.scaling import Scaling
from air_recsys.models.snapshots import Snapshot
from air_recsys.models.spread import PredictionSpread
from air_recsys.nn.build import Settings, observations
from air_recsys.nn.posterior.estimate import Langevin, Scores, Variational
from air_recsys.nn.posterior.features import pattern_features, projection
from air_recsys.nn.posterior.graphs import RowGraph, places
from air_recsys.nn.posterior.posterior import Posterior
from air_recsys.training import Callback, Record
from air_recsys.training.checkpoint import of_this_training
from air_recsys.training.interrupts import interruptible
from air_recsys.training.result import Fault, stopped_by

if TYPE_CHECKING:
    from air_recsys.models.air import AIR

_SAME = 1e-12  # ratings that vary less, relatively, are taken as equal


class Sweeps:
    """The course of a posterior and of its graphs.

    Parameters
    ----------
    model : AIR
    data : Interactions
        To train on.
    rng : Generator
    keeping : Keeping
        Where states go to, and come from.

    Attributes
    ----------
    records : list of Record
        One a sweep.
    stopped_by : str
        "n_sweeps", "callback", "interrupt", "checkpoint" or "divergence".
    """

    def __init__(self, model: AIR, data: Interactions, rng: np.random.Generator, keeping: Keeping) -> None:
        self.n_sweeps = sweeps_of(model)
        self.scaling = _scaling(data.ratings)
        dtype, device = DTYPES[model.dtype], resolve_device(model.device)
        ratings = data.to_csr()
        self._features = features = pattern_features(ratings, model.pattern_features, rng)
        self._ratings = ratings
        observed = observations(ratings, self.scaling.forward, dtype, device, data.weights_to_csr())
        tensors = [torch.as_tensor(side, dtype=dtype, device=device) for side in features]
        sample = model.solver == "langevin"
        settings, narrower = model._settings(data), min(data.n_users, data.n_items)
        width = min(settings.width or narrower, narrower)
        self._posterior = Posterior(observed, (tensors[0], tensors[1]), width, rng, sample=sample)
        self.estimate = (Langevin if sample else Variational)(self._posterior, self.n_sweeps)
        self._data, self._snapshot_epochs = data, frozenset(model.snapshot_epochs)
        self._graphs = self._start_graphs(settings, model.graph_refresh)
        self._snapshots: dict[int, list[sp.csr_array | None]] = {}
        self._rng, self._keeping = rng, keeping
        self.records: list[Record] = []
        self.stopped_by = "n_sweeps"
        if keeping.state is not None:
            with of_this_training():
                self._load_state(keeping.state)

    def _start_graphs(self, settings: Settings, refresh: int) -> list[RowGraph | None]:
        return [
            RowGraph(counts, settings.n_neighbors, settings.adjacency, n_steps=self.n_sweeps, refresh=refresh)
            if strength > 0 and len(counts) > 1
            else None
            for counts, strength in zip(self._posterior.noise.counts, settings.strengths, strict=True)
        ]

    def graphs(self) -> Snapshot:
        """Return the graphs as they are now, with the ids of their nodes."""
        return self._named(self._adjacencies())

    def snapshots(self) -> dict[int, Snapshot]:
        """Return the graphs at the sweeps asked for."""
        return {sweep: self._named(adjacencies) for sweep, adjacencies in self._snapshots.items()}

    def _adjacencies(self) -> list[sp.csr_array | None]:
        return [None if graph is None else graph.adjacency() for graph in self._graphs]

    def _named(self, adjacencies: list[sp.csr_array | None]) -> Snapshot:
        users, items = adjacencies
        return Snapshot(
            None if users is None else SimilarityGraph(users, self._data.user_ids, "user"),
            None if items is None else SimilarityGraph(items, self._data.item_ids, "item"),
            [],
        )

    def factors(self) -> Factors:
        """Return the mean of the scores as it is now, in the unit of the ratings."""
        return _factors(self.estimate.scores(), self.scaling)

    def spread(self) -> PredictionSpread:
        """Return what standard deviations and new rows need."""
        users, items = self._features
        sides = projection(self._ratings, users, items), projection(self._ratings.T.tocsr(), items, users)
        return PredictionSpread.of(self.estimate.spread(), self.scaling.unit, sides)

    def run(
        self, held_out: Interactions | None, callbacks: Iterable[Callback], *, progress: bool = False
    ) -> Fault | DivergenceError | None:
        """Sweep to the end, or to what ends it early, and return what has gone wrong; `records` and `stopped_by` tell.

        Ctrl-C and a checkpoint that cannot be written end it at the next sweep with all that it has reached, and a
        sweep that has no solution in the state before it, if that is one to keep.
        """
        callbacks, start = list(callbacks), time.perf_counter() - (self.records[-1].seconds if self.records else 0.0)
        done = len(self.records)
        self._keep_snapshot(done)
        self._keep_good()
        bar = tqdm(range(done + 1, self.n_sweeps + 1), disable=not progress, unit="sweep", desc="training")
        with interruptible() as interrupted, bar:
            for sweep in bar:
                try:
                    energies = self._sweep()
                except AirRecsysError as error:
                    return self._go_back(sweep, error)
                self._keep_good()
                self._keep_snapshot(sweep)
                self.records.append(self._record(sweep, energies, held_out, time.perf_counter() - start))
                fault = self._reach(sweep, interrupted=interrupted() and self.estimate.ready)
                answers = [callback(self.records[-1]) for callback in callbacks]  # every callback sees every record
                if fault is not None:
                    self.stopped_by = stopped_by(fault)
                    return fault
                if any(answers) and self.estimate.ready:
                    self.stopped_by = "callback"
                    return None
        return None

    def _sweep(self) -> tuple[float, float]:
        """Sweep once and return the energies of the graphs."""
        self.estimate.sweep()
        energies = self._learn_graphs()
        if not np.isfinite(energies).all():
            raise AirRecsysError("the energy of a graph left the finite numbers")
        return energies

    def _keep_good(self) -> None:
        self._good = self._posterior.state(), self._graph_states()

    def _go_back(self, sweep: int, error: AirRecsysError) -> DivergenceError:
        """Go back to the last good state; the estimate has seen no other."""
        if not self.records or not self.estimate.ready:
            raise error
        posterior, graphs = self._good
        self._posterior.load_state(posterior)
        self._load_graphs(graphs)
        self.stopped_by = "divergence"
        return DivergenceError(sweep, sweep - 1, str(error))

    def _graph_states(self) -> list[Any]:
        return [None if graph is None else graph.state() for graph in self._graphs]

    def _load_graphs(self, states: list[Any]) -> None:
        for graph, kept in zip(self._graphs, states, strict=True):
            if graph is not None:
                graph.load_state(kept)

    def _reach(self, sweep: int, *, interrupted: bool) -> Fault | None:
        """Keep the state where it is due; return what has gone wrong."""
        due = sweep % self._keeping.every == 0 or sweep == self.n_sweeps or interrupted
        try:
            if due and self._keeping.write is not None:
                self._keeping.write(self._state())
        except CheckpointError as error:
            return error if self.estimate.ready else None
        return KeyboardInterrupt(f"training was interrupted at sweep {sweep}") if interrupted else None

    def _state(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "snapshots": list(self._snapshots.items()),
            "posterior": self._posterior.state(),
            "estimate": self.estimate.state(),
            "graphs": self._graph_states(),
            "generator": position(self._rng),
        }

    def _load_state(self, state: dict[str, Any]) -> None:
        self.records = [Record(*values) for values in state["records"]]
        self._snapshots = {int(sweep): list(adjacencies) for sweep, adjacencies in state["snapshots"]}
        self._posterior.load_state(state["posterior"])
        self.estimate.load_state(state["estimate"])
        self._load_graphs(state["graphs"])
        self._rng.bit_generator.state = restored(state["generator"]).bit_generator.state

    def _learn_graphs(self) -> tuple[float, float]:
        priors, means = self._posterior.priors, self._posterior.means
        energies = [
            0.0 if graph is None else graph.step(places(prior, mean))
            for graph, prior, mean in zip(self._graphs, priors, means, strict=True)
        ]
        return energies[0], energies[1]

    def _keep_snapshot(self, sweep: int) -> None:
        if sweep in self._snapshot_epochs:
            self._snapshots[sweep] = self._adjacencies()

    def _record(
        self, sweep: int, energies: tuple[float, float], held_out: Interactions | None, seconds: float
    ) -> Record:
        error = math.nan if held_out is None else _error(self.factors(), held_out)
        noise = math.sqrt(self._posterior.noise.variance) * self.scaling.unit
        return Record(sweep, math.nan, *energies, math.nan, math.nan, math.nan, error, math.nan, seconds, noise)


def _scaling(ratings: np.ndarray) -> Scaling:
    """Return the map to values of mean 0 and variance 1."""
    deviation = float(ratings.std())
    return Scaling(float(ratings.mean()), deviation if deviation > _SAME * np.abs(ratings).max() else 1.0)


def _factors(scores: Scores, scaling: Scaling) -> Factors:
    left, right, users, items = (tensor.cpu().numpy() for tensor in scores)
    unit = scaling.unit
    return Factors(left * unit, right.copy(), users * unit, items * unit, scaling.mean)


def _error(factors: Factors, held_out: Interactions) -> float:
    users, items = held_out.user_index, held_out.item_index
    found = np.einsum("nr,nr->n", factors.user_factors[users], factors.item_factors[items])
    found = found + factors.user_biases[users] + factors.item_biases[items] + factors.mean
    return float(np.sqrt(np.mean((found - held_out.ratings) ** 2)))
