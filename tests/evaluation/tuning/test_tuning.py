"""`tune`: the validation part, the trials, pruning, studies that outlive the process, and bad input."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
import pytest
from optuna.trial import TrialState

from air_recsys import AIR, Interactions
from air_recsys.evaluation.tuning import METRICS, default_space, tune
from air_recsys.exceptions import DataError, DataFileError, ParameterError
from air_recsys.metrics import auroc, mae, ranking_report
from air_recsys.splits import random_holdout

SMALL = {
    "solver": ["adam"],
    "n_factors": [2],
    "n_epochs": [20],
    "graph_neighbors": [3],
    "user_graph_reg": [0.0],
    "item_graph_reg": [1e-4],
    "learning_rate": (0.005, 0.05, "log"),
    "weight_decay": (1.0, 30.0, "log"),
}
"""Two parameters to search, in trainings that take no time."""


def fails(error, message):
    return pytest.raises(error, match=re.escape(message))


def ratings(seed=0, n_users=15, n_items=12):
    rng = np.random.default_rng(seed)
    table = np.add.outer(rng.normal(0, 0.7, n_users), rng.normal(3, 0.7, n_items)) + rng.normal(
        0, 0.3, (n_users, n_items)
    )
    users, items = np.nonzero(rng.random((n_users, n_items)) < 0.7)
    values = table[users, items].round(1).clip(0.5, 5)
    return Interactions(users, items, values, range(100, 100 + n_users), range(n_items))


def labels(seed=0, n_users=14, n_items=10):
    rng = np.random.default_rng(seed)
    return Interactions.from_dense((rng.random((n_users, n_items)) < 0.3).astype(float))


def search(data=None, **options):
    options = {"space": SMALL, "n_trials": 3, "device": "cpu"} | options
    return tune(ratings() if data is None else data, **options)


def history(tuning):
    """What the sampler chose and what came of it, without the numbers of the trials."""
    return [(trial.params, trial.value, trial.state) for trial in ended(tuning.study)]


def ended(study):
    return [trial for trial in study.trials if trial.state in (TrialState.COMPLETE, TrialState.PRUNED)]


def pairs(data):
    return set(zip(data.user_index.tolist(), data.item_index.tolist(), strict=True))


@pytest.fixture
def spy(monkeypatch):
    """Everything that `AIR.fit` is given."""
    seen, fit = [], AIR.fit

    def watching(self, interactions, **options):
        seen.append(interactions)
        return fit(self, interactions, **options)

    monkeypatch.setattr(AIR, "fit", watching)
    return seen


@pytest.fixture
def no_training(monkeypatch):
    def refuse(self, *args, **kwargs):
        raise AssertionError("trained before the input was checked")

    monkeypatch.setattr(AIR, "train_by", refuse)


def test_every_trial_trains_on_the_same_part_and_never_sees_the_validation_part(spy):
    data = ratings()
    before, split = data.to_frame(), random_holdout(data, 0.2, random_state=5)
    found = search(data, validation_fraction=0.2, random_state=5)
    assert len(spy) == len(found.study.trials) == 3
    for given in spy:
        assert pairs(given) == pairs(data.select(split.train))
        assert pairs(given).isdisjoint(pairs(data.select(split.test)))
        assert (given.n_users, given.n_items) == (data.n_users, data.n_items)
    assert f"{split.test.sum()} validation ratings" in found.protocol
    assert f"{split.train.sum()} for training" in found.protocol
    pd.testing.assert_frame_equal(data.to_frame(), before)


@pytest.mark.parametrize(("metric", "measure"), [("mae", mae), ("auroc", auroc)])
def test_the_best_value_is_the_metric_of_the_best_model_on_the_validation_part(metric, measure):
    data = labels() if METRICS[metric].on_labels else ratings()
    found = search(data, metric=metric)
    split = random_holdout(data, 0.1, random_state=0)
    held_out = data.select(split.test)
    model = found.model().fit(data.select(split.train))
    predicted = model.predict(data.user_ids[held_out.user_index], data.item_ids[held_out.item_index])
    assert found.best_value == pytest.approx(measure(held_out.ratings, predicted), rel=1e-5)


def test_the_ranking_metric_is_that_of_unseen_items():
    data = labels()
    found = search(data, metric="ndcg_at_k", validation_fraction=0.3)
    split = random_holdout(data, 0.3, random_state=0)
    training, held_out = data.select(split.train), data.select(split.test)
    model = found.model().fit(training)
    expected = ranking_report(
        lambda users: model.predict(
            np.repeat(users, data.n_items), np.tile(np.arange(data.n_items), users.size)
        ).reshape(users.size, -1),
        held_out.to_csr(),
        training.to_csr(),
        10,
    )
    assert found.best_value == pytest.approx(expected["ndcg_at_k"], abs=0.02)  # `predict` clips, which makes ties


@pytest.mark.parametrize("metric", list(METRICS))
def test_the_best_trial_is_the_lowest_error_or_the_highest_score(metric):
    found = search(labels(), metric=metric, validation_fraction=0.3)
    values = [trial.value for trial in found.study.trials if trial.state == TrialState.COMPLETE]
    assert len(values) > 1
    assert found.best_value == (min if METRICS[metric].direction == "minimize" else max)(values)
    table = found.trials()
    assert table["value"].iloc[0] == found.best_value
    assert {name: table[name].iloc[0] for name in found.best_params} == found.best_params


def test_the_first_trial_has_the_settings_of_the_preset():
    few = {"n_factors": (2, 30), "n_sweeps": [3], "pattern_features": (0, 200), "dtype": ["float32", "float64"]}
    found = tune(ratings(), space=few, n_trials=1, device="cpu")
    assert found.best_params == {"n_factors": 20, "n_sweeps": 3, "pattern_features": 0, "dtype": "float32"}


def test_the_first_trial_by_adam_has_the_settings_of_the_preset_and_so_has_its_model_which_is_not_fitted():
    data = ratings()
    few = {"n_epochs": [20], "graph_neighbors": (2, 30), "n_factors": (2, 30), "schedule": ["linear", "cosine"]}
    found = tune(data, space=few | {"solver": ["adam"]}, n_trials=1, random_state=7, device="cpu")
    training = data.select(random_holdout(data, 0.1, random_state=7).train)
    strength = 3 * training.n_ratings / (data.n_users * data.n_items) ** 2
    expected = {"graph_neighbors": 20, "n_factors": 20, "schedule": "cosine", "weight_decay": 12.0, "bias_decay": 1.0}
    expected |= {"learning_rate": 0.05, "user_graph_reg": strength, "item_graph_reg": strength, "n_epochs": 20}
    assert found.best_params == pytest.approx(expected | {"solver": "adam"})
    model = found.model(verbose=True, n_epochs=3)
    assert not hasattr(model, "global_mean_")
    own = AIR.for_ratings(random_state=7, device="cpu", **found.best_params | {"verbose": True, "n_epochs": 3})
    assert model.get_params() == own.get_params()


def test_trials_of_a_posterior_can_be_given_up():
    few = {"n_factors": [2], "pattern_features": (1, 8), "n_sweeps": [20]}
    found = tune(ratings(), space=few, n_trials=12, device="cpu")
    assert found.model().solver.user_graph_reg == "auto"
    reports = [len(trial.intermediate_values) for trial in ended(found.study)]
    assert 0 < min(reports) <= max(reports) == 9


@pytest.mark.parametrize("preset", ["ratings", "interactions", "completion"])
def test_the_own_settings_of_a_preset_lie_in_its_default_space(preset):
    data = labels()
    few = {"n_sweeps": [5]} if preset == "ratings" else {"n_epochs": [5]}
    found = tune(data, preset=preset, space=few, n_trials=1, device="cpu")
    model = AIR.of_preset(preset)
    settings = model.get_params(deep=False) | model.solver.get_params()
    for name in default_space(preset, data):
        assert name in found.best_params
        assert settings[name] in (found.best_params[name], "auto")


def test_every_drawn_value_lies_in_its_domain_and_settings_go_together():
    """The check of bounds takes the first choice of everything else, not the preset's value."""
    space = SMALL | {"n_factors": (2, 4), "depth": [2, 3], "graph_neighbors": (2, 8, "log"), "patience": [5]}
    space |= {"unobserved_weight": [0.01], "biases": [False], "center": [False], "validation_fraction": [0.1]}
    found = search(space=space, n_trials=10)
    drawn = pd.DataFrame([trial.params for trial in found.study.trials])
    assert set(drawn["n_factors"]) <= {2, 3, 4}
    assert drawn["n_factors"].nunique() > 1
    assert set(drawn["depth"]) == {2, 3}
    assert drawn["graph_neighbors"].between(2, 8).all()
    assert drawn["weight_decay"].between(1, 30).all()
    assert drawn["weight_decay"].nunique() > 7
    assert set(drawn["n_epochs"]) == {20}
    assert set(drawn["unobserved_weight"]) == {0.01}


