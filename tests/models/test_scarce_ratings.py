"""Ratings so few that a posterior takes biases alone: it is better than damped ones, and keeps every promise."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from air_recsys import AIR, BiasModel, Interactions
from air_recsys.metrics import rmse
from air_recsys.models.engines.scaling import is_scarce
from benchmarks.paper.scarce import scarce_ratings

CPU = {"random_state": 0, "device": "cpu"}
both = pytest.mark.parametrize("solver", ["variational", "langevin"])


def drawn(seed=0, size=400, n=700, n_new=3000):
    rng = np.random.default_rng(seed)
    users, items = np.divmod(rng.choice(size * size, n + n_new, replace=False), size)
    ratings = 50 + 3 * rng.normal(size=size)[users] + 12 * rng.normal(size=size)[items]
    ratings += 15 * rng.normal(size=n + n_new)
    data = Interactions(users, items, ratings.clip(1, 100), range(size), range(size))
    return data.select(np.arange(n)), data.select(np.arange(n, n + n_new))


@pytest.fixture(scope="module", params=["variational", "langevin"])
def fitted(request):
    return AIR.for_ratings(solver=request.param, **CPU).fit(drawn()[0])


def test_few_ratings_of_many_are_scarce_and_a_small_matrix_is_not():
    assert is_scarce(drawn()[0])
    assert not is_scarce(Interactions.from_dense(np.ones((4, 5))))


def test_unrated_users_do_not_make_ratings_scarce():
    users, items = np.divmod(np.arange(0, 900, 3), 30)
    for size in (30, 5000):
        assert not is_scarce(Interactions(users, items, np.ones(300), range(size), range(size)))


def test_scarce_ratings_get_biases_alone_and_graphs_without_edges(fitted):
    assert fitted.settings_ == {"n_factors": 0, "pattern_features": "degrees"}
    assert fitted.user_factors_.shape == (400, 0)
    assert fitted.user_adjacency_ is not None
    assert fitted.user_adjacency_.shape == (400, 400)
    assert fitted.user_adjacency_.nnz == 0


def test_nodes_without_learned_edges_get_those_of_the_pattern_where_it_is_wanted(fitted):
    plain = clone(fitted).set_params(pattern_graphs=False).fit(drawn()[0])
    assert fitted.user_graph_.n_edges > 0
    assert plain.user_graph_.n_edges == 0
    np.testing.assert_array_equal(plain.predict(range(9), range(9)), fitted.predict(range(9), range(9)))


def test_what_is_given_is_not_touched():
    model = AIR.for_ratings(n_factors=2, pattern_features=3, n_sweeps=2, **CPU).fit(drawn()[0])
    assert model.user_factors_.shape == (400, 2)
    assert model.settings_ == {}
    assert model.user_graph_ is not None
    assert model.user_graph_.to_scipy().nnz > 0


def test_the_preset_is_better_than_damped_biases_where_ratings_are_very_sparse():
    gains = []
    for seed in (3, 4, 5, 6):
        shown, asked = scarce_ratings(seed)
        scores = [
            model.fit(shown).predict(asked.user_index, asked.item_index).clip(1, 100)
            for model in (AIR.for_ratings(**CPU), BiasModel())
        ]
        gains.append(1 - rmse(asked.ratings, scores[0]) / rmse(asked.ratings, scores[1]))
    assert np.mean(gains) > 0.002


def test_intervals_hold_what_they_say(fitted):
    new = drawn()[1]
    scores, deviations = fitted.predict(new.user_index, new.item_index, return_std=True)
    assert 0.86 < np.mean(np.abs(new.ratings - scores) < 1.645 * deviations) < 0.94


def test_files_hold_everything(fitted, tmp_path):
    new = drawn()[1]
    loaded = AIR.load(fitted.save(tmp_path / "model.air"))
    for before, after in zip(
        fitted.predict(new.user_index, new.item_index, return_std=True),
        loaded.predict(new.user_index, new.item_index, return_std=True),
        strict=True,
    ):
        np.testing.assert_array_equal(before, after)


@both
def test_a_training_goes_on_where_it_was(solver, tmp_path):
    shown, new = drawn()
    whole = AIR.for_ratings(solver=solver, n_sweeps=40, **CPU).fit(shown)
    cut = AIR.for_ratings(solver=solver, n_sweeps=40, **CPU)
    cut.fit(shown, checkpoint=tmp_path / "run", every=5, callbacks=[lambda record: record.epoch == 22])
    resumed = AIR.for_ratings(solver=solver, n_sweeps=40, **CPU).fit(shown, resume_from=tmp_path / "run")
    first, second = (each.predict(new.user_index, new.item_index) for each in (whole, resumed))
    np.testing.assert_array_equal(first, second)


def test_a_new_user_gets_a_bias_on_the_side_of_its_ratings(fitted):
    rows = [sp.csr_array(np.full((1, 400), value) * (np.arange(400) < 5)) for value in (80.0, 30.0)]
    high, low = map(fitted.fold_in, rows)
    assert high.factors.shape == (1, 0)
    assert high.biases[0] > low.biases[0]


def test_reasons_add_up_to_the_score(fitted):
    shown = drawn()[0]
    explanation = fitted.explain(int(shown.user_index[0]), int(shown.item_index[1]))
    assert explanation.total() == pytest.approx(explanation.score, abs=1e-3)


def test_new_ratings_move_a_user():
    shown = drawn()[0]
    model = AIR.for_ratings(**CPU).fit(shown)
    user, items = int(shown.user_index[0]), np.arange(390, 395)
    before = model.predict(np.full(5, user), items)
    more = Interactions(np.zeros(5, int), np.arange(5), np.full(5, shown.ratings.max()), [user], items)
    assert (model.partial_fit(more).predict(np.full(5, user), items) > before).all()
