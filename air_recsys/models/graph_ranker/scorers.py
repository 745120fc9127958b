"""The scorers of a `GraphRanker`, regression and factors, and the weighted sum of their scores.

Sparse products are sums in one order, on every processor. Dense ones and powers are computed in double precision,
since their last bits depend on the processor. For lists each scorer has a faster form as well: all scores in single
precision, and those of some items in double precision, on a CPU or on a GPU.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.factors import ItemFactors, user_factors
from air_recsys.models.graph_ranker.inputs import times_columns
from air_recsys.models.ranking.catalogue import Catalogue
from air_recsys.storage.arrays import Array, in_numpy, library_of, like, taken, wide
from air_recsys.storage.lazy import Tensor, torch
from air_recsys.training.softmax import row_pattern

_SUMMED = 8192  # entries of a sum in single precision
_SHORTEST = 1e-30  # of lengths: the largest weight over it is finite in float32


class BlockScores(NamedTuple):
    """The scores of a block of users for lists, on the device where these are made."""

    values: Array  # float32, (b, n_items), before they are divided by the lengths
    lengths: Array  # (b, 1)
    exact: Callable[[Array], Array]  # of some items of each user, (b, m): their scores, float64


class ScaledColumns:
    """A matrix with its columns multiplied: whole once many rows were asked for, as a model that grows asks few."""

    def __init__(self, matrix: Csr | np.ndarray, scales: np.ndarray) -> None:
        self._matrix, self._scales, self._n_asked = matrix, scales, 0

    @cached_property
    def whole(self) -> Csr | np.ndarray:
        """All rows."""
        return self._scaled(self._matrix)

    def _scaled(self, rows: Csr | np.ndarray) -> Csr | np.ndarray:
        dense = isinstance(rows, np.ndarray)
        return rows * self._scales.astype(rows.dtype) if dense else times_columns(rows, self._scales)

    def rows(self, places: np.ndarray) -> Csr | np.ndarray:
        """Some rows."""
        return self._scaled(self._matrix[places])

    def after(self, left: Csr) -> Any:
        """The product of rows and this matrix."""
        if "whole" not in vars(self):
            places = np.unique(left.indices)
            self._n_asked += places.size
            if 2 * self._n_asked <= left.shape[1]:
                return left[:, places] @ self.rows(places)
        return left @ self.whole

    def diagonal(self) -> np.ndarray:
        """The diagonal of a square matrix."""
        return self._matrix.diagonal() * self._scales


class ProductScorer(NamedTuple):
    """Scores that are a product, each user's divided by their length."""

    own: Csr  # how much the items of users count, (n_users, r)
    right: ScaledColumns  # (r, n_items)
    scales: np.ndarray  # what items are multiplied by, (r,)
    times_right: Callable[[Csr], Tensor] | None = None  # the product of rows on a GPU, (b, n_items)
    beside: Csr | None = None  # the part of `own` that does not count for the item itself

    def scores(self, users: np.ndarray) -> np.ndarray:
        """The scores of all items for some users, of length 1 each (or 0); float64, (b, n_items)."""
        return of_length_one(self.products(users))

    def products(self, users: np.ndarray) -> np.ndarray:
        """The products of some users, (b, n_items)."""
        product = self._product(users)
        return product.toarray() if sp.issparse(product) else product

    def block(self, users: np.ndarray, buffer: Array) -> BlockScores:
        """The scores for lists; those in double precision are the same as `scores`, on a GPU up to rounding.

        They may be held in `buffer`, float32, (b, n_items), on the device of the scorer.
        """
        if self.times_right is None:
            values: Array = self._product(users)
            lengths: Array = lengths_of(values)
            if sp.issparse(values):
                values = values.toarray(out=buffer if values.dtype == np.float32 else None)
        else:
            values = self.times_right(self.left(users))
            if (itself := self._of_itself(users)) is not None:
                values[tuple(map(torch.from_numpy, itself.nonzero()))] -= torch.from_numpy(itself.data).to(values)
            lengths = _lengths_on_device(values)
        return BlockScores(values, lengths, lambda items: taken(values, items) / lengths)

    def on(self, device: torch.device | None) -> ProductScorer:
        """The scorer that makes lists on a device."""
        return self._replace(times_right=None if device is None else products_on(device, self.right.whole))

    def for_users(self, own: Csr, beside: Csr | None = None) -> ProductScorer:
        """The scorer of other users, by how much their items count, (b, n_items).

        Those in `beside`, which lists may hold, count for other items alone.
        """
        return self._replace(own=own, beside=beside)

    def left(self, users: np.ndarray) -> Csr:
        """What the products of some users are of, (b, r)."""
        return times_columns(self.own[users], self.scales)

    def _product(self, users: np.ndarray) -> Any:
        product, itself = self.right.after(self.left(users)), self._of_itself(users)
        if itself is None:
            return product
        if sp.issparse(product):
            return sp.csr_array(product - itself)
        product[itself.nonzero()] -= itself.data
        return product

    def _of_itself(self, users: np.ndarray) -> Csr | None:
        """What items that lists may hold add to their own products."""
        if self.beside is None:
            return None
        return times_columns(self.beside[users], self.scales * self.right.diagonal())


