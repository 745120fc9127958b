"""The trained factors of a `GraphRanker`: users are what their items make them, see `air_recsys.nn.softmax`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch.nn.functional import normalize

from air_recsys.graphs.cooccurrence import scaled
from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.smoothings import lengths_of, of_length_one, popularity, to_power
from air_recsys.models.ranking.catalogue import Catalogue
from air_recsys.nn.softmax import ColumnFactors
from air_recsys.training.softmax import SoftmaxTraining, Watch, train_softmax

_ITERATIONS: Any = 3  # scikit-learn annotates this parameter as text, and takes numbers
_SPREAD = 0.1  # of the entries of the targets, where the training starts


class ItemFactors(NamedTuple):
    """Factors of items as parts of users, and as what users are offered, the latter of length 1."""

    sources: np.ndarray  # (n_items, r)
    targets: np.ndarray  # (n_items, r)


Train = Callable[[Csr], ItemFactors]


def trained_factors(
    pattern: Csr,
    n_factors: int,
    training: SoftmaxTraining,
    seed: int,
    device: torch.device,
    watch: Watch | None = None,
) -> ItemFactors:
    """Return the factors of the items, trained from the leading singular vectors of the evened pattern.

    Examples
    --------
    >>> pattern = sp.csr_array(np.kron(np.eye(2), np.ones((3, 2), dtype=np.float32)))  # two groups
    >>> factors = trained_factors(pattern, 2, SoftmaxTraining(50), 0, torch.device("cpu"))
    >>> (factors.sources @ factors.targets.T).argmax(axis=1) // 2
    array([0, 0, 1, 1])
    """
    axes = torch.from_numpy(item_axes(pattern, n_factors, seed)).to(device)
    spread = axes.square().mean().sqrt().clamp_min(torch.finfo(axes.dtype).tiny)
    weights = to_power(popularity(pattern), -0.5)
    start = ColumnFactors(axes, axes * (_SPREAD / spread), torch.from_numpy(weights).to(device))
    trained = train_softmax(pattern, start, training, seed, watch)
    targets = normalize(trained.targets, dim=1)
    return ItemFactors(trained.sources.cpu().numpy() * weights[:, None], targets.cpu().numpy())


def item_axes(pattern: Csr, n_factors: int, seed: int) -> np.ndarray:
    """Return the leading right singular vectors of the pattern, both of its degrees evened out; (n_items, r)."""
    from sklearn.utils.extmath import randomized_svd

    width = min(n_factors, min(pattern.shape))
    even = sp.csr_matrix(scaled(pattern, 0.5, 0.5))
    _, _, axes = randomized_svd(even, width, n_oversamples=16, n_iter=_ITERATIONS, random_state=seed)
    return np.ascontiguousarray(axes.T, dtype=np.float32)


def user_factors(pattern: Csr, sources: np.ndarray) -> np.ndarray:
    """Return the factors of users with these items, of length 1, or 0 without any; float32, (n_users, r).

    Examples
    --------
    >>> user_factors(sp.csr_array([[1.0, 1.0], [0.0, 0.0]]), np.array([[3.0, 0.0], [0.0, 4.0]])).round(4)
    array([[0.6, 0.8],
           [0. , 0. ]], dtype=float32)
    """
    sums = np.asarray(pattern @ sources, dtype=np.float64)
    sums /= np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    return sums.astype(np.float32)


class FactorTerm(NamedTuple):
    """The scores exp(u . q / temperature + t) of factors, divided by their length; temperature 0: of u . q itself."""

    users: np.ndarray  # (n_users, r)
    items: Catalogue  # q, and t, the trends of the items
    temperature: float

    def scores(self, users: np.ndarray) -> np.ndarray:
        """Return the scores of all items for some users, of length 1 each (or 0); float64, shape (b, n_items)."""
        own = self.users[users].astype(np.float64)
        product = own @ self.items.factors.astype(np.float64).T
        if not self.temperature:
            return of_length_one(product)
        product /= self.temperature
        product += self.items.offsets
        product -= product.max(axis=1, keepdims=True)
        np.exp(product, out=product)
        product[~own.any(axis=1)] = 0  # who has no items
        return of_length_one(product)

    def rough(self, users: np.ndarray) -> RoughFactors:
        """Return the scores for lists; the lengths of those in double precision are of single precision."""
        own = torch.from_numpy(self.users[users].astype(np.float32))
        values = self.items.approximate(own / (self.temperature or 1), own.new_empty(len(own), len(self.items)))
        largest = values.amax(dim=1, keepdim=True)
        if self.temperature:
            values.sub_(largest).exp_()[~own.any(dim=1)] = 0  # who has no items
        return RoughFactors(self, own, largest.double(), values.numpy(), lengths_of(values.numpy()))

    def for_users(self, left: np.ndarray) -> FactorTerm:
        """Return the term for users with other factors."""
        return self._replace(users=left)


class RoughFactors(NamedTuple):
    """Those scores for lists."""

    term: FactorTerm
    own: torch.Tensor  # factors of the users, (b, r)
    largest: torch.Tensor  # products over the temperature, (b, 1)
    values: np.ndarray  # (b, n_items)
    lengths: np.ndarray  # (b, 1)

    def added(self, weight: float, total: np.ndarray | None) -> np.ndarray:
        """Return a sum of scores with these added."""
        scales = (weight / self.lengths).astype(np.float32)
        if total is None:
            return np.multiply(self.values, scales, out=self.values)
        total += self.values * scales
        return total

    def at(self, items: np.ndarray) -> np.ndarray:
        """Return the scores of some items of each user."""
        own = self.own.double() / (self.term.temperature or 1)
        exact = self.term.items.exact(own, torch.from_numpy(items))
        if self.term.temperature:
            exact.sub_(self.largest).exp_().mul_(self.own.any(dim=1, keepdim=True))
        return exact.numpy() / self.lengths


def over_factors(
    users: np.ndarray, items: np.ndarray, temperature: float, trend: np.ndarray | None = None
) -> FactorTerm:
    """Return the term of factors, (n_users, r) and (n_items, r), with the logs of trends; cosines have no trend."""
    wide = np.require(items, np.float32, ["C", "W"])
    counted = trend is not None and temperature
    offsets = np.asarray(trend, np.float32) if counted else np.zeros(len(wide), np.float32)
    return FactorTerm(users, Catalogue(wide, offsets, torch.device("cpu")), temperature)
