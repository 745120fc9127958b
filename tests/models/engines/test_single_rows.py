"""Single rows: each minimises the objective with all else fixed, or follows the equations of the posterior."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from test_posterior_models import SOLVERS, drawn
from test_posterior_models import model as posterior

from air_recsys import AIR, Interactions
from air_recsys.exceptions import DataError, ParameterError, UnknownIdError
from air_recsys.models.rows import LeastSquaresRows, Ties

F64 = torch.float64
SMALL = {"device": "cpu", "random_state": 0, "dtype": "float64"}


def random_rows(rng, n_rows, n_others, density=0.5):
    mask = rng.random((n_rows, n_others)) < density
    mask[:, 0] = True
    rows, columns = np.nonzero(mask)
    return sp.csr_array((rng.integers(0, 6, rows.size).astype(float), (rows, columns)), shape=mask.shape)


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
def test_a_solved_row_has_no_gradient_and_its_parts_sum_to_it(bias_decay, weighted, tied, unobserved_weight):
    rng = np.random.default_rng(3)
    others, offsets, penalty = rng.normal(size=(9, 3)), rng.normal(size=9), spd(rng, 3)
    if unobserved_weight > 0:
        offsets = np.zeros(9)
    ratings = random_rows(rng, 4, 9)
    ones = np.ones(ratings.nnz)
    weights = rng.random(ratings.nnz) if weighted else ones
    ties = Ties(0.4, rng.random(4), rng.normal(size=(4, 3))) if tied else None
    solver = LeastSquaresRows(others, offsets, penalty, bias_decay, unobserved_weight)
    found = solver.solve(ratings, weights=weights if weighted else None, ties=ties)

    def dense(values):
        return torch.tensor(sp.csr_array((values, ratings.indices, ratings.indptr), shape=(4, 9)).toarray())

    u, b = (torch.tensor(part, dtype=F64, requires_grad=True) for part in found)
    v, gram = torch.tensor(others), torch.tensor(others.T @ others)
    target, confidence, rated = map(dense, (ratings.data, weights, ones))
    products = u @ v.T
    value = (confidence * (products + b[:, None] + torch.tensor(offsets) - target).square()).sum()
    value = value + unobserved_weight * ((1 - rated) * products.square()).sum()
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
    if ties is None:
        own = slice(ratings.indptr[1])  # of the first row
        parts = solver.contributions(
            ratings.indices[own], ratings.data[own], None if weights is None else weights[own]
        )
        np.testing.assert_allclose(parts.sum(axis=0), found.factors[0], rtol=1e-9)


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
    options = {"solver": "adam", "n_factors": 3, "weight_decay": 2.0, "n_batches": 1, "learning_rate": 0.03}
    return AIR.for_ratings(**SMALL | options | {"n_epochs": 2000} | overrides)


@pytest.fixture(scope="module")
def model():
    """A model of few steps; not to be changed."""
    return converged(n_epochs=50).fit(low_noise_ratings())


@pytest.mark.parametrize(
    ("side", "options"),
    [
        pytest.param("user", {"scale": True, "depth": 3, "weight_decay": 0.3}, id="scaled, depth 3"),
        pytest.param(
            "user",
            {"item_graph_reg": 1e-3, "biases": False, "center": False, "unobserved_weight": 0.2},
            id="unobserved, no biases",
        ),
        pytest.param("item", {"user_graph_reg": 1e-3, "scale": True}, id="items, scaled"),
    ],
)
def test_trained_rows_fold_in_as_themselves(side, options):
    data = low_noise_ratings()
    model = converged(**{"user_graph_reg": 0.0, "item_graph_reg": 0.0} | options).fit(data)
    found = model.fold_in(data, side=side)
    for kept in (f"{side}_factors_", f"{side}_biases_"):
        np.testing.assert_allclose(getattr(found, kept), getattr(model, kept), atol=2e-3)


def test_weights_count_as_repeated_ratings_would(model):
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
    np.testing.assert_allclose(found.user_factors_, expected.factors, rtol=1e-6)
    np.testing.assert_allclose(found.user_biases_, expected.biases, rtol=1e-6)


def test_ids_and_positions_fold_in_alike_from_a_file_too_and_leave_the_model_as_it_is(tmp_path):
    model = converged(n_epochs=50).fit(low_noise_ratings().to_dense() - 1)
    before = model.predict(range(40), 0)
    frame = pd.DataFrame({"user": ["new", "new", "other"], "item": [7, 2, 2], "rating": [4.0, 1.0, 0.0]})
    rows = sp.csr_array(([1.0, 4.0, 0.0], ([0, 0, 1], [2, 7, 2])), shape=(2, 30))
    by_id, by_position = model.fold_in(frame), model.fold_in(rows)
    np.testing.assert_array_equal(by_id.user_factors_, by_position.user_factors_)
    np.testing.assert_array_equal(by_id.user_biases_, by_position.user_biases_)
    assert by_position.interactions_.user_ids.tolist() == [0, 1]
    assert by_id.user_factors_[1].any()  # a rating of zero is a rating
    loaded = AIR.load(model.save(tmp_path / "model.safetensors"))
    np.testing.assert_allclose(loaded.fold_in(rows).user_factors_, by_id.user_factors_, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(range(40), 0), before)
    assert model.interactions_.n_users == 40


@pytest.mark.parametrize(
    ("ratings", "options", "error", "message"),
    [
        (sp.csr_array((1, 29)), {}, DataError, "expected 30 columns, one per known item"),
        (sp.csr_array((1, 30)), {"side": "item"}, DataError, "expected 40 columns, one per known user"),
        (sp.csr_array((1, 30)), {"side": "row"}, ParameterError, "side must be one of"),
        (np.zeros((1, 30)), {}, DataError, "found ndarray"),
        (sp.coo_array((1, 30)), {"weights": np.zeros(0)}, DataError, "format coo"),
        (sp.csr_array(([1.0], ([0], [0])), shape=(1, 30)), {"weights": np.ones(2)}, DataError, "one weight for each"),
        (pd.DataFrame({"user": ["n"], "item": [99], "rating": [1]}), {}, UnknownIdError, "99"),
        (low_noise_ratings(), {"weights": np.ones(3)}, DataError, "as part of the Interactions"),
    ],
)
def test_bad_rows_are_told(model, ratings, options, error, message):
    with pytest.raises(error, match=message):
        model.fold_in(ratings, **options)


# -------------------------------------------------------------------- of a posterior


def named():
    """Ratings drawn from the model, of users with names."""
    table = drawn()[0].to_frame()
    return Interactions.from_frame(table.assign(user="u" + table["user"].astype(str)), allow_negative=True)


@pytest.fixture(scope="module", params=SOLVERS)
def fitted(request):
    """A model of either solver; not to be changed."""
    return posterior(request.param, n_sweeps=100).fit(named())


@pytest.fixture(scope="module")
def settled():
    """A variational model whose sweeps have converged; not to be changed."""
    return posterior("variational", n_sweeps=300, dtype="float64").fit(named())


def rows_of(known, side):
    return known.interactions_.to_csr() if side == "user" else known.interactions_.to_csr().T.tocsr()


def solved_again(known, side, weights=None):
    """The trained rows of a side, solved from their own ratings as `partial_fit` does."""
    rows = rows_of(known, side)
    return known.row_solver(side).take_in(np.arange(rows.shape[0]), rows, weights)[0]


def scores_of(known, folded, side):
    others, biases = known.item_factors_, known.item_biases_
    if side == "item":
        others, biases = known.user_factors_, known.user_biases_
    return folded.factors @ others.T + folded.biases[:, None] + biases


@pytest.mark.parametrize("side", ["user", "item"])
def test_trained_rows_are_solved_as_themselves_and_nearly_so_after_few_sweeps_and_from_draws(settled, fitted, side):
    found = solved_again(settled, side)
    np.testing.assert_allclose(found.factors, getattr(settled, f"{side}_factors_"), atol=0.01)
    np.testing.assert_allclose(found.biases, getattr(settled, f"{side}_biases_"), atol=0.01)
    expected = fitted.user_factors_ @ fitted.item_factors_.T + fitted.user_biases_[:, None] + fitted.item_biases_
    expected = expected if side == "user" else expected.T
    again = scores_of(fitted, solved_again(fitted, side), side)
    assert np.sqrt(np.mean((again - expected) ** 2)) < 0.1 * expected.std()
    rows = rows_of(fitted, side)  # new ones have a looser prior
    loose = scores_of(fitted, fitted.row_solver(side).solve(rows), side)
    errors = [(scores - rows.toarray())[rows.toarray() != 0].std() for scores in (loose, again)]
    assert errors[0] < errors[1]


def test_weighted_ratings_are_solved_as_themselves_and_fold_in_in_any_order():
    shown, _ = drawn()
    weights = np.random.default_rng(0).uniform(0.3, 3, shown.n_ratings)
    known = Interactions.from_frame(shown.to_frame().assign(weight=weights), weight="weight", allow_negative=True)
    found = posterior("variational", n_sweeps=300, dtype="float64").fit(known)
    stored = known.weights_to_csr()
    assert stored is not None
    again = solved_again(found, "user", stored.data)
    np.testing.assert_allclose(again.factors, found.user_factors_, atol=0.01)
    folded = found.fold_in(known)
    order = np.random.default_rng(1).permutation(80)  # stored in any order
    row = known.to_csr()[[3]].toarray()[0]
    chosen = order[row[order] != 0]
    mixed = sp.csr_array((row[chosen], chosen, [0, chosen.size]), shape=(1, 80))
    confidence = stored[[3]].toarray()[0, chosen]
    one = found.fold_in(mixed, weights=confidence)
    np.testing.assert_allclose(one.user_factors_[0], folded.user_factors_[3], atol=1e-9)


def test_rows_without_ratings_are_the_mean_user(fitted, model):
    for known, n_items in ((fitted, 80), (model, 30)):
        for rows in (sp.csr_array((2, n_items)), sp.csr_array(([4.0], ([1], [3])), shape=(3, n_items))):
            found = known.fold_in(rows)
            assert not found.user_factors_[0].any()
            assert found.user_biases_[0] == 0
            assert np.isfinite(found.user_factors_).all()
        assert len(known.fold_in(sp.csr_array((0, n_items))).user_factors_) == 0


def test_models_with_no_pattern_and_one_factor_fold_in():
    options = {"pattern_features": 0, "n_factors": 1}
    found = posterior("variational", n_sweeps=300, dtype="float64", **options).fit(drawn()[0])
    np.testing.assert_allclose(solved_again(found, "user").factors, found.user_factors_, atol=0.01)
    folded = found.fold_in(rows_of(found, "user")).user_factors_
    assert np.corrcoef(folded.ravel(), found.user_factors_.ravel())[0, 1] > 0.95


# -------------------------------------------------------------------- partial_fit


def score_variances(known, user):
    """The variances of a user's scores: those of the ratings without the noise."""
    arrays = known._state.equations.arrays
    pairs = np.full(len(arrays.item_noise), user), np.arange(len(arrays.item_noise))
    unit, noise = arrays.scales
    return (arrays.deviations(*pairs) / unit) ** 2 - noise * arrays.user_noise[user] * arrays.item_noise


