"""`AIR` with a posterior: standard deviations, graphs, validation, and ratings too few for factors."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from model_cases import CPU, assert_same_predictions, frame
from sklearn.base import clone

from air_recsys import AIR, Interactions
from air_recsys.exceptions import NotFittedError, ParameterError, UnknownIdError
from air_recsys.graphs.agreement import agreement_graphs
from air_recsys.metrics import rmse
from air_recsys.models.engines.scaling import is_scarce
from air_recsys.splits import random_holdout

SOLVERS = ("variational", "langevin")
both = pytest.mark.parametrize("solver", SOLVERS)
BOTH_GRAPHS = {"user_graph_reg": "auto", "item_graph_reg": "auto"}


def drawn(n_users=120, n_items=80, density=0.3, seed=0):
    """Ratings drawn from the model of the posterior: shown ones, and new ones of other pairs."""
    rng = np.random.default_rng(seed)
    scores = 3 + rng.normal(size=(n_users, 2)) @ rng.normal(size=(2, n_items))
    ratings = scores + rng.normal(size=scores.shape) * rng.choice([0.3, 0.9], size=(n_users, 1))
    users, items = np.nonzero(rng.random(scores.shape) < 2 * density)
    part = rng.random(users.size) < 0.5
    whole = Interactions(users, items, ratings[users, items], range(n_users), range(n_items), allow_negative=True)
    return whole.select(part), whole.select(~part)


def model(solver, **options):
    small = {"n_factors": 3, "clip": False, "user_graph_reg": 0, "item_graph_reg": 0}
    if solver != "adam":
        small["pattern_features"] = 3
    return AIR.for_ratings(solver=solver, **CPU | small | options)


@pytest.fixture(scope="module", params=SOLVERS)
def fitted(request):
    return model(request.param, user_graph_reg="auto").fit(frame())


# -------------------------------------------------------------------- deviations


@both
def test_intervals_hold_what_they_say_with_and_without_the_ends_of_the_scale(solver):
    shown, new = drawn()
    pairs = new.user_index, new.item_index
    free = model(solver).fit(shown)
    scores, deviations = free.predict(*pairs, return_std=True)
    errors = np.abs(new.ratings - scores)
    assert 0.87 < np.mean(errors < 1.645 * deviations) < 0.93
    assert 0.46 < np.mean(errors < 0.674 * deviations) < 0.56
    wide = deviations > np.median(deviations)
    assert rmse(new.ratings[wide], scores[wide]) > 1.5 * rmse(new.ratings[~wide], scores[~wide])
    clipping = model(solver, clip=True).fit(shown)
    for level in (0.5, 0.9):
        low, high = free.predict_interval(*pairs, level)
        assert abs(np.mean((low <= new.ratings) & (new.ratings <= high)) - level) < 0.06
        for clipped, end in zip(clipping.predict_interval(*pairs, level), (low, high), strict=True):
            np.testing.assert_allclose(clipped, end.clip(*clipping.rating_scale_))


def test_scores_are_the_same_with_and_without_deviations_and_in_any_company(fitted):
    users, items = ["u00", "u03", "nobody"], ["i1", "i2", "i3"]
    scores, deviations = fitted.predict(users, items, unknown="mean", return_std=True)
    np.testing.assert_array_equal(scores, fitted.predict(users, items, unknown="mean"))
    table = fitted.predict_table(users, items, unknown="mean")
    np.testing.assert_array_equal(table[["score", "deviation"]].T, [scores, deviations])
    assert table["source"].tolist() == ["model", "model", "item mean"]
    assert deviations[2] == fitted.interactions_.ratings.std()
    assert (deviations > 0).all()
    for place in (0, 1):
        alone = fitted.predict(users[place], items[place], return_std=True)[1]
        assert alone[0] == pytest.approx(deviations[place], rel=1e-9)
    with pytest.raises(UnknownIdError):
        fitted.predict(users, items, unknown="error", return_std=True)


def test_an_interval_lies_around_the_score_and_grows_with_its_level(fitted):
    users, items = ["u00", "u03", "nobody"], ["i1", "i2", "i3"]
    scores, deviations = fitted.predict(users, items, unknown="mean", return_std=True)
    low, high = fitted.predict_interval(users, items, unknown="mean")
    np.testing.assert_allclose((low + high) / 2, scores)
    np.testing.assert_allclose((high - low) / 2, 1.6449 * deviations, rtol=1e-4)
    narrow = fitted.predict_interval(users, items, 0.5, unknown="mean")
    assert (low < narrow[0]).all()
    assert (narrow[1] < high).all()
    with pytest.raises(UnknownIdError):
        fitted.predict_interval(users, items, unknown="error")
    for level in (0, 1, 90, "high"):
        with pytest.raises(ParameterError, match=r"level must be a number > 0 and <= 0.9999, found"):
            fitted.predict_interval(users, items, level)


def test_an_objective_knows_no_uncertainty():
    with pytest.raises(NotFittedError, match=r"needs? a posterior, .* found none"):
        model("adam", n_epochs=3).fit(frame()).uncertainty()


def test_a_file_and_the_same_seed_have_the_same_deviations_to_the_bit(fitted, tmp_path):
    pairs = fitted.interactions_.to_frame()
    for other in (AIR.load(fitted.save(tmp_path / "model.air")), clone(fitted).fit(frame())):
        assert_same_predictions(other, fitted, pairs["user"], pairs["item"])


@both
@pytest.mark.parametrize("side", ["user", "item"])
def test_the_uncertainty_of_a_side_is_the_mean_variance_of_its_scores(solver, side):
    fit = of_few(solver)
    users, items = (pairs.ravel() for pairs in np.indices((40, 25)))
    noise = fit._fitted().equations.noise(users, items)
    of_scores = fit.predict(users, items, return_std=True)[1] ** 2 - noise
    expected = np.sqrt(of_scores.reshape(40, 25).mean(axis=1 if side == "user" else 0))
    found = fit.uncertainty(side)
    assert found.index.name == side
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-4)


@cache
def of_few(solver):
    return model(solver, n_sweeps=30).fit(drawn(40, 25)[0])


def test_little_rated_items_are_uncertain():
    shown, _ = drawn()
    few = shown.select((shown.item_index >= 20) | (np.arange(shown.ratings.size) % 10 == 0))
    found = model("variational").fit(few)
    uncertain = found.uncertainty().to_numpy()
    assert uncertain[:20].mean() > 1.3 * uncertain[20:].mean()
    with pytest.raises(ParameterError, match="side"):
        found.uncertainty("film")


# -------------------------------------------------------------------- graphs and the history


def planted(n_users=90, n_items=60):
    """Ratings of random pairs by three groups of users of three groups of items; the last of both have none."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(3, 3))[np.arange(n_users) % 3][:, np.arange(n_items) % 3]
    users, items = np.nonzero(rng.random(scores.shape) < 0.4)
    ratings = scores[users, items] + 0.5 * rng.normal(size=users.size)
    ids = range(n_users + 1), range(n_items + 1)
    return Interactions(users, items, ratings, *ids, allow_negative=True)


