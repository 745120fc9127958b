r"""Rows without likes, by their features: a ridge of what is known of other rows on the features.

A value y of a row with features x is a process with the covariance :math:`e^{-|x - x'|^2 / \ell} + 1` and noise of
variance :math:`\sigma`, the same for all values. So each value of a new row is a weighted sum of those of known rows,

.. math:: \hat y_* = k_*^\top P y, \qquad P = (K + \sigma I)^{-1}

and a known row that is left out would have got :math:`y_i - (P y)_i / P_{ii}`. The width and the noise are those with
the smallest squares of what is left then. Nothing is trained.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from air_recsys.data.interactions import Interactions
from air_recsys.storage.threads import one_thread

MOST = 2000  # known rows that others follow from
_WIDTHS = (0.5, 1.0, 2.0, 4.0)  # of the mean squared distance
_NOISES = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
_LEAST_GAIN = 1.0  # standard errors
_LENGTH, _LOSS = 20, 0.003  # of lists, and the share of their scores that new rows may take from known ones
_DRAWS, _STEPS = 3, 6


class Content(NamedTuple):
    """How rows without likes follow from those with likes."""

    width: float  # l
    noise: float  # of a value, its variance
    gain: float  # the share of the variance of known rows that is found where these are left out
    reach: float = 1.0  # what the scores of new rows are multiplied with

    @classmethod
    def of(cls, known: np.ndarray, values: np.ndarray, *, sure: bool = False) -> Content | None:
        """That with the smallest error where rows are left out; None where all have the same features.

        Where it has to be `sure`, also None unless it gains a standard error on the mean of the other rows.

        `known` are the features of rows, (n, g), and `values` what is known of them, (n, k).
        """
        scale = 2 * float(known.var(axis=0, dtype=np.float64).sum())
        total = float(np.square(values - values.mean(axis=0)).sum())
        if not (scale > 0 and total > 0):
            return None
        tried = []
        for width in scale * np.array(_WIDTHS):
            with one_thread():
                roots, axes = eigh(_covariance(known, known, width), overwrite_a=True, check_finite=False)
                along, squares = axes.T @ values, np.square(axes)
                for noise in _NOISES:
                    errors = (axes / (roots + noise)) @ along / (squares @ (1 / (roots + noise)))[:, None]
                    tried.append((float(np.square(errors).sum()), float(width), noise))
        error, width, noise = min(tried)
        found = cls(width, noise, max(0.0, 1 - error / total))
        if sure:
            by_mean = (values - values.mean(axis=0)) * len(values) / (len(values) - 1)
            by_content = values - found.left_out(known, values)
            gains = (np.square(by_mean) - np.square(by_content)).sum(axis=1)
            if gains.sum() <= _LEAST_GAIN * np.sqrt(np.square(gains).sum()):
                return None
        return found

    @classmethod
    def of_values(cls, side: str, values: object) -> Content | None:
        """That of a side among chosen values by name; `ValueError` for numbers that none has."""
        if not isinstance(values, dict) or f"{side}_width" not in values:
            return None
        found = cls(*(float(values[f"{side}_{name}"]) for name in cls._fields))
        if not (0 < found.width < np.inf and 0 < found.noise < np.inf and 0 <= found.reach <= 1):
            raise ValueError(f"expected a width and a noise above 0, and a reach in 0..1, found {found}")
        return found

    def values_of(self, side: str) -> dict[str, float]:
        """The chosen values by name that `of_values` reads."""
        return {f"{side}_{name}": float(value) for name, value in self._asdict().items()}

    def solver(self, known: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """What returns the weights of known rows, (n, g), in the values of others with features (m, g); (n, m)."""
        covariance = _covariance(known, known, self.width)
        covariance.flat[:: len(known) + 1] += self.noise
        with one_thread():
            factor = cho_factor(covariance, overwrite_a=True, check_finite=False)

        def weights(asked: np.ndarray) -> np.ndarray:
            with one_thread():
                return cho_solve(factor, _covariance(known, asked, self.width), overwrite_b=True, check_finite=False)

        return weights

    def left_out(self, known: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The values, (n, k), that known rows would get if each was left out."""
        inverse = (np.eye(len(known)) - self.solver(known)(known)) / self.noise  # P K = I - noise P
        return values - inverse @ values / np.diag(inverse)[:, None]

    def placed(self, known: np.ndarray, scores: np.ndarray, seen: np.ndarray, share: float, seed: int) -> Content:
        """The same with the largest reach in 1/2..1 for which new rows take little from known ones in lists.

        Of some rows, a `share`, the scores are as if they had no likes. In lists of 20 of what is not seen, the scores
        of the others, (n_lists, n), discounted by their places, may lose 0.3 %.
        """
        as_new = self.left_out(known, scores.T).T
        rng, length = np.random.default_rng(seed), min(_LENGTH, max(1, scores.shape[1] // _LENGTH))
        drawn = [rng.random(scores.shape[1]) < share for _ in range(_DRAWS)]
        discount = 1 / np.log2(np.arange(2, length + 2))

        def value(some: np.ndarray, reach: float) -> float:
            """The discounted scores of other rows in lists."""
            mixed = np.where(some, reach * as_new if reach else -np.inf, scores)
            mixed[seen] = -np.inf
            places = np.argsort(-mixed, axis=1)[:, :length]
            return float(
                (np.where(some | seen, 0.0, scores)[np.arange(len(scores))[:, None], places] @ discount).sum()
            )

        alone = sum(value(some, 0.0) for some in drawn)

        def fits(reach: float) -> bool:
            return sum(value(some, reach) for some in drawn) >= (1 - _LOSS) * alone

        low, high = 0.5, 1.0
        if fits(high):
            return self._replace(reach=high)
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return self._replace(reach=low)


def most_liked_items(data: Interactions) -> np.ndarray:
    """The items that most users have, of those with likes, as many as others may follow from; ascending."""
    counts = np.bincount(data.item_index, minlength=data.n_items)
    order = np.argsort(-counts, kind="stable")[:MOST]
    return np.sort(order[counts[order] > 0])


def some_with_likes(data: Interactions) -> np.ndarray:
    """Users with likes, drawn at random where there are more than others may follow from; ascending."""
    return np.sort(np.random.default_rng(0).permutation(np.unique(data.user_index))[:MOST])


def _covariance(first: np.ndarray, second: np.ndarray, width: float) -> np.ndarray:
    """The covariance of rows with these features, (n, m)."""
    from scipy.spatial.distance import cdist

    return np.exp(cdist(first, second, "sqeuclidean") / -width) + 1.0
