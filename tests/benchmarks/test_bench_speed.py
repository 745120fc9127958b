"""The yardstick computes what the engine computes, splits are those stated, and reports tell what was measured."""

import math
from functools import partial

import numpy as np
import pytest
import scipy.io
import torch

from air_recsys import AIR, Interactions
from air_recsys.data.sets.planted import make_planted_ratings
from air_recsys.evaluation.folds import Fold, holdout_folds
from air_recsys.exceptions import MissingExtraError, ParameterError
from air_recsys.metrics import nmae, rmse
from air_recsys.nn.build import Settings, build_objective, observations
from air_recsys.nn.objective import Penalties
from air_recsys.solvers import Adam
from benchmarks.speed import (
    accuracy,
    bench_full_width,
    bench_ratings,
    bench_ratings_step,
    bench_sweep,
    contenders,
    ratings,
    ratings_step,
    sweep,
    width,
)
from benchmarks.speed.accuracy import Curve, Task, engine_curve, plain_curve, time_to_accuracy
from benchmarks.speed.contenders import Outcome, measure, train_air, train_myfm, train_surprise
from benchmarks.speed.floor import Machine, Work, measure_machine, step_work
from benchmarks.speed.plain_factors import Entries, PlainFactors, plain_factors_step
from benchmarks.speed.ratings import Contender, movielens_split

PENALTIES = Penalties(0.7, 0.4)
STRENGTHS = (0.03, 0.05)
SMALL = {"solver": "adam", "n_factors": 3, "graph_neighbors": 5, "n_epochs": 20}


@pytest.fixture
def at_once(monkeypatch):
    """Measure in this process: starting one takes seconds."""
    for module in (accuracy, ratings, ratings_step, sweep, width):
        monkeypatch.setattr(module, "run_apart", lambda function, *arguments, threads: function(*arguments))


def split():
    """A small split; found by its name in the processes that measure."""
    (fold,) = holdout_folds(make_planted_ratings(80, 60, 1600, 3, 2).interactions, 0.1, 0)
    return fold


# -------------------------------------------------------------------- a sweep of the posterior


@pytest.mark.parametrize("solver", ["variational", "langevin"])
def test_a_sweep_is_set_beside_the_sum_of_its_parts(at_once, solver):
    table = bench_sweep(split, {"solver": solver, "n_factors": 3, "pattern_features": 4}, title="planted", rounds=1)
    rows = {row["what"]: row for row in table.rows}
    assert list(rows) == ["sweep", "gathers", "factorizations", "floor"]
    assert rows["floor"]["this / floor"] == 1
    assert rows["floor"]["seconds"] == rows["gathers"]["seconds"] + rows["factorizations"]["seconds"]
    assert all(row["seconds"] > 0 for row in table.rows)
    assert "width 3" in table.protocol


def test_only_solvers_that_sweep_have_a_sweep():
    with pytest.raises(ParameterError, match="a sweep is one of solver='variational' or 'langevin', found Adam"):
        bench_sweep(split, {"solver": "adam"}, title="planted")


# -------------------------------------------------------------------- the plain objective at factor width


def pair(depth, width=3, k=2):
    """The engine's objective and the plain one at the same parameters, with the data of the plain one."""
    rng = np.random.default_rng(0)
    matrix = np.where(rng.random((9, 7)) < 0.6, rng.normal(size=(9, 7)), np.nan)
    data = Interactions.from_dense(matrix, allow_negative=True)
    observed = observations(data.to_csr(), lambda values: values, torch.float64, torch.device("cpu"))
    settings = Settings(width, depth, (0.1, 0.5), STRENGTHS, n_neighbors=k, biases=True, penalties=PENALTIES)
    objective = build_objective(observed, settings, rng)
    objective.refresh_graphs()
    generator = torch.Generator().manual_seed(0)
    edges = [laplacian.neighbors for laplacian in objective.laplacians]
    neighbors = [each[:, -k:] for each in edges]
    plain = PlainFactors((neighbors[0], neighbors[1]), width, depth, STRENGTHS, PENALTIES, generator).double()
    *left, right = objective.factorization.weights
    with torch.no_grad():
        for parameter, weight in zip(plain.layers, [*left, right.T], strict=True):
            parameter.copy_(weight)
        for mine, others in ((plain.logits, objective.logits()), (plain.biases, objective.biases)):
            for parameter, other in zip(mine, others, strict=True):
                other.normal_(generator=generator)
                parameter.copy_(other)
    entries = (torch.as_tensor(column) for column in (data.user_index, data.item_index, data.ratings))
    return objective, plain, Entries(*entries)


