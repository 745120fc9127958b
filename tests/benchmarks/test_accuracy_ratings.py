"""Figures of ratings are those of the answers, splits leave the test parts alone, and every system can be trained."""

import numpy as np
import pandas as pd
import pytest

from air_recsys import AIR, Interactions
from air_recsys.data.sets.planted import make_planted_ratings
from air_recsys.evaluation.experiment import ask_ratings, check_sealed, rated_pairs
from air_recsys.evaluation.folds import cross_validation_folds
from air_recsys.evaluation.system import System
from air_recsys.evaluation.systems import AIR_SETTINGS
from air_recsys.exceptions import MissingExtraError, ParameterError
from air_recsys.metrics import rmse
from air_recsys.models import BiasModel
from air_recsys.solvers import Adam
from benchmarks.accuracy import ratings_data
from benchmarks.accuracy.experiments import published_figures
from benchmarks.accuracy.ratings import (
    bench_ratings,
    chosen_systems,
    rating_systems,
    ratings,
    systems_with_features,
    systems_with_times,
)
from benchmarks.accuracy.ratings_data import RATING_SETS, check_times, chosen_folds, known_tables, validation_fold

SMALL = {"n_factors": 3, "graph_neighbors": 5, "n_sweeps": 20, "n_epochs": 20}
FEW = {"n_factors": 2, "n_sweeps": 5, "n_epochs": 5}


@pytest.fixture(scope="module")
def folds():
    return cross_validation_folds(make_planted_ratings(60, 40, 1200, 3, 2).interactions, 3, 0)


def pairs(data):
    return set(zip(data.user_index.tolist(), data.item_index.tolist(), strict=True))


# -------------------------------------------------------------------- figures


def test_rows_are_means_over_folds_and_published_figures_stand_beside(folds, at_once):
    report = bench_ratings("flixster", folds, {"Biases": System(BiasModel().fit, "of ours")}, seed=3)
    ours, *others = report.rows
    single = []
    for fold in folds:
        asked = fold.test.user_ids[fold.test.user_index], fold.test.item_ids[fold.test.item_index]
        single.append(rmse(fold.test.ratings, BiasModel().fit(fold.train).predict(*asked)))
    assert [ours[fold.name] for fold in folds] == pytest.approx(single, rel=1e-3)  # here unclipped
    assert ours["rmse"] == pytest.approx(np.mean([ours[fold.name] for fold in folds]))
    assert [row["system"] for row in others] == ["IMC-GAE", "GC-MC"]
    assert all("rmse" not in row and row["published rmse"] > 0 for row in others)
    assert report.notes == ["Biases: of ours"]
    assert all(text in report.protocol for text in ("Monti", f"{sum(f.test.n_ratings for f in folds)}", "seed 3"))
    inner = bench_ratings("flixster", folds[:1], {"Biases": System(BiasModel().fit, "")}, validation=True)
    assert [row["system"] for row in inner.rows] == ["Biases"]
    assert folds[0].name not in inner.rows[0]  # a single fold is its own mean
    assert "validation" in inner.title


def test_the_single_folds_of_a_sampling_model_tell_their_intervals(folds, at_once):
    class Sampler(BiasModel):
        knows_deviations_ = True

        def predict(self, user_ids, item_ids, return_std=False, **how):
            mean = super().predict(user_ids, item_ids, **how)
            return mean, np.full(mean.size, 100.0)

    report = bench_ratings("douban", folds, {"wide": System(Sampler().fit, "of ours")})
    assert report.rows[0]["inside 90 %"] == 1
    expected = (
        "wide: of ours; inside of its 90 % intervals are 100.0, 100.0, 100.0 % of the test ratings of the single"
    )
    assert report.notes == [f"{expected} folds"]


@pytest.mark.parametrize("name", RATING_SETS)
def test_published_figures_are_labelled_and_stand_once(name):
    figures = published_figures("ratings", name)
    assert len({system for system, _ in figures}) == len(figures) >= 2
    for _, row in figures:
        assert list(row) == ["published rmse", "published protocol"]
        assert 0.7 < row["published rmse"] < 1


