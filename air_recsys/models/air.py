"""`AIR`: matrix factorization with two learned graphs, trained by one of three solvers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Self

import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import ParameterError
from air_recsys.graphs import SimilarityGraph
from air_recsys.graphs.cooccurrence import scaled_adjacency
from air_recsys.graphs.laplacian import ADJACENCIES
from air_recsys.graphs.postprocess import with_pattern, with_pattern_of_isolated
from air_recsys.graphs.pruning import strongest
from air_recsys.models.engines import Engine, engine_of
from air_recsys.models.graph_ranker.ranker import GraphRanker
from air_recsys.models.presets import OffersPresets, preset_parameters, shortest_call
from air_recsys.models.ratings import BINARY
from air_recsys.models.rows import Side
from air_recsys.models.settings.finding import FindsSettings
from air_recsys.models.solvers import (
    AUTO,
    Adam,
    Solver,
    Sweeping,
    as_solver,
    parameter_names,
    readers_of,
    solver_from_json,
)
from air_recsys.models.state import FittedState
from air_recsys.storage.validation import check_integer, choice, integer, real, warn_of_unread
from air_recsys.training.plan import spread_steps

_BUDGET = 2.0
_LEARNED_EDGES = 5  # edges of a node of a graph of all pairs that are joined with the pattern


@dataclass(eq=False, repr=False)
class AIR(OffersPresets, FindsSettings):
    r"""Adaptive and implicit regularization for collaborative filtering.

    The model explains the ratings Y (n_users x n_items) by factors and biases. With them it learns a graph of the
    users and a graph of the items. The solver decides how:

    * `Adam` minimises the paper's objective: the squared error of a deep factorization and the energies of both
      graphs, all trained together. For exact data and for 0/1 data.
    * `Variational` (and `Langevin`, by sampling) computes a posterior distribution of factors and biases. It uses the
      pattern of who rated what, and estimates noise and penalties; `predict` then returns standard deviations. Its
      graphs join those whose ratings factors miss alike; that of the items carries what factors leave, as part of
      the scores. Graphs that are given to `fit` are part of its prior. For noisy ratings.

    Start from one of the presets: `for_ratings` (noisy ratings), `for_interactions` (0/1 data), `for_completion`
    (exact data). They take the parameters of the model and of its solver side by side, such as
    ``AIR.for_ratings(n_factors=30, n_sweeps=40)``. For likes alone, without ratings or dislikes, use `for_likes`.

    Parameters
    ----------
    n_factors : int, "auto" or None
        Width of the factorization. None is full width, min(n_users, n_items), for `Adam` only; X is then a dense
        matrix in memory. "auto" is 20; with a posterior it grows with the data up to 40; for exact data it is full
        width up to 500 users or items, and 64 above. See `air_recsys.models.engines.scaling.width_of`.
    adjacency : {"row_softmin", "global_sum", "global_product"}
        Of `Adam`: how logits become a graph; see `air_recsys.graphs.laplacian`.
    graph_neighbors : int, "auto" or None
        Edges that a node chooses (of `Adam` with "row_softmin"; at most all other nodes). None gives a weight to every
        pair; of a posterior it is 20. "auto" depends on the size, see
        `air_recsys.models.engines.scaling.edges_per_node`; `fit` prints the value if `verbose` is True.
    graph_refresh : int or "auto", optional
        Of `Adam`: epochs between two updates of the edges of a sparse graph; None is 100. "auto" is a 300th of the
        epochs but at least 10.
    solver : Adam, Variational, Langevin, or "adam", "variational", "langevin", "auto"
        How the factors are computed: an object of `air_recsys.solvers` with its own parameters, or its short name.
        "auto" lets `fit` choose by the data, see `auto`.
    settings : {"fixed", "auto"}
        How parameters that are "auto" get their values. "fixed" uses formulas of the size of the data. "auto", which
        `for_completion` sets, also tries a few settings on hidden ratings, see `air_recsys.models.settings.search`. In
        both cases strengths of given graphs are chosen on hidden ratings, see `air_recsys.models.settings.search`.
        Parameters with a value are never changed.
    search_budget : float
        Maximum length of that search, in whole trainings of its forms.
    snapshot_epochs : sequence of int
        Epochs or sweeps at which both graphs are kept in `snapshots_`.
    pattern_graphs : bool or "auto"
        Whether `user_graph_` and `item_graph_` contain the pattern of who rated what beside the learned edges. It
        helps where people choose what to rate, and not where ratings are missing at random. Graphs of `Adam` get its
        edges; those of a posterior include it already, and only nodes without an edge get them. See
        benchmarks/reports/graphs.md.
    validation_fraction, patience, clip, dtype, device, random_state, max_memory, verbose, n_threads
        See `air_recsys.models.trained.TrainedRecommender`.

    Attributes
    ----------
    user_graph_, item_graph_ : SimilarityGraph or None
        Who is similar: what was learned, with `pattern_graphs` joined with the pattern of who rated what, as
        similarities in 0..1; made when it is first asked for. `similar_users` and `similar_items` use it.
    user_adjacency_, item_adjacency_ : csr_array or None
        The graphs in their own unit: of `Adam` the adjacencies whose Laplacians are in the objective.
    user_graph_strength_, item_graph_strength_ : float
        Strength of the similarities that were given to `fit` (of `Adam`: and of features), as its solver counts it; 0
        if none were given, or if they do not help. Learned graphs are not included.
    history_ : DataFrame
        One row per record: epoch, fit, user_energy, item_energy, decay, further (transforms and total variation),
        objective, validation_rmse, learning_rate, seconds, noise. Each sweep of a posterior is an epoch with a record:
        noise is the common standard deviation of the ratings, and the columns of energies and objective are NaN.
    settings_ : dict
        Values that the training used for parameters that were "auto", by plain names.
    search_ : DataFrame
        One row per form and round of the search of the settings: form, trainings, rmse.
    transform_graphs_ : list of SimilarityGraph
        The graphs of `transforms`, over the rows of each T_i(X).
    snapshots_, n_iter_, stopped_by_, device_
        See `air_recsys.models.trained.TrainedRecommender`.

    Source: Li, Sun, Wang, Wang, SIAM J. Imaging Sciences 15(4), 2022.

    Examples
    --------
    >>> import numpy as np
    >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))  # two groups of users, two of items
    >>> ratings[0, 0] = ratings[4, 5] = np.nan
    >>> model = AIR.for_completion(n_epochs=3000, init_std=0.1, random_state=0, device="cpu").fit(ratings)
    >>> model.predict([0, 4], [0, 5]).round(1)
    array([5., 4.])
    >>> sorted(model.similar_users(0, n=2)["user"])
    [1, 2]
    """

    n_factors: int | str | None = integer(None, minimum=1, besides=("auto", None))
    adjacency: str = choice("row_softmin", list(ADJACENCIES))
    graph_neighbors: int | str | None = integer(None, minimum=1, besides=("auto", None))
    graph_refresh: int | str | None = integer(None, minimum=1, besides=("auto", None))
    solver: Solver | str = field(default_factory=Adam)
    snapshot_epochs: Sequence[int] = ()
    pattern_graphs: bool | str = choice(False, (True, False, "auto"))
    settings: str = choice("fixed", ("fixed", "auto"))
    search_budget: float = real(_BUDGET, strict=True)

    @classmethod
    def of_preset(cls, preset: str, **overrides: Any) -> Self:
        """The model of a preset by its name, a key of `air_recsys.models.presets.PRESETS`.

        Parameters
        ----------
        preset : {"completion", "interactions", "ratings", "auto"}
            "auto" is `auto`.
        **overrides
            Parameters of the model and of its solver. With the short name of another `solver`, the values of the
            preset for that solver apply; an object such as ``Adam(depth=2)`` is used unchanged.

        Raises
        ------
        ParameterError
            For an override that neither the model nor its solver reads; the message names the solver that does.

        Examples
        --------
        >>> AIR.of_preset("ratings", n_sweeps=5).solver
        Variational(n_sweeps=5)
        >>> AIR.of_preset("ratings", learning_rate=0.1)
        Traceback (most recent call last):
        air_recsys.exceptions.ParameterError: Variational does not read learning_rate, Adam does: leave it out, or \
