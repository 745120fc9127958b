r"""The probability that a user takes an item, by the rank of the item among those that the user has not.

What is looked for is what a split at random hides: of all that a user takes, shares s and h are shown and hidden. With
the chance :math:`\pi` that the user takes an item at all, an item that is not shown is hidden with the chance

.. math:: P = h \pi / (1 - s \pi), \qquad \mathrm{logit}\,\pi = b \cdot (1, x, y, x^2, x y, y^2, e^{x - y})

where x is the log of the rank, and y that of all the items that the user takes: those shown, divided by s. The
training data are what is shown, s = 0.8 and h = 0.2. Where a fifth of them is hidden, s = 0.64 and h = 0.16: that the
rest is unknown makes less of the list right, and b is fitted to this. Items that have become known since then, a share
of 0.16, are gone from the list: the rank that counts is that with the expected number of those before it.

Parts hidden in time are not at random: there P is :math:`\pi`, of the ranks as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from air_recsys.metrics.checks import Csr
from air_recsys.storage.threads import in_workers

_SHOWN, _HIDDEN = 0.8, 0.2
_BINS = 100  # of ranks, at most
_ROUNDS = 4  # in which ranks and the chances before them settle


class RankCalibration(NamedTuple):
    """Probabilities by ranks and the numbers of items of users."""

    coefficients: np.ndarray  # b, (7,)
    range: np.ndarray  # the least and the largest log of the number of a user's items that it was fitted to, (2,)
    at_random: bool  # whether a random part was hidden

    @classmethod
    def of(cls, scores: np.ndarray, seen: Csr, hidden: Csr, *, at_random: bool) -> RankCalibration:
        """Fit to the scores of some users, (b, n_items), of whose items some were shown and others hidden."""
        starts, middles = _bins(scores.shape[1])
        hits = np.zeros((len(scores), middles.size))

        def count(user: int) -> None:
            taken = hidden.indices[slice(*hidden.indptr[user : user + 2])]
            ranks = ranks_of(scores[user], seen.indices[slice(*seen.indptr[user : user + 2])], taken)
            hits[user] = np.histogram(ranks, starts)[0]

        in_workers(count, range(len(scores)), work=scores.size)
        n_own = np.diff(seen.indptr)
        trials = np.clip(np.minimum(starts[1:], (scores.shape[1] - n_own + 1)[:, None]) - starts[:-1], 0, None)
        whole = _log_whole(n_own, _SHOWN**2 if at_random else 1.0)
        terms, used = _terms(np.log(middles), whole[:, None]), trials > 0
        chance = (_SHOWN**2, _SHOWN * _HIDDEN) if at_random else (0.0, 1.0)
        coefficients = _fitted(terms[used], hits[used], trials[used], *chance)
        return cls(coefficients, np.array([whole.min(), whole.max()]), at_random)

    @classmethod
    def of_array(cls, values: np.ndarray) -> RankCalibration:
        """The calibration of a model file; `ValueError` for an array that is none."""
        if values.shape != (10,) or not np.isfinite(values).all():
            raise ValueError(f"expected 10 finite numbers of a calibration, found shape {values.shape}")
        return cls(values[:7], values[7:9], bool(values[9]))

    def to_array(self) -> np.ndarray:
        """The array that a model file holds."""
        return np.array([*self.coefficients, *self.range, self.at_random], dtype=np.float64)

    def of_scores(self, scores: np.ndarray, seen: Csr) -> np.ndarray:
        """The probabilities of all items for some users, (b, n_items), by their scores and the items they have."""
        sizes, place = np.unique(np.diff(seen.indptr), return_inverse=True)
        _, middles = _bins(scores.shape[1])
        by_rank, found = self._of_bins(sizes, scores.shape[1]), np.empty(scores.shape)
        for user, of_user in enumerate(scores):
            own = seen.indices[slice(*seen.indptr[user : user + 2])]
            found[user] = np.interp(ranks_of(of_user, own), middles, by_rank[place[user]])
        return found

    def _of_bins(self, n_own: np.ndarray, n_items: int) -> np.ndarray:
        """The probability at each bin of ranks for numbers of a user's items, not ascending, (b, number of bins)."""
        starts, middles = _bins(n_items)
        shown, hidden = (_SHOWN, _HIDDEN) if self.at_random else (0.0, 1.0)
        whole = np.clip(_log_whole(n_own, _SHOWN if self.at_random else 1.0), *self.range)[:, None]
        chances = before = np.zeros((n_own.size, middles.size))
        for _ in range(_ROUNDS):
            taken = expit(_terms(np.log(middles + shown * before), whole) @ self.coefficients)
            chances = hidden * taken / (1 - shown * taken)
            sums = chances * np.diff(starts)
            before = np.cumsum(sums, axis=1) - (sums + chances) / 2
        return np.minimum.accumulate(chances, axis=1)


def _bins(n_items: int) -> tuple[np.ndarray, np.ndarray]:
    """Bins of ranks: the first rank of each and an end, and the middle of each."""
    starts = np.unique(np.geomspace(1, n_items + 1, min(_BINS, n_items) + 1).round().astype(np.int64))
    return starts, (starts[:-1] + starts[1:] - 1) / 2


def ranks_of(scores: np.ndarray, own: np.ndarray, items: np.ndarray | slice = slice(None)) -> np.ndarray:
    """The ranks of items among those that a user has not, by the scores of all: 1 and how many have higher ones."""
    others = np.sort(-np.delete(scores, own))
    return np.minimum(np.searchsorted(others, -scores[items]) + 1, scores.size)


def _log_whole(n_own: np.ndarray, shown: float) -> np.ndarray:
    """The log of the number of all items that users take, of whom a share is shown."""
    return np.log(np.maximum(n_own, 1) / shown)


def _terms(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x, y = np.broadcast_arrays(x, y)
    return np.stack([np.ones(x.shape), x, y, x * x, x * y, y * y, np.exp(x - y)], axis=-1)


def _fitted(terms: np.ndarray, hits: np.ndarray, trials: np.ndarray, shown: float, hidden: float) -> np.ndarray:
    """The coefficients of the largest likelihood of hits among trials, the terms drawn to 0 by a little."""
    from scipy.optimize import minimize

    # The ones are the first column: they keep their unit, and take in the means of the others.
    means, scales = terms.mean(axis=0), np.maximum(terms.std(axis=0), 1e-9)
    means[0], scales[0] = 0.0, 1.0
    unit = (terms - means) / scales

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        taken = expit(unit @ weights)
        chances = np.clip(hidden * taken / (1 - shown * taken), 1e-12, 1 - 1e-12)
        slopes = hidden * taken * (1 - taken) / (1 - shown * taken) ** 2
        errors = (trials - hits) / (1 - chances) - hits / chances
        total = -(hits * np.log(chances) + (trials - hits) * np.log1p(-chances)).sum()
        return total + 0.5 * (weights @ weights), unit.T @ (errors * slopes) + weights

    start = np.zeros(terms.shape[1])
    weights = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 1000}).x / scales
    weights[0] -= weights @ means
    return weights
