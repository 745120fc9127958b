"""The repr of `AIR` is a call that makes the same model."""

import numpy as np
import pytest
from model_cases import MODELS, fitted
from sklearn.base import clone

from air_recsys import AIR
from air_recsys.solvers import Adam, Langevin, Variational

NAMES = {"AIR": AIR, "Adam": Adam, "Variational": Variational, "Langevin": Langevin}
WRITTEN = [
    "AIR()",
    "AIR(device='cpu', n_factors=3)",
    "AIR(solver=Variational(n_sweeps=5))",
    "AIR.for_ratings()",
    "AIR.for_ratings(clip=False, random_state=0, n_sweeps=40)",
    "AIR.for_ratings(solver='langevin')",
    "AIR.for_ratings(graph_neighbors=None, graph_refresh=None)",
    "AIR.for_interactions(n_factors=20, n_epochs=300)",
    "AIR.for_completion(tv_reg=0.1)",
    "AIR.auto(random_state=0)",
]


@pytest.mark.parametrize("written", WRITTEN)
def test_a_model_is_shown_as_it_is_written(written):
    assert repr(eval(written, NAMES)) == written


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("AIR")])
def test_the_call_makes_the_same_model(name):
    model = MODELS[name]()
    again = eval(repr(model), NAMES)
    assert repr(again.get_params()) == repr(model.get_params())
    assert repr(clone(model)) == repr(model) == repr(fitted(MODELS[name]))


def test_lines_are_short_and_still_a_call():
    model = AIR.for_completion(n_factors=12, random_state=123456789, dtype="float64", patience=3, max_memory="16GB")
    model.set_params(validation_fraction=0.123456789, solver__learning_rate=0.01234567)
    lines = repr(model).splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= 100
    assert repr(eval(repr(model), NAMES).get_params()) == repr(model.get_params())


def test_a_shorthand_is_its_solver():
    assert repr(AIR(solver="variational")) == "AIR(solver=Variational())"


def test_what_is_no_solver_and_no_number_is_shown_too():
    assert "solver=3" in repr(AIR(solver=3))
    assert repr(AIR.for_ratings(random_state=np.random.default_rng(0))).startswith("AIR.for_ratings(random_state=Gen")