give solver='adam'
        """
        if preset == AUTO:
            return cls.auto(**overrides)
        return cls(**preset_parameters(preset, overrides, parameter_names(cls)))

    @classmethod
    def auto(cls, **overrides: Any) -> Self:
        """A model whose `fit` chooses a preset by the data: 0/1, exact values, noisy ratings, likes.

        `search_line_` says which kind of data `fit` found. For likes alone, positive pairs without any other, there is
        no preset: `fit` warns and names `for_likes`.

        Parameters
        ----------
        **overrides
            Parameters of `AIR`; those of a solver need a preset.

        Examples
        --------
        >>> AIR.auto(random_state=0).solver
        'auto'
        """
        parameters: dict[str, Any] = {"clip": BINARY}
        parameters |= dict.fromkeys(("solver", "n_factors", "graph_neighbors", "pattern_graphs", "settings"), AUTO)
        return cls(**parameters | overrides)

    @staticmethod
    def for_likes(**parameters: Any) -> GraphRanker:
        """A model that ranks items from likes alone, without ratings or dislikes.

        `fit` chooses among a regression of the items, trained factors, and both, by the lists on hidden likes,
        the latest ones where there are times.
        `time_budget` limits its seconds. `search_line_` says what was chosen and why.

        Parameters
        ----------
        **parameters
            Those of `GraphRanker`.

        Examples
        --------
        >>> import numpy as np
        >>> likes = np.where(np.kron(np.eye(2), np.ones((6, 5))), 1.0, np.nan)  # two groups
        >>> likes[0, 0] = np.nan
        >>> AIR.for_likes(device="cpu").fit(likes).recommend(0, n=1)["item"].tolist()
        [0]
        """
        return GraphRanker(**parameters)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The call that makes the model: its preset, and what differs from that.

        Examples
        --------
        >>> AIR.for_ratings(n_factors=30, n_sweeps=40)
        AIR.for_ratings(n_factors=30, n_sweeps=40)
        """
        return shortest_call(self) or super().__repr__(N_CHAR_MAX)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, with `deep` also those of the solver, under names such as ``solver__depth``."""
        parameters: dict[str, Any] = super().get_params(deep)
        if deep and isinstance(self.solver, str) and not self.chooses_solver:  # the shorthand has parameters, too
            nested = as_solver(self.solver).get_params()
            parameters |= {f"solver__{name}": value for name, value in nested.items()}
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters, those of the solver under names such as ``solver__depth``."""
        for name in parameters:
            if name not in parameter_names(type(self)) and readers_of(name):
                raise ParameterError(f"{name} is a parameter of the solver: set solver__{name}")
        solver = parameters.get("solver", self.solver)
        if isinstance(solver, str) and any(name.startswith("solver__") for name in parameters):
            parameters["solver"] = as_solver(solver)
        return super().set_params(**parameters)

    @property
    def columns_read(self) -> tuple[str, ...]:
        """The columns "timestamp", "weight" and "relation" of a table, as far as the solver reads them."""
        times = () if getattr(self.solver, "time", None) is None else ("timestamp",)
        by_posterior = self.chooses_solver or isinstance(as_solver(self.solver), Sweeping)
        return (*times, "weight", "relation") if by_posterior else (*times, "weight")

    def engine(self) -> Engine:
        """The engine of the solver, not started; parameters that are "auto" follow from formulas."""
        if self.chooses_solver:
            raise ParameterError("solver='auto' is chosen by fit: expected a solver, or a preset, to have an engine")
        setup = self.setup(
            n_factors=self.n_factors,
            adjacency=self.adjacency,
            graph_neighbors=self.graph_neighbors,
            graph_refresh=self.graph_refresh,
        )
        return engine_of(setup, as_solver(self.solver))

    def check(self, data: Interactions, validation: Interactions | None = None) -> None:
        """Raise `ParameterError` or `DataError` where `fit` on these interactions would, before any work."""
        super().check(data, validation)
        if self.settings == "fixed" and self.search_budget != _BUDGET:
            warn_of_unread("search_budget", self.search_budget, "settings='auto'")
        self._check_snapshots(self.by_default(data).engine().n_steps(data))

    def check_parameters(self) -> None:
        """Raise `ParameterError` for a parameter that is out of its range, whatever the data and the machine."""
        if not self.chooses_solver:
            as_solver(self.solver).check()
        super().check_parameters()
        self._check_snapshots(math.inf)

    def _check_snapshots(self, last: float) -> None:
        if isinstance(self.snapshot_epochs, str) or not isinstance(self.snapshot_epochs, Iterable):
            raise ParameterError(f"snapshot_epochs must be a list of epochs, found {self.snapshot_epochs!r}")
        for epoch in self.snapshot_epochs:
            if check_integer("an entry of snapshot_epochs", epoch) > last:
                raise ParameterError(f"snapshot_epochs must be at most the last epoch or sweep, {last}, found {epoch}")

    @property
    def residual_strength(self) -> float | str:
        """The strength of what the item graph carries from rated items to others, see `solvers.Sweeping`."""
        return 0.0 if self.chooses_solver else getattr(as_solver(self.solver), "graph_residuals", 0.0)

    @property
    def settings_(self) -> dict[str, Any]:
        """Values that the training used for parameters that were "auto", by plain names."""
        carried = self.settled(self._fitted().chosen.values).residual_strength == AUTO
        return super().settings_ | ({"graph_residuals": self._fitted().residual_strength} if carried else {})

    def epochs_of_snapshots(self) -> tuple[int, ...]:
        """Epochs or sweeps at which the graphs are kept."""
        return tuple(self.snapshot_epochs)

    def spread_epochs(self, data: Interactions, count: int) -> tuple[int, ...]:
        """At most `count` epochs or sweeps of a training on `data` for `snapshot_epochs`, dense at first.

        The last one, which the model holds anyway, is not among them.

        Examples
        --------
        >>> from air_recsys import Interactions
        >>> AIR.for_ratings(n_sweeps=40).spread_epochs(Interactions.from_dense([[1.0, 2.0], [3.0, 4.0]]), 5)
        (0, 1, 3, 6, 16)
        """
        check_integer("count", count, minimum=1)
        return spread_steps(self.by_default(data).engine().n_steps(data), count)

    @property
    def user_graph_strength_(self) -> float:
        """Strength of the similarities of users given to `fit`; 0 without such."""
        return self._strength("user")

    @property
    def item_graph_strength_(self) -> float:
        """Strength of the similarities of items given to `fit`; 0 without such."""
        return self._strength("item")

    def _strength(self, side: Side) -> float:
        state = self._fitted()
        if not self.settled(state.chosen.values).engine().knows(state.data)[0 if side == "user" else 1]:
            return 0.0
        name = f"{side}_graph_strength"
        return float(self.settings_.get(name, getattr(self.solver_, name)))

    def shown_edges(self, state: FittedState, learned: SimilarityGraph, side: Side) -> sp.csr_array:
        """The edges that similarities are made of, in any unit."""
        own = learned.to_scipy()
        of_posterior = state.equations is not None and state.equations.sees_pattern
        if of_posterior:
            own = scaled_adjacency(own)
        if state.chosen.values.get("pattern_graphs", self.pattern_graphs) is not True:
            return own
        ratings = state.data.to_csr()
        rows = ratings if side == "user" else ratings.T
        if of_posterior:
            return with_pattern_of_isolated(own, rows)
        if learned.n_edges == len(learned) * (len(learned) - 1) // 2:
            own = strongest(own, _LEARNED_EDGES)
        return with_pattern(own, rows)

    def saved_parameters(self) -> dict[str, Any]:
        """The parameters as JSON can hold them."""
        epochs = [int(epoch) for epoch in self.snapshot_epochs]
        solver = AUTO if self.chooses_solver else as_solver(self.solver).to_json()
        return super().saved_parameters() | {"solver": solver, "snapshot_epochs": epochs}

    @classmethod
    def from_saved(cls, parameters: dict[str, Any]) -> Self:
        """The unfitted model with the parameters of a file."""
        saved, epochs = parameters["solver"], tuple(parameters.get("snapshot_epochs", ()))
        solver = AUTO if saved == AUTO else solver_from_json(saved)
        return cls(**parameters | {"solver": solver, "snapshot_epochs": epochs})


def _naming_solvers(init: Callable[..., None]) -> Callable[..., None]:
    """Wrap a constructor: a parameter that belongs to a solver is refused by its name."""

    @wraps(init)
    def checked(self: AIR, *args: Any, **parameters: Any) -> None:
        for name in parameters:
            if name not in parameter_names(AIR) and readers_of(name):
                reader = readers_of(name)[0].__name__
                raise ParameterError(
                    f"{name} is a parameter of the solver {reader}: expected AIR(solver={reader}({name}=...)), or a "
                    f"preset such as AIR.for_completion({name}=...)"
                )
        init(self, *args, **parameters)

    return checked


AIR.__init__ = _naming_solvers(AIR.__init__)