@pytest.mark.parametrize("depth", [2, 3])
def test_the_plain_objective_and_its_gradient_are_the_engines(depth):
    objective, plain, entries = pair(depth)
    expected = plain(entries)
    with torch.no_grad():
        found = objective.evaluate()
    assert float(found.objective) == pytest.approx(float(expected.detach()), abs=1e-12)
    expected.backward()
    *left, right = plain.layers
    assert right.grad is not None
    gradients = [layer.grad for layer in left] + [right.grad.T]
    gradients += [each.grad for each in (*plain.biases, *plain.logits)]
    for parameter, gradient in zip(objective.parameters(), gradients, strict=True):
        assert gradient.abs().max() > 1e-4  # every term counts here
        torch.testing.assert_close(parameter.grad, gradient, rtol=0, atol=1e-12)


def test_a_plain_step_lowers_the_objective():
    _, plain, entries = pair(2)
    optimizer = torch.optim.Adam(plain.parameters(), lr=1e-2)
    values = [float(plain_factors_step(plain, optimizer, entries)) for _ in range(20)]
    assert values[-1] < values[0]


# -------------------------------------------------------------------- the floor


def test_work_grows_with_every_size():
    least = step_work((100, 80), 2000, 8, 5)
    for more in (
        step_work((101, 80), 2000, 8, 5),
        step_work((100, 80), 2001, 8, 5),
        step_work((100, 80), 2000, 9, 5),
        step_work((100, 80), 2000, 8, 6),
        step_work((100, 80), 2000, 8, 5, depth=3),
    ):
        assert more.bytes > least.bytes or more.flops > least.flops
        assert min(more.bytes - least.bytes, more.flops - least.flops) >= 0


def test_the_machine_is_measured_and_divides_the_work():
    machine = measure_machine(megabytes=1, size=32)
    assert machine.bandwidth > 0
    assert machine.flop_rate > 0
    assert Machine(10.0, 4.0).seconds(Work(20.0, 2.0)) == (2.0, 0.5)


def test_a_step_on_ratings_is_compared_with_plain_autograd_and_the_floor(at_once):
    settings = {"solver": "adam", "n_factors": 3, "graph_neighbors": 5}
    report = bench_ratings_step(split, settings, title="planted", steps=1)
    rows = {row["what"]: row for row in report.rows}
    assert list(rows) == ["engine", "plain autograd", "bytes moved", "products"]
    assert all(row["milliseconds"] > 0 for row in report.rows)
    assert rows["plain autograd"]["plain / this"] == 1
    assert max(rows["bytes moved"]["this / floor"], rows["products"]["this / floor"]) == 1
    assert "planted" in report.protocol


@pytest.mark.parametrize("settings", [{"n_factors": None}, {"graph_neighbors": None}])
def test_a_step_without_a_factor_width_or_sparse_graphs_is_refused(settings):
    with pytest.raises(ParameterError, match="expected n_factors and graph_neighbors"):
        bench_ratings_step(split, {"solver": "adam"} | settings, title="")


def test_a_step_of_another_solver_is_refused():
    with pytest.raises(ParameterError, match=r"a step is one of solver='adam', found Variational\(\)"):
        bench_ratings_step(split, {}, title="")


# -------------------------------------------------------------------- time to an accuracy


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    truth = np.outer(rng.random(12), rng.random(10))
    return Task(truth, rng.random(truth.shape) < 0.7, 20)


def test_the_curves_end_where_the_trainings_end(task):
    plain = plain_curve(task, 50, 0)
    assert plain.steps == [20, 40, 50]
    engine = engine_curve(task, {"n_epochs": 60}, 0)
    assert engine.steps == [0, 20, 40, 60]
    for curve in (plain, engine):
        assert (np.diff(curve.seconds) > 0).all()
        assert len(curve.errors) == len(curve.steps)
    model = AIR(solver=Adam(schedule="cooldown", n_epochs=60), random_state=0, device="cpu")
    model.fit(Interactions.from_dense(np.where(task.observed, task.truth, np.nan)))
    found = model.predict(*np.nonzero(~task.observed))
    expected = nmae(task.truth[~task.observed], found, value_range=float(np.ptp(task.truth)))
    assert engine.errors[-1] == pytest.approx(expected, rel=1e-4)


def test_a_target_is_reached_at_the_first_look_below_it():
    curve = Curve([1, 2, 3], [0.1, 0.2, 0.3], [0.5, 0.2, 0.1])
    assert (curve.reached(0.3), curve.reached(0.1), curve.reached(0.05)) == (1, 2, None)


