r"""Ridge regression of the items on each other, from the pattern R of interactions: a scorer of a user's items.

Where interactions have values, R holds how much they count. With the weights
:math:`W = \mathrm{diag}(|N(u)|^{-a})` of the users, :math:`G = R^\top W R`, d its diagonal and
:math:`D = x\,d + (1 - x)\,\bar d`,

.. math:: M = D^{-1/2} G D^{-1/2}, \qquad H = M (M + \lambda I)^{-1}, \qquad s_u = r_u D^{-b} H D^{-c}

H is what a ridge regression of all items on all items returns for its own targets. Off the diagonal
:math:`D^{-1/2} H D^{1/2}`, column j divided by :math:`1 - H_{jj}`, are the weights of EASE for a = x = 0, and those of
RDLAE without its limit on the diagonal for a = 0 and x between 0 and 1. For a large :math:`\lambda` only M is left:
for a = 1 the linear part of GF-CF, the degrees of the items counted with the weights of the users.

H is exact where items are few. Where they are many, column j is that of a regression on the strongest neighbours of
item j alone, of those that share a user with it. A search scores a block of users by Chebyshev polynomials of M.

Sources: Steck, Embarrassingly Shallow Autoencoders for Sparse Data, WWW 2019; Moon, Kim, Lee, It's Enough: Relaxing
Diagonal Constraints in Linear Autoencoders for Recommendation, SIGIR 2023; Ning, Karypis, SLIM, ICDM 2011
(neighbourhoods); Kim et al., ChebyCF, SIGIR 2025 (polynomials).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from numpy.polynomial.chebyshev import chebinterpolate

from air_recsys.graphs.cooccurrence import strongest_entries, strongest_products
from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.inputs import RankerSettings, times_columns
from air_recsys.models.graph_ranker.scorers import ProductScorer, ScaledColumns
from air_recsys.nn.inverse import by_rows, inverted
from air_recsys.storage.lazy import torch
from air_recsys.storage.threads import in_workers
from air_recsys.training.ranks import ALONE, Ranks
from air_recsys.training.softmax import row_pattern

MOST_EXACT = 4096  # items that one matrix of all pairs is inverted for
PENALTIES = (4.0, 8.0, 16.0, 32.0)  # that a ranker tries
SMALL_PENALTIES = (1.0, 2.0)  # that it tries beside them where H is exact: polynomials of them are long
NEIGHBORS = 200  # of an item's regression where there are more
EDGES = 400  # of M that each item chooses there
_TOLERANCE = 3e-3  # of the polynomial, against the largest value of H
_POWER_STEPS = 20
_FILTERED = 32  # users whose items go through a polynomial at a time: they stay in the cache
_SOLVED = 128  # items whose regressions a thread solves at a time


class NormalisedItems(NamedTuple):
    """The columns of the pattern, normalised: M = rows^T rows."""

    rows: Csr  # W^1/2 R D^-1/2, (n_users, n_items)
    degrees: np.ndarray  # D, (n_items,)


def normalised_items(pattern: Csr, exponent: float, share: float) -> NormalisedItems:
    """W^1/2 R D^-1/2 and D, for the exponent a of the users and the share x of the items' own degrees."""
    weighted = _weighted(pattern, exponent)
    degrees = _degrees(weighted, share)
    return NormalisedItems(times_columns(weighted, degrees**-0.5), degrees)


def _weighted(pattern: Csr, exponent: float) -> Csr:
    """W^1/2 R, (n_users, n_items)."""
    counts = np.diff(pattern.indptr)
    weights = (np.maximum(counts, 1.0) ** (-exponent / 2)).astype(pattern.dtype)
    values = pattern.data * np.repeat(weights, counts)
    return sp.csr_array((values, pattern.indices, pattern.indptr), shape=pattern.shape)


