"""Single rows of models with a posterior: fold-in, partial_fit and explanations follow its own equations."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from test_posterior_models import SOLVERS, drawn, model

from air_recsys import AIR, Interactions
from air_recsys.datasets import load_movielens


@pytest.fixture(scope="module", params=SOLVERS)
def fitted(request):
    """A model of either solver; not to be changed."""
    return model(request.param, n_sweeps=100).fit(drawn()[0])


@pytest.fixture(scope="module")
def settled():
    """A variational model whose sweeps have converged; not to be changed."""
    return model("variational", n_sweeps=300, dtype="float64").fit(drawn()[0])


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


def scores(known):
    return known.user_factors_ @ known.item_factors_.T + known.user_biases_[:, None] + known.item_biases_


@pytest.mark.parametrize("side", ["user", "item"])
def test_trained_rows_are_solved_as_themselves(settled, side):
    found = solved_again(settled, side)
    np.testing.assert_allclose(found.factors, getattr(settled, f"{side}_factors_"), atol=0.01)
    np.testing.assert_allclose(found.biases, getattr(settled, f"{side}_biases_"), atol=0.01)


@pytest.mark.parametrize("side", ["user", "item"])
def test_trained_rows_are_solved_close_to_themselves_after_few_sweeps_and_from_draws(fitted, side):
    expected = scores(fitted) if side == "user" else scores(fitted).T
    found = scores_of(fitted, solved_again(fitted, side), side)
    assert np.sqrt(np.mean((found - expected) ** 2)) < 0.1 * expected.std()


@pytest.mark.parametrize("side", ["user", "item"])
def test_new_rows_have_a_looser_prior_than_trained_ones(fitted, side):
    rows = rows_of(fitted, side)
    errors = [
        (scores_of(fitted, found, side) - rows.toarray())[rows.toarray() != 0].std()
        for found in (fitted.fold_in(rows, side=side), solved_again(fitted, side))
    ]
    assert errors[0] < errors[1]


def test_weighted_ratings_are_solved_as_themselves_and_fold_in_in_any_order():
    shown, _ = drawn()
    weights = np.random.default_rng(0).uniform(0.3, 3, shown.n_ratings)
    known = Interactions.from_frame(shown.to_frame().assign(weight=weights), weight="weight", allow_negative=True)
    found = model("variational", n_sweeps=300, dtype="float64").fit(known)
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
    np.testing.assert_allclose(found.fold_in(mixed, weights=confidence).factors[0], folded.factors[3], atol=1e-9)


def test_the_company_does_not_matter(fitted):
    rows = rows_of(fitted, "user")
    whole, alone = fitted.fold_in(rows), fitted.fold_in(rows[[7]])
    np.testing.assert_allclose(alone.factors[0], whole.factors[7], atol=1e-6)
    np.testing.assert_allclose(alone.biases[0], whole.biases[7], atol=1e-6)


def test_rows_without_ratings_are_the_mean_user(fitted):
    for rows in (sp.csr_array((2, 80)), sp.csr_array(([4.0], ([1], [3])), shape=(3, 80))):
        found = fitted.fold_in(rows)
        assert not found.factors[0].any()
        assert found.biases[0] == 0
        assert np.isfinite(found.factors).all()
    assert len(fitted.fold_in(sp.csr_array((0, 80))).factors) == 0


def test_a_loaded_model_folds_in_alike(fitted, tmp_path):
    loaded = AIR.load(fitted.save(tmp_path / "model.air"))
    for side in ("user", "item"):
        one, two = (known.fold_in(rows_of(fitted, side), side=side) for known in (fitted, loaded))
        np.testing.assert_array_equal(one.factors, two.factors)
        np.testing.assert_array_equal(one.biases, two.biases)


@pytest.mark.parametrize("options", [{"pattern_features": 0}, {"n_factors": 1}])
def test_models_with_no_pattern_or_one_factor_fold_in(options):
    found = model("variational", n_sweeps=300, dtype="float64", **options).fit(drawn()[0])
    np.testing.assert_allclose(solved_again(found, "user").factors, found.user_factors_, atol=0.01)
    folded = found.fold_in(rows_of(found, "user")).factors
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


def strings(data):
    """The same data with users that can have a name."""
    table = data.to_frame()
    return Interactions.from_frame(table.assign(user="u" + table["user"].astype(str)), allow_negative=True)


@pytest.fixture(params=SOLVERS)
def named(request):
    return model(request.param, n_sweeps=100).fit(strings(drawn()[0]))


def test_a_new_user_gets_its_fold_in_and_a_deviation_that_shrinks_with_its_ratings(named):
    folded = named.fold_in(newcomer(30))
    grown = copy.deepcopy(named).partial_fit(newcomer(30)).partial_fit(newcomer(1, "newer"))
    np.testing.assert_array_equal(grown.user_factors_[120], folded.factors[0])
    assert grown.user_biases_[120] == pytest.approx(folded.biases[0])
    np.testing.assert_array_equal(grown.user_factors_[:120], named.user_factors_)
    items = named.interactions_.item_ids
    variances = [score_variances(grown, user).mean() for user in (120, 121)]
    assert 0 < variances[0] < 0.7 * variances[1]
    known = [one.predict("u3", items, return_std=True)[1] for one in (named, grown)]
    np.testing.assert_array_equal(*known)


def test_new_items_come_in_through_the_posterior(named):
    table = drawn()[0].to_frame()
    twin = table["item"].mode()[0]
    column = table[table["item"] == twin]
    again = column.assign(user="u" + column["user"].astype(str), item=1000)
    grown = copy.deepcopy(named).partial_fit(again)
    users = named.interactions_.user_ids
    first, second = (grown.predict(users, item) for item in (twin, 1000))
    assert np.corrcoef(first, second)[0, 1] > 0.9
    assert np.isfinite(grown.predict(users, 1000, return_std=True)[1]).all()


def test_a_model_with_new_rows_is_kept_in_a_file(named, tmp_path):
    grown = named.partial_fit(newcomer(5))
    loaded = AIR.load(grown.save(tmp_path / "model.air"))
    items = named.interactions_.item_ids
    for one, two in zip(*(known.predict("new", items, return_std=True) for known in (grown, loaded)), strict=True):
        np.testing.assert_array_equal(one, two)


def test_partial_fit_solves_trained_users_with_the_prior_of_training():
    known = model("variational", n_sweeps=300, dtype="float64").fit(strings(drawn()[0]))
    rows = known.interactions_.to_frame()
    grown = copy.deepcopy(known).partial_fit(pd.concat([rows[rows["user"] == "u5"], newcomer(20)]))
    user = known.interactions_.users.lookup(["u5"])[0]
    np.testing.assert_allclose(grown.user_factors_[user], known.user_factors_[user], atol=0.01)
    np.testing.assert_array_equal(grown.user_factors_[120], known.fold_in(newcomer(20)).factors[0])


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


def test_a_score_is_the_pattern_and_the_rated_items(settled):
    remainder, _, personal = shares(settled, 60)
    assert remainder < 0.01 * personal


def test_few_sweeps_and_draws_leave_a_small_remainder(fitted):
    remainder, _, personal = shares(fitted, 60)
    assert remainder < 0.15 * personal


def test_a_user_that_was_just_solved_leaves_no_remainder():
    known = model("variational", dtype="float64").fit(strings(drawn()[0])).partial_fit(newcomer(30))
    for item in range(0, 80, 9):
        found = known.explain("new", item)
        assert abs(found.remainder) < 1e-3
        assert found.pattern != 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_contribution_is_linear_in_the_rating_and_the_pattern_does_not_hear_of_it(solver):
    known = model(solver, n_sweeps=50).fit(drawn()[0])
    state = known._state
    first = state.equations.contributions(state, 5, 7)
    place = np.flatnonzero(known.interactions_.user_index == 5)
    ratings = known.interactions_.ratings.copy()
    slopes = []
    for step in (1.0, 2.0):
        changed = ratings.copy()
        changed[place[2]] += step
        data = known.interactions_
        moved = Interactions(
            data.user_index, data.item_index, changed, data.user_ids, data.item_ids, allow_negative=True
        )
        second = state.equations.contributions(replace(state, data=moved), 5, 7)
        assert second.pattern == pytest.approx(first.pattern)
        change = second.of_sources[:, 0] - first.of_sources[:, 0]
        assert np.flatnonzero(np.abs(change) > 1e-12).tolist() == [2]
        slopes.append(change[2] / step)
    assert slopes[0] == pytest.approx(slopes[1])


def test_the_pattern_has_a_line_of_its_own(settled):
    found = settled.explain(3, 8)
    assert "choice of items" in str(found)
    assert found.to_dict()["parts"]["pattern"] == found.pattern != 0


@pytest.mark.data
def test_movielens_is_explained_and_folded_in(data_root):
    options = {"user_graph_reg": 0.0, "item_graph_reg": 0.0, "device": "cpu", "random_state": 0}
    known = AIR.for_ratings(**options).fit(load_movielens(data_root, "100k"))
    remainder, pattern, personal = shares(known, 1000)
    assert remainder < 0.02 * personal
    assert pattern > 0.1 * personal
    for side in ("user", "item"):
        own, others = known.user_factors_, known.item_factors_
        own, others = (own, others) if side == "user" else (others, own)
        gap = (solved_again(known, side).factors - own) @ others.T
        assert np.abs(gap).mean() < 0.02 * np.abs(own @ others.T).mean()  # a half after 30 sweeps
