"""`DeepFactorization`: its product, its start, and its chain rule against autograd."""

import pytest
import torch
from nn_references import gradient_of

from air_recsys.nn.factorization import DeepFactorization

DEPTHS = [2, 3, 4, 5]


def build(m=6, n=5, width=4, depth=3, mean=0.2, std=0.7, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return DeepFactorization(
        m, n, width, depth, mean=mean, std=std, generator=generator, dtype=dtype, device=torch.device("cpu")
    )


@pytest.mark.parametrize("depth", DEPTHS)
def test_factors_are_the_product_of_the_weights(depth):
    model = build(depth=depth)
    left, right = model.factors()
    assert len(model.weights) == depth
    expected = torch.linalg.multi_dot([*model.weights[:-1], model.weights[-1].T])
    torch.testing.assert_close(left @ right.T, expected)
    assert (left @ right.T).shape == (6, 5)


@pytest.mark.parametrize("depth", DEPTHS)
def test_backward_is_that_of_autograd(depth):
    model = build(depth=depth)
    generator = torch.Generator().manual_seed(1)
    grad_left, grad_right = (torch.randn(size, 4, dtype=torch.float64, generator=generator) for size in (6, 5))
    leaves = [weight.clone().requires_grad_() for weight in model.weights]
    product = leaves[0]
    for leaf in leaves[1:-1]:
        product = product @ leaf
    ((product * grad_left).sum() + (leaves[-1] * grad_right).sum()).backward()
    model.factors()
    model.backward(grad_left, grad_right)
    for weight, leaf in zip(model.weights, leaves, strict=True):
        torch.testing.assert_close(weight.grad, leaf.grad, rtol=1e-12, atol=1e-12)


def test_backward_overwrites_the_gradients_of_the_step_before():
    model = build()
    gradients = torch.ones(6, 4, dtype=torch.float64), torch.ones(5, 4, dtype=torch.float64)
    model.factors()
    model.backward(*gradients)
    once = [gradient_of(weight) for weight in model.weights]
    model.factors()
    model.backward(*gradients)
    assert all(torch.equal(gradient_of(weight), grad) for weight, grad in zip(model.weights, once, strict=True))


def test_start_has_the_mean_and_deviation_asked_for():
    model = build(m=200, n=200, width=200, mean=0.3, std=0.1)
    for weight in model.weights:
        assert float(weight.mean()) == pytest.approx(0.3, abs=0.005)
        assert float(weight.std()) == pytest.approx(0.1, abs=0.005)


def test_the_same_seed_gives_the_same_start_and_another_seed_another():
    first, again, other = build(seed=3), build(seed=3), build(seed=4)
    assert all(torch.equal(*pair) for pair in zip(first.weights, again.weights, strict=True))
    assert not torch.equal(first.weights[0], other.weights[0])