def test_a_task_without_published_figures():
    with pytest.raises(ParameterError, match=r"expected a file of .*published_ratings.*, found 'published_weather'"):
        published_figures("weather", "ml-1m")


# -------------------------------------------------------------------- splits


def test_a_validation_part_is_of_the_training_part(folds):
    fold = folds[0]
    inner, other = validation_fold(fold, 0), validation_fold(fold, 1)
    assert pairs(inner.train) | pairs(inner.test) == pairs(fold.train)
    assert not pairs(inner.train) & pairs(inner.test)
    assert not (pairs(inner.train) | pairs(inner.test)) & pairs(fold.test)
    assert inner.test.n_ratings / fold.train.n_ratings == pytest.approx(1 / 3, abs=1e-3)
    assert pairs(inner.test) != pairs(other.test)


def test_folds_are_chosen_by_name(folds):
    assert chosen_folds(folds, []) == folds
    assert chosen_folds(folds, ["fold 2"]) == [folds[1]]
    with pytest.raises(ParameterError, match="folds must be one of 'fold 1', 'fold 2', 'fold 3', found 'u1'"):
        chosen_folds(folds, ["u1"])


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("ml-100k", [(80_000, 20_000)] * 5),
        ("ml-1m", [(899_979, 100_230)]),
        ("douban", [(123_202, 13_689)]),
        ("flixster", [(23_556, 2_617)]),
    ],
)
def test_the_splits_are_those_of_the_field(data_root, name, sizes):
    folds = RATING_SETS[name].load(data_root)
    assert [(fold.train.n_ratings, fold.test.n_ratings) for fold in folds] == sizes
    for fold in folds:
        check_sealed(rated_pairs(fold.train), rated_pairs(fold.test))
        check_sealed(rated_pairs(validation_fold(fold).train), rated_pairs(fold.test))


# -------------------------------------------------------------------- systems


def test_every_system_is_trained_and_answers(folds, at_once):
    systems = rating_systems("ml-100k", SMALL)
    report = bench_ratings("douban", folds[:1], systems)
    measured = [row for row in report.rows if "rmse" in row]
    assert [row["system"] for row in measured] == list(systems)
    assert all(0.3 < row["rmse"] < 1.5 and row["mae"] < row["rmse"] for row in measured)


@pytest.mark.parametrize("name", rating_systems("ml-100k"))
def test_users_and_items_without_training_ratings_are_no_obstacle(name):
    matrix = np.array([[5, 3, 1, np.nan], [4, 2, np.nan, np.nan], [1, 5, 4, np.nan], [np.nan] * 4])
    model = rating_systems("ml-100k", FEW)[name].train(Interactions.from_dense(matrix))
    predicted, _ = ask_ratings(model, (np.array([3, 0]), np.array([0, 3])))
    assert np.isfinite(predicted).all()


def test_a_system_gets_its_settings_and_the_changes(monkeypatch):
    monkeypatch.setitem(AIR_SETTINGS, "AIR wide", {"solver": "adam", "n_factors": 7, "depth": 2})
    data = Interactions.from_dense(np.array([[5.0, 3, 1], [4, 2, np.nan]]))
    systems = rating_systems("douban", {"n_factors": 1, "n_epochs": 3}, seed=5)
    assert systems["AIR wide"].settings == "AIR.for_ratings(solver='adam', n_factors=1, depth=2, n_epochs=3)"
    model = systems["AIR wide"].train(data)
    assert isinstance(model, AIR)
    assert isinstance(model.solver, Adam)
    assert (model.n_factors, model.solver.depth, model.solver.n_epochs, model.random_state) == (1, 2, 3, 5)


