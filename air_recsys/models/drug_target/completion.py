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
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from air_recsys.metrics import average_precision
from air_recsys.nn.devices import gpu_of
from air_recsys.storage.arrays import Array, in_numpy, library_of, like
from air_recsys.storage.lazy import torch

_MOST_BORDERED = 2**22  # numbers
_NEGATIVE = 1e-9  # eigenvalues down to this are rounding
Graphs = tuple[Array | None, Array | None]  # similarities of rows (m, m) and of columns (n, n)


class Spectrum(NamedTuple):
    """Eigenvectors of both graphs, and what a round keeps of each of their products."""

    rows: Array  # (m, m)
    columns: Array  # (n, n)
    shares: Array  # (m, n), in [0, 1)
    values: tuple[Array, Array]  # eigenvalues of both graphs, (m,) and (n,)

    def turned(self) -> Spectrum:
        """Return the same of the transposed matrix."""
        return Spectrum(self.columns, self.rows, self.shares.T, (self.values[1], self.values[0]))

    def smooth(self, values: Array) -> Array:
        """Return the X of the module's first step for an R."""
        return self.rows @ ((self.rows.T @ values @ self.columns) * self.shares) @ self.columns.T


@dataclass(frozen=True, eq=False)
class Completed:
    """The result of the rounds."""

    scores: Array  # X, (m, n)
    filled: Array  # R, (m, n): recorded values, completed where missing
    smoothed: Array  # the R before, that X is made of, (m, n)
    make: Callable[[], Spectrum]  # of the graphs that made X of it

    @cached_property
    def spectrum(self) -> Spectrum:
        """That made X of the R before; for rows below a completion it is computed when asked for."""
        return self.make()

    @cached_property
    def rotated(self) -> Array:
        """What X is made of, in the eigenvectors of both graphs, (m, n)."""
        return self.spectrum.rows.T @ self.smoothed @ self.spectrum.columns

    def turned(self) -> Completed:
        """Return the same of the transposed matrix."""
        return Completed(self.scores.T, self.filled.T, self.smoothed.T, lambda: self.spectrum.turned())

    def objective(self) -> tuple[float, float]:
        """Return what X minimises: its distance to R, squared, and that with the term of the graphs."""
        apart = self.smoothed - self.scores
        return float((apart * apart).sum()), float((apart * self.smoothed).sum())

    def on_host(self) -> Completed:
        """Return the same in the memory of the processor."""
        if isinstance(self.scores, np.ndarray):
            return self
        rows, columns, shares, (left, right) = self.spectrum
        values = in_numpy(left), in_numpy(right)
        spectrum = Spectrum(in_numpy(rows), in_numpy(columns), in_numpy(shares), values)
        scores, filled, smoothed = map(in_numpy, (self.scores, self.filled, self.smoothed))
        return Completed(scores, filled, smoothed, lambda: spectrum)


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
    place: Array = np.empty(0) if (gpu := gpu_of(device)) is None else torch.empty(0, device=gpu)
    shown, recorded = like(place, weights), like(place, weights * values)
    given = tuple(None if each is None else like(place, each.astype(values.dtype)) for each in similarities)
    settings = (given[0], given[1]), similarity_weight, noise, held
    completed, done = _round(recorded, recorded, shown, *settings), 1  # before the first one a missing entry is 0
    while not watch(done, completed) and done < n_rounds and not bool((completed.filled == completed.smoothed).all()):
        completed, done = _round(completed.filled, recorded, shown, *settings), done + 1
    return completed.on_host()


def _round(
    filled: Array,
    recorded: Array,
    shown: Array,
    similarities: Graphs,
    similarity_weight: float,
    noise: float,
    held: Completed | None,
) -> Completed:
    rows, columns = similarities
    if held is not None:
        return _round_below(held, filled, recorded, shown, rows, similarity_weight, noise)
    found = spectrum(affinity(filled, rows, similarity_weight), affinity(filled.T, columns, similarity_weight), noise)
    scores = found.smooth(filled)
    return Completed(scores, recorded + (1 - shown) * scores.clip(0, 1), filled, lambda: found)


