"""Where generators stand, on one kind of device and on another."""

from __future__ import annotations

import pytest
import torch

from air_recsys.nn.posterior.state import load_position, position


def numbers(generator):
    return torch.rand(5, generator=generator).tolist()


def test_a_generator_goes_on_where_another_stood():
    first, second = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
    numbers(first)
    load_position(second, position(first))
    assert numbers(second) == numbers(first)


def test_on_another_kind_of_device_the_course_is_new_but_always_the_same():
    kept = position(torch.Generator().manual_seed(1)) | {"device": "cuda"}
    later = kept | {"state": position(torch.Generator().manual_seed(2))["state"]}
    drawn = []
    for state in (kept, kept, later):
        generator = torch.Generator().manual_seed(7)
        load_position(generator, state)
        drawn.append(numbers(generator))
    assert drawn[0] == drawn[1]
    assert len({tuple(it) for it in [*drawn[1:], numbers(torch.Generator().manual_seed(1))]}) == 3


@pytest.mark.parametrize("state", [None, 3, torch.zeros(2)])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(ValueError, match="expected the state of a generator as bytes"):
        load_position(torch.Generator(), {"device": "cpu", "state": state})