def test_each_system_gets_the_changes_that_it_reads():
    systems = rating_systems("douban", {"n_factors": 1, "n_sweeps": 4, "n_epochs": 3})
    assert systems["AIR"].settings == "AIR.for_ratings(n_factors=1, n_sweeps=4)"
    assert systems["AIR langevin"].settings == "AIR.for_ratings(solver='langevin', n_factors=1, n_sweeps=4)"
    assert systems["AIR adam"].settings == "AIR.for_ratings(solver='adam', n_factors=1, n_epochs=3)"
    assert systems["DMF"].changed == ("n_factors", "n_epochs")
    changed = rating_systems("douban", {"solver": "adam", "n_epochs": 3})["AIR"]
    assert changed.settings == "AIR.for_ratings(solver='adam', n_epochs=3)"
    for data, told in (("ml-1m", "rank 20, 200"), ("douban", "rank 10, 300")):  # as its authors take
        assert told in rating_systems(data)["myFM Bayesian SVD++ flipped"].settings


def test_systems_are_chosen_by_name_and_found_missing_before_any_work():
    systems = rating_systems("douban")
    assert list(chosen_systems(systems, ["Biases", "AIR"])) == ["AIR", "Biases"]
    with pytest.raises(ParameterError, match=r"systems must be one of 'AIR', .*found 'SVD'"):
        chosen_systems(systems, ["SVD"])
    absent = {"ghost": System(BiasModel().fit, "", "no_such_library", "test")}
    with pytest.raises(MissingExtraError, match=r"no_such_library.*air-recsys\[test\]"):
        chosen_systems(systems | absent, [])


def test_systems_that_know_of_time_are_asked_for_the_times(at_once):
    data = make_planted_ratings(60, 40, 1200, 3, 2).interactions
    times = 1_600_000_000 + np.arange(data.n_ratings) * 100
    timed = Interactions(
        data.user_index, data.item_index, data.ratings, data.user_ids, data.item_ids, timestamps=times
    )
    parts = cross_validation_folds(timed, 3, 0)[:1]
    every = systems_with_times({"n_factors": 2})
    assert list(every)[-1] == "AIR without times"
    asked = []

    class Asked(BiasModel):
        drift_ = "some"

        def predict(self, user_ids, item_ids, *, timestamps=None, **_):
            asked.append(timestamps)
            return super().predict(user_ids, item_ids)

    system = every["AIR"]._replace(train=lambda shown: Asked().fit(shown))
    bench_ratings("ml-100k", parts, {"Asked": system, "AIR": every["AIR"]}, origin="made", timed=True)
    np.testing.assert_array_equal(asked[0], parts[0].test.timestamps)


def test_sets_without_timestamps_have_no_times(folds):
    with pytest.raises(ParameterError, match="times: expected ratings with timestamps, found none in 'made'"):
        check_times("made", folds)


def test_features_are_shown_to_those_that_read_them_and_named(folds, at_once, monkeypatch):
    data = folds[0].train
    users = pd.DataFrame({"age": np.arange(data.n_users)}, index=data.user_ids)
    items = pd.DataFrame({"title": "x", "year": np.arange(data.n_items)}, index=data.item_ids)
    for name, table in (("users", users), ("items", items)):
        monkeypatch.setattr(f"{ratings_data.__name__}.load_movielens_{name}", lambda root, variant, table=table: table)
    monkeypatch.setitem(RATING_SETS, "ml-1m", RATING_SETS["ml-1m"]._replace(load=lambda root: folds))
    names = ["AIR", "AIR without features"]
    how = {"systems": names, "folds": ["fold 2"], "validation": True, "times": False, "settings": {"n_factors": 2}}
    (table,) = ratings(None, 0, 1, "ml-1m", features=True, **how)
    assert [row["system"] for row in table.rows] == names
    assert "beside the ratings age, gender, occupation, year, genres; tested: " in table.protocol
    systems = systems_with_features(rating_systems("ml-1m", {"n_sweeps": 1}), known_tables("ml-1m", None))
    assert [systems[name].train(data).interactions_.n_features for name in names] == [(1, 1), (0, 0)]
