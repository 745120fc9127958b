"""Fast products are exact in float32, leave torch's switches alone, and are asked for only where they may be."""

import pytest
import torch
from torch.backends import mkldnn

from air_recsys.nn import devices
from air_recsys.nn.devices import fast_products, rounds_as_float32

SWITCH = getattr(mkldnn, "matmul", None)
needs_switch = pytest.mark.skipif(SWITCH is None, reason="torch < 2.9 has no switch")


def switch():
    return None if SWITCH is None else SWITCH.fp32_precision


@pytest.mark.parametrize("shape", [(200, 140), (128, 300), (240, 240)])
def test_products_are_those_of_float64_up_to_float32(shape):
    generator = torch.Generator().manual_seed(0)
    left, right = torch.randn(*shape, generator=generator), torch.randn(*shape, generator=generator)
    with fast_products(left):
        found = [left @ right.T, left.T @ right, torch.addmm(left[0], left @ left.T, left, alpha=-2)]
    wide, other = left.double(), right.double()
    expected = [wide @ other.T, wide.T @ other, torch.addmm(wide[0], wide @ wide.T, wide, alpha=-2)]
    for value, exact in zip(found, expected, strict=True):
        torch.testing.assert_close(value.double(), exact, rtol=0, atol=1e-5 * float(exact.abs().max()))


def test_the_switch_of_torch_is_as_before_also_after_an_error():
    before = switch()
    matrix = torch.zeros(200, 200)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), fast_products(matrix):
        _ = matrix @ torch.zeros(3, 3)
    assert switch() == before


@needs_switch
@pytest.mark.parametrize("exact", [True, False])
def test_large_float32_matrices_alone_are_given_to_the_faster_library_if_it_is_exact(exact, monkeypatch):
    before = switch()
    monkeypatch.setattr(devices, "rounds_as_float32", lambda: exact)
    for shape in ((200, 140), (128, 128)):
        with fast_products(torch.zeros(shape)):
            assert switch() == ("bf16" if exact else before)
    for other in (torch.zeros(200, 200, dtype=torch.float64), torch.zeros(127, 500), torch.zeros(500, 20)):
        with fast_products(other):
            assert switch() == before


class Rounding:
    """A processor that multiplies in bfloat16 where it may."""

    fp32_precision = "none"


@pytest.mark.parametrize("kind", [pytest.param(Rounding, marks=needs_switch), None])
def test_a_library_that_rounds_to_bfloat16_is_not_taken_and_a_torch_without_the_switch_is_no_error(kind, monkeypatch):
    def rounded(left, right):
        if Rounding.fp32_precision == "bf16":
            return multiply(left.bfloat16(), right.bfloat16()).float()
        return multiply(left, right)

    multiply = torch.Tensor.__matmul__
    monkeypatch.setattr(devices, "_switch", lambda: kind)
    monkeypatch.setattr(torch.Tensor, "__matmul__", rounded)
    rounds_as_float32.cache_clear()
    try:
        assert not rounds_as_float32()
        with fast_products(torch.zeros(200, 200)):
            assert Rounding.fp32_precision == "none"
    finally:
        rounds_as_float32.cache_clear()
