"""`AIR` with a posterior: predictions with standard deviations, files, and what goes on working."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from model_cases import frame
from sklearn.base import clone

from air_recsys import AIR, Interactions
from air_recsys.datasets import load_movielens_fold
from air_recsys.exceptions import NotFittedError, ParameterError, UnknownIdError
from air_recsys.metrics import rmse
from air_recsys.splits import random_holdout

CPU = {"device": "cpu", "random_state": 0}
SOLVERS = ("variational", "langevin")
both = pytest.mark.parametrize("solver", SOLVERS)


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


@both
def test_intervals_hold_what_they_say(solver):
    shown, new = drawn()
    scores, deviations = model(solver).fit(shown).predict(new.user_index, new.item_index, return_std=True)
    errors = np.abs(new.ratings - scores)
    assert 0.87 < np.mean(errors < 1.645 * deviations) < 0.93
    assert 0.46 < np.mean(errors < 0.674 * deviations) < 0.56
    wide = deviations > np.median(deviations)
    assert rmse(new.ratings[wide], scores[wide]) > 1.5 * rmse(new.ratings[~wide], scores[~wide])


def test_scores_are_the_same_with_and_without_deviations(fitted):
    users, items = ["u00", "u03", "nobody"], ["i1", "i2", "i3"]
    scores, deviations = fitted.predict(users, items, unknown="mean", return_std=True)
    np.testing.assert_array_equal(scores, fitted.predict(users, items, unknown="mean"))
    table = fitted.predict_table(users, items, unknown="mean")
    np.testing.assert_array_equal(table[["score", "deviation"]].T, [scores, deviations])
    assert table["source"].tolist() == ["model", "model", "item mean"]
    assert deviations[2] == fitted.interactions_.ratings.std()
    assert (deviations > 0).all()
    with pytest.raises(UnknownIdError):
        fitted.predict(users, items, unknown="error", return_std=True)


@both
def test_predicted_intervals_hold_their_level_with_and_without_the_ends_of_the_scale(solver):
    shown, new = drawn()
    pairs = new.user_index, new.item_index
    for level in (0.5, 0.9):
        low, high = model(solver).fit(shown).predict_interval(*pairs, level)
        assert abs(np.mean((low <= new.ratings) & (new.ratings <= high)) - level) < 0.06
    clipping = model(solver, clip=True).fit(shown)
    ends, (bottom, top) = clipping.predict_interval(*pairs, 0.9), clipping.rating_scale_
    for clipped, free in zip(ends, (low, high), strict=True):
        np.testing.assert_allclose(clipped, free.clip(bottom, top))


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


def test_an_objective_has_no_intervals():
    with pytest.raises(NotFittedError):
        model("adam", n_epochs=5).fit(frame()).predict_interval("u00", "i1")


def test_deviations_do_not_depend_on_the_company(fitted):
    pairs = fitted.interactions_.to_frame()
    whole = fitted.predict(pairs["user"], pairs["item"], return_std=True)[1]
    for row in (0, 7, len(pairs) - 1):
        alone = fitted.predict(pairs["user"][row], pairs["item"][row], return_std=True)[1]
        assert alone[0] == pytest.approx(whole[row], rel=1e-9)


def test_a_file_keeps_the_deviations_to_the_bit(fitted, tmp_path):
    loaded = AIR.load(fitted.save(tmp_path / "model.air"))
    pairs = fitted.interactions_.to_frame()
    for one, two in zip(
        *(one.predict(pairs["user"], pairs["item"], return_std=True) for one in (fitted, loaded)), strict=True
    ):
        np.testing.assert_array_equal(one, two)


def test_the_same_seed_gives_the_same_model(fitted):
    again = clone(fitted).fit(frame())
    np.testing.assert_array_equal(again.user_factors_, fitted.user_factors_)
    pairs = fitted.interactions_.to_frame()
    one, two = (known.predict(pairs["user"], pairs["item"], return_std=True)[1] for known in (fitted, again))
    np.testing.assert_array_equal(one, two)


def planted(n_users=90, n_items=60, density=0.4, seed=0):
    """Ratings of random pairs by three groups of users of three groups of items."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(3, 3))[np.arange(n_users) % 3][:, np.arange(n_items) % 3]
    users, items = np.nonzero(rng.random(scores.shape) < density)
    ratings = scores[users, items] + 0.5 * rng.normal(size=users.size)
    return Interactions(users, items, ratings, range(n_users), range(n_items), allow_negative=True)


