"""Every figure is drawn from runs, and its rows hold what its curves do."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from reproduction_cases import options, small_case, use_small_cases

from air_recsys.exceptions import MissingExtraError
from benchmarks.paper import figures, runs
from benchmarks.paper.figures import DRAWINGS, figure_of, recipes_of_figure, save_figure
from benchmarks.paper.recipes import recipes_of
from benchmarks.paper.runs import Options
from benchmarks.paper.systems import QUICK_EPOCHS

pytest.importorskip("matplotlib")

WITH_CURVES = {"fig-depth", "fig-fixed-laplacian", "fig-trajectories", "fig-training-nmae"}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    use_small_cases(monkeypatch)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs of this module are kept from test to test, as from call to call."""
    return tmp_path_factory.mktemp("figures")


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_figure_is_drawn_in_quick_mode(name, folder):
    drawn = figure_of(name, options(folder, quick=True))
    report = drawn.report
    assert "QUICK" in report.title
    folder_name = "table1" if name == "fig-inpainting" else name
    assert f"recipes/{folder_name}.toml;" in report.protocol
    expected = [
        (one.title, system, seed)
        for one in recipes_of_figure(name)
        for seed in one.seeds[:1]
        for system in one.systems
    ]
    assert [(row["panel"], row["system"], row["seed"]) for row in report.rows] == expected
    assert all(np.isfinite(row["nmae"]) for row in report.rows)
    assert drawn.figure.axes
    assert set(drawn.curves) == ({one.title for one in recipes_of_figure(name)} if name in WITH_CURVES else set())


@pytest.mark.parametrize("name", sorted(WITH_CURVES))
def test_rows_hold_what_the_curves_do(name, folder):
    drawn = figure_of(name, options(folder, quick=True))
    for row in drawn.report.rows:
        curves = drawn.curves[row["panel"]][row["system"]]
        assert (curves["epoch"][0], curves["epoch"][-1]) == (0, QUICK_EPOCHS)
        assert curves["epoch"] == sorted(set(curves["epoch"]))
        assert {len(values) for values in curves.values()} == {len(curves["epoch"])}
        assert row["lowest"] == min(curves["hidden"])
        assert curves["hidden"][curves["epoch"].index(row["lowest at"])] == row["lowest"]
        assert row["observed"] == curves["observed"][-1]
        assert row["last energies"] == curves["user_energy"][-1] + curves["item_energy"][-1]
        assert row["nmae"] == pytest.approx(curves["hidden"][-1], rel=1e-4)
        assert row["lowest"] <= row["nmae"] * (1 + 1e-4)


@pytest.mark.parametrize("name", ["fig-depth", "fig-training-nmae"])
def test_a_panel_of_curves_a_recipe(name, folder):
    axes = figure_of(name, options(folder, quick=True)).figure.axes
    assert [one.get_title().replace("\n", " ") for one in axes] == [one.title for one in recipes_of_figure(name)]


def test_pictures_have_a_row_a_recipe_and_the_truth_first(folder):
    figure = figure_of("fig-inpainting", options(folder, quick=True)).figure
    systems = {system for one in recipes_of_figure("fig-inpainting") for system in one.systems}
    assert len(figure.axes) == 6 * (2 + len(systems))
    assert figure.axes[0].get_title() == "truth"
    np.testing.assert_allclose(figure.axes[0].images[0].get_array(), small_case("barbara").truth)


def test_more_seeds_are_more_rows_and_the_drawing_shows_the_first(folder):
    one = figure_of("fig-trajectories", options(folder, quick=True))
    two = figure_of("fig-trajectories", options(folder, quick=True), seeds=[0, 1])
    assert [row["seed"] for row in two.report.rows] == [0, 1] * 4
    assert [row for row in two.report.rows if row["seed"] == 0] == one.report.rows
    assert two.curves == one.curves


def test_pictures_share_their_runs_with_table_1(folder, monkeypatch):
    first = runs.all_runs(recipes_of_figure("fig-inpainting"))
    how = options(folder, quick=True)
    figure_of("fig-inpainting", how)
    monkeypatch.setattr(runs, "run_system", None)
    assert len(runs.outcomes(first, how, "again")) == len(first)


def test_a_missing_extra_is_told_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(figures, "outcomes", None)
    with pytest.raises(MissingExtraError, match=r"air-recsys\[viz\]"):
        figure_of("fig-depth", options(tmp_path))


def test_figures_are_written_as_png_and_svg(folder, tmp_path):
    drawn = figure_of("fig-depth-width", options(folder, quick=True))
    paths = save_figure(drawn.figure, tmp_path, "fig-depth-width")
    assert [path.name for path in paths] == ["fig-depth-width.png", "fig-depth-width.svg"]
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in paths[1].read_bytes()


@pytest.mark.data
def test_a_figure_of_the_real_data(tmp_path, data_root, monkeypatch):
    monkeypatch.undo()
    drawn = figure_of("fig-heatmaps", Options(data_root, tmp_path / "runs", quick=True, device="cpu"))
    assert [row["panel"] for row in drawn.report.rows] == [one.title for one in recipes_of("fig-heatmaps")]
    assert drawn.curves == {}
    names = [axes.get_title() for axes in drawn.figure.axes]
    assert {"epoch 20", "epoch 40", "epoch 60", "same group"} <= set(names)
