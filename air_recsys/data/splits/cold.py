"""Folds of drugs and targets: pairs, drugs, targets, or both are hidden, in groups, or what came later."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.data.splits.base import Split, as_random_state, split_off
from air_recsys.exceptions import DataError
from air_recsys.storage.validation import RandomState, check_choice, check_integer

SETTINGS = ("cvs1", "cvs2", "cvs3", "cvs4")
_BLOCK_FOLDS = 3


def interaction_folds(
    interactions: Interactions,
    setting: str = "cvs1",
    n_splits: int = 10,
    random_state: RandomState = 0,
    *,
    drug_groups: Mapping[Any, Any] | pd.Series | None = None,
    target_groups: Mapping[Any, Any] | pd.Series | None = None,
) -> Iterator[Split]:
    """Yield splits that hide a fold of the pairs (cvs1), drugs (cvs2), targets (cvs3), or of both (cvs4).

    Drugs are the users, and targets the items, of ratings too. The folds are those of Liu et al., 2016, and of their
    program PyDTI with the same int seed: equal steps through one permutation, the last fold takes the rest.

    Parameters
    ----------
    interactions : Interactions
        Recorded pairs, zeros included, affinities, or ratings; for "cvs1" sorted by drug and then target.
    setting : {"cvs1", "cvs2", "cvs3", "cvs4"}
        In "cvs4" the test pairs are those of a hidden drug with a hidden target; pairs of one of them are in neither
        part. A block without interactions is left out, as no measure is defined on it.
    n_splits : int
        Number of folds. In "cvs4" drugs and targets always have three folds each, as in Pahikkala et al., 2015: ten by
        ten would leave most blocks without interactions.
    random_state : int, RandomState, Generator or None
    drug_groups, target_groups : mapping or Series, optional
        The group of each drug or target: hidden ones are whole groups, such as of `scaffolds` and
        `similarity_clusters`. Those without a group are one each.

    Raises
    ------
    ParameterError
        For an unknown setting, or fewer than two folds.
    DataError
        If pairs are out of order, where these are hidden, or if there is less than one drug, target or pair per fold.

    Examples
    --------
    >>> data = Interactions.from_dense([[1, 0], [0, 1]])
    >>> [split.test.tolist() for split in interaction_folds(data, "cvs2", n_splits=2)]
    [[False, False, True, True], [True, True, False, False]]
    """
    check_choice("setting", setting, SETTINGS)
    check_integer("n_splits", n_splits, minimum=2)
    m, n, size = interactions.n_users, interactions.n_items, interactions.n_ratings
    if setting == "cvs1" and (np.diff(interactions.pair_index) <= 0).any():
        raise DataError("expected pairs sorted by drug and target, found another order")
    rng = as_random_state(random_state)
    drug, target = interactions.user_index, interactions.item_index
    m, drug = in_groups(interactions.user_ids, drug, drug_groups)
    n, target = in_groups(interactions.item_ids, target, target_groups)
    if setting == "cvs4":
        return _blocks(interactions, _fold_of(m, _BLOCK_FOLDS, rng)[drug], _fold_of(n, _BLOCK_FOLDS, rng)[target])
    size, position = {"cvs1": (size, np.arange(size)), "cvs2": (m, drug), "cvs3": (n, target)}[setting]
    fold = _fold_of(size, n_splits, rng)[position]
    return (split_off(fold == number) for number in range(n_splits))


def in_groups(ids: np.ndarray, places: np.ndarray, groups: Any) -> tuple[int, np.ndarray]:
    """Return the number of groups of a side, and that of each pair; without groups each id is one."""
    if groups is None:
        return len(ids), places
    given = dict(groups)
    names = [("group", str(given[own])) if own in given else ("alone", str(own)) for own in ids.tolist()]
    numbers = pd.factorize(pd.MultiIndex.from_tuples(names))[0]
    return int(numbers.max()) + 1, numbers[places]


def _fold_of(size: int, n_splits: int, rng: np.random.RandomState) -> np.ndarray:
    if size < n_splits:
        raise DataError(f"expected at least one drug, target or pair a fold, found {size} for {n_splits} folds")
    order = rng.permutation(size)
    fold = np.empty(size, dtype=np.int64)
    fold[order] = np.minimum(np.arange(size) // (size // n_splits), n_splits - 1)
    return fold


def _blocks(interactions: Interactions, drug_fold: np.ndarray, target_fold: np.ndarray) -> Iterator[Split]:
    for row, column in itertools.product(range(_BLOCK_FOLDS), repeat=2):
        test = (drug_fold == row) & (target_fold == column)
        train = (drug_fold != row) & (target_fold != column)
        if interactions.ratings[test].any() and interactions.ratings[train].any():
            yield Split(train, test)


def split_in_time(times: np.ndarray, share: float, random_state: RandomState = 0) -> Split:
    """Return the split that hides about a share of the pairs, the latest ones; those of one year stay together.

    Pairs without a time (NaN), as zeros beside interactions with one, get those of others by chance.
    """
    lacking = np.isnan(times)
    drawn = as_random_state(random_state).choice(times[~lacking], np.count_nonzero(lacking))
    times = times.copy()
    times[lacking] = drawn
    moments, counts = np.unique(times, return_counts=True)
    if moments.size < 2:
        raise DataError(f"expected pairs of different times, found {moments[0]:g} for all")
    held = 1 - np.cumsum(counts[:-1]) / times.size  # out, from each moment but the first on
    return split_off(times >= moments[1 + np.argmin(np.abs(held - share))])