@both
def test_the_graphs_find_groups_that_the_ratings_know_and_leave_alone_who_has_none(solver):
    found = model(solver, graph_neighbors=10, **BOTH_GRAPHS).fit(planted())
    for graph in (found.user_graph_, found.item_graph_):
        weights, groups = graph.to_scipy().toarray(), np.arange(len(graph)) % 3
        inside = weights[groups[:, None] == groups].sum() / weights.sum()
        assert inside > 0.7  # by chance a third
        assert graph.neighbors(len(graph) - 1).empty
        assert not graph.neighbors(0).empty


@both
@pytest.mark.parametrize(("neighbors", "edges"), [(4, 4), ("auto", 20), (None, 20)])
def test_both_graphs_are_those_by_agreement_of_the_final_state(solver, neighbors, edges):
    data = planted()
    data = Interactions(data.user_index, data.item_index, data.ratings, data.user_ids, data.item_ids,
                        weights=1 + np.arange(data.n_ratings) % 3, allow_negative=True)  # fmt: skip
    found = model(solver, n_sweeps=6, graph_neighbors=neighbors, **BOTH_GRAPHS).fit(data)
    left = data.ratings - found.factors_.scores(data.user_index, data.item_index)
    rows = sp.csr_array((left * np.sqrt(data.weights), (data.user_index, data.item_index)))
    rows.resize((data.n_users, data.n_items))
    for graph, factors, residuals, few in (
        (found.user_adjacency_, found.user_factors_, rows, 30),
        (found.item_adjacency_, found.item_factors_, sp.csr_array(rows.T), 60),
    ):
        expected = agreement_graphs(factors, residuals, edges, few).graph
        np.testing.assert_allclose(graph.toarray(), expected.toarray(), rtol=1e-6)