def _degrees(weighted: Csr, share: float) -> np.ndarray:
    """D, (n_items,)."""
    own = np.bincount(weighted.indices, weighted.data.astype(np.float64) ** 2, minlength=weighted.shape[1])
    present = own > 0
    degrees = share * own + (1 - share) * (own[present].mean() if present.any() else 1.0)
    degrees[~present] = 1.0
    return degrees


def item_weights(pattern: Csr, settings: RankerSettings, ranks: Ranks = ALONE) -> Csr | np.ndarray:
    """The weights H, (n_items, n_items): dense and exact for few items, sparse for many, a share by each rank."""
    normalised = normalised_items(pattern, settings.regression_exponent, settings.regression_share)
    if pattern.shape[1] <= MOST_EXACT:
        weights = exact_weights(item_products(normalised, np.float64), settings.regression_penalty)
        return ranks.as_first(torch.from_numpy(weights)).numpy()
    return neighborhood_weights(normalised, settings.regression_penalty, ranks=ranks)


def item_degrees(pattern: Csr, exponent: float, share: float) -> np.ndarray:
    """The degrees D alone, (n_items,)."""
    return _degrees(_weighted(pattern, exponent), share)


def regression_scorer(
    pattern: Csr, own: Csr, weights: Csr | np.ndarray, trend: np.ndarray, settings: RankerSettings
) -> ProductScorer:
    """The scorer of how much a user's items count by H; columns times the exponentials of `trend`."""
    degrees = item_degrees(pattern, settings.regression_exponent, settings.regression_share)
    source, target = degrees**-settings.regression_source, degrees**-settings.regression_target * np.exp(trend)
    return ProductScorer(own, ScaledColumns(weights, target), source)


def item_products(normalised: NormalisedItems, dtype: type[np.floating] = np.float32) -> np.ndarray:
    """The products M, dense, (n_items, n_items), found in single precision."""
    rows, columns = normalised.rows, sp.csr_array(normalised.rows.T)
    found = np.empty((rows.shape[1], rows.shape[1]), dtype)

    def multiply(part: slice) -> None:
        found[part, part.start :] = (columns[part] @ rows[:, part.start :]).toarray()
        found[part.stop :, part] = found[part, part.stop :].T

    by_rows(multiply, len(found))
    return found


