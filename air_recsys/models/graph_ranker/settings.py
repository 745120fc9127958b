"""The settings of a `GraphRanker`, which `fit` chooses on hidden parts of its training data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from air_recsys.exceptions import ParameterError
from air_recsys.storage.validation import check_choice, check_real

_RANGES = {
    "source": (-2.0, 10.0),
    "target": (-2.0, 10.0),
    "share": (0.0, 1.0),
    "penalty": (0.0, 1e6),
    "life": (0.0, 1e6),
}
"""By the last word of a name."""
_ABOVE_ZERO = ("factor_temperature", "regression_penalty")


class RankerSettings(NamedTuple):
    """What a `GraphRanker` chooses on hidden parts of its training data.

    An exponent says how much less something popular counts: it is divided by (number of its interactions)^exponent.
    """

    factor_temperature: float = 0.15  # of the exponentials of cosines
    regression_exponent: float = 0.5  # of users, where items are regressed on each other
    regression_share: float = 1.0  # of the items' own degrees in the penalty; the rest is the same for all
    regression_penalty: float = 8.0
    regression_source: float = 0.25
    regression_target: float = -0.25
    user_half_life: float = 0.0  # an item counts half if its user has so many later ones; 0: all count alike
    item_trend: float = 0.0  # power of an item's share of the latest interactions over its share of all
    factor_weight: float = 0.5
    regression_weight: float = 1.0

    @property
    def weights(self) -> dict[str, float]:
        """The weights of factors and regression, without those that are 0."""
        weights = {"factor": self.factor_weight, "regression": self.regression_weight}
        return {name: weight for name, weight in weights.items() if weight}

    @classmethod
    def of_values(cls, values: Mapping[str, Any]) -> Self:
        """The settings among some values by name; raise `LookupError` or `ValueError` where they are not there."""
        settings = cls(*(float(values[name]) for name in cls._fields))
        if not np.isfinite(settings).all():
            raise ValueError("expected finite settings, found NaN or infinity")
        return settings


def check_settings(settings: Any) -> None:
    """Raise `ParameterError` unless these are settings by name, each in its range.

    Examples
    --------
    >>> check_settings({"regression_share": 2.0})
    Traceback (most recent call last):
    air_recsys.exceptions.ParameterError: regression_share must be a number >= 0 and <= 1, found 2.0
    """
    if not isinstance(settings, Mapping):
        raise ParameterError(f"settings must be a mapping or None, found {type(settings).__name__}")
    for name, value in settings.items():
        check_choice("a name in settings", name, RankerSettings._fields)
        lowest, highest = _RANGES.get(name.rpartition("_")[2], (0.0, 10.0))
        check_real(name, value, minimum=lowest, maximum=highest, strict=name in _ABOVE_ZERO)
    if not RankerSettings(**settings).weights:
        raise ParameterError("expected factor_weight or regression_weight above 0 in settings, found both 0")