class FactorScorer(NamedTuple):
    """The scores exp(u . q / temperature + t) of factors, divided by their length."""

    users: np.ndarray  # u, (n_users, r)
    items: Catalogue  # q, and t, the trends of the items
    sources: np.ndarray  # of the items in u, (n_items, r)
    temperature: float
    beside: Csr | None = None  # items of users that count for others alone, over the lengths of the sums that u are of

    @classmethod
    def of(cls, users: np.ndarray, factors: ItemFactors, temperature: float, trend: np.ndarray) -> FactorScorer:
        """The scorer of the factors of users, (n_users, r), and of items, with the logs of trends, (n_items,)."""
        targets = np.require(factors.targets, np.float32, ["C", "W"])
        items = Catalogue(targets, np.asarray(trend, np.float32))
        return cls(users, items, factors.sources, temperature)

    def scores(self, users: np.ndarray) -> np.ndarray:
        """The scores of all items for some users, of length 1 each (or 0); float64, (b, n_items)."""
        own = self.users[users].astype(np.float64)
        product = own @ self.items.factors.astype(np.float64).T
        product /= self.temperature
        if self.beside is not None:
            product += self._without_itself(users)
        product += self.items.offsets
        product -= product.max(axis=1, keepdims=True)
        np.exp(product, out=product)
        product[~own.any(axis=1)] = 0  # who has no items
        return of_length_one(product)

    def block(self, users: np.ndarray, buffer: Array) -> BlockScores:
        """The scores for lists; the lengths of those in double precision are of single precision."""
        own, library = like(buffer, self.users[users].astype(np.float32)), library_of(buffer)
        known = own.any(axis=1)[:, None]  # who has items
        values = self.items.approximate(own / float(self.temperature), buffer)
        change = None if self.beside is None else like(buffer, self._without_itself(users))
        if change is not None:
            values += change
        logs = largest = library.amax(values, axis=1)[:, None]  # what scores are relative to
        if library is np:  # in its place
            np.exp(np.subtract(values, largest, out=values), out=values)
        else:
            values = torch.exp(values - largest)
        values[~known[:, 0]] = 0
        lengths = lengths_of_single(in_numpy(values)) if library is np else _lengths_on_device(values)

        def exact(items: Array) -> Array:
            found = self.items.exact(wide(own) / self.temperature, items)
            found = found if change is None else found + taken(change, items)
            return library.exp(found - logs) * known / lengths

        return BlockScores(values, lengths, exact)

    def on(self, device: torch.device | None) -> FactorScorer:
        """The scorer that makes lists on a device."""
        return self._replace(items=Catalogue(self.items.factors, self.items.offsets, device))

    def for_users(self, own: Csr, beside: Csr | None = None) -> FactorScorer:
        """The scorer of other users, by how much their items count."""
        if beside is not None:
            lengths = np.maximum(np.linalg.norm(own @ self.sources, axis=1), _SHORTEST)
            shares = beside.data / np.repeat(lengths, np.diff(beside.indptr))
            beside = sp.csr_array((shares, beside.indices, beside.indptr), shape=beside.shape)
        return self._replace(users=user_factors(own, self.sources), beside=beside)

    def _without_itself(self, users: np.ndarray) -> np.ndarray:
        """What products over the temperature change where items do not count for themselves, (b, n_items)."""
        assert self.beside is not None
        rows, items = (part := self.beside[users]).nonzero()
        own = self.users[users].astype(np.float64)[rows]
        others = own - self.sources[items] * part.data[:, None]
        targets = self.items.factors[items].astype(np.float64)
        lengths = np.maximum(np.linalg.norm(others, axis=1), _SHORTEST)
        changes = np.zeros(part.shape)
        changes[rows, items] = np.einsum("ij,ij->i", others / lengths[:, None] - own, targets) / self.temperature
        return changes


