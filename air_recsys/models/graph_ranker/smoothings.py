"""The smoothings of a `GraphRanker`: each scores a block of users by one product of two matrices.

That of the regression is in `air_recsys.models.graph_ranker.regression`.

Sparse products are sums in one order, on every processor. Dense ones and powers are computed in double precision,
since their last bits depend on the processor.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import scipy.sparse as sp
import torch

from air_recsys.data.interactions import Interactions
from air_recsys.graphs.cooccurrence import cooccurrence_neighbors, scaled
from air_recsys.metrics.checks import Csr

_SUMMED = 8192  # entries of a sum in single precision
_SHORTEST = 1e-30  # of lengths: the largest weight over it is finite in float32


class RankerSettings(NamedTuple):
    """What a `GraphRanker` chooses on a hidden part of its training data.

    An exponent says how much less something popular counts: it is divided by (number of its interactions)^exponent.
    """

    item_neighbors: int = 500  # edges that each item chooses
    item_exponent: float = 0.5  # of users, where items are compared
    item_power: float = 1.15  # of the weights of the item graph
    item_source: float = 0.25  # of a user's own items
    item_target: float = -0.25  # of the recommended items
    user_neighbors: int = 100
    user_exponent: float = 0.5  # of items, where users are compared
    user_power: float = 1.0
    user_target: float = 0.25
    factor_temperature: float = 0.15  # of the exponentials of cosines; 0: the cosines themselves
    regression_exponent: float = 0.5  # of users, where items are regressed on each other
    regression_share: float = 1.0  # of the items' own degrees in the penalty; the rest is the same for all
    regression_penalty: float = 8.0
    regression_source: float = 0.25
    regression_target: float = -0.25
    user_half_life: float = 0.0  # an item counts half if its user has so many later ones; 0: all count alike
    item_trend: float = 0.0  # power of an item's share of the latest interactions over its share of all
    item_weight: float = 0.0
    user_weight: float = 0.0
    factor_weight: float = 0.5
    regression_weight: float = 1.0

    @property
    def weights(self) -> dict[str, float]:
        """How much each term counts: item and user graph, factors and regression; those that count alone."""
        names = ("item", "user", "factor", "regression")
        weights = {name: getattr(self, f"{name}_weight") for name in names}
        return {name: weight for name, weight in weights.items() if weight}


class Rough(Protocol):
    """Scores of all items in single precision, and those of some items of each user in double precision."""

    def added(self, weight: float, total: np.ndarray | None) -> np.ndarray:
        """Return a sum of scores, float32 (b, n_items) or None, with these added; may be written over the sum."""
        ...

    def at(self, items: np.ndarray) -> np.ndarray:
        """Return the scores of some items of each user, float64, (b, m)."""
        ...


class RoughProduct(NamedTuple):
    """The scores of a product."""

    product: np.ndarray  # float32, (b, n_items)
    lengths: np.ndarray  # (b, 1)

    def added(self, weight: float, total: np.ndarray | None) -> np.ndarray:
        """Return a sum of scores with these added."""
        scales = (weight / self.lengths).astype(np.float32)
        return self.product * scales if total is None else times_added(total, self.product, scales)

    def at(self, items: np.ndarray) -> np.ndarray:
        """Return the scores of some items of each user."""
        return np.take_along_axis(self.product, items, axis=1) / self.lengths


class Term(Protocol):
    """What takes part in the scores of a `GraphRanker`."""

    def scores(self, users: np.ndarray) -> np.ndarray:
        """Return the scores of all items for some users, of length 1 each (or 0); float64, shape (b, n_items)."""
        ...

    def rough(self, users: np.ndarray, room: np.ndarray) -> Rough:
        """Return the same, faster: for lists. They may be held in `room`, float32, (b, n_items)."""
        ...

    def for_users(self, left: Any) -> Self:
        """Return the term for other users, who have these rows."""
        ...


class Smoothing(NamedTuple):
    """Scores as a product, before each user's are divided by their length."""

    left: Csr  # (n_users, r)
    right: Csr | np.ndarray  # (r, n_items)

    def scores(self, users: np.ndarray) -> np.ndarray:
        """Return the scores of all items for some users, of length 1 each (or 0); float64, shape (b, n_items)."""
        return of_length_one(self.product(users))

    def rough(self, users: np.ndarray, room: np.ndarray) -> Rough:
        """Return the scores for lists; those in double precision are the same as `scores`."""
        product: Any = self.left[users] @ self.right
        lengths = lengths_of(product)
        if sp.issparse(product):
            product = product.toarray(out=room if product.dtype == room.dtype else None)
        return RoughProduct(product, lengths)

    def for_users(self, left: Csr) -> Smoothing:
        """Return the smoothing of other rows."""
        return self._replace(left=left)

    def product(self, users: np.ndarray) -> np.ndarray:
        """Return the product for some users, (b, n_items)."""
        product: Any = self.left[users] @ self.right
        return product.toarray() if sp.issparse(product) else product


