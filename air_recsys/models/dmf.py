"""AIR's objective without learned graphs: DMF, with total variation (RDMF), with given graphs (DirichletDMF)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from air_recsys.data.ids import IdIndex
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.graphs import SimilarityGraph
from air_recsys.graphs.neighbors import cosine_neighbors
from air_recsys.models.air import AIR
from air_recsys.models.engines import Engine, ObjectiveEngine
from air_recsys.models.presets import TakesValuesOfAdam
from air_recsys.models.rows import SIDES
from air_recsys.models.solvers import Adam, Descent, Regularization, as_solver
from air_recsys.models.state import FittedState
from air_recsys.models.storage.fingerprint import hash_arrays
from air_recsys.models.trained import TrainedRecommender
from air_recsys.storage.validation import integer, real


@dataclass(eq=False, repr=False)
class DMF(TakesValuesOfAdam, Descent, TrainedRecommender):
    """Deep matrix factorization: AIR's objective without the two graphs, so only the depth regularizes.

    Parameters
    ----------
    n_factors : int, "auto" or None
        Width of the factorization; None is full width, "auto" 20.
    depth, n_epochs, n_batches, learning_rate, schedule, weight_decay, bias_decay, biases, center, scale, \
unobserved_weight, init_mean, init_std, stopping_delta, evaluate_every
        How the factors are trained, see `air_recsys.models.solvers.Descent`.
    validation_fraction, patience, clip, dtype, device, random_state, max_memory, verbose, n_threads
        See `air_recsys.models.trained.TrainedRecommender`.

    Source: Arora, Cohen, Hu, Luo, Implicit Regularization in Deep Matrix Factorization, NeurIPS 2019.
    """

    n_factors: int | str | None = integer(None, minimum=1, besides=("auto", None))

    @classmethod
    def like(cls, model: AIR) -> Self:
        """The same model as `model` but for the graphs, not fitted.

        Raises
        ------
        ParameterError
            For a model with another solver than `Adam`, which has no objective without graphs.
        """
        solver = as_solver(model.solver)
        if not isinstance(solver, Adam):
            raise ParameterError(
                f"DMF is AIR's objective without graphs: expected a model with solver='adam', found {solver!r}"
            )
        return cls(**cls._taken(model.get_params(deep=False) | solver.get_params()))

    def engine(self) -> Engine:
        """The engine of the objective, without graphs."""
        return ObjectiveEngine(self.setup(n_factors=self.n_factors), self, _NO_GRAPHS)


@dataclass(eq=False, repr=False)
class RDMF(TakesValuesOfAdam, Descent, TrainedRecommender):
    """Regularized deep matrix factorization, for pictures: `DMF` at full width with total variation.

    Parameters
    ----------
    tv_reg : float
        Strength tau of the total variation against the mean squared error, see `air_recsys.nn.terms.TotalVariation`.
    depth, n_epochs, n_batches, learning_rate, schedule, weight_decay, bias_decay, biases, center, scale, \
unobserved_weight, init_mean, init_std, stopping_delta, evaluate_every, validation_fraction, patience, clip, dtype, \
device, random_state, max_memory, verbose, n_threads
        As in `DMF`.

    Source: Li, Xu, Luo, Wang, A regularised deep matrix factorised model of matrix completion for image restoration,
    IET Image Processing 16, 2022.
    """

    tv_reg: float = real(1e-3)

    @classmethod
    def of_preset(cls, preset: str, **overrides: Any) -> Self:
        """The model of a preset; total variation sees the whole matrix at once."""
        return super().of_preset(preset, **{"n_batches": 1} | overrides)

    def engine(self) -> Engine:
        """The engine of the objective, with total variation in place of graphs."""
        return ObjectiveEngine(self.setup(n_factors=None), self, replace(_NO_GRAPHS, tv_reg=self.tv_reg))


@dataclass(eq=False, repr=False)
class DirichletDMF(TakesValuesOfAdam, Descent, TrainedRecommender):
    """DMF + DE: deep matrix factorization with the Dirichlet energies of two graphs that stay as they are.

    Parameters
    ----------
    user_graph, item_graph : SimilarityGraph, sparse array, ndarray, "neighbors" or None
        A matrix has a row per user (item) in the order of the ids. A `SimilarityGraph` is matched by its ids, and
        users (items) that it lacks stay isolated. "neighbors" takes each row's `n_neighbors` nearest by
        the cosine of the observed ratings less the mean; None leaves the graph out.
    user_graph_reg, item_graph_reg : float or "auto"
        Strengths of the two energies, as in `air_recsys.models.solvers.Regularization`.
    n_neighbors : int
        For "neighbors".
    n_factors, depth, n_epochs, n_batches, learning_rate, schedule, weight_decay, bias_decay, biases, center, scale, \
