"""Sums over the entries of rows: those of loops, and of the Triton kernel, which is interpreted here."""

import os
import subprocess
import sys

import pytest
import torch

from air_recsys.nn import sums
from air_recsys.nn.sums import row_sums

KERNEL = """
import torch
from air_recsys.nn import sums_kernel
from air_recsys.nn.sums import row_sums

sums_kernel.PIECE = 4
random = torch.Generator().manual_seed(0)
starts = torch.tensor([0, 0, 1, 5, 10, 31, 31])  # no entry, one piece, pieces and a rest, none again
for index, dtype, width, weighted in [
    (torch.int32, torch.float32, 1, False),
    (torch.int32, torch.float32, 41, True),
    (torch.int64, torch.float64, 300, True),
    (torch.int64, torch.float32, 300, False),
]:
    partners = torch.randint(0, 7, (31,), generator=random).to(index)
    table = torch.randn(width, 7, generator=random, dtype=dtype).T
    weights = torch.rand(31, generator=random, dtype=dtype) if weighted else None
    given = starts.to(index), partners, table, weights
    found = sums_kernel.sums_by_kernel(*given)
    torch.testing.assert_close(found, row_sums(*given))
    assert torch.equal(found, sums_kernel.sums_by_kernel(*given))
assert sums_kernel.sums_by_kernel(starts[:1], partners[:0], table, None).shape == (0, 300)
"""


def test_the_kernel_sums_as_torch_does_with_the_same_bits_every_time():
    pytest.importorskip("triton")
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    run = subprocess.run(
        [sys.executable, "-c", KERNEL], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr[-5000:]


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_those_of_a_loop(weighted):
    random = torch.Generator().manual_seed(0)
    starts, partners = torch.tensor([0, 3, 3, 8]), torch.randint(0, 4, (8,), generator=random)
    table, weights = torch.randn(5, 4, generator=random).T, torch.rand(8, generator=random) if weighted else None
    factors = torch.ones(8) if weights is None else weights
    expected = [
        sum((factors[place] * table[partners[place]] for place in range(*pair)), torch.zeros(5))
        for pair in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    ]
    torch.testing.assert_close(row_sums(starts, partners, table, weights), torch.stack(expected))


@pytest.mark.parametrize("wrong", [lambda *given: torch.zeros(4, 300), None])
def test_a_kernel_that_is_wrong_or_not_there_is_told_once_and_torch_sums(wrong, monkeypatch, caplog):
    place = torch.device("cpu")
    if wrong is not None:
        with pytest.raises(RuntimeError, match="differ"):
            sums.check(wrong, place, torch.float32)
    sums.check(sums._by_torch, place, torch.float32)
    sums._of_device.cache_clear()
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (6, 1))
    assert all(sums._of_device(place, torch.float32) is sums._by_torch for _ in range(2))
    assert len(caplog.records) == 1
    assert "capability 7.0" in caplog.text
    sums._of_device.cache_clear()
