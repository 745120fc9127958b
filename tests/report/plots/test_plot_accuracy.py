"""Pictures of accuracy hold the numbers of their tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys.exceptions import DataError
from air_recsys.report.plots import plot_accuracy, plot_errors, plot_reliability

ROWS = [
    {"model": "AIR", "rmse": 0.8, "rmse low": 0.7, "rmse high": 1.0},
    {"model": "mean", "rmse": 1.2, "rmse low": 1.1, "rmse high": 1.3},
]
RELIABILITY = pd.DataFrame({"meant": [0.5, 0.9], "held": [0.4, 0.85], "low": [0.3, 0.8], "high": [0.5, 0.9]})
GROUPS = pd.DataFrame({"lowest": [0, 5], "highest": [4, 5], "rmse": [1.0, 0.5], "low": [0.8, 0.4], "high": [1.1, 0.7]})


def ends(axes: Any) -> np.ndarray:
    """Both ends of every bar, (bars, 2 ends, 2 coordinates)."""
    return np.concatenate([collection.get_segments() for collection in axes.collections])


def test_a_point_and_an_interval_a_model_the_first_above() -> None:
    axes = plot_accuracy(ROWS, "rmse", "RMSE").axes[0]
    np.testing.assert_allclose(ends(axes)[:, :, 0], [[0.7, 1.0], [1.1, 1.3]])
    assert axes.get_ylim()[0] > axes.get_ylim()[1]
    assert axes.get_xlabel() == "RMSE"


def test_reliability_stands_beside_the_diagonal() -> None:
    axes = plot_reliability(RELIABILITY).axes[0]
    np.testing.assert_allclose(ends(axes)[:, :, 1], RELIABILITY[["low", "high"]])
    assert axes.get_xlim() == axes.get_ylim()


def test_errors_start_at_zero() -> None:
    axes = plot_errors(GROUPS, "ratings").axes[0]
    np.testing.assert_allclose(ends(axes)[:, :, 1], GROUPS[["low", "high"]])
    assert axes.get_ylim()[0] == 0
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0 to 4", "5"]


@pytest.mark.parametrize(
    ("plot", "message"),
    [
        (lambda: plot_accuracy([], "rmse"), "at least one model"),
        (lambda: plot_accuracy(ROWS, "mae"), "and 'mae' of each"),
        (lambda: plot_reliability(RELIABILITY.drop(columns="held")), "one without held"),
        (lambda: plot_errors(GROUPS.head(0), "x"), "one without rows"),
    ],
)
def test_other_tables_are_refused(plot: Callable[[], Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        plot()
