"""Cornac's own checks of a recommender, an experiment and a search, in our words; its MF goes through them as well.

Cornac publishes no tests with its package. These cover what its repository checks in ``tests/cornac/models/
test_recommender.py``, ``tests/cornac/experiment/test_experiment.py`` and ``tests/cornac/test_hyperopt.py``.
"""

import cornac.hyperopt
import numpy as np
import pytest
from cornac.data import Dataset
from cornac.eval_methods import CrossValidation, RatioSplit, StratifiedSplit
from cornac.metrics import AUC, MAE, NDCG, RMSE, FMeasure, Recall
from cornac.models import MF

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


def mf(**parameters):
    names = {"n_factors": "k", "n_epochs": "max_iter"}
    given = {names.get(name, name): value for name, value in parameters.items()}
    return MF(**{"k": 3, "max_iter": 20, "seed": 0} | given)


every_model = pytest.mark.parametrize("make", [air, mf])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Experiments write their log where they run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -------------------------------------------------------------------- recommenders


@every_model
def test_known_and_unknown_users_and_items(make):
    model = make().fit(Dataset.from_uir(triples()))
    assert model.knows_user(11)
    assert model.knows_item(0)
    for unknown in (12, -1, None):
        assert not model.knows_user(unknown)
        assert model.is_unknown_user(unknown)
    assert not model.knows_item(15)
    assert model.is_unknown_item(15)


@every_model
def test_recommend_with_and_without_the_items_seen(make):
    train_set = Dataset.from_uir(triples())
    model = make().fit(train_set)
    seen = {item for user, item, _ in triples() if user == "u3"}
    everything = model.recommend("u3", k=-1)
    assert sorted(everything) == sorted(train_set.item_ids)
    assert model.recommend("u3", k=4) == everything[:4]
    unseen = model.recommend("u3", k=-1, remove_seen=True, train_set=train_set)
    assert unseen == [item for item in everything if item not in seen]
    assert 0 < len(unseen) < len(everything)


@every_model
def test_the_rank_is_that_of_the_scores(make):
    model = make().fit(Dataset.from_uir(triples()))
    ranked, scores = model.rank(2)
    np.testing.assert_array_equal(scores, model.score(2))
    np.testing.assert_array_equal(ranked, np.argsort(-scores))
    candidates = np.array([7, 1, 9, 4])
    ranked, scores = model.rank(2, item_indices=candidates)
    np.testing.assert_array_equal(scores, model.score(2)[candidates])
    np.testing.assert_array_equal(ranked, candidates[np.argsort(-scores)])
    best, _ = model.rank(2, item_indices=candidates, k=2)
    np.testing.assert_array_equal(best[:2], ranked[:2])
    assert sorted(best) == sorted(candidates)


# -------------------------------------------------------------------- experiments


@every_model
def test_experiment_with_a_ratio_split(make, folder, capsys):
    split = RatioSplit(triples(), test_size=0.2, val_size=0.2, exclude_unknowns=True, seed=123, verbose=True)
    experiment = cornac.Experiment(split, [make(name="mine")], [MAE(), RMSE(), NDCG(k=3), Recall(k=[1, 3])])
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


@every_model
@pytest.mark.parametrize("user_based", [True, False])
def test_experiment_scores_by_user_or_by_rating(make, user_based):
    split = RatioSplit(triples(), test_size=0.2, exclude_unknowns=True, seed=123)
    model = make()
    experiment = cornac.Experiment(split, [model], [RMSE()], user_based=user_based)
    experiment.run()
    users, items, ratings = split.test_set.uir_tuple
    pairs = zip(users, items, strict=True)
    squares = (ratings - np.array([model.rate(user, item).item() for user, item in pairs])) ** 2
    by_user = np.mean([np.sqrt(squares[users == user].mean()) for user in np.unique(users)])
    expected = by_user if user_based else np.sqrt(squares.mean())
    assert experiment.result[0].metric_avg_results["RMSE"] == pytest.approx(expected, rel=1e-5)


@every_model
def test_experiment_with_cross_validation(make):
    folds = CrossValidation(triples(), n_folds=3, exclude_unknowns=False, seed=123, verbose=True)
    experiment = cornac.Experiment(folds, [make()], [RMSE(), Recall(1), FMeasure(1)], verbose=True)
    experiment.run()
    (result,) = experiment.result
    assert len(result) == 3
    by_fold = [fold.metric_avg_results["RMSE"] for fold in result]
    assert len(set(by_fold)) == 3
    assert result.metric_mean["RMSE"] == pytest.approx(np.mean(by_fold))


@every_model
def test_experiment_with_a_stratified_split(make):
    timed = [(*triple, when) for when, triple in enumerate(triples())]
    split = StratifiedSplit(timed, chrono=True, test_size=0.2, val_size=0.2, exclude_unknowns=False, seed=123)
    experiment = cornac.Experiment(split, [make()], [MAE(), AUC()])
    experiment.run()
    for result in (*experiment.result, *experiment.val_result):
        assert np.isfinite(list(result.metric_avg_results.values())).all()


# -------------------------------------------------------------------- searches


def split_for_search():
    return RatioSplit(triples(), test_size=0.2, val_size=0.2, exclude_unknowns=False, seed=123)


@every_model
def test_grid_search(make, capsys):
    split = split_for_search()
    space = [
        cornac.hyperopt.Discrete("n_factors" if make is air else "k", [1, 2]),
        cornac.hyperopt.Discrete("learning_rate", [0.1, 0.001]),
    ]
    search = cornac.hyperopt.GridSearch(make(verbose=make is mf), space, RMSE(), split)
    cornac.Experiment(split, [search], [RMSE()], user_based=False).run()
    assert search.name in capsys.readouterr().out
    assert search.best_params in search._build_param_set()
    scores = [
        rmse_of(make().clone(params).fit(split.train_set), split.val_set) for params in search._build_param_set()
    ]
    assert search.best_score == pytest.approx(min(scores))
    for name, value in search.best_params.items():
        assert getattr(search.best_model, name) == value


def rmse_of(model, dataset):
    return cornac.eval_methods.rating_eval(model, [RMSE()], dataset)[0][0]


@every_model
def test_random_search(make):
    split = split_for_search()
    space = [
        cornac.hyperopt.Discrete("n_factors" if make is air else "k", [1, 2, 3]),
        cornac.hyperopt.Continuous("learning_rate", low=0.01, high=0.1),
    ]
    search = cornac.hyperopt.RandomSearch(make(), space, AUC(), split, n_trails=3)
    cornac.Experiment(split, [search], [AUC()]).run()
    assert 0.01 <= search.best_params["learning_rate"] < 0.1
    ranked, scores = search.rank(0)
    np.testing.assert_array_equal(scores, search.best_model.score(0))
    assert ranked[0] == scores.argmax()


def test_a_search_over_dictionaries():
    split = split_for_search()
    choices = [{"schedule": "linear"}, {"schedule": "constant"}]
    space = [cornac.hyperopt.Discrete("air_params", choices)]
    search = cornac.hyperopt.RandomSearch(air(), space, RMSE(), split, n_trails=2).fit(split.train_set, split.val_set)
    assert search.best_params["air_params"] in choices
    assert search.best_model.model_.solver.schedule == search.best_params["air_params"]["schedule"]
