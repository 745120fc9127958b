"""The trained factors of a `GraphRanker`: users are what their items make them, see `air_recsys.nn.softmax`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch

from air_recsys.graphs.cooccurrence import scaled
from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.factor_graph import factor_graph
from air_recsys.models.graph_ranker.smoothings import (
    of_length_one,
    popularity,
    rough_lengths,
    times_added,
    to_power,
)
from air_recsys.models.ranking.catalogue import Catalogue
from air_recsys.nn.softmax import ColumnFactors
from air_recsys.training.softmax import SoftmaxCourse, SoftmaxTraining, Watch

_ITERATIONS: Any = 3  # scikit-learn annotates this parameter as text, and takes numbers
_SPREAD = 0.1  # of the entries of the targets, where the training starts


class ItemFactors(NamedTuple):
    """Factors of items as parts of users, and as what users are offered, the latter of length 1."""

    sources: np.ndarray  # (n_items, r)
    targets: np.ndarray  # (n_items, r)


class FactorCourse:
    """A training of the factors of the items of a pattern, a number of steps at a time.

    It starts from the leading singular vectors of the evened pattern, which are computed when they are needed, as is
    the graph of the items.

    Parameters
    ----------
    pattern : csr_array, shape (n_users, n_items)
    n_factors : int
        At most as many as there are users or items.
    training : SoftmaxTraining
    seed : int
    device : torch.device
    n_neighbors : int
        Edges that each item chooses in the graph over which targets are spread; 0 for no graph.

    Examples
    --------
    >>> pattern = sp.csr_array(np.kron(np.eye(2), np.ones((3, 2), dtype=np.float32)))  # two groups
    >>> course = FactorCourse(pattern, 2, SoftmaxTraining(50), 0, torch.device("cpu"))
    >>> course.advance(20)
    >>> course.step, course.factors().targets.shape
    (20, (4, 2))
    """

    def __init__(
        self,
        pattern: Csr,
        n_factors: int,
        training: SoftmaxTraining,
        seed: int,
        device: torch.device,
        n_neighbors: int = 0,
    ) -> None:
        self.n_steps = training.n_steps
        self._pattern, self._width = pattern, min(n_factors, min(pattern.shape))
        self._weights = to_power(popularity(pattern), -0.5)
        self._training, self._seed, self._device, self._n_neighbors = training, seed, device, n_neighbors
        self._course: SoftmaxCourse | None = None

    @property
    def step(self) -> int:
        """How many steps have been taken."""
        return 0 if self._course is None else self._course.step

    def advance(self, until: int, watch: Watch | None = None) -> None:
        """Take the steps that are missing to a number of them, at most those of the training."""
        self._begun().advance(until, watch)

    def factors(self) -> ItemFactors:
        """Return the factors after the last step."""
        trained = self._begun().factors
        return ItemFactors(trained.sources.cpu().numpy() * self._weights[:, None], trained.units().cpu().numpy())

    def state(self) -> dict[str, Any] | None:
        """Return what changes, for `load_state`; None before the first step."""
        return self._course.state() if self._course is not None and self._course.step else None

    def load_state(self, state: Mapping[str, Any] | None) -> None:
        """Go to where the same training stood, perhaps in another process.

        Raises
        ------
        ValueError
            If the state does not fit.
        """
        if state is not None:
            self._course = self._course_from(torch.zeros(self._pattern.shape[1], self._width))
            self._course.load_state(state)

    def check(self, factors: ItemFactors) -> None:
        """Raise `ValueError` where factors, perhaps read from a file, are not of this training."""
        expected = self._pattern.shape[1], self._width
        for each in factors:
            if (each.shape, each.dtype) != (expected, np.float32):
                raise ValueError(f"expected factors of shape {expected} and float32, found {each.shape}, {each.dtype}")

    def _begun(self) -> SoftmaxCourse:
        if self._course is None:
            self._course = self._course_from(torch.from_numpy(item_axes(self._pattern, self._width, self._seed)))
        return self._course

    def _course_from(self, sources: torch.Tensor) -> SoftmaxCourse:
        axes = sources.to(self._device)
        spread = axes.square().mean().sqrt().clamp_min(torch.finfo(axes.dtype).tiny)
        weights = torch.from_numpy(self._weights).to(self._device)
        graph = factor_graph(self._pattern, self._n_neighbors, self._seed, self._device) if self._n_neighbors else None
        start = ColumnFactors(axes, axes * (_SPREAD / spread), weights, graph)
        return SoftmaxCourse(self._pattern, start, self._training, self._seed)


Start = Callable[[Csr], FactorCourse]


def trained_factors(
    pattern: Csr,
    n_factors: int,
    training: SoftmaxTraining,
    seed: int,
    device: torch.device,
    watch: Watch | None = None,
) -> ItemFactors:
    """Return the factors of the items after all steps of a `FactorCourse` with these parameters and without a graph.

    Examples
    --------
    >>> pattern = sp.csr_array(np.kron(np.eye(2), np.ones((3, 2), dtype=np.float32)))  # two groups
    >>> factors = trained_factors(pattern, 2, SoftmaxTraining(50), 0, torch.device("cpu"))
    >>> (factors.sources @ factors.targets.T).argmax(axis=1) // 2
    array([0, 0, 1, 1])
    """
    course = FactorCourse(pattern, n_factors, training, seed, device)
    course.advance(training.n_steps, watch)
    return course.factors()


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

    def rough(self, users: np.ndarray, room: np.ndarray) -> RoughFactors:
        """Return the scores for lists; the lengths of those in double precision are of single precision."""
        own = torch.from_numpy(self.users[users].astype(np.float32))
        values = self.items.approximate(own / (self.temperature or 1), torch.from_numpy(room))
        logs = torch.zeros(len(own), 1, dtype=torch.float64)
        if self.temperature:
            largest = values.amax(dim=1, keepdim=True).double()
            torch.softmax(values, dim=1, out=values)  # in one pass
            logs = largest - values.amax(dim=1, keepdim=True).double().log()
            values[~own.any(dim=1)] = 0  # who has no items
        return RoughFactors(self, own, logs, values.numpy(), rough_lengths(values.numpy()))

    def for_users(self, left: np.ndarray) -> FactorTerm:
        """Return the term for users with other factors."""
        return self._replace(users=left)


class RoughFactors(NamedTuple):
    """Those scores for lists."""

    term: FactorTerm
    own: torch.Tensor  # factors of the users, (b, r)
    logs: torch.Tensor  # of the sums of a user's exponentials, (b, 1)
    values: np.ndarray  # (b, n_items)
    lengths: np.ndarray  # (b, 1)

    def added(self, weight: float, total: np.ndarray | None) -> np.ndarray:
        """Return a sum of scores with these added."""
        scales = (weight / self.lengths).astype(np.float32)
        if total is None:
            return np.multiply(self.values, scales, out=self.values)
        return times_added(total, self.values, scales)

    def at(self, items: np.ndarray) -> np.ndarray:
        """Return the scores of some items of each user."""
        own = self.own.double() / (self.term.temperature or 1)
        exact = self.term.items.exact(own, torch.from_numpy(items))
        if self.term.temperature:
            exact.sub_(self.logs).exp_().mul_(self.own.any(dim=1, keepdim=True))
        return exact.numpy() / self.lengths


def over_factors(
    users: np.ndarray, items: np.ndarray, temperature: float, trend: np.ndarray | None = None
) -> FactorTerm:
    """Return the term of factors, (n_users, r) and (n_items, r), with the logs of trends; cosines have no trend."""
    wide = np.require(items, np.float32, ["C", "W"])
    counted = trend is not None and temperature
    offsets = np.asarray(trend, np.float32) if counted else np.zeros(len(wide), np.float32)
    return FactorTerm(users, Catalogue(wide, offsets, torch.device("cpu")), temperature)
