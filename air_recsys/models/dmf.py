"""`AIR` without its learned graphs: DMF, with total variation (RDMF), with graphs that are given (DirichletDMF)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from air_recsys.exceptions import DataError, ParameterError
from air_recsys.graphs import SimilarityGraph
from air_recsys.graphs.neighbors import cosine_neighbors
from air_recsys.interactions import Interactions
from air_recsys.models.air import AIR
from air_recsys.models.fingerprint import hash_arrays
from air_recsys.nn.build import Settings
from air_recsys.validation import RandomState, check_integer


class DMF(AIR):
    """Deep matrix factorization: `AIR` without the two graphs, so only the depth regularizes.

    Parameters
    ----------
    n_factors, depth, n_epochs, n_batches, learning_rate, schedule, weight_decay, bias_decay, biases, center, scale, \
unobserved_weight, init_mean, init_std, clip, dtype, device, random_state, verbose
        As in `AIR`.

    Source: Arora, Cohen, Hu, Luo, Implicit Regularization in Deep Matrix Factorization, NeurIPS 2019.
    """

    def __init__(
        self,
        n_factors: int | None = None,
        depth: int = 3,
        n_epochs: int = 10_000,
        n_batches: int = 1,
        learning_rate: float = 1e-3,
        schedule: str = "constant",
        weight_decay: float = 0.0,
        bias_decay: float = 0.0,
        biases: bool = False,
        center: bool = False,
        scale: bool = True,
        unobserved_weight: float = 0.0,
        init_mean: float = 1e-3,
        init_std: float = 1e-3,
        clip: bool = False,
        dtype: str = "float32",
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        own = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        super().__init__(user_graph_reg=0.0, item_graph_reg=0.0, **own)

    @classmethod
    def like(cls, model: AIR) -> Self:
        """Return the same model as `model` but for the graphs, not fitted."""
        names = cls().get_params()
        return cls(**{name: value for name, value in model.get_params().items() if name in names})


class RDMF(AIR):
    """Regularized deep matrix factorization, for pictures: `DMF` at full width with total variation.

    Parameters
    ----------
    tv_reg : float
        Strength tau of the total variation against the mean squared error, see `air_recsys.nn.terms.TotalVariation`.
    depth, n_epochs, learning_rate, schedule, scale, init_mean, init_std, dtype, device, random_state, verbose
        As in `AIR`.

    Source: Li, Xu, Luo, Wang, A regularised deep matrix factorised model of matrix completion for image restoration,
    IET Image Processing 16, 2022.
    """

    def __init__(
        self,
        tv_reg: float = 1e-3,
        depth: int = 3,
        n_epochs: int = 10_000,
        learning_rate: float = 1e-3,
        schedule: str = "constant",
        scale: bool = True,
        init_mean: float = 1e-3,
        init_std: float = 1e-3,
        dtype: str = "float32",
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        own = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        super().__init__(user_graph_reg=0.0, item_graph_reg=0.0, **own)


class DirichletDMF(AIR):
    """DMF + DE: deep matrix factorization with the Dirichlet energies of two graphs that stay as they are.

    Parameters
    ----------
    user_graph, item_graph : SimilarityGraph, sparse array, ndarray, "neighbors" or None
        A graph as matrix has a row per user (item) in the order of the ids; a `SimilarityGraph` is matched by its ids,
        and users (items) that it does not know stay isolated. "neighbors" takes each row's `n_neighbors` nearest by
        the cosine of the observed ratings less the mean; None leaves the graph out.
    user_graph_reg, item_graph_reg : float or "auto"
        Strengths of the two energies, as in `AIR`.
    n_neighbors : int
        For "neighbors".
    n_factors, depth, n_epochs, learning_rate, schedule, scale, init_mean, init_std, dtype, device, random_state, \