def test_a_target_that_is_never_reached_has_no_time_and_the_whole_run_of_the_yardstick_counts(task, at_once):
    report = time_to_accuracy(task, 0.0, {"n_epochs": 40}, n_steps=40)
    engine, plain = report.rows
    assert not engine["reached"]
    assert math.isnan(engine["seconds_to_target"])
    assert math.isnan(engine["plain / this"])
    assert plain["steps"] == 40
    assert "engine never got to the target" in report.notes
    easy, slow = time_to_accuracy(task, 10.0, {"n_epochs": 40}, n_steps=40).rows
    assert easy["steps_to_target"] == 0
    assert slow["steps_to_target"] == 20
    assert slow["plain / this"] == 1


# -------------------------------------------------------------------- ratings beside other libraries


def test_every_contender_is_measured(at_once):
    entrants = contenders(SMALL, threads=1, gibbs_steps=15)
    ends, curves = bench_ratings(split, entrants, title="planted")
    rows = {row["model"]: row for row in ends.rows}
    listed = ["AIR", "AIR adam", "Surprise SVD", "Surprise SVD++", "implicit ALS", "myFM"]
    assert list(rows)[: len(listed)] == listed
    assert all(row["passes"] * row["cpu_seconds / pass"] == pytest.approx(row["cpu_seconds"]) for row in ends.rows)
    assert all(
        row["seconds"] > 0 and row["cpu_seconds"] > 0 and row["peak_gib"] >= row["before_gib"] > 0 for row in ends.rows
    )
    assert math.isnan(rows["implicit ALS"]["rmse"])
    assert all(0.3 < row["rmse"] < 1.5 for name, row in rows.items() if name != "implicit ALS")
    assert rows["AIR"]["this / first"] == 1
    assert {row["model"] for row in curves.rows} == {"AIR", "AIR adam"}
    last = [row for row in curves.rows if row["model"] == "AIR"][-1]
    assert last["rmse"] == pytest.approx(rows["AIR"]["rmse"], rel=1e-4)
    assert last["seconds"] <= rows["AIR"]["seconds"]


@pytest.mark.parametrize("settings", [SMALL, {}])
def test_looking_at_the_test_ratings_changes_nothing(settings):
    fold = split()
    outcome = train_air(fold, settings)
    model = AIR.for_ratings(random_state=0, device="cpu", **settings).fit(fold.train)
    found = model.predict(fold.test.user_ids[fold.test.user_index], fold.test.item_ids[fold.test.item_index])
    assert outcome.rmse == pytest.approx(rmse(fold.test.ratings, found), rel=1e-6)


def unrated():
    """A split where a user and an item have no ratings to train on."""
    matrix = np.array([[5, 3, 1, np.nan], [4, 2, np.nan, np.nan], [1, 5, 4, np.nan], [np.nan, np.nan, np.nan, 2]])
    data = Interactions.from_dense(matrix)
    test = data.user_index == 3
    return Fold("unrated", data.select(~test), data.select(test))


@pytest.mark.parametrize(
    "contender", [partial(train_surprise, algorithm="SVDpp"), partial(train_myfm, rank=2, n_steps=10)]
)
def test_rows_without_training_ratings_are_no_obstacle(contender):
    assert np.isfinite(contender(unrated()).rmse)


def test_an_outcome_comes_with_its_memory():
    found = measure(lambda fold: Outcome(1.0, 0.5, 1), unrated)
    assert found["outcome"].seconds == 1
    assert math.isnan(found["outcome"].rmse)
    assert found["peak_gib"] > 0


def test_a_missing_library_is_told_before_any_work():
    absent = {"ghost": Contender(train_air, (SMALL,), "", "no_such_library", "test")}
    with pytest.raises(MissingExtraError, match=r"no_such_library.*air-recsys\[test\]"):
        bench_ratings(split, contenders(SMALL, 1) | absent, title="")


def test_full_width_has_every_depth_relative_to_dmf(at_once):
    report = bench_full_width(12, (2, 3), rounds=1, steps=2)
    half = len(report.rows) // 2
    assert [row["depth"] for row in report.rows] == [2] * half + [3] * half
    of_dmf = [row["this / DMF"] for row in report.rows if row["contender"] == "engine, DMF"]
    assert of_dmf == [1, 1]


@pytest.mark.data
def test_the_split_is_that_of_the_published_file(data_root):
    matrix = scipy.io.loadmat(data_root / "ml-1m" / "movielens_1m.mat")["X"].tocoo()
    hidden = np.random.RandomState(1234).rand(matrix.nnz) < 0.1
    fold = movielens_split(data_root)
    for part, chosen in ((fold.train, ~hidden), (fold.test, hidden)):
        columns = (part.user_ids[part.user_index], part.item_ids[part.item_index], part.ratings)
        expected = (matrix.row[chosen] + 1, matrix.col[chosen] + 1, matrix.data[chosen])
        order, other = np.lexsort(columns[:2]), np.lexsort(expected[:2])
        for mine, theirs in zip(columns, expected, strict=True):
            np.testing.assert_array_equal(mine[order], theirs[other])
