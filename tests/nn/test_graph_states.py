"""States of learned graphs that are of something else."""

import pytest
import torch
from nn_references import CPU, F64

from air_recsys.nn.adaptive_laplacian import SparseLaplacian

M, K = 9, 3


def shifted(neighbors, by):
    return torch.where(neighbors == neighbors[0, 1], by, neighbors)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda neighbors: neighbors[:, :-1],
        lambda neighbors: neighbors[:-1].clamp(max=M - 2),
        lambda neighbors: shifted(neighbors, -1),
        lambda neighbors: shifted(neighbors, M),
    ],
    ids=["narrow", "short", "below", "beyond"],
)
def test_neighbors_that_are_no_rows_are_refused(spoil):
    graph = SparseLaplacian(M, K, generator=torch.Generator(), dtype=F64, device=CPU)
    state = graph.state()
    with pytest.raises(ValueError, match=f"expected the neighbours of {M} rows, found others"):
        graph.load_state(state | {"neighbors": spoil(state["neighbors"])})