def test_hopeless_trials_are_given_up_half_way(spy):
    space = SMALL | {"n_epochs": [50], "learning_rate": (1e-6, 0.05, "log"), "weight_decay": [12.0]}
    found = search(space=space, n_trials=10)
    pruned = [trial for trial in found.study.trials if trial.state == TrialState.PRUNED]
    assert pruned
    assert len(spy) == 10
    for trial in pruned:
        assert max(trial.intermediate_values) < 10
        assert min(trial.intermediate_values) >= 1
        assert max(trial.intermediate_values) >= 3
        best = min(trial.intermediate_values.values())
        assert best > found.best_value
    table = found.trials()
    assert (table["state"] == "pruned").sum() == len(pruned)
    assert table.loc[table["state"] == "pruned", "value"].isna().all()


def test_diverged_trials_do_not_end_the_search_unless_all_diverge():
    found = search(space=SMALL | {"learning_rate": [0.02, 1e8]}, n_trials=6)
    table = found.trials()
    assert set(table["state"]) == {"complete", "diverged"}
    assert (table.loc[table["state"] == "diverged", "learning_rate"] == 1e8).all()
    assert found.best_params["learning_rate"] == 0.02
    with fails(ParameterError, "expected a completed trial, found none of 2, of which 2 diverged"):
        search(space=SMALL | {"learning_rate": [1e8]}, n_trials=2)


