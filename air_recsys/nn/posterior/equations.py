r"""The equations of the factors and the bias of each row, their solution, and half a sweep: all rows of one side.

Row i has :math:`x = (p_i, b_i)`, column j has :math:`z = (q_j, c_j)`, and an entry with weight w is
:math:`y = p\cdot q + b + c + e`; :math:`\lambda_j` is the precision of the noise of column j. With :math:`g = (q, 1)`
the expected log-likelihood of one row is :math:`-\frac12 x^\top A x + h^\top x - \frac12 s`, where over the entries of
the row

.. math:: A = \sum_j w\lambda_j\,E[g g^\top],\qquad h = \sum_j w\lambda_j\,E[(y - c)\,g],\qquad
    s = \sum_j w\lambda_j\,E[(y - c)^2].

All are sums over entries of what stands in tables of the columns, times 1, y or y^2. The table of A is wide, a column
for each entry of a triangle; it is made and summed in slabs of a few columns, which stay in the cache.

Half a sweep goes through the rows in blocks, so that no matrices of all rows are formed. What has the size of all rows
are their means and, for Gaussians, the triangles of their covariances, which hold the sums until rows are solved.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from air_recsys.nn.posterior.entries import Block, Entries
from air_recsys.nn.posterior.flags import Flag, of_rows
from air_recsys.nn.posterior.moments import Moments, moments, solutions
from air_recsys.nn.posterior.triangles import corner, inner, last_of_rows, packed, size_of, spans, squares, symmetric
from air_recsys.storage.lazy import Tensor, torch
from air_recsys.storage.threads import in_workers

SLAB = 64  # columns; the fastest of 16 ... 861 on MovieLens-1M, the whole table at once takes 3 times as long
TABLE = 2**28  # bytes of a slab on a GPU, where each has to wait for the longest row of entries
TABLES = 2**26  # bytes of the slabs that are made at a time
_TABLE_ROWS = 4096
SUMS = 2**28  # bytes of the equations of a block, where no covariances are kept
FACTORED = {"cpu": 512}  # matrices in one batched factorization: few stay in the cache
MOST_FACTORED = 4096


class Rows(NamedTuple):
    """Rows x = (p, b), as Gaussians or as exact values."""

    mean: Tensor  # (m, d) with d = r + 1
    covariance: Tensor | None = None  # triangles, (m, d (d + 1) / 2)

    def second_moment(self) -> Tensor:
        """The triangles of E[x x^T]."""
        product = squares(self.mean)
        return product if self.covariance is None else product.add_(self.covariance)

    def covariances(self) -> Tensor:
        """The covariances as matrices, (m, d, d), 0 for exact values."""
        if self.covariance is None:
            return self.mean.new_zeros(*self.mean.shape, self.mean.shape[1])
        return symmetric(self.covariance)


class Equations(NamedTuple):
    """A, h and s of each row."""

    precision: Tensor  # triangles, (m, d (d + 1) / 2)
    right: Tensor  # (m, d)
    squares: Tensor  # (m,)

    def block(self, rows: slice) -> Equations:
        """The equations of some rows."""
        return Equations(*(part[rows] for part in self))

    def squared_errors(self, rows: Rows) -> Tensor:
        """The expected weighted sum of squared errors of each row, (m,)."""
        linear = (self.right * rows.mean).sum(1)
        told = torch.sub(self.squares, linear, alpha=2).add_(inner(self.precision, rows.second_moment()))
        return told.clamp_(min=0)


def equations(entries: Entries, partner: Rows, precisions: Tensor, out: Tensor | None = None) -> Equations:
    """The equations of all rows of `entries`.

    Parameters
    ----------
    entries : Entries
    partner : Rows
        The other side.
    precisions : Tensor, shape (n,)
        Of the noise of each partner.
    out : Tensor, optional
        The memory of A.

    Examples
    --------
    >>> entries = Entries(torch.tensor([0, 2]), torch.tensor([0, 1]), torch.tensor([3.0, 1.5]), None)
    >>> columns = Rows(torch.tensor([[1.0, 0.0], [2.0, 0.5]]))
    >>> system = equations(entries, columns, torch.ones(2))
    >>> system.precision  # the triangle of [[5, 3], [3, 2]]
    tensor([[5., 3., 2.]])
    >>> system.right, system.squares
    (tensor([[5., 4.]]), tensor([10.]))
    """
    biases, shares = partner.mean[:, -1:], precisions[:, None]
    both = torch.cat([partner.mean[:, :-1], torch.ones_like(biases), biases], dim=1)  # g and c, (n, d + 1)
    inputs, products = both[:, :-1], biases * both  # E[c g] and E[c^2]
    if partner.covariance is not None:
        told = partner.covariance.index_select(1, last_of_rows(inputs.shape[1], inputs.device))
        products[:, :-2] += told[:, :-1]
        products[:, -1:] += told[:, -1:]
    tables = [shares * products, shares * both, shares]
    parts, m = entries.parts(), len(entries.starts) - 1
    plain, linear, total = _sum(parts, tables, range(3))
    precision = inputs.new_empty(m, size_of(inputs.shape[1])) if out is None else out
    _precisions(parts, inputs, partner.covariance, shares, precision)
    errors = torch.sub(total[:, 0], linear[:, -1], alpha=2).add_(plain[:, -1])
    return Equations(precision, linear[:, :-1] - plain[:, :-1], errors)


def _precisions(parts: list[Block], inputs: Tensor, covariance: Tensor | None, shares: Tensor, out: Tensor) -> None:
    """Write A of each row."""
    size, n = out.shape[1], len(inputs)
    on_gpu, bytes_of_column = inputs.is_cuda, n * inputs.itemsize
    width = max(SLAB, TABLE // bytes_of_column) if on_gpu else SLAB
    step = width * max(1, TABLES // (bytes_of_column * width))
    table_of = _moments_at_once if on_gpu else _moments
    for first in range(0, size, step):
        slabs = [slice(start, min(start + width, size)) for start in range(first, min(first + step, size), width)]
        tables = [inputs.new_empty(n, slab.stop - slab.start) for slab in slabs]

        def make(place: tuple[int, slice], slabs: list[slice] = slabs, tables: list[Tensor] = tables) -> None:
            number, rows = place
            own = None if covariance is None else covariance[rows]
            tables[number][rows] = table_of(inputs[rows], own, slabs[number]).mul_(shares[rows])

        places = list(itertools.product(range(len(slabs)), _slices(n, n if on_gpu else _TABLE_ROWS)))
        in_workers(make, places, work=_work(inputs, n * size))
        _sum(parts, tables, [0] * len(slabs), [out[:, slab] for slab in slabs])


def _sum(
    parts: list[Block], tables: list[Tensor], powers: Sequence[int], out: list[Tensor] | None = None
) -> list[Tensor]:
    """The sums over the entries of each row from some tables, table after table: one stays in the cache."""
    if out is None and len(parts) == 1:
        return [parts[0].entries.sum(*pair) for pair in zip(tables, powers, strict=True)]
    sums = [table.new_empty(parts[-1].rows.stop, table.shape[1]) for table in tables] if out is None else out

    def add(pair: tuple[int, Block]) -> None:
        number, (rows, entries) = pair
        sums[number][rows] = entries.sum(tables[number], powers[number])

    n_entries, width = sum(len(entries.partners) for _, entries in parts), sum(table.shape[1] for table in tables)
    in_workers(add, list(itertools.product(range(len(tables)), parts)), work=_work(tables[0], n_entries * width))
    return sums


def _work(like: Tensor, numbers: int) -> int:
    """The numbers of a step that threads share out: none on a GPU."""
    return 0 if like.is_cuda else numbers


def _moments(inputs: Tensor, covariance: Tensor | None, slab: slice) -> Tensor:
    """Some columns of the triangles of E[g g^T], in which the bias takes no part: the last of g is 1."""
    width, start, stop = inputs.shape[1], slab.start, slab.stop
    table = inputs.new_empty(len(inputs), stop - start)
    for row, first, last in spans(width):
        begin, end = max(first, start), min(last, stop)
        if begin < end:
            columns = inputs[:, row + begin - first : row + end - first]
            torch.mul(inputs[:, row, None], columns, out=table[:, begin - start : end - start])
    if covariance is not None:
        table.add_(covariance[:, start:stop])  # at once: sums of few columns at a time take twice as long
        for row, _, last in spans(width):
            if start < last <= stop:
                table[:, last - 1 - start] = inputs[:, row]  # without that of the bias
    return table


def _moments_at_once(inputs: Tensor, covariance: Tensor | None, slab: slice) -> Tensor:
    """The same by few operators, each of which a GPU has to be given, over more memory."""
    width, start, stop = inputs.shape[1], slab.start, slab.stop
    first, second = corner(width, inputs.device)[:, start:stop]
    left, right = inputs.index_select(1, first), inputs.index_select(1, second)
    if covariance is None:
        return left.mul_(right)
    table = torch.addcmul(covariance[:, start:stop], left, right)
    own = [row for row, _, stop_of_row in spans(width) if start < stop_of_row <= stop]
    if own:  # without that of the bias
        rows = slice(own[0], own[-1] + 1)
        places = last_of_rows(width, inputs.device)[rows]
        table.index_copy_(1, places - start if start else places, inputs[:, rows])
    return table


class Solution(NamedTuple):
    """The Gaussian of each row given its equations and its prior, for draws."""

    mean: Tensor  # (m, d)
    cholesky: Tensor  # (m, d, d), lower, of the precisions
    unsolved: Tensor  # (), the number of rows whose equations are not positive definite; they are NaN

    def draw(self, before: Tensor, momentum: float, noise: Tensor) -> Tensor:
        """The draw m - a (x - m) + (1 - a^2)^1/2 e for the state x before, e ~ N(0, covariance), `noise` ~ N(0, 1).

        Both x and the draw have the Gaussian as their distribution; a > 0 moves past the mean (over-relaxation).
        """
        error = torch.linalg.solve_triangular(self.cholesky.mT, noise[:, :, None], upper=True)[:, :, 0]
        return self.mean - momentum * (before - self.mean) + (1 - momentum**2) ** 0.5 * error

    def squared_errors(self, found: Equations, state: Tensor, scale: Tensor, prior_precision: Tensor) -> Tensor:
        """`Equations.squared_errors` of exact rows: of x^T P x, with the factor of P, and what its prior has of it."""
        whole = torch.bmm(state[:, None], self.cholesky)[:, 0].square().sum(1)
        quadratic = (whole - ((state @ prior_precision) * state).sum(1)) / scale
        linear = (found.right * state).sum(1)
        return torch.sub(found.squares, linear, alpha=2).add_(quadratic).clamp_(min=0)


def solve(found: Equations, scale: Tensor, prior_mean: Tensor, prior_precision: Tensor) -> Solution:
    """The Gaussian of rows with prior N(prior_mean, prior_precision^-1) and equations times `scale`.

    Shapes are (m,) for `scale`, (m, d) for `prior_mean` and (d, d) for `prior_precision`.
    """
    precision, right = _with_prior(found, scale, prior_mean, prior_precision)
    # The transpose of a symmetric matrix in rows is the same one in columns, which LAPACK takes as it is.
    cholesky, codes = torch.linalg.cholesky_ex(symmetric(precision).mT)
    failed = codes > 0
    cholesky.diagonal(dim1=-2, dim2=-1).masked_fill_(failed[:, None], torch.nan)
    return Solution(solutions(right[:, :, None], cholesky)[:, :, 0], cholesky, failed.sum())


def gaussians(found: Equations, scale: Tensor, prior_mean: Tensor, prior_precision: Tensor) -> Moments:
    """The same Gaussians with their covariances."""
    return moments(*_with_prior(found, scale, prior_mean, prior_precision))


def _with_prior(found: Equations, scale: Tensor, prior_mean: Tensor, prior_precision: Tensor) -> tuple[Tensor, Tensor]:
    """The precisions as triangles, and the right sides."""
    precision = torch.addcmul(packed(prior_precision[None]), found.precision, scale[:, None])
    return precision, torch.addcmul(prior_mean @ prior_precision, found.right, scale[:, None])


class Given(NamedTuple):
    """The entries, partners, noise and prior that the rows of one side follow from."""

    blocks: Sequence[Block]  # the entries
    partner: Rows
    precisions: Tensor  # (n,), of the noise of the partners
    scales: Tensor  # (m,), of the noise of the rows
    prior_mean: Tensor  # (m, d)
    prior_precision: Tensor  # (d, d)


class Half(NamedTuple):
    """The rows of one side after half a sweep."""

    rows: Rows
    means: Tensor  # (m, d), of the rows given the other side
    errors: Tensor  # (m,), expected sums of squared errors, times weights and precisions
    flag: Flag  # of rows whose equations have no solution


Draw = Callable[[Solution, slice], Tensor]
"""Returns some rows from their Gaussian and their place."""


def half_sweep(given: Given, draw: Draw | None = None) -> Half:
    """All rows of one side: their Gaussians, or what `draw` makes of these."""
    m, width = given.prior_mean.shape
    blocks = given.blocks
    if len(blocks) == 1 and m <= _at_once(given.prior_mean):
        system = equations(blocks[0].entries, given.partner, given.precisions)
        solved = _solved(system, given, slice(0, m), draw)
        return Half(solved.state, solved.mean, solved.errors, of_rows(solved.unsolved, solved.mean.dtype))
    means, errors = torch.empty_like(given.prior_mean), torch.empty_like(given.scales)
    states = means if draw is None else torch.empty_like(means)
    covariances = means.new_empty(m, size_of(width)) if draw is None else None
    unsolved: list[Tensor] = []
    for rows, entries in blocks:
        out = None if covariances is None else covariances[rows]
        system = equations(entries, given.partner, given.precisions, out)

        def solve_part(part: slice, first: int = rows.start, system: Equations = system) -> Tensor:
            place = slice(first + part.start, first + part.stop)
            solved = _solved(system.block(part), given, place, draw)
            means[place], states[place], errors[place] = solved.mean, solved.state.mean, solved.errors
            if covariances is not None and solved.state.covariance is not None:
                covariances[place] = solved.state.covariance  # in the place of the sums
            return solved.unsolved

        unsolved += each_part(solve_part, means[rows], 3 * width**3)
    flag = of_rows(torch.stack(unsolved).sum(), means.dtype)
    return Half(Rows(states, covariances), means, errors, flag)


def each_part(solved: Callable[[slice], Tensor], rows: Tensor, numbers: int) -> list[Tensor]:
    """The results of a function of parts of rows, as many as are factored at a time; each row takes some numbers."""
    parts = list(_slices(len(rows), _at_once(rows)))
    return in_workers(solved, parts, work=_work(rows, len(rows) * numbers))


def _at_once(rows: Tensor) -> int:
    """How many rows are factored at a time."""
    return FACTORED.get(rows.device.type, MOST_FACTORED)


class _Solved(NamedTuple):
    """Some rows, see `Half`."""

    mean: Tensor
    state: Rows
    errors: Tensor
    unsolved: Tensor


def _solved(own: Equations, given: Given, rows: slice, draw: Draw | None) -> _Solved:
    """Some rows from their equations."""
    known = given.scales[rows], given.prior_mean[rows], given.prior_precision
    if draw is None:
        mean, covariance, unsolved = gaussians(own, *known)
        state = Rows(mean, covariance)
        return _Solved(mean, state, own.squared_errors(state), unsolved)
    solution = solve(own, *known)
    drawn = draw(solution, rows)
    errors = solution.squared_errors(own, drawn, known[0], given.prior_precision)
    return _Solved(solution.mean, Rows(drawn), errors, solution.unsolved)


def rows_at_once(width: int, dtype: torch.dtype, n_bytes: int) -> int:
    """How many rows' equations are formed at a time in a block of so many bytes, at least one."""
    return max(n_bytes // (size_of(width) * dtype.itemsize), 1)


def _slices(size: int, step: int) -> Iterator[slice]:
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))
