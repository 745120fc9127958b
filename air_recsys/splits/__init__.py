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

from air_recsys.data.splits.base import Split, StrongSplit, predefined, predefined_folds
from air_recsys.data.splits.cold import cold_both_folds, cold_item_folds, cold_user_folds
from air_recsys.data.splits.random import k_core, k_fold, random_holdout, repeated_k_fold, user_holdout
from air_recsys.data.splits.temporal import global_time, leave_last, strong_generalisation

__all__ = [
    "Split",
    "StrongSplit",
    "cold_both_folds",
    "cold_item_folds",
    "cold_user_folds",
    "global_time",
    "k_core",
    "k_fold",
    "leave_last",
    "predefined",
    "predefined_folds",
    "random_holdout",
    "repeated_k_fold",
    "strong_generalisation",
    "user_holdout",
]
