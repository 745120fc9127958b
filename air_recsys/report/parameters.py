"""The section of a report on a model's parameters: what differs from its preset first, the rest folded away."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from air_recsys.models import AIR
from air_recsys.models.presets import PRESETS, OffersPresets
from air_recsys.report.markup import Markup, element, section, table


def parameters_section(model: BaseEstimator) -> Markup:
    """Return the parameters that differ from the nearest preset or from the defaults, and the others folded away."""
    given = _values(model)
    name, expected = _nearest(model, given)
    changed = [key for key in given if repr(given[key]) != repr(expected.get(key))]
    kept = [key for key in given if key not in changed]
    parts = [element("p", f"{name}{':' if changed else '. All parameters have its values.'}")]
    if changed:
        rows = [(element("code", key), repr(given[key]), repr(expected.get(key))) for key in changed]
        parts.append(table("Parameters with another value", ["parameter", "value", "value there"], rows))
    if kept:
        rows = [(element("code", key), repr(given[key])) for key in kept]
        summary = element("summary", f"{len(kept)} parameters with the same value")
        parts.append(
            element("details", summary, table("Parameters with the same value", ["parameter", "value"], rows))
        )
    return section("parameters", "Parameters", *parts)


def _values(model: BaseEstimator) -> dict[str, Any]:
    """Return all parameters, those of a solver in the place of the solver."""
    values = model.get_params(deep=True)
    nested = {key.partition("__")[0] for key in values if "__" in key}
    return {key: type(value).__name__ if key in nested else value for key, value in values.items()}


def _nearest(model: BaseEstimator, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the start that the fewest parameters differ from, as people write it, and its parameters."""
    kind = type(model)
    starts: dict[str, Any] = {f"{kind.__name__}()": kind()}
    if issubclass(kind, OffersPresets):
        starts |= {f"{kind.__name__}.for_{name}()": kind.of_preset(name) for name in PRESETS}
        starts |= {f"{kind.__name__}.auto()": kind.auto()} if issubclass(kind, AIR) else {}

    def distance(name: str) -> int:
        expected = _values(starts[name])
        return sum(repr(value) != repr(expected.get(key)) for key, value in given.items())

    nearest = min(starts, key=distance)
    return f"As {nearest}", _values(starts[nearest])