Scorer = ProductScorer | FactorScorer


class ColdItems(NamedTuple):
    """Items without likes, whose scores are sums of those of other items, see `air_recsys.models.content`."""

    places: np.ndarray  # of the cold items, ascending
    known: np.ndarray  # positions of all others, ascending
    sources: np.ndarray  # of those that the scores follow from, among the others, (n,)
    weights: np.ndarray  # (n, n_cold)

    def among(self, scores: np.ndarray) -> np.ndarray:
        """The scores of all items, (b, n_items), from those of the others."""
        found = np.empty((len(scores), self.places.size + self.known.size))
        found[:, self.known] = scores
        found[:, self.places] = scores[:, self.sources] @ self.weights
        return found

    def parts(self, item: int) -> tuple[np.ndarray, np.ndarray]:
        """The others, by their positions among these, that the score of an item is a sum of, and their weights."""
        if item in self.places:
            return self.sources, self.weights[:, np.searchsorted(self.places, item)]
        return np.searchsorted(self.known, [item]), np.ones(1)


class WeightedScorers(NamedTuple):
    """The weighted sum of the scores of some scorers."""

    scorers: Mapping[str, Scorer]  # of items that are not cold
    weights: Mapping[str, float]  # of each of them, by the same names
    n_items: int
    device: torch.device | None = None  # where lists are made; None is the CPU
    cold: ColdItems | None = None

    def on(self, device: torch.device | None) -> WeightedScorers:
        """The scorers that make lists on a device."""
        scorers = {name: each.on(device) for name, each in self.scorers.items()}
        return self._replace(scorers=scorers, device=device)

    def place(self) -> Array:
        """An array where lists are made."""
        return np.empty(0) if self.device is None else torch.empty(0, device=self.device)

    @property
    def reach(self) -> float:
        """The sum of the weights: no score is larger."""
        return sum(self.weights.values())

    def scores(self, users: np.ndarray) -> np.ndarray:
        """The scores of all items for some users, float64, (b, n_items)."""
        n_cold = 0 if self.cold is None else self.cold.places.size
        scores = np.zeros((users.size, self.n_items - n_cold))
        for name, weight in self.weights.items():
            scores += weight * self.scorers[name].scores(users)
        return scores if self.cold is None else self.cold.among(scores)

    def for_users(self, own: Csr, beside: Csr | None = None) -> WeightedScorers:
        """The scorers of other users, by how much their items count, (b, n_items), see `ProductScorer.for_users`."""
        if self.cold is not None:
            own, beside = (each if each is None else sp.csr_array(each[:, self.cold.known]) for each in (own, beside))
        return self._replace(scorers={name: each.for_users(own, beside) for name, each in self.scorers.items()})


def products_on(device: torch.device, right: Csr | np.ndarray) -> Callable[[Csr], Tensor]:
    """The products of sparse rows, (b, r), with a matrix, (r, n_items), by sums in one order on a device."""
    if isinstance(right, np.ndarray):
        dense = torch.from_numpy(right).to(device)
        return lambda left: row_pattern(left, device).matmul(torch.from_numpy(left.data).to(device), dense)
    by_items = sp.csr_array(right.T)
    columns = row_pattern(by_items, device)
    weights = torch.from_numpy(by_items.data).to(device)

    def product(left: Csr) -> Tensor:
        rows, values = row_pattern(left, device), torch.from_numpy(left.data).to(device)
        block = values.new_zeros(left.shape[1], left.shape[0])
        block[rows.columns.long(), rows.rows.long()] = values
        return columns.matmul(weights, block).T.contiguous()

    return product


def _lengths_on_device(scores: Tensor) -> Tensor:
    """The length of each row, (b, 1), from sums in double precision."""
    return torch.linalg.vector_norm(scores, dim=1, keepdim=True, dtype=torch.float64).clamp_min(_SHORTEST)


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
    """The length of each row, (b, 1), from sums of some entries in single precision, and of these in double."""
    starts = range(0, scores.shape[1], _SUMMED)
    parts = (scores[:, start : start + _SUMMED] for start in starts)
    squares = sum(np.einsum("bi,bi->b", part, part).astype(np.float64) for part in parts)
    return np.maximum(np.sqrt(squares), _SHORTEST)[:, None]
