"""Flags of factorizations, and the one time that they are read."""

from __future__ import annotations

import pytest
import torch

from air_recsys.exceptions import NumericalError
from air_recsys.nn.posterior.flags import Flag, cholesky, inverse, of_finite, of_rows, read

GOOD, SINGULAR = torch.tensor([[2.0, 1.0], [1.0, 2.0]]), torch.diag(torch.tensor([1.0, 0.0]))
ZERO = torch.tensor(0)


def words_of(call):
    """What torch says of a matrix without a solution."""
    with pytest.raises(RuntimeError) as found:
        call()
    return str(found.value)


def test_factors_and_inverses_are_those_of_torch():
    flags = []
    torch.testing.assert_close(cholesky(GOOD, flags), torch.linalg.cholesky(GOOD))
    torch.testing.assert_close(inverse(GOOD, flags), torch.linalg.inv(GOOD))
    assert len(flags) == 2
    assert read(flags) == []


@pytest.mark.parametrize("matrix", [SINGULAR, -GOOD, GOOD * float("nan")], ids=["singular", "negative", "nan"])
def test_a_factor_that_is_missing_is_told_in_the_words_of_torch(matrix):
    flags = []
    cholesky(matrix, flags)
    with pytest.raises(NumericalError) as found:
        read(flags)
    expected = words_of(lambda: torch.linalg.cholesky(matrix))
    assert str(found.value) == f"the priors of the posterior have no solution: {expected}"


def test_an_inverse_that_is_missing_is_told_in_the_words_of_torch():
    flags = []
    inverse(SINGULAR, flags)
    with pytest.raises(NumericalError) as found:
        read(flags)
    expected = words_of(lambda: torch.linalg.inv(SINGULAR))
    assert str(found.value) == f"the priors of the posterior have no solution: {expected}"


def test_the_first_flag_counts():
    flags = [Flag(ZERO, "none"), of_rows(torch.tensor(3), torch.float32), Flag(torch.tensor(1), "later")]
    with pytest.raises(NumericalError, match=r"^3 rows of the posterior have no solution in torch.float32: expected"):
        read(flags, [ZERO])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_one_number_that_is_not_finite_is_enough(value):
    tensors = [torch.ones(3), torch.tensor(1.0, dtype=torch.float64)]
    assert read([of_finite(tensors)], [torch.tensor(0.5)]) == [0.5]
    tensors[0][1] = value
    with pytest.raises(NumericalError, match="found NaN or infinity"):
        read([of_finite(tensors)])


def test_numbers_keep_double_precision_and_may_be_nan():
    third = torch.tensor(1 / 3, dtype=torch.float64)
    found = read([], [third, torch.tensor(float("nan"))])
    assert found[0] == 1 / 3
    assert found[1] != found[1]
    assert read([]) == []