def _round_below(
    held: Completed,
    filled: Array,
    recorded: Array,
    shown: Array,
    similarity: Array | None,
    similarity_weight: float,
    noise: float,
) -> Completed:
    """A round of the rows below a completion that is held."""
    known = len(held.scores)
    whole = np.concatenate([held.smoothed, filled[known:]])
    graph, before = affinity(whole, similarity, similarity_weight, known), held.spectrum

    def make() -> Spectrum:
        left, vectors = np.linalg.eigh(graph)
        shares = _shares(left, before.values[1], noise)
        return Spectrum(vectors, before.columns, shares, (left, before.values[1]))

    completed = Completed(whole, whole, whole, make)
    scores = _bordered(held, graph, filled[known:], noise)
    scores = completed.spectrum.smooth(whole)[known:] if scores is None else scores
    after = recorded[known:] + (1 - shown[known:]) * scores.clip(0, 1)
    return replace(
        completed, scores=np.concatenate([held.scores, scores]), filled=np.concatenate([held.filled, after])
    )


def _bordered(held: Completed, graph: Array, new: Array, noise: float) -> Array | None:
    r"""Return the last rows of X by the spectrum of the first ones, without one of all, (k, n).

    In an eigenvector of the columns' graph of value :math:`\mu` the equations of a round are :math:`x = y - c z,\ (A +
    c) z = y` with :math:`c = \sigma / \mu`; z follows by the Schur complement of the known rows. None where the graph
    of all rows has negative eigenvalues, which count as 0, or where there are many new rows.
    """
    before = held.spectrum
    (left, right), known, k = before.values, len(held.scores), len(new)
    if k**2 * len(right) > _MOST_BORDERED or left[0] < -_NEGATIVE:
        return None
    edges = before.rows.T @ graph[:known, known:]  # (m, k)
    own = graph[known:, known:] + _NEGATIVE * np.eye(k, dtype=graph.dtype)
    if np.linalg.eigvalsh(own - edges.T @ (edges / (left.clip(min=0) + _NEGATIVE)[:, None]))[0] < 0:
        return None
    rotated = new @ before.columns
    ratio = noise / right.clip(min=np.finfo(right.dtype).tiny ** 0.5)  # c, (n,)
    inverse = 1 / (left.clip(min=0)[:, None] + ratio)  # (m, n)
    inner = np.einsum("ia,ij,ib->jab", edges, inverse, edges)
    inner = graph[known:, known:] + ratio[:, None, None] * np.eye(k, dtype=graph.dtype) - inner  # (n, k, k)
    rest = rotated - edges.T @ (inverse * held.rotated)  # (k, n)
    solved = np.linalg.solve(inner, rest.T[:, :, None])[:, :, 0].T
    return ((rotated - ratio * solved) * (right > 0)) @ before.columns.T


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
    rows, columns, shares, _ = completed.spectrum
    weights = rows @ (np.outer(rows[row], columns[column]) * shares) @ columns.T
    return completed.smoothed * weights


def affinity(rows: Array, similarity: Array | None, weight: float, known: int | None = None) -> Array:
    """Return the graph A over rows (m, n), its diagonal included; shape (m, m). The known ones, the first, set tau."""
    library, norms, learned = library_of(rows), (rows * rows).sum(axis=1), rows @ rows.T
    learned *= -2  # in place: it is large
    learned += norms
    learned += norms[:, None]  # squared distances
    learned.clip(0, None, out=learned) if library is np else learned.clamp_(min=0)
    own = like(rows, np.arange(len(rows)))
    learned[own, own] = 0
    learned /= -norms[:known].mean().clip(min=float(library.finfo(norms.dtype).tiny))
    library.exp(learned, out=learned)
    if similarity is not None:
        learned *= 1 - weight
        learned += weight * similarity
    return learned


