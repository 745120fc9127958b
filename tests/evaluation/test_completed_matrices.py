"""Masks that leak nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from air_recsys.evaluation.completion import hide
from air_recsys.exceptions import ParameterError


def shown(data):
    return ~np.isnan(data.observed.to_dense())


@given(
    st.integers(0, 2**31),
    st.integers(10, 30),
    st.integers(10, 30),
    st.floats(0.05, 0.8),
    st.floats(0.05, 0.5),
    st.booleans(),
)
@settings(max_examples=40)
def test_hidden_entries_are_never_shown_and_never_asked_for_in_validation(seed, m, n, share, validation, binary):
    truth = np.random.default_rng(seed).random((m, n))
    truth = (truth < 0.3).astype(float) if binary else truth
    test, chosen = hide(truth, share, seed), hide(truth, share, seed, validation)
    assert (shown(test) == ~test.asked).all()
    assert not (chosen.asked & test.asked).any()
    assert not (shown(chosen) & (test.asked | chosen.asked)).any()
    assert (shown(chosen) | chosen.asked | test.asked).all()
    for data in (test, chosen):
        assert (data.observed.to_dense()[shown(data)] == truth[shown(data)]).all()
        assert data.truth is truth


def test_the_shares_are_those_asked_for_and_the_seed_decides():
    truth = np.ones((300, 300))
    assert hide(truth, 0.7, 0).asked.mean() == pytest.approx(0.7, abs=0.01)
    assert hide(truth, 0.7, 0, 0.1).asked.mean() == pytest.approx(0.03, abs=0.005)
    first, again, other = (hide(truth, 0.5, seed).asked for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize(
    ("given", "message"),
    [((0, 0), "share"), ((1, 0), "share"), ((float("nan"), 0), "share")]
    + [((0.5, 0, validation), "validation") for validation in (-0.1, 1, float("nan"))],
)
def test_shares_out_of_range_never_fall_back_to_the_hidden_entries(given, message):
    with pytest.raises(ParameterError, match=f"{message} must be a number"):
        hide(np.ones((5, 5)), *given)
