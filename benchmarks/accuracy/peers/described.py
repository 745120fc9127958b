"""Peers for items without likes, by features: LightFM's model, and means over the nearest items."""

from __future__ import annotations

from typing import Self

import numpy as np
import torch
from torch import Tensor

from air_recsys.metrics.checks import Csr

_BATCH, _DRAWN = 4096, 10


class HybridFactors:
    """LightFM's model by WARP: an item is the sum of its own factors and of those of its features.

    Source: Kula, Metadata Embeddings for User and Item Cold-start Recommendations, CBRecSys 2015; the loss is that of
    Weston et al., WSABIE, IJCAI 2011. Batches of likes take the first of ten drawn items that violates the margin.
    """

    def __init__(self, learning_rate: float, n_factors: int = 32, epochs: int = 20, seed: int = 0) -> None:
        self._rate, self._width, self._epochs, self._seed = learning_rate, n_factors, epochs, seed

    def fit(self, likes: Csr, features: np.ndarray) -> Self:
        """Train on likes, (n_users, n_items), and features of the items, (n_items, g)."""
        rng, (n_users, n_items) = torch.Generator().manual_seed(self._seed), likes.shape

        def start(n: int, width: int) -> Tensor:
            return (torch.randn(n, width, generator=rng) / width).requires_grad_()

        self._users, own, self._parts = (start(n, self._width) for n in (n_users, n_items, features.shape[1]))
        bias, self._biases = (torch.zeros(n, requires_grad=True) for n in (n_items, features.shape[1]))
        trained = [self._users, own, self._parts, bias, self._biases]
        optimiser, known = torch.optim.Adagrad(trained, lr=self._rate), torch.from_numpy(features)
        has, pairs = (
            torch.from_numpy(likes.toarray() > 0),
            torch.from_numpy(np.stack(likes.nonzero()).astype(np.int64)),
        )
        for _ in range(self._epochs):
            for batch in torch.randperm(pairs.shape[1], generator=rng).split(_BATCH):
                users, liked = pairs[:, batch]
                items, biases = known @ self._parts + own, known @ self._biases + bias
                others = torch.randint(n_items, (users.numel(), _DRAWN), generator=rng)
                with torch.no_grad():
                    scores = (self._users[users] * items[liked]).sum(1) + biases[liked]
                    theirs = torch.einsum("br,bkr->bk", self._users[users], items[others]) + biases[others]
                    violate = (theirs > scores[:, None] - 1) & ~has[users[:, None], others]
                    first, any_of = violate.float().argmax(dim=1), violate.any(dim=1)
                    weights = torch.log(((n_items - 1) / (first + 1)).clamp(min=1))[any_of]
                users, liked, other = users[any_of], liked[any_of], others.gather(1, first[:, None])[any_of, 0]
                gaps = (self._users[users] * (items[liked] - items[other])).sum(1) + biases[liked] - biases[other]
                optimiser.zero_grad()
                (weights * (1 - gaps)).sum().div(max(1, users.numel())).backward()
                optimiser.step()
        return self

    def scores(self, features: np.ndarray) -> np.ndarray:
        """The scores of items without likes for all users, (n_users, n)."""
        known = torch.from_numpy(features)
        with torch.no_grad():
            return (self._users @ (known @ self._parts).T + known @ self._biases).numpy()


class ContentNeighbors:
    """How many of the nearest items by the cosine of features a user has, each by its cosine."""

    def __init__(self, n_neighbors: int) -> None:
        self._n_neighbors = n_neighbors

    def fit(self, likes: Csr, features: np.ndarray) -> Self:
        """Keep likes and features."""
        self._likes, self._features = likes, features
        return self

    def scores(self, features: np.ndarray) -> np.ndarray:
        """The scores of items without likes for all users, (n_users, n)."""
        units = [
            each / np.maximum(np.linalg.norm(each, axis=1, keepdims=True), 1e-9) for each in (features, self._features)
        ]
        cosines = (units[0] @ units[1].T).clip(min=0)  # (n, n_items)
        weakest = np.argsort(-cosines, axis=1, kind="stable")[:, self._n_neighbors :]
        np.put_along_axis(cosines, weakest, 0, axis=1)
        return self._likes @ cosines.T
