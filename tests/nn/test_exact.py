"""Laws of the exact epochs: the X that minimises the objective, and graphs that sharpen."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from covering import covering
from hypothesis import given, settings
from hypothesis import strategies as st
from nn_references import CPU, F64, close, normal

from air_recsys.nn.adaptive_laplacian import sharpen_rows
from air_recsys.nn.build import Settings, build_objective, observations
from air_recsys.nn.exact import completed_exactly, exact_epoch
from air_recsys.nn.objective import FullWidthObjective
from air_recsys.nn.terms import TotalVariation
from air_recsys.storage.threads import torch_threads

few = settings(max_examples=15, deadline=None)
seeds = st.integers(0, 2**16)
FORMS = [{}, {"n_neighbors": 2}, {"strengths": (0.3, 0.0)}, {"tv_strength": 0.2}, {"depth": 2}]


def built(shape=(6, 8), seed=0, dtype=F64, **options) -> FullWidthObjective:
    rng = np.random.default_rng(seed)
    ratings = sp.csr_array(np.where(rng.random(shape) < 0.6, rng.normal(size=shape), 0.0))
    options = {"strengths": (0.3, 0.2), "init": (0.0, 0.5)} | options
    objective = build_objective(observations(ratings, np.asarray, dtype, CPU), Settings(**options), rng)
    assert isinstance(objective, FullWidthObjective)
    return objective


def completed(objective):
    left, right = objective.factorization.factors()
    return left @ right.T


@pytest.mark.parametrize(("options", "shape"), covering(FORMS, [(6, 8), (8, 6)]), ids=str)
@torch.no_grad()
def test_no_other_matrix_has_a_lower_objective(options, shape):
    objective = built(shape, **options)
    objective.sharpen_graphs(anew=True)
    best = completed(objective)
    for _ in range(150 if "tv_strength" in options else 3):  # the form that stands for the variation follows X
        best = completed_exactly(objective, best, 48)
    objective.factorization.hold(best)
    close(completed(objective), best)
    lowest = objective.evaluate().objective
    if "tv_strength" not in options:  # which counts steps below 0.1 less
        assert max(float(weight.grad.abs().max()) for weight in objective.factorization.weights) < 1e-9
    for seed in range(20):
        objective.factorization.hold(best + 0.3 * normal(*best.shape, seed=seed))
        assert objective.evaluate().objective > lowest


@few
@given(seeds)
def test_the_form_of_the_variation_touches_it(seed):
    matrix, others = normal(4, 5, seed=seed), normal(4, 5, seed=seed + 1)
    form = TotalVariation(0.7).near(matrix)
    gradient = torch.zeros_like(matrix)
    TotalVariation(0.7).add(matrix, gradient)
    steps = torch.cat([matrix.diff(dim=axis).abs().flatten() for axis in (0, 1)])
    slack = float((1 - steps / (steps**2 + 0.01).sqrt()).sum())
    assert float((2 / 20 * form.product(matrix) - gradient).abs().sum()) <= 2 * 0.7 / 20 * slack + 1e-12
    close((others * form.product(matrix)).sum(), (matrix * form.product(others)).sum())
    units = torch.eye(20, dtype=F64).view(20, 4, 5)
    close(form.diagonal.flatten(), torch.stack([(unit * form.product(unit)).sum() for unit in units]))


@few
@given(seeds, st.floats(1e-3, 1e3))
def test_sharpening_does_not_depend_on_the_unit(seed, unit):
    points, distances = normal(5, 3, seed=seed), normal(5, 4, seed=seed + 1).abs()
    plain, scaled = torch.zeros(5, 4, dtype=F64), torch.zeros(5, 4, dtype=F64)
    sharpen_rows(plain, distances, points, points)
    sharpen_rows(scaled, unit**2 * distances, unit * points, unit * points)
    close(plain, scaled)
    assert (plain.abs() <= 0.2).all()
    assert (torch.argsort(plain, dim=1) == torch.argsort(distances, dim=1)).all()


def test_edges_of_equal_rows_stay_equal_and_others_vanish():
    points = torch.tensor([[0.0], [0.0], [0.0], [9.0]], dtype=F64)
    distances = (points - points.T).square()
    logits = torch.zeros(4, 4, dtype=F64)
    for _ in range(200):
        sharpen_rows(logits, distances, points, points)
    weights = torch.softmax(-logits, dim=1)
    close(weights[0, :3], torch.full((3,), 1 / 3, dtype=F64))
    assert weights[0, 3] < 1e-9
    constant = torch.zeros(4, 4, dtype=F64)
    sharpen_rows(constant, 0 * distances, 0 * points, 0 * points)
    assert not constant.any()


@pytest.mark.parametrize("options", [{"n_neighbors": 3}, {"tv_strength": 0.2}], ids=str)
@torch.no_grad()
def test_the_same_bits_with_any_number_of_threads(options):
    found = []
    for number in (1, 2, 16):
        objective = built((180, 230), dtype=torch.float32, **options)
        with torch_threads(number):
            exact_epoch(objective, first=True)
            exact_epoch(objective, first=False)
        found.append(completed(objective))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


@torch.no_grad()
def test_rows_of_groups_become_equal():
    groups = np.kron(np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 1.0]]), np.ones((6, 5)))
    seen = np.random.default_rng(0).random(groups.shape) < 0.7
    ratings = sp.csr_array(np.where(seen, groups, 0.0))
    options = Settings(strengths=(0.01, 0.01), n_neighbors=5, init=(0.0, 0.5), depth=2)
    objective = build_objective(observations(ratings, np.asarray, F64, CPU), options, np.random.default_rng(0))
    objective.factorization.hold(torch.as_tensor(np.where(seen, groups, 2.5)))
    for epoch in range(60):
        exact_epoch(objective, first=epoch == 0)
    close(completed(objective), torch.as_tensor(groups), 1e-3)
