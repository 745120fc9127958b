r"""Theorem 2 of the AIR paper, measured: how an adjacency moves under gradient flow of its Dirichlet energy.

Rows of unit length stand still, all logits start equal, and dW/dt = -dE/dW. Where the adjacency is one softmax of all
logits (``global_sum``) or one of each row (``row_softmin``), a softmax over N entries, N0 of them at distance zero, is
known in closed form up to a clock s:

.. math:: p_j = \frac{q}{1 + D_j s}, \qquad q = \Big(\sum_j \frac{1}{1 + D_j s}\Big)^{-1}, \qquad
          \dot s = c N q^2, \quad s(0) = 0,

with the speed c = 1 (``global_sum``) or 1/2 (``row_softmin``). As q rises from 1/N to at most 1/N0, s lies between
c t / N and c N t / N0^2, and every p_j with D_j > 0 falls as 1/t. ``benchmarks/reports/theorems.md`` has the proof,
and what ``global_product`` does instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from scipy.integrate import solve_ivp
from scipy.special import softmax

from air_recsys.datasets import load_syn_netflix
from air_recsys.evaluation.results import ResultTable
from air_recsys.graphs.laplacian import ADJACENCIES, GraphTerm, laplacian, squared_distances
from air_recsys.storage.validation import check_integer
from benchmarks.paper.checks import Check, worst_rows

_START = 0.01  # of every logit
_SAME = 1e-12  # squared distance below which two rows of unit length are the same row
_LATE = 1e4  # the horizon t, in units of m^2 / (smallest positive distance)
_PER_DECADE = 10  # output times
_SMALL = 1e-2  # relative size of a quantity that counts as zero
_EXACT = 1e-6  # relative error of integration and rounding


class Trajectory(NamedTuple):
    """The flow of one adjacency on given distances."""

    adjacency: str
    distances: np.ndarray  # (m, m)
    times: np.ndarray  # (t,), from 0; ten a decade
    logits: np.ndarray  # (t, m, m)
    laplacians: np.ndarray  # (t, m, m)
    energies: np.ndarray  # (t,)

    def equal_rows(self) -> np.ndarray:
        """The pairs of rows that are equal, without the diagonal, (m, m)."""
        return (self.distances == 0) & ~np.eye(len(self.distances), dtype=bool)


class Softmaxes(NamedTuple):
    """An adjacency seen as k softmaxes of N entries, N0 of them at distance zero, which move independently."""

    distances: np.ndarray  # (k, N)
    n0: np.ndarray  # (k, 1)
    speed: float
    weights: np.ndarray  # (t, k, N)
    limit: np.ndarray  # (m, m), of the Laplacian

    def shares(self) -> np.ndarray:
        """p_j / q, (t, k, N): the weights relative to those at distance zero, the largest."""
        return self.weights / self.weights.max(axis=2, keepdims=True)

    def share_bounds(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The bounds of p_j / q from below and above at `times`, each (t, k, N)."""
        n, distance = self.distances.shape[1], self.distances * self.speed * times[:, None, None]  # D c t, (t, k, N)
        return 1 / (1 + distance * n / self.n0**2), 1 / (1 + distance / n)

    def exact_weights(self, times: np.ndarray) -> np.ndarray:
        """The weights at `times` from the differential equation of the clocks alone, (t, k, N)."""
        k, n = self.distances.shape

        def rate(_: float, s: np.ndarray) -> np.ndarray:
            return self.speed * n / (1 / (1 + self.distances * s[:, None])).sum(axis=1) ** 2  # c N q^2, (k,)

        span = (0.0, float(times[-1]))
        solution = solve_ivp(rate, span, np.zeros(k), "DOP853", times, rtol=1e-10, atol=1e-12)
        shares = 1 / (1 + self.distances * solution.y.T[:, :, None])
        return shares / shares.sum(axis=2, keepdims=True)


