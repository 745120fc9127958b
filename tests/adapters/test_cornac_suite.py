"""Cornac's own checks of an experiment and of a search, in our words.

Cornac publishes no tests with its package. These cover what its repository checks in ``tests/cornac/experiment/
test_experiment.py`` and ``tests/cornac/test_hyperopt.py``; a recommender is in `test_cornac_air.py`.
"""

import cornac.hyperopt
import numpy as np
import pytest
from cornac.data import Dataset
from cornac.eval_methods import CrossValidation, RatioSplit, StratifiedSplit
from cornac.hyperopt import Continuous, Discrete
from cornac.metrics import AUC, MAE, NDCG, RMSE, FMeasure, Recall

from air_recsys.adapters.cornac import CornacAIR


def triples(n_users=12, n_items=15, share=0.6):
    """Ratings 1..5 with a taste for one half of the items; ids are strings."""
    rng = np.random.default_rng(0)
    rated = np.argwhere(rng.random((n_users, n_items)) < share).tolist()
    taste = [4.0 if (user % 2) == (item % 2) else 2.0 for user, item in rated]
    ratings = (taste + rng.choice([-1.0, 0.0, 1.0], len(taste))).tolist()
    return [(f"u{user}", f"i{item}", rating) for (user, item), rating in zip(rated, ratings, strict=True)]


def air(**parameters):
    return CornacAIR(**{"n_factors": 3, "device": "cpu", "seed": 0} | parameters)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Experiments write their log where they run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_recommend_with_and_without_the_items_seen():
    train_set = Dataset.from_uir(triples())
    model = air().fit(train_set)
    seen = {item for user, item, _ in triples() if user == "u3"}
    everything = model.recommend("u3", k=-1)
    assert sorted(everything) == sorted(train_set.item_ids)
    assert model.recommend("u3", k=4) == everything[:4]
    unseen = model.recommend("u3", k=-1, remove_seen=True, train_set=train_set)
    assert unseen == [item for item in everything if item not in seen]
    assert 0 < len(unseen) < len(everything)


def test_experiment_with_a_ratio_split(folder, capsys):
    split = RatioSplit(triples(), test_size=0.2, val_size=0.2, exclude_unknowns=True, seed=123, verbose=True)
    experiment = cornac.Experiment(split, [air(name="mine")], [MAE(), RMSE(), NDCG(k=3), Recall(k=[1, 3])])
    experiment.run()
    for results in (experiment.result, experiment.val_result):
        (result,) = results
        assert result.model_name == "mine"
        figures = result.metric_avg_results
        assert {"MAE", "RMSE", "NDCG@3", "Recall@1", "Recall@3"} <= figures.keys()
        assert 0 < figures["MAE"] <= figures["RMSE"] < 2
        assert figures["Recall@1"] <= figures["Recall@3"]
    assert "mine" in capsys.readouterr().out
    (log,) = folder.glob("CornacExp-*.log")
    assert "mine" in log.read_text()


def test_experiment_with_folds_and_with_a_stratified_split():
    folds = CrossValidation(triples(), n_folds=3, exclude_unknowns=False, seed=123)
    experiment = cornac.Experiment(folds, [air()], [RMSE(), Recall(1), FMeasure(1)], verbose=True)
    experiment.run()
    (result,) = experiment.result
    assert len({fold.metric_avg_results["RMSE"] for fold in result}) == len(result) == 3
    timed = [(*triple, when) for when, triple in enumerate(triples())]
    split = StratifiedSplit(timed, chrono=True, test_size=0.2, val_size=0.2, exclude_unknowns=False, seed=123)
    experiment = cornac.Experiment(split, [air()], [MAE(), AUC()])
    experiment.run()
    for result in (*experiment.result, *experiment.val_result):
        assert np.isfinite(list(result.metric_avg_results.values())).all()


# -------------------------------------------------------------------- searches


def rmse_of(model, dataset):
    return cornac.eval_methods.rating_eval(model, [RMSE()], dataset)[0][0]


def test_grid_search(capsys):
    split = RatioSplit(triples(), test_size=0.2, val_size=0.2, exclude_unknowns=False, seed=123)
    space = [Discrete("n_factors", [1, 2]), Discrete("learning_rate", [0.1, 0.001])]
    search = cornac.hyperopt.GridSearch(air(n_epochs=20), space, RMSE(), split)
    cornac.Experiment(split, [search], [RMSE()], user_based=False).run()
    assert search.name in capsys.readouterr().out
    every = search._build_param_set()
    assert search.best_params in every
    models = [air(n_epochs=20).clone(params).fit(split.train_set) for params in every]
    assert search.best_score == pytest.approx(min(rmse_of(model, split.val_set) for model in models))
    for name, value in search.best_params.items():
        assert getattr(search.best_model, name) == value


def test_a_random_search_also_over_dictionaries():
    split = RatioSplit(triples(), test_size=0.2, val_size=0.2, exclude_unknowns=False, seed=123)
    choices = [{"schedule": "linear"}, {"schedule": "constant"}]
    space = [Discrete("air_params", choices), Continuous("learning_rate", low=0.01, high=0.1)]
    search = cornac.hyperopt.RandomSearch(air(n_epochs=20), space, AUC(), split, n_trails=3)
    cornac.Experiment(split, [search], [AUC()]).run()
    assert 0.01 <= search.best_params["learning_rate"] < 0.1
    assert search.best_model.model_.solver.schedule == search.best_params["air_params"]["schedule"]
    ranked, scores = search.rank(0)
    np.testing.assert_array_equal(scores, search.best_model.score(0))
    assert ranked[0] == scores.argmax()
