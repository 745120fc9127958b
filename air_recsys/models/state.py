"""The fitted state of a model: one value, which is replaced in one step."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.features import Features
from air_recsys.data.ids import IdIndex
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.graphs import SimilarityGraph
from air_recsys.graphs.agreement import N_EDGES
from air_recsys.models.carried import CarriedResiduals, UnratedRows, agreements, of_pairs, with_new_items
from air_recsys.models.drift import LearnedDrift
from air_recsys.models.further import NOTHING, Further, errors_left_out, numbers_of
from air_recsys.models.kernels import KernelResiduals
from air_recsys.models.learned import Ending, Factors, Selection
from air_recsys.models.ranking.calibration import RankCalibration
from air_recsys.models.ratings import BINARY, Clip, TrainingStatistics, is_binary, limited
from air_recsys.models.rows import SIDES, Folded, RowSolver, ScoreContributions, Side, Sources, other_side
from air_recsys.models.spread import Spread, facts_of
from air_recsys.models.unrated import Unrated, process_of_unrated
from air_recsys.nn.posterior.censored import as_measured, cut_moments
from air_recsys.nn.residuals import RowProcesses

Value = TypeVar("Value")
_LEAST = 1e-12  # weight


class ListPart(Protocol):
    """What lists follow from beside the expected ratings, see `air_recsys.models.taking`."""

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The arrays that a model file has to hold of it."""
        ...