def test_other_errors_end_the_search_and_their_trial_is_made_again(tmp_path, monkeypatch):
    storage, train = tmp_path / "s.db", AIR.train_by

    def broken(self, *data, **options):
        if self.solver.weight_decay != 12:
            raise MemoryError("no room")
        return train(self, *data, **options)

    with monkeypatch.context() as patched:
        patched.setattr(AIR, "train_by", broken)
        with fails(MemoryError, "no room"):
            search(storage=storage)
    assert history(search(storage=storage)) == history(search())


def test_a_study_in_two_parts_is_the_study_in_one_and_a_whole_one_is_only_read(tmp_path, spy):
    whole, other = search(n_trials=11), search(random_state=1)
    assert history(whole)[1] != history(other)[1]
    storage = tmp_path / "s.db"
    for n_trials in (1, 11):  # past the trials that are drawn at random
        parts = search(storage=storage, n_trials=n_trials)
        assert len(parts.study.trials) == n_trials
        assert parts.best_value <= whole.study.trials[0].value
    assert history(parts) == history(whole)
    assert (parts.best_params, parts.best_value) == (whole.best_params, whole.best_value)
    spy.clear()
    assert history(search(storage=str(storage), n_trials=2)) == history(parts)
    assert not spy
    search(storage=f"sqlite:///{storage}", study_name="other", metric="mae", n_trials=1)
    assert set(optuna.get_all_study_names(f"sqlite:///{storage}")) == {"air_recsys", "other"}