def distances_of(points: np.ndarray) -> np.ndarray:
    """The squared distances of the rows of `points` scaled to unit length, (m, m)."""
    unit = torch.from_numpy(points / np.linalg.norm(points, axis=1, keepdims=True))
    distances = squared_distances(unit, unit).numpy()
    return np.where(distances < _SAME, 0.0, distances)


def integrate(adjacency: str, distances: np.ndarray) -> Trajectory:
    """Integrate dW/dt = -dE/dW from equal logits until all edges between different rows are nearly gone."""
    m, fixed = len(distances), torch.from_numpy(distances)

    def graph(logits: np.ndarray) -> GraphTerm:
        return ADJACENCIES[adjacency](torch.from_numpy(logits).view(m, m), fixed)

    def velocity(_: float, logits: np.ndarray) -> np.ndarray:
        return -graph(logits).gradient.numpy().ravel()

    end = _LATE * m**2 / distances[distances > 0].min()
    decades = math.ceil(math.log10(end)) + 2
    times = np.r_[0.0, np.geomspace(end / 10**decades, end, _PER_DECADE * decades + 1)]
    solution = solve_ivp(velocity, (0.0, end), np.full(m**2, _START), "DOP853", times, rtol=1e-10, atol=1e-12)
    states = np.ascontiguousarray(solution.y.T)
    terms = [graph(logits) for logits in states]
    laplacians = np.stack([laplacian(term.adjacency).numpy() for term in terms])
    energies = np.array([float(term.energy) for term in terms])
    return Trajectory(adjacency, distances, times, states.reshape(-1, m, m), laplacians, energies)


def softmaxes_of(flow: Trajectory) -> Softmaxes:
    """The softmaxes that a flow of global_sum (one, of all logits) or row_softmin (one a row) is made of."""
    m, rows = len(flow.distances), flow.adjacency == "row_softmin"
    k, sign, speed, scale = (m, -1, 0.5, 1) if rows else (1, 1, 1.0, 2)  # A = scale (P + P^T) / 2
    distances = flow.distances.reshape(k, -1)
    n0 = (distances == 0).sum(axis=1, keepdims=True)
    weights = softmax(sign * flow.logits.reshape(len(flow.times), k, -1), axis=2)
    edges = np.where(flow.equal_rows(), scale / np.broadcast_to(n0, (m, 1)), 0)
    return Softmaxes(distances, n0, speed, weights, np.diag(edges.sum(axis=1)) - edges)


def common_checks(flow: Trajectory) -> Iterator[Check]:
    """Yield the statements on W, on the energy and on the edges that stay, which hold for every adjacency."""
    case, same, apart = {"adjacency": flow.adjacency}, flow.equal_rows(), flow.distances > 0
    asymmetry = np.abs(flow.logits - flow.logits.transpose(0, 2, 1)).max() / np.abs(flow.logits - _START).max()
    yield Check("W stays symmetric: largest |W - W^T| / |W - W(0)|", case, "<=", 1e-9, float(asymmetry))
    start, end = flow.energies[[0, -1]]
    rise = np.diff(flow.energies).max() / start
    yield Check("the energy never rises: largest rise / E(0)", case, "<=", 1e-12, float(rise))
    yield Check("the energy vanishes: E(T) / E(0)", case, "<=", _SMALL, float(end / start))
    yield Check("log-log slope of the energy, last decade", case, "=", -1, float(_slope(flow.energies)))
    first, before, last = (np.abs(flow.laplacians[k]) for k in (0, -1 - _PER_DECADE, -1))
    gone = float((last / first)[apart].max())
    yield Check("edges between different rows vanish: largest A(T) / A(0)", case, "<=", _SMALL, gone)
    rows = "some rows equal" if same.any() else "all rows different"
    change = float(np.abs(last - before).max() / first.max())
    yield Check(f"L converges, {rows}: change in the last decade / |L(0)|", case, "<=", _SMALL, change)
    if same.any():
        kept = float((last / first)[same].min())
        yield Check("edges between equal rows stay: smallest A(T) / A(0)", case, ">=", 1, kept)


