r"""Completion of an interaction matrix with two graphs, which are learned from the completed matrix.

With Y the recorded values, weights W in [0, 1] (0: missing) and graphs :math:`A_d, A_t`, one round is

.. math::
    X = \arg\min_X \|X - R\|_F^2 + \sigma\,\mathrm{vec}(X)^\top (A_d \otimes A_t)^{-1} \mathrm{vec}(X), \qquad
    R \leftarrow X + W \circ (Y - X), \qquad
    A_{ij} \leftarrow (1 - a)\,e^{-|r_i - r_j|^2 / \tau} + a\,S_{ij}

The first step is solved exactly by two eigendecompositions. R has the recorded values and, for other pairs, those of
the graphs. The graph's logits are the squared distances of AIR's row softmin, :math:`\tau` the mean squared norm of
the rows, and the similarities S enter as a prior with strength a. With no missing entry and no similarity, one round
is the regularised least squares with Gaussian interaction profiles of van Laarhoven et al., 2011.

New rows keep to these equations with all that is known held, R, its X and both graphs. They are the last rows of

.. math::
    \arg\min_X \|X - [R; r]\|_F^2 + \sigma \mathrm{vec}(X)^\top ([A_d, e^\top; e, A_r] \otimes A_t)^{-1} \mathrm{vec} X

Their edges e and :math:`A_r` follow from R, r and the same :math:`\tau` as above, and r from these rows, in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from air_recsys.metrics import average_precision

Graphs = tuple[torch.Tensor | None, torch.Tensor | None]  # similarities of rows (m, m) and of columns (n, n)


class Spectrum(NamedTuple):
    """Eigenvectors of both graphs, and what a round keeps of each of their products."""

    rows: torch.Tensor  # (m, m)
    columns: torch.Tensor  # (n, n)
    shares: torch.Tensor  # (m, n), in [0, 1)

    def smooth(self, values: torch.Tensor) -> torch.Tensor:
        """Return the X of the module's first step for an R."""
        return self.rows @ ((self.rows.T @ values @ self.columns) * self.shares) @ self.columns.T


class Completed(NamedTuple):
    """The result of the rounds."""

    scores: torch.Tensor  # X, (m, n)
    filled: torch.Tensor  # R, (m, n): recorded values, completed where missing
    smoothed: torch.Tensor  # the R before, that X is made of, (m, n)
    spectrum: Spectrum  # that made X of it

    def objective(self) -> tuple[float, float]:
        """Return what X minimises: its distance to R, squared, and that with the term of the graphs."""
        apart = self.smoothed - self.scores
        return float(apart.square().sum()), float((apart * self.smoothed).sum())

    def on_host(self) -> Completed:
        """Return the same in the memory of the processor."""
        spectrum = Spectrum(*(part.cpu() for part in self.spectrum))
        return Completed(self.scores.cpu(), self.filled.cpu(), self.smoothed.cpu(), spectrum)


def complete(
    values: np.ndarray,
    weights: np.ndarray,
    similarities: tuple[np.ndarray | None, np.ndarray | None] = (None, None),
    *,
    similarity_weight: float = 0.5,
    noise: float = 1.0,
    n_rounds: int = 10,
    device: str = "cpu",
    held: Completed | None = None,
    watch: Callable[[int, Completed], bool] = lambda done, completed: False,
) -> Completed:
    """Complete a matrix with values in [0, 1], in the precision of the values.

    If nothing is missing all rounds are equal, and only the first one is computed.

    Parameters
    ----------
    values : ndarray, shape (m, n)
        Recorded values; any finite value where the weight is 0.
    weights : ndarray, shape (m, n)
        In [0, 1]: the share of an entry that comes from its record; the rest comes from the completion.
    similarities : pair of ndarray or None, shapes (m, m) and (n, n)
        Symmetric, in [0, 1], with unit diagonal.
    similarity_weight : float
        a, for sides with a similarity.
    noise : float
        sigma > 0.
    device : str
        Device of the rounds; the result is in the memory of the CPU.
    held : Completed, optional
        Of the first rows, on the CPU: only the rows below it are completed.
    watch : callable
        Called with the number of rounds that are done and their result; they end where it returns True.
    """
    shown = torch.from_numpy(weights).to(device)
    recorded = torch.from_numpy(weights * values).to(device)
    given = tuple(None if each is None else torch.from_numpy(each).to(recorded) for each in similarities)
    settings = (given[0], given[1]), similarity_weight, noise, held
    completed, done = _round(recorded, recorded, shown, *settings), 1  # before the first one a missing entry is 0
    while not watch(done, completed) and done < n_rounds and not torch.equal(completed.filled, completed.smoothed):
        completed, done = _round(completed.filled, recorded, shown, *settings), done + 1
    return completed.on_host()


def _round(
    filled: torch.Tensor,
    recorded: torch.Tensor,
    shown: torch.Tensor,
    similarities: Graphs,
    similarity_weight: float,
    noise: float,
    held: Completed | None,
) -> Completed:
    (rows, columns), known = similarities, len(filled if held is None else held.scores)
    if held is not None:
        filled = torch.cat([held.smoothed, filled[known:]])
    graphs = affinity(filled, rows, similarity_weight, known), affinity(filled[:known].T, columns, similarity_weight)
    found = spectrum(*graphs, noise)
    scores = found.smooth(filled)
    after = recorded + (1 - shown) * scores.clamp(0, 1)
    if held is not None:
        scores, after = torch.cat([held.scores, scores[known:]]), torch.cat([held.filled, after[known:]])
    return Completed(scores, after, filled, found)


