"""`CornacRanker`: the lists of `AIR.for_likes()` under Cornac's contract."""

import numpy as np
import pandas as pd
import pytest
from cornac import Experiment
from cornac.data import Dataset
from cornac.eval_methods import RatioSplit
from cornac.exception import ScoreException
from cornac.metrics import NDCG, Recall
from cornac.models import MostPop
from host_cases import fails

from air_recsys import Interactions
from air_recsys.adapters.cornac import CornacRanker
from air_recsys.exceptions import NotFittedError, ParameterError, ParameterWarning
from air_recsys.models import GraphRanker

SMALL = {"n_factors": 4, "n_steps": 20, "device": "cpu"}


def triples(n_users: int = 60, n_items: int = 30) -> list[tuple[str, str, float]]:
    """Likes of one half of the items; ids are strings, values differ."""
    rng = np.random.default_rng(0)
    same = np.arange(n_users)[:, None] % 2 == np.arange(n_items) % 2
    pairs = np.argwhere(rng.random((n_users, n_items)) < np.where(same, 0.5, 0.03))
    return [(f"u{user}", f"i{item}", float(rng.integers(1, 6))) for user, item in pairs]


@pytest.fixture(scope="module")
def data() -> Dataset:
    return Dataset.from_uir(triples())


@pytest.fixture(scope="module")
def fitted(data: Dataset) -> CornacRanker:
    return CornacRanker(**SMALL).fit(data)


def test_it_is_the_model_of_the_library_under_raw_ids(data, fitted):
    model = fitted.model_
    own = GraphRanker(**SMALL).fit(Interactions(*data.uir_tuple, list(data.uid_map), list(data.iid_map)))
    assert own.settings_ == model.settings_
    index = data.uid_map["u7"]
    expected = own.predict(["u7"] * data.num_items, list(data.iid_map))
    np.testing.assert_allclose(fitted.score(index), expected, rtol=1e-6)
    assert fitted.score(index, 3) == pytest.approx(expected[3])
    for pair in ((1000,), (0, 1000)):
        with fails(ScoreException, "1000"):
            fitted.score(*pair)


def test_times_of_a_data_set_are_read():
    rng = np.random.default_rng(1)
    timed = [(*triple, int(time)) for triple, time in zip(triples(), rng.permutation(len(triples())), strict=True)]
    given = {"user_half_life": 2.0, "factor_weight": 0.0}
    model = CornacRanker(**SMALL, settings=given).fit(Dataset.from_uirt(timed)).model_
    assert model is not None
    frame = pd.DataFrame(timed, columns=["user", "item", "rating", "timestamp"])
    own = GraphRanker(**SMALL, settings=given).fit(frame.drop(columns="rating"))
    pairs = ["u7"] * 5, ["i1", "i2", "i3", "i4", "i5"]
    np.testing.assert_allclose(model.predict(*pairs), own.predict(*pairs), rtol=1e-3)


def test_an_experiment_ranks_it_above_what_is_popular(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # experiments write their log where they run
    split = RatioSplit(triples(), test_size=0.2, rating_threshold=0.5, seed=0)
    models = [CornacRanker(**SMALL), MostPop()]
    experiment = Experiment(split, models, metrics=[NDCG(k=10), Recall(k=10)], user_based=True)
    experiment.run()
    ours, popular = (result.metric_avg_results["NDCG@10"] for result in experiment.result)
    assert ours > popular


def test_parameters_reach_the_model(data, capsys):
    settings = {"regression_weight": 1.0, "factor_weight": 0.0}
    with pytest.warns(ParameterWarning, match="n_validation=7 has no effect: it needs settings=None"):
        model = CornacRanker(settings=settings, n_validation=7, seed=3, verbose=True, **SMALL).fit(data).model_
    assert (model.settings, model.n_validation, model.random_state) == (settings, 7, 3)
    assert "regression: nothing was compared" in capsys.readouterr().out
    with fails(ParameterError, "time_budget must be None or a number > 0"):
        CornacRanker(time_budget=-1, **SMALL).fit(data)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Cornac leaves files open
def test_clones_saves_and_frozen_models(data, fitted, tmp_path):
    clone = fitted.clone({"n_factors": 3})
    assert (clone.n_factors, clone.n_steps, clone.model_) == (3, 20, None)
    loaded = CornacRanker.load(fitted.save(str(tmp_path)))
    np.testing.assert_array_equal(loaded.score(2), fitted.score(2))
    loaded.trainable = False
    np.testing.assert_array_equal(loaded.fit(data).score(2), fitted.score(2))
    for ask in (lambda: CornacRanker(trainable=False).fit(data), lambda: CornacRanker().score(0)):
        with fails(NotFittedError, "is not trained yet"):
            ask()
