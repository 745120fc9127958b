"""A training knows no order: from a start whose rows and columns are permuted it ends in the permuted end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from nn_references import CPU, F64, dense, random_observations
from torch import Tensor

from air_recsys.graphs.laplacian import ADJACENCIES
from air_recsys.nn.adaptive_laplacian import DenseLaplacian
from air_recsys.nn.build import Settings, build_objective, observations
from air_recsys.nn.objective import Objective, Observations, Penalties
from air_recsys.training import GradientDescent, Plan, train

M, N = 11, 8
ROWS, COLUMNS = (torch.as_tensor(np.random.default_rng(1).permutation(size)) for size in (M, N))
FORMS = [*({"adjacency": name} for name in ADJACENCIES), {"n_neighbors": 3}]


def permuted(observed: Observations) -> Observations:
    targets, mask = (tensor[ROWS][:, COLUMNS].numpy() for tensor in dense(observed))
    places = np.nonzero(mask)
    return observations(sp.csr_array((targets[places], places), shape=(M, N)), lambda values: values, F64, CPU)


def start_permuted(objective: Objective, plain: Objective) -> None:
    """Give an objective the start of another one, moved; sparse graphs choose their edges at the first step."""
    for weight, known in zip(objective.factorization.weights, plain.factorization.weights, strict=True):
        weight.copy_(known)
    first, last = objective.factorization.weights[0], objective.factorization.weights[-1]
    first.copy_(first[ROWS])
    last.copy_(last[COLUMNS])
    for one, other, order in zip(objective.laplacians, plain.laplacians, (ROWS, COLUMNS), strict=True):
        for moved, known in zip(one.parts, other.parts, strict=True):
            if isinstance(one, DenseLaplacian):
                moved.copy_(known[order][:, order])
            else:
                known.zero_()
                moved.zero_()


def ended(objective: Objective) -> tuple[Tensor, list[np.ndarray]]:
    """Return the predictions and the graphs after a training."""
    train(GradientDescent(objective, Plan(n_epochs=40, learning_rate=0.02, graph_refresh=10, evaluate_every=40)))
    everywhere = observations(sp.csr_array(np.ones((M, N))), lambda values: values, F64, CPU).pattern
    graphs = [laplacian.adjacency().toarray() for laplacian in objective.laplacians]
    return objective.predict_pairs(everywhere).view(M, N), graphs


@pytest.mark.parametrize("options", FORMS, ids=["row_softmin", "global_sum", "global_product", "sparse"])
@pytest.mark.parametrize("width", [None, 3], ids=["full", "factor"])
def test_permuting_rows_and_columns_permutes_predictions_and_graphs(width, options):
    usual: dict[str, Any] = {"init": (0.1, 0.4), "strengths": (0.05, 0.02), "biases": True}
    settings = Settings(width=width, penalties=Penalties(weight_decay=0.1), **usual | options)
    observed = random_observations(M, N)
    plain = build_objective(observed, settings, np.random.default_rng(0))
    moved = build_objective(permuted(observed), settings, np.random.default_rng(0))
    start_permuted(moved, plain)
    (found, graphs), (expected, known) = ended(moved), ended(plain)
    torch.testing.assert_close(found, expected[ROWS][:, COLUMNS], rtol=1e-7, atol=1e-9)
    for graph, other, order in zip(graphs, known, (ROWS.numpy(), COLUMNS.numpy()), strict=True):
        np.testing.assert_allclose(graph, other[np.ix_(order, order)], rtol=1e-6, atol=1e-9)
