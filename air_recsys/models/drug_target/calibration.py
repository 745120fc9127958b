r"""Probabilities and their deviations from scores, by completions without a tenth of the recorded pairs each.

Every recorded pair gets a score of a completion without it. Isotonic regression of the records on these scores is the
calibration: the probability of a score is the share of interactions among recorded pairs with similar scores. One more
pair with the share of all pairs is added, so that no probability is 0 or 1.

The deviation of a score is that of the delete-a-group jackknife over the G completions that do not lack its pair,

.. math:: \frac{G - 1}{G} \sum_g (x_g - \bar x)^2,

its square: how much the score depends on the records. The deviation of a probability is half of the distance between
the probabilities one deviation of the score above and below.

Sources: Zadrozny, Elkan, Transforming Classifier Scores into Accurate Multiclass Probability Estimates, KDD 2002;
Kott, The Delete-a-Group Jackknife, Journal of Official Statistics 17, 2001.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np

from air_recsys.models.drug_target.sides import without

FOLDS = 10


class HeldOut(NamedTuple):
    """Scores of completions without a part of the records each."""

    scores: np.ndarray  # (n_recorded,), of each recorded pair without itself, in the order of `np.nonzero(weights)`
    deviations: np.ndarray  # (m, n), of the scores of all pairs


def held_out(weights: np.ndarray, completed: Callable[[np.ndarray], np.ndarray]) -> HeldOut:
    """Return scores of completions without a tenth of the recorded pairs at a time, the same tenths for the same data.

    Parameters
    ----------
    weights : ndarray, shape (m, n)
        Above 0 where a pair is recorded.
    completed : callable
        Takes weights, and returns the scores of all pairs, (m, n).
    """
    recorded = np.flatnonzero(weights)
    scores = np.zeros(weights.size)
    numbers, sums, squares = (np.zeros(weights.shape) for _ in range(3))
    for hidden in np.array_split(np.random.RandomState(1).permutation(recorded), min(FOLDS, recorded.size)):
        found = completed(without(weights, hidden))
        scores[hidden] = found.flat[hidden]
        counts = without(np.ones(weights.shape), hidden)
        numbers += counts
        sums += counts * found
        squares += counts * found**2
    several = np.maximum(numbers, 1)
    spread = np.maximum(squares - sums**2 / several, 0)
    return HeldOut(scores[recorded], np.sqrt(spread * (several - 1) / several))


class Calibration(NamedTuple):
    """A map from scores to probabilities: straight lines between knots, constant beyond them."""

    scores: np.ndarray  # (k,), ascending
    probabilities: np.ndarray  # (k,), in (0, 1), not descending

    @classmethod
    def of(cls, scores: np.ndarray, interact: np.ndarray) -> Self:
        """Return the calibration by pairs with these scores, of which some interact.

        Examples
        --------
        >>> found = Calibration.of(np.array([0.0, 0.1, 0.2, 0.9]), np.array([0, 0, 0, 1]))
        >>> found.of_scores(np.array([0.1, 0.9])).round(2).tolist()
        [0.06, 0.62]
        """
        from sklearn.isotonic import IsotonicRegression

        order = np.argsort(scores, kind="stable")
        labels = interact[order].astype(np.float64)
        fitted = IsotonicRegression(y_min=0, y_max=1).fit_transform(scores[order], labels)
        starts = np.flatnonzero(np.diff(fitted, prepend=-1))  # of blocks of one value
        sizes = np.diff(np.append(starts, labels.size))
        drawn = (sizes * fitted[starts] + labels.mean()) / (sizes + 1)
        values = np.maximum.accumulate(np.repeat(drawn, sizes))
        ends = np.unique(np.concatenate([starts, starts + sizes - 1]))
        return cls(scores[order][ends], values[ends])

    def of_scores(self, scores: np.ndarray) -> np.ndarray:
        """Return the probabilities of scores, in their shape."""
        return np.interp(scores, self.scores, self.probabilities)

    def deviations(self, scores: np.ndarray, deviations: np.ndarray) -> np.ndarray:
        """Return the deviations of probabilities whose scores deviate by so much, in their shape."""
        return (self.of_scores(scores + deviations) - self.of_scores(scores - deviations)) / 2


def cross_calibrated(scores: np.ndarray, interact: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return the probability of each pair by a calibration that lacks it, a tenth of the pairs at a time, (n,).

    Examples
    --------
    >>> scores, interact = np.repeat([0.1, 0.9], 50), np.repeat([0, 1], 50)
    >>> cross_calibrated(scores, interact)[[0, -1]].round(1).tolist()
    [0.0, 1.0]
    """
    probability = np.empty(scores.size)
    everyone = np.random.default_rng(seed).permutation(scores.size)
    for hidden in np.array_split(everyone, min(FOLDS, scores.size)):
        others = np.setdiff1d(everyone, hidden)
        probability[hidden] = Calibration.of(scores[others], interact[others]).of_scores(scores[hidden])
    return probability
