"""Probabilities of the values that ratings take."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
import pandas as pd
import pytest
from model_cases import CPU

from air_recsys import AIR, Interactions
from air_recsys.datasets import load_movielens_fold
from air_recsys.exceptions import DataError, DataWarning, UnknownIdError
from air_recsys.metrics import rmse
from air_recsys.models.rating_values import RatingValues, _without_each

SMALL = CPU | {"n_factors": 2, "pattern_features": 0}
SOLVERS = ("variational", "langevin")
both = pytest.mark.parametrize("solver", SOLVERS)
CUTS = np.array([-1.2, -0.6, 0.0, 0.5])  # unequal, so that values are no equal steps


@cache
def stars(n_users=160, n_items=90, seed=0, habits=True):
    """Ratings of 1 to 5, shown and hidden ones; with habits half of the users say 4 where others say 5."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_users, 1)) @ rng.normal(size=(1, n_items)) * 0.6 + 0.6 * rng.normal(size=n_items)
    values = 1.0 + np.searchsorted(CUTS, scores + 0.7 * rng.normal(size=scores.shape))
    reserved = (np.arange(n_users) % 2 == 0)[:, None]
    values = np.where(reserved & (values == 5) & habits, 4.0, values)
    users, items = np.nonzero(rng.random(scores.shape) < 0.6)
    data = Interactions(users, items, values[users, items], range(n_users), range(n_items))
    hidden = rng.random(users.size) < 0.4
    return data.select(~hidden), data.select(hidden)


def model(solver="variational", **options):
    sweeps = {"n_sweeps": 50} if solver == "langevin" else {}
    return AIR.for_ratings(solver=solver, user_graph_reg=0, item_graph_reg=0, **SMALL | sweeps | options)


@cache
def of_stars(solver="variational"):
    """A model of ratings with habits; not to be changed."""
    return model(solver).fit(stars()[0])


@pytest.fixture(params=SOLVERS)
def fitted(request):
    return of_stars(request.param)


def loss(shares, values, truth):
    return -np.log(shares[np.arange(truth.size), np.searchsorted(values, truth)]).mean()


@both
def test_probabilities_are_those_of_the_values(solver):
    shown, hidden = stars(habits=False)
    fitted = model(solver).fit(shown)
    shares, values = fitted.predict_proba(hidden.user_index, hidden.item_index), fitted.rating_values_
    assert values.tolist() == [1, 2, 3, 4, 5]
    assert shares.shape == (hidden.n_ratings, 5)
    assert (shares > 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    for value, share in zip(values, shares.T, strict=True):
        given = hidden.ratings == value
        assert share.mean() == pytest.approx(given.mean(), abs=0.02)
        likely = share > np.quantile(share, 0.8)
        assert given[likely].mean() > 1.2 * given.mean()


def test_habits_of_users_are_known(fitted):
    hidden = stars()[1]
    shares = fitted.predict_proba(hidden.user_index, hidden.item_index)
    reserved = hidden.user_index % 2 == 0
    assert shares[reserved, 4].mean() < 0.5 * shares[~reserved, 4].mean()
    scores, deviations = fitted.predict(hidden.user_index, hidden.item_index, return_std=True)
    values = RatingValues.of(fitted._fitted())
    without = values.probabilities(scores, deviations, np.full(scores.size, -1))
    assert loss(shares, values.values, hidden.ratings) < loss(without, values.values, hidden.ratings) - 0.005


@both
def test_a_rating_left_out_is_judged_as_by_a_model_that_never_saw_it(solver):
    data = stars(40, 30)[0]
    found = model(solver).fit(data)
    some = np.random.default_rng(0).choice(data.n_ratings, 8, replace=False)
    scores, deviations = _without_each(found._fitted(), some)
    users, items = data.user_index[some], data.item_index[some]
    expected, expected_deviations = np.empty(some.size), np.empty(some.size)
    for place, rating in enumerate(some):
        other = model(solver).fit(data.select(np.arange(data.n_ratings) != rating))
        ask = other.predict(users[place], items[place], return_std=True)
        expected[place], expected_deviations[place] = (each[0] for each in ask)
    inside = found._fitted().scores(users, items, False)
    assert rmse(expected, scores) < 0.6 * rmse(expected, inside)
    np.testing.assert_allclose(deviations, expected_deviations, rtol=0.25)


def again(data, ratings=None, **columns):
    """The same pairs with other ratings, weights or timestamps."""
    values = data.ratings if ratings is None else ratings
    return Interactions(data.user_index, data.item_index, values, data.user_ids, data.item_ids, **columns)


def test_a_rating_of_weight_two_counts_twice():
    data = stars(40, 30)[0]
    state = model().fit(again(data, weights=np.full(data.n_ratings, 2.0)))._fitted()
    scores, deviations = _without_each(state, np.arange(data.n_ratings))
    assert state.equations is not None
    single = state.equations.noise(data.user_index, data.item_index)
    assert (np.square(deviations) > single / 2).all()
    assert rmse(data.ratings, scores) > rmse(data.ratings, state.scores(data.user_index, data.item_index, False))


def test_unknown_ids_have_the_probabilities_of_their_fallback_and_a_file_tells_the_same(fitted, tmp_path):
    shares = fitted.predict_proba([0, 10_000, 10_000], [10_000, 0, 10_000], unknown="mean")
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert abs(shares[2] @ fitted.rating_values_ - fitted.interactions_.ratings.mean()) < 0.3
    with pytest.raises(UnknownIdError, match="10000"):
        fitted.predict_proba(10_000, 0, unknown="error")
    loaded = AIR.load(fitted.save(tmp_path / "model.air"))
    np.testing.assert_array_equal(
        loaded.predict_proba(range(20), range(20)), fitted.predict_proba(range(20), range(20))
    )


def test_new_ratings_change_habits():
    shown, found = stars()[0], copy.copy(of_stars())
    before = found.predict_proba([0, 1], [0, 0])[:, 4]
    rated = set(shown.item_index[shown.user_index == 0].tolist())
    new = [item for item in range(shown.n_items) if item not in rated]
    found.partial_fit(pd.DataFrame({"user": 0, "item": new, "rating": 5.0}))
    after = found.predict_proba([0, 1], [0, 0])[:, 4]
    assert after[0] > 3 * before[0]
    assert after[1] == pytest.approx(before[1], rel=0.3)
    found.partial_fit(pd.DataFrame({"user": [7_000], "item": [0], "rating": [5.0]}))
    np.testing.assert_allclose(found.predict_proba(7_000, 1).sum(), 1)


@pytest.mark.parametrize(
    "values", [[0.0, 1.0], [0.5, 1.0, 4.0], np.arange(0, 10.1, 0.1), np.arange(0, 10.2, 0.1)], ids=len
)
def test_any_number_of_values_up_to_101_will_do(values):
    rng = np.random.default_rng(0)
    ratings = rng.choice(values, (30, 20))
    ratings.ravel()[: len(values)] = values
    found = model().fit(ratings + 1)
    if len(values) > 101:
        message = f"expected ratings of at most 101 values, found {len(values)}"
        with pytest.raises(DataError, match=message):
            found.predict_proba(0, 0)
        with pytest.raises(DataError, match=message):
            _ = found.rating_values_
        return
    shares = found.predict_proba(np.arange(20), np.arange(20))
    assert shares.shape == (20, found.rating_values_.size) == (20, len(values))
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1)


