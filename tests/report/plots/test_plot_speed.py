"""Lines hold the times, legends the exponents, and errors over time end where the trainings end."""

import io
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from air_recsys.exceptions import DataError, MissingExtraError
from benchmarks.plots.speed import plot_error_over_time, plot_growth

ROWS = [
    {"sweep": "n_ratings", "n_ratings": n, "n_users": 9, "epoch_seconds": n / 1e6, "refresh_seconds": 0.0}
    for n in (10**7, 10**6)
] + [{"sweep": "n_users", "n_ratings": 9, "n_users": n, "epoch_seconds": 2.0, "refresh_seconds": n} for n in (10, 30)]
SLOPES = [
    {"sweep": "n_ratings", "epoch_seconds": 1.0, "refresh_seconds": float("nan")},
    {"sweep": "n_users", "epoch_seconds": 0.0, "refresh_seconds": 1.0},
]
ENDS = [
    {"model": "AIR", "seconds": 30.0, "rmse": 0.85},
    {"model": "SVD", "seconds": 10.0, "rmse": 0.87},
    {"model": "ALS", "seconds": 2.0, "rmse": float("nan")},
]
CURVES = [{"model": "AIR", "seconds": float(s), "rmse": 1 - 0.005 * s} for s in (1, 10, 20)]


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_a_panel_a_sweep_in_ascending_size_with_exponents():
    ratings, users = plot_growth(ROWS, SLOPES).axes
    assert legend(ratings) == ["an epoch, exponent 1.00"]  # zeros have no place on a logarithmic axis
    assert legend(users) == ["an epoch, exponent 0.00", "choosing edges, exponent 1.00"]
    np.testing.assert_allclose(ratings.lines[0].get_xydata(), [[1e6, 1.0], [1e7, 10.0]])
    assert {axes.get_xscale() for axes in (ratings, users)} == {axes.get_yscale() for axes in (ratings, users)}
    assert ratings.get_xscale() == "log"
    assert users.get_title() == "Growth with users"


def test_lines_without_an_exponent_are_drawn_all_the_same():
    assert legend(plot_growth(ROWS[:2], []).axes[0]) == ["an epoch"]


def test_a_line_along_the_training_and_a_point_at_the_end():
    axes = plot_error_over_time(ENDS, CURVES).axes[0]
    assert legend(axes) == ["AIR", "SVD"]
    point, course = axes.lines[0], axes.lines[1]
    np.testing.assert_array_equal(point.get_xydata(), [[30.0, 0.85]])
    assert course.get_xydata()[-1].tolist() == [30.0, 0.85]
    assert len(course.get_xdata()) == len(CURVES) + 1
    assert course.get_color() == point.get_color() != axes.lines[2].get_color()
    low, high = axes.get_ylim()
    assert low < 0.85 < 0.87 < high


def test_the_axes_given_are_used():
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert plot_error_over_time(ENDS, CURVES, ax=right) is figure
    assert not left.has_data()


def test_nothing_to_draw():
    with pytest.raises(DataError, match="expected rows with 'sweep', found none"):
        plot_growth([], [])
    with pytest.raises(DataError, match="expected seconds > 0 of the sweep 'n_users', found none"):
        plot_growth([{"sweep": "n_users", "n_users": 3, "epoch_seconds": float("nan")}], [])
    with pytest.raises(DataError, match="expected models with an RMSE, found none"):
        plot_error_over_time(ENDS[2:], [])


def test_no_display_is_needed_and_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # would choose a display and keep the figure
    for figure in (plot_growth(ROWS, SLOPES), plot_error_over_time(ENDS, CURVES)):
        target = io.BytesIO()
        figure.savefig(target, dpi=40)
        assert target.getvalue().startswith(b"\x89PNG")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"matplotlib.*air-recsys\[viz\]"):
        plot_growth(ROWS, SLOPES)
