"""`solver_for`: the solver behind "auto"."""

import pytest

from air_recsys import AIR
from air_recsys.models.presets import PRESETS
from air_recsys.models.solvers import Adam, parameter_names, solver_for

OF_ADAM = sorted(set(parameter_names(Adam)) - {"user_graph_reg", "item_graph_reg"})


def test_auto_is_the_solver_of_the_preset():
    for settings in ({}, {"n_sweeps": 3}, {"n_factors": 5, "clip": False, "adjacency": "global_sum"}):
        assert solver_for(settings) == PRESETS["ratings"].solver == "variational"
    assert solver_for({"user_graph_reg": 0, "item_graph_reg": "auto"}) == "variational"


@pytest.mark.parametrize("name", OF_ADAM)
def test_auto_is_adam_where_a_setting_is_read_by_adam_alone(name):
    assert solver_for({"n_factors": 3, name: None}) == "adam"


@pytest.mark.parametrize("settings", [{"n_factors": None}, {"user_graph_reg": 1e-3}, {"item_graph_reg": 0.5}])
def test_auto_is_adam_for_full_width_and_for_strengths(settings):
    assert solver_for(settings) == "adam"


@pytest.mark.parametrize("settings", [{}, {"depth": 3}, {"n_factors": None}, {"user_graph_reg": 1e-3}])
def test_what_auto_chooses_reads_every_setting(settings):
    model = AIR.for_ratings(solver=solver_for(settings), **settings)
    parameters = model.get_params()
    for name, value in settings.items():
        assert parameters.get(name, parameters.get(f"solver__{name}")) == value
