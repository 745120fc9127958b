"""The trained factors of a `GraphRanker`: users are what their items make them, see `air_recsys.nn.softmax`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.graphs.cooccurrence import cooccurrence_neighbors, scaled, scaled_adjacency
from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.inputs import some_users
from air_recsys.nn.softmax import ColumnFactors, ColumnGraph
from air_recsys.storage.lazy import torch
from air_recsys.training import train
from air_recsys.training.ranks import ALONE, Ranks
from air_recsys.training.softmax import SoftmaxTrainer, SoftmaxTraining, row_pattern

_ITERATIONS: Any = 3  # scikit-learn annotates this parameter as text, and takes numbers
_SPREAD = 0.1  # of the entries of the targets, where the training starts
_SHARE = 2.0  # of the neighbours in a target, where an item itself counts 1
_CONTINUED = 256  # users of a further step: lists of a stream are no worse than with 1024
_MOST_READ = 10_000_000  # interactions: the time for all pairs of items of each user has a limit


class ItemFactors(NamedTuple):
    """Factors of items as parts of users, and as what users are offered, the latter of length 1."""

    sources: np.ndarray  # (n_items, r)
    targets: np.ndarray  # (n_items, r)


class FactorTraining:
    """A training of the factors of the items of a pattern, a number of steps at a time.

    It starts from the leading singular vectors of the normalised pattern, which are computed when they are needed, as
    is the graph of the items.

    Each item chooses `n_neighbors` edges in the graph over which targets are spread; 0 is for no graph. There are at
    most as many factors as users or items. Of several `ranks` each takes a share of the users of a step.
    """

    def __init__(
        self,
        pattern: Csr,
        n_factors: int,
        training: SoftmaxTraining,
        seed: int,
        device: torch.device,
        n_neighbors: int = 0,
        ranks: Ranks = ALONE,
    ) -> None:
        self.n_steps = training.n_steps
        self._pattern, self._width = pattern, min(n_factors, min(pattern.shape))
        self._weights = _weights_of_sources(pattern)
        self._training, self._seed, self._device, self._n_neighbors = training, seed, device, n_neighbors
        self._ranks = ranks
        self._trainer: SoftmaxTrainer | None = None

    @property
    def step(self) -> int:
        """How many steps have been taken."""
        return 0 if self._trainer is None else self._trainer.step

    def trainer(self, until: int) -> SoftmaxTrainer:
        """What is trained, to a number of steps, at most those of the training."""
        if self._trainer is None:
            axes = torch.from_numpy(item_axes(self._pattern, self._width, self._seed))
            self._trainer = self._start(self._ranks.as_first(axes))
        self._trainer.n_steps = min(until, self.n_steps)
        return self._trainer

    def factors(self) -> ItemFactors:
        """The factors after the last step."""
        trained = self.trainer(self.n_steps).factors
        return ItemFactors(trained.sources.cpu().numpy() * self._weights[:, None], trained.units().cpu().numpy())

    def state(self) -> dict[str, Any] | None:
        """What changes, for `load_state`; None before the first step."""
        if self._trainer is None or not self._trainer.step:
            return None
        return {"factors": self._trainer.state(), "steps": self._trainer.step_state()}

    def load_state(self, state: Mapping[str, Any] | None) -> None:
        """Go to where the same training stood, perhaps in another process.

        Raises
        ------
        ValueError
            If the state does not fit.
        """
        if state is not None:
            trainer = self._trainer = self._start(torch.zeros(self._pattern.shape[1], self._width))
            trainer.load_state(state["factors"])
            trainer.load_step_state(state["steps"])

    def check(self, factors: ItemFactors) -> None:
        """Raise `ValueError` where factors, perhaps read from a file, are not of this training."""
        expected = self._pattern.shape[1], self._width
        for each in factors:
            if (each.shape, each.dtype) != (expected, np.float32):
                raise ValueError(f"expected factors of shape {expected} and float32, found {each.shape}, {each.dtype}")

    def _start(self, sources: torch.Tensor) -> SoftmaxTrainer:
        axes = sources.to(self._device)
        spread = axes.square().mean().sqrt().clamp_min(torch.finfo(axes.dtype).tiny)
        weights = torch.from_numpy(self._weights).to(self._device)
        graph = factor_graph(self._pattern, self._n_neighbors, self._seed, self._device) if self._n_neighbors else None
        start = ColumnFactors(axes, axes * (_SPREAD / spread), weights, graph)
        return SoftmaxTrainer(self._pattern, start, self._training, self._seed, self._ranks)


def continued_factors(pattern: Csr, items: ItemFactors, n_steps: int, seed: int) -> ItemFactors:
    """The factors after some more steps on a pattern, from where they are, on the CPU."""
    weights = _weights_of_sources(pattern)
    scale = np.float32(_SPREAD * items.targets.shape[1] ** 0.5)
    sources, targets = (torch.from_numpy(each) for each in (items.sources / weights[:, None], items.targets * scale))
    start = ColumnFactors(sources, targets, torch.from_numpy(weights))
    trainer = SoftmaxTrainer(pattern, start, SoftmaxTraining(n_steps, batch_rows=_CONTINUED), seed)
    if (error := train(trainer, progress=False).error) is not None:
        raise error
    return ItemFactors(trainer.factors.sources.numpy() * weights[:, None], trainer.factors.units().numpy())


def _weights_of_sources(pattern: Csr) -> np.ndarray:
    counts = np.maximum(np.bincount(pattern.indices, minlength=pattern.shape[1]), 1)
    return (counts.astype(np.float64) ** -0.5).astype(np.float32)


Begin = Callable[[Csr], FactorTraining]


def item_axes(pattern: Csr, n_factors: int, seed: int) -> np.ndarray:
    """The leading right singular vectors of the pattern, normalised by both of its degrees; (n_items, r)."""
    from sklearn.utils.extmath import randomized_svd

    width = min(n_factors, min(pattern.shape))
    normalised = sp.csr_matrix(scaled(pattern, 0.5, 0.5))
    _, _, axes = randomized_svd(normalised, width, n_oversamples=16, n_iter=_ITERATIONS, random_state=seed)
    return np.ascontiguousarray(axes.T, dtype=np.float32)


def user_factors(pattern: Csr, sources: np.ndarray) -> np.ndarray:
    """The factors of users with these items, of length 1, or 0 without any; float32, (n_users, r)."""
    sums = np.asarray(pattern @ sources, dtype=np.float64)
    sums /= np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    return sums.astype(np.float32)


def factor_graph(pattern: Csr, n_neighbors: int, seed: int, device: torch.device) -> ColumnGraph:
    """The strongest co-occurrences of each item, normalised by the degrees of both ends, times 2.

    Targets are spread over it. Of more than ten million interactions it reads those of some users, drawn at random.
    """
    read = some_users(pattern, seed, _MOST_READ)
    normalised = scaled_adjacency(cooccurrence_neighbors(sp.csr_array(read.T), n_neighbors))
    edges = row_pattern(normalised, device)  # in order of the columns, and then the weights are, too
    return ColumnGraph(edges, torch.from_numpy((_SHARE * normalised.data).astype(np.float32)).to(device))
