import numpy as np
import pytest

from air_recsys.data.interactions import Interactions
from benchmarks.accuracy.peers.sasrec import SASRec, latest_items


@pytest.fixture
def cycles() -> Interactions:
    """Users who go through 12 items in a circle, from places of their own."""
    users, steps = np.repeat(np.arange(96), 7), np.tile(np.arange(7), 96)
    items = (users + steps) % 12
    return Interactions(users, items, np.ones(users.size), range(96), range(12), timestamps=steps)


@pytest.mark.parametrize("softmax", [False, True])
def test_what_comes_next_is_learned_from_the_order(cycles: Interactions, softmax: bool) -> None:
    model = SASRec(6, softmax=softmax, epochs=120).fit(cycles)
    users = np.arange(96)
    assert (model.lists(users, 1)[:, 0] == (users + 7) % 12).mean() > 0.9
    assert set(model.settings_) == {"dropout", "epochs"}


def test_the_same_seed_gives_the_same_lists(cycles: Interactions) -> None:
    one, other = (SASRec(6, epochs=5).fit(cycles).lists(np.arange(96), 3) for _ in range(2))
    assert (one == other).all()


def test_the_latest_items_stand_at_the_right(cycles: Interactions) -> None:
    assert latest_items(cycles, 3)[1].tolist() == [5, 6, 7]
    assert latest_items(cycles, 9)[0].tolist() == [-1, -1, 0, 1, 2, 3, 4, 5, 6]
