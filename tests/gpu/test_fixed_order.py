"""No sum on a device is in the order in which its threads come. Listed by the emulated device."""

import emulation
import pytest
import torch
from gpu_cases import by_solver, model, needs_emulation, needs_gpu, ratings

from air_recsys import AIR
from air_recsys.graphs.candidates import near_rows

pytestmark = [*needs_gpu, needs_emulation]


@by_solver
def test_of_a_fit(solver):
    with emulation.watched() as seen:
        model("cuda", solver).fit(ratings())
    assert not seen.unordered


@pytest.mark.parametrize("adjacency", ["row_softmin", "global_sum", "global_product"])
def test_of_dense_graphs(adjacency):
    settings = {"graph_neighbors": None, "settings": "fixed", "random_state": 0, "device": "cuda"}
    with emulation.watched() as seen:
        AIR.for_completion(n_epochs=5, adjacency=adjacency, **settings).fit(ratings())
    assert not seen.unordered


def test_of_clusters():
    points = torch.randn(2_000, 4, device="cuda")
    with emulation.watched() as seen:
        near_rows(points, points, 5)
    assert not seen.unordered
