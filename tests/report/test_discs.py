"""Communities as discs: areas, gaps, and places near those that were given."""

import numpy as np
import pytest

from air_recsys.report.content import disc_places


@pytest.fixture
def given():
    rng = np.random.default_rng(0)
    return rng.normal(size=(120, 2)), rng.integers(1, 400, 120)


def test_areas_are_as_the_sizes(given):
    _, radii = disc_places(*given)
    assert radii**2 / radii[0] ** 2 == pytest.approx(given[1] / given[1][0])


def test_no_disc_lies_over_another(given):
    centres, radii = disc_places(*given)
    distance = np.linalg.norm(centres[:, None] - centres, axis=2)
    room = distance - radii[:, None] - radii
    assert room[~np.eye(120, dtype=bool)].min() > -1e-3 * radii.mean()


def test_neighbours_stay_neighbours(given):
    centres, _ = disc_places(*given)
    before, after = (np.linalg.norm(each[:, None] - each, axis=2).ravel() for each in (given[0], centres))
    assert np.corrcoef(before, after)[0, 1] > 0.9


def test_discs_that_have_room_stay_where_they_are():
    places = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 80.0]])
    assert (disc_places(places, np.array([1, 1, 1]))[0] == places).all()


def test_no_disc_has_no_place():
    centres, radii = disc_places(np.zeros((0, 2)), np.zeros(0, dtype=int))
    assert (len(centres), len(radii)) == (0, 0)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_discs_at_one_place_part(n):
    centres, radii = disc_places(np.zeros((n, 2)), np.full(n, 3))
    assert np.isfinite(centres).all()
    assert len({tuple(place) for place in centres.round(6)}) == n
    assert (radii > 0).all()
