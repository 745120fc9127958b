"""Every parameter of every trained model has an effect that can be seen, or is refused."""

from __future__ import annotations

import inspect
import logging
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from covering import covering
from model_cases import CPU, USERS, dense, fails, frame

from air_recsys import AIR, DMF
from air_recsys.exceptions import AirRecsysError, DataError, DataWarning, DeviceError, ParameterError, ParameterWarning
from air_recsys.models import RDMF, DirichletDMF
from air_recsys.models.presets import PRESETS, routed
from air_recsys.models.solvers import SOLVERS, Adam, Langevin, Variational, as_solver, parameter_names
from air_recsys.models.trained import TrainedRecommender
from air_recsys.nn import devices
from air_recsys.nn.devices import resolve_device
from air_recsys.testing import all_scores

SHORT: dict[str, Any] = {"n_epochs": 6, "init_std": 0.1, "evaluate_every": 2, **CPU}
START: dict[str, TrainedRecommender] = {
    "adam": AIR.for_ratings(solver="adam", n_factors=3, graph_neighbors=3, graph_refresh=2, **SHORT),
    "variational": AIR.for_ratings(n_factors=3, graph_neighbors=3, n_sweeps=6, **CPU),
    "langevin": AIR.for_ratings(solver="langevin", n_factors=3, graph_neighbors=3, n_sweeps=6, **CPU),
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
    "exact_epochs": (3, FULL_WIDTH | PLAIN | {"weight_decay": 0.0}),
    "transforms": ([("columns", 1e-2)], FULL_WIDTH),
    "tv_reg": (0.1, FULL_WIDTH),
    "n_sweeps": (4, {}),
    "pattern_features": (1, {}),
    "graph_residuals": (8.0, {}),
    "time": ("drift", {}),
    "user_graph_strength": (0.3, {}),
    "item_graph_strength": (0.3, {}),
    "user_graph": (None, {}),
    "item_graph": (None, {}),
    "n_neighbors": (1, {}),
}
# A posterior knows the pattern: this shows where nodes lack learned edges (tests/models/test_posterior_models.py).
OF_SCARCE = {("variational", "pattern_graphs"), ("langevin", "pattern_graphs")}
# Of these tests/models/settings has the tests: they need data that are large enough to hide a part of.
SEARCH = {"settings", "search_budget"}
# Nothing but the time depends on it: tests/storage/test_threads.py.
SEARCH |= {"n_threads"}


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
BEFORE: dict[str, list[Any]] = {}  # what is seen of a start, which many changes share


def test_every_parameter_is_known_here():
    assert {name for _, name in CASES} == set(CHANGES)


@pytest.mark.parametrize(("kind", "name"), SEEN)
def test_a_change_can_be_seen(kind, name, capfd):
    value, needs = CHANGES[name]
    before = changed(START[kind], **needs)
    start = f"{kind} {needs}"
    if start not in BEFORE:
        BEFORE[start] = seen(before, capfd)
    assert seen(changed(before, **{name: value}), capfd) != BEFORE[start]


# -------------------------------------------------------------------- what is out of range

RANGES: list[tuple[str, list[str], tuple[Any, ...]]] = [
    ("an integer >= 1", ["evaluate_every", "n_batches", "graph_every"], (0, 2.5, "3", True)),
    ("an integer >= 1 and <= 2147483647", ["evaluate_every"], (10**30,)),
    ("an integer >= 2", ["depth"], (1, None)),
    ("an integer >= 0", ["random_state"], ("seven", -1)),
    ("'auto' or an integer >= 1 and <= 1000000000", ["n_epochs"], (10**30,)),
    ("'auto' or an integer >= 0", ["exact_epochs"], (-1, 2.5, None)),
    ("'auto', None or an integer >= 1", ["n_factors", "graph_neighbors", "graph_refresh"], (0, 2.5, "3", True)),
    ("None or an integer >= 1", ["patience"], (True,)),
    ("a number >= -inf", ["init_mean"], ("small", np.nan)),
    ("a number >= 0", ["weight_decay", "bias_decay", "unobserved_weight"], (-1, np.nan, "1", None)),
    ("a number >= 0 and <= 0.9", ["validation_fraction"], (-0.1, 0.95)),
    ("'auto' or a number >= 0", ["user_graph_reg", "item_graph_reg", "tv_reg"], (-1, np.nan, "1")),
    ("'auto' or a number > 0", ["learning_rate", "graph_rate", "init_std"], (0, -0.1, np.inf, "1", 10**400)),
    ("None or a number > 0", ["stopping_delta"], (0, -0.1, "1")),
    ("one of True, False", ["biases", "center"], ("no", None)),
    ("one of True, False, None", ["verbose"], ("no",)),
    ("one of True, False, 'binary'", ["clip"], ("no", None)),
    ("one of True, False, 'deviation'", ["scale"], ("no", None, 2.0)),
    ("one of 'row_softmin', 'global_sum', 'global_product'", ["adjacency"], ("cosine",)),
    ("one of 'constant', 'cosine', 'linear', 'cooldown'", ["schedule"], ("step",)),
    ("one of 'float32', 'float64'", ["dtype"], ("float16",)),
]
OUT_OF_RANGE = [(*case, expected) for expected, names, values in RANGES for case in covering(names, values)]


@pytest.mark.parametrize(("name", "value", "expected"), OUT_OF_RANGE)
def test_a_parameter_out_of_range_is_named(name, value, expected):
    model = AIR.for_completion(**{"device": "cpu", name: value})  # the constructor only stores
    found = "1000" if value == 10**400 else repr(value)
    with fails(ParameterError, f"{name} must be {expected}, found {found}"):
        model.fit(dense())
    assert not hasattr(model, "user_factors_")