def newcomer(n_ratings, name="new", seed=3):
    rng = np.random.default_rng(seed)
    items = rng.choice(80, n_ratings, replace=False)
    return pd.DataFrame({"user": name, "item": items, "rating": rng.normal(3, 1, n_ratings)})


def test_a_new_user_gets_its_fold_in_and_a_deviation_that_shrinks_with_its_ratings(fitted):
    folded = fitted.fold_in(newcomer(30))
    grown = copy.deepcopy(fitted).partial_fit(newcomer(30)).partial_fit(newcomer(1, "newer"))
    np.testing.assert_array_equal(grown.user_factors_[120], folded.user_factors_[0])
    assert grown.user_biases_[120] == pytest.approx(folded.user_biases_[0])
    np.testing.assert_array_equal(grown.user_factors_[:120], fitted.user_factors_)
    items = fitted.interactions_.item_ids
    variances = [score_variances(grown, user).mean() for user in (120, 121)]
    assert 0 < variances[0] < 0.7 * variances[1]
    known = [one.predict("u3", items, return_std=True)[1] for one in (fitted, grown)]
    np.testing.assert_array_equal(*known)


def test_partial_fit_solves_trained_users_with_the_prior_of_training(settled):
    rows = settled.interactions_.to_frame()
    grown = copy.deepcopy(settled).partial_fit(pd.concat([rows[rows["user"] == "u5"], newcomer(20)]))
    user = settled.interactions_.users.lookup(["u5"])[0]
    np.testing.assert_allclose(grown.user_factors_[user], settled.user_factors_[user], atol=0.01)
    np.testing.assert_array_equal(grown.user_factors_[120], settled.fold_in(newcomer(20)).user_factors_[0])