BOTH_GRAPHS = {"user_graph_reg": "auto", "item_graph_reg": "auto"}


@both
def test_the_graphs_find_groups_that_the_ratings_know(solver):
    found = model(solver, graph_neighbors=10, **BOTH_GRAPHS).fit(planted())
    for graph in (found.user_graph_, found.item_graph_):
        weights, groups = graph.to_scipy().toarray(), np.arange(len(graph)) % 3
        inside = weights[groups[:, None] == groups].sum() / weights.sum()
        assert inside > 0.7  # by chance a third


@both
def test_the_graphs_change_no_score(solver):
    with_graphs, without = (model(solver, n_sweeps=8, **options).fit(frame()) for options in (BOTH_GRAPHS, {}))
    np.testing.assert_array_equal(with_graphs.user_factors_, without.user_factors_)
    assert with_graphs.item_graph_ is not None
    assert without.item_graph_ is None


@pytest.mark.parametrize("adjacency", ["row_softmin", "global_sum", "global_product"])
def test_graphs_of_all_pairs_are_learned_too(adjacency):
    found = model("variational", graph_neighbors=None, adjacency=adjacency, **BOTH_GRAPHS).fit(planted())
    weights, groups = found.item_graph_.to_scipy().toarray(), np.arange(60) % 3
    assert weights[groups[:, None] == groups].mean() > 1.5 * weights[groups[:, None] != groups].mean()


@both
def test_users_and_items_without_ratings_stand_alone(solver):
    known = planted()
    data = Interactions(known.user_index, known.item_index, known.ratings, range(91), range(61), allow_negative=True)
    found = model(solver, n_sweeps=10, **BOTH_GRAPHS).fit(data)
    assert found.user_graph_.neighbors(90).empty
    assert found.item_graph_.neighbors(60).empty
    assert not found.item_graph_.neighbors(0).empty


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


def test_the_sweeps_are_in_the_history_with_the_energies_of_the_graphs(fitted):
    assert fitted.user_graph_ is not None
    assert fitted.item_graph_ is None
    sweeps = {"variational": 12, "langevin": 120}[fitted.solver.name]
    history = fitted.history_
    assert history["epoch"].tolist() == list(range(1, sweeps + 1))
    assert (history["user_energy"] > 0).all()
    assert not history["item_energy"].any()
    assert fitted.n_iter_ == sweeps
    assert fitted.stopped_by_ == "n_sweeps"


@both
def test_the_noise_in_the_history_is_that_of_the_ratings(solver):
    rng = np.random.default_rng(0)
    scores = 3 + rng.normal(size=(120, 2)) @ rng.normal(size=(2, 80))
    ratings = np.where(rng.random(scores.shape) < 0.4, scores + 0.5 * rng.normal(size=scores.shape), np.nan)
    history = model(solver).fit(Interactions.from_dense(ratings, allow_negative=True)).history_
    assert history["noise"].iloc[-1] == pytest.approx(0.5, rel=0.1)
    assert history[["fit", "objective", "decay", "learning_rate"]].isna().all(axis=None)


@both
def test_without_graphs_there_are_sweeps_alone(solver):
    found = model(solver, n_sweeps=7).fit(frame())
    assert found.history_["epoch"].tolist() == list(range(1, 8))
    assert found.user_graph_ is None
    assert found.device_ == "cpu"


@both
def test_validation_ratings_are_watched(solver):
    shown, new = drawn()
    found = model(solver, n_sweeps=20).fit(shown, validation=new)
    error = rmse(new.ratings, found.predict(new.user_index, new.item_index))
    assert found.history_["validation_rmse"].min() == pytest.approx(error, rel=1e-5)


