"""The ranges of `AIR`'s parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import torch

from air_recsys.exceptions import DataError, ParameterError
from air_recsys.graphs.adjacency import ADJACENCIES
from air_recsys.interactions import Interactions
from air_recsys.models.devices import resolve_device
from air_recsys.models.scaling import edges_per_node, width_of
from air_recsys.models.transforms import parse_transforms
from air_recsys.training import SCHEDULES
from air_recsys.validation import check_choice, check_integer, check_real

if TYPE_CHECKING:
    from air_recsys.models.air import AIR

SOLVERS = ("adam", "variational", "langevin")
DTYPES = {"float32": torch.float32, "float64": torch.float64}
_SWEEPS = {"variational": 30, "langevin": 200}


def check_parameters(model: AIR, data: Interactions, validation: Interactions | None) -> None:
    """Raise `ParameterError` where a parameter is out of range for `data`, `DataError` for a foreign `validation`."""
    if model.n_factors is not None and model.n_factors != "auto":
        check_integer("n_factors", model.n_factors, minimum=1)
    check_integer("depth", model.depth, minimum=2)
    check_choice("adjacency", model.adjacency, list(ADJACENCIES))
    check_choice("schedule", model.schedule, list(SCHEDULES))
    check_choice("dtype", model.dtype, list(DTYPES))
    check_choice("solver", model.solver, SOLVERS)
    for name in ("graph_refresh", "graph_every", "n_epochs", "n_batches", "evaluate_every"):
        check_integer(name, getattr(model, name), minimum=1)
    for name in ("user_graph_reg", "item_graph_reg", "weight_decay", "bias_decay", "tv_reg", "unobserved_weight"):
        if not (name.endswith("graph_reg") and getattr(model, name) == "auto"):
            check_real(name, getattr(model, name))
    for name in ("learning_rate", "graph_rate", "init_std"):
        check_real(name, getattr(model, name), strict=True)
    for name in ("biases", "center", "scale", "clip", "pattern_graphs", "verbose"):
        check_choice(name, getattr(model, name), (True, False))
    check_real("init_mean", model.init_mean, minimum=-math.inf)
    check_real("validation_fraction", model.validation_fraction, maximum=0.9)
    resolve_device(model.device)
    _check_posterior(model)
    _check_optional(model, watched=validation is not None or model.validation_fraction > 0)
    _check_further(model, data)
    if validation is not None:
        _check_validation(data, validation)


def sweeps_of(model: AIR) -> int:
    """Return how many sweeps the posterior of a model takes."""
    return model.n_sweeps or _SWEEPS[model.solver]


def _check_posterior(model: AIR) -> None:
    check_integer("pattern_features", model.pattern_features, minimum=0)
    if model.n_sweeps is not None:
        check_integer("n_sweeps", model.n_sweeps, minimum=1)
    if model.solver == "adam":
        return
    if model.n_factors is None or not model.biases:
        raise ParameterError(
            f"solver={model.solver!r} needs n_factors and biases=True, found n_factors={model.n_factors}, "
            f"biases={model.biases}"
        )
    if model.transforms or model.tv_reg > 0 or model.unobserved_weight > 0:
        raise ParameterError(f"transforms, tv_reg and unobserved_weight need solver='adam', found {model.solver!r}")


def _check_optional(model: AIR, watched: bool) -> None:
    if model.graph_neighbors is not None:
        if model.graph_neighbors != "auto":
            check_integer("graph_neighbors", model.graph_neighbors, minimum=1)
        if model.adjacency != "row_softmin":
            raise ParameterError(
                f"graph_neighbors needs adjacency='row_softmin', found {model.adjacency!r}; set it to None"
            )
    if model.patience is not None:
        check_integer("patience", model.patience, minimum=1)
        if not watched:
            raise ParameterError("patience needs a validation part, found validation_fraction=0")
    if model.stopping_delta is not None:
        check_real("stopping_delta", model.stopping_delta, strict=True)
    if model.unobserved_weight > 0 and (model.biases or model.center):
        raise ParameterError(
            "unobserved_weight draws pairs to 0 and goes without biases and centring, found "
            f"biases={model.biases}, center={model.center}"
        )


def _check_further(model: AIR, data: Interactions) -> None:
    if isinstance(model.snapshot_epochs, str) or not isinstance(model.snapshot_epochs, Iterable):
        raise ParameterError(f"snapshot_epochs must be a list of epochs, found {model.snapshot_epochs!r}")
    name, last = ("n_epochs", model.n_epochs) if model.solver == "adam" else ("n_sweeps", sweeps_of(model))
    for epoch in model.snapshot_epochs:
        if check_integer("an entry of snapshot_epochs", epoch) > last:
            raise ParameterError(f"snapshot_epochs must be at most {name}, {last}, found {epoch}")
    width = width_of(model, data)
    full_width = width is None or width >= min(data.n_users, data.n_items)
    transforms = parse_transforms(model.transforms, (data.n_users, data.n_items))
    if transforms and not full_width:
        raise ParameterError(f"transforms need full width, n_factors=None, found n_factors={model.n_factors}")
    if model.adjacency != "row_softmin" and any(entry.n_neighbors is not None for entry in transforms):
        raise ParameterError(f"neighbours of a transform need adjacency='row_softmin', found {model.adjacency!r}")
    pairs = edges_per_node(model.graph_neighbors, data, width) is None
    if model.graph_every > 1 and (transforms or not pairs):
        raise ParameterError(
            f"graph_every needs graphs of all pairs, graph_neighbors=None, and no transforms, found "
            f"graph_every={model.graph_every}"
        )
    if model.n_batches > 1 and (transforms or model.tv_reg > 0):
        raise ParameterError(f"transforms and tv_reg need n_batches=1, found n_batches={model.n_batches}")
    if model.tv_reg > 0 and not full_width:
        raise ParameterError(f"tv_reg needs full width, n_factors=None, found n_factors={model.n_factors}")


def _check_validation(data: Interactions, validation: Interactions) -> None:
    if not isinstance(validation, Interactions):
        raise DataError(f"validation must be Interactions, found {type(validation).__name__}")
    for kind in ("user", "item"):
        own, found = getattr(data, f"{kind}_ids"), getattr(validation, f"{kind}_ids")
        if not np.array_equal(own, found):
            raise DataError(
                f"validation must have the {kind} ids of the training data in the same order, as the two sides of "
                f"Interactions.select do; found {found.size} ids beside {own.size}"
            )
