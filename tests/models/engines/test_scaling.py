"""The map between ratings and what is trained on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from air_recsys import AIR, Interactions
from air_recsys.models.engines.scaling import Scaling, width_of

ratings = st.lists(st.floats(-100, 100), min_size=1, max_size=20).map(np.array)


SCALES = [False, True, "deviation"]


@given(ratings, st.booleans(), st.sampled_from(SCALES))
def test_the_map_is_undone_by_its_mean_and_unit(values, center, scale):
    scaling = Scaling.of(values, center=center, scale=scale)
    assert scaling.unit > 0
    np.testing.assert_allclose(scaling.mean + scaling.unit * scaling.forward(values), values, atol=1e-9)


@given(ratings)
def test_only_what_is_asked_for_is_done(values):
    assert Scaling.of(values, center=False, scale=False) == Scaling(0.0, 1.0)
    assert Scaling.of(values, center=True, scale=False).mean == pytest.approx(values.mean())
    if values.any():
        assert np.abs(Scaling.of(values, center=False, scale=True).forward(values)).max() == pytest.approx(1)


def test_ratings_of_zero_have_unit_one():
    for scale in SCALES:
        assert Scaling.of(np.zeros(3), center=True, scale=scale) == Scaling(0.0, 1.0)


def test_the_deviation_is_that_of_movielens_in_the_unit_of_its_name():
    values = np.array([1.0, 2.0, 5.0])
    assert Scaling.of(values, center=True, scale="deviation").forward(values).std() == pytest.approx(1.126)


@pytest.mark.parametrize("scale", [True, "deviation"])
@pytest.mark.parametrize("values", [[1.0, 2.0, 5.0], [3.0, 3.0]])
def test_the_unit_goes_with_the_ratings(scale, values):
    plain, large = (Scaling.of(factor * np.array(values), center=False, scale=scale).unit for factor in (1, 1e30))
    assert large == pytest.approx(1e30 * plain)


def random_pairs(shape, n_ratings):
    """Interactions of a shape with so many ratings at random pairs."""
    pairs = np.random.default_rng(0).choice(shape[0] * shape[1], n_ratings, replace=False)
    users, items = np.divmod(pairs, shape[1])
    ratings = 1.0 + np.arange(n_ratings) % 5
    return Interactions(users, items, ratings, np.arange(shape[0]), np.arange(shape[1]))


def test_the_width_grows_with_the_ratings_of_a_row_within_bounds():
    sizes = (100, 2000, 4500, 12_000, 20_000)
    widths = [width_of("auto", random_pairs((100, 200), n_ratings), by_size=True) for n_ratings in sizes]
    assert widths == [0, 20, 20, 20, 33]  # 100 ratings of 300 users and items are scarce
    assert width_of("auto", random_pairs((200, 300), 60_000), by_size=True) == 40
    turned = [width_of("auto", random_pairs(shape, 15_000), by_size=True) for shape in ((100, 200), (200, 100))]
    assert turned == [25, 25]


def test_a_width_that_is_given_stays():
    data = random_pairs((200, 300), 60_000)
    assert [width_of(n, data, by_size=True) for n in (3, np.int64(50), None)] == [3, 50, None]
    assert width_of("auto", data, by_size=False) == 20


@pytest.mark.parametrize(
    ("solver", "n_users", "width"), [("adam", 30, 20), ("variational", 30, 20), ("langevin", 8, 8)]
)
def test_a_fit_has_that_width_and_a_posterior_at_most_that_of_the_data(solver, n_users, width):
    steps = {"n_epochs": 1} if solver == "adam" else {"n_sweeps": 1}
    options = {"solver": solver, "device": "cpu", "random_state": 0} | steps
    found = AIR.for_ratings(**options).fit(random_pairs((n_users, 40), 200))
    assert found.item_factors_.shape == (40, width)
    assert found.get_params()["n_factors"] == "auto"