def overfitted(solver, **options):
    """A model whose error on the validation part falls at first and rises again."""
    settings = {"n_factors": 8, "graph_neighbors": 3, "n_sweeps": 40, "validation_fraction": 0.3, "random_state": 2}
    return AIR.for_ratings(solver=solver, device="cpu", **settings, **options).fit(frame())


@both
def test_the_best_validation_state_is_kept(solver):
    found = overfitted(solver, clip=False)
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
def test_patience_ends_the_sweeps(solver):
    patient = overfitted(solver, patience=3)
    assert patient.stopped_by_ == "patience"
    assert patient.history_["epoch"].iloc[-1] == patient.n_iter_ + 3 < 40


@both
def test_a_training_in_its_patience_goes_on_from_its_checkpoint(solver, tmp_path):
    settings = {"n_factors": 8, "graph_neighbors": 3, "n_sweeps": 40, "validation_fraction": 0.3, "patience": 3}
    whole, cut, again = (AIR.for_ratings(solver=solver, device="cpu", random_state=3, **settings) for _ in range(3))
    whole.fit(frame())
    at = whole.n_iter_ + 1  # the best state lies behind
    cut.fit(frame(), checkpoint=tmp_path / "run.ckpt", every=1, callbacks=[lambda record: record.epoch == at])
    again.fit(frame(), resume_from=tmp_path / "run.ckpt")
    assert (again.n_iter_, again.stopped_by_) == (whole.n_iter_, "patience")
    np.testing.assert_array_equal(again.user_factors_, whole.user_factors_)
    pd.testing.assert_frame_equal(again.history_.drop(columns="seconds"), whole.history_.drop(columns="seconds"))


@both
def test_a_callback_sees_the_factors_of_the_moment_and_ends_the_sweeps(solver):
    seen = []
    known = model(solver, n_sweeps=20)

    def look(record):
        seen.append((record.epoch, known.current_factors().mean))
        return record.epoch >= 9

    known.fit(frame(), callbacks=[look])
    assert known.stopped_by_ == "callback"
    assert [epoch for epoch, _ in seen] == list(range(1, 10))
    assert seen[-1][1] == known.global_mean_
    with pytest.raises(NotFittedError, match="current_factors is for callbacks"):
        known.current_factors()


@both
def test_ratings_in_another_order_say_the_same(solver):
    table = frame()
    shuffled = table.sample(frac=1, random_state=0)
    users = sorted(table["user"].unique())
    first = Interactions.from_frame(table)
    mixed = Interactions(
        first.users.lookup(shuffled["user"]),
        first.items.lookup(shuffled["item"]),
        shuffled["rating"].to_numpy(),
        first.user_ids,
        first.item_ids,
    )
    scores = [model(solver).fit(data).predict(users, "i1") for data in (first, mixed)]
    np.testing.assert_array_equal(*scores)


@both
def test_the_unit_and_the_zero_of_ratings_do_not_matter(solver):
    shown, _ = drawn()
    other = Interactions(shown.user_index, shown.item_index, 10 * shown.ratings + 500, shown.user_ids, shown.item_ids)
    (one, spread), (two, ten) = (
        model(solver, dtype="float64", n_sweeps=20).fit(data).predict(0, range(80), return_std=True)
        for data in (shown, other)
    )
    np.testing.assert_allclose(two, 10 * one + 500, rtol=1e-5)
    np.testing.assert_allclose(ten, 10 * spread, rtol=1e-4)


@both
def test_users_and_items_without_ratings_get_what_the_rest_says(solver):
    shown, _ = drawn()
    empty = Interactions(shown.user_index, shown.item_index, shown.ratings, range(121), range(81), allow_negative=True)
    scores, deviations = model(solver, n_sweeps=20).fit(empty).predict(120, range(81), return_std=True)
    assert np.isfinite(scores).all()
    assert deviations[:-1].mean() > 0.8 * np.std(shown.ratings)
    assert deviations[-1] > 0.8 * np.std(shown.ratings)


