"""EASE, GF-CF and popularity, written from their papers, to stand beside the library's ranker."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import get_lapack_funcs
from scipy.sparse.linalg import svds

from air_recsys.exceptions import DataError
from air_recsys.graphs.cooccurrence import scaled
from air_recsys.interactions import Interactions
from air_recsys.metrics import top_k

_BLOCK_ENTRIES = 16_000_000


class DenseScores:
    """Lists from scores of whole blocks of users, items that they have seen left out."""

    pattern: sp.csr_array

    def fit(self, interactions: Interactions) -> Self:
        """Train on the pattern of some interactions."""
        self.pattern = sp.csr_array(interactions.to_csr(), dtype=np.float32, copy=True)
        self.pattern.data[:] = 1
        self._train()
        return self

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """Return the best n unseen items of some users, all by their positions; shape (b, n)."""
        block = max(1, _BLOCK_ENTRIES // self.pattern.indptr.size)
        blocks = [self._lists(users[start : start + block], n) for start in range(0, users.size, block)]
        return np.concatenate(blocks)

    def _lists(self, users: np.ndarray, n: int) -> np.ndarray:
        scores = self._scores(users)
        scores[self.pattern[users].nonzero()] = -np.inf
        return top_k(scores, n)

    def _train(self) -> None:
        raise NotImplementedError

    def _scores(self, users: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class Popularity(DenseScores):
    """The most interacted items for everyone.

    Examples
    --------
    >>> data = Interactions.from_dense([[1, 1, np.nan], [np.nan, 1, 1]])
    >>> Popularity().fit(data).lists(np.array([0, 1]), 1).tolist()
    [[2], [0]]
    """

    def _train(self) -> None:
        self.counts = self.pattern.sum(axis=0)

    def _scores(self, users: np.ndarray) -> np.ndarray:
        return np.tile(self.counts, (users.size, 1))


class EASE(DenseScores):
    r"""The linear model :math:`X B` of least :math:`|X - X B|^2 + \lambda |B|^2` with a zero diagonal.

    Its matrix of all pairs of items is inverted in place: 4 n_items^2 bytes, n_items^3 operations.

    Source: Steck, Embarrassingly Shallow Autoencoders for Sparse Data, WWW 2019.

    Parameters
    ----------
    decay : float
        Lambda, positive.

    Examples
    --------
    >>> data = Interactions.from_dense([[1, 1, np.nan], [1, 1, np.nan], [np.nan, 1, 1], [1, np.nan, np.nan]])
    >>> EASE(1.0).fit(data).lists(np.array([3]), 1).tolist()
    [[1]]
    """

    def __init__(self, decay: float) -> None:
        self.decay = decay

    def _train(self) -> None:
        gram = np.asfortranarray((self.pattern.T @ self.pattern).toarray())  # (n_items, n_items)
        gram.flat[:: len(gram) + 1] += np.float32(self.decay)
        factorize, invert = get_lapack_funcs(("potrf", "potri"), (gram,))
        gram, failed = factorize(gram, lower=0, overwrite_a=1)
        if failed:
            raise DataError(f"expected a positive definite matrix, found one that is not at item {failed}")
        gram, _ = invert(gram, lower=0, overwrite_c=1)
        for column in range(1, len(gram)):
            gram[column, :column] = gram[:column, column]
        diagonal = gram.diagonal().copy()
        gram /= -diagonal
        gram.flat[:: len(gram) + 1] = 0
        self.weights = gram

    def _scores(self, users: np.ndarray) -> np.ndarray:
        return np.asarray(self.pattern[users] @ self.weights)


class GFCF(DenseScores):
    r"""The sum of two filters, :math:`r_u \tilde R^T \tilde R + w\, r_u D^{-1/2} V V^T D^{1/2}`.

    :math:`\tilde R` is the pattern of interactions, rows and columns divided by the roots of their numbers of
    interactions, D the numbers of the items, V the leading right singular vectors of :math:`\tilde R`.

    Source: Shen et al., How Powerful is Graph Convolution for Recommendation?, CIKM 2021, and its program.

    Parameters
    ----------
    n_factors : int
        Singular vectors; fewer than there are users or items.
    weight : float
        Of the second filter.
    random_state : int
        Of the search for singular vectors.

    Examples
    --------
    >>> data = Interactions.from_dense([[1, 1, np.nan], [1, 1, np.nan], [np.nan, 1, 1], [1, np.nan, np.nan]])
    >>> GFCF(n_factors=2).fit(data).lists(np.array([3]), 1).tolist()
    [[1]]
    """

    def __init__(self, n_factors: int = 256, weight: float = 0.3, random_state: int = 0) -> None:
        self.n_factors = n_factors
        self.weight = weight
        self.random_state = random_state

    def _train(self) -> None:
        self.even = sp.csr_array(scaled(self.pattern, 0.5, 0.5))
        self.roots = np.sqrt(np.maximum(self.pattern.sum(axis=0), 1)).astype(np.float32)
        least = min(self.roots.size, self.pattern.indptr.size - 1)
        start = np.random.default_rng(self.random_state).standard_normal(least).astype(np.float32)
        svd: Any = svds(self.even, min(self.n_factors, least - 1), v0=start)
        self.vectors = svd[2]  # (r, n_items)

    def _scores(self, users: np.ndarray) -> np.ndarray:
        own = self.pattern[users]
        linear = (own @ self.even.T @ self.even).toarray()
        ideal = (own / self.roots) @ self.vectors.T @ (self.vectors * self.roots)
        return np.asarray(linear + np.float32(self.weight) * ideal, dtype=np.float32)