verbose
        As in `AIR`.

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

    def __init__(
        self,
        user_graph: Any = "neighbors",
        item_graph: Any = "neighbors",
        user_graph_reg: float = 1e-4,
        item_graph_reg: float = 1e-4,
        n_neighbors: int = 10,
        n_factors: int | None = None,
        depth: int = 3,
        n_epochs: int = 10_000,
        learning_rate: float = 1e-3,
        schedule: str = "constant",
        scale: bool = True,
        init_mean: float = 1e-3,
        init_std: float = 1e-3,
        dtype: str = "float32",
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        own = {name: value for name, value in locals().items() if name not in _NOT_OF_AIR}
        super().__init__(**own)
        self.user_graph = user_graph
        self.item_graph = item_graph
        self.n_neighbors = n_neighbors

    def _graphs(self) -> list[tuple[str, Any]]:
        return [("user", self.user_graph), ("item", self.item_graph)]

    def _check_parameters(self, data: Interactions) -> None:
        check_integer("n_neighbors", self.n_neighbors, minimum=1)
        super()._check_parameters(data)
        for kind, graph in self._graphs():
            if isinstance(graph, str):
                _check_name(graph, kind)  # building it belongs to the work
            elif graph is not None:
                _adjacency(graph, kind, data, self.n_neighbors)

    def _settings(self, data: Interactions) -> Settings:
        users, items = (
            None if graph is None else _adjacency(graph, kind, data, self.n_neighbors)
            for kind, graph in self._graphs()
        )
        plain = super()._settings(data)
        strengths = (
            plain.strengths[0] if users is not None else 0.0,
            plain.strengths[1] if items is not None else 0.0,
        )
        return replace(plain, given=(users, items), strengths=strengths)

    def _saved_parameters(self, data: Interactions) -> dict[str, Any]:
        saved = super()._saved_parameters(data)
        for name in ("user_graph", "item_graph"):
            if not isinstance(saved[name], str | None):
                saved[name] = _GIVEN
        return saved

    def _compared_parameters(self, data: Interactions) -> dict[str, Any]:
        compared = super()._compared_parameters(data)
        for kind, graph in self._graphs():
            if compared[f"{kind}_graph"] == _GIVEN:
                compared[f"{kind}_graph"] = _mark(_adjacency(graph, kind, data, self.n_neighbors))
        return compared

    def _after_load(self) -> None:
        super()._after_load()
        for name in ("user_graph", "item_graph"):
            if getattr(self, name) == _GIVEN:
                setattr(self, name, getattr(self, f"{name}_"))


_GIVEN = "given"
_NOT_OF_AIR = ("self", "__class__", "user_graph", "item_graph", "n_neighbors")


def _adjacency(graph: Any, kind: str, data: Interactions, n_neighbors: int) -> sp.csr_array:
    ids = data.user_ids if kind == "user" else data.item_ids
    if isinstance(graph, str):
        return _built(kind, data, n_neighbors)
    try:
        if isinstance(graph, SimilarityGraph):
            return _matched(graph, ids)
        return SimilarityGraph(graph, ids, kind).to_scipy()
    except (DataError, ValueError, TypeError) as error:
        raise DataError(f"{kind}_graph must be a graph over the {kind}s: {error}") from None


def _check_name(name: str, kind: str) -> None:
    if name != "neighbors":
        raise ParameterError(f'{kind}_graph must be a graph, a matrix, "neighbors" or None, found {name!r}')


def _built(kind: str, data: Interactions, n_neighbors: int) -> sp.csr_array:
    ratings = data.to_csr()
    ratings.data = ratings.data - ratings.data.mean()
    return cosine_neighbors(ratings if kind == "user" else sp.csr_array(ratings.T), n_neighbors)


def _mark(adjacency: sp.csr_array) -> str:
    found = hash_arrays(adjacency.indptr, adjacency.indices, adjacency.data)
    return f"{_GIVEN}, {found.hexdigest()[:16]}"


def _matched(graph: SimilarityGraph, ids: np.ndarray) -> sp.csr_array:
    place = {node: row for row, node in enumerate(graph.ids.tolist())}
    known = [(row, place[node]) for row, node in enumerate(ids.tolist()) if node in place]
    if not known:
        raise DataError(f"found none of the ids of the data, such as {ids[0]!r}, in it")
    rows, columns = np.array(known).T
    choose = sp.csr_array((np.ones(rows.size), (rows, columns)), shape=(ids.size, len(graph)))
    return sp.csr_array(choose @ graph.to_scipy() @ choose.T)
