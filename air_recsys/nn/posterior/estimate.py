"""The results of the sweeps: the mean of the scores as factors and biases, and the terms of their uncertainty.

Of draws, the mean of many products of low rank is kept as sketches, without the products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from air_recsys.nn.posterior.posterior import Posterior
from air_recsys.nn.posterior.state import Stateful, set_values
from air_recsys.storage.lazy import Tensor, torch
from air_recsys.storage.threads import in_workers, one_thread

_RANKS = 5  # rank of the mean of many products, in ranks of one product
_ROWS = 1024  # that threads take at a time
_DRAWS = 20  # draws that are kept for the uncertainty


class Scores(NamedTuple):
    """Scores left @ right.T plus biases."""

    left: Tensor  # (m, k)
    right: Tensor  # (n, k)
    row_biases: Tensor  # (m,)
    column_biases: Tensor  # (n,)


class Priors(NamedTuple):
    """W and S^-1 of both sides, one for each of s draws (s = 1 without draws)."""

    row_weights: Tensor  # (s, k, d)
    column_weights: Tensor  # (s, l, d)
    row_precisions: Tensor  # (s, d, d)
    column_precisions: Tensor  # (s, d, d)


class Uncertainty(NamedTuple):
    """The variance of a new entry (i, j): noise * of_rows[i] * of_columns[j], and that of its score.

    The latter follows from Gaussian rows and columns, x ~ N(mean, covariance), or from draws of both. With their
    priors, one for each draw, new rows and columns follow too.
    """

    noise: float
    of_rows: Tensor  # (m,)
    of_columns: Tensor  # (n,)
    rows: Tensor  # (m, d), or draws (m, s, d)
    columns: Tensor  # (n, d), or draws (n, s, d)
    priors: Priors
    row_covariances: Tensor | None  # upper triangles, (m, d (d + 1) / 2)
    column_covariances: Tensor | None


class VariationalEstimate(Stateful):
    """The means and covariances of the last sweep, which are those of the posterior."""

    _STATE = ()
    ready = True  # for `uncertainty`

    def __init__(self, posterior: Posterior, n_sweeps: int) -> None:
        self.posterior = posterior

    def sweep(self) -> None:
        """Go through rows and columns once; `Posterior.check` says whether that went well."""
        self.posterior.sweep()

    def scores(self) -> Scores:
        """The expected scores: exact, as rows and columns are independent."""
        return _scores(self.posterior)

    def uncertainty(self) -> Uncertainty:
        """The terms of the standard deviations."""
        noise, sides = self.posterior.noise, self.posterior.sides
        of_rows, of_columns = (1 / scales for scales in noise.scales)
        priors, (rows, columns) = _joined([_priors(self.posterior)]), sides
        covariances = rows.covariance, columns.covariance
        return Uncertainty(float(noise.variance), of_rows, of_columns, rows.mean, columns.mean, priors, *covariances)


class LangevinEstimate(Stateful):
    """Means over the draws of all sweeps but the first tenth.

    In place of a draw stands the mean of the rows given the columns, and in place of the columns the mean of theirs
    given the rows before, and given those after. Where there is no entry (i, j), column j follows from other rows than
    i, so that the product has the mean of that of the draws, with less noise. The mean of all products is kept as a
    sketch of `_RANKS` times their rank.
    """

    _STATE = ("_row_biases", "_column_biases", "_noises", "_noise", "_count", "_done", "_draws")

    def __init__(self, posterior: Posterior, n_sweeps: int) -> None:
        self.posterior = posterior
        rows, columns = (side.mean for side in posterior.sides)
        rank = _RANKS * (rows.shape[1] - 1)
        self._products = RunningMean(len(rows), len(columns), rank, posterior.generator, rows)
        self._row_biases, self._column_biases = torch.zeros_like(rows[:, 0]), torch.zeros_like(columns[:, 0])
        self._noises = [torch.zeros_like(scales) for scales in posterior.noise.scales]
        self._noise, self._count, self._done = torch.zeros_like(posterior.noise.variance), 0, 0
        self._first, self._every = n_sweeps // 10, max(1, (n_sweeps - n_sweeps // 10) // _DRAWS)
        self._draws: list[tuple[Tensor, Tensor, list[Tensor]]] = []

    @property
    def ready(self) -> bool:
        """Whether a draw is kept, for `uncertainty`."""
        return self._count > 0

    def sweep(self) -> None:
        """Draw rows and columns once; `Posterior.check` says whether that went well."""
        before = self.posterior.means[1]
        self.posterior.sweep()
        self._done += 1
        if self._done <= self._first:
            return
        drawn, after = (side.mean for side in self.posterior.sides)
        rows, columns = self.posterior.means
        around = (before + columns) / 2
        self._products.add(rows[:, :-1], around[:, :-1])
        self._row_biases = self._row_biases + rows[:, -1]
        self._column_biases = self._column_biases + around[:, -1]
        noise = self.posterior.noise
        self._noise = self._noise + noise.variance
        self._noises = [total + 1 / scales for total, scales in zip(self._noises, noise.scales, strict=True)]
        if self._count % self._every == 0:
            self._draws.append((drawn, after, _priors(self.posterior)))
        self._count += 1

    def state(self) -> dict[str, Any]:
        """The values that sweeps change beside the posterior."""
        return {"products": self._products.state(), **super().state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go back to what `state` returned, or raise `ValueError` for other values and for draws of other sweeps."""
        self._products.load_state(state["products"])
        self._draws = []  # a best state has fewer of them than the present one
        set_values(self, state, self._STATE, self._row_biases.device)
        if len(self._draws) != -(-self._count // self._every):
            raise ValueError(f"expected a draw every {self._every} sweeps, found {len(self._draws)} of {self._count}")
        present = _kinds([side.mean for side in self.posterior.sides] + _priors(self.posterior))
        if any(_kinds([rows, columns, *priors]) != present for rows, columns, priors in self._draws):
            raise ValueError("expected draws like the rows, the columns and the priors")

    def scores(self) -> Scores:
        """The mean of the scores so far; of the first sweeps, the last draw."""
        if self._count == 0:
            return _scores(self.posterior)
        biases = self._row_biases / self._count, self._column_biases / self._count
        return Scores(*self._products.factors(), *biases)

    def uncertainty(self) -> Uncertainty:
        """The terms of the standard deviations."""
        of_rows, of_columns = (total / self._count for total in self._noises)
        drawn_rows, drawn_columns, drawn_priors = zip(*self._draws, strict=True)
        rows, columns = torch.stack(drawn_rows, dim=1), torch.stack(drawn_columns, dim=1)
        priors = _joined(drawn_priors)
        return Uncertainty(float(self._noise) / self._count, of_rows, of_columns, rows, columns, priors, None, None)


def _scores(posterior: Posterior) -> Scores:
    """The scores of the present means, or draws, of rows and columns."""
    rows, columns = (side.mean for side in posterior.sides)
    return Scores(rows[:, :-1], columns[:, :-1], rows[:, -1], columns[:, -1])


def _priors(posterior: Posterior) -> list[Tensor]:
    """The tensors of `Priors`, in the type of the entries."""
    priors, dtype = posterior.priors, posterior.sides[0].mean.dtype
    tensors = [prior.weights for prior in priors] + [prior.precision for prior in priors]
    return [tensor.to(dtype) for tensor in tensors]


def _kinds(values: Sequence[object]) -> list[tuple[torch.Size, torch.dtype] | None]:
    return [(value.shape, value.dtype) if isinstance(value, torch.Tensor) else None for value in values]


def _joined(draws: Sequence[list[Tensor]]) -> Priors:
    return Priors(*(torch.stack(tensors) for tensors in zip(*draws, strict=True)))


class RunningMean(Stateful):
    """The mean of products ``left @ right.T`` (m x n), from two random projections of it.

    The factors returned have a `rank`, and are exact, up to rounding, for a mean of that rank. They have the type and
    the device of `like`.

    Source: Tropp, Yurtsever, Udell, Cevher, Practical sketching algorithms for low-rank matrix approximation, SIAM J.
    Matrix Analysis 38(4), 2017.
    """

    _STATE = ("_range", "_corange", "_count")  # the projections follow from the generator

    def __init__(self, m: int, n: int, rank: int, generator: torch.Generator, like: Tensor) -> None:
        rank = min(rank, m, n)

        def normal(size: int, width: int) -> Tensor:
            return torch.randn(size, width, generator=generator, dtype=like.dtype, device=like.device)

        self._of_columns, self._of_rows = normal(n, rank), normal(m, min(2 * rank + 1, m))
        self._range = torch.zeros_like(normal(m, rank))  # sum of X times the first
        self._corange = torch.zeros(n, self._of_rows.shape[1], dtype=like.dtype, device=like.device)
        self._count = 0

    def add(self, left: Tensor, right: Tensor) -> None:
        """Add the product of left (m, r) and right (n, r)."""
        # Not in place, so that a state that was returned does not change.
        self._range = _plus(self._range, left, _sum_of_products(right, self._of_columns))
        self._corange = _plus(self._corange, right, _sum_of_products(left, self._of_rows))
        self._count += 1

    @one_thread()
    def factors(self) -> tuple[Tensor, Tensor]:
        """The factors left (m, rank) and right (n, rank), balanced, the directions of largest weight first."""
        basis = torch.linalg.qr(self._range.double() / self._count)[0]  # (m, k)
        # By QR, as the last digits of `lstsq` differ from call to call.
        rotation, triangle = torch.linalg.qr(self._of_rows.double().T @ basis)
        solved = torch.linalg.solve_triangular(
            triangle, rotation.T @ self._corange.double().T / self._count, upper=True
        )
        left, values, right = torch.linalg.svd(solved, full_matrices=False)  # (k, k), (k,), (k, n)
        roots = values.sqrt()
        dtype = self._range.dtype
        return (basis @ left * roots).to(dtype), (right.T * roots).to(dtype)


def _sum_of_products(left: Tensor, right: Tensor) -> Tensor:
    """The product of left.T and right, (k, n) and (n, l), part after part of their rows."""
    first, *others = _of_parts(lambda one, other: one.T @ other, left, right)
    return sum(others, start=first)


def _plus(total: Tensor, rows: Tensor, matrix: Tensor) -> Tensor:
    """The sum total + rows @ matrix, (n, l)."""
    return torch.cat(_of_parts(lambda one, other: one + other @ matrix, total, rows))


def _of_parts(function: Callable[[Tensor, Tensor], Tensor], one: Tensor, other: Tensor) -> list[Tensor]:
    """The results of a function of parts of the rows of two tensors."""
    size = len(one) if one.is_cuda else _ROWS
    pairs = list(zip(one.split(size), other.split(size), strict=True))
    return in_workers(lambda pair: function(*pair), pairs, work=0 if one.is_cuda else one.numel() * other.shape[1])