def test_equal_ratings_have_one_value():
    with pytest.warns(DataWarning, match="nothing tells good pairs from bad ones"):
        found = model().fit(np.full((6, 5), 3.0))
    assert found.predict_proba([0, 1], [0, 1]).tolist() == [[1.0], [1.0]]


def test_ratings_that_are_not_all_taken_tell_almost_the_same(monkeypatch):
    state = of_stars()._fitted()
    whole = RatingValues.of(state)
    monkeypatch.setattr("air_recsys.models.rating_values._MOST_RATINGS", state.data.n_ratings // 2)
    half = RatingValues.of(state)
    np.testing.assert_allclose(half.thresholds, whole.thresholds, atol=0.1)
    assert not np.array_equal(half.thresholds, whole.thresholds)


def test_times_are_part_of_what_is_known():
    data = stars(60, 40)[0]
    times = np.random.default_rng(0).integers(0, 10**6, data.n_ratings)
    found = model(time="drift").fit(again(data, timestamps=times))
    for moment in (None, 500):
        np.testing.assert_allclose(found.predict_proba([0, 1], [1, 0], timestamps=moment).sum(axis=1), 1)
    with pytest.raises(DataError, match="expected timestamps in the unit of the training"):
        found.predict_proba(0, 0, timestamps=10**15)


@pytest.mark.data
@both
def test_probabilities_and_deviations_of_movielens_are_calibrated(solver, data_root):
    train, test = load_movielens_fold(data_root, "u1")
    found = AIR.for_ratings(solver=solver, device="cpu", random_state=0).fit(train)
    pairs = test.user_ids[test.user_index], test.item_ids[test.item_index]
    shares, values = found.predict_proba(*pairs), found.rating_values_
    assert loss(shares, values, test.ratings) < 1.215
    scores, deviations = found.predict(*pairs, return_std=True)
    assert rmse(test.ratings, shares @ values) < rmse(test.ratings, scores) < 0.885
    assert 0.88 < np.mean(np.abs(scores - test.ratings) < 1.645 * deviations) < 0.92
    for value, share in zip(values, shares.T, strict=True):
        bins = np.digitize(share, np.linspace(0, 1, 11))
        gaps = [
            abs(share[bins == each].mean() - (test.ratings == value)[bins == each].mean()) * np.mean(bins == each)
            for each in np.unique(bins)
        ]
        assert sum(gaps) < 0.03


def test_new_users_have_the_values_of_the_training(fitted):
    shown = stars()[0]
    some = shown.select(shown.user_index < 3).to_frame()
    new = some.assign(user=some["user"] + 1000)
    alone, beside = fitted.fold_in(new), fitted.fold_in(new[new["user"] == 1001])
    assert alone.rating_values_.tolist() == [1, 2, 3, 4, 5]
    shares = alone.predict_proba(1001, range(20))
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(beside.predict_proba(1001, range(20)), shares, atol=0.02)  # draws know who else is new
    trained = fitted.predict_proba(1, range(20))
    assert np.abs(shares - trained).sum(axis=1).mean() < 0.35  # the same user, by the prior of new rows


def test_the_habits_of_a_new_user_are_its_own():
    generous = pd.DataFrame({"user": -1, "item": range(40), "rating": 5.0})
    average = pd.DataFrame({"user": -2, "item": range(40), "rating": np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 8)})
    between = pd.DataFrame({"user": -3, "item": [0, 1], "rating": [2.5, 4.9]})  # which count as the values beside them
    alone = of_stars().fold_in(pd.concat([generous, average, between]))
    best, others, few = (alone.predict_proba(user, range(40)) for user in (-1, -2, -3))
    np.testing.assert_allclose(few.sum(axis=1), 1)
    values = RatingValues.of(alone._fitted())
    habits = dict(zip(alone.interactions_.user_ids.tolist(), values.habits, strict=True))
    assert habits[-1][4] > 1.0 > habits[-1][:4].max()
    assert np.abs(habits[-2] - 1).max() < np.abs(habits[-1] - 1).max()
    assert best[:, 4].mean() > others[:, 4].mean()
