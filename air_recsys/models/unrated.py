"""Users and items without ratings: what their features say beside the prior, as a part of the scores of a posterior.

A posterior gives them the factors that their features say (`air_recsys.nn.posterior.unseen`). What these factors would
leave of the known ratings, if no row of that side had any, is a process of each row of the other side over features
(`air_recsys.nn.row_kernels`): of users for items without ratings, of items for users without ratings. Its strengths
are those with the lowest error on ratings that are left out, and without a sure gain there nothing is added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from air_recsys.data.features import Features
from air_recsys.models.further import looked_at
from air_recsys.nn.leave_one_out import LeftOut, weighed
from air_recsys.nn.row_kernels import wave_features

Pairs = tuple[np.ndarray, np.ndarray]
Influence = Callable[[int, np.ndarray, np.ndarray], np.ndarray]
_ROWS, _MOST_OF_ROW = 100, 50  # whose ratings are left out
_LEAST_GAIN = 1.0  # standard errors


class Unrated(NamedTuple):
    """The processes over the features of a side."""

    alike: float  # a
    common: float  # b
    width: float  # l, the mean squared distance of the features
    reach: float  # what deviations of their ratings are multiplied with

    def inputs(self, known: Features | None, rows: Any = slice(None)) -> np.ndarray:
        """Features of all rows, or of some, whose products are the covariance of the processes, (n, 129)."""
        assert known is not None
        waves = wave_features(known.values[rows].astype(np.float64), self.width)
        return np.column_stack([np.sqrt(self.alike) * waves, np.full(len(waves), np.sqrt(self.common))])

    @classmethod
    def of_sides(cls, content: Any) -> tuple[Unrated | None, Unrated | None]:
        """Those of users and of items, as JSON holds them; raise `ValueError` for other numbers."""
        users, items = (None if each is None else cls._make(map(float, each)) for each in content)
        for each in (users, items):
            if each and not (min(each) >= 0 and max(each) < np.inf and min(each.width, each.reach) > 0):
                raise ValueError(f"expected strengths from 0 on, and a width and reach above 0, found {content}")
        return users, items


def process_of_unrated(
    pairs: Pairs, residuals: np.ndarray, weights: np.ndarray | None, known: Features, influence: Influence
) -> Unrated | None:
    """The processes that predict ratings which are left out of those of some rows; None where they do not.

    `residuals` are as if no column had ratings, the features those of columns, and `influence` takes a row, columns
    (k,) and positions (k,) among the ratings, and returns how the ratings there influence the scores there, (k, k).
    """
    rows, columns = pairs
    width = 2 * float(known.values[np.unique(columns)].var(axis=0, dtype=np.float64).sum())
    if not width > 0:
        return None
    unit, left_out = Unrated(1.0, 1.0, width, 1.0), []
    order = np.random.default_rng(0).random(rows.size)
    for row, places in looked_at(rows, order, weights, _ROWS, _MOST_OF_ROW):
        inputs = unit.inputs(known, columns[places])[:, :-1]
        kernels = np.stack([inputs @ inputs.T, np.ones((places.size, places.size))])
        base = np.eye(places.size) if weights is None else np.diag(1 / weights[places])
        left_out.append(LeftOut(base, kernels, influence(row, columns[places], places), residuals[places]))
    found = weighed(left_out)
    if found.gain < _LEAST_GAIN:
        return None
    errors = [row.alone for row in left_out], [row.errors(found.weights)[0] for row in left_out]
    without, with_process = (float(np.square(np.concatenate(each)).mean()) for each in errors)
    alike, common = map(float, found.weights)
    return Unrated(alike, common, width, float(np.sqrt(with_process / without)))
