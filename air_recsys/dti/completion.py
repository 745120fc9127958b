r"""Completion of an interaction matrix under two graphs that are learned from the completed matrix.

With Y the recorded values, weights W in [0, 1] (0: missing) and graphs :math:`A_d, A_t`, one round is

.. math::
    X = \arg\min_X \|X - R\|_F^2 + \sigma\,\mathrm{vec}(X)^\top (A_d \otimes A_t)^{-1} \mathrm{vec}(X), \qquad
    R \leftarrow X + W \circ (Y - X), \qquad
    A_{ij} \leftarrow (1 - a)\,e^{-|r_i - r_j|^2 / \tau} + a\,S_{ij}

The first step is solved exactly by two eigendecompositions; R holds the recorded values and, where there are none,
those of the graphs. The graph's logits are the squared distances of AIR's row softmin, :math:`\tau` the mean squared
norm of the rows, and the similarities S enter as a prior with strength a. With no missing entry and no similarity, one
round is the regularised least squares with Gaussian interaction profiles of van Laarhoven et al., 2011.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Spectrum(NamedTuple):
    """Eigenvectors of both graphs, and what a round keeps of each of their products."""

    rows: np.ndarray  # (m, m)
    columns: np.ndarray  # (n, n)
    shares: np.ndarray  # (m, n), in [0, 1)

    def smooth(self, values: np.ndarray) -> np.ndarray:
        """Return the X of the module's first step for an R."""
        return self.rows @ ((self.rows.T @ values @ self.columns) * self.shares) @ self.columns.T


class Completed(NamedTuple):
    """The result of the rounds."""

    scores: np.ndarray  # X, (m, n)
    filled: np.ndarray  # R, (m, n): recorded values, completed where missing
    smoothed: np.ndarray  # the R before, that X is made of, (m, n)
    spectrum: Spectrum  # that made X of it


def complete(
    values: np.ndarray,
    weights: np.ndarray,
    similarities: tuple[np.ndarray | None, np.ndarray | None] = (None, None),
    *,
    similarity_weight: float = 0.5,
    noise: float = 1.0,
    n_rounds: int = 10,
) -> Completed:
    """Complete a matrix with values in [0, 1].

    Parameters
    ----------
    values : ndarray, shape (m, n)
        Recorded values; anything finite where the weight is 0.
    weights : ndarray, shape (m, n)
        In [0, 1]: the share of an entry that is taken from its record, the rest from the completion.
    similarities : pair of ndarray or None, shapes (m, m) and (n, n)
        Symmetric, in [0, 1], with unit diagonal.
    similarity_weight : float
        a, on the sides with a similarity.
    noise : float
        sigma > 0.
    n_rounds : int

    Examples
    --------
    >>> values = np.kron(np.eye(2), np.ones((3, 3)))
    >>> weights = np.ones_like(values)
    >>> weights[0, 0] = weights[0, 5] = 0
    >>> completed = complete(np.where(weights > 0, values, 0), weights)
    >>> bool(completed.scores[0, 0] > 0.5 > completed.scores[0, 5])
    True
    """
    recorded = weights * values
    given = similarities, similarity_weight, noise
    completed = _round(recorded, recorded, weights, *given)  # before the first one a missing entry is 0
    for _ in range(n_rounds - 1):
        completed = _round(completed.filled, recorded, weights, *given)
    return completed


def _round(
    filled: np.ndarray,
    recorded: np.ndarray,
    weights: np.ndarray,
    similarities: tuple[np.ndarray | None, np.ndarray | None],
    similarity_weight: float,
    noise: float,
) -> Completed:
    drugs, targets = similarities
    graphs = affinity(filled, drugs, similarity_weight), affinity(filled.T, targets, similarity_weight)
    found = spectrum(*graphs, noise)
    scores = found.smooth(filled)
    return Completed(scores, recorded + (1 - weights) * scores.clip(0, 1), filled, found)


def contributions(completed: Completed, drug: int, target: int) -> np.ndarray:
    """Return what each entry of R adds to one entry of the X that is made of it, (m, n): X is linear in R.

    Examples
    --------
    >>> values = np.kron(np.eye(2), np.ones((3, 3)))
    >>> completed = complete(values, np.ones_like(values))
    >>> added = contributions(completed, 0, 0)
    >>> bool(np.isclose(added.sum(), completed.scores[0, 0])), bool(added[:3, :3].sum() > 0.99 * added.sum())
    (True, True)
    """
    rows, columns, shares = completed.spectrum
    return completed.smoothed * (rows @ (np.outer(rows[drug], columns[target]) * shares) @ columns.T)


def left_out(completed: Completed) -> np.ndarray:
    r"""Return X with each entry predicted from all others, the graphs as they are, (m, n).

    It is :math:`(x - h r) / (1 - h)` entry by entry, with h what an entry of R adds to its own of X.

    Examples
    --------
    >>> values = np.kron(np.eye(2), np.ones((3, 3)))
    >>> found = left_out(complete(values, np.ones_like(values)))
    >>> bool(found[0, 0] > 0.5 > found[0, 5])
    True
    """
    rows, columns, shares = completed.spectrum
    own = np.square(rows) @ shares @ np.square(columns).T
    return (completed.scores - own * completed.smoothed) / (1 - own)


def affinity(rows: np.ndarray, similarity: np.ndarray | None, weight: float) -> np.ndarray:
    """Return the graph A over rows (m, n), its diagonal included; shape (m, m).

    Examples
    --------
    >>> affinity(np.eye(2), None, 0.5).round(3).tolist()
    [[1.0, 0.135], [0.135, 1.0]]
    """
    norms = np.square(rows).sum(axis=1)
    distances = np.maximum(norms[:, None] + norms - 2 * rows @ rows.T, 0)
    np.fill_diagonal(distances, 0)
    learned = np.exp(-distances / max(norms.mean(), np.finfo(np.float64).tiny))
    return learned if similarity is None else (1 - weight) * learned + weight * similarity


def smooth(values: np.ndarray, drugs: np.ndarray, targets: np.ndarray, noise: float) -> np.ndarray:
    """Return the X of the module's first step; negative eigenvalues of a graph count as 0."""
    return spectrum(drugs, targets, noise).smooth(values)


def spectrum(drugs: np.ndarray, targets: np.ndarray, noise: float) -> Spectrum:
    """Return the spectrum of two graphs, (m, m) and (n, n)."""
    (left, rows), (right, columns) = np.linalg.eigh(drugs), np.linalg.eigh(targets)
    kept = np.maximum(left, 0)[:, None] * np.maximum(right, 0)
    return Spectrum(rows, columns, kept / (kept + noise))
