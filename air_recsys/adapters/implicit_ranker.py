"""implicit: `GraphRanker` as a recommender."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from tqdm import tqdm

from air_recsys.adapters import implicit_ranker_files
from air_recsys.adapters.implicit_input import (
    as_confidences,
    check_filters,
    check_ids,
    check_rows,
    list_length,
    shape_of,
)
from air_recsys.adapters.implicit_lists import filled
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, NotFittedError
from air_recsys.graphs import SimilarityGraph
from air_recsys.models import AIR, GraphRanker
from air_recsys.models.lists_by_position import lists_of_users
from air_recsys.storage.validation import needs_extra

with needs_extra("implicit"):
    from implicit.recommender_base import RecommenderBase

__all__ = ["ImplicitRanker"]
_LOWEST = np.finfo(np.float64).min  # the score of what is left out


@dataclass(eq=False, repr=False)
class ImplicitRanker(RecommenderBase):
    """`AIR.for_likes()` with implicit's interface of a recommender.

    A score is no product of factors; for a matrix factorization take `air_recsys.adapters.implicit.ImplicitAIR`.
    Each like counts as 1, whatever its value.

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

    Examples
    --------
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

    # ---------------------------------------------------------------- fitting

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
        likes = _pattern(user_items)
        if not likes.nnz:
            raise DataError(f"expected at least one value > 0, found none in a matrix of shape {shape_of(likes)}")
        model = AIR.for_likes(**self._parameters())
        self.model_ = model.fit(Interactions.from_csr(likes))
        if show_progress:
            tqdm.write(model.search_line_, file=sys.stderr)

    # ---------------------------------------------------------------- lists

    def recommend(  # pyright: ignore[reportIncompatibleMethodOverride]  # implicit types no result
        self,
        userid: Any,
        user_items: Any,
        N: int = 10,
        filter_already_liked_items: bool = True,
        filter_items: Any = None,
        recalculate_user: bool = False,
        items: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Recommend as every model of implicit does; see ``implicit.als.AlternatingLeastSquares.recommend``.

        Lists have at most as many items as the model, and as `items`. What is left out, liked and filtered items,
        comes last where nothing else is left, with the lowest number of float64 as score. With `recalculate_user` the
        users are folded in from `user_items`, and only the number of `userid` counts. A user without any like gets
        the items that most users like. Scores order the items of a user and cannot be compared between users.

        Raises
        ------
        IndexError
            For ids that are not in the model, negative ones included.
        ValueError
            If `user_items` is not a csr_matrix, or has not one row for each user, or has too many columns.
        NotFittedError
            Before `fit`.
        """
        model = self._fitted()
        n_users, n_items = model.interactions_.n_users, model.interactions_.n_items
        if not recalculate_user:
            check_ids("userid", userid, n_users)
        check_filters("items", filter_items, items, n_items)
        check_rows(userid, user_items, n_items, read=filter_already_liked_items or recalculate_user)
        candidates = np.arange(n_items) if items is None else np.unique(np.asarray(items))
        allowed = candidates if filter_items is None else np.setdiff1d(candidates, filter_items)
        found, scores = lists_of_users(
            model,
            np.atleast_1d(userid),
            list_length(N, candidates, n_items),
            rows=_widened(_pattern(user_items), n_items) if recalculate_user else None,
            seen=_widened(user_items, n_items) if filter_already_liked_items else None,
            allowed=None if allowed.size == n_items else allowed,
        )
        places = np.where(found >= 0, np.searchsorted(candidates, found), -1)
        scores = filled(places, scores, candidates.size)
        ids = candidates[places].astype(np.int32)
        return (ids[0], scores[0]) if np.isscalar(userid) else (ids, scores)

    def similar_users(  # pyright: ignore[reportIncompatibleMethodOverride]  # implicit types no result
        self, userid: Any, N: int = 10, filter_users: Any = None, users: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the users with the heaviest edges in `model_.user_graph_`; see `similar_items`."""
        return self._similar("user", userid, N, filter_users, users)

    def similar_items(  # pyright: ignore[reportIncompatibleMethodOverride]  # implicit types no result
        self,
        itemid: Any,
        N: int = 10,
        recalculate_item: bool = False,
        item_users: Any = None,
        filter_items: Any = None,
        items: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the items with the heaviest edges in `model_.item_graph_`; ids and weights in 0..1.

        The item itself comes first, with 1; an item without likes is similar to no other. With `items`, those without
        an edge come last, with the lowest number of float64. Otherwise an item with few edges has a shorter list,
        which many ids at a time fill with the id -1 and that number.

        Raises
        ------
        IndexError
            For ids that are not in the model, negative ones included.
        NotImplementedError
            With `recalculate_item`: a graph has no new nodes.
        NotFittedError
            Before `fit`.
        """
        if recalculate_item:
            raise NotImplementedError("ImplicitRanker takes no new items: expected recalculate_item=False")
        return self._similar("item", itemid, N, filter_items, items)

    def _similar(self, side: str, ids: Any, n: int, filtered: Any, chosen: Any) -> tuple[np.ndarray, np.ndarray]:
        model = self._fitted()
        graph = model.user_graph_ if side == "user" else model.item_graph_
        assert graph is not None  # of every ranker
        check_ids(f"{side}id", ids, len(graph))
        check_filters(f"{side}s", filtered, chosen, len(graph))
        length = list_length(n, chosen, len(graph))
        lists = [_neighbors(graph, int(node), length, filtered, chosen) for node in np.atleast_1d(ids)]
        if np.isscalar(ids):
            return lists[0]
        found, weights = np.full((len(lists), length), -1, np.int32), np.full((len(lists), length), _LOWEST)
        for row, (nodes, similarities) in enumerate(lists):
            found[row, : nodes.size], weights[row, : nodes.size] = nodes, similarities
        return found, weights

    # ---------------------------------------------------------------- files

    def save(self, file: Any) -> None:
        """Write the model in NumPy's ``.npz``; a file of that name is replaced in one step.

        Parameters
        ----------
        file : str, Path or binary file
            ".npz" is added to a name that lacks it.
        """
        implicit_ranker_files.write(file, self._parameters(), self.model_)

    @classmethod
    def load(cls, fileobj_or_path: Any) -> Self:
        """Read a model that `save` wrote; no code in the file is run.

        Raises
        ------
        ModelFileError
            If the file is not such a model.
        """

        def restored(parameters: dict[str, Any], learned: GraphRanker | None) -> Self:
            model = cls(**parameters)
            model.model_ = learned
            return model

        return implicit_ranker_files.read(fileobj_or_path, restored)

    def _parameters(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def _fitted(self) -> GraphRanker:
        if self.model_ is None:
            raise NotFittedError("this ImplicitRanker is not fitted yet: call fit first")
        return self.model_


def _pattern(matrix: Any) -> sp.csr_matrix:
    """Return 1 for every like."""
    likes = as_confidences(matrix, 1.0)
    likes.data[:] = 1
    return likes


def _widened(rows: sp.csr_matrix, n_items: int) -> sp.csr_array:
    """Return 1 for every stored entry of rows, over all items of a model."""
    ones = np.ones(rows.nnz, dtype=np.float32)
    return sp.csr_array((ones, rows.indices, rows.indptr), shape=(shape_of(rows)[0], n_items))


def _neighbors(graph: SimilarityGraph, node: int, n: int, filtered: Any, chosen: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the list of a node: at most n ids, itself first, and their weights."""
    table = graph.neighbors(node, len(graph))
    ids = np.r_[node, table[graph.kind].to_numpy()].astype(np.int32)
    weights = np.r_[1.0, table["weight"].to_numpy()]
    if chosen is not None:
        others = np.setdiff1d(chosen, ids)
        kept = np.isin(ids, chosen)
        ids, weights = np.r_[ids[kept], others].astype(np.int32), np.r_[weights[kept], np.full(others.size, _LOWEST)]
    elif filtered is not None:
        kept = np.isin(ids, filtered, invert=True)
        ids, weights = ids[kept], weights[kept]
    return ids[:n], weights[:n]