KILLED = """
import sys, threading, time
sys.path.insert(0, {folder!r})
from test_tuning import AIR, search
train, seen, waiting = AIR.train_by, dict(first=0, third=0), threading.Barrier(2)
def slow(self, *data, callbacks=(), **options):
    name = threading.current_thread().name
    seen[name] += 1
    if seen[name] > dict(first=0, third=2)[name]:
        if waiting.wait() == 0:
            print("training", flush=True)
        callbacks = [*callbacks, lambda record: time.sleep(60)]
    return train(self, *data, callbacks=callbacks, **options)
AIR.train_by = slow
for name in seen:
    threading.Thread(target=search, name=name, kwargs=dict(storage=f"{storage}/{{name}}.db", n_trials=3)).start()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_search_goes_on(tmp_path):
    """Killed in the middle of a trial, its first or its third, the study ends as if nothing had happened."""
    code = KILLED.format(folder=str(Path(__file__).parent), storage=tmp_path)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "training\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    whole = search(n_trials=3)
    for storage, n_left in ((tmp_path / "first.db", 1), (tmp_path / "third.db", 3)):
        left = optuna.load_study(study_name="air_recsys", storage=f"sqlite:///{storage}").trials
        assert [trial.state for trial in left].count(TrialState.RUNNING) == 1
        assert len(left) >= n_left
        resumed = search(storage=storage, n_trials=3)
        assert len(ended(resumed.study)) == 3
        assert [trial.state for trial in resumed.study.trials].count(TrialState.FAIL) == 1
        assert not [trial for trial in resumed.study.trials if trial.state == TrialState.RUNNING]
        assert history(resumed) == history(whole)
        assert len(resumed.trials()) == 3


@pytest.fixture(scope="module")
def finished_study(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "s.db"
    search(storage=path, n_trials=1)
    return path


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"metric": "mae"}, "was made with metric=rmse, found mae"),
        ({"validation_fraction": 0.2}, "was made with validation_fraction=0.1, found 0.2"),
        ({"preset": "completion"}, "was made with preset=ratings, found completion"),
        ({"space": SMALL | {"weight_decay": (1.0, 20.0)}}, "was made with space['weight_decay']=(1.0, 30.0, 'log')"),
        ({"space": SMALL | {"depth": [2]}}, "was made with space['depth']=the default, found [2]"),
    ],
)
@pytest.mark.usefixtures("no_training")
def test_a_study_of_another_search_is_refused(finished_study, changed, message):
    with fails(ParameterError, message):
        search(**{"storage": finished_study, "n_trials": 9} | changed)


@pytest.mark.usefixtures("no_training")
def test_other_data_are_told_apart_by_every_part_and_a_study_of_someone_else_is_refused(finished_study, tmp_path):
    data = ratings()
    columns, ids = (data.user_index, data.item_index, data.ratings), (data.user_ids, data.item_ids)
    raised = (*columns[:2], data.ratings + np.eye(1, data.n_ratings)[0] * 0.1)
    for other in (
        Interactions(*raised, *ids),
        Interactions(*columns, data.user_ids + 1, data.item_ids),
        Interactions(*(column[::-1] for column in columns), *ids),
        Interactions(*columns, *ids, weights=np.full(data.n_ratings, 2.0)),
    ):
        with fails(ParameterError, "was made with other data"):
            search(other, storage=finished_study, n_trials=9)
    study = optuna.create_study(storage=f"sqlite:///{tmp_path / 's.db'}", study_name="air_recsys")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    with fails(ParameterError, "the study 'air_recsys' was not made by air_recsys"):
        search(storage=tmp_path / "s.db")


def test_a_callback_can_stop_the_search_and_no_trial_begins_after_the_timeout():
    found = search(n_trials=9, callbacks=[lambda study, trial: study.stop() if trial.number == 1 else None])
    assert len(found.study.trials) == 2
    found = search(n_trials=9, timeout=0.5, callbacks=[lambda study, trial: time.sleep(0.6)])
    assert len(found.study.trials) == 1


SPEAKING = """
import sys
import numpy as np
import optuna
from air_recsys.evaluation.tuning import tune
before, ratings = optuna.logging.get_verbosity(), np.random.default_rng(0).integers(1, 6, (12, 8)).astype(float)
space = {"n_factors": (1, 4), "pattern_features": [3]}
for verbose in (False, True):
    tune(ratings, space=space, n_trials=1, device="cpu", verbose=verbose)
    assert optuna.logging.get_verbosity() == before
    print("then", file=sys.stderr)