def with_degrees(products: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The products M for the degrees `after` from those for other ones, (n_items, n_items)."""
    scales, found = np.sqrt(before / after).astype(products.dtype), np.empty_like(products)

    def scale(part: slice) -> None:
        found[part] = products[part] * scales[part, None] * scales

    by_rows(scale, len(found))
    return found


def exact_weights(products: np.ndarray, penalty: float) -> np.ndarray:
    """The weights H for the products M, over which it writes, by one inverse in their type, rounded to float32."""
    penalized = torch.from_numpy(products)
    penalized.diagonal().add_(penalty)
    inverse, found = inverted(penalized), np.empty(products.shape, np.float32)

    def weigh(part: slice) -> None:
        weights = inverse[part].mul_(-penalty)
        weights.diagonal(part.start).add_(1)
        found[part] = weights

    by_rows(weigh, len(found))
    return found


def neighborhood_weights(
    normalised: NormalisedItems, penalty: float, n_neighbors: int = NEIGHBORS, ranks: Ranks = ALONE
) -> Csr:
    r"""The weights H where the regression of each item takes its strongest neighbours alone.

    With the neighbours N of item j, :math:`\beta = (M_{NN} + \lambda I)^{-1} M_{Nj}` and
    :math:`\gamma = \lambda / (M_{jj} + \lambda - M_{jN} \beta)`, column j holds :math:`\gamma \beta` at N and
    :math:`1 - \gamma` at j: the column of H itself where N are all other items. Neighbours share a user. The values
    are rounded to float32. Each of several `ranks` has a range of the items, and all get all columns.
    """
    columns = sp.csr_array(normalised.rows.T)
    n_items = normalised.degrees.size
    items = np.array_split(np.arange(n_items), ranks.size)[ranks.rank]
    of_items = columns if ranks.size == 1 else columns[items]
    chosen = _in_line(strongest_products(of_items, columns, max(EDGES, n_neighbors), items), ranks)
    products = sp.csr_array(chosen.maximum(chosen.T))
    own = np.bincount(normalised.rows.indices, normalised.rows.data.astype(np.float64) ** 2, minlength=n_items)
    nearest = strongest_entries(products, n_neighbors)
    products = sp.csr_array(sp.tril(products))

    def solved(some: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        return [_regression(products, own, item, nearest, penalty) for item in some.tolist()]

    found = in_workers(solved, np.array_split(items, 1 + items.size // _SOLVED))
    columns_of = itertools.chain.from_iterable(found)
    indices, values = (ranks.in_line(np.concatenate(parts)) for parts in zip(*columns_of, strict=True))
    places = np.int32 if values.size < 2**31 else np.int64
    indptr = np.cumsum([0, *(np.diff(nearest.indptr) + 1)]).astype(places)
    by_columns = sp.csr_array((values.astype(np.float32), indices.astype(places), indptr), shape=products.shape)
    return sp.csr_array(by_columns.T)


def _in_line(rows: Csr, ranks: Ranks) -> Csr:
    """The rows of all ranks, one below the other."""
    if ranks.size == 1:
        return rows
    counts, indices, values = (ranks.in_line(each) for each in (np.diff(rows.indptr), rows.indices, rows.data))
    return sp.csr_array((values, indices, np.append(0, counts.cumsum())), shape=(counts.size, rows.shape[1]))


def columns_of_items(normalised: NormalisedItems, items: np.ndarray, penalty: float) -> Csr:
    """The columns of H of some items alone, (n_items, number of them), as `neighborhood_weights` has them."""
    columns = sp.csr_array(normalised.rows.T)
    chosen = strongest_products(columns[items], columns, NEIGHBORS, items)
    found = []
    for place, item in enumerate(items):
        span = slice(*chosen.indptr[place : place + 2])
        neighbors, targets = chosen.indices[span], chosen.data[span].astype(np.float64)
        near = columns[np.append(neighbors, item)].astype(np.float64)
        own, gram = float((near[[-1]].data ** 2).sum()), (near[:-1] @ near[:-1].T).toarray()
        gram.flat[:: neighbors.size + 1] += penalty
        found.append(_column(gram, targets, own, (neighbors, int(item)), penalty))
    rows, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
    indptr = np.cumsum([0, *(places.size for places, _ in found)])
    by_columns = sp.csr_array((values.astype(np.float32), rows, indptr), shape=(items.size, normalised.degrees.size))
    return sp.csr_array(by_columns.T)


def _regression(
    triangle: Csr, own: np.ndarray, item: int, nearest: Csr, penalty: float
) -> tuple[np.ndarray, np.ndarray]:
    """The positions and the values of a column of H, from the lower triangle of M."""
    span = slice(*nearest.indptr[item : item + 2])
    neighbors, targets = nearest.indices[span], nearest.data[span]
    gram = triangle[neighbors][:, neighbors].toarray()
    gram.flat[:: neighbors.size + 1] = own[neighbors] + penalty
    return _column(gram, targets, own[item], (neighbors, item), penalty)


def _column(
    gram: np.ndarray, targets: np.ndarray, own: float, places: tuple[np.ndarray, int], penalty: float
) -> tuple[np.ndarray, np.ndarray]:
    """The positions and the values of a column of H, of an item and its neighbours at `places`.

    Of `gram` the lower triangle is read.
    """
    from scipy.linalg import get_lapack_funcs

    neighbors, item = places
    if not neighbors.size:
        return np.array([item]), np.array([own / (own + penalty)])
    definite, symmetric = cast("tuple[Any, Any]", get_lapack_funcs(("posv", "sysv"), (gram,)))
    _, weights, failed = definite(gram.T, targets)
    if failed:  # products too weak to be kept are missing: what is left need not be positive definite
        _, _, weights, _ = symmetric(gram.T, targets)
    weights = weights.ravel()
    gamma = penalty / (own + penalty - targets @ weights)
    return np.append(neighbors, item), np.append(gamma * weights, 1 - gamma)


def filtered(normalised: NormalisedItems, own: Csr, penalties: Sequence[float]) -> list[np.ndarray]:
    """Rows `own` times H for each penalty, by Chebyshev polynomials of M, without H itself; (b, n_items), float32.

    The degree of each is the least that leaves an error of `_TOLERANCE` of the largest value of H: what is found for a
    penalty does not depend on the others.
    """
    rows, columns = normalised.rows, sp.csr_array(normalised.rows.T)
    top = _largest_value(rows, columns)
    coefficients = [_coefficients(penalty / top, _degree(penalty / top)) for penalty in penalties]
    down, up = (row_pattern(each) for each in (rows, columns))
    of_rows, of_columns = torch.from_numpy(rows.data), torch.from_numpy(columns.data) * (2 / top)
    found = [np.empty(own.shape, np.float32) for _ in penalties]

    def shifted(block: torch.Tensor) -> torch.Tensor:  # (2 M / top - 1) block
        return up.matmul(of_columns, down.matmul(of_rows, block)).sub_(block)

    def filter_users(start: int) -> None:
        part = slice(start, start + _FILTERED)
        block = torch.from_numpy(own[part].toarray()).T.contiguous()  # (n_items, b)
        for each, product in zip(found, polynomials(shifted, block, coefficients), strict=True):
            each[part] = product.T

    in_workers(filter_users, range(0, own.shape[0], _FILTERED))
    return found


def polynomials(
    shifted: Callable[[torch.Tensor], torch.Tensor], block: torch.Tensor, coefficients: Sequence[np.ndarray]
) -> list[torch.Tensor]:
    """Chebyshev polynomials of an operator, times a block, for the coefficients of each, two or more."""
    before, term = block, shifted(block)
    sums = [(float(first) * block).add_(term, alpha=float(second)) for first, second, *_ in coefficients]
    for k in range(2, max(map(len, coefficients))):
        before, term = term, shifted(term).mul_(2).sub_(before)
        for total, own in zip(sums, coefficients, strict=True):
            if k < len(own):
                total.add_(term, alpha=float(own[k]))
    return sums


def times_dense(rows: Csr, right: np.ndarray, blocks: Sequence[slice]) -> np.ndarray:
    """Sparse rows times a dense matrix in float32, a block of rows in each thread."""
    dense, found = torch.from_numpy(right), np.empty((rows.shape[0], right.shape[1]), np.float32)

    def multiply(block: slice) -> None:
        own = rows[block]
        found[block] = row_pattern(own).matmul(torch.from_numpy(own.data), dense).numpy()

    in_workers(multiply, blocks)
    return found


def _coefficients(ratio: float, degree: int) -> np.ndarray:
    """The coefficients of x / (x + ratio) in Chebyshev polynomials of z = 2 x - 1 in -1..1, (degree + 1,)."""
    interpolate: Any = chebinterpolate  # annotated for functions of numbers
    return interpolate(lambda z: (z + 1) / (z + 1 + 2 * ratio), degree).astype(np.float32)


def _largest_value(rows: Csr, columns: Csr) -> float:
    """A little more than the largest eigenvalue of M; its vector is not negative, nor is the start."""
    vector, value = np.sqrt(np.asarray(columns.sum(axis=1), dtype=np.float64)), 1.0
    for _ in range(_POWER_STEPS):
        length = np.linalg.norm(vector)
        vector = columns @ (rows @ (vector / max(length, np.finfo(np.float64).tiny)))
        value = float(np.linalg.norm(vector))
    return 1.02 * value or 1.0


def _degree(ratio: float) -> int:
    """The degree for a penalty of so many times the largest value: the error falls with the ellipse of 1/x."""
    base = 1 + 2 * ratio + 2 * np.sqrt(ratio * (1 + ratio))
    return max(1, int(np.ceil(-np.log(_TOLERANCE) / np.log(base))))
