"""Where random numbers stand, kept in a checkpoint and taken from one."""

import json

import numpy as np
import pytest

from air_recsys.exceptions import CheckpointError
from air_recsys.training.checkpointer import generator_at, position_of


def plain(state):
    return json.loads(json.dumps(state, default=lambda value: value.tolist()))


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_random_numbers_go_on(kind):
    rng = np.random.Generator(getattr(np.random, kind)(3))
    rng.random(5)
    again = generator_at(plain(position_of(rng)))
    assert again.random(5).tolist() == rng.random(5).tolist()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda state: [],
        lambda state: state | {"bit_generator": "Dice"},
        lambda state: {"bit_generator": "PCG64"},
        lambda state: state | {"state": {"state": 10**400, "inc": 1}},
        lambda state: state | {"state": {"state": -1, "inc": 1}},
        lambda state: state | {"uinteger": 10**30},
        lambda state: state | {"has_uint32": "many"},
    ],
    ids=["a list", "another kind", "no state", "too large", "negative", "a large rest", "a word"],
)
def test_a_position_that_is_none_is_refused(spoil):
    state = plain(position_of(np.random.default_rng(0)))
    with pytest.raises(CheckpointError, match="the checkpoint holds no position of a random generator"):
        generator_at(spoil(state))
