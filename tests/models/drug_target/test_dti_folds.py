"""The four settings hide what they say, in the folds of the literature."""

from __future__ import annotations

import numpy as np
import pytest

from air_recsys.data.interactions import Interactions
from air_recsys.dti import SETTINGS, interaction_folds
from air_recsys.exceptions import DataError, ParameterError


@pytest.fixture
def interactions() -> Interactions:
    return Interactions.from_dense((np.random.default_rng(0).random((23, 17)) < 0.3).astype(float))


def reference(size: int, seed: int, number: int = 10) -> list[set[int]]:
    """Positions of the folds as PyDTI's functions.py divides them."""
    index = np.random.RandomState(seed).permutation(size)
    step = index.size // number
    return [set(index[i * step : (i + 1) * step if i < number - 1 else None].tolist()) for i in range(number)]


@pytest.mark.parametrize(("setting", "size"), [("cvs1", 23 * 17), ("cvs2", 23), ("cvs3", 17)])
def test_the_folds_are_those_of_pydti(interactions: Interactions, setting: str, size: int) -> None:
    position = {"cvs1": np.arange(23 * 17), "cvs2": interactions.user_index, "cvs3": interactions.item_index}[setting]
    found = [set(position[split.test].tolist()) for split in interaction_folds(interactions, setting, 10, 22)]
    assert found == reference(size, 22)


@pytest.mark.parametrize("setting", ["cvs1", "cvs2", "cvs3"])
def test_every_pair_is_tested_once(interactions: Interactions, setting: str) -> None:
    splits = list(interaction_folds(interactions, setting))
    np.testing.assert_array_equal(np.sum([split.test for split in splits], axis=0), 1)
    assert all((split.train != split.test).all() for split in splits)


def test_hidden_drugs_and_targets_are_nowhere_in_training(interactions: Interactions) -> None:
    for setting, sides in (("cvs2", ["user_index"]), ("cvs3", ["item_index"]), ("cvs4", ["user_index", "item_index"])):
        for split in interaction_folds(interactions, setting):
            for side in sides:
                index = getattr(interactions, side)
                assert not np.intersect1d(index[split.train], index[split.test]).size


def test_blocks_have_interactions(interactions: Interactions) -> None:
    splits = list(interaction_folds(interactions, "cvs4"))
    assert len(splits) <= 9
    assert all(interactions.ratings[split.test].any() for split in splits)


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_seed_decides(interactions: Interactions, setting: str) -> None:
    first, again, other = (next(interaction_folds(interactions, setting, 10, seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.test, again.test)
    assert (first.test != other.test).any()


def test_what_cannot_be_divided_is_refused(interactions: Interactions) -> None:
    with pytest.raises(ParameterError, match="setting must be one of"):
        interaction_folds(interactions, "cvs5")
    with pytest.raises(DataError, match="another order"):
        interaction_folds(reverse(interactions))
    with pytest.raises(DataError, match="expected recorded zeros"):
        interaction_folds(interactions.select(interactions.ratings == 1))
    with pytest.raises(DataError, match="at least one drug, target or pair a fold"):
        interaction_folds(interactions, "cvs3", n_splits=18)


def test_pairs_may_be_missing(interactions: Interactions) -> None:
    some = interactions.select(np.arange(interactions.n_ratings) % 3 > 0)
    for setting in ("cvs1", "cvs2", "cvs3"):
        splits = list(interaction_folds(some, setting))
        np.testing.assert_array_equal(np.sum([split.test for split in splits], axis=0), 1)


def reverse(data: Interactions) -> Interactions:
    order = slice(None, None, -1)
    return Interactions(
        data.user_index[order], data.item_index[order], data.ratings[order], data.user_ids, data.item_ids
    )
