"""Features of rows and columns from the pattern of observed entries."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from air_recsys.nn.posterior.entries import Block, Entries
from air_recsys.nn.posterior.exchange import OwnEntries
from air_recsys.storage.lazy import Tensor, torch
from air_recsys.storage.threads import in_workers

DEGREES = "degrees"
"""In place of a number of features: the degrees alone."""

# What was tried in place of these values: benchmarks/reports/accuracy.md.
POWER = 1 / 3  # of the degrees; 1/2 gives rare rows and columns too much weight
_PASSES = 6  # scores are then within 0.0002 of those of the exact vectors on MovieLens; 4 miss them by 0.0005
_OVERSAMPLED = 10
_SHARE = 0.2  # of the rows, or columns; on parts of MovieLens a third or a tenth are worse
_FLOOR = 0.9  # of the first squared singular value left out: what vectors of entries at random have


def pattern_features(observed: OwnEntries, n_features: int | str, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    r"""Features of the rows, (m, k), and of the columns, (n, k), from the 0/1 matrix B of observed entries.

    They are the leading k singular vectors of :math:`D_r^{-1/3} B D_c^{-1/3}`, D the degrees, times
    :math:`s^2 - 0.9\, s_{k+1}^2`, with their singular values s and the first one that is left out, so that the prior
    relies on those that stand out; the logarithm of the degree; and a constant, the last column. Where entries are
    few, or at random, all singular values are about equal, and the features nearly 0. At most min(m, n) - 1 of
    `n_features` singular vectors are taken, and those beyond a fifth of min(m, n) are 0: they are noise. "degrees"
    leaves out all of them, 0 the degrees too. All are on the device of the entries, in double precision.

    Examples
    --------
    >>> from air_recsys.nn.objective import Observations
    >>> from air_recsys.nn.pattern import SparsePattern
    >>> observed = OwnEntries.of(Observations(SparsePattern(torch.arange(5), torch.arange(4), 4), torch.ones(4)))
    >>> rows, columns = pattern_features(observed, 2, np.random.default_rng(0))
    >>> rows.shape, columns.shape
    (torch.Size([4, 4]), torch.Size([4, 4]))
    """
    if n_features == 0:
        device = observed.values.device
        rows, columns = (torch.ones(size, 1, dtype=torch.float64, device=device) for size in observed.shape)
        return rows, columns
    degrees = [_at_least_one(degree, torch.float64) for degree in observed.degrees]
    if isinstance(n_features, str):
        vectors = [degree.new_empty(len(degree), 0) for degree in degrees]
    else:
        width, most = min(n_features, min(observed.shape) - 1), math.ceil(_SHARE * min(observed.shape))
        found = _singular(observed, [degree**-POWER for degree in degrees], width + 1, rng)
        vectors = _standing_out(*found, most)
    rows, columns = (_with_degrees(*pair) for pair in zip(vectors, degrees, strict=True))
    return rows, columns


def with_known(pattern: Tensor, known: Tensor) -> Tensor:
    """Features of the pattern (m, k) with others (m, g) before the degree: (m, g + k), at least (m, g + 2).

    Examples
    --------
    >>> with_known(torch.tensor([[0.5, 2.0, 1.0], [0.0, -3.0, 1.0]]), torch.tensor([[7.0], [8.0]]))
    tensor([[ 0.5000,  7.0000,  2.0000,  1.0000],
            [ 0.0000,  8.0000, -3.0000,  1.0000]])
    """
    pattern = _with_a_degree(pattern)
    return torch.cat([pattern[:, :-2], known.to(pattern), pattern[:, -2:]], dim=1)


def _with_a_degree(pattern: Tensor) -> Tensor:
    """Features with a degree of 0 before the constant where they have none."""
    return pattern if pattern.shape[1] > 1 else torch.cat([torch.zeros_like(pattern), pattern], dim=1)


class Projection(NamedTuple):
    """The map from the pattern of new rows to their features, with those of the columns fixed.

    Examples
    --------
    >>> project = Projection(torch.tensor([[2.0], [1.0]]), torch.tensor(0.0))
    >>> project(torch.tensor([0, 1, 1]), torch.tensor([0]))  # a row that has column 0, and one that has none
    tensor([[2., 0., 1.],
            [0., 0., 1.]])
    """

    basis: Tensor  # (n, k), the contribution of each column to the features of singular vectors
    logarithm: Tensor  # (), mean of the trained rows' logarithms of degrees

    def __call__(self, starts: Tensor, partners: Tensor) -> Tensor:
        """The features of rows, (m, k + 2), of which row i has the columns ``partners[starts[i]:starts[i+1]]``.

        A trained row gets its own.
        """
        degrees = _at_least_one(starts.diff(), self.basis.dtype)
        vectors = degrees[:, None] ** -POWER * _sums(starts, partners, self.basis)
        return torch.cat(
            [vectors, torch.stack([degrees.log() - self.logarithm, torch.ones_like(degrees)], dim=1)], dim=1
        )


def projection(observed: OwnEntries, features: tuple[Tensor, Tensor], side: int) -> Projection:
    """The map from a pattern to features of rows (side 0) or columns (1), given the `pattern_features` of both.

    For singular vectors, A V = U S: the product of the scaled pattern with the columns' features is that of the rows
    up to a factor for each. All is on the device of the entries, and takes the memory of the features once more.
    """
    rows, others = features[side][observed.own(side), :-2], features[1 - side][:, :-2]
    degrees, of_others = (_at_least_one(observed.degrees[which], rows.dtype) for which in (side, 1 - side))
    inputs = of_others[:, None] ** -POWER * others
    products = degrees[observed.own(side), None] ** -POWER * _sums(*observed.entries[side][:2], inputs)
    sizes, matches = observed.exchange.sum(products.square().sum(dim=0), products.mul_(rows).sum(dim=0))
    gains = matches / sizes.clamp(min=torch.finfo(rows.dtype).tiny)
    return Projection(inputs.mul_(gains), degrees.log().mean())


def _at_least_one(degrees: Tensor, dtype: torch.dtype) -> Tensor:
    return degrees.clamp(min=1).to(dtype)


def _sums(starts: Tensor, partners: Tensor, table: Tensor) -> Tensor:
    """The sums of the partners' rows of a table (n, k), (m, k)."""
    rows = table.contiguous()  # columns, as a QR decomposition leaves them, take five times as long
    found = rows.new_empty(len(starts) - 1, rows.shape[1])

    def add(part: Block) -> None:
        found[part.rows] = part.entries.sum(rows)

    parts = Entries(starts, partners, partners, None).parts()
    in_workers(add, parts, work=0 if rows.is_cuda else len(partners) * rows.shape[1])
    return found


