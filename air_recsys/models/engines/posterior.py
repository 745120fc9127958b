"""The engine of the posterior: sweeps over users and items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from air_recsys.data.features import Features
from air_recsys.data.interactions import Extent, Interactions
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.graphs.agreement import N_EDGES
from air_recsys.models.carried import agreements
from air_recsys.models.drift import LearnedDrift
from air_recsys.models.engines.posterior_arrays import PosteriorArrays
from air_recsys.models.engines.posterior_rows import PosteriorRows
from air_recsys.models.engines.protocol import Setup, check_strengths, graph_form
from air_recsys.models.engines.scaling import (
    Scaling,
    counted_ratings,
    edges_per_node,
    features_of,
    width_of,
)
from air_recsys.models.learned import Factors
from air_recsys.models.solvers import STRENGTH_NAMES, SWEEPS, Sweeping
from air_recsys.models.state import FittedState
from air_recsys.nn.build import Settings, observations
from air_recsys.nn.devices import resolve_device
from air_recsys.nn.drift.drift import Drift
from air_recsys.nn.memory import (
    MemoryPlan,
    Sizes,
    block_within,
    drift_bytes,
    holds_covariances,
    posterior_plan,
    smaller,
)
from air_recsys.nn.objective import Observations
from air_recsys.nn.pattern import SparsePattern
from air_recsys.nn.posterior.censored import Censored
from air_recsys.nn.posterior.components import Components, components
from air_recsys.nn.posterior.equations import SUMS
from air_recsys.nn.posterior.estimate import LangevinEstimate, Uncertainty, VariationalEstimate
from air_recsys.nn.posterior.exchange import ALONE, Exchange, OwnEntries
from air_recsys.nn.posterior.features import pattern_features, projection, with_known
from air_recsys.nn.posterior.posterior import Posterior
from air_recsys.nn.posterior.prior import Embedding
from air_recsys.nn.posterior.unseen import UnseenPrior, settled, unseen_prior
from air_recsys.storage.lazy import Tensor, torch
from air_recsys.storage.threads import one_thread
from air_recsys.training import PosteriorSweeps
from air_recsys.training.trainer import Adjacencies

_BEFORE_DRAWS = 5  # variational sweeps, before they prune factors; see benchmarks/reports/accuracy.md
_PAIRS = 2**18  # held-out pairs whose scores are found at a time
_STRENGTH = 0.3  # of a given graph, where none is searched
# What of the model's parameters `Adam` alone reads, with the values that ask for nothing.
_OF_ADAM: dict[str, tuple[Any, ...]] = {"adjacency": ("row_softmin",), "graph_refresh": (None, "auto")}


@dataclass
class PosteriorEngine:
    """Finds the posterior of factors and biases that sees who rated what."""

    setup: Setup
    solver: Sweeping
    sample: bool = False  # draw from the posterior, instead of approximating it

    _known: tuple[Features | None, Features | None] = field(default=(None, None), init=False, repr=False)

    def n_steps(self, data: Extent) -> int:
        """The number of sweeps."""
        return self._n_sweeps

    @property
    def _n_sweeps(self) -> int:
        """The sweeps; where draws are not cheap "auto" is this number."""
        return SWEEPS if isinstance(self.solver.n_sweeps, str) else self.solver.n_sweeps

    def values(self, data: Extent) -> dict[str, Any]:
        """The numbers behind the parameters that are "auto"."""
        settings = self._settings(data)
        of_setup = {"n_factors": settings.width, "graph_neighbors": settings.n_neighbors}
        of_solver: dict[str, Any] = (
            {"pattern_features": self._n_features(data)} if self.solver.pattern_features == "auto" else {}
        )
        if self.solver.n_sweeps == "auto":
            of_solver["n_sweeps"] = self._n_sweeps
        for name, known, strength in zip(STRENGTH_NAMES, self.knows(data), self.strengths, strict=True):
            if known and getattr(self.solver, name) == "auto":
                of_solver[name] = strength
        return {name: value for name, value in of_setup.items() if getattr(self.setup, name) == "auto"} | of_solver

    def knows(self, data: Extent) -> tuple[bool, bool]:
        """The sides with given similarities."""
        return data.has_places

    @property
    def strengths(self) -> tuple[float, float]:
        """The strengths of given graphs of users and of items, see `air_recsys.nn.posterior.prior`."""
        given = (getattr(self.solver, name) for name in STRENGTH_NAMES)
        users, items = (_STRENGTH if each == "auto" else each for each in given)
        return users, items

    @property
    def device(self) -> torch.device:
        """The device of the training."""
        return resolve_device(self.setup.device)

    @property
    def learns_from_constant(self) -> bool:
        """False: there is nothing to learn from."""
        return False

    def check(self, data: Interactions) -> None:
        """Raise `ParameterError` where parameters do not go together."""
        name = type(self.solver).__name__
        for of_adam, values in _OF_ADAM.items():
            if getattr(self.setup, of_adam) not in values:
                found = f"found {of_adam}={getattr(self.setup, of_adam)!r}"
                hint = "leave it out, or give solver='adam'"
                raise ParameterError(f"{name} does not read {of_adam}, Adam does: {hint}; {found}")
        if self.setup.n_factors is None:
            raise ParameterError(f"{name} needs n_factors, a number or 'auto', found None, which is full width")
        if self.solver.time is not None and data.timestamps is None:
            raise DataError(f"time={self.solver.time!r} needs ratings with timestamps, found none")
        if self.solver.time is not None and data.relations is not None:
            raise DataError(f"time={self.solver.time!r} knows no limits (relation < or >), found some")
        check_strengths(self.solver, self.knows(data))

    def memory_plan(self, data: Extent) -> MemoryPlan:
        """The bytes that a training will take at its peak, beside the interactions."""
        return self._plan(data, self._settings(data))

    def smaller(self, data: Extent) -> Iterator[tuple[str, int]]:
        """Yield changes of parameters that need less and less memory, and the bytes that they need."""
        for changes, settings in smaller(self._settings(data), self.setup.sizes(data), batches=(1,)):
            yield changes, self._plan(data, settings).total

    def graph_form(self, data: Extent) -> str:
        """The form of the graphs, in words."""
        return graph_form(any(self.edges_after), self._n_edges)

    @property
    def edges_after(self) -> tuple[int, int]:
        """Edges that each user, and each item, chooses in a graph made after the training; 0 where none is."""
        return self._n_edges * (self.solver.user_graph_reg != 0), self._n_edges * (self.solver.item_graph_reg != 0)

    @property
    def _n_edges(self) -> int:
        return edges_per_node(self.setup.graph_neighbors) or N_EDGES

    def width(self, data: Extent) -> int | None:
        """The columns of the factors."""
        return width_of(self.setup.n_factors, data, by_size=True)

    def _settings(self, data: Extent) -> Settings:
        """Width and graphs in the words of the memory plan."""
        width, (users, items) = self.width(data), self.edges_after
        strengths = float(users > 0 and width != 0), float(items > 0 and width != 0)
        return Settings(width=width, depth=2, strengths=strengths, n_neighbors=self._n_edges, biases=True)

    def _n_features(self, data: Extent) -> int | str:
        return features_of(self.solver.pattern_features, data)

    def _plan(self, data: Extent, settings: Settings) -> MemoryPlan:
        n_features, block = self._number_of_features(data), self._block_bytes(data, settings)
        plan = posterior_plan(
            self._sizes(data),
            settings,
            n_features,
            sample=self.sample,
            block_bytes=block,
            from_covariances=self._n_variational(data, settings) > 0,
            n_whole=data.n_ratings,
        )
        return plan._replace(work=plan.work + self._drift_bytes(data))

    def _n_variational(self, data: Extent, settings: Settings) -> int:
        """The number of variational sweeps before those that draw: none where memory is short of covariances."""
        sizes, limit = self._sizes(data), self.setup.memory_limit
        if not self.sample or not holds_covariances(sizes, settings):
            return 0
        if limit is not None:
            plan = posterior_plan(sizes, settings, self._number_of_features(data), sample=True)
            if plan.total + self._drift_bytes(data) > limit:
                return 0
        return min(_BEFORE_DRAWS, self._n_sweeps // 10)

    def _drift_bytes(self, data: Extent) -> int:
        return 0 if self.solver.time is None else drift_bytes(data.n_ratings, self._width(data))

    def _sizes(self, data: Extent) -> Sizes:
        """The sizes that the memory of a training depends on."""
        return self.setup.sizes(data)

    def _number_of_features(self, data: Extent) -> int:
        n_features = self._n_features(data)
        return (n_features if isinstance(n_features, int) else 0) + max(data.n_features)

    def _block_bytes(self, data: Extent, settings: Settings) -> int:
        """The memory of the equations that are formed at a time, less where `max_memory` is short."""
        limit = self.setup.memory_limit
        if limit is None or not self.sample:
            return SUMS
        rest = limit - self._drift_bytes(data)
        return block_within(self._sizes(data), settings, self._number_of_features(data), rest)

    def start(
        self, training: Interactions, held_out: Interactions | None, rng: np.random.Generator
    ) -> PosteriorSweeps:
        """The start of a training."""
        with one_thread():
            self._scaling = Scaling.standard(counted_ratings(training))
            error = None if held_out is None else self._held_out_error(held_out)
            self._known = training.user_features, training.item_features
            observed, entries = self._entries(training)
            censored = self._censored(training, observed, entries)
            found = components(observed) if self._width(training) == 0 and censored is None else None
            more = self._drift(training, observed, entries), censored
            return self._start(training, entries, found, rng, error, *more)

    def _width(self, data: Extent) -> int:
        """The columns of the factors, at most those that the data can tell apart."""
        width, narrower = self.width(data), min(data.n_users, data.n_items)
        return narrower if width is None else min(width, narrower)

    def _entries(self, training: Interactions) -> tuple[Observations, OwnEntries]:
        """The ratings as observed entries, and as a posterior sees them."""
        dtype, weights = getattr(torch, self.setup.dtype), training.weights_to_csr()
        observed = observations(training.to_csr(), self._scaling.forward, dtype, self.device, weights)
        return observed, OwnEntries.of(observed, self._exchange(observed.pattern, self._width(training)))

    def _censored(self, training: Interactions, observed: Observations, entries: OwnEntries) -> Censored | None:
        relations = training.relations_to_csr()
        if relations is None:
            return None
        relations.sort_indices()
        return Censored(observed, entries, torch.as_tensor(relations.data, device=self.device))

    def _drift(self, training: Interactions, observed: Observations, entries: OwnEntries) -> Drift | None:
        if self.solver.time is None:
            return None
        assert training.timestamps is not None
        times = training.timestamps[np.argsort(training.pair_index)].astype(np.float64)
        n_sweeps = self._n_sweeps
        first, counted_from = (n_sweeps // 10, n_sweeps // 5) if self.sample else (n_sweeps // 3, None)
        on_device = torch.as_tensor(times, device=self.device)
        return Drift(observed, entries, on_device, first=max(first, 1), counted_from=counted_from)

    def _start(
        self,
        data: Extent,
        observed: OwnEntries,
        found: Components | None,
        rng: np.random.Generator,
        error: Callable[[], float] | None = None,
        drift: Drift | None = None,
        censored: Censored | None = None,
    ) -> PosteriorSweeps:
        """The start of a training on entries; `error` is that on held-out ones."""
        n_sweeps, settings = self._n_sweeps, self._settings(data)
        self._observed, self._pattern = observed, pattern_features(observed, self._n_features(data), rng)
        rows, columns = (self._features(side) for side in (0, 1))
        posterior = Posterior(
            observed,
            (rows, columns),
            self._width(data),
            rng,
            sample=self.sample,
            n_variational=self._n_variational(data, settings),
            components=found,
            block_bytes=self._block_bytes(data, settings),
            n_known_features=self._n_known,
            embeddings=self._embeddings,
            drift=drift,
            censored=censored,
        )
        self._estimate = (LangevinEstimate if self.sample else VariationalEstimate)(posterior, n_sweeps)
        unit = self._scaling.unit
        graphs = partial(self._graphs, data) if isinstance(data, Interactions) else None
        return PosteriorSweeps(posterior, self._estimate, rng, n_sweeps, unit, error, graphs=graphs)

    def _graphs(self, data: Interactions) -> Adjacencies:
        """The graphs by agreement in the present state."""
        factors, drift = self.factors(), self._learned_drift()
        left = FittedState(data, factors, equations=self.equations() if data.relations is not None else None).residuals
        if drift is not None and data.timestamps is not None:
            left = left - drift.at(data.user_index, data.item_index, data.timestamps)[0]
        found = agreements(data, left, factors, self.edges_after, device=self.device)
        return [None if each is None else each.graph for each in found]

    def _features(self, side: int) -> Tensor:
        """The features of the pattern, and what is known of the users (of the items) beside it."""
        pattern, known = self._pattern[side], self._known[side]
        if known is None:
            return pattern
        return with_known(pattern, torch.as_tensor(self._numbers(known, side), device=self.device))

    def _numbers(self, known: Features, side: int) -> np.ndarray:
        """Features, and places in the given graph unless its strength is 0."""
        return known.numbers()[:, : self._n_known[side] + self._embeddings[side].number]

    @property
    def _n_known(self) -> tuple[int, int]:
        users, items = (0 if known is None else len(known.names) for known in self._known)
        return users, items

    @property
    def _embeddings(self) -> tuple[Embedding, Embedding]:
        """The dimensions of the embeddings of given graphs, 0 where the strength is, and the strengths."""
        users, items = (
            Embedding() if known is None or strength == 0 else Embedding(known.places.shape[1], strength)
            for known, strength in zip(self._known, self.strengths, strict=True)
        )
        return users, items

    def _exchange(self, pattern: SparsePattern, width: int) -> Exchange:
        """The exchange with other processes that solve rows of the same posterior."""
        return ALONE

    def _held_out_error(self, held_out: Interactions) -> Callable[[], float]:
        """A function of the root mean squared error of the present state, found on the device."""
        device = self.device
        pairs = held_out.user_index, held_out.item_index
        users, items = (torch.as_tensor(index.astype(np.int64), device=device) for index in pairs)
        ratings = torch.as_tensor(held_out.ratings.astype(np.float64), device=device)
        relations = np.zeros(held_out.n_ratings) if held_out.relations is None else held_out.relations
        signs = torch.as_tensor(relations.astype(np.float64), device=device)
        times = None if held_out.timestamps is None else torch.as_tensor(held_out.timestamps.astype(np.float64))
        unit, mean = self._scaling.unit, self._scaling.mean

        def error() -> float:
            left, right, of_users, of_items = self._estimate.scores()
            total, of_time = ratings.new_zeros(()), self._at(users, items, times)
            parts = (part.split(_PAIRS) for part in (users, items, ratings, of_time, signs))
            for own, others, expected, drift, sign in zip(*parts, strict=True):
                found = (left[own] * right[others]).sum(dim=1) + of_users[own] + of_items[others] + drift
                missed = found * unit + mean - expected
                total += missed.masked_fill(sign * missed > 0, 0.0).square().sum()  # on the known side of a limit
            return float((total / len(ratings)).sqrt())

        return error

    def _at(self, users: Tensor, items: Tensor, times: Tensor | None) -> Tensor:
        """The sum of what users and items add at some times in the present state, (n,)."""
        drift = self._estimate.posterior.drift
        found = torch.zeros(len(users), dtype=torch.float64, device=users.device)
        if drift is not None and times is not None:
            for index, of_side in zip((users, items), drift.moments(), strict=True):
                for process in of_side:
                    found += torch.from_numpy(process.at(index.cpu().numpy(), times.numpy())[0]).to(found.device)
        return found

    def factors(self) -> Factors:
        """The mean of the scores in the present state, in the unit of the ratings."""
        left, right, users, items = (tensor.cpu().numpy() for tensor in self._estimate.scores())
        unit = self._scaling.unit
        return Factors(left * unit, right.copy(), users * unit, items * unit, self._scaling.mean)

    def equations(self) -> PosteriorRows:
        """The equations of a row in the present state."""
        self._estimate.posterior.complete()
        sides = projection(self._observed, self._pattern, 0), projection(self._observed, self._pattern, 1)
        left = self._estimate.uncertainty()
        unseen = [self._unseen(left, side) for side in (0, 1)]
        return PosteriorRows(PosteriorArrays.of(left, self._scaling.unit, sides, unseen), self._learned_drift())

    def _learned_drift(self) -> LearnedDrift | None:
        drift = self._estimate.posterior.drift
        if drift is None:
            return None
        return LearnedDrift(self._scaling.unit, drift.span, *drift.moments())

    def _unseen(self, left: Uncertainty, side: int) -> UnseenPrior | None:
        known, states = self._known[side], (left.rows, left.columns)
        if known is None:
            return None
        values, observed = torch.as_tensor(self._numbers(known, side), device=self.device), self._observed
        covariances = left.row_covariances if side == 0 else left.column_covariances
        prior = unseen_prior(states[side], covariances, values, observed.degrees[side], self._embeddings[side])
        noise = left.noise * (left.of_columns if side == 0 else left.of_rows)
        return settled(prior, observed, side, states[1 - side], noise)

    def equations_from(self, arrays: Mapping[str, np.ndarray], extent: Extent) -> PosteriorRows:
        """The equations of a row from what a file holds of them."""
        return PosteriorRows(PosteriorArrays.from_arrays(arrays, extent), LearnedDrift.from_arrays(arrays))
