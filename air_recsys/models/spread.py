"""How far new ratings spread around their predictions, for models with a posterior."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from air_recsys.nn.posterior.estimate import Spread

_BLOCK = 4_000_000  # entries of covariances at once
_PREFIX = "spread_"


class PredictionSpread(NamedTuple):
    """What standard deviations need, see `air_recsys.nn.posterior.estimate.Spread`.

    Parameters
    ----------
    scales : ndarray, shape (2,)
        The unit of the numbers below in that of the ratings, and the common variance of a rating around its score.
    user_noise, item_noise : ndarray
        Of each user and item, multiples of that variance.
    users, items : ndarray
        Means (n, d) of factors and bias, or draws of them (n, s, d).
    user_covariances, item_covariances : ndarray, optional
        Upper triangles, (n, d (d + 1) / 2), beside means.
    """

    scales: np.ndarray
    user_noise: np.ndarray
    item_noise: np.ndarray
    users: np.ndarray
    items: np.ndarray
    user_covariances: np.ndarray | None = None
    item_covariances: np.ndarray | None = None

    @classmethod
    def of(cls, spread: Spread, unit: float) -> Self:
        """Take over what training left, on the CPU."""
        arrays = [None if tensor is None else tensor.cpu().numpy().copy() for tensor in spread[1:]]
        return cls(np.array([unit, spread.noise]), *arrays)  # type: ignore[arg-type]

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of a model file."""
        return {f"{_PREFIX}{name}": array for name, array in self._asdict().items() if array is not None}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self | None:
        """Return what `to_arrays` wrote, None where a file has none."""
        own = {name.removeprefix(_PREFIX): array for name, array in arrays.items() if name.startswith(_PREFIX)}
        return cls(**own) if own else None

    def deviations(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Return the standard deviation of a new rating of each pair, (n,)."""
        unit, noise = self.scales
        block = max(1, _BLOCK // max(self.users[:1].size, self.users.shape[-1] ** 2))
        score = np.empty(users.size)
        for start in range(0, users.size, block):
            part = slice(start, start + block)
            score[part] = self._score_variance(users[part], items[part])
        return unit * np.sqrt(score + noise * self.user_noise[users] * self.item_noise[items])

    def _score_variance(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        left, right = self.users[users].astype(np.float64), self.items[items].astype(np.float64)
        if self.user_covariances is None or self.item_covariances is None:  # draws, (b, s, d)
            scores = (left[:, :, :-1] * right[:, :, :-1]).sum(2) + left[:, :, -1] + right[:, :, -1]
            return scores.var(axis=1)
        of_left, of_right = _full(self.user_covariances[users]), _full(self.item_covariances[items])
        left[:, -1] = right[:, -1] = 1.0  # a score is linear in (p, b) with (q, 1), and in (q, c) with (p, 1)
        variance = np.einsum("bi,bij,bj->b", right, of_left, right) + np.einsum("bi,bij,bj->b", left, of_right, left)
        return variance + np.einsum("bij,bij->b", of_left[:, :-1, :-1], of_right[:, :-1, :-1])


def _full(triangles: np.ndarray) -> np.ndarray:
    """Return symmetric matrices from their upper triangles."""
    width = (int(np.sqrt(8 * triangles.shape[1] + 1)) - 1) // 2
    place = np.zeros((width, width), dtype=np.intp)
    upper = np.triu_indices(width)
    place[upper] = np.arange(triangles.shape[1])
    place.T[upper] = np.arange(triangles.shape[1])
    return triangles[:, place].astype(np.float64)
