"""Where `AIR.for_ratings()` draws: by the sizes of the data alone, unless a solver or sweeps are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from air_recsys import AIR, Interactions
from air_recsys.exceptions import ParameterError
from air_recsys.models.engines.scaling import draws_are_cheap
from air_recsys.models.solvers import Adam, Langevin, Variational

CPU: dict[str, Any] = {"device": "cpu", "random_state": 0}
SWEEPS = 80


def ratings(n_users=60, n_items=50, density=0.8):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(n_users, 2)) @ rng.normal(size=(2, n_items)) + rng.normal(size=(n_users, n_items))
    return Interactions.from_dense(np.where(rng.random(table.shape) < density, table - table.min(), np.nan))


def test_enough_ratings_of_few_rows_are_drawn_and_the_settings_say_so(tmp_path):
    model = AIR.for_ratings(**CPU).fit(ratings())
    assert isinstance(model.solver_, Langevin)
    assert {"solver": "langevin", "n_sweeps": SWEEPS}.items() <= model.settings_.items()
    assert repr(model) == "AIR.for_ratings(device='cpu', random_state=0)"
    assert len(model.history_) == SWEEPS
    asked = AIR.for_ratings(solver="langevin", **CPU).fit(ratings())
    np.testing.assert_array_equal(model.predict(0, np.arange(50)), asked.predict(0, np.arange(50)))
    model.save(tmp_path / "model.air")
    again = AIR.load(tmp_path / "model.air")
    assert again.settings_ == model.settings_
    np.testing.assert_array_equal(model.predict(0, np.arange(50)), again.predict(0, np.arange(50)))


@pytest.mark.parametrize("asked", [{"solver": "variational"}, {"n_sweeps": 12}, {"max_memory": "1KB"}])
def test_what_is_asked_for_stays(asked):
    model = AIR.for_ratings(**CPU | asked)
    assert isinstance(model.by_default(ratings()).solver, Variational)


def test_few_ratings_and_many_rows_are_not_drawn():
    few = ratings(density=0.3)
    model = AIR.for_ratings(**CPU).fit(few)
    assert isinstance(model.solver_, Variational)
    assert model.settings_["n_sweeps"] == 12
    assert "solver" not in model.settings_
    assert draws_are_cheap(ratings(), 20, SWEEPS)
    assert not draws_are_cheap(few, 20, SWEEPS)
    assert not draws_are_cheap(ratings(), 0, SWEEPS)
    assert not draws_are_cheap(ratings(), 20, 100 * SWEEPS)
    assert not draws_are_cheap(ratings(), 2000, SWEEPS)


def test_a_checkpoint_goes_on_with_draws(tmp_path):
    whole = AIR.for_ratings(**CPU).fit(ratings())
    file = tmp_path / "state"
    AIR.for_ratings(**CPU).fit(ratings(), checkpoint=file, every=10, callbacks=[lambda record: record.epoch == 30])
    resumed = AIR.for_ratings(**CPU).fit(ratings(), resume_from=file)
    np.testing.assert_array_equal(whole.predict(0, np.arange(50)), resumed.predict(0, np.arange(50)))


def test_automatic_sweeps_are_for_the_approximation_alone():
    with pytest.raises(ParameterError, match="n_sweeps"):
        AIR(solver=Langevin(n_sweeps="auto"), n_factors=3).check_parameters()
    with pytest.raises(ParameterError, match="n_sweeps"):
        AIR.for_ratings(solver=Adam(), n_sweeps="auto")