def softmax_checks(flow: Trajectory) -> Iterator[Check]:
    """Yield the closed form, every bound, the late behaviour and the limit."""
    softmaxes, case = softmaxes_of(flow), {"adjacency": flow.adjacency}
    deviation = float(np.abs(softmaxes.weights / softmaxes.exact_weights(flow.times) - 1).max())
    yield Check("closed form p = q / (1 + D s): largest error", case, "<=", _EXACT, deviation)
    for statement, lower, upper in _bounds(flow, softmaxes):
        slack = float((upper / lower).min())
        yield Check(f"{statement}: smallest slack", case, ">=", 1 - _EXACT, slack)
    distances, late, n0 = softmaxes.distances, softmaxes.weights[-1], softmaxes.n0
    apart, n = distances > 0, distances.shape[1]
    constants = (late * distances * softmaxes.speed * n * flow.times[-1] / n0)[apart]
    yield Check("sharp constant: p D c N t / N0 -> 1", case, "=", 1, _furthest(constants, 1))
    yield Check("log-log slope of p, last decade", case, "=", -1, _furthest(_slope(softmaxes.weights)[apart], -1))
    yield Check("weight at distance zero: N0 q(T) -> 1", case, "=", 1, _furthest(late.max(1) * n0[:, 0], 1))
    errors = np.abs(flow.laplacians - softmaxes.limit)  # (t, m, m)
    ratio = float(errors[-1].max() / errors[0].max())
    yield Check("L converges to L*: |L(T) - L*| / |L(0) - L*|", case, "<=", _SMALL, ratio)
    statement = "|L(t) - L*| <= |L(0) - L*| exp(-D t): log10 of the largest excess"
    yield Check(statement, case, "<=", 0, _excess(flow, errors))


def product_checks(flow: Trajectory) -> Iterator[Check]:
    """Yield the bound on the energy and the powers of t that global_product follows late."""
    case, same = {"adjacency": flow.adjacency}, flow.equal_rows()
    n = flow.distances.size
    n1 = int((flow.distances > 0).sum())
    n0 = n - n1
    slack = float((n**2 / (n0 * flow.times[1:] * flow.energies[1:])).min())
    yield Check("E <= m^4 / (N0 t): smallest slack", case, ">=", 1, slack)
    constant = float(flow.energies[-1] * flow.times[-1] * (4 * n0 + n1) / (n0 * n1))
    yield Check("sharp constant: E t (4 N0 + N1) / (N0 N1) -> 1", case, "=", 1, constant)
    if same.any():
        powers = _slope(-flow.laplacians[:, same]) * (4 * n0 + n1) / n1
        statement = "A ~ t^(N1 / (4 N0 + N1)) between equal rows: power / theory"
        yield Check(statement, case, "=", 1, _furthest(powers, 1))


def theorem2(root: str | Path | None = None, *, seed: int = 0, quick: bool = False) -> ResultTable:
    """Follow the gradient flow of the Dirichlet energy and check Theorem 2 and its corollary.

    Parameters
    ----------
    root : str or Path, optional
        Folder of the benchmark data: checks the users of Syn-Netflix too, or raises `DataFileError` without them.
    seed : int
        At least 0; for the random rows.
    quick : bool
        Take half as many random rows, and every fifth user of Syn-Netflix.

    Returns
    -------
    ResultTable
        A row for every statement and adjacency: what is expected, what was measured on the data where it is worst,
        and whether it holds.

    Examples
    --------
    >>> table = theorem2(quick=True)
    >>> sorted({row["adjacency"] for row in table.rows if not row["holds"]})
    ['global_product', 'global_sum', 'row_softmin']
    >>> [row["holds"] for row in table.rows if row["statement"].startswith("closed form")]
    [True, True]
    """
    rng = np.random.default_rng(check_integer("seed", seed))
    users = [] if root is None else [load_syn_netflix(root).matrix[:: 5 if quick else 1]]
    size = 12 if quick else 24
    distinct = 2 * size // 3
    random = [rng.standard_normal((distinct, 3))[np.arange(size) % distinct], rng.standard_normal((size, 3))]
    flows = [[integrate(name, distances_of(rows)) for name in _ORDER] for rows in (*random, *users)]
    checks = [check for of_rows in flows for flow in of_rows for check in _checks(flow)]
    protocol = (
        f"rows of unit length: {size} random, {distinct} of them different; {size} random, all different; "
        f"{len(users[0]) if users else 'no'} users of Syn-Netflix; seed {seed}; all logits {_START:g} at the start, "
        f"dW/dt = -dE/dW, DOP853 (rtol 1e-10), float64, to T = {_LATE:g} m^2 / (smallest positive distance), "
        f"{_PER_DECADE} outputs a decade"
    )
    return ResultTable("Theorem 2: the adjacency under gradient flow", protocol, worst_rows(checks), list(_NOTES))


