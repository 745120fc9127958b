"""Neighbourhood regularised logistic matrix factorization.

Source: Liu, Wu, Miao, Zhao, Li, Neighborhood Regularized Logistic Matrix Factorization for Drug-Target Interaction
Prediction, PLoS Computational Biology 12(2), 2016; start, step sizes and stopping as in its program PyDTI.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

_NEIGHBORS = 5


def nrlmf_scores(
    values: np.ndarray,
    drug_similarity: np.ndarray,
    target_similarity: np.ndarray,
    *,
    n_factors: int,
    importance: float,
    decay: float,
    drug_graph: float,
    target_graph: float,
    step: float,
    n_epochs: int = 100,
    seed: int = 0,
) -> np.ndarray:
    """The probability of each pair, shape (m, n).

    Parameters
    ----------
    values, drug_similarity, target_similarity : ndarray, shapes (m, n), (m, m) and (n, n)
    importance : float
        Weight of an interaction against that of any other pair.
    decay, drug_graph, target_graph : float
        Weights of the squared factors and of their energies on the graphs of the five nearest neighbours.
    step : float
        Step size of AdaGrad.
    """
    pairs = np.nan_to_num(values)
    similarities = [each - np.diag(np.diag(each)) for each in (drug_similarity, target_similarity)]
    graphs = [
        decay * np.eye(len(each)) + strength * _laplacian(each)
        for each, strength in zip(similarities, (drug_graph, target_graph), strict=True)
    ]
    rng = np.random.RandomState(seed)
    drugs, targets = (rng.normal(size=(size, n_factors)) / np.sqrt(n_factors) for size in pairs.shape)
    drugs, targets = _ascend(drugs, targets, pairs, importance, graphs, step, n_epochs)
    drugs = _from_neighbors(drugs, np.asarray(pairs.any(axis=1)), similarities[0])
    targets = _from_neighbors(targets, np.asarray(pairs.any(axis=0)), similarities[1])
    return expit(drugs @ targets.T)


def _ascend(
    drugs: np.ndarray,
    targets: np.ndarray,
    pairs: np.ndarray,
    importance: float,
    graphs: list[np.ndarray],
    step: float,
    n_epochs: int,
) -> tuple[np.ndarray, np.ndarray]:
    weighted, weights = importance * pairs, (importance - 1) * pairs + 1
    squares = np.zeros_like(drugs), np.zeros_like(targets)
    last = -np.inf
    for _ in range(n_epochs):
        slope = (weighted - weights * expit(drugs @ targets.T)) @ targets - graphs[0] @ drugs
        drugs = drugs + adagrad(slope, squares[0], step)
        slope = (weighted - weights * expit(drugs @ targets.T)).T @ drugs - graphs[1] @ targets
        targets = targets + adagrad(slope, squares[1], step)
        logits = drugs @ targets.T
        fit = np.sum(weighted * logits) - np.sum(weights * np.logaddexp(0, logits))
        now = fit - (np.sum(drugs * (graphs[0] @ drugs)) + np.sum(targets * (graphs[1] @ targets))) / 2
        if abs(now - last) < 1e-5 * abs(last) < np.inf:
            break
        last = now
    return drugs, targets


def adagrad(slope: np.ndarray, squares: np.ndarray, step: float) -> np.ndarray:
    """The step of AdaGrad along a slope, whose squares it adds to those of the slopes before."""
    squares += np.square(slope)
    return step * slope / np.sqrt(np.maximum(squares, np.finfo(np.float64).tiny))


def _laplacian(similarity: np.ndarray) -> np.ndarray:
    nearest = np.argsort(-similarity, axis=1, kind="stable")[:, :_NEIGHBORS]
    graph = np.zeros_like(similarity)
    np.put_along_axis(graph, nearest, np.take_along_axis(similarity, nearest, axis=1), axis=1)
    graph = (graph + graph.T) / 2
    return np.diag(graph.sum(axis=1)) - graph


def _from_neighbors(factors: np.ndarray, linked: np.ndarray, similarity: np.ndarray) -> np.ndarray:
    """Give rows without interactions the weighted mean of the factors of their five nearest rows that have some."""
    filled, present = factors.copy(), np.flatnonzero(linked)
    for row in np.flatnonzero(~linked):
        nearest = present[np.argsort(-similarity[row, present], kind="stable")[:_NEIGHBORS]]
        weights = similarity[row, nearest]
        if weights.sum() > 0:
            filled[row] = weights @ factors[nearest] / weights.sum()
    return filled
