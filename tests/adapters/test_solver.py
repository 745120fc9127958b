"""`solver_for`: the solver behind "auto"."""

import numpy as np
import pytest

from air_recsys import AIR
from air_recsys.adapters.solver import solver_for
from air_recsys.exceptions import ParameterError

RATINGS = np.random.default_rng(0).integers(1, 6, (6, 5)).astype(float)
NEEDS_ADAM = [
    {"n_factors": None},
    {"biases": False},
    {"center": False},
    {"n_factors": None, "transforms": [("blocks:2", 1e-5)]},
    {"transforms": [("blocks:2", 1e-5)]},
    {"tv_reg": 0.1},
    {"unobserved_weight": 0.1},
    {"patience": 2},
    {"stopping_delta": 0.1},
]


def of(**changes):
    return solver_for(AIR.for_ratings(**{"solver": "auto"} | changes).get_params())


def test_auto_is_the_solver_of_the_preset():
    assert of() == AIR.for_ratings().solver == "variational"
    assert of(n_factors=np.int64(3), biases=np.True_, tv_reg=np.float64(0), solver=np.str_("auto")) == "variational"
    assert of(validation_fraction=0.2, scale=True, depth=3, weight_decay=1.0, adjacency="global_sum") == "variational"


@pytest.mark.parametrize("changes", NEEDS_ADAM)
def test_auto_is_adam_where_a_setting_is_about_trained_scores(changes):
    assert of(**changes) == "adam"


def test_auto_is_adam_where_the_host_stops_the_training():
    assert solver_for(AIR.for_ratings(solver="auto").get_params(), stops_early=True) == "adam"


@pytest.mark.parametrize("changes", [{}, *NEEDS_ADAM])
@pytest.mark.parametrize("solver", ["adam", "variational", "langevin", "sgd"])
def test_a_solver_that_is_named_stays(solver, changes):
    assert of(solver=solver, **changes) == solver


@pytest.mark.parametrize(
    "changes", [{"biases": "no"}, {"tv_reg": "much"}, {"unobserved_weight": -1.0}, {"patience": "long"}]
)
def test_values_out_of_range_are_left_to_the_model(changes):
    with pytest.raises(ParameterError, match=next(iter(changes))):
        AIR.for_ratings(n_factors=2, device="cpu", solver=of(**changes), **changes).fit(RATINGS)


def test_auto_resolves_to_what_the_model_takes():
    for changes in [{}, {"validation_fraction": 0.2}, {"scale": True, "depth": 3}, {"adjacency": "global_sum"}]:
        given = {"n_factors": 2, "n_epochs": 2, "device": "cpu", "graph_neighbors": None} | changes
        model = AIR.for_ratings(**given, solver=of(**given), n_sweeps=2, random_state=0).fit(RATINGS)
        assert model.solver == "variational"