_ORDER = ("global_sum", "row_softmin", "global_product")
_NOTES = (
    "measured: on the data where the statement is furthest from holding, or closest to failing; slack: bound / value "
    "from above, value / bound from below",
    "a softmax has N entries, N0 of them at distance zero, N1 = N - N0; global_sum is one (N = m^2, speed c = 1), "
    "row_softmin one a row (N = m, c = 1/2)",
    "the constants that the paper prints in its exponential bounds could not be had; exp(-D t) is tried with D the "
    "smallest positive distance, and the bounds from below exclude every fixed D > 0",
    "row_softmin: each row moves on a clock of its own, so W is not symmetric (A is); a row's weight goes to its "
    "self-edge and to equal rows. global_product: edges between equal rows grow without limit",
)


def _checks(flow: Trajectory) -> Iterator[Check]:
    yield from common_checks(flow)
    yield from product_checks(flow) if flow.adjacency == "global_product" else softmax_checks(flow)


def _bounds(flow: Trajectory, softmaxes: Softmaxes) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield pairs of which the first must not exceed the second, at all times but the start, where both are equal."""
    t, n0, distances = flow.times[1:], softmaxes.n0, softmaxes.distances
    n, apart = distances.shape[1], distances > 0
    weights, shares, (low, high) = softmaxes.weights[1:], softmaxes.shares()[1:], softmaxes.share_bounds(t)
    yield "p / q <= 1 / (1 + c D t / N)", shares[:, apart], high[:, apart]
    yield "p / q >= 1 / (1 + c D N t / N0^2)", low[:, apart], shares[:, apart]
    yield "p <= (1 / N0) / (1 + c D t / N)", weights[:, apart], (high / n0)[:, apart]
    yield "p >= (1 / N) / (1 + c D N t / N0^2)", low[:, apart] / n, weights[:, apart]
    tails = np.where(apart, high, 0).sum(axis=2) / n0[:, 0] ** 2  # (t, k)
    yield "1 / N0 - q <= (1 / N0^2) sum 1 / (1 + c D t / N)", 1 / n0[:, 0] - weights.max(axis=2), tails
    energies = softmaxes.speed * (distances * high / n0).sum(axis=(1, 2))  # (t,)
    yield "E <= c sum (1 / N0) D / (1 + c D t / N)", flow.energies[1:], energies
    yield "E <= sum (N1 / N0) N / t", flow.energies[1:], ((n - n0) / n0).sum() * n / t


def _excess(flow: Trajectory, errors: np.ndarray) -> float:
    """The logarithm of the largest excess: exp(-D t) itself soon leaves the floating-point numbers."""
    slowest, moving = flow.distances[flow.distances > 0].min(), errors[0] > _SAME
    with np.errstate(divide="ignore"):
        logs = np.log10(errors[1:, moving] / errors[0, moving])
    return float((logs + (slowest * flow.times[1:] / math.log(10))[:, None]).max())


def _slope(values: np.ndarray) -> np.ndarray:
    return np.log10(values[-1] / values[-1 - _PER_DECADE])


def _furthest(values: np.ndarray, target: float) -> float:
    return float(values.flat[np.abs(values - target).argmax()])
