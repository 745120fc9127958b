"""What a posterior leaves beside the scores: how far new ratings spread around them, and what new rows follow from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from air_recsys.models.posterior_rows import PosteriorSolver, Side, full
from air_recsys.nn.posterior.estimate import Spread
from air_recsys.nn.posterior.features import Projection

if TYPE_CHECKING:
    from air_recsys.models.air import AIR

_BLOCK = 4_000_000  # entries of covariances at once
_PREFIX = "spread_"
_FIELDS = (
    *("user_noise", "item_noise", "users", "items", "user_weights", "item_weights"),
    *("user_precisions", "item_precisions", "user_covariances", "item_covariances"),
)  # in the order of `Spread` and `Priors`


class PredictionSpread(NamedTuple):
    """What standard deviations and new rows need, see `air_recsys.nn.posterior.estimate.Spread`.

    Parameters
    ----------
    scales : ndarray, shape (2,)
        The unit of the numbers below in that of the ratings, and the common variance of a rating around its score.
    user_noise, item_noise : ndarray
        Of each user and item, multiples of that variance.
    users, items : ndarray
        Means (n, d) of factors and bias, or draws of them (n, s, d).
    user_weights, item_weights : ndarray
        W of their priors, one for each draw (s = 1 beside means), (s, k, d).
    user_precisions, item_precisions : ndarray
        S^-1, (s, d, d).
    user_basis, item_basis : ndarray
        What each item adds to the features of a user, (n_items, k), and each user to those of an item.
    log_degrees : ndarray, shape (2,)
        Mean logarithms of the number of ratings of users and of items.
    user_covariances, item_covariances : ndarray, optional
        Upper triangles, (n, d (d + 1) / 2), beside means.
    """

    scales: np.ndarray
    user_noise: np.ndarray
    item_noise: np.ndarray
    users: np.ndarray
    items: np.ndarray
    user_weights: np.ndarray
    item_weights: np.ndarray
    user_precisions: np.ndarray
    item_precisions: np.ndarray
    user_basis: np.ndarray
    item_basis: np.ndarray
    log_degrees: np.ndarray
    user_covariances: np.ndarray | None = None
    item_covariances: np.ndarray | None = None

    @classmethod
    def of(cls, spread: Spread, unit: float, projections: tuple[Projection, Projection]) -> Self:
        """Take over what training left, on the CPU; the projections give features of users and of items."""
        named = dict(zip(_FIELDS, (*spread[1:5], *spread.priors, *spread[6:]), strict=True))
        arrays = {name: tensor.cpu().numpy().copy() for name, tensor in named.items() if tensor is not None}
        bases = [side.basis.astype(arrays["users"].dtype) for side in projections]
        degrees = np.array([side.logarithm for side in projections])
        return cls(
            np.array([unit, spread.noise]), user_basis=bases[0], item_basis=bases[1], log_degrees=degrees, **arrays
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of a model file."""
        return {f"{_PREFIX}{name}": array for name, array in self._asdict().items() if array is not None}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], shape: tuple[int, int]) -> Self | None:
        """Return what `to_arrays` wrote of a model of `shape` (n_users, n_items), None where a file has none.

        Raises
        ------
        ValueError
            Where an array has another shape than the others ask for, or a variance is negative.
        """
        own = {name.removeprefix(_PREFIX): array for name, array in arrays.items() if name.startswith(_PREFIX)}
        if not own:
            return None
        spread = cls(**own)
        for name, expected in spread._shapes(*shape).items():
            array = own.get(name)
            if array is not None and array.shape != expected:
                raise ValueError(f"expected {name} of shape {expected}, found {array.shape}")
        if min(float(own[name].min(initial=0)) for name in ("scales", "user_noise", "item_noise")) < 0:
            raise ValueError("expected variances >= 0, found a negative one")
        if (spread.user_covariances is None) != (spread.item_covariances is None):
            raise ValueError("expected covariances of both sides, found those of one")
        return spread

    def _shapes(self, n_users: int, n_items: int) -> dict[str, tuple[int, ...]]:
        """Return what the shapes have to be, given those of the priors' weights."""
        (draws, k, d), (_, n_features, _) = self.user_weights.shape, self.item_weights.shape
        shapes: dict[str, tuple[int, ...]] = {"scales": (2,), "log_degrees": (2,)}
        middle = () if self.users.ndim == 2 else (draws,)
        for side, size, features, others in (("user", n_users, k, n_items), ("item", n_items, n_features, n_users)):
            shapes |= {f"{side}_noise": (size,), f"{side}s": (size, *middle, d)}
            shapes |= {f"{side}_weights": (draws, features, d), f"{side}_precisions": (draws, d, d)}
            trained = min(others, len(getattr(self, f"{side}_basis")))  # those that came later are no part of it
            shapes |= {f"{side}_basis": (trained, features - 2), f"{side}_covariances": (size, d * (d + 1) // 2)}
        return shapes

    def row_solver(self, model: AIR, side: Side) -> PosteriorSolver:
        """Return the solver for new rows of a side of the model that this is of."""
        return PosteriorSolver(model, self, side)

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
        of_left, of_right = full(self.user_covariances[users]), full(self.item_covariances[items])
        left[:, -1] = right[:, -1] = 1.0  # a score is linear in (p, b) with (q, 1), and in (q, c) with (p, 1)
        variance = np.einsum("bi,bij,bj->b", right, of_left, right) + np.einsum("bi,bij,bj->b", left, of_right, left)
        return variance + np.einsum("bij,bij->b", of_left[:, :-1, :-1], of_right[:, :-1, :-1])