def contributions(completed: Completed, row: int, column: int) -> np.ndarray:
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
    weights = rows @ (torch.outer(rows[row], columns[column]) * shares) @ columns.T
    return (completed.smoothed * weights).numpy()


def affinity(
    rows: torch.Tensor, similarity: torch.Tensor | None, weight: float, known: int | None = None
) -> torch.Tensor:
    """Return the graph A over rows (m, n), its diagonal included; shape (m, m). The known ones, the first, set tau."""
    norms = rows.square().sum(dim=1)
    learned = (rows @ rows.T).mul_(-2).add_(norms).add_(norms[:, None])  # squared distances, in place: it is large
    learned.clamp_(min=0).fill_diagonal_(0)
    learned.div_(-norms[:known].mean().clamp(min=torch.finfo(norms.dtype).tiny)).exp_()
    return learned if similarity is None else learned.mul_(1 - weight).add_(similarity, alpha=weight)


def spectrum(rows: torch.Tensor, columns: torch.Tensor, noise: float) -> Spectrum:
    """Return the spectrum of two graphs, (m, m) and (n, n); negative eigenvalues of a graph count as 0."""
    (left, first), (right, second) = torch.linalg.eigh(rows), torch.linalg.eigh(columns)
    kept = torch.outer(left.clamp(min=0), right.clamp(min=0))
    return Spectrum(first, second, kept / (kept + noise))


EFFECTIVE_NEIGHBORS = 3.0
_DECAYS = (0.1, 0.2, 0.4, 0.8, 1.6)
_UNCERTAIN = 100  # rows
_SHARES = np.linspace(0, 1, 6)


def extension_weights(
    similarity: np.ndarray, known: np.ndarray, rows: np.ndarray, labels: np.ndarray, recorded: np.ndarray
) -> np.ndarray:
    """Return weights whose product with the known rows predicts the unknown ones; shape (n_unknown, n_known).

    Parameters
    ----------
    similarity : ndarray, shape (m, m)
        Symmetric, in [0, 1].
    known : ndarray of bool, shape (m,)
        At least one is True.
    rows : ndarray, shape (n_known, n)
        Values to be predicted from.
    labels, recorded : ndarray, shape (n_known, n)
        Values 0 or 1 by which the two predictors are compared, and whether each is recorded.
    """
    among, across = similarity[np.ix_(known, known)], similarity[np.ix_(~known, known)]
    neighbors = softmin_neighbors(1 - across)
    if known.sum() < 3:  # too few to leave one out
        return neighbors
    others = 1 - among
    np.fill_diagonal(others, np.inf)
    by_neighbors = softmin_neighbors(others) @ rows
    values, vectors = np.linalg.eigh(among)
    values = np.maximum(values, 0)
    projected = vectors.T @ rows
    left_out = [_leave_one_out(values, vectors, decay, rows, projected) for decay in _DECAYS]
    errors = [np.square((predicted - labels)[recorded]).sum() for predicted in left_out]
    best = int(np.argmin(errors))
    best_share = _best_share(by_neighbors[recorded], left_out[best][recorded], labels[recorded])
    trust = len(rows) ** 2 / (len(rows) ** 2 + _UNCERTAIN**2)
    share = trust * best_share + (1 - trust) / 2
    ridge = (across @ vectors / (values + _DECAYS[best])) @ vectors.T
    return share * neighbors + (1 - share) * ridge


def softmin_neighbors(distances: np.ndarray, effective: float = EFFECTIVE_NEIGHBORS) -> np.ndarray:
    """Return the row softmin, scaled so that every row has that many effective neighbours (or all that there are).

    The distances, shape (a, b), are infinite where there is no neighbour.
    """
    shifted = distances - distances.min(axis=1, keepdims=True)
    low, high = np.full(len(distances), 1e-3), np.full(len(distances), 1e4)
    weights = np.empty_like(distances)
    for _ in range(40):
        scale = np.sqrt(low * high)
        weights = np.exp(-scale[:, None] * shifted)
        weights /= weights.sum(axis=1, keepdims=True)
        entropy = -(weights * np.log(np.maximum(weights, np.finfo(np.float64).tiny))).sum(axis=1)
        too_many = np.exp(entropy) > effective
        low, high = np.where(too_many, scale, low), np.where(too_many, high, scale)
    return weights


def _leave_one_out(
    values: np.ndarray, vectors: np.ndarray, decay: float, rows: np.ndarray, projected: np.ndarray
) -> np.ndarray:
    """Return what ridge regression makes of each row without itself; projected rows are those on the vectors."""
    kept = values / (values + decay)
    own = (np.square(vectors) @ kept)[:, None]
    return (vectors @ (kept[:, None] * projected) - own * rows) / (1 - own)


def _best_share(first: np.ndarray, second: np.ndarray, labels: np.ndarray) -> float:
    precisions = [average_precision(labels, share * first + (1 - share) * second) for share in _SHARES]
    return float(_SHARES[int(np.argmax(precisions))])
