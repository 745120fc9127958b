"""The figures of the paper show what the panels hold, leave out what cannot be drawn, and need no display."""

import io
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from air_recsys.exceptions import MissingExtraError
from benchmarks.paper.drawings import Panel, plot_curves, plot_depth_width, plot_heatmaps

EPOCHS = [0, 10, 20]


def curves(hidden, observed=(0.3, 0.2, 0.1), energy=(3.0, 2.0, 1.0)):
    of_names = {"epoch": EPOCHS, "observed": observed, "hidden": hidden, "user_energy": energy, "item_energy": energy}
    return {name: list(values) for name, values in of_names.items()}


def of_curves(**systems):
    return Panel("a matrix", systems, {}, {})


def entries(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def saved(figure):
    target = io.BytesIO()
    figure.savefig(target, dpi=40)
    return target.getvalue()


def image(axes):
    return np.asarray(axes.images[0].get_array())


class TestCurves:
    def test_one_axes_a_panel_and_every_line_as_measured(self):
        first = of_curves(AIR=curves([0.3, 0.2, 0.1]), DMF=curves([0.4, 0.3, 0.2]))
        figure = plot_curves([first, of_curves(DMF=curves([0.5, 0.4, 0.3]))], "observed", "hidden")
        left, right = figure.axes
        assert [len(axes.lines) for axes in (left, right)] == [4, 2]
        np.testing.assert_array_equal(left.lines[1].get_xydata(), np.column_stack([EPOCHS, [0.3, 0.2, 0.1]]))
        assert {line.get_color() for line in left.lines[2:]} == {line.get_color() for line in right.lines}
        assert left.lines[0].get_linestyle() != left.lines[1].get_linestyle()
        assert entries(figure) == ["AIR", "DMF", "observed entries", "hidden entries"]

    @pytest.mark.parametrize(
        ("names", "label"),
        [
            (("hidden",), "NMAE"),
            (("observed", "hidden"), "NMAE"),
            (("user_energy", "item_energy"), "Dirichlet energy"),
        ],
    )
    def test_axes_are_labelled(self, names, label):
        (axes,) = plot_curves([of_curves(AIR=curves([0.3, 0.2, 0.1]))], *names).axes
        assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == ("a matrix", "epoch", label)
        assert entries(axes.figure)[0] == "AIR"
        assert axes.get_yscale() == "log"

    @settings(max_examples=10)
    @given(st.lists(st.floats(width=32), min_size=3, max_size=3))
    def test_whatever_the_values_only_positive_finite_ones_are_drawn(self, values):
        figure = plot_curves([of_curves(AIR=curves(values), DMF=curves([0.3, 0.2, 0.1]))], "hidden")
        usable = [value for value in values if np.isfinite(value) and value > 0]
        drawn = np.concatenate([line.get_ydata() for line in figure.axes[0].lines])
        assert sorted(drawn[~np.isnan(drawn)]) == sorted([*usable, 0.3, 0.2, 0.1])
        saved(figure)


def graph(size, seed):
    weights = np.random.default_rng(seed).random((size, size)).astype(np.float32)
    return np.triu(weights, 1) + np.triu(weights, 1).T


def of_graphs(groups=None, title="a matrix"):
    users = {f"user_graph_{epoch}": graph(6, epoch) for epoch in (4000, 500, 10000)}
    items = {f"item_graph_{epoch}": graph(5, epoch) for epoch in (4000, 500)}
    return Panel(title, {}, {"AIR": users | items, "other": {"user_graph_1": graph(6, 1)}}, {}, groups=groups)


class TestHeatmaps:
    groups = (np.array([1, 0, 1, 0, 2, 0]), np.array(["b", "a", "b", "a", "a"]))

    def test_epochs_ascend_and_only_the_first_system_is_drawn(self):
        figure = plot_heatmaps([of_graphs()])
        titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
        assert titles == ["epoch 500", "epoch 4000", "epoch 10000", "epoch 500", "epoch 4000"]
        assert [axes.get_ylabel() for axes in figure.axes[::3][:2]] == ["a matrix: rows", "a matrix: columns"]
        np.testing.assert_array_equal(image(figure.axes[0]), graph(6, 500))

    def test_known_groups_sort_all_images_of_a_row(self):
        figure = plot_heatmaps([of_graphs(self.groups), of_graphs(title="another")])
        rows = np.array(figure.axes[:16]).reshape(4, 4)
        order = np.argsort(self.groups[0], kind="stable")
        np.testing.assert_array_equal(image(rows[0, 1]), graph(6, 4000)[np.ix_(order, order)])
        same = [[1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [0, 0, 0, 1, 1], [0, 0, 0, 1, 1]]
        np.testing.assert_array_equal(image(rows[1, 3]), same)
        assert [len(axes.images) for axes in rows[:, 3]] == [1, 1, 0, 0]

    def test_the_scale_ends_below_a_few_strong_edges_and_is_stated(self):
        weights = np.full((20, 20), 0.01)
        weights[0, 1] = weights[1, 0] = 1.0
        both = {"user_graph_1": weights, "item_graph_1": weights}
        axes = plot_heatmaps([Panel("a matrix", {}, {"AIR": both}, {})]).axes[0]
        assert axes.images[0].get_clim() == pytest.approx((0, 0.01))
        assert axes.get_xlabel() == "scale 0 to 0.01"


def of_widths(**errors):
    return Panel("a matrix", {}, {}, {name.replace("_", " "): {"nmae": error} for name, error in errors.items()})


class TestDepthWidth:
    def test_a_line_a_width_with_depths_ascending_and_full_width_last(self):
        names = {
            "depth 3, width full": 0.3,
            "depth 10, width 20": 0.5,
            "depth 2, width 20": 0.2,
            "depth 3, width 5": 0.1,
        }
        figure = plot_depth_width([of_widths(**names)])
        (axes,) = figure.axes
        assert entries(figure) == ["width 5", "width 20", "full width"]
        points = [np.asarray(line.get_xydata()).tolist() for line in axes.lines]
        assert points == [[[3, 0.1]], [[2, 0.2], [10, 0.5]], [[3, 0.3]]]
        assert axes.get_xticks().tolist() == [2, 3, 10]
        assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_yscale()) == ("depth", "NMAE", "log")
        assert len({str(line.get_marker()) for line in axes.lines}) == 3
        saved(figure)

    def test_a_width_looks_the_same_in_every_panel(self):
        first, second = (
            of_widths(**{"depth 2, width 5": 0.1}),
            of_widths(**{"depth 2, width 3": 0.1, "depth 2, width 5": 1.0}),
        )
        left, right = plot_depth_width([first, second]).axes
        assert left.lines[0].get_color() == right.lines[1].get_color() != right.lines[0].get_color()


DRAW = {
    "curves": (lambda panels: plot_curves(panels, "hidden"), lambda: of_curves(AIR=curves([0.3, 0.2, 0.1]))),
    "heatmaps": (plot_heatmaps, of_graphs),
    "depth and width": (plot_depth_width, lambda: of_widths(**{"depth 2, width 5": 0.1})),
}


@pytest.mark.parametrize(("draw", "make"), DRAW.values(), ids=DRAW)
class TestEveryFigure:
    def test_no_display_is_needed(self, draw, make, monkeypatch):
        monkeypatch.delenv("DISPLAY", raising=False)
        monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # would choose a display and keep the figure
        assert saved(draw([make()])).startswith(b"\x89PNG")

    def test_long_titles_stay_inside_the_figure(self, draw, make):
        panel = make()
        long = Panel("long words of a title " * 4, panel.curves, panel.arrays, panel.numbers)
        figure = draw([long, long])
        saved(figure)
        extent = figure.get_tightbbox()
        assert extent.width < 1.05 * figure.get_figwidth()

    def test_a_missing_matplotlib_names_the_extra(self, draw, make, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        with pytest.raises(MissingExtraError, match=r"pip install 'air-recsys\[viz\]'"):
            draw([make()])