class RowEquations(Protocol):
    """The equations that the row of a user or an item obeys, the other side held fixed, as a solver leaves them."""

    sees_pattern: bool  # whether the learned graphs know who rated what
    knows_deviations: bool  # whether `deviations` has an answer

    @property
    def drift(self) -> LearnedDrift | None:
        """Learned changes of users and items over time."""
        ...

    @property
    def has_factors(self) -> bool:
        """Whether rows have factors beside their biases."""
        ...

    def check(self) -> None:
        """Raise `ParameterError` where a row is tied to all others."""
        ...

    def solver(self, state: FittedState, side: Side) -> RowSolver:
        """The solver for new rows of a side."""
        ...

    def take_in(
        self,
        before: FittedState,
        draft: FittedState,
        side: Side,
        rows: np.ndarray,
        ratings: sp.csr_array,
        weights: np.ndarray | None,
    ) -> tuple[Folded, RowEquations]:
        """Rows of a draft that has a place for them, from their ratings, and the equations afterwards."""
        ...

    def contributions(self, state: FittedState, user: int, item: int) -> ScoreContributions:
        """The sources of a personal score."""
        ...

    def feature_effects(self, side: Side) -> np.ndarray:
        """Mean and deviation of what each feature of a side adds to the scores of the others, (g, 2)."""
        ...

    def deviations(self, users: np.ndarray, items: np.ndarray, times: np.ndarray | None = None) -> np.ndarray:
        """The standard deviation of a new rating of each pair of indices, at a time where given, (n,)."""
        ...

    def covariance(self, user: int, items: np.ndarray, side: Side = "user") -> np.ndarray:
        """The covariances of the scores of a user at some items, by what is not known of the user, (k, k)."""
        ...

    def unrated(self, state: FittedState, side: Side, known: np.ndarray) -> Folded:
        """What rows of a side with known features (n, g) would be without ratings, in the state of the training."""
        ...

    def uncertainties(self, side: Side) -> np.ndarray:
        """The root of the mean variance of the scores of each row of a side, over the other side, (n,)."""
        ...

    def noise(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The variance of a rating of each pair of indices around its true score, (n,)."""
        ...

    def grown(self, n_users: int, n_items: int) -> RowEquations:
        """The same with rows for new users and items."""
        ...

    def of_rows(self, data: Interactions, users: np.ndarray, items: np.ndarray) -> RowEquations:
        """The same of some users and items, by ascending positions, whose ratings are `data`."""
        ...

    def of_new_rows(self, side: Side, n_users: int, n_items: int) -> RowEquations:
        """The same for new rows of a side alone, in place of the trained ones."""
        ...

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The arrays that a model file has to hold of them beside the factors."""
        ...


@dataclass(frozen=True, eq=False)
class FittedState:
    """All that a fitted model knows.

    Parameters
    ----------
    user_graph, item_graph : SimilarityGraph, optional
        As learned, in their own unit; what people see is in `air_recsys.models.similar`.
    transform_graphs : list of SimilarityGraph
        Graphs over other rows than users and items.
    history : DataFrame
        The records of the training; empty where there was none.
    scale : tuple of float, optional
        Smallest and largest rating that `fit` saw, where new ratings have been taken in since; see `rating_scale`.
    item_weights : csr_array or ndarray, shape (n_items, n_items), optional
        Of a regression of the items on each other, of models that rank by one.
    source_factors : ndarray, shape (n_items, r), optional
        Of models whose users have the factors that their items make up: their part in these.
    named : mapping
        By side, similarities that took the place of those that the model makes, such as ones with labels.
    trained : FittedState, optional
        Of new rows of one side alone: the state that they were folded into, with the other side in common.
    spread : Spread, optional
        Of a model without a posterior: its errors on hidden ratings, once they were measured.
    calibration : RankCalibration, optional
        Of models that say how probable the items of a list are.
    residual_strength : float
        Strength of what the item graph carries from rated items to others, `air_recsys.nn.residuals`; 0 for none.
    further : Further
        What moments and features carry beside it.
    unrated : tuple of Unrated, optional
        The processes for users and for items without ratings, None where there is none.

    Several threads may read a state: it never changes, and what is computed from it is kept whole or not at all.
    """

    data: Interactions  # the training data
    factors: Factors
    user_graph: SimilarityGraph | None = None
    item_graph: SimilarityGraph | None = None
    transform_graphs: list[SimilarityGraph] = field(default_factory=list)
    history: pd.DataFrame = field(default_factory=pd.DataFrame)
    equations: RowEquations | None = None  # of models that take new rows in
    ending: Ending = field(default_factory=Ending)  # how the training ended
    scale: tuple[float, float] | None = None
    chosen: Selection = field(default_factory=Selection)  # what the training took for the parameters that were "auto"
    item_weights: sp.csr_array | np.ndarray | None = None
    source_factors: np.ndarray | None = None
    named: Mapping[str, SimilarityGraph] = field(default_factory=dict)
    trained: FittedState | None = None
    n_new_items: int = 0  # the last of the items, which came after the training
    spread: Spread | None = None
    calibration: RankCalibration | None = None
    residual_strength: float = 0.0
    further: Further = NOTHING
    unrated: tuple[Unrated | None, Unrated | None] = (None, None)
    _values: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        # The order in memory decides the last bits of a product: so they are the same after loading from a file.
        users, items, user_biases, item_biases = map(np.ascontiguousarray, self.factors.arrays())
        object.__setattr__(self, "factors", Factors(users, items, user_biases, item_biases, self.factors.mean))

    @cached_property
    def statistics(self) -> TrainingStatistics:
        """Counts and means of the data."""
        return TrainingStatistics(self.data, None if self.trained is None else self.trained.statistics.mean)

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...], dict[str, Any]]:
        # Without what was computed but for lists: another thread may add to it while a copy is made.
        kept = {} if self.taking is None else {"taking": self.taking}
        return type(self), tuple(getattr(self, each.name) for each in fields(self) if each.init), {"_values": kept}

    @property
    def taking(self) -> ListPart | None:
        """What lists by taking and liking follow from; None before they are first asked for."""
        return self._values.get("taking")

    @property
    def origin(self) -> FittedState:
        """The state of the training: `trained`, else this one."""
        return self.trained or self

    @property
    def alone(self) -> Side | None:
        """The side of which there are new rows alone; None for the state of a training."""
        if self.trained is None:
            return None
        return "user" if self.data.items is self.trained.data.items else "item"

    def of_side(self, side: Side) -> FittedState:
        """The state that knows all ratings of the rows of a side."""
        return self if side == self.alone else self.origin

    def check_whole(self) -> None:
        """Raise `ParameterError` for new rows alone, which are no model of their own."""
        if self.trained is not None:
            raise ParameterError(
                f"this model holds new {self.alone}s alone: fold_in, partial_fit, forget and save are for the model "
                "that folded them in"
            )

    @property
    def rating_scale(self) -> tuple[float, float]:
        """The range of predictions and new ratings: as stated, else what `fit` saw."""
        known = self.origin
        return known.scale or known.data.rating_scale or known.statistics.rating_range

    def once(self, name: str, make: Callable[[], Value]) -> Value:
        """The value that `make` returns, made when it is first asked for under that name.

        Threads that ask at the same time may each make one; all of them get the first that is ready.
        """
        if name not in self._values:
            self._values.setdefault(name, make())
        return self._values[name]

    def index(self, side: Side) -> IdIndex:
        """The ids of users or of items."""
        return self.data.users if side == "user" else self.data.items

    def features(self, side: Side) -> Features | None:
        """The features of users or of items."""
        return self.data.user_features if side == "user" else self.data.item_features

    def graph(self, side: Side) -> SimilarityGraph | None:
        """The learned graph of users or of items."""
        return self.user_graph if side == "user" else self.item_graph

    def with_similarities(self, side: Side, graph: SimilarityGraph) -> FittedState:
        """The same with other similarities of users or of items, such as ones with labels.

        Raises
        ------
        DataError
            If its nodes are not the users (the items) of the model, in their order.
        """
        ids = self.index(side).ids
        if not isinstance(graph, SimilarityGraph) or not np.array_equal(graph.ids, ids):
            raise DataError(
                f"expected a SimilarityGraph of the model's {ids.size} {side}s in their order, found another"
            )
        found = replace(self, named={**self.named, side: graph})
        if self.taking is not None:
            found.once("taking", lambda: self.taking)
        return found

    @property
    def drift(self) -> LearnedDrift | None:
        """Learned changes of users and items over time; None where the model knows no time."""
        return None if self.equations is None else self.equations.drift

    @property
    def steady_ratings(self) -> np.ndarray:
        """The training ratings without what users and items added at their times, (n_ratings,); limits as expected."""
        data, drift = self.data, self.drift
        if (relations := data.relations) is not None:
            return self.once("expected ratings", lambda: self._expected(relations))
        if drift is None or data.timestamps is None:
            return data.ratings
        times = data.timestamps
        return self.once("steady ratings", lambda: data.ratings - drift.at(data.user_index, data.item_index, times)[0])

    def _limits(self, relations: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """The places of limits, and the scores there, their deviations, the limits and their signs."""
        assert self.equations is not None
        places = np.flatnonzero(relations)
        pairs = self.data.user_index[places], self.data.item_index[places]
        scores, variances = self.factors.scores(*pairs), self.equations.noise(*pairs)
        if self.data.weights is not None:
            variances = variances / np.maximum(self.data.weights[places], _LEAST)
        return places, (scores, np.sqrt(variances), self.data.ratings[places], relations[places].astype(np.float64))

    def _expected(self, relations: np.ndarray) -> np.ndarray:
        """The ratings with what limits are expected to be."""
        (places, known), ratings = self._limits(relations), self.data.ratings.copy()
        ratings[places], _ = cut_moments(*known)
        return ratings

    def as_measured(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Ratings and weights that say of new rows what limits say near the present scores: a step of Newton."""
        data = self.data
        if data.relations is None:
            return self.steady_ratings, data.weights
        (places, known), ratings = self._limits(data.relations), data.ratings.copy()
        weights = np.ones(data.n_ratings) if data.weights is None else data.weights.copy()
        ratings[places], told = as_measured(*known)
        weights[places] *= told
        return ratings, weights

    @property
    def residuals(self) -> np.ndarray:
        """What factors, biases and times leave of the training ratings, (n_ratings,)."""
        return self.steady_ratings - self.factors.scores(self.data.user_index, self.data.item_index)

    def influence(self, user: int, items: np.ndarray, places: np.ndarray) -> np.ndarray:
        """How a user's ratings of some items, at some places of the data, influence the scores of these, (k, k)."""
        assert self.equations is not None
        data, drift, users = self.data, self.drift, np.full(items.size, user)
        noise, of_user = self.equations.noise(users, items), self.equations.covariance(user, items)
        own = noise if data.weights is None else noise / data.weights[places]
        of_items = np.square(self.equations.deviations(users, items)) - noise - np.diag(of_user)
        found = of_user / own
        if drift is not None and data.timestamps is not None:
            of_items -= drift.variances(users, items)
            rest = np.eye(items.size) - found  # D (K + D)^-1, with the prior covariance K of the user's scores
            changing = drift.covariance(user, data.timestamps[places].astype(np.float64))
            found = np.eye(items.size) - own[:, None] * np.linalg.inv(np.linalg.inv(rest) * own + changing)
        return found + np.diag(of_items.clip(min=0) / own)

    def _influence_of_row(self, side: Side, row: int, others: np.ndarray, places: np.ndarray) -> np.ndarray:
        """How the ratings of a row influence its scores by its own factors and bias, (k, k)."""
        assert self.equations is not None
        users, items = (np.full(others.size, row), others)[:: 1 if side == "user" else -1]
        own = self.equations.noise(users, items) / (1 if self.data.weights is None else self.data.weights[places])
        return self.equations.covariance(row, others, side) / own

    def process_of_unrated(self, side: Side) -> Unrated | None:
        """The process for rows of a side without ratings that gains on ratings which are left out."""
        data, features = self.data, self.features(side)
        if features is None or not features.names:
            return None
        pairs = (data.item_index, data.user_index) if side == "user" else (data.user_index, data.item_index)
        known = self.residuals_of_unrated(side), data.weights, features
        return process_of_unrated(pairs, *known, partial(self._influence_of_row, other_side(side)))

    def residuals_of_unrated(self, side: Side) -> np.ndarray:
        """What is left of the ratings if no row of a side, whose features are known, had any, (n_ratings,)."""
        features, origin = self.features(side), self.origin
        assert features is not None
        assert origin.equations is not None
        rows = origin.equations.unrated(origin, side, features.numbers())
        factors = self.factors._replace(**{f"{side}_factors": rows.factors, f"{side}_biases": rows.biases})
        return self.steady_ratings - factors.scores(self.data.user_index, self.data.item_index)

    def _unrated_rows(self, side: Side) -> np.ndarray:
        """The positions of the rows of a side without ratings, ascending."""
        index = getattr(self.of_side(side).data, f"{side}_index")
        return self.once(f"unrated {side}s", lambda: np.setdiff1d(np.arange(len(self.index(side))), index))

    def _of_unrated(self, side: Side, process: Unrated) -> UnratedRows:
        """What is added to the scores of rows of a side without ratings."""
        source, rows = self.of_side(other_side(side)), self._unrated_rows(side)

        def make() -> CarriedResiduals:
            lasting = self.further.lasting if side == "item" else None
            over = RowProcesses.of_features(process.inputs(source.features(side)), lasting)
            return CarriedResiduals(source.data, source.residuals_of_unrated(side), over, of_items=side == "user")

        carried = source.once(f"residuals of unrated {side}s", make)
        near = sp.csr_array((rows.size, carried.processes.edges.shape[1]))
        return UnratedRows(side, rows, carried.towards(near, process.inputs(self.features(side), rows)))

    def scores(self, users: np.ndarray, items: np.ndarray, clips: Clip, times: np.ndarray | None = None) -> np.ndarray:
        """The score of each pair of indices, at a time where given, limited as `clips` says."""
        scores = self.factor_scores(users, items, times)
        if self.carried is not None:
            scores = scores + self.carried.scores(users, items, times)
        return self.limited(scores, clips)

    def factor_scores(self, users: np.ndarray, items: np.ndarray, times: np.ndarray | None = None) -> np.ndarray:
        """The part of the score of each pair that factors and biases make, at a time where given."""
        scores = self.factors.scores(users, items)
        if times is not None and self.drift is not None:
            scores = scores + self.drift.at(users, items, times)[0]
        return scores

    @property
    def carried(self) -> CarriedResiduals | KernelResiduals | None:
        """What given similarities add to scores, or the item graph carries from rated items; None without such."""
        if self.origin.chosen.kernels is not None:
            return self.kernel_residuals
        return self.once("carried residuals", self._with_unrated)

    def _with_unrated(self) -> CarriedResiduals | None:
        processes = zip(SIDES, self.origin.unrated, strict=True)
        unrated = [self._of_unrated(side, each) for side, each in processes if each and self._unrated_rows(side).size]
        if self.origin.item_graph is not None and (self.residual_strength or self.further != NOTHING):
            carried = self._carried_to_new() if self.alone == "item" else self._carried()
        else:
            nothing = RowProcesses.of_features(np.zeros((self.data.n_items, 0)))
            carried = CarriedResiduals(self.data, self.residuals, nothing) if unrated else None
        return carried.beside(unrated) if carried and unrated else carried

    @property
    def kernel_residuals(self) -> KernelResiduals | None:
        """What given similarities of both sides add to scores; None where they are no kernels."""
        kernels, origin = self.origin.chosen.kernels, self.origin
        if kernels is None:
            return None
        known, own = None if self is origin else origin.kernel_residuals, (self.data, self.factors)
        make = partial(KernelResiduals, kernels, *own, self.steady_ratings, self.rating_scale, known)
        return self.once("kernel residuals", make)

    def deviations(self, users: np.ndarray, items: np.ndarray, times: np.ndarray | None = None) -> np.ndarray:
        """The standard deviation of a new rating of each pair of indices by a posterior, at a time where given."""
        assert self.equations is not None
        found, kernels = self.equations.deviations(users, items, times), self.kernel_residuals
        for side, index, process in zip(SIDES, (users, items), self.origin.unrated, strict=True):
            if process is not None:
                found[np.isin(index, self._unrated_rows(side))] *= process.reach
        return found if kernels is None else kernels.deviations(found, users, items)

    def _carried(self) -> CarriedResiduals:
        assert self.item_graph is not None
        graph = self.item_graph.to_scipy()
        known = numbers_of(self.origin.data)
        processes = self.further.beside(RowProcesses.of_graph(graph, self.residual_strength), known)
        found = CarriedResiduals(self.data, self.residuals, processes)
        if not self.n_new_items:
            return found
        degrees = np.asarray(graph.sum(axis=1))[: self.data.n_items - self.n_new_items]
        rows = sp.csr_array(of_pairs(self.data, self.residuals).T)
        return with_new_items(found, self.factors.item_factors, rows, degrees)

    def _carried_to_new(self) -> CarriedResiduals:
        """Of new items alone: from the known items to these."""
        known, (items, _) = self.origin, self.origin.factors.of("item")
        assert isinstance(known.carried, CarriedResiduals)
        assert known.item_graph is not None
        rows = [sp.csr_array(of_pairs(each.data, each.residuals).T) for each in (known, self)]
        factors = np.concatenate([items, self.factors.item_factors])
        degrees = np.asarray(known.item_graph.to_scipy().sum(axis=1))
        whole = with_new_items(known.carried, factors, sp.csr_array(sp.vstack(rows)), degrees)
        features = self.further.scaled(numbers_of(self.data))
        return whole.towards(whole.processes.asked[degrees.size :], features)

    @property
    def carried_errors(self) -> tuple[float, float] | None:
        """The RMSE of some training ratings, each left out, without and with what is carried; None without that."""
        if not isinstance(self.carried, CarriedResiduals) or self.alone:
            return None

        def errors() -> tuple[float, float]:
            _, items = agreements(self.data, self.residuals, self.factors, (0, N_EDGES))
            assert items is not None
            graph = RowProcesses.of_graph(items.blind, self.residual_strength)
            known = self.data, self.residuals, graph, self.influence, self.further
            return errors_left_out(*known, reads_times=self.drift is not None)

        return self.once("errors left out", errors)

    @property
    def knows_deviations(self) -> bool:
        """Whether a posterior or measured errors tell how far new ratings are from scores."""
        return self.spread is not None or (self.equations is not None and self.equations.knows_deviations)

    def facts(self, users: np.ndarray, items: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """What the deviations of pairs follow from where there is no posterior, (n, 5)."""
        low, high = self.rating_scale
        of_users, of_items = self.of_side("user").statistics, self.of_side("item").statistics
        counts = of_users.user_counts[users], of_items.item_counts[items]
        return facts_of(*counts, (scores - low) / ((high - low) or 1.0))

    def row_solver(self, side: Side) -> RowSolver:
        """The solver for new rows of a side; `ParameterError` where a row is tied to all others."""
        self.check_whole()
        assert self.equations is not None
        self.equations.check()
        return self.equations.solver(self, side)

    def sources(self, user: int, neighbors: np.ndarray) -> Sources:
        """The ratings of a user, beside the given neighbours."""
        if self.alone == "item":
            return self.origin.sources(user, neighbors)
        place = np.flatnonzero(self.data.user_index == user)
        rated, ratings = self.data.item_index[place], self.data.ratings[place]
        steady = self.steady_ratings[place]
        weights = np.ones(place.size) if self.data.weights is None else self.data.weights[place]
        expected = (self.factors.item_biases + self.factors.mean)[rated]
        deviations = steady - expected - float(self.factors.user_biases[user])
        return Sources(rated, ratings, weights, deviations, neighbors)

    def limited(self, scores: np.ndarray, clips: Clip) -> np.ndarray:
        """Scores as `clips` says, see `air_recsys.models.ratings`."""
        origin = self.origin
        binary = clips == BINARY and origin.once("binary", lambda: is_binary(origin.data.ratings))
        return limited(scores, clips, self.rating_scale, binary=binary)


class WriterLock:
    """A lock that one thread may take several times; copies, pickles and forked processes have one of their own."""

    def __init__(self) -> None:
        # By process: a thread that held the lock is not there in a forked process to release it.
        self._locks: dict[int, Any] = {}

    def __enter__(self) -> None:
        self._own().acquire()

    def __exit__(self, *_: object) -> None:
        self._own().release()

    def __reduce__(self) -> tuple[type[WriterLock], tuple[()]]:
        return WriterLock, ()

    def _own(self) -> Any:
        return self._locks.setdefault(os.getpid(), threading.RLock())


def lock_of(owner: object) -> WriterLock:
    """The lock of an object, made when it is first asked for."""
    return vars(owner).setdefault("_lock", WriterLock())
