"""What a user's ratings share beside the item graph, moments and features: chosen on ratings that are left out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.nn.leave_one_out import LeftOut, weighed
from air_recsys.nn.residuals import RowProcesses
from air_recsys.nn.row_kernels import Lasting

Influence = Callable[[int, np.ndarray, np.ndarray], np.ndarray]
_USERS, _MOST_OF_USER = 200, 100  # users looked at, and their ratings in a row
_LEAST_GAIN = 1.0  # standard errors
_MOST_NUMBERS = 128  # features of an item whose products are worth their time
_LEAST = 1e-6  # of a strength
_GAPS = 256  # between ratings in the scale of what lasts


class Further(NamedTuple):
    """The parts of the users' processes beside the item graph, see `air_recsys.nn.row_kernels`."""

    features: float = 0.0  # c
    lasting: Lasting | None = None

    def beside(self, graph: RowProcesses, item_features: np.ndarray | None) -> RowProcesses:
        """The processes over a graph with these parts."""
        return replace(graph, features=self.scaled(item_features), lasting=self.lasting)

    def scaled(self, item_features: np.ndarray | None) -> np.ndarray | None:
        """Features whose products are part of the covariance, (n, g); None without such a part."""
        return None if item_features is None or not self.features else np.sqrt(self.features) * item_features

    def to_json(self) -> list[float]:
        """The numbers as JSON holds them: c, b and l."""
        return [self.features, *(self.lasting or (0.0, 0.0))]

    @classmethod
    def from_json(cls, content: Any) -> Further:
        """What `to_json` returned, or no number; raise `ValueError` for others."""
        numbers = [float(each) for each in content]
        if not numbers:
            return cls()
        features, strength, scale = numbers
        if not np.isfinite(numbers).all() or min(numbers) < 0 or (strength > 0) != (scale > 0):
            raise ValueError(
                f"expected finite parts of processes from 0 on, with a scale of what lasts, found {content}"
            )
        return cls(features, Lasting(strength, scale) if strength else None)


NOTHING = Further()


def further_parts(
    data: Interactions, residuals: np.ndarray, graph: RowProcesses, influence: Influence, *, reads_times: bool
) -> Further:
    """The parts that predict ratings which are left out of those of some users; none where they do not.

    Parameters
    ----------
    data : Interactions
    residuals : ndarray, shape (n_ratings,)
    graph : RowProcesses
        The processes that the parts stand beside, over a graph that was chosen without a look at the residuals: others
        know what is left out.
    influence : callable
        Takes a user, items (k,) and positions (k,) among the ratings, and returns how the ratings there influence the
        scores there, (k, k).
    reads_times : bool
        Whether the model reads the times of the ratings.
    """
    times = _times_of(data, reads_times)
    scale = 0.0 if times is None else time_scale(data.user_index, times)
    known = numbers_of(data)
    few = known is not None and known.shape[1] <= _MOST_NUMBERS and known.any()
    units = Further(float(few), Lasting(1.0, scale) if scale else None)
    if units == NOTHING:
        return NOTHING
    found = weighed(_left_out(data, residuals, graph, influence, units, times))
    if found.gain < _LEAST_GAIN:
        return NOTHING
    lasting = Lasting(float(found.weights[0]), scale) if scale and found.weights[0] > _LEAST else None
    return Further(float(found.weights[-1]) if units.features else 0.0, lasting)


def errors_left_out(
    data: Interactions,
    residuals: np.ndarray,
    graph: RowProcesses,
    influence: Influence,
    parts: Further,
    *,
    reads_times: bool,
) -> tuple[float, float]:
    """The root mean squared errors of some training ratings, each left out, without and with what is carried.

    Parameters
    ----------
    parts : Further
        Those of the model.
    data, residuals, graph, influence, reads_times
        As in `further_parts`.
    """
    rows = _left_out(data, residuals, graph, influence, parts, _times_of(data, reads_times))
    if not rows:
        return math.nan, math.nan
    found = [row.alone for row in rows], [row.errors(np.ones(len(row.kernels)))[0] for row in rows]
    without, with_carried = (float(np.sqrt(np.square(np.concatenate(each)).mean())) for each in found)
    return without, with_carried


def _left_out(
    data: Interactions,
    residuals: np.ndarray,
    graph: RowProcesses,
    influence: Influence,
    parts: Further,
    times: np.ndarray | None,
) -> list[LeftOut]:
    """What the errors of some users follow from, with parts of these strengths, moments first."""
    known, lasting, rows = parts.scaled(numbers_of(data)), parts.lasting, []
    for user, places in looked_at(data.user_index, times, data.weights, _USERS, _MOST_OF_USER, data.n_users):
        items = data.item_index[places]
        kernels = []
        if lasting is not None and times is not None:
            kernels.append(lasting.covariance(np.abs(times[places][:, None] - times[places])))
        if known is not None:
            kernels.append(known[items] @ known[items].T)
        weights = np.ones(places.size) if data.weights is None else data.weights[places]
        half = graph.strength / 2
        base = np.diag(1 / weights + half) + half * graph.edges[items][:, items].toarray()
        stacked = np.array(kernels).reshape(len(kernels), places.size, places.size)
        rows.append(LeftOut(base, stacked, influence(user, items, places), residuals[places]))
    return rows


def _times_of(data: Interactions, reads_times: bool) -> np.ndarray | None:
    return np.asarray(data.timestamps, dtype=np.float64) if reads_times and data.timestamps is not None else None


def numbers_of(data: Interactions) -> np.ndarray | None:
    """The features of the items of data, (n_items, g); given similarities are none."""
    return None if data.item_features is None else data.item_features.values.astype(np.float64)


def time_scale(users: np.ndarray, times: np.ndarray) -> float:
    """The scale of what lasts: 256 of the median gap between ratings of a user that follow each other; 0 without one.

    Examples
    --------
    >>> time_scale(np.zeros(4, dtype=int), np.array([0.0, 10.0, 10.0, 25.0]))
    3200.0
    """
    order = np.lexsort((times, users))
    gaps = np.diff(times[order])[np.diff(users[order]) == 0]
    return _GAPS * float(np.median(gaps[gaps > 0])) if (gaps > 0).any() else 0.0


def looked_at(
    rows: np.ndarray, times: np.ndarray | None, weights: np.ndarray | None, n_rows: int, most: int, size: int = 0
) -> list[tuple[int, np.ndarray]]:
    """So many rows (of `size`), and the positions of their ratings, of many a stretch in time, or in an order."""
    order = np.argsort(rows, kind="stable") if times is None else np.lexsort((times, rows))
    size = size or int(rows.max()) + 1
    starts = np.searchsorted(rows[order], np.arange(size + 1))
    rng, found = np.random.default_rng(0), []
    for row in rng.permutation(size):
        first, last = starts[row : row + 2]
        if len(found) == n_rows:
            break
        if last - first > 1:
            first = first if last - first <= most else rng.integers(first, last - most + 1)
            places = order[first : min(last, first + most)]
            found.append((int(row), places if weights is None else places[weights[places] > 0]))
    return found