def test_new_ratings_come_in_with_deviations(fitted):
    new = pd.DataFrame({"user": ["u00", "somebody"], "item": ["i1", "novel"], "rating": [2.0, 4.0]})
    grown = clone(fitted).fit(frame()).partial_fit(new)
    scores, deviations = grown.predict(["somebody", "u00", "u01"], ["i1", "novel", "i1"], return_std=True)
    assert np.isfinite(scores).all()
    assert (deviations > 0).all()
    np.testing.assert_allclose(deviations[2], fitted.predict("u01", "i1", return_std=True)[1][0], rtol=1e-9)


def test_a_score_is_explained(fitted):
    found = fitted.explain("u00", "i1")
    assert found.total() == pytest.approx(found.score, abs=1e-4)
    assert len(found.similar_users.rows) == 0


def test_deviations_need_a_posterior():
    found = model("adam", n_epochs=3).fit(frame())
    with pytest.raises(NotFittedError, match=r"deviations and probabilities need a posterior, .* found none"):
        found.predict("u00", "i1", return_std=True)
    with pytest.raises(NotFittedError, match=r"deviations and probabilities need a posterior, .* found none"):
        found.predict_proba("u00", "i1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "gibbs"}, "solver must be 'adam', 'variational', 'langevin' or an object such as Adam"),
        ({"solver": object()}, "solver must be .* an object such as Adam.., found <object"),
        ({"solver__n_sweeps": 0}, "n_sweeps must be"),
        ({"solver__pattern_features": -1}, "pattern_features must be"),
        (
            {"solver__user_graph_reg": 0.5},
            "of Langevin must be 'auto' or 0, found 0.5: a strength is read by Adam alone",
        ),
        ({"n_factors": None}, "Langevin needs n_factors, a number or 'auto', found None, which is full width"),
    ],
)
def test_parameters_that_do_not_go_together(options, message):
    with pytest.raises(ParameterError, match=message):
        model("langevin").set_params(**options).fit(frame())


@pytest.mark.data
def test_a_fold_of_movielens(data_root):
    train, test = load_movielens_fold(data_root, "u1")
    found = AIR.for_ratings(user_graph_reg=0.0, item_graph_reg=0.0, **CPU).fit(train)
    users, items = test.user_ids[test.user_index], test.item_ids[test.item_index]
    scores, deviations = found.predict(users, items, return_std=True)
    assert rmse(test.ratings, scores) < 0.885
    assert 0.88 < np.mean(np.abs(scores - test.ratings) < 1.645 * deviations) < 0.92


@both
@pytest.mark.parametrize("side", ["user", "item"])
def test_the_uncertainty_of_a_side_is_the_mean_variance_of_its_scores(solver, side):
    shown, _ = drawn(40, 25)
    fit = model(solver, n_sweeps=30).fit(shown)
    users, items = (pairs.ravel() for pairs in np.indices((40, 25)))
    noise = fit._fitted().equations.noise(users, items)
    of_scores = fit.predict(users, items, return_std=True)[1] ** 2 - noise
    expected = np.sqrt(of_scores.reshape(40, 25).mean(axis=1 if side == "user" else 0))
    found = fit.uncertainty(side)
    assert found.index.name == side
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-4)


def test_little_rated_items_are_uncertain():
    shown, _ = drawn()
    few = shown.select((shown.item_index >= 20) | (np.arange(shown.ratings.size) % 10 == 0))
    found = model("variational").fit(few).uncertainty().to_numpy()
    assert found[:20].mean() > 1.3 * found[20:].mean()


def test_an_objective_knows_no_uncertainty():
    with pytest.raises(NotFittedError, match="uncertainty needs a posterior"):
        model("adam", n_epochs=2).fit(frame()).uncertainty()
    with pytest.raises(ParameterError, match="side"):
        model("variational").uncertainty("film")
