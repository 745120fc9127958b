"""Dual-network integrated logistic matrix factorization.

Source: Hao, Bryant, Wang, Predicting drug-target interactions by dual-network integrated logistic matrix
factorization, Scientific Reports 7, 2017; what the equations leave open is as in the program of its authors: the width
of the profiles' kernel (the mean sum of a row), similarities raised to be positive semi-definite, a network without
its diagonal, start, step size of 1 and stopping. Networks are made anew from what is shown of a fold, as that program
does since 2021: before, each fold went on with those of the fold before, whose profiles show what is hidden in it.

Choices made here: the start has a seed, where the program draws anew; drugs and targets without an interaction take
the factors of their neighbours, those without a pair that is asked for too; rows unlike all others keep what they
have, where the program divides by 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import expit
from scipy.stats import rankdata

from benchmarks.accuracy.peers.nrlmf import adagrad


class Objective(NamedTuple):
    """The log-likelihood less the squared factors; neighbours of drug and target add to the score of a pair."""

    pairs: np.ndarray  # (m, n)
    drugs: np.ndarray  # (m, m): the network times its share, and what is left of the shares on the diagonal
    targets: np.ndarray  # (n, n): the network times its share
    importance: float  # weight of an interaction against that of any other pair
    decays: tuple[float, float]

    def logits(self, drugs: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """The logits of all pairs, shape (m, n)."""
        return self.drugs @ drugs @ targets.T + drugs @ (self.targets @ targets).T

    def value(self, drugs: np.ndarray, targets: np.ndarray) -> float:
        """What is to be raised."""
        logits = self.logits(drugs, targets)
        fit = np.sum(self.importance * self.pairs * logits) - np.sum(self._weights() * np.logaddexp(0, logits))
        return float(fit - (self.decays[0] * np.sum(drugs**2) + self.decays[1] * np.sum(targets**2)) / 2)

    def slope_of_drugs(self, drugs: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """The derivative by the factors of drugs, shape (m, k)."""
        rest = self._rest(drugs, targets)
        return self.drugs @ (rest @ targets) + rest @ (self.targets @ targets) - self.decays[0] * drugs

    def slope_of_targets(self, drugs: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """The derivative by the factors of targets, shape (n, k)."""
        rest = self._rest(drugs, targets).T
        return rest @ (self.drugs @ drugs) + self.targets @ (rest @ drugs) - self.decays[1] * targets

    def _weights(self) -> np.ndarray:
        return 1 + (self.importance - 1) * self.pairs

    def _rest(self, drugs: np.ndarray, targets: np.ndarray) -> np.ndarray:
        return self.importance * self.pairs - self._weights() * expit(self.logits(drugs, targets))


def dnilmf_scores(
    values: np.ndarray,
    drug_similarity: np.ndarray,
    target_similarity: np.ndarray,
    *,
    n_factors: int,
    importance: float,
    drug_share: float,
    target_share: float,
    drug_decay: float,
    target_decay: float,
    n_neighbors: int,
    n_epochs: int = 100,
    seed: int = 0,
) -> np.ndarray:
    """The probability of each pair, shape (m, n).

    Parameters
    ----------
    values, drug_similarity, target_similarity : ndarray, shapes (m, n), (m, m) and (n, n)
    importance : float
        Weight of an interaction against that of any other pair.
    drug_share, target_share : float
        What neighbours of the drug and of the target add to the score of a pair; the rest of 1 is the pair's own.
    drug_decay, target_decay : float
        Weights of the squared factors.
    n_neighbors : int
        Known drugs or targets that stand for one without an interaction, in profiles and in factors.
    """
    pairs = np.nan_to_num(values)
    drug_network = interaction_network(pairs, drug_similarity, n_neighbors)
    target_network = interaction_network(pairs.T, target_similarity, n_neighbors)
    own = (1 - drug_share - target_share) * np.eye(len(drug_network))
    objective = Objective(
        pairs, own + drug_share * drug_network, target_share * target_network, importance, (drug_decay, target_decay)
    )
    rng = np.random.RandomState(seed)
    drugs, targets = (rng.normal(size=(size, n_factors)) / n_factors for size in pairs.shape)
    drugs, targets = _ascend(objective, drugs, targets, n_epochs)
    drugs = from_neighbors(drugs, np.asarray(pairs.any(axis=1)), drug_network, n_neighbors)
    targets = from_neighbors(targets, np.asarray(pairs.any(axis=0)), target_network, n_neighbors)
    return expit(objective.logits(drugs, targets))


def interaction_network(rows: np.ndarray, similarity: np.ndarray, n_neighbors: int) -> np.ndarray:
    """The similarity fused with the Gaussian kernel of the profiles, 0 on the diagonal; shape (m, m)."""
    similarity = _semi_definite((similarity + similarity.T) / 2)
    profiles = from_neighbors(rows, np.asarray(rows.any(axis=1)), similarity, n_neighbors)
    kernel = np.exp(-cdist(profiles, profiles, "sqeuclidean") / profiles.sum(axis=1).mean())
    network = fused_network(kernel, similarity)
    np.fill_diagonal(network, 0)
    return network


def from_neighbors(rows: np.ndarray, known: np.ndarray, similarity: np.ndarray, n_neighbors: int) -> np.ndarray:
    """The rows, those not known as the mean of their nearest known ones, weighted by similarity.

    Neighbours are those whose rank, the mean one of equals, is among the last `n_neighbors`.
    """
    across = similarity[np.ix_(~known, known)]
    weights = np.where(rankdata(across, axis=1) > across.shape[1] - n_neighbors, across, 0)
    totals = weights.sum(axis=1, keepdims=True)
    filled = rows.copy()
    filled[~known] = np.divide(weights @ rows[known], totals, out=rows[~known], where=totals > 0)
    return filled


def _ascend(
    objective: Objective, drugs: np.ndarray, targets: np.ndarray, n_epochs: int
) -> tuple[np.ndarray, np.ndarray]:
    squares = np.zeros_like(drugs), np.zeros_like(targets)
    value, gain = objective.value(drugs, targets), np.inf
    for epoch in range(n_epochs):
        drugs = drugs + adagrad(objective.slope_of_drugs(drugs, targets), squares[0], 1)
        targets = targets + adagrad(objective.slope_of_targets(drugs, targets), squares[1], 1)
        last, last_gain, value = value, gain, objective.value(drugs, targets)
        gain = (value - last) / abs(last)
        if abs(gain) < 1e-5 or (epoch >= 50 and gain > last_gain):
            break
    return drugs, targets


def _semi_definite(similarity: np.ndarray) -> np.ndarray:
    """Add tenths to the diagonal until no eigenvalue is negative."""
    lowest = np.linalg.eigvalsh(similarity)[0]
    return similarity + 0.1 * max(0, np.ceil((-lowest - 1e-8) / 0.1)) * np.eye(len(similarity))


def fused_network(first: np.ndarray, second: np.ndarray, n_neighbors: int = 3, n_rounds: int = 2) -> np.ndarray:
    """The network of two similarities, symmetric; shape (n, n).

    Parameters
    ----------
    first, second : ndarray, shape (n, n)
        Not negative, without a row of zeros.
    n_neighbors : int
        The strongest entries of a row that take up the other network; those as strong as the last one count too.
    n_rounds : int
        How often each network takes up the other one.

    The defaults are those of the program of DNILMF.

    Source: Wang et al., Similarity network fusion for aggregating data types on a genomic scale, Nature Methods 11,
    2014, in the form of the program of DNILMF: a row counts among its own neighbours, and a matrix is symmetric rather
    than stochastic where neighbours take it up.

    Examples
    --------
    >>> apart = np.array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.1], [0.1, 0.1, 1.0]])
    >>> fused = fused_network(apart, np.full((3, 3), 0.5), n_neighbors=2)
    >>> bool(fused[0, 1] > fused[0, 2])
    True
    """
    itself = np.eye(len(first))
    networks = [_symmetric(_shares(each)) for each in (first, second)]
    near = [_shares(_strongest(each, n_neighbors)) for each in networks]
    for _ in range(n_rounds):
        others = networks[::-1]
        networks = [_symmetric(graph @ other @ graph.T + itself) for graph, other in zip(near, others, strict=True)]
    return _symmetric(_shares(networks[0] + networks[1])) + itself / 2


def _shares(matrix: np.ndarray) -> np.ndarray:
    return matrix / matrix.sum(axis=1, keepdims=True)


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    return (matrix + matrix.T) / 2


def _strongest(network: np.ndarray, n_neighbors: int) -> np.ndarray:
    last = -np.partition(-network, n_neighbors - 1, axis=1)[:, n_neighbors - 1 : n_neighbors]
    return np.where(network >= last, network, 0)
