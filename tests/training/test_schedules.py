"""The step size over the course of training."""

import numpy as np
import pytest

from air_recsys.training import SCHEDULES

PROGRESS = np.linspace(0, 1, 101)


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_starts_at_one_and_never_rises(name):
    shares = np.array([SCHEDULES[name](progress) for progress in PROGRESS])
    assert shares[0] == 1
    assert (np.diff(shares) <= 1e-15).all()
    assert (shares >= 0).all()


@pytest.mark.parametrize("name", ["cosine", "linear", "cooldown"])
def test_falling_schedules_end_at_zero(name):
    assert SCHEDULES[name](1.0) == pytest.approx(0, abs=1e-15)


def test_known_values():
    assert {SCHEDULES["constant"](progress) for progress in PROGRESS} == {1.0}
    assert SCHEDULES["cosine"](0.5) == pytest.approx(0.5)
    assert SCHEDULES["linear"](0.25) == 0.75
    assert SCHEDULES["cooldown"](0.6) == 1
    assert SCHEDULES["cooldown"](0.8) == pytest.approx(0.5)
    assert SCHEDULES["cooldown"](0.61) < 1