def spectrum(rows: Array, columns: Array, noise: float) -> Spectrum:
    """Return the spectrum of two graphs, (m, m) and (n, n); negative eigenvalues of a graph count as 0."""
    (left, first), (right, second) = map(library_of(rows).linalg.eigh, (rows, columns))
    return Spectrum(first, second, _shares(left, right, noise), (left, right))


def _shares(left: Array, right: Array, noise: float) -> Array:
    kept = library_of(left).outer(left.clip(min=0), right.clip(min=0))
    return kept / (kept + noise)


EFFECTIVE_NEIGHBORS = 3.0
_DECAYS = (0.1, 0.2, 0.4, 0.8, 1.6)
_UNCERTAIN = 100  # rows
_MOST_NEAREST, _DECAY, _BROAD = 0.7, 0.8, 0.1  # chosen on validation parts: benchmarks/reports/drug-target.md
_TINY = 1e-9
_SHARES = np.linspace(0, 1, 6)


class Extension(NamedTuple):
    """How rows without interactions follow from known ones: from the nearest, and by ridge regression."""

    share: float  # of the nearest
    vectors: np.ndarray  # of the similarity of the known rows, (n_known, n_known)
    scales: np.ndarray  # its eigenvalues with the decay of the regression, (n_known,)

    @classmethod
    def of(cls, among: np.ndarray, rows: np.ndarray, labels: np.ndarray, recorded: np.ndarray) -> Extension:
        """Return what predicts each known row best from the others.

        Parameters
        ----------
        among : ndarray, shape (n_known, n_known)
            Symmetric, in [0, 1].
        rows : ndarray, shape (n_known, n)
            Values to be predicted from.
        labels, recorded : ndarray, shape (n_known, n)
            Values 0 or 1 by which the two predictors are compared, and whether each is recorded.
        """
        if len(among) < 3:  # too few to leave one out
            return cls(1.0, np.zeros((len(among), 0)), np.ones(0))
        others = 1 - among
        np.fill_diagonal(others, np.inf)
        by_neighbors = softmin_neighbors(others) @ rows
        values, vectors = np.linalg.eigh(among)
        values = np.maximum(values, 0)
        left_out = _leave_one_out(values, vectors, _DECAY, rows, vectors.T @ rows)
        best_share = _best_share(by_neighbors[recorded], left_out[recorded], labels[recorded])
        trust = len(rows) ** 2 / (len(rows) ** 2 + _UNCERTAIN**2)
        return cls(_MOST_NEAREST * (trust * best_share + (1 - trust) / 2), vectors, values + _DECAY)

    def weights(self, across: np.ndarray) -> np.ndarray:
        """Return weights whose product with the known rows predicts others, by their similarity; (k, n_known) both.

        None is below 0, as the order of low scores would be that of negative lobes. All known rows have a small one
        more, by the cube of the similarity: it orders what is like none of the nearest.
        """
        neighbors = softmin_neighbors(1 - across)
        if not self.scales.size:
            return neighbors
        ridge, cubes = (across @ self.vectors / self.scales) @ self.vectors.T, across**3 + _TINY
        broad = cubes / cubes.sum(axis=1, keepdims=True)
        return self.share * neighbors + (1 - self.share) * ridge.clip(0) + _BROAD * broad


def row_errors(among: np.ndarray, rows: np.ndarray, recorded: np.ndarray) -> np.ndarray:
    """Return the squared error of each row, predicted from the others by ridge regression of the best decay, (n,)."""
    values, vectors = np.linalg.eigh(among)
    values, projected = np.maximum(values, 0), vectors.T @ rows
    errors = [
        np.square((_leave_one_out(values, vectors, decay, rows, projected) - rows) * recorded).sum(axis=1)
        for decay in _DECAYS
    ]
    return min(errors, key=np.sum)


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
