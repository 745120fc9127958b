"""Sweeps change one size at a time, exponents are slopes, and a training on planted ratings finds the groups."""

import math

import numpy as np
import pytest

from air_recsys.evaluation.results.apart import ProcessEndedError
from air_recsys.exceptions import ParameterError
from benchmarks.scale import Size, bench_growth, bench_planted, sizes_of, sweeps, training
from benchmarks.scale.sweeps import growth_exponent, measure_size
from benchmarks.scale.training import train_planted

BASE = Size(n_ratings=900, n_users=60, n_items=40, n_factors=3, graph_neighbors=5)


def test_a_sweep_changes_one_size():
    points = sizes_of(BASE, {"n_ratings": [600, 900], "graph_neighbors": [4]})
    assert [name for name, _ in points] == ["n_ratings", "n_ratings", "graph_neighbors"]
    assert points[0][1] == BASE._replace(n_ratings=600)
    assert points[1][1] == BASE
    with pytest.raises(ParameterError, match=r"a sweep must be one of 'n_ratings', .*found 'depth'"):
        sizes_of(BASE, {"depth": [2]})


@pytest.mark.parametrize("power", [-1.0, 0.0, 0.5, 2.0])
def test_the_exponent_is_the_power(power):
    sizes = np.array([2.0, 30.0, 700.0])
    assert growth_exponent(sizes, 0.3 * sizes**power) == pytest.approx(power, abs=1e-9)


def test_times_that_have_no_logarithm_do_not_count():
    assert growth_exponent([1, 10, 100, 1000], [0.0, 1.0, 10.0, math.nan]) == pytest.approx(1)
    assert math.isnan(growth_exponent([10, 10], [1.0, 2.0]))
    assert math.isnan(growth_exponent([10, 100], [0.0, 2.0]))


def test_a_size_is_measured():
    found = measure_size(BASE, {"solver": "adam"}, seed=0)
    assert found["epoch_seconds"] > 0
    assert min(found["refresh_seconds"], found["first_seconds"]) >= 0
    assert found["peak_gib"] >= found["data_gib"] > 0


@pytest.mark.parametrize("settings", [{}, {"solver": "langevin"}])
def test_a_size_is_measured_in_sweeps_of_the_preset(settings):
    found = measure_size(BASE, settings, seed=0)
    assert found.keys() == {"sweep_seconds", "first_seconds", "data_gib", "peak_gib"}
    assert min(found["sweep_seconds"], found["first_seconds"]) > 0


def test_every_point_has_a_row_and_every_sweep_its_exponents(monkeypatch):
    measured = []

    def apart(function, size, *_, threads):
        measured.append(size)
        if size.n_users == 50:
            raise ProcessEndedError("gone")
        return {"epoch_seconds": size.n_ratings / 1e3, "refresh_seconds": size.n_factors**2.0, "first_seconds": 1.0}

    monkeypatch.setattr(sweeps, "run_apart", apart)
    points = sizes_of(BASE, {"n_ratings": [450, 900], "n_factors": [3, 6], "n_users": [50]})
    growth, exponents = bench_growth(points, {"solver": "adam", "depth": 2})
    assert len(growth.rows) == 5
    assert len(measured) == 4  # the base belongs to two sweeps
    assert math.isnan(growth.rows[-1]["epoch_seconds"])
    assert growth.notes == [f"{BASE._replace(n_users=50)}: gone"]
    slopes = {row["sweep"]: row for row in exponents.rows}
    assert slopes["n_ratings"]["epoch_seconds"] == pytest.approx(1)
    assert slopes["n_factors"]["refresh_seconds"] == pytest.approx(2)
    assert math.isnan(slopes["n_users"]["epoch_seconds"])
    assert "depth=2" in growth.protocol


@pytest.mark.parametrize("bench", [bench_growth, bench_planted])
def test_sizes_are_no_further_settings(bench):
    with pytest.raises(ParameterError, match=r"found \['n_factors'\], which are sizes here"):
        bench([] if bench is bench_growth else BASE, {"n_factors": 4})


def test_a_training_on_planted_ratings_beats_biases_and_finds_the_groups():
    size = Size(n_ratings=40_000, n_users=400, n_items=300, n_factors=16, graph_neighbors=10)
    (row,), groups = train_planted(size, {"solver": "adam", "weight_decay": 8.0}, seed=0)
    assert row["noise_floor"] < row["rmse"] < row["biases_rmse"]
    assert 0 < row["share_of_the_way"] < 1
    assert row["peak_gib"] >= row["data_gib"] > 0
    assert [each["groups"] for each in groups] == [20, 15]
    for each in groups:
        assert all(0.3 < each[name] <= 1 for name in ("spectral_nmi", "louvain_nmi", "k_means_nmi"))


def test_the_preset_beats_biases_and_its_intervals_hold():
    size = Size(n_ratings=40_000, n_users=400, n_items=300, n_factors=16, graph_neighbors=10)
    (row,), groups = train_planted(size, {}, seed=0)
    assert row["noise_floor"] < row["rmse"] < row["biases_rmse"]
    assert 0.85 < row["inside 90 %"] < 0.95
    assert all(0.3 < each["k_means_nmi"] <= 1 for each in groups)


def test_without_graphs_there_are_no_communities(monkeypatch):
    monkeypatch.setattr(training, "run_apart", lambda function, *arguments, threads: function(*arguments))
    settings = {"solver": "adam", "user_graph_reg": 0.0, "item_graph_reg": 0.0, "n_epochs": 5}
    errors, groups = bench_planted(BASE, settings)
    assert errors.rows[0]["rmse"] > 0
    assert all(math.isnan(row["spectral_nmi"]) and math.isnan(row["louvain_nmi"]) for row in groups.rows)
    assert all(row["k_means_nmi"] >= 0 for row in groups.rows)
    assert "900 planted ratings of 60 users and 40 items" in errors.protocol
