"""Division of ratings into training and test ratings, as boolean masks in the order of the ratings.

A parameter outside its range is a `ParameterError`, and data that cannot be divided so are a `DataError`. An int as
`random_state` gives the same split every time.

>>> from air_recsys import Interactions
>>> from air_recsys.splits import random_holdout
>>> data = Interactions.from_dense([[5, 3, 4], [1, 2, 4]])
>>> train, test = random_holdout(data, test_fraction=0.5)
>>> data.select(train).n_ratings, data.select(test).n_ratings
(3, 3)
"""

from air_recsys.data.splits.base import Split, StrongSplit, predefined
from air_recsys.data.splits.cold import interaction_folds
from air_recsys.data.splits.random import k_core, k_fold, random_holdout, user_holdout
from air_recsys.data.splits.temporal import global_time, leave_last, strong_generalisation

__all__ = [
    "Split",
    "StrongSplit",
    "global_time",
    "interaction_folds",
    "k_core",
    "k_fold",
    "leave_last",
    "predefined",
    "random_holdout",
    "strong_generalisation",
    "user_holdout",
]