def test_graphs_are_shown_where_scores_do_without_them_and_left_out_where_asked():
    shown, without = (model("variational", n_sweeps=6, graph_residuals=t, **BOTH_GRAPHS) for t in ("auto", 0))
    first, second = shown.fit(drawn()[0]), without.fit(drawn()[0])
    assert second.settings_ == {}
    np.testing.assert_array_equal(first.item_adjacency_.toarray(), second.item_adjacency_.toarray())
    np.testing.assert_array_equal(first.user_adjacency_.toarray(), second.user_adjacency_.toarray())
    alone = model("variational", n_sweeps=6, item_graph_reg="auto").fit(drawn()[0])
    assert (alone.user_graph_, alone.item_graph_ is None) == (None, False)


@both
def test_snapshots_are_those_of_the_sweeps(solver):
    found = model(solver, n_sweeps=6, snapshot_epochs=[0, 3, 6], **BOTH_GRAPHS).fit(frame())
    assert sorted(found.snapshots_) == [0, 3, 6]
    last = found.snapshots_[6]
    np.testing.assert_array_equal(last.item_graph.to_scipy().toarray(), found.item_adjacency_.toarray())
    assert last.user_graph.ids.tolist() == found.user_graph_.ids.tolist()
    middle = found.snapshots_[3].item_graph.to_scipy().toarray()
    assert not np.array_equal(middle, found.item_adjacency_.toarray())
    with pytest.raises(ParameterError, match="snapshot_epochs must be at most the last epoch or sweep, 6, found 7"):
        model(solver, n_sweeps=6, snapshot_epochs=[7]).fit(frame())


@both
def test_the_noise_in_the_history_is_that_of_the_ratings(solver):
    rng = np.random.default_rng(0)
    scores = 3 + rng.normal(size=(120, 2)) @ rng.normal(size=(2, 80))
    ratings = np.where(rng.random(scores.shape) < 0.4, scores + 0.5 * rng.normal(size=scores.shape), np.nan)
    history = model(solver).fit(Interactions.from_dense(ratings, allow_negative=True)).history_
    assert history["noise"].iloc[-1] == pytest.approx(0.5, rel=0.1)
    assert history[["fit", "objective", "decay", "learning_rate", "user_energy", "item_energy"]].isna().all(axis=None)


# -------------------------------------------------------------------- validation

OVERFITTING = {"n_factors": 8, "graph_neighbors": 3, "n_sweeps": 40, "validation_fraction": 0.3, "device": "cpu"}


@both
def test_the_best_validation_state_is_kept(solver):
    found = AIR.for_ratings(solver=solver, clip=False, random_state=2, **OVERFITTING).fit(frame())
    errors = found.history_.set_index("epoch")["validation_rmse"]
    kept = errors[errors.index > 8] if solver == "langevin" else errors  # the first fifth of the draws is not kept
    assert found.n_iter_ == kept.idxmin() < 40
    assert (found.stopped_by_, errors.index[-1]) == ("n_sweeps", 40)
    held_out = random_holdout(Interactions.from_frame(frame()), 0.3, random_state=np.random.default_rng(2)).test
    data = Interactions.from_frame(frame()).select(held_out)
    scores = found.predict(data.user_ids[data.user_index], data.item_ids[data.item_index])
    assert rmse(data.ratings, scores) == pytest.approx(kept.min(), rel=1e-5)
    deviations = found.predict("u00", [f"i{item}" for item in range(9)], return_std=True)[1]
    assert (deviations > 0).all()


@both
def test_patience_ends_the_sweeps_and_goes_on_from_a_checkpoint(solver, tmp_path):
    whole, cut, again = (AIR.for_ratings(solver=solver, random_state=3, patience=3, **OVERFITTING) for _ in range(3))
    whole.fit(frame())
    assert whole.history_["epoch"].iloc[-1] == whole.n_iter_ + 3 < 40
    at = whole.n_iter_ + 1  # the best state lies behind
    cut.fit(frame(), checkpoint=tmp_path / "run.ckpt", every=1, callbacks=[lambda record: record.epoch == at])
    again.fit(frame(), resume_from=tmp_path / "run.ckpt")
    assert (again.n_iter_, again.stopped_by_) == (whole.n_iter_, "patience")
    np.testing.assert_array_equal(again.user_factors_, whole.user_factors_)
    pd.testing.assert_frame_equal(again.history_.drop(columns="seconds"), whole.history_.drop(columns="seconds"))


@both
def test_the_unit_and_the_zero_of_ratings_do_not_matter_and_who_has_none_gets_what_the_rest_says(solver):
    shown, _ = drawn(40, 25)
    data = [
        Interactions(shown.user_index, shown.item_index, ratings, range(41), range(26), allow_negative=True)
        for ratings in (shown.ratings, 10 * shown.ratings + 500)
    ]
    (one, spread), (two, ten) = (
        model(solver, dtype="float64", n_sweeps=40).fit(each).predict(40, range(26), return_std=True) for each in data
    )
    np.testing.assert_allclose(two, 10 * one + 500, rtol=1e-5)
    np.testing.assert_allclose(ten, 10 * spread, rtol=1e-4)
    assert spread[:-1].mean() > 0.8 * np.std(shown.ratings)
    assert spread[-1] > 0.8 * np.std(shown.ratings)


