"""Steps that are captured are the steps that are not, or are not captured, with a message; skipped without a GPU."""

import logging

import emulation
import pytest
import torch
from gpu_cases import needs_emulation, needs_gpu

from air_recsys.nn.captured import CapturedStep

pytestmark = needs_gpu
CUDA = torch.device("cuda")
N_STEPS = 8


def start():
    return [torch.linspace(-1, 1, 6, device=CUDA), torch.ones(6, device=CUDA)]


def steps(step, captured=None):
    """All states, of which the first is the start."""
    states = [start()]
    for _ in range(N_STEPS):
        states.append(step(states[-1]) if captured is None else captured(step, states[-1]))
    return [[each.cpu() for each in state] for state in states]


def rotation(state):
    one, two = state
    return [torch.addcmul(one, two, one.sin(), value=0.1), two - 0.1 * one]


def drawing(generator):
    def step(state):
        one, two = state
        return [
            one + torch.randn(6, generator=generator, device=CUDA),
            torch.rand(6, generator=generator, device=CUDA) * two,
        ]

    return step


def generator():
    return torch.Generator(CUDA).manual_seed(1)


@pytest.mark.parametrize("step", [rotation, lambda state: [state[0] + 1, state[1]]])
def test_a_captured_step_is_the_step_and_leaves_earlier_states(step, caplog):
    found, expected = steps(step, CapturedStep(CUDA)), steps(step)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)
    assert not caplog.records


def test_a_captured_step_draws_the_same_numbers(caplog):
    one, other = generator(), generator()
    found, expected = steps(drawing(one), CapturedStep(CUDA, one)), steps(drawing(other))
    for pair in zip(found, expected, strict=True):
        torch.testing.assert_close(*pair)
    assert torch.equal(one.get_state(), other.get_state())
    assert not caplog.records


@needs_emulation
def test_a_replay_is_one_launch():
    captured, state = CapturedStep(CUDA), start()
    for _ in range(N_STEPS):
        state = captured(rotation, state)
    with emulation.launched() as launches:
        captured(rotation, state)
    assert launches.total() == 1 + 2 * len(state)  # and what goes into and comes out of it


MISTAKES = {
    "a number that the host reads": lambda state: [state[0] * state[1].sum().item(), state[1]],
    "a condition": lambda state: [state[0] + 1, state[1]] if bool((state[1] > 0).all()) else state,
    "a list": lambda state: [state[0] * len(state[1].tolist()), state[1]],
    "a copy to the host": lambda state: [state[0] + state[1].cpu().sum().item(), state[1]],
    "positions": lambda state: [state[0] + len((state[1] > 0).nonzero()), state[1]],
    "a mask": lambda state: [state[0] + state[1][state[1] > 0].sum(), state[1]],
    "a copy from the host": lambda state: [state[0] + torch.ones(6).to(CUDA), state[1]],
}


@pytest.mark.parametrize("step", MISTAKES.values(), ids=MISTAKES)
def test_a_step_that_waits_for_the_device_is_not_captured_and_says_so_once(step, caplog):
    with caplog.at_level(logging.WARNING, "air_recsys"):
        found = steps(step, CapturedStep(CUDA))
    for one, other in zip(found, steps(step), strict=True):
        torch.testing.assert_close(one, other)
    assert [record.getMessage().split(": ")[0] for record in caplog.records] == [
        "steps on cuda:0 are launched kernel by kernel"
    ]


def test_a_step_that_draws_from_another_generator_is_not_captured_and_both_draw_on(caplog):
    mine, other = generator(), generator()
    found, expected = steps(drawing(mine), CapturedStep(CUDA, generator())), steps(drawing(other))
    for one, two in zip(found[:3], expected[:3], strict=True):
        torch.testing.assert_close(one, two)
    assert torch.randn(3, generator=mine, device=CUDA).isfinite().all()
    assert len(caplog.records) <= 1  # later versions of torch register generators themselves


def test_a_step_that_reads_another_tensor_every_time_is_found_out_by_the_second_replay(caplog):
    class Stale:
        """The values of the step before, in a tensor that Python replaces."""

        def __init__(self):
            self.last = torch.zeros(6, device=CUDA)

        def __call__(self, state):
            found = [state[0] + self.last, state[1]]
            self.last = state[0] * 2
            return found

    steps(Stale(), CapturedStep(CUDA))
    assert "are wrong" in caplog.text


def test_states_of_other_shapes_are_captured_anew():
    captured = CapturedStep(CUDA)
    state = start()
    for _ in range(N_STEPS):
        state = captured(rotation, state)
    wider = [torch.cat([each, each]) for each in state]
    for _ in range(N_STEPS):
        expected = rotation(wider)
        wider = captured(rotation, wider)
        torch.testing.assert_close([each.cpu() for each in wider], [each.cpu() for each in expected])