unobserved_weight, init_mean, init_std, stopping_delta, evaluate_every, validation_fraction, patience, clip, dtype, \
device, random_state, max_memory, verbose, n_threads
        As in `DMF`.

    Source: the column DMF + DE of the paper's Table 1.

    Examples
    --------
    >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((2, 4)))
    >>> ratings[0, 0] = np.nan
    >>> pairs = np.kron(np.eye(2), [[0, 1], [1, 0]])  # users 0 and 1 are alike, and so are 2 and 3
    >>> model = DirichletDMF(pairs, None, n_epochs=2000, init_std=0.1, random_state=0, device="cpu").fit(ratings)
    >>> model.predict(0, 0).round(1)
    array([5.])
    """

    user_graph: Any = "neighbors"
    item_graph: Any = "neighbors"
    user_graph_reg: float | str = real(1e-4, besides=("auto",))
    item_graph_reg: float | str = real(1e-4, besides=("auto",))
    n_neighbors: int = integer(10, minimum=1)
    n_factors: int | str | None = integer(None, minimum=1, besides=("auto", None))

    def engine(self) -> Engine:
        """The engine of the objective, with the given graphs."""
        strengths = Regularization(user_graph_reg=self.user_graph_reg, item_graph_reg=self.item_graph_reg)
        return ObjectiveEngine(self.setup(n_factors=self.n_factors), self, strengths, self._given)

    def _given(self, data: Interactions) -> tuple[sp.csr_array | None, sp.csr_array | None]:
        users, items = (
            None if graph is None else _adjacency(graph, kind, data, self.n_neighbors)
            for kind, graph in self._graphs()
        )
        return users, items

    def _graphs(self) -> list[tuple[str, Any]]:
        return [("user", self.user_graph), ("item", self.item_graph)]

    def check(self, data: Interactions, validation: Interactions | None = None) -> None:
        """Raise `ParameterError` or `DataError` where `fit` on these interactions would, before any work."""
        self.check_parameters()
        for kind, graph in self._graphs():
            if isinstance(graph, str):
                _check_name(graph, kind)  # building it belongs to the work
            elif graph is not None:
                _adjacency(graph, kind, data, self.n_neighbors)
        super().check(data, validation)

    def check_parameters(self) -> None:
        """Raise `ParameterError` for a parameter that is out of its range, whatever the data and the machine."""
        super().check_parameters()
        for kind, graph in self._graphs():
            if isinstance(graph, str) and graph != _GIVEN:
                _check_name(graph, kind)

    def saved_parameters(self) -> dict[str, Any]:
        """The parameters as JSON can hold them."""
        saved = super().saved_parameters()
        for name in ("user_graph", "item_graph"):
            if not isinstance(saved[name], str | None):
                saved[name] = _GIVEN
        return saved

    def compared_parameters(self, data: Interactions) -> dict[str, Any]:
        """The parameters that a checkpoint has to agree with."""
        compared = super().compared_parameters(data)
        for kind, graph in self._graphs():
            if compared[f"{kind}_graph"] == _GIVEN:
                edges = _adjacency(graph, kind, data, self.n_neighbors)
                digest = hash_arrays(edges.indptr, edges.indices, edges.data).hexdigest()
                compared[f"{kind}_graph"] = f"{_GIVEN}, {digest[:16]}"
        return compared

    def take_state(self, state: FittedState) -> Self:
        """Hold a fitted state, of a file or with other users and items, and return the model: so are given graphs."""
        for side in SIDES:
            graph = getattr(self, f"{side}_graph")
            if not isinstance(graph, str | None) or graph == _GIVEN:
                setattr(self, f"{side}_graph", state.origin.graph(side))
        return super().take_state(state)


_GIVEN = "given"
_NO_GRAPHS = Regularization(user_graph_reg=0.0, item_graph_reg=0.0)


def _adjacency(graph: Any, kind: str, data: Interactions, n_neighbors: int) -> sp.csr_array:
    ids = data.user_ids if kind == "user" else data.item_ids
    if isinstance(graph, str):
        ratings = data.to_csr()
        ratings.data = ratings.data - ratings.data.mean()
        return cosine_neighbors(ratings if kind == "user" else sp.csr_array(ratings.T), n_neighbors)
    try:
        if isinstance(graph, SimilarityGraph):
            return _matched(graph, ids)
        return SimilarityGraph(graph, ids, kind).to_scipy()
    except (DataError, ValueError, TypeError) as error:
        raise DataError(f"{kind}_graph must be a graph over the {kind}s: {error}") from None


def _check_name(name: str, kind: str) -> None:
    if name != "neighbors":
        raise ParameterError(f'{kind}_graph must be a graph, a matrix, "neighbors" or None, found {name!r}')


def _matched(graph: SimilarityGraph, ids: np.ndarray) -> sp.csr_array:
    columns = IdIndex(graph.ids, graph.kind).lookup(ids)
    rows = np.flatnonzero(columns >= 0)
    if not rows.size:
        raise DataError(f"expected ids of the data, such as {ids[0]!r}, found none of them")
    choose = sp.csr_array((np.ones(rows.size), (rows, columns[rows])), shape=(ids.size, len(graph)))
    return sp.csr_array(choose @ graph.to_scipy() @ choose.T)