# -------------------------------------------------------------------- ratings too few for factors: biases alone


@cache
def scarce_ratings(size=400, n=700, n_new=3000):
    rng = np.random.default_rng(0)
    users, items = np.divmod(rng.choice(size * size, n + n_new, replace=False), size)
    ratings = 50 + 3 * rng.normal(size=size)[users] + 12 * rng.normal(size=size)[items]
    ratings += 15 * rng.normal(size=n + n_new)
    data = Interactions(users, items, ratings.clip(1, 100), range(size), range(size))
    return data.select(np.arange(n)), data.select(np.arange(n, n + n_new))


@pytest.fixture(scope="module", params=SOLVERS)
def scarce(request):
    return AIR.for_ratings(solver=request.param, **CPU).fit(scarce_ratings()[0])


def test_few_ratings_of_many_are_scarce_and_a_small_matrix_is_not():
    assert is_scarce(scarce_ratings()[0])
    assert not is_scarce(Interactions.from_dense(np.ones((4, 5))))
    users, items = np.divmod(np.arange(0, 900, 3), 30)
    for size in (30, 5000):  # those who rate nothing do not make ratings scarce
        assert not is_scarce(Interactions(users, items, np.ones(300), range(size), range(size)))


def test_scarce_ratings_get_biases_alone_and_graphs_of_the_pattern_where_it_is_wanted(scarce, tmp_path):
    assert scarce.settings_ == {"n_factors": 0, "pattern_features": "degrees", "graph_residuals": 0.0}
    assert scarce.user_factors_.shape == (400, 0)
    assert (scarce.user_adjacency_.shape, scarce.user_adjacency_.nnz) == ((400, 400), 0)
    plain = clone(scarce).set_params(pattern_graphs=False).fit(scarce_ratings()[0])
    assert scarce.user_graph_.n_edges > 0
    assert plain.user_graph_.n_edges == 0
    for other in (plain, AIR.load(scarce.save(tmp_path / "model.air"))):
        assert_same_predictions(other, scarce, range(9), range(9))


def test_what_is_given_is_not_touched():
    given = {"n_factors": 2, "pattern_features": 3, "n_sweeps": 2, "graph_residuals": 0}
    model = AIR.for_ratings(**given, **CPU).fit(scarce_ratings()[0])
    assert model.user_factors_.shape == (400, 2)
    assert model.settings_ == {}
    assert model.user_graph_ is not None
    assert model.user_graph_.to_scipy().nnz > 0


def test_intervals_of_scarce_ratings_hold_and_reasons_add_up(scarce):
    shown, new = scarce_ratings()
    scores, deviations = scarce.predict(new.user_index, new.item_index, return_std=True)
    assert 0.86 < np.mean(np.abs(new.ratings - scores) < 1.645 * deviations) < 0.94
    explanation = scarce.explain(int(shown.user_index[0]), int(shown.item_index[1]))
    assert explanation.total() == pytest.approx(explanation.score, abs=1e-3)


@both
def test_a_training_on_scarce_ratings_goes_on_where_it_was(solver, tmp_path):
    shown, path = scarce_ratings()[0], tmp_path / "run"
    whole, cut, resumed = (AIR.for_ratings(solver=solver, n_sweeps=20, **CPU) for _ in range(3))
    cut.fit(shown, checkpoint=path, every=5, callbacks=[lambda record: record.epoch == 12])
    assert_same_predictions(resumed.fit(shown, resume_from=path), whole.fit(shown), shown.user_index, shown.item_index)


def test_new_rows_and_ratings_get_biases_on_the_side_of_their_ratings(scarce):
    rows = [sp.csr_array(np.full((1, 400), value) * (np.arange(400) < 5)) for value in (80.0, 30.0)]
    high, low = map(scarce.fold_in, rows)
    assert high.user_factors_.shape == (1, 0)
    assert high.user_biases_[0] > low.user_biases_[0]
    grown, shown = copy.copy(scarce), scarce_ratings()[0]
    user, items = int(shown.user_index[0]), np.arange(390, 395)
    more = Interactions(np.zeros(5, int), np.arange(5), np.full(5, shown.ratings.max()), [user], items)
    assert (grown.partial_fit(more).predict(user, items) > scarce.predict(user, items)).all()
