"""Every figure is drawn from runs, and its rows hold what its curves do."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from cli_cases import read_json
from reproduction_cases import use_small_cases

from air_recsys.exceptions import MissingExtraError
from benchmarks.paper import figures
from benchmarks.paper.figures import DRAWINGS, figure
from benchmarks.paper.recipes import recipes_of
from benchmarks.paper.systems import QUICK_EPOCHS

pytest.importorskip("matplotlib")

WITH_CURVES = {"fig-depth", "fig-fixed-laplacian", "fig-trajectories", "fig-training-nmae"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs of this module are kept from test to test, as from call to call."""
    return tmp_path_factory.mktemp("figures")


@pytest.fixture
def drawn(monkeypatch, folder):
    """Draw a figure in few epochs, from small stand-ins for the data, and return its table, curves and drawing."""
    use_small_cases(monkeypatch)
    made = []

    def draw(name, seeds=()):
        whole = DRAWINGS[name]
        monkeypatch.setitem(DRAWINGS, name, lambda panels: made.append(whole(panels)) or made[-1])
        (table,) = figure(folder, name, seeds=list(seeds), quick=True, out=str(folder), device="cpu")
        return table, read_json(folder / f"{name}-curves.json"), made[-1]

    return draw


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_figure_is_drawn_and_rows_hold_what_the_curves_do(name, drawn, folder):
    table, curves, drawing = drawn(name)
    assert "QUICK" in table.title
    assert f"recipes/{name}.toml;" in table.protocol
    recipes = recipes_of(name)
    expected = [(one.title, system, seed) for one in recipes for seed in one.seeds[:1] for system in one.systems]
    assert [(row["panel"], row["system"], row["seed"]) for row in table.rows] == expected
    assert all(np.isfinite(row["nmae"]) for row in table.rows)
    assert set(curves) == ({one.title for one in recipes} if name in WITH_CURVES else set())
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (folder / f"{name}.svg").read_bytes()
    if name in ("fig-depth", "fig-training-nmae"):
        assert [axes.get_title().replace("\n", " ") for axes in drawing.axes] == [one.title for one in recipes]
    for row in table.rows if curves else ():
        of_row = curves[row["panel"]][row["system"]]
        assert (of_row["epoch"][0], of_row["epoch"][-1]) == (0, QUICK_EPOCHS)
        assert of_row["epoch"] == sorted(set(of_row["epoch"]))
        assert {len(values) for values in of_row.values()} == {len(of_row["epoch"])}
        assert row["lowest"] == min(of_row["hidden"])
        assert of_row["hidden"][of_row["epoch"].index(row["lowest at"])] == row["lowest"]
        assert row["observed"] == of_row["observed"][-1]
        assert row["last energies"] == of_row["user_energy"][-1] + of_row["item_energy"][-1]
        assert row["nmae"] == pytest.approx(of_row["hidden"][-1], rel=1e-4)


def test_more_seeds_are_more_rows_and_the_drawing_shows_the_first(drawn):
    one, curves, _ = drawn("fig-trajectories")
    two, again, _ = drawn("fig-trajectories", [0, 1])
    assert [row["seed"] for row in two.rows] == [0, 1] * 4
    assert [row for row in two.rows if row["seed"] == 0] == one.rows
    assert again == curves


def test_a_missing_extra_is_told_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(figures, "outcomes", None)
    with pytest.raises(MissingExtraError, match=r"air-recsys\[viz\]"):
        figure(tmp_path, "fig-depth", seeds=[], quick=True, out=str(tmp_path), device="cpu")
