"""The emulated device finds mistakes that are made on purpose, and computes what the CPU computes."""

import emulation
import numpy as np
import pytest
import torch
from gpu_cases import needs_emulation, needs_gpu

pytestmark = [*needs_gpu, needs_emulation]

CUDA = torch.device("cuda")


def test_numbers_are_those_of_the_cpu_and_those_of_the_host_are_allowed():
    matrix = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    found = (matrix.to(CUDA) @ matrix.to(CUDA).T).softmax(1)
    assert (found.is_cuda, found.device) == (True, torch.device("cuda", 0))
    torch.testing.assert_close(found.cpu(), (matrix @ matrix.T).softmax(1))
    there = torch.arange(4.0, device=CUDA)
    assert (there * torch.tensor(2.0)).sum().item() == 12
    assert there[torch.tensor([1, 3])].tolist() == [1, 3]


def draw(generator, device):
    return torch.randn(3, generator=generator, device=device)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda here, there: here + there, "same device"),
        (lambda here, there: there @ here, "same device"),
        (lambda here, there: torch.cat([here, there]), "same device"),
        (lambda here, there: there + there.to("cuda:1"), "same device"),
        (lambda here, there: here.index_select(0, torch.tensor([0], device=CUDA)), "same device"),
        (lambda here, there: there.clone().copy_(here) + here, "same device"),
        (lambda here, there: there.to("cuda:2"), "invalid device ordinal"),
        (lambda here, there: draw(torch.Generator(), CUDA), "generator"),
        (lambda here, there: torch.Generator().set_state(torch.Generator(CUDA).get_state()), "wrong size"),
    ],
)
def test_operands_generators_and_states_of_two_devices_are_told(mistake, message):
    here = torch.ones(3, 3)
    with pytest.raises(RuntimeError, match=message):
        mistake(here, here.to(CUDA))


def test_numpy_of_a_tensor_on_the_device_is_refused():
    draw(torch.Generator(CUDA), CUDA)
    assert torch.cuda.device_count() == 2
    with pytest.raises(TypeError, match="can't convert"):
        np.asarray(torch.ones(3, device=CUDA))


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
    with emulation.watched() as waits:
        wait(there)
    assert sum(waits.values()) == n


def test_memory_is_counted_and_ends(monkeypatch):
    from emulation.machine import machine

    before = torch.cuda.memory_allocated()
    held = torch.ones(1000, device=CUDA)
    assert torch.cuda.memory_allocated() - before == 4000
    del held
    assert torch.cuda.memory_allocated() == before
    monkeypatch.setattr(machine(), "memory", before + 100)
    with pytest.raises(torch.OutOfMemoryError, match="emulated"):
        torch.ones(1000, device=CUDA)
