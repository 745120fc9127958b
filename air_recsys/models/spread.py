r"""The spread of ratings around the scores of a model without a posterior, from its errors on hidden ratings.

A tenth of the training ratings is hidden at random, and the model trained again on the others, with the settings that
it has. With the numbers n of ratings of user and item, and the score m as a share of the rating scale, the errors have
the standard deviation

.. math:: s = \exp(b_0 + b_1 \log(1 + n_u) + b_2 \log(1 + n_i) + b_3 m + b_4 m^2)

whose coefficients maximise the likelihood of normal errors, with a normal prior. An interval of probability p reaches
q s on both sides of the score, q being the p-quantile of \|e\| / s among hidden ratings with deviations near s: it
holds for errors of any distribution. The probability that a rating is above a value rises with the score: it is the
isotonic regression of the hidden ratings that are.

Sources: Lei et al., Distribution-Free Predictive Inference for Regression, JASA 113, 2018 (errors on hidden data, by
their scale); Vovk, Conditional Validity of Inductive Conformal Predictors, ACML 2012 (quantiles within classes);
Zadrozny, Elkan, Transforming Classifier Scores into Accurate Multiclass Probability Estimates, KDD 2002 (isotonic).
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from air_recsys.exceptions import DataError

HIDDEN = 0.1
_FEWEST = 100  # ratings, of which a tenth tells something
_MOST = 5_000  # that are kept
_SMALLEST = 1e-6  # root of the mean squared error that is told apart from none, as a share of the scale
_CONSTANT = 1e-9  # deviation of a fact that is the same for all
_CLASSES, _OF_CLASS = 10, 100  # at most so many classes of deviations, each with at least so many hidden ratings


def check_measurable(n_ratings: int) -> None:
    """Raise `DataError` where a tenth of the ratings tells nothing."""
    if n_ratings < _FEWEST:
        raise DataError(f"expected {_FEWEST} ratings, to measure deviations on a tenth of them, found {n_ratings}")


def facts_of(user_counts: np.ndarray, item_counts: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """What the deviation of pairs depends on, (n, 5): 1, both numbers of ratings, and the score with its square."""
    ones = np.ones(shares.size)
    return np.column_stack([ones, np.log1p(user_counts), np.log1p(item_counts), shares, shares**2])


class Spread(NamedTuple):
    """Hidden ratings, and how their deviations follow from facts.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> facts = facts_of(rng.integers(1, 50, 2000), rng.integers(1, 50, 2000), rng.random(2000))
    >>> errors = rng.laplace(size=2000) * np.exp(-0.5 * facts[:, 1])  # smaller with more ratings of the user
    >>> spread = Spread.of(facts, np.zeros(2000), errors, 1.0)
    >>> float(spread.coefficients[1].round(1))
    -0.5
    >>> float(np.mean(abs(errors) <= spread.reach(spread.deviations(facts), 0.9)).round(2))
    0.9
    """

    coefficients: np.ndarray  # (5,), b
    facts: np.ndarray  # (n, 5), of the hidden ratings
    scores: np.ndarray  # (n,), without them in the training
    ratings: np.ndarray  # (n,)

    @classmethod
    def of(cls, facts: np.ndarray, scores: np.ndarray, ratings: np.ndarray, scale: float) -> Self:
        """The spread of hidden ratings around scores; `scale` is the width of the rating scale."""
        some = np.unique(np.linspace(0, ratings.size - 1, min(ratings.size, _MOST)).astype(np.int64))
        facts, scores, ratings = facts[some], scores[some], ratings[some]
        squares = (ratings - scores) ** 2 + (_SMALLEST * scale) ** 2
        return cls(_coefficients(facts, squares), facts, scores, ratings)

    def check(self) -> None:
        """Raise `ValueError` where a file holds anything else."""
        n = self.ratings.size
        if [each.shape for each in self] != [(5,), (n, 5), (n,), (n,)] or not n:
            raise ValueError(f"expected hidden ratings of one number, found shapes {[each.shape for each in self]}")
        if not all(each.dtype == np.float64 and np.isfinite(each).all() for each in self):
            raise ValueError("expected finite numbers of hidden ratings, found others")

    def deviations(self, facts: np.ndarray) -> np.ndarray:
        """The standard deviation of new ratings, (n,); facts beyond those of the hidden ones count as their ends."""
        return np.exp(facts.clip(self.facts.min(axis=0), self.facts.max(axis=0)) @ self.coefficients)

    def reach(self, deviations: np.ndarray, level: float) -> np.ndarray:
        """Half the width of intervals of a probability, for pairs with these deviations."""
        own = self.deviations(self.facts)
        ratios = (np.abs(self.ratings - self.scores) / own)[np.argsort(own, kind="stable")]
        classes = np.array_split(ratios, max(1, min(_CLASSES, ratios.size // _OF_CLASS)))
        quantiles = np.array([_quantile(each, level) for each in classes])
        starts = np.sort(own)[np.cumsum([each.size for each in classes[:-1]], dtype=np.int64)]
        return quantiles[np.searchsorted(starts, deviations, side="right")] * deviations

    def probabilities(self, scores: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The probability of each value, ascending, for pairs with these scores, (n, k): rows add up to 1."""
        from scipy.optimize import isotonic_regression

        least = 1 / (self.ratings.size + 2)  # of no hidden rating alone anything is sure
        knots, places, numbers = np.unique(self.scores, return_inverse=True, return_counts=True)
        above = [np.ones(scores.size)]
        for value in values[:-1]:
            shares = np.bincount(places, self.ratings > value) / numbers
            rises = isotonic_regression(shares, weights=numbers).x.clip(least, 1 - least)
            above.append(np.interp(scores, knots, rises))
        return -np.diff(np.column_stack([*above, np.zeros(scores.size)]), axis=1).clip(max=0.0)


def _quantile(ratios: np.ndarray, level: float) -> float:
    """The ratio that a new one stays below with a probability; the largest where they are too few to tell."""
    rank = min(int(np.ceil(level * (ratios.size + 1))), ratios.size)
    return float(np.partition(ratios, rank - 1)[rank - 1])


def _coefficients(facts: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """The coefficients b that maximise the likelihood of squared errors, whose variances are exp(2 b)."""
    from sklearn.linear_model import GammaRegressor  # the likelihood of normal errors is that of their squares

    inputs, level = facts[:, 1:], squares.mean()
    middle, width = inputs.mean(axis=0), inputs.std(axis=0)
    width = np.where(width > _CONSTANT, width, 1.0)
    found = GammaRegressor(alpha=0.5 / squares.size, max_iter=10_000, tol=1e-8)
    found.fit((inputs - middle) / width, squares / level)
    slopes = found.coef_ / width / 2
    return np.array([(found.intercept_ + np.log(level)) / 2 - slopes @ middle, *slopes])