# -------------------------------------------------------------------- explanations


def shares(known, n_pairs):
    """Mean sizes of remainder, pattern and personal score; the parts have to add up."""
    rng, found = np.random.default_rng(0), []
    data = known.interactions_
    for user, item in zip(rng.choice(data.user_ids, n_pairs), rng.choice(data.item_ids, n_pairs), strict=True):
        why = known.explain(user, item)
        assert why.total() == pytest.approx(known.predict(user, item)[0], abs=1e-5)
        personal = why.pattern + why.rated_items.total + why.remainder
        found.append([why.remainder, why.pattern, personal])
    return np.abs(found).mean(axis=0)


def test_a_score_is_the_pattern_and_the_rated_items_after_few_sweeps_and_from_draws_nearly(settled, fitted):
    for known, share in ((settled, 0.01), (fitted, 0.15)):
        remainder, _, personal = shares(known, 60)
        assert remainder < share * personal
    found = settled.explain("u3", 8)  # the pattern has a line of its own
    assert "choice of items" in str(found)
    assert found.to_dict()["parts"]["pattern"] == found.pattern != 0


def test_a_user_that_was_just_solved_leaves_no_remainder(settled):
    known = copy.deepcopy(settled).partial_fit(newcomer(30))
    for item in range(0, 80, 9):
        found = known.explain("new", item)
        assert abs(found.remainder) < 1e-3
        assert found.pattern != 0


def test_a_contribution_is_linear_in_the_rating_and_the_pattern_does_not_hear_of_it(fitted):
    state, data = fitted._state, fitted.interactions_
    first = state.equations.contributions(state, 5, 7)
    place, slopes = np.flatnonzero(data.user_index == 5), []
    for step in (1.0, 2.0):
        ratings = data.ratings + step * (np.arange(data.n_ratings) == place[2])
        pairs = data.user_index, data.item_index, ratings, data.user_ids, data.item_ids
        moved = replace(state, data=Interactions(*pairs, allow_negative=True))
        second = state.equations.contributions(moved, 5, 7)
        assert second.pattern == pytest.approx(first.pattern)
        change = second.of_sources[:, 0] - first.of_sources[:, 0]
        assert np.flatnonzero(np.abs(change) > 1e-12).tolist() == [2]
        slopes.append(change[2] / step)
    assert slopes[0] == pytest.approx(slopes[1])