def langevin(**options: Any) -> AIR:
    return AIR.for_ratings(solver="langevin").set_params(**options)


COMPLETION, RATINGS = AIR.for_completion, AIR.for_ratings
REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (RATINGS, {"patience": 3}, "patience needs a validation part, found validation_fraction=0"),
    (COMPLETION, {"patience": 2}, "patience needs a validation part, found validation_fraction=0"),
    (COMPLETION, {"patience": 0, "validation_fraction": 0.1}, "patience must be None or an integer >= 1, found 0"),
    (COMPLETION, {"graph_neighbors": 3, "adjacency": "global_sum"}, "graph_neighbors needs adjacency='row_softmin'"),
    (COMPLETION, {"unobserved_weight": 0.1, "biases": True}, "needs biases=False and center=False, found biases=True"),
    (COMPLETION, {"unobserved_weight": 0.1, "center": True}, "and center=False, found biases=False, center=True"),
    (RATINGS, {"n_sweeps": 10**6 + 1}, "n_sweeps must be 'auto' or an integer >= 1 and <= 1000000, found 1000001"),
    (langevin, {"solver__n_sweeps": 10**30}, f"n_sweeps must be an integer >= 1 and <= 1000000, found {10**30}"),
    (langevin, {"solver__n_sweeps": 0}, "n_sweeps must be"),
    (langevin, {"solver__pattern_features": -1}, "pattern_features must be"),
    (langevin, {"solver": "gibbs"}, "solver must be 'adam', 'variational', 'langevin' or an object such as Adam"),
    (langevin, {"solver__user_graph_reg": 0.5}, "must be 'auto' or 0, found 0.5: only Adam reads a strength"),
    (langevin, {"graph_refresh": 5}, "Langevin does not read graph_refresh, Adam does: leave it out, or give solver="),
    (RATINGS, {"adjacency": "global_sum"}, "Variational does not read adjacency, Adam does: leave it out"),
    (langevin, {"n_factors": None}, "Langevin needs n_factors, a number or 'auto', found None, which is full width"),
    (DMF, {"n_factors": 0}, "n_factors must be"),
    (DMF, {"weight_decay": -1.0}, "weight_decay must be"),
    (DirichletDMF, {"user_graph_reg": -1}, "user_graph_reg must be 'auto' or a number >= 0, found -1"),
    (DirichletDMF, {"item_graph_reg": None}, "item_graph_reg must be 'auto' or a number >= 0, found None"),
    (DirichletDMF, {"n_neighbors": 2.5}, "n_neighbors must be an integer >= 1, found 2.5"),
]


@pytest.mark.parametrize(("make", "options", "message"), REFUSED)
def test_what_makes_no_sense_is_refused(make, options, message):
    with fails(ParameterError, message):
        make(**options).fit(dense())


def test_too_few_ratings_for_a_validation_part():
    array = np.full((2, 2), np.nan)
    array[0, 0] = 3
    with (
        pytest.warns(DataWarning, match="nothing tells good pairs from bad ones"),
        fails(DataError, "expected enough ratings to leave one for training"),
    ):
        AIR.for_completion(validation_fraction=0.5, device="cpu").fit(array)


# -------------------------------------------------------------------- what has no effect cannot be said


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (AIR.for_completion(graph_refresh=5, n_epochs=2, **CPU), "graph_refresh=5 has no effect: it needs sparse"),
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
            "no parameter of AIR or of its solvers is called 'n_sweps'; do you mean n_sweeps",
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


# -------------------------------------------------------------------- devices


@pytest.fixture
def n_gpus(monkeypatch):
    """Set how many CUDA devices there seem to be; what was said is forgotten."""

    def pretend(count):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)

    devices._say_once.cache_clear()
    yield pretend
    devices._say_once.cache_clear()


def test_auto_is_the_gpu_where_there_is_one_and_else_the_cpu_which_is_said_once(n_gpus, caplog):
    n_gpus(1)
    assert resolve_device("auto") == torch.device("cuda")
    n_gpus(0)
    assert resolve_device("cpu") == torch.device("cpu")
    assert caplog.records == []
    with caplog.at_level(logging.INFO, logger="air_recsys"):
        for _ in range(3):
            assert AIR.for_completion(n_epochs=2, device="auto").fit(dense()).device_ == "cpu"
    assert [record.getMessage() for record in caplog.records] == ["no CUDA device found, training on the CPU"]
    assert caplog.records[0].name == "air_recsys"


@pytest.mark.parametrize(
    ("count", "device"), [(0, "cuda"), (0, "cuda:0"), (1, "cuda:1"), (2, "cuda:2"), (2, "cuda:17")]
)
def test_a_gpu_that_is_not_there_is_refused(n_gpus, count, device):
    n_gpus(count)
    with fails(
        DeviceError, f"device='{device}' was asked for, found {count} CUDA device(s); use device='cpu' or 'auto'"
    ):
        AIR.for_completion(n_epochs=2, device=device).fit(dense())
    n_gpus(18)
    assert resolve_device(device) == torch.device(device)


@pytest.mark.parametrize(
    "device", ["gpu", "", "cuda:", "cuda:-1", "cuda:a", "mps", "meta", "cpu:1", "CPU", None, 0, torch.device("cpu")]
)
def test_names_that_mean_nothing_here(n_gpus, device):
    n_gpus(2)
    with fails(ParameterError, f"device must be 'auto', 'cpu', 'cuda' or 'cuda:N', found {device!r}"):
        AIR.for_completion(n_epochs=2, device=device).fit(dense())
