"""The emulated device finds mistakes that are made on purpose, and computes what the CPU computes."""

import emulation
import numpy as np
import pytest
import torch
from gpu_cases import needs_emulation, needs_gpu

pytestmark = [*needs_gpu, needs_emulation]

CUDA = torch.device("cuda")


def test_numbers_are_those_of_the_cpu():
    matrix = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    found = (matrix.to(CUDA) @ matrix.to(CUDA).T).softmax(1)
    assert found.is_cuda
    assert found.device == torch.device("cuda", 0)
    torch.testing.assert_close(found.cpu(), (matrix @ matrix.T).softmax(1))


@pytest.mark.parametrize(
    "mistake",
    [
        lambda here, there: here + there,
        lambda here, there: there @ here,
        lambda here, there: torch.cat([here, there]),
        lambda here, there: there + there.to("cuda:1"),
        lambda here, there: here.index_select(0, torch.tensor([0], device=CUDA)),
        lambda here, there: there.clone().copy_(here) + here,
    ],
)
def test_operands_on_two_devices(mistake):
    here = torch.ones(3, 3)
    with pytest.raises(RuntimeError, match="same device"):
        mistake(here, here.to(CUDA))


def test_numbers_and_indices_of_the_host_are_allowed():
    there = torch.arange(4.0, device=CUDA)
    assert (there * torch.tensor(2.0)).sum().item() == 12
    assert there[torch.tensor([1, 3])].tolist() == [1, 3]


def test_numpy_of_a_tensor_on_the_device():
    with pytest.raises(TypeError, match="can't convert"):
        np.asarray(torch.ones(3, device=CUDA))


def test_a_generator_of_another_device_and_its_state():
    here, there = torch.Generator(), torch.Generator(CUDA)
    torch.randn(3, generator=there, device=CUDA)
    with pytest.raises(RuntimeError, match="generator"):
        torch.randn(3, generator=here, device=CUDA)
    with pytest.raises(RuntimeError, match="wrong size"):
        here.set_state(there.get_state())


@pytest.mark.parametrize(
    ("wait", "n"),
    [
        (lambda there: there.sum(), 0),
        (lambda there: there.sum().item(), 1),
        (lambda there: bool((there > 0).all()), 1),
        (lambda there: there[there > 0], 1),
        (lambda there: there.cpu(), 1),
        (lambda there: there.copy_(torch.ones(3)), 1),
        (lambda there: torch.cuda.synchronize(), 1),
    ],
)
def test_waits_are_counted(wait, n):
    there = torch.ones(3, device=CUDA)
    with emulation.watched() as seen:
        wait(there)
    assert sum(seen.waits.values()) == n


def test_memory_is_counted_and_ends():
    before = torch.cuda.memory_allocated()
    held = torch.ones(1000, device=CUDA)
    assert torch.cuda.memory_allocated() - before == 4000
    del held
    assert torch.cuda.memory_allocated() == before
    with pytest.raises(torch.OutOfMemoryError, match="emulated"):
        _beyond_the_memory()


def _beyond_the_memory():
    from emulation.machine import machine

    before, machine().memory = machine().memory, machine().live + 100
    try:
        return torch.ones(1000, device=CUDA)
    finally:
        machine().memory = before


def test_there_are_two_devices_and_no_third():
    assert torch.cuda.device_count() == 2
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.ones(3, device="cuda:2")
