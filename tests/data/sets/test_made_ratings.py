"""Generators keep their promises at every size: counts, groups, long tails, and a known noise floor."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from air_recsys.data.sets.planted import make_planted_ratings
from air_recsys.datasets import make_syn_netflix
from air_recsys.exceptions import ParameterError
from air_recsys.metrics import rmse
from air_recsys.models import BiasModel


@settings(max_examples=40)
@given(st.data())
def test_any_sizes_of_planted_ratings(data):
    n_users, n_items = data.draw(st.integers(4, 40)), data.draw(st.integers(4, 40))
    least, most = n_users + n_items, n_users * n_items // 2
    if least > most:
        return
    n_ratings = data.draw(st.integers(least, most))
    groups = data.draw(st.integers(1, n_users)), data.draw(st.integers(1, n_items))
    star = data.draw(st.sampled_from([0.5, 1.0]))
    found = make_planted_ratings(n_users, n_items, n_ratings, *groups, data.draw(st.integers(0, 99)), star=star)
    ratings = found.interactions
    assert (ratings.n_users, ratings.n_items, ratings.n_ratings) == (n_users, n_items, n_ratings)
    pairs = ratings.user_index * n_items + ratings.item_index
    assert (np.diff(pairs) > 0).all()  # by user, then item, none twice
    assert np.bincount(ratings.user_index, minlength=n_users).min() >= 1
    assert np.bincount(ratings.item_index, minlength=n_items).min() >= 1
    assert np.isin(ratings.ratings, np.arange(1, 5.01, star)).all()
    assert found.expected.shape == (n_ratings,)
    for labels, size, n_groups in ((found.user_groups, n_users, groups[0]), (found.item_groups, n_items, groups[1])):
        counts = np.bincount(labels, minlength=n_groups)
        assert labels.shape == (size,)
        assert counts.size == n_groups
        assert np.ptp(counts) <= 1


MAKERS = {
    "Syn-Netflix": lambda seed: make_syn_netflix(random_state=seed).matrix,
    "planted": lambda seed: make_planted_ratings(60, 50, 900, 3, 2, random_state=seed).interactions.to_dense(),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_seed_decides_and_global_state_is_untouched(make):
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first, again, other = map(make, (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other, equal_nan=True)
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


@pytest.mark.parametrize("star", [0.5, 1.0])
def test_the_expected_rating_is_the_mean_of_the_drawn_ones(star):
    found = make_planted_ratings(600, 400, 60_000, 5, 4, random_state=0, star=star)
    error = found.interactions.ratings - found.expected
    for low in np.arange(1.5, 4.5, 0.5):  # no bias at any level
        part = error[(found.expected >= low) & (found.expected < low + 0.5)]
        assert abs(part.mean()) < 4 * part.std() / np.sqrt(part.size)
    exact = make_planted_ratings(60, 50, 900, 3, 2, noise=1e-6)
    np.testing.assert_allclose(exact.expected, exact.interactions.ratings, atol=1e-5)


def test_groups_drive_the_ratings_and_activity_and_popularity_have_long_tails():
    made = make_planted_ratings(800, 500, 40_000, 10, 8, random_state=1)
    ratings = made.interactions
    floor, biases = rmse(ratings.ratings, made.expected), BiasModel().fit(ratings)
    residual = ratings.ratings - biases.predict(ratings.user_ids[ratings.user_index], ratings.item_index)
    cell = made.user_groups[ratings.user_index] * 8 + made.item_groups[ratings.item_index]
    table = np.bincount(cell, residual, minlength=80) / np.bincount(cell, minlength=80)
    explained = rmse(residual, table[cell])
    assert floor < explained < rmse(residual, np.zeros_like(residual)) - 0.05
    for index, size in ((ratings.user_index, 800), (ratings.item_index, 500)):
        counts = np.sort(np.bincount(index, minlength=size))[::-1]
        assert counts[: size // 10].sum() > 0.25 * counts.sum()
        assert counts[0] > 4 * np.median(counts)


@pytest.mark.parametrize(
    ("make", "wrong", "message"),
    [
        (make_planted_ratings, {"n_ratings": 109}, r"between n_users \+ n_items, 110, .* found 109"),
        (make_planted_ratings, {"n_ratings": 1501}, "half of all pairs, 1500, found 1501"),
        (make_planted_ratings, {"n_user_groups": 61}, "n_user_groups must be at most n_users=60, found 61"),
        (make_planted_ratings, {"n_item_groups": 0}, "n_item_groups must be an integer >= 1"),
        (make_planted_ratings, {"noise": 0.0}, "noise must be a number > 0"),
        (make_planted_ratings, {"star": 0.25}, r"star must be one of 0\.5, 1\.0"),
        (make_syn_netflix, {"n_item_groups": 201}, "n_item_groups"),
        (make_syn_netflix, {"n_items": 2.5}, "n_items"),
    ],
)
def test_impossible_sizes(make, wrong, message):
    sizes = {"n_users": 60, "n_items": 50, "n_ratings": 900} if make is make_planted_ratings else {}
    with pytest.raises(ParameterError, match=message):
        make(**sizes | wrong)
