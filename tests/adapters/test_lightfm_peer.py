"""LightFM beside ours: what it is given and what becomes of its scores, with a stand-in where it is not installed."""

import sys
from types import ModuleType

import numpy as np
import pytest

from air_recsys import Interactions
from air_recsys.adapters.lightfm_peer import LightFMLists


class Counting:
    """A stand-in for LightFM that scores items by their likes."""

    def __init__(self, loss, random_state):
        self.loss, self.seed = loss, random_state

    def fit(self, interactions, epochs, num_threads):
        assert interactions.dtype == np.float32
        assert (interactions.data == 1).all()
        self.counts = interactions.toarray().sum(axis=0)

    def predict(self, user, items):
        assert isinstance(user, int)
        return self.counts[items]


@pytest.fixture
def stand_in(monkeypatch):
    module = ModuleType("lightfm")
    module.LightFM = Counting  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lightfm", module)


@pytest.fixture
def data():
    return Interactions.from_dense([[5, 2, np.nan, np.nan], [np.nan, 3, 1, np.nan], [np.nan, 4, 2, 1]])


@pytest.mark.usefixtures("stand_in")
def test_lists_hold_the_best_unseen_items(data):
    model = LightFMLists("warp", random_state=0).fit(data)
    assert model.lists(np.array([1, 0]), 2).tolist() == [[0, 3], [2, 3]]
