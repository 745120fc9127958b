"""implicit: `GraphRanker` as a recommender."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from tqdm import tqdm

from air_recsys.adapters import _implicit_files
from air_recsys.adapters._implicit_input import as_confidences, shape_of
from air_recsys.adapters._implicit_lists import Asked, GivesLists, filled
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, NotFittedError
from air_recsys.graphs import SimilarityGraph
from air_recsys.models import AIR, GraphRanker
from air_recsys.models.graph_ranker.inputs import ones_of
from air_recsys.models.graph_ranker.users import lists_of_users
from air_recsys.storage.validation import needs_extra

with needs_extra("implicit"):
    from implicit.recommender_base import RecommenderBase

_LOWEST = np.finfo(np.float64).min  # the score of what is left out


@dataclass(eq=False, repr=False)
class ImplicitRanker(GivesLists, RecommenderBase):  # pyright: ignore[reportIncompatibleMethodOverride]
    """`AIR.for_likes()` with implicit's interface of a recommender.

    A score is no product of factors, and orders the items of one user; for a matrix factorization take
    `air_recsys.adapters.implicit.ImplicitAIR`. Values say how much, see `GraphRanker`.

    Parameters
    ----------
    n_factors, n_steps, settings, time_budget, n_validation, random_state, device
        Those of `air_recsys.models.GraphRanker`. Matrices hold no times, so the parts that `fit` hides to choose its
        settings are drawn at random.

    Attributes
    ----------
    model_ : GraphRanker or None
        The trained model, with row and column numbers as ids: `explain`, graphs, `search_line_`, files that need no
        implicit.

    Notes
    -----
    With `recalculate_user` users are folded in. A user without any like gets the items that most users like.

    `similar_users` and `similar_items` list the heaviest edges of the graphs of `model_`, with weights in 0..1. A node
    itself comes first, with 1; one without likes is similar to no other. With chosen ids, those without an edge come
    last, with the lowest number of float64. Otherwise a node with few edges has a shorter list, which many ids at a
    time fill with the id -1 and that number. A graph has no new nodes: `recalculate_item` is refused.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> likes = sp.csr_matrix(np.kron(np.eye(2), np.ones((4, 4))) - np.eye(8))  # two groups, one item withheld each
    >>> model = ImplicitRanker(settings={}, device="cpu")
    >>> model.fit(likes, show_progress=False)
    >>> ids, scores = model.recommend([0, 5], likes[[0, 5]], N=1)
    >>> ids.tolist()
    [[0], [5]]
    """

    n_factors: int = 128
    n_steps: int = 150
    settings: Mapping[str, float] | None = None
    time_budget: float | None = None
    n_validation: int = 1000
    random_state: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        self.model_: GraphRanker | None = None

    def fit(self, user_items: Any, show_progress: bool = True, callback: Callable[..., Any] | None = None) -> None:
        """Train on a matrix of likes.

        Parameters
        ----------
        user_items : csr_matrix, shape (n_users, n_items)
            Values > 0; a stored zero is no like. Other sparse formats are converted, with implicit's
            `ParameterWarning`.
        show_progress : bool
            Write what was chosen, and why, to standard error.
        callback : None
            There are no epochs to report.

        Raises
        ------
        DataError
            For NaN, infinite or negative values, with the first place, and for a matrix without likes.
        ParameterError
            For a parameter out of range.
        NotImplementedError
            For a callback.
        """
        if callback is not None:
            raise NotImplementedError("ImplicitRanker has no epochs: expected no callback, or take ImplicitAIR")
        likes = as_confidences(user_items)
        if not likes.nnz:
            raise DataError(f"expected at least one value > 0, found none in a matrix of shape {shape_of(likes)}")
        model = AIR.for_likes(**self._parameters())
        self.model_ = model.fit(Interactions.from_csr(likes))
        if show_progress:
            tqdm.write(model.search_line_, file=sys.stderr)

    def _sizes(self) -> tuple[int, int]:
        data = self._fitted().interactions_
        return data.n_users, data.n_items

    def _recommended(self, asked: Asked, liked: Any, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        model, (_, n_items) = self._fitted(), self._sizes()
        candidates = np.arange(n_items) if asked.chosen is None else asked.chosen
        allowed = candidates if asked.filtered is None else np.setdiff1d(candidates, asked.filtered)
        if rows is not None:
            rows = as_confidences(rows)  # a copy, whose items may be the first of all
            rows.resize(shape_of(rows)[0], n_items)
        found, scores = lists_of_users(
            model,
            np.atleast_1d(asked.ids),
            min(asked.n, candidates.size),
            rows=None if rows is None else sp.csr_array(rows, dtype=np.float32),
            seen=None if liked is None else ones_of(liked, n_items),
            allowed=None if allowed.size == n_items else allowed,
        )
        places = np.where(found >= 0, np.searchsorted(candidates, found), -1)
        scores = filled(places, scores, candidates.size)
        return candidates[places].astype(np.int32), scores

    def _similar(self, side: str, asked: Asked, solved: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The heaviest edges in a graph of `model_`."""
        model = self._fitted()
        graph = model.user_graph_ if side == "user" else model.item_graph_
        assert graph is not None  # of every ranker
        lists = [_neighbors(graph, int(node), asked) for node in np.atleast_1d(asked.ids)]
        if np.isscalar(asked.ids):
            return lists[0]
        found, weights = np.full((len(lists), asked.n), -1, np.int32), np.full((len(lists), asked.n), _LOWEST)
        for row, (nodes, similarities) in enumerate(lists):
            found[row, : nodes.size], weights[row, : nodes.size] = nodes, similarities
        return found, weights

    def save(self, file: Any) -> None:
        """Write the model in NumPy's ``.npz``, the library's own model file in it; a file is replaced in one step.

        Parameters
        ----------
        file : str, Path or binary file
            ".npz" is added to a name that lacks it.
        """
        arrays = {}
        if self.model_ is not None:
            with tempfile.TemporaryDirectory() as folder:
                content = self.model_.save(Path(folder) / "model.air").read_bytes()
            arrays["model"] = np.frombuffer(content, dtype=np.uint8)
        _implicit_files.write(file, type(self).__name__, self._parameters(), arrays, {})

    @classmethod
    def _restored(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        model = cls(**header["parameters"])
        if "model" in arrays:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model.air"
                path.write_bytes(arrays["model"].tobytes())
                model.model_ = GraphRanker.load(path)
        return model

    def _parameters(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def _fitted(self) -> GraphRanker:
        if self.model_ is None:
            raise NotFittedError("this ImplicitRanker is not fitted yet: call fit first")
        return self.model_


def _neighbors(graph: SimilarityGraph, node: int, asked: Asked) -> tuple[np.ndarray, np.ndarray]:
    """The list of a node: at most n ids, itself first, and their weights."""
    table = graph.neighbors(node, len(graph))
    ids = np.r_[node, table[graph.kind].to_numpy()].astype(np.int32)
    weights = np.r_[1.0, table["weight"].to_numpy()]
    if asked.chosen is not None:
        others = np.setdiff1d(asked.chosen, ids)
        kept = np.isin(ids, asked.chosen)
        ids, weights = np.r_[ids[kept], others].astype(np.int32), np.r_[weights[kept], np.full(others.size, _LOWEST)]
    elif asked.filtered is not None:
        kept = np.isin(ids, asked.filtered, invert=True)
        ids, weights = ids[kept], weights[kept]
    return ids[: asked.n], weights[: asked.n]
