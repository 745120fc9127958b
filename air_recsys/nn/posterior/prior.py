r"""The prior of one side and the noise, both learned with it.

The mean of a row is a linear map of its features:

.. math:: x_i \sim N(W^\top f_i, S),\qquad W \sim N(0, \Lambda^{-1}\otimes S),\qquad
    S^{-1} \sim \mathrm{Wishart}(d + 2, I / s_0)

with features f (the last one constant), :math:`\Lambda` a ridge common to all features but the constant; that of
features that are known beside the pattern is smaller where they explain much. An embedding of a given graph, vectors
of unit length, has a ridge of its own, (1 - s) / s: a share s of the prior variance of a row follows the graph,

.. math:: \mathrm{cov}(x_i, x_j) = \big(\tfrac{s}{1 - s}\, f_i \cdot f_j + \delta_{ij}\big)\, S.

The noise has a variance of its own for every row and every column, shrunk towards a common one:

.. math:: e_{ij} \sim N(0, \sigma^2 / (w_{ij} t_i s_j)),\qquad t_i, s_j \sim \mathrm{Gamma}(\nu/2, \nu/2)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from air_recsys.nn.posterior.equations import Rows
from air_recsys.nn.posterior.exchange import ALONE, Exchange
from air_recsys.nn.posterior.flags import Flag, cholesky, inverse
from air_recsys.nn.posterior.moments import solutions
from air_recsys.nn.posterior.state import Stateful, gamma
from air_recsys.nn.posterior.triangles import symmetric
from air_recsys.storage.lazy import Tensor, torch
from air_recsys.storage.threads import in_workers

_SPREAD = 0.1  # s_0
_FREE = 0.01  # ridge of the constant
_FURTHER = 0.8  # of the way of a precision, beyond it; at 1 one that the rows fix at once swings for ever
_RIDGE = 20.0  # of the features; learned by evidence it is too small, see benchmarks/reports/accuracy.md
_COUNTS = 10.0  # nu
_ROWS = 1024  # that threads take at a time
_SMALLEST = 1e-4  # fraction of the starting variance; float32 cannot solve the equations of a smaller noise
Numbers = TypeVar("Numbers", Tensor, np.ndarray)
Part = TypeVar("Part")


class Embedding(NamedTuple):
    """The number of features that embed a given graph, and the share of the prior variance that follows it."""

    number: int = 0
    strength: float = 0.5

    @property
    def ridge(self) -> float:
        """The ridge of their weights."""
        return (1 - self.strength) / self.strength


_NO_EMBEDDING = Embedding()


class _Sums(NamedTuple):
    """Sums over all rows x with features f."""

    products: Tensor  # of f x^T, (k, d)
    squares: Tensor  # of E[x x^T], (d, d)


class RowPrior(Stateful):
    """W and S of one side, from features (m, k), the width d of a row, and the starting variance of its entries.

    The last two features are the degree and the constant; before them stand the `embedding` of a graph, and before
    these `n_known_features` that are known beside the pattern. Where the variance is `known`, `update` leaves S as it
    is. Sums over rows are those over the `own` ones of each process of an `exchange`. `flags` are those of the last
    update or draw.
    """

    _STATE = ("weights", "precision", "_ridge")

    def __init__(
        self,
        features: Tensor,
        width: int,
        variance: float,
        *,
        known: bool = False,
        n_known_features: int = 0,
        embedding: Embedding = _NO_EMBEDDING,
        own: slice = slice(None),
        exchange: Exchange = ALONE,
    ) -> None:
        self.features = features.to(torch.float64)
        like = {"dtype": torch.float64, "device": features.device}
        self._gram = self.features.T @ self.features
        self._ridge = torch.full((features.shape[1],), _RIDGE, **like)
        self._ridge[-1] = _FREE
        self._identity = torch.eye(width, **like)
        self._spread = _SPREAD * self._identity
        self.weights = torch.zeros(features.shape[1], width, **like)  # W
        self.precision = self._identity / variance  # S^-1
        self._known, self._own, self._exchange = known, own, exchange
        last = features.shape[1] - 2 - embedding.number
        self._known_features = slice(last - n_known_features, last)
        self._ridge[last : last + embedding.number] = embedding.ridge
        places = torch.arange(features.shape[1] - 1, device=features.device)
        self._learned = torch.cat([places[:last], places[last + embedding.number :]])
        self.flags: list[Flag] = []
        self._fitted: tuple[Tensor, Tensor] | None = None  # W, and W^T f of all rows

    def load_state(self, state: dict[str, Any]) -> None:
        """Go back to what `state` returned, or raise `ValueError` for other values, as from a file."""
        super().load_state(state)
        self._fitted = None  # the same tensor may hold other weights

    def mean(self, rows: slice = slice(None)) -> Tensor:
        """W^T f of each row, (m, d), or of some of them."""
        if self._fitted is None or self._fitted[0] is not self.weights:
            of_parts = self._of_parts(lambda part: self.features[part] @ self.weights, len(self.features))
            self._fitted = self.weights, torch.cat(of_parts) if len(of_parts) > 1 else of_parts[0]
        return self._fitted[1][rows]

    def update(self, rows: Rows, past: float = 0.0) -> None:
        """Set W, and S unless it is known, to what is most probable given the rows, or move on beyond it.

        W goes the fraction `past` of its way further. With `past` > 0 a precision :math:`P = S^{-1}` that follows
        :math:`P_0` becomes :math:`(1 - b) P + b P P_0^{-1} P` with b = 0.8, which is positive definite.
        """
        weights, factor, sums = self._regression(rows)
        scatter = self._scatter(sums, weights)
        self.weights = torch.lerp(self.weights, weights, 1 + past)
        self._learn_ridge(weights, factor)
        if self._known:
            return
        precision = inverse(scatter, self.flags) * (len(rows.mean) + 1)
        if past > 0:
            further = precision @ inverse(self.precision, self.flags) @ precision
            precision = torch.lerp(precision, further, _FURTHER)
        self.precision = (precision + precision.mT) / 2

    def draw(self, rows: Rows, generator: torch.Generator, momentum: float = 0.0) -> None:
        """Draw S given W, then W past its mean (over-relaxation, see `Solution.draw`), and the ridge."""
        mean, factor, sums = self._regression(rows)
        scatter, freedom = self._scatter(sums, self.weights), len(rows.mean) + len(self.weights)
        root = cholesky(inverse(scatter, self.flags), self.flags) @ self._bartlett(freedom, generator)
        self.precision = root @ root.T
        noise = torch.linalg.solve_triangular(factor.mT, self._normal(mean.shape, generator), upper=True)
        error = torch.linalg.solve_triangular(root, noise, upper=False, left=False)
        self.weights = mean - momentum * (self.weights - mean) + (1 - momentum**2) ** 0.5 * error
        squares = (self.weights[self._learned] @ root).square()
        if squares.numel():
            freedom = squares.new_full((), squares.numel() + 1)
            ridge = gamma(freedom / 2, generator) * 2 / (squares.sum() + 1 / _RIDGE)
            self._ridge = self._ridge.clone()
            self._ridge[self._learned] = ridge

    def _learn_ridge(self, weights: Tensor, factor: Tensor) -> None:
        """Set the ridge of the known features to the one that is most probable given their weights, at most 20.

        Most factors know nothing of most features, so that the most probable one is mostly too large for the biases.
        """
        own = weights[self._known_features]
        if own.numel():
            known = torch.eye(len(factor), dtype=factor.dtype, device=factor.device)[:, self._known_features]
            # The trace of the inverse there; `cholesky_inverse` lets the host wait for a GPU.
            errors = torch.linalg.solve_triangular(factor, known, upper=False).square().sum() * own.shape[1]
            squares = ((own @ self.precision) * own).sum() + errors
            self._ridge = self._ridge.clone()
            self._ridge[self._known_features] = ((own.numel() + 1) / (squares + 1 / _RIDGE)).clamp(max=_RIDGE)

    def _regression(self, rows: Rows) -> tuple[Tensor, Tensor, _Sums]:
        """W by ridge regression, the Cholesky factor of its precision, and what the scatter follows from."""
        self.flags = []
        factor = cholesky(self._gram + torch.diag(self._ridge), self.flags)
        features, means = self.features[self._own], rows.mean[self._own]
        covariances = None if rows.covariance is None else rows.covariance[self._own]

        def sums(part: slice) -> list[Tensor]:
            mean = means[part].to(torch.float64)
            found = [features[part].T @ mean, mean.T @ mean]
            if covariances is not None:
                found.append(symmetric(covariances[part].sum(0, keepdim=True))[0].to(torch.float64))
            return found

        first, *others = self._of_parts(sums, len(means))
        own = [sum((each[place] for each in others), start=found) for place, found in enumerate(first)]
        products, *of_rows = self._exchange.sum(*own)
        return solutions(products, factor), factor, _Sums(products, sum(of_rows[1:], of_rows[0]))

    def _scatter(self, sums: _Sums, weights: Tensor) -> Tensor:
        """The scatter of the rows around W^T f, and of W around 0, with what its prior has."""
        across = sums.products.T @ weights
        of_weights = weights.T @ (self._gram @ weights + self._ridge[:, None] * weights)
        return sums.squares - across - across.T + of_weights + self._spread

    def _of_parts(self, of_part: Callable[[slice], Part], m: int) -> list[Part]:
        step = max(m, 1) if self.features.is_cuda else _ROWS
        parts = [slice(start, min(start + step, m)) for start in range(0, max(m, 1), step)]
        return in_workers(of_part, parts, work=self.features.numel() * len(self._identity))

    def _bartlett(self, m: int, generator: torch.Generator) -> Tensor:
        """Draw the lower triangular factor of a standard Wishart matrix."""
        below = self._normal(self._identity.shape, generator).tril(-1)
        freedoms = m + len(below) + 2 - torch.arange(len(below), dtype=below.dtype, device=below.device)
        return below + torch.diag((2 * gamma(freedoms / 2, generator)).sqrt())  # roots of chi-squared numbers

    def _normal(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        like = self._identity
        return torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device)


def expected_scales(counts: Numbers, errors: Numbers) -> Numbers:
    """The mean of scales given sums of weights and of squared errors, as in `Noise.update`."""
    return (_COUNTS + counts) / (_COUNTS + errors)


def inverse_scale(counts: np.ndarray) -> np.ndarray:
    """E[1 / t] E[t] of rows with these counts: how much larger their noise is than the mean of its scale says."""
    return (_COUNTS + counts) / (_COUNTS + counts - 2)


class Noise(Stateful):
    """sigma^2, t and s.

    Parameters
    ----------
    counts : tuple of Tensor
        Sums of the entries' weights of each row and of each column.
    variance : float
        sigma^2 to start from.
    known : bool
        Whether `update` without a generator leaves sigma^2 as it is.

    Attributes
    ----------
    variance : Tensor
        sigma^2, a number in double precision on the device, for which the host need not wait.
    scales : list of Tensor
        t and s.
    """

    _STATE = ("variance", "scales")

    def __init__(self, counts: tuple[Tensor, Tensor], variance: float, *, known: bool = False) -> None:
        self._known = known
        self.variance = torch.tensor(variance, dtype=torch.float64, device=counts[0].device)
        self._floor = _SMALLEST * variance
        self.counts, self._total = counts, float(counts[0].sum())
        self.scales = [torch.ones_like(count) for count in counts]

    def update(self, side: int, errors: Tensor, generator: torch.Generator | None) -> None:
        """Set, or with a generator draw, the scales of one side (0 or 1), then sigma^2.

        `errors` are the sums of squared errors of its rows, times weight and the partner's scale, by sigma^2.
        """
        scales = expected_scales(self.counts[side], errors)
        if generator is not None:
            shape, rate = (_COUNTS + self.counts[side]) / 2, (_COUNTS + errors) / 2
            scales = (gamma(shape.to(torch.float64), generator) / rate).to(errors.dtype)
        self.scales[side] = scales
        if self._known and generator is None:
            return
        half = self._total / 2
        if generator is not None:
            half = gamma(self.variance.new_full((), half), generator)
        errors_of_all = (scales * errors).sum().to(torch.float64)
        self.variance = (self.variance * errors_of_all / (2 * half)).clamp_(min=self._floor)
