"""Learned changes over time: what users and items add to their scores at a moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from air_recsys.data.columns import as_timestamps
from air_recsys.exceptions import DataError
from air_recsys.models.rows import SIDES, Side
from air_recsys.nn.drift.process import Moments

_PREFIX = "drift_"  # names of these arrays in model files
_FAR = 100  # spans of the training before and after it: beyond them the times are of another unit


class LearnedDrift(NamedTuple):
    """The processes of users and of items, see `air_recsys.nn.drift.drift`."""

    unit: float  # of the processes, in that of the ratings
    span: tuple[float, float]  # the first and the last time of the training ratings
    users: Sequence[Moments]
    items: Sequence[Moments]

    def at(self, users: np.ndarray, items: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The change of the score of each pair at its time, and the variance of that, (n,) each."""
        mean, variance = np.zeros(len(times)), np.zeros(len(times))
        for index, processes in ((users, self.users), (items, self.items)):
            rows = np.asarray(index, dtype=np.int64)
            for process in processes:
                found, spread = process.at(rows, np.asarray(times, dtype=np.float64))
                mean, variance = mean + found, variance + spread
        return self.unit * mean, self.unit**2 * variance

    def variances(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The variance of what is added to each pair at a time that is not known, (n,)."""
        variance = np.zeros(len(users))
        for index, processes in ((users, self.users), (items, self.items)):
            rows = np.asarray(index, dtype=np.int64)
            for process in processes:
                variance = variance + process.strengths(rows)
        return self.unit**2 * variance

    def covariance(self, user: int, times: np.ndarray) -> np.ndarray:
        """The covariance of what a user's processes add at times before any rating, (k, k)."""
        apart, row = np.abs(times[:, None] - times), np.array([user])
        parts = [float(each.strengths(row)[0]) * np.exp(-apart / each.scale) for each in self.users]
        return self.unit**2 * np.sum(parts, axis=0) if parts else np.zeros_like(apart)

    def of_rows(self, users: np.ndarray, items: np.ndarray, times: np.ndarray) -> LearnedDrift:
        """The same of some users and items, with what is left of the training's span in the times of their ratings."""
        span = max(self.span[0], float(times.min())), min(self.span[1], float(times.max()))
        kept = [
            [part for process in of_side if len((part := process.of_rows(rows)).keys)]
            for of_side, rows in ((self.users, users), (self.items, items))
        ]
        return LearnedDrift(self.unit, span, *kept)

    def of_new_rows(self, side: Side) -> Self:
        """The same for new rows of a side alone, of which nothing is known at any moment."""
        return self._replace(**{f"{side}s": [each.of_new_rows() for each in getattr(self, f"{side}s")]})

    def checked(self, timestamps: Any, size: int) -> np.ndarray:
        """The times of some pairs, or raise `DataError` where they cannot be of the unit of the training."""
        array = np.asarray(timestamps)
        times = as_timestamps(array if array.ndim else np.full(size, array), size).astype(np.float64)
        first, last = self.span
        far = _FAR * max(last - first, 1.0)
        wrong = (times < first - far) | (times > last + far)
        if wrong.any():
            raise DataError(
                f"expected timestamps in the unit of the training, {first:.10g} to {last:.10g}, found "
                f"{times[wrong][0]:.10g}"
            )
        return times

    def table(self) -> pd.DataFrame:
        """The processes: whose, how long they last, and what they add to a rating, the root mean square."""
        sides = (("user", self.users), ("item", self.items))
        rows = [
            (side, each.scale, self.unit * float((each.strength / each.scales).mean()) ** 0.5)
            for side, processes in sides
            for each in processes
        ]
        return pd.DataFrame(rows, columns=["side", "lasts", "deviation"])

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The arrays of a model file."""
        arrays = {f"{_PREFIX}scales": np.array([self.unit, *self.span])}
        for side, processes in zip(SIDES, (self.users, self.items), strict=True):
            numbers = [(each.first, each.n_moments, each.scale, each.strength) for each in processes]
            arrays[f"{_PREFIX}{side}_processes"] = np.array(numbers, dtype=np.float64).reshape(-1, 4)
            for number, each in enumerate(processes):
                parts = {"keys": each.keys, "means": each.mean, "spreads": each.spread, "scales": each.scales}
                arrays |= {f"{_PREFIX}{side}_{number}_{name}": part for name, part in parts.items()}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self | None:
        """The processes that `to_arrays` wrote; None where there are none.

        Raises
        ------
        ValueError, LookupError
            If the arrays are not whole.
        """
        if f"{_PREFIX}scales" not in arrays:
            return None
        unit, *span = arrays[f"{_PREFIX}scales"].tolist()
        users, items = ([*_processes(arrays, f"{_PREFIX}{side}_")] for side in SIDES)
        first, last = span
        return cls(unit, (first, last), users, items)


def _processes(arrays: Mapping[str, np.ndarray], name: str) -> list[Moments]:
    found = []
    for number, (first, n_moments, scale, strength) in enumerate(arrays[f"{name}processes"].tolist()):
        parts = ("keys", "means", "spreads", "scales")
        keys, means, spreads, scales = (arrays[f"{name}{number}_{part}"] for part in parts)
        if not keys.size or keys.dtype.kind != "i" or (np.diff(keys) <= 0).any() or keys[0] < 0:
            raise ValueError(f"expected ascending moments in {name}{number}_keys, found others")
        if keys.ndim != 1 or means.shape != keys.shape or spreads.shape != keys.shape or not (spreads > 0).all():
            raise ValueError(f"expected a mean and a variance of each moment of {name}{number}, found others")
        if min(n_moments, scale, strength) <= 0 or scales.ndim != 1 or not (scales > 0).all():
            raise ValueError(f"expected numbers above 0 in {name}processes, found {[n_moments, scale, strength]}")
        found.append(Moments(keys, means, spreads, first, int(n_moments), scale, strength, scales))
    return found