def of_length_one(scores: np.ndarray) -> np.ndarray:
    """Return the scores of each user, (b, n_items), divided by their length, in float64; 0 where all are.

    Examples
    --------
    >>> of_length_one(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    unit = np.array(scores, dtype=np.float64)
    unit /= lengths_of(unit)
    return unit


def lengths_of(scores: Any) -> np.ndarray:
    """Return the length of each row, of a dense or a sparse array, in float64, at least 1e-30, (b, 1).

    Examples
    --------
    >>> lengths_of(np.array([[3.0, 4.0]]))
    array([[5.]])
    """
    if sp.issparse(scores):
        values = scores.data.astype(np.float64)
        rows = (values[start:stop] for start, stop in itertools.pairwise(scores.indptr))
        # Not by a product of BLAS: its threads, in each of several workers, wait for each other.
        squares = np.array([np.einsum("i,i->", row, row) for row in rows])
    else:
        squares = np.einsum("bi,bi->b", scores, scores, dtype=np.float64)
    return np.maximum(np.sqrt(squares), _SHORTEST)[:, None]


def rough_lengths(scores: np.ndarray) -> np.ndarray:
    """Return the length of each row, (b, 1), from sums of some entries in single precision, and of these in double.

    Examples
    --------
    >>> rough_lengths(np.array([[3.0, 4.0]], dtype=np.float32))
    array([[5.]])
    """
    starts = range(0, scores.shape[1], _SUMMED)
    parts = (scores[:, start : start + _SUMMED] for start in starts)
    squares = sum(np.einsum("bi,bi->b", part, part).astype(np.float64) for part in parts)
    return np.maximum(np.sqrt(squares), _SHORTEST)[:, None]


def times_added(total: np.ndarray, values: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Add values, (b, n_items), times a number of each row, (b, 1), in single precision, and return the total."""
    torch.from_numpy(total).addcmul_(*(torch.from_numpy(each) for each in (values, scales)))
    return total


def interaction_pattern(data: Interactions) -> Csr:
    """Return 1 for every pair that interacted, shape (n_users, n_items)."""
    ones = np.ones(data.n_ratings, dtype=np.float32)
    return sp.csr_array((ones, (data.user_index, data.item_index)), shape=(data.n_users, data.n_items))


def popularity(pattern: Csr) -> np.ndarray:
    """Return how many interactions each item has, at least 1; shape (n_items,)."""
    counts = np.bincount(pattern.indices, minlength=pattern.shape[1])
    return np.maximum(counts, 1).astype(np.float32)


def some_users(pattern: Csr, seed: int, most: int) -> Csr:
    """Return the rows of a pattern, or some of them, at random, that have at most so many interactions.

    Examples
    --------
    >>> some_users(sp.csr_array(np.ones((2, 5), dtype=np.float32)), 0, 5).shape
    (1, 5)
    """
    if pattern.nnz <= most:
        return pattern
    users = np.random.default_rng(seed).permutation(pattern.shape[0])
    within = np.cumsum(np.diff(pattern.indptr)[users]) <= most
    return pattern[np.sort(users[within])]


def item_graph(pattern: Csr, settings: RankerSettings) -> Csr:
    """Return the graph over the items, its weights to no power yet; shape (n_items, n_items)."""
    return cooccurrence_neighbors(sp.csr_array(pattern.T), settings.item_neighbors, settings.item_exponent)


def user_graph(pattern: Csr, settings: RankerSettings) -> Csr:
    """Return the graph over the users, its weights to no power yet; shape (n_users, n_users)."""
    return cooccurrence_neighbors(pattern, settings.user_neighbors, settings.user_exponent)


def to_power(values: np.ndarray, exponent: float) -> np.ndarray:
    """Return powers of float32 numbers, rounded once from double precision.

    Examples
    --------
    >>> to_power(np.array([4.0], dtype=np.float32), 0.5)
    array([2.], dtype=float32)
    """
    return (values.astype(np.float64) ** exponent).astype(np.float32)


def divided(pattern: Csr, counts: np.ndarray, exponent: float) -> Csr:
    """Return a pattern with each column over a power of its count.

    Examples
    --------
    >>> divided(sp.csr_array([[1.0, 0.0, 1.0]]), np.array([1, 2, 4]), 0.5).toarray()
    array([[1. , 0. , 0.5]])
    """
    powers = (counts.astype(np.float64) ** -exponent).astype(pattern.dtype)
    return sp.csr_array((pattern.data * powers[pattern.indices], pattern.indices, pattern.indptr), shape=pattern.shape)


def raised(graph: Csr, power: float) -> Csr:
    """Return a graph with its weights to a power."""
    return sp.csr_array((to_power(graph.data, power), graph.indices, graph.indptr), shape=graph.shape)


def over_items(pattern: Csr, graph: Csr, settings: RankerSettings) -> Smoothing:
    """Return the smoothing of a user's items over the item graph."""
    right = sp.csr_array(graph * to_power(popularity(pattern), -settings.item_target))
    return Smoothing(scaled(pattern, 0, settings.item_source), right)


def over_users(pattern: Csr, graph: Csr, settings: RankerSettings) -> Smoothing:
    """Return the smoothing of the users of an item over the user graph."""
    return Smoothing(graph, scaled(pattern, 0, settings.user_target))


def blend(terms: Mapping[str, Term], weights: Mapping[str, float], users: np.ndarray, n_items: int) -> np.ndarray:
    """Return the weighted sum of the scores of the terms that have weights, shape (b, n_items)."""
    scores = np.zeros((users.size, n_items))
    for name, weight in weights.items():
        scores += weight * terms[name].scores(users)
    return scores
