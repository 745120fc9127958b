"""The inverse by halves: that of LAPACK, with the same bits for any number of threads."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from air_recsys.exceptions import DataError
from air_recsys.nn.inverse import inverted
from air_recsys.storage.threads import threads


def definite(n, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    half = torch.randn(n, n + 5, dtype=dtype, generator=generator)
    return half @ half.T / n + torch.eye(n, dtype=dtype)


@pytest.mark.parametrize("n", [1, 2, 255, 257, 700])
@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-5), (torch.float64, 1e-13)])
def test_it_is_the_inverse_of_lapack_in_place(n, dtype, error):
    matrix = definite(n, dtype)
    expected = torch.linalg.inv(matrix.double())
    for given in (matrix.clone(), matrix.T.contiguous().T, matrix.tril()):  # by rows, by columns, the triangle alone
        found = inverted(given)
        assert found.data_ptr() == given.data_ptr()
        torch.testing.assert_close(found.double(), expected, rtol=0, atol=error)


def test_threads_change_no_bit():
    found = []
    for number in (1, 2, 16):
        with threads(number):
            found.append(inverted(definite(1100, torch.float32)))
    assert all(torch.equal(found[0], other) for other in found)


@pytest.mark.parametrize("place", [0, 3, 255, 256, 399])
def test_a_matrix_that_is_not_positive_definite_is_named_by_its_row(place):
    matrix = torch.eye(400)
    matrix[place, place] = -1
    with pytest.raises(DataError, match=f"not at row {place + 1}"):
        inverted(matrix)


FIT = """
import hashlib, numpy as np
from air_recsys import AIR
seen = np.random.default_rng(0).random((700, 600)) < 0.05
model = AIR.for_likes(settings={}, n_steps=2, device="cpu").fit(seen.astype(np.float32))
print(hashlib.sha256(model.recommend([*range(50)])["score"].to_numpy().tobytes()).hexdigest())
"""


def test_the_number_of_threads_of_the_process_changes_no_bit_of_a_fit_of_likes():
    told = set()
    for number in ("1", "5"):
        done = subprocess.run(
            [sys.executable, "-c", FIT],
            env={**os.environ, "OMP_NUM_THREADS": number},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        told.add(done.stdout)
    assert len(told) == 1
    assert np.char.str_len(told.pop().strip()) == 64
