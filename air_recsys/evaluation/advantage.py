"""The measure that counts, with its interval, and how much better a model is in it than its baselines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from air_recsys.evaluation.resampling import Interval, interval_of


class Advantage(NamedTuple):
    """How much better a model is than the best of its baselines, in the measure that counts."""

    baseline: str
    gain: Interval  # above 0 where the model is better


def with_interval(measures: Mapping[str, float], draws: np.ndarray) -> dict[str, float]:
    """Return measures, the first of them with the ends of its interval.

    Examples
    --------
    >>> with_interval({"rmse": 20.0, "mae": 2.0}, np.arange(41.0))
    {'rmse': 20.0, 'rmse low': 1.0, 'rmse high': 39.0, 'mae': 2.0}
    """
    name, *others = measures
    value, low, high = interval_of(measures[name], draws)
    return {name: value, f"{name} low": low, f"{name} high": high} | {other: measures[other] for other in others}


def advantage_of(
    rows: list[dict[str, Any]], draws: Mapping[str, np.ndarray], higher_is_better: bool
) -> Advantage | None:
    """Return the advantage of the first row over the best of the others; None without others.

    Parameters
    ----------
    rows : list of dict
        "model", then its measures, the one that counts first.
    draws : mapping of str to ndarray
        That measure in the same resamples, by model.
    higher_is_better : bool

    Examples
    --------
    >>> rows = [{"model": "AIR", "rmse": 1.0}, {"model": "mean", "rmse": 3.0}, {"model": "biases", "rmse": 2.0}]
    >>> advantage_of(rows, {"AIR": np.ones(9), "biases": np.full(9, 2.0)}, higher_is_better=False)
    Advantage(baseline='biases', gain=Interval(value=1.0, low=1.0, high=1.0))
    """
    own, *others = rows
    if not others:
        return None
    measure, sign = list(own)[1], 1 if higher_is_better else -1
    best = max(others, key=lambda row: sign * row[measure])
    gains = sign * (draws[own["model"]] - draws[best["model"]])
    return Advantage(best["model"], interval_of(sign * (own[measure] - best[measure]), gains))
