"""Fold-in: new rows minimise the objective with everything else fixed."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

from air_recsys import AIR, Interactions
from air_recsys.exceptions import DataError, NotFittedError, ParameterError, UnknownIdError
from air_recsys.models.rows import LeastSquaresRows, Ties

F64 = torch.float64
SMALL = {"device": "cpu", "random_state": 0, "dtype": "float64"}


def random_rows(rng, n_rows, n_others, density=0.5):
    mask = rng.random((n_rows, n_others)) < density
    mask[:, 0] = True
    rows, columns = np.nonzero(mask)
    return sp.csr_array((rng.integers(0, 6, rows.size).astype(float), (rows, columns)), shape=mask.shape)


def on_scale(rows):
    """The same with ratings of 1 to 5."""
    return sp.csr_array((rows.data.clip(1), rows.indices, rows.indptr), shape=rows.shape)


def spd(rng, size):
    root = rng.normal(size=(size, size))
    return root @ root.T / size


@pytest.mark.parametrize(
    ("bias_decay", "weighted", "tied", "unobserved_weight"),
    [
        (None, True, False, 0.3),
        (None, False, True, 0.3),
        (None, True, True, 0.0),
        (None, False, False, 0.0),
        (0.0, True, True, 0.0),
        (0.0, False, False, 0.0),
        (0.7, True, False, 0.0),
        (0.7, False, True, 0.0),
    ],  # a bias beside weights of what is not observed is refused
)
def test_a_solved_row_has_no_gradient(bias_decay, weighted, tied, unobserved_weight):
    rng = np.random.default_rng(3)
    others, offsets, penalty = rng.normal(size=(9, 3)), rng.normal(size=9), spd(rng, 3)
    if unobserved_weight > 0:
        offsets = np.zeros(9)
    ratings = random_rows(rng, 4, 9)
    weights = rng.random(ratings.nnz) if weighted else None
    ties = Ties(0.4, rng.random(4), rng.normal(size=(4, 3))) if tied else None
    solver = LeastSquaresRows(others, offsets, penalty, bias_decay, unobserved_weight)
    found = solver.solve(ratings, weights=weights, ties=ties)

    u = torch.tensor(found.factors, dtype=F64, requires_grad=True)
    b = torch.tensor(found.biases, dtype=F64, requires_grad=True)
    v, gram = torch.tensor(others), torch.tensor(others.T @ others)
    target, confidence = torch.zeros(4, 9, dtype=F64), torch.zeros(4, 9, dtype=F64)
    coo = ratings.tocoo()
    target[coo.row, coo.col] = torch.tensor(coo.data)
    confidence[coo.row, coo.col] = torch.ones(coo.nnz, dtype=F64) if weights is None else torch.tensor(weights)
    products = u @ v.T
    rated = torch.zeros(4, 9, dtype=torch.bool)
    rated[coo.row, coo.col] = True
    value = (confidence * (products + b[:, None] + torch.tensor(offsets) - target).square()).sum()
    value = value + unobserved_weight * products[~rated].square().sum()
    value = value + torch.einsum("ir,rs,is->", u, torch.tensor(penalty), u) + (bias_decay or 0.0) * b.square().sum()
    if ties is not None:
        degree, pull = torch.tensor(ties.degrees), torch.tensor(ties.pulls)
        norms = torch.einsum("ir,rs,is->i", u, gram, u)
        value = value + ties.strength * (degree * norms - 2 * torch.einsum("ir,rs,is->i", u, gram, pull)).sum()
    value.backward()
    assert u.grad.abs().max() < 1e-8
    if bias_decay is None:
        assert not found.biases.any()
    else:
        assert b.grad.abs().max() < 1e-8


@pytest.mark.parametrize(("bias_decay", "unobserved_weight"), [(None, 0.0), (0.7, 0.0), (None, 0.3)])
def test_the_parts_of_a_row_sum_to_it(bias_decay, unobserved_weight):
    rng = np.random.default_rng(3)
    offsets = np.zeros(9) if unobserved_weight > 0 else rng.normal(size=9)
    solver = LeastSquaresRows(rng.normal(size=(9, 3)), offsets, spd(rng, 3), bias_decay, unobserved_weight)
    row = random_rows(rng, 1, 9)
    weights = rng.random(row.nnz)
    parts = solver.contributions(row.indices, row.data, weights)
    assert parts.shape == (row.nnz, 3)
    np.testing.assert_allclose(parts.sum(axis=0), solver.solve(row, weights=weights).factors[0], rtol=1e-9)


def low_noise_ratings(n_users=40, n_items=30, seed=0, density=0.5):
    """Ratings 1..5 of rank 2 with noise, as a table."""
    rng = np.random.default_rng(seed)
    scores = (
        3 + rng.normal(size=(n_users, 2)) @ rng.normal(size=(2, n_items)) + 0.3 * rng.normal(size=(n_users, n_items))
    )
    rows, columns = np.nonzero(rng.random(scores.shape) < density)
    return Interactions(
        rows, columns, scores[rows, columns].clip(1, 5), [f"u{i}" for i in range(n_users)], list(range(n_items))
    )


def converged(**overrides):
    """A model at a stationary point, so that every row minimises the objective given the rest."""
    options = (
        SMALL
        | {
            "solver": "adam",
            "n_factors": 3,
            "weight_decay": 2.0,
            "n_epochs": 4000,
            "n_batches": 1,
            "learning_rate": 0.03,
        }
        | overrides
    )
    return AIR.for_ratings(**options)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"user_graph_reg": 0.0, "item_graph_reg": 0.0}, id="no graphs"),
        pytest.param({"user_graph_reg": 0.0, "item_graph_reg": 1e-3}, id="item graph"),
        pytest.param({"user_graph_reg": 0.0, "item_graph_reg": 0.0, "scale": True}, id="scaled"),
        pytest.param(
            {"user_graph_reg": 0.0, "item_graph_reg": 0.0, "scale": True, "depth": 3, "weight_decay": 0.3},
            id="depth 3",
        ),
        pytest.param({"user_graph_reg": 0.0, "item_graph_reg": 0.0, "biases": False, "center": False}, id="no biases"),
        pytest.param(
            {
                "user_graph_reg": 0.0,
                "item_graph_reg": 1e-3,
                "biases": False,
                "center": False,
                "unobserved_weight": 0.2,
            },
            id="unobserved",
        ),
    ],
)
def test_trained_users_fold_in_as_themselves(options):
    data = low_noise_ratings()
    model = converged(**options).fit(data)
    found = model.fold_in(data)
    np.testing.assert_allclose(found.factors, model.user_factors_, atol=2e-3)
    np.testing.assert_allclose(found.biases, model.user_biases_, atol=2e-3)


@pytest.mark.parametrize("scale", [False, True])
def test_trained_items_fold_in_as_themselves(scale):
    data = low_noise_ratings()
    model = converged(user_graph_reg=1e-3, item_graph_reg=0.0, scale=scale).fit(data)
    found = model.fold_in(data, side="item")
    np.testing.assert_allclose(found.factors, model.item_factors_, atol=2e-3)
    np.testing.assert_allclose(found.biases, model.item_biases_, atol=2e-3)


def test_weights_count_as_repeated_ratings_would():
    data = low_noise_ratings()
    model = converged(n_epochs=100).fit(data)
    row = sp.csr_array(([5.0, 1.0], ([0, 0], [2, 7])), shape=(1, 30))
    solver = model.row_solver()
    twice = LeastSquaresRows(
        np.vstack([solver.others, solver.others[2:3]]),
        np.append(solver.offsets, solver.offsets[2]),
        solver.penalty,
        solver.bias_decay,
    )
    repeated = sp.csr_array(([5.0, 1.0, 5.0], ([0, 0, 0], [2, 7, 30])), shape=(1, 31))
    found, expected = model.fold_in(row, weights=np.array([2.0, 1.0])), twice.solve(repeated)
    np.testing.assert_allclose(found.factors, expected.factors, rtol=1e-6)
    np.testing.assert_allclose(found.biases, expected.biases, rtol=1e-6)


def test_exact_data_of_low_rank_gives_exact_rows_from_a_few_ratings():
    rng = np.random.default_rng(0)
    basis = rng.normal(size=(2, 25))
    ratings = rng.normal(size=(40, 2)) @ basis
    model = AIR.for_completion(**SMALL, n_epochs=2500, init_std=0.1).fit(
        Interactions.from_dense(np.where(rng.random(ratings.shape) < 0.9, ratings, np.nan), allow_negative=True)
    )
    new = rng.normal(size=(5, 2)) @ basis
    rows = sp.csr_array(np.where(rng.random(new.shape) < 0.3, new, 0.0))
    found = model.fold_in(rows)
    error = found.factors @ model.item_factors_.T - new
    assert np.sqrt(np.mean(error**2)) < 0.08 * new.std()


def test_a_row_without_ratings_is_the_mean_user():
    model = converged(n_epochs=50).fit(low_noise_ratings())
    found = model.fold_in(sp.csr_array((2, 30)))
    assert not found.factors.any()
    assert not found.biases.any()


def test_interactions_and_positions_fold_in_alike():
    data = low_noise_ratings()
    model = converged(n_epochs=50).fit(data.to_dense() - 1)
    frame = pd.DataFrame({"user": ["new", "new", "other"], "item": [7, 2, 2], "rating": [4.0, 1.0, 0.0]})
    by_id = model.fold_in(frame)
    rows = sp.csr_array(([1.0, 4.0, 0.0], ([0, 0, 1], [2, 7, 2])), shape=(2, 30))
    by_position = model.fold_in(rows)
    np.testing.assert_array_equal(by_id.factors, by_position.factors)
    np.testing.assert_array_equal(by_id.biases, by_position.biases)
    assert by_id.factors[1].any()  # a rating of zero is a rating


def test_fold_in_leaves_the_model_as_it_is():
    data = low_noise_ratings()
    model = converged(n_epochs=50).fit(data)
    before = model.predict(data.user_ids, data.item_ids[:1])
    model.fold_in(on_scale(random_rows(np.random.default_rng(0), 3, 30)))
    np.testing.assert_array_equal(model.predict(data.user_ids, data.item_ids[:1]), before)
    assert model.interactions_ is not None
    assert model.interactions_.n_users == 40


def test_a_loaded_model_folds_in_alike(tmp_path):
    model = converged(n_epochs=50).fit(low_noise_ratings())
    rows = on_scale(random_rows(np.random.default_rng(0), 3, 30))
    loaded = AIR.load(model.save(tmp_path / "model.safetensors"))
    np.testing.assert_allclose(loaded.fold_in(rows).factors, model.fold_in(rows).factors, rtol=1e-9)


@pytest.mark.parametrize(
    ("ratings", "options", "error", "message"),
    [
        (sp.csr_array((1, 29)), {}, DataError, "expected 30 columns, one per known item"),
        (sp.csr_array((1, 30)), {"side": "item"}, DataError, "expected 40 columns, one per known user"),
        (sp.csr_array((1, 30)), {"side": "row"}, ParameterError, "side must be one of"),
        (np.zeros((1, 30)), {}, DataError, "found ndarray"),
        (sp.coo_array((1, 30)), {"weights": np.zeros(0)}, DataError, "format coo"),
        (sp.csr_array(([np.nan], ([0], [0])), shape=(1, 30)), {}, DataError, "finite"),
        (sp.csr_array(([1.0], ([0], [0])), shape=(1, 30)), {"weights": np.array([-1.0])}, DataError, "weights must"),
        (sp.csr_array(([1.0], ([0], [0])), shape=(1, 30)), {"weights": np.ones(2)}, DataError, "one weight for each"),
        (pd.DataFrame({"user": ["n"], "item": [99], "rating": [1]}), {}, UnknownIdError, "99"),
        (low_noise_ratings(), {"weights": np.ones(3)}, DataError, "as part of the Interactions"),
    ],
)
def test_bad_rows_are_told(ratings, options, error, message):
    model = converged(n_epochs=2).fit(low_noise_ratings())
    with pytest.raises(error, match=message):
        model.fold_in(ratings, **options)


def test_models_that_cannot_fold_in_say_so():
    with pytest.raises(NotFittedError):
        AIR().fold_in(sp.csr_array((1, 3)))
    model = AIR.for_completion(**SMALL, n_epochs=2, transforms=[("rows", 1e-4)]).fit(np.ones((4, 4)) + np.eye(4))
    with pytest.raises(ParameterError, match="transforms"):
        model.fold_in(sp.csr_array((1, 4)))
