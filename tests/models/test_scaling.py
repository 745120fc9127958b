"""The map between ratings and what is trained on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from air_recsys.models.scaling import Scaling

ratings = st.lists(st.floats(-100, 100), min_size=1, max_size=20).map(np.array)


@given(ratings, st.booleans(), st.booleans())
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
    assert Scaling.of(np.zeros(3), center=True, scale=True) == Scaling(0.0, 1.0)
