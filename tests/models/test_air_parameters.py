"""Every parameter out of range is named before any work, and so are combinations that make no sense."""

import re
from typing import Any

import numpy as np
import pytest
from covering import covering
from model_cases import dense

from air_recsys import AIR, DMF
from air_recsys.exceptions import DataError, DataWarning, ParameterError

POSITIVE_INTEGERS = ["evaluate_every", "n_batches", "graph_every"]
POSITIVE_OR = {
    "n_factors": "'auto', None",
    "graph_neighbors": "'auto', None",
    "graph_refresh": "'auto', None",
    "n_epochs": "'auto'",
    "patience": "None",
}
STRENGTHS = ["user_graph_reg", "item_graph_reg", "tv_reg"]
NOT_NEGATIVE = ["weight_decay", "bias_decay", "unobserved_weight"]
POSITIVE = ["learning_rate", "graph_rate", "init_std"]
FLAGS = ["biases", "center"]

CASES = [
    *(
        (name, value, f"{name} must be an integer >= 1, found")
        for name, value in covering(POSITIVE_INTEGERS, (0, 2.5, "3", True))
    ),
    *(
        (name, value, f"{name} must be a number >= 0, found")
        for name, value in covering(NOT_NEGATIVE, (-1, np.nan, "1", None))
    ),
    *(
        (name, value, f"{name} must be 'auto' or a number >= 0, f")
        for name, value in covering(STRENGTHS, (-1, np.nan, "1"))
    ),
    *(("stopping_delta", value, "stopping_delta must be None or a number > 0, found") for value in (0, -0.1, "1")),
    *(
        (name, value, f"{name} must be 'auto' or a number > 0, found {value!r}")
        for name, value in covering(POSITIVE, (0, -0.1, np.inf, "1"))
    ),
    *(
        (name, value, f"{name} must be one of True, False, found {value!r}")
        for name, value in zip(FLAGS, ("no", None), strict=True)
    ),
    ("verbose", "no", "verbose must be one of True, False, None, found 'no'"),
    *(("clip", value, f"clip must be one of True, False, 'binary', found {value!r}") for value in ("no", None)),
    *(
        (name, value, f"{name} must be {others} or an integer >= 1, found {value!r}")
        for (name, others), value in covering(POSITIVE_OR.items(), (0, 2.5, "3", True))
    ),
    *(("scale", value, "scale must be one of True, False, 'deviation', found") for value in ("no", None, 2.0)),
    ("depth", 1, "depth must be an integer >= 2, found 1"),
    ("n_epochs", 10**30, f"n_epochs must be 'auto' or an integer >= 1 and <= 1000000000, found {10**30}"),
    ("evaluate_every", 10**30, f"evaluate_every must be an integer >= 1 and <= 2147483647, found {10**30}"),
    ("learning_rate", 10**400, "learning_rate must be 'auto' or a number > 0, found 1000"),
    ("depth", None, "depth must be an integer >= 2, found None"),
    ("init_mean", "small", "init_mean must be a number"),
    ("init_mean", np.nan, "init_mean must be a number"),
    ("validation_fraction", -0.1, "validation_fraction must be a number >= 0 and <= 0.9, found -0.1"),
    ("validation_fraction", 0.95, "validation_fraction must be a number >= 0 and <= 0.9, found 0.95"),
    ("adjacency", "cosine", "adjacency must be one of 'row_softmin', 'global_sum', 'global_product', found 'cosine'"),
    ("schedule", "step", "schedule must be one of 'constant', 'cosine', 'linear', 'cooldown', found 'step'"),
    ("dtype", "float16", "dtype must be one of 'float32', 'float64', found 'float16'"),
    ("device", "gpu", "device must be 'auto', 'cpu', 'cuda' or 'cuda:N', found 'gpu'"),
    ("random_state", "seven", "random_state must be an integer >= 0, found 'seven'"),
    ("random_state", -1, "random_state must be an integer >= 0, found -1"),
    ("patience", 2, "patience needs a validation part, found validation_fraction=0"),
]


@pytest.mark.parametrize(("name", "value", "message"), CASES)
def test_a_parameter_out_of_range_is_named(name, value, message):
    model = AIR.for_completion(**{"device": "cpu", name: value})  # the constructor only stores
    with pytest.raises(ParameterError, match=f"^{re.escape(message)}"):
        model.fit(dense())
    assert not hasattr(model, "user_factors_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patience": 0, "validation_fraction": 0.1}, "patience must be None or an integer >= 1, found 0"),
        (
            {"graph_neighbors": 3, "adjacency": "global_sum"},
            "graph_neighbors needs adjacency='row_softmin', found 'global_sum'; set it to None",
        ),
        (
            {"unobserved_weight": 0.1, "biases": True},
            "unobserved_weight needs biases=False and center=False, found biases=True, center=False",
        ),
        (
            {"unobserved_weight": 0.1, "center": True},
            "unobserved_weight needs biases=False and center=False, found biases=False, center=True",
        ),
    ],
)
def test_combinations_that_make_no_sense_are_named(options, message):
    with pytest.raises(ParameterError, match=f"^{re.escape(message)}"):
        AIR.for_completion(device="cpu", **options).fit(dense())


@pytest.mark.parametrize(("name", "value"), [("n_factors", 0), ("weight_decay", -1.0), ("schedule", "step")])
def test_dmf_checks_the_parameters_that_it_has(name, value):
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        DMF(**{"device": "cpu", name: value}).fit(dense())


@pytest.mark.parametrize("solver", ["variational", "langevin"])
@pytest.mark.parametrize("number", [10**6 + 1, 10**30])
def test_more_sweeps_than_any_training_needs_are_refused(solver, number):
    message = f"n_sweeps must be an integer >= 1 and <= 1000000, found {number}"
    with pytest.raises(ParameterError, match=re.escape(message)):
        AIR.for_ratings(solver=solver, n_sweeps=number, device="cpu").fit(dense())


def test_numbers_of_numpy_are_numbers():
    options: dict[str, Any] = {"n_factors": np.int64(3), "learning_rate": np.float32(0.01), "biases": np.bool_(True)}
    model = AIR.for_completion(device="cpu", **options).set_params(solver__n_epochs=np.int32(5)).fit(dense())
    assert model.n_iter_ == 5


def test_too_few_ratings_for_a_validation_part():
    array = np.full((2, 2), np.nan)
    array[0, 0] = 3
    with (
        pytest.warns(DataWarning, match="nothing tells good pairs from bad ones"),
        pytest.raises(DataError, match="expected enough ratings to leave one for training"),
    ):
        AIR.for_completion(validation_fraction=0.5, device="cpu").fit(array)