def _singular(observed: OwnEntries, scales: list[Tensor], k: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """U S^2 and V S^2 of the k largest singular values S, by subspace iteration.

    The passes that only find the subspace multiply in single precision, ten times as fast; the last one does not.
    """

    def product(side: int, factors: Tensor) -> Tensor:
        weighted = scales[1 - side].to(factors.dtype)[:, None] * factors
        own = scales[side][observed.own(side), None] * _sums(*observed.entries[side][:2], weighted)
        return observed.exchange.all_rows(side, own)

    start = rng.standard_normal((observed.shape[1], min(k + _OVERSAMPLED, *observed.shape)))
    right = torch.as_tensor(start, device=scales[0].device)
    for _ in range(_PASSES):
        left = product(0, right.float())
        right = torch.linalg.qr(product(1, left.float()))[0]
    left = product(0, right)
    squares, rotation = torch.linalg.eigh(left.T @ left)  # ascending
    squares, rotation = squares.flip(0)[:k].clamp(min=0), rotation.flip(1)[:, :k]
    columns = right @ rotation
    signs = torch.where(columns.pow(3).sum(0) < 0, -1.0, 1.0)  # of two equal solutions always the same one
    return left @ rotation * (signs * squares.sqrt()), columns * (signs * squares)


def _standing_out(rows: Tensor, columns: Tensor, most: int) -> list[Tensor]:
    """Vectors of lengths s^2 but the last with lengths s^2 - 0.9 of the next one, entries of about 1 before.

    At most so many: those beyond are 0, and the next one is the first of these.
    """
    lengths = columns.norm(dim=0)
    kept = min(most, len(lengths) - 1)
    shares = torch.zeros_like(lengths[:-1])
    shares[:kept] = 1 - _FLOOR * lengths[kept] / lengths[:kept].clamp(min=torch.finfo(lengths.dtype).tiny)
    return [shares * vectors[:, :-1] / _size(vectors[:, :kept]) for vectors in (rows, columns)]


def _size(vectors: Tensor) -> float:
    size = float(vectors.std(0, correction=0).mean()) if vectors.numel() else 1.0
    return max(size, 1e-12)


def _with_degrees(vectors: Tensor, degrees: Tensor) -> Tensor:
    logarithms = degrees.log()
    return torch.cat([vectors, torch.stack([logarithms - logarithms.mean(), torch.ones_like(degrees)], dim=1)], dim=1)
