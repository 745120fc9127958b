"""Every parameter of every trained model has an effect that can be seen, or is refused."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
from model_cases import USERS, all_scores, frame

from air_recsys import AIR, DMF
from air_recsys.exceptions import AirRecsysError, ParameterError, ParameterWarning
from air_recsys.models import RDMF, DirichletDMF
from air_recsys.models.presets import PRESETS, routed
from air_recsys.models.solvers import SOLVERS, Adam, Langevin, Variational, as_solver, parameter_names
from air_recsys.models.trained import TrainedRecommender

CPU: dict[str, Any] = {"device": "cpu", "random_state": 0}
SHORT: dict[str, Any] = {"n_epochs": 6, "init_std": 0.1, "evaluate_every": 2, **CPU}
START: dict[str, TrainedRecommender] = {
    "adam": AIR.for_ratings(solver="adam", n_factors=3, graph_neighbors=3, graph_refresh=2, **SHORT),
    "variational": AIR.for_ratings(n_factors=3, graph_neighbors=3, graph_refresh=2, n_sweeps=6, **CPU),
    "langevin": AIR.for_ratings(solver="langevin", n_factors=3, graph_neighbors=3, graph_refresh=2, n_sweeps=6, **CPU),
    "DMF": DMF(n_factors=3, **SHORT),
    "RDMF": RDMF(tv_reg=1e-6, **SHORT),
    "DirichletDMF": DirichletDMF(n_neighbors=3, n_factors=3, **SHORT),
}
WATCHED: dict[str, Any] = {"validation_fraction": 0.3, "random_state": 0, "learning_rate": 1.0, "n_sweeps": 40}
LOOSE: dict[str, Any] = {"clip": False, "n_epochs": 300, "learning_rate": 0.05, "weight_decay": 0.0, "n_sweeps": 60}
LOOSE |= {"n_batches": 1, "user_graph_reg": 0, "item_graph_reg": 0}
ALL_PAIRS: dict[str, Any] = {"graph_neighbors": None, "graph_refresh": None}
FULL_WIDTH: dict[str, Any] = {"n_factors": None, "n_batches": 1}
PLAIN: dict[str, Any] = {"biases": False, "center": False, "bias_decay": 0.0}
# Of each parameter: another value, and what has to be set for it to count.
CHANGES: dict[str, tuple[Any, dict[str, Any]]] = {
    "n_factors": (2, {}),
    "adjacency": ("global_sum", ALL_PAIRS),
    "graph_neighbors": (1, {}),
    "graph_refresh": (5, {}),
    "pattern_graphs": (False, {}),
    "snapshot_epochs": ((1,), {}),
    "validation_fraction": (0.3, {}),
    "patience": (1, WATCHED),
    "clip": (True, LOOSE),
    "dtype": ("float64", {}),
    "device": ("cuda:7", {}),
    "random_state": (1, {}),
    "max_memory": (1000, {}),
    "verbose": (True, {}),
    "depth": (4, {}),
    "n_epochs": (8, {}),
    "n_batches": (2, {"n_batches": 1}),
    "learning_rate": (0.03, {}),
    "schedule": ("linear", {}),
    "weight_decay": (3.0, {}),
    "bias_decay": (3.0, {"biases": True}),
    "biases": (True, PLAIN),
    "center": (True, PLAIN),
    "scale": (False, {"scale": True}),
    "unobserved_weight": (0.3, PLAIN),
    "init_mean": (0.05, {}),
    "init_std": (0.2, {}),
    "stopping_delta": (1e9, {}),
    "evaluate_every": (3, {}),
    "user_graph_reg": (0, {}),
    "item_graph_reg": (0, {}),
    "graph_rate": (2.0, {}),
    "graph_every": (3, ALL_PAIRS),
    "transforms": ([("columns", 1e-2)], FULL_WIDTH),
    "tv_reg": (0.1, FULL_WIDTH),
    "n_sweeps": (4, {}),
    "pattern_features": (1, {}),
    "time": ("drift", {}),
    "user_graph_strength": (0.3, {}),
    "item_graph_strength": (0.3, {}),
    "user_graph": (None, {}),
    "item_graph": (None, {}),
    "n_neighbors": (1, {}),
}
# A posterior knows the pattern: this shows where nodes lack learned edges (tests/models/test_scarce_ratings.py).
OF_SCARCE = {("variational", "pattern_graphs"), ("langevin", "pattern_graphs")}
# Of these tests/models/settings has the tests: they need data that are large enough to hide a part of.
SEARCH = {"settings", "search_budget"}


def names_of(model: TrainedRecommender) -> list[str]:
    """The parameters that can be set on a model, those of its solver included, the solver itself not."""
    own = [name for name in parameter_names(type(model)) if name != "solver" and name not in SEARCH]
    return own + (parameter_names(type(as_solver(model.solver))) if isinstance(model, AIR) else [])


def changed(model: TrainedRecommender, **values: Any) -> Any:
    """A copy of a model with other values of the parameters that it has."""
    names = names_of(model)
    mine = {name: value for name, value in values.items() if name in names}
    copy: Any = type(model)(**model.get_params(deep=False))
    if isinstance(copy, AIR):
        copy.solver = type(copy.solver)(**copy.solver.get_params())
    return copy.set_params(**routed(copy, mine))


def seen(model: Any, output: Any) -> list[Any]:
    """All that can be seen of a fit: what it says, or the model, its course, its graphs and its lists."""
    output.readouterr()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(frame())
    except AirRecsysError as error:
        return [str(error)]
    graphs = [*model.snapshots_.values(), (model.user_graph_, model.item_graph_, model.transform_graphs_)]
    matrices = [
        None if graph is None else graph.to_scipy().toarray().tolist()
        for users, items, others in graphs
        for graph in (users, items, *others)
    ]
    history = model.history_.drop(columns="seconds").fillna(-1.0).to_numpy().tolist()
    alike = model.similar_users(USERS[0], 5).to_numpy().tolist()
    return [all_scores(model).tolist(), history, matrices, alike, model.stopped_by_, output.readouterr().err != ""]


CASES = [(kind, name) for kind, model in START.items() for name in names_of(model)]
SEEN = [case for case in CASES if case not in OF_SCARCE]


def test_every_parameter_is_known_here():
    assert {name for _, name in CASES} == set(CHANGES)


@pytest.mark.parametrize(("kind", "name"), SEEN)
def test_a_change_can_be_seen(kind, name, capfd):
    value, needs = CHANGES[name]
    before = changed(START[kind], **needs)
    after = changed(before, **{name: value})
    assert seen(after, capfd) != seen(before, capfd)


# -------------------------------------------------------------------- what has no effect cannot be said


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (AIR.for_ratings(patience=3), "patience needs a validation part, found validation_fraction=0"),
        (AIR.for_ratings(solver="adam", patience=3), "patience needs a validation part"),
    ],
)
def test_what_nothing_reads_is_refused_before_any_work(model, message):
    with pytest.raises(ParameterError, match=message):
        model.fit(frame())
    assert not hasattr(model, "user_factors_")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (AIR.for_completion(graph_refresh=5, n_epochs=2, **CPU), "graph_refresh=5 has no effect: it needs sparse"),
        (AIR.for_ratings(graph_neighbors=None, graph_refresh=5, **CPU), "graph_refresh=5 has no effect"),
        (AIR.for_completion(bias_decay=0.1, n_epochs=2, **CPU), "bias_decay=0.1 has no effect: it needs biases=True"),
        (DMF(bias_decay=0.1, n_epochs=2, **CPU), "bias_decay=0.1 has no effect"),
    ],
)
def test_what_others_turn_off_is_said(model, message):
    with pytest.warns(ParameterWarning, match=message):
        model.fit(frame())


@pytest.mark.parametrize("preset", PRESETS)
def test_what_turns_something_off_takes_its_settings_along(preset):
    for solver, kind in SOLVERS.items():
        few = {"n_sweeps": 2} if "n_sweeps" in parameter_names(kind) else {"n_epochs": 2, "biases": False}
        AIR.of_preset(preset, solver=solver, n_factors=2, graph_neighbors=None, **few, **CPU).fit(frame())


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_presets_hold_nothing_that_nobody_reads(preset):
    assert set(preset.model) <= set(parameter_names(AIR)) - {"solver"}
    for solver, values in preset.solvers.items():
        assert set(values) <= set(parameter_names(SOLVERS[solver]))


@pytest.mark.parametrize(
    ("preset", "overrides", "message"),
    [
        ("ratings", {"learning_rate": 1e6}, "Variational does not read learning_rate, Adam does: .*solver='adam'"),
        ("ratings", {"scale": True}, "Variational does not read scale, Adam does"),
        ("ratings", {"solver": "langevin", "depth": 3}, "Langevin does not read depth, Adam does"),
        ("completion", {"n_sweeps": 3}, "Adam does not read n_sweeps, Variational and Langevin do: .*'variational'"),
        ("ratings", {"solver": Langevin(), "n_batches": 3}, "Langevin does not read n_batches, Adam does"),
        (
            "ratings",
            {"n_sweps": 3},
            "no parameter of AIR or of its solvers is called 'n_sweps'; do you mean n_sweeps?",
        ),
        ("ratings", {"xyzzy": 3}, "is called 'xyzzy'; Variational has n_sweeps, pattern_features"),
        ("ratings", {"solver": "gibbs"}, "solver must be 'adam', 'variational', 'langevin' or an object such as"),
        ("ratings", {"solver": Adam}, "solver must be .*, found <class"),
        ("films", {}, "preset must be one of 'completion', 'interactions', 'ratings', found 'films'"),
    ],
)
def test_an_override_that_is_not_read_names_who_reads_it(preset, overrides, message):
    with pytest.raises(ParameterError, match=message):
        AIR.of_preset(preset, **overrides)


def test_a_parameter_of_a_solver_given_to_the_model_says_where_it_belongs():
    with pytest.raises(
        ParameterError, match=r"learning_rate is a parameter of the solver Adam: expected AIR\(solver=Adam"
    ):
        AIR(learning_rate=0.1)  # type: ignore[call-arg]
    with pytest.raises(ParameterError, match="n_epochs is a parameter of the solver: set solver__n_epochs"):
        AIR().set_params(n_epochs=5)


def test_the_signature_shows_the_parameters_of_the_model():
    assert set(inspect.signature(AIR).parameters) == set(parameter_names(AIR))
    with pytest.raises(TypeError, match="unexpected keyword argument 'xyzzy'"):
        AIR(xyzzy=1)  # type: ignore[call-arg]


def test_a_solver_of_another_class_is_refused_before_any_work():
    for stranger in (object(), Adam, BiasedSolver()):
        with pytest.raises(ParameterError, match="solver must be 'adam', 'variational', 'langevin' or an object such"):
            AIR(n_factors=2, solver=stranger, **CPU).fit(frame())  # type: ignore[arg-type]


class BiasedSolver:
    """Looks like a solver, and is none."""

    name, n_sweeps = "variational", 3


@pytest.mark.parametrize("solver", [Adam(depth=2), Variational(n_sweeps=3), Langevin(n_sweeps=3)], ids=repr)
def test_a_solver_object_is_taken_as_it_is(solver):
    model = AIR.for_ratings(solver=solver, clip=False)
    assert model.solver == solver
    assert model.clip is False
    assert AIR.for_ratings(solver=solver.name).solver.get_params().keys() == solver.get_params().keys()


def test_nothing_but_the_values_named_changes_between_two_copies():
    first = AIR.for_ratings()
    second = AIR.for_ratings(n_sweeps=7)
    differing = {name for name, value in first.get_params().items() if value != second.get_params()[name]}
    assert differing == {"solver", "solver__n_sweeps"}
    assert first.solver.n_sweeps == 12
    assert np.ndim(first.solver.n_sweeps) == 0
