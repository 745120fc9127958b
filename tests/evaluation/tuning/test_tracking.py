"""Callbacks that track a training: what TensorBoard and MLflow hold afterwards is what `history_` says."""

import os

# Before MLflow is imported: no message to its makers, and its folder store, which needs no database package.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"

import mlflow
import numpy as np
import pytest
from mlflow import MlflowClient
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from air_recsys import AIR, DMF
from air_recsys.exceptions import DataError, DivergenceError
from air_recsys.models.tracking import MLflowCallback, TensorBoardCallback


def make(**overrides):
    settings = {"n_factors": 2, "graph_neighbors": 3, "random_state": 0, "device": "cpu"}
    steps = {"n_epochs": 20, "evaluate_every": 5} if overrides.get("solver") == "adam" else {}
    return AIR.for_ratings(**settings | steps | overrides)


def ratings():
    rng = np.random.default_rng(0)
    return np.where(rng.random((10, 8)) < 0.8, rng.integers(1, 6, (10, 8)).astype(float), np.nan)


def assert_is_history(series, model):
    """`series`: name to list of (epoch, value); float32 in TensorBoard."""
    expected = model.history_.set_index("epoch").dropna(axis="columns", how="all")
    assert set(series) == set(expected.columns)
    for name, points in series.items():
        epochs, values = zip(*points, strict=True)
        assert list(epochs) == expected.index.tolist()
        np.testing.assert_allclose(values, expected[name], rtol=1e-6, atol=1e-12)


def read_board(folder):
    events = EventAccumulator(str(folder)).Reload()
    return {name: [(event.step, event.value) for event in events.Scalars(name)] for name in events.Tags()["scalars"]}


OF_DMF = DMF.for_ratings(n_factors=2, n_epochs=200, random_state=0, device="cpu")


@pytest.mark.parametrize("model", [make(validation_fraction=0.2), OF_DMF], ids=["AIR", "DMF"])
def test_tensorboard_holds_the_history_record_by_record(tmp_path, model):
    seen = []
    with TensorBoardCallback(tmp_path) as board:
        model.fit(ratings(), callbacks=[board, lambda record: seen.append(len(read_board(tmp_path)["seconds"]))])
    series = read_board(tmp_path)
    assert seen == list(range(1, len(series["seconds"]) + 1))
    assert ("validation_rmse" in series) is (getattr(model, "validation_fraction", 0) > 0)
    assert len(series["seconds"]) > 3
    assert_is_history(series, model)


def test_the_callbacks_do_not_change_the_training(tmp_path):
    plain, tracked = make().fit(ratings()), make()
    with TensorBoardCallback(tmp_path / "board") as board, MLflowCallback(tracked, (tmp_path / "ml").as_uri()) as run:
        tracked.fit(ratings(), callbacks=[board, run])
    np.testing.assert_array_equal(tracked.user_factors_, plain.user_factors_)
    assert tracked.stopped_by_ == plain.stopped_by_ == "n_sweeps"


@pytest.fixture
def store(tmp_path):
    """The address of a store of its own, with MLflow's global one elsewhere."""
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "global").as_uri())
    yield (tmp_path / "runs").as_uri()
    mlflow.set_tracking_uri(before)


def read_run(client, run_id):
    names = client.get_run(run_id).data.metrics
    return {name: [(m.step, m.value) for m in client.get_metric_history(run_id, name)] for name in names}


@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SADeprecationWarning")  # MLflow's own, with SQLAlchemy 2.1
@pytest.mark.parametrize("database", [False, True])
def test_mlflow_holds_the_histories_and_the_parameters_of_two_trainings(store, tmp_path, database):
    store = f"sqlite:///{tmp_path / 'mlflow.db'}" if database else store
    client, ids, before = MlflowClient(store), [], mlflow.get_tracking_uri()
    for seed in (0, 1):
        model = make(validation_fraction=0.2, random_state=seed)
        with MLflowCallback(model, store, experiment="films", run_name=f"seed {seed}") as tracker:
            model.fit(ratings(), callbacks=[tracker])
            assert mlflow.active_run() is None
            ids.append(tracker.run_id)
        run = client.get_run(ids[-1])
        assert_is_history(read_run(client, ids[-1]), model)
        assert run.data.params == {name: str(value) for name, value in model.get_params().items()}
        assert (run.info.status, run.info.run_name) == ("FINISHED", f"seed {seed}")
    experiment = client.get_experiment_by_name("films")
    assert experiment is not None
    assert {run.info.run_id for run in client.search_runs([experiment.experiment_id])} == set(ids)
    assert mlflow.get_tracking_uri() == before


def test_an_active_run_is_used_and_stays_open_unless_another_place_is_named(store):
    model = make()
    with mlflow.start_run() as active:
        with MLflowCallback(model) as tracker:
            model.fit(ratings(), callbacks=[tracker])
        assert mlflow.active_run() is not None
        assert MlflowClient().get_run(active.info.run_id).info.status == "RUNNING"
        mlflow.log_metric("test_rmse", 1.5)
    held = read_run(MlflowClient(), active.info.run_id)
    assert held.pop("test_rmse") == [(0, 1.5)]
    assert_is_history(held, model)
    with mlflow.start_run() as active, MLflowCallback(model, store) as tracker:
        model.fit(ratings(), callbacks=[tracker])
        assert tracker.run_id != active.info.run_id
    assert MlflowClient().get_run(active.info.run_id).data.metrics == {}


def test_a_training_that_fails_leaves_a_failed_run_and_data_that_are_refused_none(store):
    model = make(solver="adam", learning_rate=1e10)
    run_id = None
    with pytest.raises(DivergenceError), MLflowCallback(model, store) as tracker:  # noqa: PT012
        try:
            model.fit(ratings(), callbacks=[tracker])
        finally:
            run_id = tracker.run_id
    assert MlflowClient(store).get_run(run_id).info.status == "FAILED"
    refused = make()
    with pytest.raises(DataError), MLflowCallback(refused, store) as tracker:
        refused.fit("ratings.csv", callbacks=[tracker])
    assert tracker.run_id is None
    assert len(MlflowClient(store).search_runs(["0"])) == 1