"""


def test_only_verbose_speaks_and_optunas_own_setting_stays():
    # In a process of its own: some libraries silence the loggers of all others when they set up theirs.
    said = subprocess.run([sys.executable, "-c", SPEAKING], capture_output=True, text=True, check=True).stderr
    silent, verbose, _ = said.split("then\n")
    assert silent == ""
    assert "Trial 0 finished with value" in verbose


@pytest.mark.usefixtures("no_training")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "films"}, "preset must be one of 'completion', 'interactions', 'ratings', found 'films'"),
        ({"metric": "accuracy"}, "metric must be one of 'rmse', 'mae'"),
        ({"n_trials": 0}, "n_trials must be an integer >= 1, found 0"),
        ({"validation_fraction": 0}, "validation_fraction must be a number > 0 and < 1, found 0"),
        ({"timeout": 0}, "timeout must be a number > 0, found 0"),
        ({"random_state": None}, "random_state must be an integer >= 0, found None"),
        ({"device": "gpu"}, "device must be"),
        ({"space": {"rank": (1, 5)}}, "found 'rank'"),
        ({"space": {"random_state": [0, 1]}}, "space must name parameters of AIR"),
        ({"space": {"n_factors": 5}}, "space['n_factors'] must be a range (low, high)"),
        ({"space": {"n_factors": []}}, "space['n_factors'] must be a range (low, high)"),
        ({"space": {"weight_decay": (0.0, 1.0, "log")}}, "low > 0 for 'log'"),
        ({"space": {"weight_decay": (False, True)}}, "space['weight_decay'] must be a range"),
        ({"space": {"transforms": [("blocks:2", 1e-5)]}}, "or a list of numbers, texts, True, False and None"),
        ({"space": {"n_factors": (0, 5)}}, "n_factors must be 'auto', None or an integer >= 1, found 0"),
        ({"space": {"schedule": ["cosine"]}}, "Variational does not read schedule, Adam does"),
        ({"space": SMALL | {"schedule": ["cosine", "square"]}}, "schedule must be one of 'constant'"),
    ],
)
def test_bad_parameters_are_told_before_any_training(options, message):
    with fails(ParameterError, message):
        search(**options)


@pytest.mark.usefixtures("no_training")
@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ("ratings.csv", {}, "expected Interactions, a SciPy sparse matrix, a DataFrame"),
        ([[5.0]], {}, "expected enough ratings to leave one for training"),
        (ratings(), {"metric": "auroc"}, "metric='auroc' needs ratings 0 and 1, both of them in the validation part"),
        (np.ones((4, 4)), {"metric": "average_precision"}, "both of them in the validation part, found 1"),
        (np.zeros((4, 4)), {"metric": "ndcg_at_k"}, "metric='ndcg_at_k' needs ratings other than 0"),
    ],
)
def test_bad_data_are_told_before_any_training(data, options, message):
    with fails(DataError, message):
        search(data, **options)


@pytest.mark.usefixtures("no_training")
def test_bad_places_are_told_before_any_training(tmp_path):
    with fails(ParameterError, "expected an existing folder for s.db, found no"):
        search(storage=tmp_path / "none" / "s.db")
    with fails(ParameterError, "expected a file for the study, found the folder"):
        search(storage=tmp_path)
    (tmp_path / "ratings.csv").write_text("user,item,rating\n")
    with fails(DataFileError, "expected a new file or a study (SQLite), found other content in"):
        search(storage=tmp_path / "ratings.csv")
    assert (tmp_path / "ratings.csv").read_text() == "user,item,rating\n"
