"""The engine computes what the objective says, as one would write it first."""

import numpy as np
import pytest
import torch
from plain_factors import Entries, PlainFactors

from air_recsys import Interactions
from air_recsys.nn.build import Settings, build_objective, observations
from air_recsys.nn.objective import Penalties

PENALTIES = Penalties(0.7, 0.4)
STRENGTHS = (0.03, 0.05)


def pair(depth, width=3, k=2):
    """The engine's objective and the plain one at the same parameters, with the data of the plain one."""
    rng = np.random.default_rng(0)
    matrix = np.where(rng.random((9, 7)) < 0.6, rng.normal(size=(9, 7)), np.nan)
    data = Interactions.from_dense(matrix, allow_negative=True)
    observed = observations(data.to_csr(), lambda values: values, torch.float64, torch.device("cpu"))
    settings = Settings(width, depth, (0.1, 0.5), STRENGTHS, n_neighbors=k, biases=True, penalties=PENALTIES)
    objective = build_objective(observed, settings, rng)
    objective.refresh_graphs()
    generator = torch.Generator().manual_seed(0)
    edges = [laplacian.neighbors for laplacian in objective.laplacians]
    neighbors = [each[:, -k:] for each in edges]
    plain = PlainFactors((neighbors[0], neighbors[1]), width, depth, STRENGTHS, PENALTIES, generator).double()
    *left, right = objective.factorization.weights
    with torch.no_grad():
        for parameter, weight in zip(plain.layers, [*left, right.T], strict=True):
            parameter.copy_(weight)
        for mine, others in ((plain.logits, objective.logits()), (plain.biases, objective.biases)):
            for parameter, other in zip(mine, others, strict=True):
                other.normal_(generator=generator)
                parameter.copy_(other)
    entries = (torch.as_tensor(column) for column in (data.user_index, data.item_index, data.ratings))
    return objective, plain, Entries(*entries)


@pytest.mark.parametrize("depth", [2, 3])
def test_the_plain_objective_and_its_gradient_are_the_engines(depth):
    objective, plain, entries = pair(depth)
    expected = plain(entries)
    with torch.no_grad():
        found = objective.evaluate()
    assert float(found.objective) == pytest.approx(float(expected.detach()), abs=1e-12)
    expected.backward()
    *left, right = plain.layers
    assert right.grad is not None
    gradients = [layer.grad for layer in left] + [right.grad.T]
    gradients += [each.grad for each in (*plain.biases, *plain.logits)]
    for parameter, gradient in zip(objective.parameters(), gradients, strict=True):
        assert gradient.abs().max() > 1e-4  # every term counts here
        torch.testing.assert_close(parameter.grad, gradient, rtol=0, atol=1e-12)


def test_a_plain_step_lowers_the_objective():
    _, plain, entries = pair(2)
    optimizer = torch.optim.Adam(plain.parameters(), lr=1e-2)
    values = []
    for _ in range(20):
        optimizer.zero_grad()
        values.append(plain(entries))
        values[-1].backward()
        optimizer.step()
    assert values[-1] < values[0]
