"""The scorers of a `GraphRanker`, regression and factors, and the weighted sum of their scores.

Sparse products are sums in one order, on every processor. Dense ones and powers are computed in double precision,
since their last bits depend on the processor. For lists each scorer has a faster form as well: all scores in single
precision, and those of some items in double precision.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import scipy.sparse as sp
import torch

from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.factors import ItemFactors, user_factors
from air_recsys.models.graph_ranker.inputs import times_columns
from air_recsys.models.ranking.catalogue import Catalogue

_SUMMED = 8192  # entries of a sum in single precision
_SHORTEST = 1e-30  # of lengths: the largest weight over it is finite in float32


class BlockScores(NamedTuple):
    """The scores of a block of users for lists."""

    values: np.ndarray  # float32, (b, n_items), before they are divided by the lengths
    lengths: np.ndarray  # (b, 1)
    exact: Callable[[np.ndarray], np.ndarray]  # of some items of each user, (b, m): their scores, float64


class Scorer(Protocol):
    """What takes part in the scores of a `GraphRanker`."""

    def scores(self, users: np.ndarray) -> np.ndarray:
        """The scores of all items for some users, of length 1 each (or 0); float64, (b, n_items)."""
        ...

    def block(self, users: np.ndarray, buffer: np.ndarray) -> BlockScores:
        """The same for lists; they may be held in `buffer`, float32, (b, n_items)."""
        ...

    def for_users(self, own: Csr) -> Self:
        """The scorer of other users, by how much their items count, (b, n_items)."""
        ...


class ProductScorer(NamedTuple):
    """Scores that are a product, each user's divided by their length."""

    left: Csr  # (n_users, r)
    right: Csr | np.ndarray  # (r, n_items)
    scales: np.ndarray  # what the items of users are multiplied by in `left`, (r,)

    def scores(self, users: np.ndarray) -> np.ndarray:
        """The scores of all items for some users, of length 1 each (or 0); float64, (b, n_items)."""
        return of_length_one(self.products(users))

    def products(self, users: np.ndarray) -> np.ndarray:
        """The products of some users, (b, n_items)."""
        product = self._product(users)
        return product.toarray() if sp.issparse(product) else product

    def block(self, users: np.ndarray, buffer: np.ndarray) -> BlockScores:
        """The scores for lists; those in double precision are the same as `scores`."""
        product = self._product(users)
        lengths = lengths_of(product)
        if sp.issparse(product):
            product = product.toarray(out=buffer if product.dtype == buffer.dtype else None)
        return BlockScores(product, lengths, lambda items: np.take_along_axis(product, items, axis=1) / lengths)

    def for_users(self, own: Csr) -> ProductScorer:
        """The scorer of other users, by how much their items count."""
        return self._replace(left=times_columns(own, self.scales))

    def _product(self, users: np.ndarray) -> Any:
        return self.left[users] @ self.right


class FactorScorer(NamedTuple):
    """The scores exp(u . q / temperature + t) of factors, divided by their length."""

    users: np.ndarray  # u, (n_users, r)
    items: Catalogue  # q, and t, the trends of the items
    sources: np.ndarray  # of the items in u, (n_items, r)
    temperature: float

    @classmethod
    def of(cls, users: np.ndarray, factors: ItemFactors, temperature: float, trend: np.ndarray) -> FactorScorer:
        """The scorer of the factors of users, (n_users, r), and of items, with the logs of trends, (n_items,)."""
        targets = np.require(factors.targets, np.float32, ["C", "W"])
        items = Catalogue(targets, np.asarray(trend, np.float32), torch.device("cpu"))
        return cls(users, items, factors.sources, temperature)

    def scores(self, users: np.ndarray) -> np.ndarray:
        """The scores of all items for some users, of length 1 each (or 0); float64, (b, n_items)."""
        own = self.users[users].astype(np.float64)
        product = own @ self.items.factors.astype(np.float64).T
        product /= self.temperature
        product += self.items.offsets
        product -= product.max(axis=1, keepdims=True)
        np.exp(product, out=product)
        product[~own.any(axis=1)] = 0  # who has no items
        return of_length_one(product)

    def block(self, users: np.ndarray, buffer: np.ndarray) -> BlockScores:
        """The scores for lists; the lengths of those in double precision are of single precision."""
        own = torch.from_numpy(self.users[users].astype(np.float32))
        known = own.any(dim=1, keepdim=True)  # who has items
        values = self.items.approximate(own / self.temperature, torch.from_numpy(buffer))
        largest = values.amax(dim=1, keepdim=True).double()
        torch.softmax(values, dim=1, out=values)  # in one pass
        logs = largest - values.amax(dim=1, keepdim=True).double().log()  # of the sums of exponentials
        values[~known[:, 0]] = 0
        lengths = lengths_of_single(values.numpy())

        def exact(items: np.ndarray) -> np.ndarray:
            scores = self.items.exact(own.double() / self.temperature, torch.from_numpy(items))
            return scores.sub_(logs).exp_().mul_(known).numpy() / lengths

        return BlockScores(values.numpy(), lengths, exact)

    def for_users(self, own: Csr) -> FactorScorer:
        """The scorer of other users, by how much their items count."""
        return self._replace(users=user_factors(own, self.sources))


class WeightedScorers(NamedTuple):
    """The weighted sum of the scores of some scorers."""

    scorers: Mapping[str, Scorer]
    weights: Mapping[str, float]  # of each of them, by the same names
    n_items: int

    @property
    def reach(self) -> float:
        """The sum of the weights: no score is larger."""
        return sum(self.weights.values())

    def scores(self, users: np.ndarray) -> np.ndarray:
        """The scores of all items for some users, float64, (b, n_items)."""
        scores = np.zeros((users.size, self.n_items))
        for name, weight in self.weights.items():
            scores += weight * self.scorers[name].scores(users)
        return scores

    def for_users(self, own: Csr) -> WeightedScorers:
        """The scorers of other users, by how much their items count, (b, n_items)."""
        return self._replace(scorers={name: each.for_users(own) for name, each in self.scorers.items()})


def of_length_one(scores: np.ndarray) -> np.ndarray:
    """The scores of each user, (b, n_items), divided by their length, in float64; 0 where all are."""
    unit = np.array(scores, dtype=np.float64)
    unit /= lengths_of(unit)
    return unit


def lengths_of(scores: Any) -> np.ndarray:
    """The length of each row, of a dense or a sparse array, in float64, at least 1e-30, (b, 1)."""
    if sp.issparse(scores):
        values = scores.data.astype(np.float64)
        rows = (values[start:stop] for start, stop in itertools.pairwise(scores.indptr))
        # Not by a product of BLAS: its threads, in each of several workers, wait for each other.
        squares = np.array([np.einsum("i,i->", row, row) for row in rows])
    else:
        squares = np.einsum("bi,bi->b", scores, scores, dtype=np.float64)
    return np.maximum(np.sqrt(squares), _SHORTEST)[:, None]


def lengths_of_single(scores: np.ndarray) -> np.ndarray:
    """The length of each row, (b, 1), from sums of some entries in single precision, and of these in double.

    Examples
    --------
    >>> lengths_of_single(np.array([[3.0, 4.0]], dtype=np.float32))
    array([[5.]])
    """
    starts = range(0, scores.shape[1], _SUMMED)
    parts = (scores[:, start : start + _SUMMED] for start in starts)
    squares = sum(np.einsum("bi,bi->b", part, part).astype(np.float64) for part in parts)
    return np.maximum(np.sqrt(squares), _SHORTEST)[:, None]
